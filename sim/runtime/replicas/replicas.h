// Which arrays of a program should be equal on several devices (option `check`): the parameters and
// results that have the same part on several partitions, by the program's shardings.
//
// Whether the bytes are really equal depends on the program: in a manual region without checks
// (shard_map with check_vma=False) a missing psum leaves different values on devices that should
// hold copies. The next launch uses them, and no other device notices.
//
// Immutable and reference-counted: a check (replica_check.h) may outlive its executable.
#ifndef MINIPOD_SIM_RUNTIME_REPLICAS_REPLICAS_H_
#define MINIPOD_SIM_RUNTIME_REPLICAS_REPLICAS_H_

#include <stdatomic.h>

#include "sim/base/arena.h"
#include "sim/plan/program.h"

// One parameter or result. `first[d]` is the first device (by the program's numbers) that holds the
// same part as device d; d itself if it is the first.
typedef struct {
  bool is_result;
  uint32_t index;
  const char *name;   // "result[0]['w']", "argument 3"
  const char *maker;  // "add at a.py:9", of results; "": not known
  mp_dtype_t dtype;
  uint32_t rank;
  const int64_t *dims;  // [rank] of the array on a device, in the order of memory
  // [rank] the program's dimension for each of these; NULL: the same order.
  const uint32_t *order;
  // [num_partitions * rank] the part of the whole array that a partition holds; the array on a
  // device may be larger than its part, and the rest is undefined. NULL: each holds the whole
  // array.
  const int64_t *starts, *sizes;
  const uint32_t *first;  // [num_devices]
} mp_replicated_t;

typedef struct {
  atomic_int references;
  mp_arena_t *arena;  // owned: has everything below
  const char *program;
  uint32_t num_devices, num_partitions;
  const uint32_t *ids;  // [num_devices] global, for messages
  uint32_t num_arrays, num_params;
  const mp_replicated_t *arrays;  // [num_arrays], the `num_params` parameters first
} mp_replicas_t;

// Finds these arrays; `ids` are those of the program's devices (copied). NULL: no array should be
// equal on several devices. RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_replicas_create(const mp_program_t *program, const uint32_t *ids,
                                            mp_replicas_t **out_replicas);
// mp_replicas_retain adds a reference and returns the same; the last mp_replicas_release frees it.
// NULL has no effect in either.
mp_replicas_t *mp_replicas_retain(mp_replicas_t *replicas);
void mp_replicas_release(mp_replicas_t *replicas);

// ---- replicas_compare.c ----

// The difference between the arrays of two devices that should hold the same part.
typedef struct {
  uint64_t num_elements;   // of the part
  uint64_t num_different;  // elements whose bits differ
  uint64_t first;          // number of the first of these, row-major in the part
} mp_replicas_difference_t;

// Compares the part of device `d` (of the program) with that of the first device with the same
// part.
mp_replicas_difference_t mp_replicas_compare(const mp_replicas_t *replicas,
                                             const mp_replicated_t *array, uint32_t d,
                                             const void *data, const void *data_of_first);
// A fingerprint of the part of device `d`: equal in all processes for equal bits.
uint64_t mp_replicas_digest(const mp_replicas_t *replicas, const mp_replicated_t *array, uint32_t d,
                            const void *data);
// Appends "8 of 8 elements (first at [0]: 1.5 instead of 2.5)", with the place in the whole array.
void mp_replicas_print(const mp_replicas_t *replicas, const mp_replicated_t *array, uint32_t d,
                       const mp_replicas_difference_t *difference, const void *data,
                       const void *data_of_first, mp_strbuf_t *out);

#endif  // MINIPOD_SIM_RUNTIME_REPLICAS_REPLICAS_H_
