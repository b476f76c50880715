// Networks of ASTRA-sim as descriptions of pods: the analytical network's files, which have a list
// for each of four keys, with a value for each dimension.
//
//   topology: [ Ring, FullyConnected, Switch ]
//   npus_count: [ 2, 8, 4 ]           # the first dimension is the fastest in the order of ids
//   bandwidth: [ 200.0, 100.0, 50.0 ] # of a link and direction; its GB/s are 2^30 bytes/s
//   latency: [ 50.0, 500.0, 2000.0 ]  # of a link, ns; an NPU is two links from another at a switch
//
// They become a chip for each NPU with the wirings, shape and links of these dimensions.
#ifndef MINIPOD_TOPOLOGY_SPEC_ASTRA_H_
#define MINIPOD_TOPOLOGY_SPEC_ASTRA_H_

#include "topology/spec.h"

enum { MP_ASTRA_KEY_COUNT = 4 };

// The state of reading a file; begins zeroed.
typedef struct {
  struct {
    int line;       // 0: not given yet
    int32_t count;  // of values
  } given[MP_ASTRA_KEY_COUNT];
} mp_astra_t;

// True if YAML text has the key that only such files have.
bool mp_astra_is_network(mp_str_t text);

// Sets one key, whose values are separated by commas. INVALID_ARGUMENT names place, key and the
// expected values.
MP_NODISCARD mp_status_t mp_astra_set(mp_astra_t *astra, mp_pod_spec_t *spec, mp_spec_place_t place,
                                      mp_str_t key, mp_str_t values);

// Checks at the end that all keys were given, with equal numbers of values.
MP_NODISCARD mp_status_t mp_astra_finish(const mp_astra_t *astra, mp_spec_place_t place);

#endif  // MINIPOD_TOPOLOGY_SPEC_ASTRA_H_
