// Collectives that the partitioner adds to the per-device program.
//
// Each function makes an op in the module's arena, appends it to the block, and returns its one
// result; `type` is the result's. Groups are tables of partitions with one row per group
// (mp_append_groups); every replica of the module does the same among its partitions.
#ifndef MINIPOD_SIM_SPMD_BUILD_APPEND_COLLECTIVE_H_
#define MINIPOD_SIM_SPMD_BUILD_APPEND_COLLECTIVE_H_

#include "sim/base/status.h"
#include "sim/ir/module.h"
#include "sim/spmd/build/append.h"

// The attribute for `rows` groups of `columns` partitions each: flattened ids of all replicas.
MP_NODISCARD mp_status_t mp_append_groups(mp_module_t *module, const int64_t *table, int64_t rows,
                                          int64_t columns, const mp_attr_t **out_groups);

// The terms of the groups' members combined by `reducer`, which is MP_OP_ADD or another commutative
// elementwise op: the whole result on each member, or one part along `dim` on each.
MP_NODISCARD mp_status_t mp_append_all_reduce(const mp_append_at_t *at, const mp_attr_t *groups,
                                              mp_opcode_t reducer, mp_value_t *value,
                                              mp_value_t **out_value);
MP_NODISCARD mp_status_t mp_append_reduce_scatter(const mp_append_at_t *at, const mp_attr_t *groups,
                                                  mp_opcode_t reducer, uint32_t dim,
                                                  mp_value_t *value, const mp_type_t *type,
                                                  mp_value_t **out_value);
// The concatenation along `dim` of the arrays of the groups' members, on each member.
MP_NODISCARD mp_status_t mp_append_all_gather(const mp_append_at_t *at, const mp_attr_t *groups,
                                              uint32_t dim, mp_value_t *value,
                                              const mp_type_t *type, mp_value_t **out_value);

// An all_to_all: every member sends one part along `split_dim` to each member of its group, and
// joins what it gets along `concat_dim`.
typedef struct {
  const int64_t *groups;  // [rows][columns] partitions: one row per group
  int64_t rows, columns;
  uint32_t split_dim, concat_dim;
} mp_append_exchange_t;

// Here ids number partitions. In a permute `pairs` has `num_pairs` rows of a source and a target.
MP_NODISCARD mp_status_t mp_append_all_to_all(const mp_append_at_t *at,
                                              const mp_append_exchange_t *exchange,
                                              mp_value_t *value, const mp_type_t *type,
                                              mp_value_t **out_value);
MP_NODISCARD mp_status_t mp_append_permute(const mp_append_at_t *at, const int64_t *pairs,
                                           int64_t num_pairs, mp_value_t *value,
                                           mp_value_t **out_value);

// The value as partition `source` has it, on all partitions.
MP_NODISCARD mp_status_t mp_append_broadcast_from(const mp_append_at_t *at, int64_t source,
                                                  mp_value_t *value, mp_value_t **out_value);

#endif  // MINIPOD_SIM_SPMD_BUILD_APPEND_COLLECTIVE_H_
