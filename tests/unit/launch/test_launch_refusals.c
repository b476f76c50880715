// Launches on single devices, one of which finds no memory (each device, at each allocation): all
// others of the launch fail with that error, in its process and in others, whether they came before
// it or come after it. No device waits for ever, and the next launch has all devices again.
#include "sim/base/alloc.h"
#include "tests/unit/support/launches.h"
#include "tests/unit/support/processes/worlds.h"
#include "tests/unit/support/programs.h"

// How long a test waits for what must come. Only a failing test waits for so long.
static const double k_long_seconds = 60;

enum { MAX_DEVICES = 4, ENOUGH = 5 };

typedef struct {
  uint32_t num_devices;
  mp_executable_t *executables[MAX_DEVICES];  // each device's
  test_launch_t launches[MAX_DEVICES];
  bool is_refused[MAX_DEVICES];
} scene_t;

static void begin(scene_t *s) {
  for (uint32_t d = 0; d < s->num_devices; ++d) {
    test_launch_t *l = &s->launches[d];
    launch_begin(l, s->executables[d], 1);
    l->num_devices = 1;
    l->logical[0] = d;
    l->arguments[0][0] = make_f32(mp_executable_device(s->executables[d], d), 4, 1);
  }
}

static void go(scene_t *s, uint32_t device) {
  test_launch_t *l = &s->launches[device];
  mp_status_t status = launch_to(l, l->results, l->done);
  s->is_refused[device] = status != NULL;
  if (status != NULL) assert_int_equal(mp_status_code(status), MP_RESOURCE_EXHAUSTED);
  mp_status_release(status);
}

static void end(scene_t *s, bool is_any_refused) {
  for (uint32_t d = 0; d < s->num_devices; ++d) {
    test_launch_t *l = &s->launches[d];
    if (!s->is_refused[d]) {
      assert_true(mp_event_wait_for(l->done[0], k_long_seconds));
      if (is_any_refused) {
        launch_expect_error(l, 0, MP_RESOURCE_EXHAUSTED, "memory");
      } else {
        launch_expect(l, (float)s->num_devices);
      }
    }
    launch_end(l);
  }
}

// `first` finds no memory from its n-th request on; with `second`, neither does that one.
static bool refuse(scene_t *s, int n, uint32_t first, uint32_t second) {
  begin(s);
  bool is_any_refused = false;
  for (uint32_t d = 0; d < s->num_devices; ++d) {
    if (d == first || d == second) mp_alloc_fail_at(n, 1);
    go(s, d);
    mp_alloc_fail_at(0, 0);
    is_any_refused = is_any_refused || s->is_refused[d];
  }
  // A launch that came about may have had no memory for its run, which says so by itself.
  bool is_any_failed = is_any_refused;
  for (uint32_t d = 0; d < s->num_devices && !is_any_failed; ++d) {
    assert_true(mp_event_wait_for(s->launches[d].done[0], k_long_seconds));
    mp_status_t status = mp_event_status(s->launches[d].done[0]);
    is_any_failed = status != NULL;
    mp_status_release(status);
  }
  end(s, is_any_failed);
  return is_any_refused;
}

static void refuse_each(scene_t *s) {
  int refusals = 0;
  for (uint32_t first = 0; first < s->num_devices; ++first) {
    for (uint32_t second = first; second < s->num_devices; ++second) {
      for (int n = 1, in_a_row = 0; in_a_row < ENOUGH; ++n) {
        const bool is_refused = refuse(s, n, first, second);
        refusals += is_refused;
        in_a_row = is_refused ? 0 : in_a_row + 1;
        begin(s);
        for (uint32_t d = 0; d < s->num_devices; ++d) {
          go(s, d);
          assert_false(s->is_refused[d]);
        }
        end(s, false);
      }
    }
  }
  assert_true(refusals > 5 * (int)(s->num_devices * s->num_devices) / 2);
}

static void in_one_process(void **state) {
  (void)state;
  mp_client_t *client = make_client(3);
  scene_t s = {.num_devices = 3};
  mp_executable_t *executable = make_executable(client, psum_program(3, 4));
  for (uint32_t d = 0; d < s.num_devices; ++d) s.executables[d] = executable;
  refuse_each(&s);
  mp_executable_release(executable);
  mp_client_release(client);
}

static void in_processes(uint32_t num_ranks, uint32_t per_host, const char *devices_each) {
  const pod_option_t options[] = {{"num_devices", devices_each}, {"workers", "2"}, {NULL, NULL}};
  pods_t pods;
  start_pods(&pods, num_ranks, per_host, options);
  scene_t s = {.num_devices = MAX_DEVICES};
  mp_executable_t *executables[MAX_WORLDS];
  for (uint32_t rank = 0; rank < num_ranks; ++rank) {
    executables[rank] = make_executable(pods.clients[rank], psum_program(MAX_DEVICES, 4));
  }
  for (uint32_t d = 0; d < MAX_DEVICES; ++d) {
    s.executables[d] = executables[d / (MAX_DEVICES / num_ranks)];
  }
  refuse_each(&s);
  for (uint32_t rank = 0; rank < num_ranks; ++rank) mp_executable_release(executables[rank]);
  stop_pods(&pods);
}

static void in_two_processes_of_a_host(void **state) {
  (void)state;
  in_processes(2, 2, "2");
}

static void on_two_hosts(void **state) {
  (void)state;
  in_processes(2, 1, "2");
}

static void in_four_processes_of_two_hosts(void **state) {
  (void)state;
  in_processes(4, 2, "1");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(in_one_process),
      cmocka_unit_test(in_two_processes_of_a_host),
      cmocka_unit_test(on_two_hosts),
      cmocka_unit_test(in_four_processes_of_two_hosts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
