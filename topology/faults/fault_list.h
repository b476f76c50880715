// Faults in the user's form: a list in YAML, in a pod's description, in a separate file or given at
// run time. configs/README.md has the keys for users.
//
// Here each fault is checked by itself. Whether its device and its link exist, and what the fault
// does, is for code that knows the pod (sim/model/faults).
#ifndef MINIPOD_TOPOLOGY_FAULTS_FAULT_LIST_H_
#define MINIPOD_TOPOLOGY_FAULTS_FAULT_LIST_H_

#include "sim/base/arena.h"
#include "sim/base/status.h"
#include "sim/base/str.h"

// The kinds of faults: enum name, the key that selects the kind.
#define MP_POD_FAULT_KINDS(X) \
  X(DEVICE, "device")         \
  X(HOST, "host")             \
  X(SLICE, "slice")           \
  X(OUTAGES, "outages")       \
  X(LINK, "link")             \
  X(STRAGGLERS, "stragglers") \
  X(FLIP, "flip")

typedef enum {
#define MP_POD_FAULT_KIND_ENUM(name, text) MP_POD_FAULT_##name,
  MP_POD_FAULT_KINDS(MP_POD_FAULT_KIND_ENUM)
#undef MP_POD_FAULT_KIND_ENUM
      MP_POD_FAULT_KIND_COUNT
} mp_pod_fault_kind_t;

// "device" for DEVICE: the key that makes a fault one of this kind.
const char *mp_pod_fault_kind_name(mp_pod_fault_kind_t kind);

// One fault. Fields that the list does not set are 0 (or false, or NULL) unless noted otherwise.
typedef struct {
  mp_pod_fault_kind_t kind;
  int line;
  uint64_t device;   // DEVICE: its global id
  uint64_t host;     // HOST: its index in the pod; affects all its devices
  uint64_t slice;    // SLICE: likewise
  const char *link;  // LINK: its name
  bool is_dead;      // DEVICE, HOST, SLICE, LINK; OUTAGES: always
  // OUTAGES: in each stretch of `outage_every` launches each of the pod's slices (or hosts or
  // devices, by `outage_of`) is down once, from a launch that the seed chooses, for `outage_length`
  // launches, at most the whole stretch.
  const char *outage_of;  // "slice", "host" or "device"; "slice"
  uint64_t outage_seed, outage_every, outage_length;
  double slow;       // DEVICE: the factor by which all its work takes longer; 1
  double bandwidth;  // LINK: the remaining share of the bandwidth; 1
  double latency;    // LINK: additional seconds
  double loss;       // LINK: the share of the bytes that are lost and sent again
  uint64_t seed;     // STRAGGLERS
  double spread;     // STRAGGLERS: mean increase of the slowness, which is 1 without
  double share;      // STRAGGLERS: the probability per device and launch; 1
  // FLIP: the argument or, if flip_result is not NULL, the result (its number, or JAX's name of it:
  // "result['w']", or "['w']"); the device, and the bit and the element of the device's part.
  uint64_t flip_argument;
  const char *flip_result;
  uint64_t flip_device, flip_element, flip_bit;
  const char *program;  // the program whose launches are counted; NULL: all
  uint64_t step;        // the first launch that has it; 1
  uint64_t until;       // the last one that has it; UINT64_MAX: it does not end. FLIP: `step`
} mp_pod_fault_t;

typedef struct {
  const char *origin;  // the name of the text in messages
  uint32_t count;
  const mp_pod_fault_t *items;
} mp_pod_fault_list_t;

// Reads a list into `arena`, with all its texts: `- device: 3` and so on, or the same as the value
// of a key `faults`, or one fault without a list. With `is_pod` the text is a pod's description,
// whose other keys are skipped and which may lack this key. INVALID_ARGUMENT "<origin>:<line>: key
// 'x': …".
MP_NODISCARD mp_status_t mp_pod_fault_list_read(mp_arena_t *arena, const char *origin,
                                                mp_str_t text, bool is_pod,
                                                mp_pod_fault_list_t *out_list);
// The same from a file. NOT_FOUND when there is none.
MP_NODISCARD mp_status_t mp_pod_fault_list_read_file(mp_arena_t *arena, const char *path,
                                                     bool is_pod, mp_pod_fault_list_t *out_list);

#endif  // MINIPOD_TOPOLOGY_FAULTS_FAULT_LIST_H_
