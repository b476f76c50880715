// Worlds that UCX connects, over 127.0.0.1.
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_PROCESSES_UCX_WORLDS_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_PROCESSES_UCX_WORLDS_H_

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectives/transport/hosts/ucx.h"
#include "collectives/transport/world_impl.h"
#include "sim/base/os/clock.h"
#include "tests/unit/support/processes/ucx_sanitized.h"
#include "tests/unit/support/unit.h"

enum { RANKS = 3, CHANNEL = 0 };

static const mp_seal_key_t k_key = {{1, 2}};

// The library; NULL, said once, where there is none.
static inline const mp_ucx_library_t *ucx_or_skip(void) {
  setenv("UCX_NET_DEVICES", "lo", 1);
  const mp_ucx_library_t *library = NULL;
  mp_status_t status = mp_ucx_library_open(&library);
  if (status == NULL) return library;
  print_message("skipped: %s\n", mp_status_message(status));
  mp_status_release(status);
  return NULL;
}

static inline mp_transport_t *make_world(const mp_ucx_library_t *library, uint32_t rank,
                                         uint32_t size, const mp_handler_t *handler,
                                         mp_world_t **out_world) {
  mp_world_t *world = NULL;
  mp_transport_t *ucx = NULL;
  assert_ok(mp_world_create(rank, size, &world));
  assert_ok(mp_ucx_create(world, library, &ucx));
  mp_ucx_set_key(ucx, &k_key);
  mp_world_add_transport(world, ucx);
  for (uint32_t i = 0; i < size; ++i) world->peers[i].transport = i == rank ? NULL : ucx;
  mp_world_attach(world, CHANNEL, handler);
  *out_world = world;
  return ucx;
}

static inline unsigned char byte_at(uint32_t from, uint64_t number, size_t i) {
  return (unsigned char)(from * 31 + number * 7 + i * 3 + (i >> 12));
}

static inline mp_status_t send_number(mp_world_t *world, uint32_t to, uint64_t number,
                                      size_t bytes) {
  const mp_envelope_t envelope = {.channel = CHANNEL, .key = {number, bytes}};
  mp_payload_t *payload = NULL;
  MP_RETURN_IF_ERROR(mp_payload_create(world, bytes, &payload));
  unsigned char *data = payload->data;
  for (size_t i = 0; i < bytes; ++i) data[i] = byte_at(mp_world_rank(world), number, i);
  mp_status_t status = mp_world_send(world, to, &envelope, payload);
  mp_payload_release(payload);
  return status;
}

// What has come to a world: numbered packets of send_number, and losses.
typedef struct {
  uint64_t next[RANKS];
  atomic_uint num_packets, num_wrong, num_lost;
  char why[256];  // the last loss
} inbox_t;

static inline void inbox_deliver(void *context, mp_packet_t *packet) {
  inbox_t *inbox = context;
  const unsigned char *data = packet->data;
  const uint64_t number = inbox->next[packet->from]++;
  bool right = packet->envelope.key[0] == number && packet->envelope.key[1] == packet->bytes;
  for (size_t i = 0; right && i < packet->bytes; ++i) {
    right = data[i] == byte_at(packet->from, number, i);
  }
  if (!right) atomic_fetch_add(&inbox->num_wrong, 1);
  mp_packet_release(packet);
  atomic_fetch_add(&inbox->num_packets, 1);
}

static inline void inbox_lost(void *context, uint32_t rank, mp_status_t why) {
  inbox_t *inbox = context;
  (void)rank;
  snprintf(inbox->why, sizeof(inbox->why), "%s", mp_status_message(why));
  atomic_fetch_add(&inbox->num_lost, 1);
}

static inline bool await_count(atomic_uint *count, unsigned wanted, double seconds) {
  const double deadline = mp_clock_seconds() + seconds;
  while (atomic_load(count) < wanted && mp_clock_seconds() < deadline) usleep(200);
  return atomic_load(count) == wanted;
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_PROCESSES_UCX_WORLDS_H_
