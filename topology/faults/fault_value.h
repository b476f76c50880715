// The keys of one fault: the types of their values, and which belong together.
#ifndef MINIPOD_TOPOLOGY_FAULTS_FAULT_VALUE_H_
#define MINIPOD_TOPOLOGY_FAULTS_FAULT_VALUE_H_

#include "topology/faults/fault_list.h"

// Member of mp_pod_fault_t, key, type of its value, kinds of faults.
#define MP_POD_FAULT_KEYS(X)                                            \
  X(device, "device", NUMBER, MP_POD_FAULT_OF(DEVICE))                  \
  X(slow, "slow", FACTOR, MP_POD_FAULT_OF(DEVICE))                      \
  X(link, "link", TEXT, MP_POD_FAULT_OF(LINK))                          \
  X(bandwidth, "bandwidth", PART, MP_POD_FAULT_OF(LINK))                \
  X(latency, "latency", TIME, MP_POD_FAULT_OF(LINK))                    \
  X(loss, "loss", LOSS, MP_POD_FAULT_OF(LINK))                          \
  X(host, "host", NUMBER, MP_POD_FAULT_OF(HOST))                        \
  X(slice, "slice", NUMBER, MP_POD_FAULT_OF(SLICE))                     \
  X(is_dead, "dead", FLAG, MP_POD_FAULT_OF_DEAD)                        \
  X(outage_of, "outages.of", TEXT, MP_POD_FAULT_OF(OUTAGES))            \
  X(outage_seed, "outages.seed", NUMBER, MP_POD_FAULT_OF(OUTAGES))      \
  X(outage_every, "outages.every", STEP, MP_POD_FAULT_OF(OUTAGES))      \
  X(outage_length, "outages.length", STEP, MP_POD_FAULT_OF(OUTAGES))    \
  X(seed, "stragglers.seed", NUMBER, MP_POD_FAULT_OF(STRAGGLERS))       \
  X(spread, "stragglers.spread", POSITIVE, MP_POD_FAULT_OF(STRAGGLERS)) \
  X(share, "stragglers.share", PART, MP_POD_FAULT_OF(STRAGGLERS))       \
  X(flip_argument, "flip.argument", NUMBER, MP_POD_FAULT_OF(FLIP))      \
  X(flip_result, "flip.result", TEXT, MP_POD_FAULT_OF(FLIP))            \
  X(flip_device, "flip.device", NUMBER, MP_POD_FAULT_OF(FLIP))          \
  X(flip_element, "flip.element", NUMBER, MP_POD_FAULT_OF(FLIP))        \
  X(flip_bit, "flip.bit", NUMBER, MP_POD_FAULT_OF(FLIP))                \
  X(program, "program", TEXT, MP_POD_FAULT_OF_ALL)                      \
  X(step, "step", STEP, MP_POD_FAULT_OF_ALL)                            \
  X(until, "until", STEP, MP_POD_FAULT_OF_ALL)

#define MP_POD_FAULT_OF(kind) (1u << MP_POD_FAULT_##kind)
#define MP_POD_FAULT_OF_DEAD \
  (MP_POD_FAULT_OF(DEVICE) | MP_POD_FAULT_OF(HOST) | MP_POD_FAULT_OF(SLICE) | MP_POD_FAULT_OF(LINK))
#define MP_POD_FAULT_OF_ALL ((1u << MP_POD_FAULT_KIND_COUNT) - 1)

enum {
#define MP_POD_FAULT_COUNT_ONE(...) +1
  MP_POD_FAULT_KEY_COUNT = 0 MP_POD_FAULT_KEYS(MP_POD_FAULT_COUNT_ONE)
#undef MP_POD_FAULT_COUNT_ONE
};

// A fault while it is read.
typedef struct {
  mp_arena_t *arena;  // of texts
  const char *origin;
  int line;  // of the current key, for messages
  mp_pod_fault_t *fault;
  int given[MP_POD_FAULT_KEY_COUNT];  // the line of each key; 0: not given
} mp_pod_fault_reading_t;

// Begins to read a fault in a line.
void mp_pod_fault_begin(mp_pod_fault_reading_t *reading, mp_arena_t *arena, const char *origin,
                        int line, mp_pod_fault_t *fault);
// Sets a key ("device", "flip.bit").
MP_NODISCARD mp_status_t mp_pod_fault_set(mp_pod_fault_reading_t *reading, mp_str_t key,
                                          mp_str_t value);
// Called when the value of a key is a mapping: an error unless other keys begin with this key.
MP_NODISCARD mp_status_t mp_pod_fault_open(const mp_pod_fault_reading_t *reading, mp_str_t key);
// The error for a key whose value is `got`: "a list".
MP_NODISCARD mp_status_t mp_pod_fault_refuse(const mp_pod_fault_reading_t *reading, mp_str_t key,
                                             const char *got);
// Checks the fault as a whole, and fills in missing keys.
MP_NODISCARD mp_status_t mp_pod_fault_finish(mp_pod_fault_reading_t *reading);

#endif  // MINIPOD_TOPOLOGY_FAULTS_FAULT_VALUE_H_
