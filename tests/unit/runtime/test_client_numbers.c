// The numbers of clients in their world: packets between processes carry them, so a client whose
// creation fails in one process has to count there as it does in the others.
#include "collectives/transport/world_impl.h"
#include "sim/base/alloc.h"
#include "sim/runtime/devices/client_impl.h"
#include "sim/runtime/remote/router_impl.h"
#include "sim/runtime/sessions/session.h"
#include "tests/unit/support/processes/worlds.h"

static mp_status_t create(mp_world_t *world, mp_client_t **out_client) {
  mp_options_t *options = NULL;
  MP_RETURN_IF_ERROR(mp_options_create(NULL, 0, &options));
  mp_status_t status = mp_client_create_in(options, world, out_client);
  mp_options_release(options);
  return status;
}

// The number of a client that is made now.
static uint64_t next_number(mp_world_t *world) {
  mp_client_t *client = NULL;
  assert_ok(create(world, &client));
  const uint64_t number = client->endpoint->epoch;
  mp_client_release(client);
  return number;
}

// A process counts each client that it tries to make, as the others do, whatever fails.
static void a_client_that_could_not_be_made_counts(void **state) {
  (void)state;
  mp_world_t *world = NULL;
  assert_ok(mp_worlds_create_local(1, 1, &world));
  int failures = 0;
  uint64_t number = next_number(world);
  for (int n = 1, in_a_row = 0; in_a_row < 10; ++n) {
    mp_client_t *client = NULL;
    const uint64_t num_begun = world->num_agreements;
    mp_alloc_fail_at(n, 0);
    mp_status_t status = create(world, &client);
    mp_alloc_fail_at(0, 0);
    const bool has_begun = world->num_agreements != num_begun;  // else the options were refused
    failures += status != NULL && has_begun;
    in_a_row = status == NULL ? in_a_row + 1 : 0;
    mp_status_release(status);
    mp_client_release(client);
    const uint64_t next = next_number(world);
    assert_int_equal(next, number + (has_begun ? 2 : 1));
    number = next;
  }
  assert_true(failures > 10);
  (void)close_pod_world(world);
}

// Threads that make clients at the same time get their numbers in one order and may open their
// endpoints in another.
static void endpoints_may_open_in_any_order(void **state) {
  (void)state;
  mp_world_t *world = NULL;
  assert_ok(mp_worlds_create_local(1, 1, &world));
  mp_endpoint_t *later = NULL, *earlier = NULL;
  assert_ok(mp_endpoint_open(world, 1, NULL, &mp_session_calls, 0, &later));
  assert_ok(mp_endpoint_open(world, 0, NULL, &mp_session_calls, 0, &earlier));
  assert_int_equal(later->epoch, 1);
  assert_int_equal(earlier->epoch, 0);
  assert_int_equal(later->router->num_epochs, 2);
  mp_endpoint_release(earlier);
  mp_endpoint_release(later);
  (void)close_pod_world(world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_client_that_could_not_be_made_counts),
      cmocka_unit_test(endpoints_may_open_in_any_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
