// CompileOptionsProto, which a client sends with each program to compile (XLA's
// pjrt/proto/compile_options.proto).
#ifndef MINIPOD_SIM_READERS_OPTIONS_COMPILE_OPTIONS_H_
#define MINIPOD_SIM_READERS_OPTIONS_COMPILE_OPTIONS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/containers/array.h"
#include "sim/base/status.h"
#include "sim/base/str.h"

typedef MP_ARRAY(mp_str_t) mp_text_list_t;
// One flag for all values, or one per value.
typedef MP_ARRAY(bool) mp_flag_list_t;

typedef struct {
  uint32_t num_replicas, num_partitions;  // 0: not given
  // assignment[replica * assigned_partitions + partition] is a global device id. NULL: not given;
  // then `device_ordinal` is the device of a program for one device, -1 if it is not given either.
  const uint32_t *assignment;
  uint32_t assigned_replicas, assigned_partitions;
  int64_t device_ordinal;
  bool is_tupled;         // all arguments are the elements of one parameter, a tuple
  bool compile_portable;  // each execution names the device on which the program runs
  bool is_tpu;            // for TPUs: libtpu's options are known
  bool as_written;        // XLA's algebraic simplifier is turned off
  bool use_spmd_partitioning;
  bool use_shardy_partitioner;
  // Where the partitioner may choose the sharding of a parameter or result that has none; empty
  // means nowhere.
  mp_flag_list_t propagate_to_parameters, propagate_to_output;
  int64_t profile_version;
  mp_text_list_t libtpu_flags;  // "name=value"
} mp_compile_options_t;

// Reads the message; an empty one is all defaults. Arrays go into `arena`. Malformed bytes:
// INVALID_ARGUMENT with the offset. Unknown options are refused by name, known ones that minipod
// cannot honour (layouts other than row-major) with UNIMPLEMENTED. With `is_tpu` libtpu's options
// are known, too.
MP_NODISCARD mp_status_t mp_compile_options_read(const void *data, size_t size, bool is_tpu,
                                                 mp_arena_t *arena,
                                                 mp_compile_options_t *out_options);

// The flag of value `index`. A list of one flag holds for all values; a value for which a longer
// list has no flag has false.
static inline bool mp_flag_list_at(mp_flag_list_t list, uint32_t index) {
  if (list.count == 1) return list.items[0];
  return index < list.count && list.items[index];
}

#endif  // MINIPOD_SIM_READERS_OPTIONS_COMPILE_OPTIONS_H_
