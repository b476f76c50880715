// Collectives that the partitioner adds to the per-device program.
//
// All append to `block` and hand back the new op's one result. Groups are tables of partitions,
// one row per group (mp_append_groups), the same for each of the module's replicas.
#ifndef MINIPOD_SIM_SPMD_BUILD_APPEND_COLLECTIVE_H_
#define MINIPOD_SIM_SPMD_BUILD_APPEND_COLLECTIVE_H_

#include "sim/base/status.h"
#include "sim/ir/module.h"

// `count` rows of `columns` partitions each, repeated per replica as flattened ids.
MP_NODISCARD mp_status_t mp_append_groups(mp_module_t *module, const int64_t *table, int64_t rows,
                                          int64_t columns, const mp_attr_t **out_groups);

// `reducer` is MP_OP_ADD or another commutative elementwise op.
MP_NODISCARD mp_status_t mp_append_all_reduce(mp_module_t *module, mp_block_t *block,
                                              const mp_attr_t *groups, mp_opcode_t reducer,
                                              mp_value_t *value, const mp_loc_t *loc,
                                              mp_value_t **out_value);
MP_NODISCARD mp_status_t mp_append_reduce_scatter(mp_module_t *module, mp_block_t *block,
                                                  const mp_attr_t *groups, mp_opcode_t reducer,
                                                  uint32_t dim, mp_value_t *value,
                                                  const mp_type_t *type, const mp_loc_t *loc,
                                                  mp_value_t **out_value);
MP_NODISCARD mp_status_t mp_append_all_gather(mp_module_t *module, mp_block_t *block,
                                              const mp_attr_t *groups, uint32_t dim,
                                              mp_value_t *value, const mp_type_t *type,
                                              const mp_loc_t *loc, mp_value_t **out_value);

// In these two partitions are numbered as such; every replica does the same. `groups` has rows of
// `columns` partitions, `pairs` of source and target.
MP_NODISCARD mp_status_t mp_append_all_to_all(mp_module_t *module, mp_block_t *block,
                                              const int64_t *groups, int64_t rows, int64_t columns,
                                              uint32_t split_dim, uint32_t concat_dim,
                                              mp_value_t *value, const mp_type_t *type,
                                              const mp_loc_t *loc, mp_value_t **out_value);
MP_NODISCARD mp_status_t mp_append_permute(mp_module_t *module, mp_block_t *block,
                                           const int64_t *pairs, int64_t num_pairs,
                                           mp_value_t *value, const mp_loc_t *loc,
                                           mp_value_t **out_value);

#endif  // MINIPOD_SIM_SPMD_BUILD_APPEND_COLLECTIVE_H_
