// Agreements: work that succeeds in all ranks of a world or in none.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "collectives/transport/world_local.h"
#include "sim/base/alloc.h"
#include "tests/unit/support/unit.h"

typedef struct {
  mp_world_t *world;
  mp_status_t own, status;
  bool is_mute;  // every allocation of the process fails while this rank tells of its error
  atomic_int *num_waiting;
} partner_t;

// One exchange, and the end with what the partner is to say.
static void *agree_main(void *context) {
  partner_t *self = context;
  mp_agreement_t agreement;
  void **bytes = NULL;
  size_t *sizes = NULL;
  mp_agreement_begin(self->world, 100, &agreement);
  mp_status_t status = mp_agreement_exchange(&agreement, "x", 1, &bytes, &sizes);
  if (status == NULL) {
    mp_free(bytes);
    status = self->own;
  }
  if (status != NULL && self->is_mute) {
    while (atomic_load(self->num_waiting) < 2) sched_yield();
    mp_alloc_fail_at(1, 1);
  }
  atomic_fetch_add(self->num_waiting, 1);
  self->status = mp_agreement_end(&agreement, status);
  if (self->is_mute) mp_alloc_fail_at(0, 0);
  return NULL;
}

enum { PARTNERS = 3 };

// Rank 1 says `own`.
static void agree(mp_world_t *const *worlds, mp_status_t own, bool is_mute, partner_t *partners) {
  pthread_t threads[PARTNERS];
  atomic_int num_waiting = 0;
  for (int i = 0; i < PARTNERS; ++i) {
    partners[i] =
        (partner_t){worlds[i], i == 1 ? own : NULL, NULL, i == 1 && is_mute, &num_waiting};
    assert_int_equal(pthread_create(&threads[i], NULL, agree_main, &partners[i]), 0);
  }
  for (int i = 0; i < PARTNERS; ++i) pthread_join(threads[i], NULL);
}

// All succeed or all fail, with the error of the one that failed and without waiting for anything.
static void all_agree_or_none(void **state) {
  (void)state;
  mp_world_t *worlds[PARTNERS];
  partner_t partners[PARTNERS];
  assert_ok(mp_worlds_create_local(PARTNERS, 2, worlds));  // rank 2 is on a host of its own
  for (int round = 0; round < 20; ++round) {
    agree(worlds, NULL, false, partners);
    for (int i = 0; i < PARTNERS; ++i) assert_ok(partners[i].status);
    agree(worlds, mp_status_make(MP_NOT_FOUND, "no cheese"), false, partners);
    for (int i = 0; i < PARTNERS; ++i) {
      assert_int_equal(mp_status_code(partners[i].status), MP_NOT_FOUND);
      const char *message = mp_status_message(partners[i].status);
      assert_non_null(strstr(message, "no cheese"));
      assert_true((strstr(message, "process 1 (pid ") != NULL) == (i != 1));
      mp_status_release(partners[i].status);
    }
  }
  for (int i = 0; i < PARTNERS; ++i) mp_world_close(worlds[i]);
}

// If a process has no memory at all, the others get its error without a message, as soon as they
// have memory themselves.
static void a_process_without_memory_is_heard(void **state) {
  (void)state;
  mp_world_t *worlds[PARTNERS];
  partner_t partners[PARTNERS];
  assert_ok(mp_worlds_create_local(PARTNERS, 2, worlds));
  agree(worlds, mp_status_out_of_memory(), true, partners);
  for (int i = 0; i < PARTNERS; ++i) {
    assert_int_equal(mp_status_code(partners[i].status), MP_RESOURCE_EXHAUSTED);
    const char *message = mp_status_message(partners[i].status);
    assert_non_null(strstr(message, i == 1 ? "out of host memory" : "process 1 (pid "));
    assert_non_null(strstr(message, i == 1 ? "" : "it had no memory for the reason"));
    mp_status_release(partners[i].status);
  }
  agree(worlds, NULL, false, partners);  // and the next agreement is the same for all
  for (int i = 0; i < PARTNERS; ++i) assert_ok(partners[i].status);
  for (int i = 0; i < PARTNERS; ++i) mp_world_close(worlds[i]);
}

// An error that comes before the others have begun waits for them.
static void the_first_failure_may_arrive_later(void **state) {
  (void)state;
  mp_world_t *worlds[2];
  assert_ok(mp_worlds_create_local(2, 2, worlds));
  mp_agreement_t agreements[2];
  void **bytes = NULL;
  size_t *sizes = NULL;
  mp_agreement_begin(worlds[0], 100, &agreements[0]);
  mp_status_t own = mp_status_make(MP_NOT_FOUND, "no cheese");
  assert_status(mp_agreement_end(&agreements[0], own), MP_NOT_FOUND, "no cheese");
  mp_agreement_begin(worlds[1], 100, &agreements[1]);
  mp_status_t heard = mp_agreement_exchange(&agreements[1], "x", 1, &bytes, &sizes);
  heard = mp_agreement_end(&agreements[1], heard);
  assert_status(heard, MP_NOT_FOUND, "on host local) has failed: no cheese");
  for (int i = 0; i < 2; ++i) mp_world_close(worlds[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_agree_or_none),
      cmocka_unit_test(a_process_without_memory_is_heard),
      cmocka_unit_test(the_first_failure_may_arrive_later),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
