// The shared-memory transport and dead peers: messages in flight to them or from them. The peer
// here is a segment that no process reads, and a process that waits to be killed.
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collectives/transport/shm.h"
#include "collectives/transport/world_impl.h"
#include "collectives/transport/world_local.h"
#include "sim/base/alloc.h"
#include "sim/base/os/clock.h"
#include "tests/unit/support/unit.h"

typedef struct {
  mp_world_t *world;
  mp_transport_t *shm;
  mp_segment_t *theirs;
  mp_ring_t *in, *out;  // from and to the peer
  pid_t pid;
  atomic_uint num_packets, num_lost, num_after;  // packets that came after the loss
} scene_t;

static void take(void *context, mp_packet_t *packet) {
  scene_t *scene = context;
  atomic_fetch_add(atomic_load(&scene->num_lost) != 0 ? &scene->num_after : &scene->num_packets, 1);
  mp_packet_release(packet);
}

static void lose(void *context, uint32_t rank, mp_status_t why) {
  (void)rank, (void)why;
  atomic_fetch_add(&((scene_t *)context)->num_lost, 1);
}

// `has_process`: the peer can be killed; otherwise it is a world of this process.
static void begin(scene_t *scene, bool has_process) {
  memset(scene, 0, sizeof(*scene));
  if (has_process) {
    scene->pid = fork();
    if (scene->pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) pause();
    }
  }
  assert_ok(mp_world_create(0, 2, &scene->world));
  mp_world_t *world = scene->world;
  assert_ok(mp_segment_create(2, 2, &world->segment));
  assert_ok(mp_segment_create(2, 2, &scene->theirs));
  world->doorbell = mp_segment_doorbell(world->segment);
  for (uint32_t i = 0; i < 2; ++i) {
    world->peers[i].peer =
        (mp_peer_t){.rank_on_host = i, .ranks_on_host = 2, .pid = getpid(), .hostname = "here"};
  }
  assert_ok(mp_shm_create(world, world->segment, 0, &scene->shm));
  assert_ok(mp_shm_add_peer(scene->shm, 1, scene->theirs, has_process ? scene->pid : getpid()));
  world->peers[1].transport = scene->shm;
  mp_world_add_transport(world, scene->shm);
  mp_world_attach(world, 0, &(mp_handler_t){.deliver = take, .lost = lose, .context = scene});
  scene->in = mp_segment_ring(world->segment, 1);
  scene->out = mp_segment_ring(scene->theirs, 0);
  assert_ok(mp_world_start(world));
}

static void kill_peer(scene_t *scene) {
  assert_int_equal(kill(scene->pid, SIGKILL), 0);
  assert_int_equal(waitpid(scene->pid, NULL, 0), scene->pid);
}

static void end(scene_t *scene) {
  mp_world_release(scene->world);
  mp_segment_release(scene->theirs);
}

static void await_count(const atomic_uint *count, unsigned wanted) {
  const double deadline = mp_clock_seconds() + 100;
  while (atomic_load(count) < wanted && mp_clock_seconds() < deadline) usleep(200);
  assert_int_equal(atomic_load(count), wanted);
}

// As the peer would write it.
static void write_slot(scene_t *scene, unsigned at, uint64_t offset) {
  mp_ring_slot_t *slot = &scene->in->slots[at % MP_RING_SLOTS];
  *slot = (mp_ring_slot_t){.offset = offset};
  atomic_store(&scene->in->head, at + 1);
  mp_doorbell_ring(scene->world->doorbell);
}

// ---- Tests ----

static void what_a_dead_peer_has_not_taken_comes_back(void **state) {
  (void)state;
  enum { COUNT = 3, IN_VAIN = MP_RING_SLOTS };
  static scene_t scene;
  mp_payload_t *payloads[COUNT];
  begin(&scene, true);
  for (int i = 0; i < COUNT; ++i) {
    assert_ok(mp_payload_create(scene.world, 100000, &payloads[i]));
    assert_ok(mp_world_send(scene.world, 1, &(mp_envelope_t){.key = {1}}, payloads[i]));
  }
  // More than fits into the ring: these wait in the process.
  for (int i = 0; i < IN_VAIN; ++i) {
    assert_ok(mp_world_send(scene.world, 1, &(mp_envelope_t){.key = {1}}, payloads[0]));
  }
  assert_false(mp_world_drain(scene.world, 0));
  kill_peer(&scene);
  await_count(&scene.num_lost, 1);
  assert_true(mp_world_drain(scene.world, 60));
  for (int i = 0; i < COUNT; ++i) {
    const mp_payload_block_t *block = mp_payload_block_of(payloads[i]);
    const double deadline = mp_clock_seconds() + 100;
    while (atomic_load(&block->references) > 1 && mp_clock_seconds() < deadline) usleep(200);
    assert_int_equal(atomic_load(&block->references), 1);
    mp_payload_release(payloads[i]);
  }
  end(&scene);
}

// A process that leaves waits until its rings have room for all it has to say. One whose messages
// are malformed is lost, but must not wait for ever.
static void a_damaged_ring_is_emptied(void **state) {
  (void)state;
  enum { COUNT = 2 * MP_RING_SLOTS };
  static scene_t scene;
  begin(&scene, false);
  write_slot(&scene, 0, 0);
  await_count(&scene.num_packets, 1);
  write_slot(&scene, 1, 12345);  // there is no such payload
  await_count(&scene.num_lost, 1);
  for (unsigned i = 2; i < COUNT; ++i) {
    const double deadline = mp_clock_seconds() + 100;
    while (i - atomic_load(&scene.in->tail) >= MP_RING_SLOTS) {
      assert_true(mp_clock_seconds() < deadline);
      usleep(200);
    }
    write_slot(&scene, i, 0);
  }
  await_count(&scene.in->tail, COUNT);
  assert_int_equal(scene.num_packets, 1);
  assert_int_equal(scene.num_after, 0);
  end(&scene);
}

// The peer's last packets come when there is no memory for them: they come before its loss all the
// same.
static void last_packets_come_before_the_loss(void **state) {
  (void)state;
  enum { COUNT = 5 };
  static scene_t scene;
  begin(&scene, true);
  mp_alloc_fail_at(1, 1);
  for (unsigned i = 0; i < COUNT; ++i) write_slot(&scene, i, 0);
  kill_peer(&scene);
  usleep(1000000);  // several looks at whether the peer is alive
  mp_alloc_fail_at(0, 0);
  await_count(&scene.num_lost, 1);
  assert_int_equal(scene.num_packets, COUNT);
  assert_int_equal(scene.num_after, 0);
  end(&scene);
}

// What comes for an exchange that has failed here meanwhile is not kept.
static void late_bytes_of_an_exchange_are_dropped(void **state) {
  (void)state;
  static scene_t scene;  // its counts
  memset(&scene, 0, sizeof(scene));
  mp_world_t *worlds[3];
  void **bytes = NULL;
  size_t *sizes = NULL;
  assert_ok(mp_worlds_create_local(3, 3, worlds));
  mp_world_attach(worlds[0], 0, &(mp_handler_t){.deliver = take, .lost = lose, .context = &scene});
  for (int i = 0; i < 2; ++i) {  // rank 1 is too late, rank 2 does not come at all
    assert_status(mp_world_exchange(worlds[i], "x", 1, 0.05, &bytes, &sizes), MP_DEADLINE_EXCEEDED,
                  "process 2 (pid");
  }
  assert_ok(mp_world_send(worlds[1], 0, &(mp_envelope_t){.channel = 0}, NULL));
  await_count(&scene.num_packets, 1);  // and what rank 1 sent before has come, too
  mp_lock(&worlds[0]->lock);
  assert_null(worlds[0]->blobs.first);
  mp_unlock(&worlds[0]->lock);
  assert_null(bytes);
  for (int i = 0; i < 3; ++i) mp_world_close(worlds[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_a_dead_peer_has_not_taken_comes_back),
      cmocka_unit_test(a_damaged_ring_is_emptied),
      cmocka_unit_test(last_packets_come_before_the_loss),
      cmocka_unit_test(late_bytes_of_an_exchange_are_dropped),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
