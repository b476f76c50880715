// Ops that the partitioner itself adds to the per-device program.
//
// Each function makes an op in the module's arena, appends it to the block, and returns its one
// result. The only error is RESOURCE_EXHAUSTED.
#ifndef MINIPOD_SIM_SPMD_BUILD_APPEND_H_
#define MINIPOD_SIM_SPMD_BUILD_APPEND_H_

#include "sim/base/status.h"
#include "sim/ir/module.h"

// Where ops go, and the location that they get.
typedef struct {
  mp_module_t *module;
  mp_block_t *block;
  const mp_loc_t *loc;  // may be NULL
} mp_append_at_t;

// An op with at most one attribute; `attr` may be NULL.
MP_NODISCARD mp_status_t mp_append_op(const mp_append_at_t *at, mp_opcode_t code,
                                      mp_value_t *const *operands, uint32_t num_operands,
                                      const mp_type_t *type, const mp_named_attr_t *attr,
                                      mp_value_t **out_value);

// An op of any form with one result. Its location is that of `at`.
MP_NODISCARD mp_status_t mp_append_spec(const mp_append_at_t *at, const mp_op_spec_t *spec,
                                        mp_value_t **out_value);

// A constant of `type` from `size` bytes: all its elements or, with `splat`, one element. `data` is
// copied.
MP_NODISCARD mp_status_t mp_append_constant(const mp_append_at_t *at, const mp_type_t *type,
                                            const void *data, size_t size, bool splat,
                                            mp_value_t **out_value);

// A scalar that differs between partitions: entry partition_id of `table`, which has
// `num_partitions` elements and is copied.
MP_NODISCARD mp_status_t mp_append_lookup(const mp_append_at_t *at, mp_dtype_t dtype,
                                          const void *table, uint32_t num_partitions,
                                          mp_value_t **out_value);

// The part of an iota that a partition holds: `type` is the part's, and the numbers along
// `dimension` begin where the part does. They are counted in 64 bits and converted at the end, so
// that every element is the one that the whole iota has there.
MP_NODISCARD mp_status_t mp_append_iota_part(const mp_append_at_t *at, const mp_type_t *type,
                                             uint32_t dimension, const mp_boxes_t *boxes,
                                             mp_value_t **out_value);

#endif  // MINIPOD_SIM_SPMD_BUILD_APPEND_H_
