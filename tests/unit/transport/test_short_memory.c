// Moments without memory: no packet is lost in them, neither one that has come nor an envelope that
// is to be sent.
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "collectives/transport/transport.h"
#include "collectives/transport/world_impl.h"
#include "sim/base/alloc.h"
#include "sim/base/os/clock.h"
#include "sim/runtime/remote/router_impl.h"
#include "sim/runtime/sessions/session_impl.h"
#include "tests/unit/support/processes/worlds.h"

// ---- Packets that are early ----

enum { DEVICES = 4711 };  // the hash of a list of devices that nothing is launched on yet

static const pod_option_t k_one_device[] = {{"num_devices", "1"}, {"workers", "1"}, {NULL, NULL}};
static const uint32_t k_ids[] = {0, 1}, k_ranks_of[] = {0, 1}, k_others[] = {1};

// One that rank 1 sends to the launch of rank 0.
static mp_packet_t *make_packet(const pods_t *pods, mp_packet_kind_t kind, const char *text) {
  const mp_envelope_t envelope = {
      .channel = MP_CHANNEL_SESSIONS,
      .words = {(uint32_t)kind, kind == MP_PACKET_POISON ? MP_DATA_LOSS : 1, 0},
      .key = {DEVICES, mp_endpoint_launch_key(pods->clients[0]->endpoint, 0), 7, 1}};
  mp_packet_t *packet = mp_packet_create_inline(pods->worlds[0], 1, &envelope, text, strlen(text));
  assert_non_null(packet);
  return packet;
}

// Rank 0's session of a launch on both devices.
static mp_session_t *make_session(const pods_t *pods) {
  mp_session_t *session = NULL;
  assert_ok(mp_session_create(2, k_ids, &session));
  assert_ok(mp_session_connect(session, &(mp_session_link_t){.endpoint = pods->clients[0]->endpoint,
                                                             .devices = DEVICES,
                                                             .ranks_of = k_ranks_of,
                                                             .ranks = k_others,
                                                             .num_ranks = 1}));
  return session;
}

static void end_session(const pods_t *pods, mp_session_t *session) {
  mp_endpoint_leave(pods->clients[0]->endpoint, session->peers);
  mp_session_release(session);
}

static void packets_of_later_launches_wait(void **state) {
  (void)state;
  pods_t pods;
  start_pods(&pods, 2, 2, k_one_device);
  mp_endpoint_t *endpoint = pods.clients[0]->endpoint;
  mp_packet_t *packet = make_packet(&pods, MP_PACKET_POISON, "it broke there");
  mp_lock(&endpoint->router->lock);
  mp_alloc_fail_at(1, 1);
  mp_router_route(endpoint, packet);
  mp_alloc_fail_at(0, 0);
  mp_unlock(&endpoint->router->lock);
  mp_session_t *session = make_session(&pods);
  assert_status(mp_session_error(session), MP_DATA_LOSS, "it broke there (on process 1)");
  end_session(&pods, session);
  stop_pods(&pods);
}

static void packets_of_later_clients_wait(void **state) {
  (void)state;
  pods_t pods;
  start_pods(&pods, 2, 2, k_one_device);
  mp_packet_t *packet = make_packet(&pods, MP_PACKET_POISON, "it broke there");
  packet->envelope.key[1] += UINT64_C(1) << MP_EPOCH_SHIFT;  // the next clients
  mp_alloc_fail_at(1, 1);
  mp_world_arrive(pods.worlds[0], packet);
  mp_alloc_fail_at(0, 0);
  pthread_t threads[2];
  pod_start_t starts[2];
  for (uint32_t rank = 0; rank < 2; ++rank) {
    mp_client_release(pods.clients[rank]);
    starts[rank] = (pod_start_t){&pods, rank, k_one_device};
    assert_int_equal(pthread_create(&threads[rank], NULL, start_pod_client, &starts[rank]), 0);
  }
  for (uint32_t rank = 0; rank < 2; ++rank) pthread_join(threads[rank], NULL);
  mp_session_t *session = make_session(&pods);
  assert_status(mp_session_error(session), MP_DATA_LOSS, "it broke there (on process 1)");
  end_session(&pods, session);
  stop_pods(&pods);
}

static void deliver_without_memory(mp_session_t *session, mp_packet_t *packet) {
  mp_alloc_fail_at(1, 1);
  assert_false(mp_session_deliver(session, packet));
  mp_alloc_fail_at(0, 0);
}

static void packets_of_a_launch_are_kept(void **state) {
  (void)state;
  pods_t pods;
  start_pods(&pods, 2, 2, k_one_device);
  mp_session_t *session = make_session(&pods);
  // A payload of a group that none of ours has come to, a message for device 0, an answer.
  deliver_without_memory(session, make_packet(&pods, MP_PACKET_PAYLOAD, "payload"));
  mp_packet_t *message = make_packet(&pods, MP_PACKET_MESSAGE, "0123456789abcdef");
  deliver_without_memory(session, message);
  deliver_without_memory(session, make_packet(&pods, MP_PACKET_ANSWER, "here I am"));
  assert_ok(mp_session_error(session));
  assert_non_null(session->peers->answers[0]);
  assert_non_null(session->mailbox.messages.first);
  end_session(&pods, session);
  stop_pods(&pods);
}

// ---- Envelopes to be sent ----

typedef struct {
  uint64_t next;
  atomic_uint num_packets, num_wrong, num_lost;
  atomic_bool is_closed, is_in;  // the gate that its handler waits at
} inbox_t;

static void take(void *context, mp_packet_t *packet) {
  inbox_t *inbox = context;
  atomic_store(&inbox->is_in, true);
  while (atomic_load(&inbox->is_closed)) usleep(200);
  if (packet->envelope.key[0] != inbox->next++) atomic_fetch_add(&inbox->num_wrong, 1);
  mp_packet_release(packet);
  atomic_fetch_add(&inbox->num_packets, 1);
}

static void lose(void *context, uint32_t rank, mp_status_t why) {
  (void)rank, (void)why;
  atomic_fetch_add(&((inbox_t *)context)->num_lost, 1);
}

static void await_count(atomic_uint *count, unsigned wanted) {
  const double deadline = mp_clock_seconds() + 100;
  while (atomic_load(count) < wanted && mp_clock_seconds() < deadline) usleep(200);
  assert_int_equal(atomic_load(count), wanted);
}

static void send_all(mp_world_t *world, uint64_t begin, uint64_t end) {
  for (uint64_t i = begin; i < end; ++i) {
    assert_ok(mp_world_send(world, 1, &(mp_envelope_t){.key = {i}}, NULL));
  }
}

// Rank 0 sends to rank 1, which takes nothing at first.
static void send_without_memory(uint32_t per_host, uint64_t num_before) {
  enum { NUM_SHORT = 10 };
  static inbox_t inbox;
  memset(&inbox, 0, sizeof(inbox));
  atomic_store(&inbox.is_closed, true);
  mp_world_t *worlds[2];
  assert_ok(mp_worlds_create_local(2, per_host, worlds));
  mp_world_attach(worlds[1], 0, &(mp_handler_t){.deliver = take, .lost = lose, .context = &inbox});
  send_all(worlds[0], 0, 1);
  while (!atomic_load(&inbox.is_in)) usleep(200);
  send_all(worlds[0], 1, num_before);
  mp_alloc_fail_at(1, 1);
  send_all(worlds[0], num_before, num_before + NUM_SHORT);
  mp_world_say_goodbye(worlds[0], 0);
  mp_alloc_fail_at(0, 0);
  atomic_store(&inbox.is_closed, false);
  await_count(&inbox.num_packets, (unsigned)num_before + NUM_SHORT);
  await_count(&inbox.num_lost, 1);
  assert_int_equal(inbox.num_wrong, 0);
  assert_true(mp_world_drain(worlds[0], 60));
  for (int i = 0; i < 2; ++i) mp_world_close(worlds[i]);
}

static void envelopes_to_other_hosts_go_later(void **state) {
  (void)state;
  send_without_memory(1, 3);
}

static void envelopes_to_a_full_ring_go_later(void **state) {
  (void)state;
  send_without_memory(2, MP_RING_SLOTS);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(packets_of_later_launches_wait),
      cmocka_unit_test(packets_of_later_clients_wait),
      cmocka_unit_test(packets_of_a_launch_are_kept),
      cmocka_unit_test(envelopes_to_other_hosts_go_later),
      cmocka_unit_test(envelopes_to_a_full_ring_go_later),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
