// The pod that the environment describes, before a client exists: for frameworks that look for
// devices in other ways than through the PJRT C API.
#ifndef MINIPOD_PJRT_PACKAGE_PJRT_DESCRIBE_H_
#define MINIPOD_PJRT_PACKAGE_PJRT_DESCRIBE_H_

#include "pjrt/package/pjrt_foreign.h"
#include "topology/pod.h"

// Texts end in NUL; longer ones are cut.
typedef struct {
  size_t struct_size;      // size of the caller's struct
  char name[160];          // of the description: "v6e:2x2"
  char kind[160];          // device kind that clients see: "TPU v6 lite"
  int32_t is_tpu;          // whether the kind is a TPU's
  int32_t num_hosts;       // of the whole pod
  int32_t num_chips;       // of the whole pod
  int32_t cores_per_chip;  // devices of a chip
  int32_t is_timed;        // whether virtual times are kept
  uint64_t memory;         // bytes of a device's own memory; UINT64_MAX: no limit
  int32_t shape[3];        // grid of chips of one slice; 1 where it has fewer dimensions
} minipod_described_t;

// Describes the pod of MINIPOD_TOPOLOGY and the other variables. Returns NULL, or an error message,
// which the calling thread's next call overwrites: about the pod, or about options with which no
// client could be created. Warnings are left to the client that is created later.
MP_EXPORT const char *minipod_describe(minipod_described_t *out_described);

#endif  // MINIPOD_PJRT_PACKAGE_PJRT_DESCRIBE_H_
