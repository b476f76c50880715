// Networks of described pods, and collectives over lists of devices, for tests.
//
//   mp_network_t *network = network_of("ring:8");
//   sample_collective_t sample = {0};
//   sample_collective(&sample, MP_COLLECTIVE_ALL_REDUCE, 8, 8, 1024);   // devices 0 .. 7
//   ... &sample.collective, sample.ids ...
//   sample_collective_end(&sample);
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_NETWORK_TEST_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_NETWORK_TEST_H_

#include <string.h>

#include "sim/model/network/algorithms/network_options.h"
#include "sim/model/network/network.h"
#include "sim/model/network/traffic/flows.h"
#include "sim/model/network/traffic/traffic.h"
#include "tests/unit/support/unit.h"

static inline mp_network_t *network_with(const char *pod_text, const char *algorithms) {
  mp_pod_t *pod = NULL;
  mp_network_t *network = NULL;
  mp_network_options_t options = {0};
  assert_ok(mp_pod_create_from_name(mp_str(pod_text), "test", &pod));
  assert_ok(mp_network_options_read(mp_str(algorithms), &options));
  assert_ok(mp_network_create(pod, &options, &network));
  mp_pod_release(pod);
  return network;
}

static inline mp_network_t *network_of(const char *pod_text) {
  return network_with(pod_text, "");
}

// The link of this name; fails when there is none.
static inline uint32_t link_named(const mp_network_t *network, const char *name) {
  uint32_t link = 0;
  if (!mp_network_find_link(network, name, &link)) fail_msg("there is no link '%s'", name);
  return link;
}

typedef struct {
  mp_arena_t *arena;
  mp_collective_t collective;
  mp_collective_operand_t operand;
  int64_t dims[1], result_dims[1];
  int32_t *ids;  // [num_devices]: the logical numbers themselves
} sample_collective_t;

// A collective of one group, of the given devices (the first `size` ones for NULL); `bytes` is what
// algorithms.h says: of the longest array that a device has of it.
static inline void sample_collective_of(sample_collective_t *sample, mp_collective_kind_t kind,
                                        uint32_t num_devices, const int64_t *devices, uint32_t size,
                                        int64_t bytes) {
  assert_ok(mp_arena_create(&sample->arena));
  int64_t *table = MP_ARENA_ARRAY(sample->arena, int64_t, size);
  for (uint32_t i = 0; i < size; ++i) table[i] = devices == NULL ? i : devices[i];
  sample->ids = MP_ARENA_ARRAY(sample->arena, int32_t, num_devices);
  for (uint32_t i = 0; i < num_devices; ++i) sample->ids[i] = (int32_t)i;
  sample->dims[0] = sample->result_dims[0] = bytes;
  if (kind == MP_COLLECTIVE_ALL_GATHER) sample->dims[0] /= size;
  if (kind == MP_COLLECTIVE_REDUCE_SCATTER) sample->result_dims[0] /= size;
  sample->operand = (mp_collective_operand_t){
      .dtype = MP_DTYPE_S8,
      .accumulation = MP_DTYPE_S8,
      .rank = 1,
      .dims = sample->dims,
      .result_dims = sample->result_dims,
  };
  sample->collective = (mp_collective_t){
      .kind = kind,
      .name = "stablehlo.test",
      .location = "here",
      .num_operands = 1,
      .operands = &sample->operand,
  };
  assert_ok(mp_groups_create(sample->arena, MP_GROUPS_FLATTENED_IDS, 1, num_devices, table, 1, size,
                             &sample->collective.groups));
}

static inline void sample_collective(sample_collective_t *sample, mp_collective_kind_t kind,
                                     uint32_t num_devices, uint32_t size, int64_t bytes) {
  sample_collective_of(sample, kind, num_devices, NULL, size, bytes);
}

static inline void sample_collective_end(sample_collective_t *sample) {
  mp_arena_release(sample->arena);
}

// The traffic of the sample's only group.
static inline const mp_traffic_t *traffic_of_sample(mp_network_t *network,
                                                    const sample_collective_t *sample) {
  const mp_traffic_t *traffic = NULL;
  assert_ok(mp_network_traffic(network, &sample->collective, 0, sample->ids, &traffic));
  return traffic;
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_NETWORK_TEST_H_
