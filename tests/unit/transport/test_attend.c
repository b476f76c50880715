// A thread that makes progress in the place of a world's own. Two worlds of this process, on a host
// each.
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "collectives/transport/world_local.h"
#include "tests/unit/support/unit.h"

enum { RANKS = 2, NUM_TURNS = 50 };

typedef struct {
  mp_world_t *worlds[RANKS];
  pthread_t attendant;
  atomic_uint num_come, num_on_attendant;  // to world 0
  atomic_uint num_answers;                 // to world 1
} scene_t;

static void take(void *context, mp_packet_t *packet) {
  scene_t *scene = context;
  if (pthread_equal(pthread_self(), scene->attendant)) {
    atomic_fetch_add(&scene->num_on_attendant, 1);
  }
  mp_packet_release(packet);
  atomic_fetch_add(&scene->num_come, 1);
}

static void take_answer(void *context, mp_packet_t *packet) {
  mp_packet_release(packet);
  atomic_fetch_add(&((scene_t *)context)->num_answers, 1);
}

static void begin(scene_t *scene) {
  *scene = (scene_t){.attendant = pthread_self()};
  assert_ok(mp_worlds_create_local(RANKS, 1, scene->worlds));
  mp_world_attach(scene->worlds[0], 0, &(mp_handler_t){.deliver = take, .context = scene});
  mp_world_attach(scene->worlds[1], 0, &(mp_handler_t){.deliver = take_answer, .context = scene});
}

static void *close_world(void *world) {
  mp_world_close(world);
  return NULL;
}

static void end(scene_t *scene) {
  pthread_t threads[RANKS];
  for (int rank = 0; rank < RANKS; ++rank) {
    mp_world_detach(scene->worlds[rank], 0);
    assert_int_equal(pthread_create(&threads[rank], NULL, close_world, scene->worlds[rank]), 0);
  }
  for (int rank = 0; rank < RANKS; ++rank) pthread_join(threads[rank], NULL);
}

static void send(scene_t *scene, uint32_t from) {
  assert_ok(mp_world_send(scene->worlds[from], 1 - from, &(mp_envelope_t){0}, NULL));
}

static void await(const atomic_uint *count, unsigned least) {
  while (atomic_load(count) < least) nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

typedef struct {
  const scene_t *scene;
  unsigned wanted;
} goal_t;

static bool is_short_of(void *context) {
  const goal_t *goal = context;
  return atomic_load(&goal->scene->num_come) < goal->wanted;
}

static bool is_done_for(void *context) {
  (void)context;
  return false;
}

// The world's thread may be faster now and then, when the attendant is held up.
static void packets_come_to_the_thread_that_attends(void **state) {
  (void)state;
  scene_t scene;
  begin(&scene);
  for (unsigned turn = 1; turn <= NUM_TURNS; ++turn) {
    assert_true(mp_world_attend_begin(scene.worlds[0]));
    send(&scene, 1);
    mp_world_attend_end(scene.worlds[0], is_short_of, &(goal_t){&scene, turn});
    await(&scene.num_come, turn);
  }
  assert_true(atomic_load(&scene.num_on_attendant) > 0);
  end(&scene);
}

static void what_it_has_sent_goes_before_it_ends(void **state) {
  (void)state;
  scene_t scene;
  begin(&scene);
  for (unsigned turn = 1; turn <= NUM_TURNS; ++turn) {
    assert_true(mp_world_attend_begin(scene.worlds[0]));
    send(&scene, 0);
    mp_world_attend_end(scene.worlds[0], is_done_for, NULL);
    await(&scene.num_answers, turn);
  }
  end(&scene);
}

// A thread that attends and is held up, for example in a callback, holds up no other thread.
static void a_held_up_attendant_is_replaced(void **state) {
  (void)state;
  scene_t scene;
  begin(&scene);
  assert_true(mp_world_attend_begin(scene.worlds[0]));
  send(&scene, 1);
  send(&scene, 0);
  await(&scene.num_come, 1);
  await(&scene.num_answers, 1);
  mp_world_attend_end(scene.worlds[0], is_done_for, NULL);
  assert_int_equal(atomic_load(&scene.num_on_attendant), 0);
  end(&scene);
}

static void the_thread_of_the_world_takes_over_again(void **state) {
  (void)state;
  scene_t scene;
  begin(&scene);
  for (unsigned turn = 1; turn <= NUM_TURNS; ++turn) {
    assert_true(mp_world_attend_begin(scene.worlds[0]));
    mp_world_attend_end(scene.worlds[0], is_done_for, NULL);
    send(&scene, 1);
    await(&scene.num_come, turn);
  }
  assert_int_equal(atomic_load(&scene.num_on_attendant), 0);
  end(&scene);
}

// It waits for what does not come, and gives up; then it comes all the same.
static void it_gives_up_when_nothing_comes(void **state) {
  (void)state;
  scene_t scene;
  begin(&scene);
  assert_true(mp_world_attend_begin(scene.worlds[0]));
  mp_world_attend_end(scene.worlds[0], is_short_of, &(goal_t){&scene, 1});
  send(&scene, 1);
  await(&scene.num_come, 1);
  end(&scene);
}

static void *try_to_attend(void *world) {
  return mp_world_attend_begin(world) ? world : NULL;
}

static void one_thread_attends_at_a_time(void **state) {
  (void)state;
  scene_t scene;
  begin(&scene);
  assert_true(mp_world_attend_begin(scene.worlds[0]));
  assert_false(mp_world_attend_begin(scene.worlds[0]));
  assert_false(mp_world_attend_begin(scene.worlds[1]));  // nor to two worlds
  pthread_t other;
  void *result = NULL;
  assert_int_equal(pthread_create(&other, NULL, try_to_attend, scene.worlds[0]), 0);
  pthread_join(other, &result);
  assert_null(result);
  mp_world_attend_end(scene.worlds[0], is_done_for, NULL);
  assert_true(mp_world_attend_begin(scene.worlds[1]));
  mp_world_attend_end(scene.worlds[1], is_done_for, NULL);
  end(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(packets_come_to_the_thread_that_attends),
      cmocka_unit_test(what_it_has_sent_goes_before_it_ends),
      cmocka_unit_test(a_held_up_attendant_is_replaced),
      cmocka_unit_test(the_thread_of_the_world_takes_over_again),
      cmocka_unit_test(it_gives_up_when_nothing_comes),
      cmocka_unit_test(one_thread_attends_at_a_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
