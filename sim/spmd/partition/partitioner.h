// The partitioner at work: what its files (partition*.c) share.
//
// Each file rewrites one kind of op of the whole program: partition_constraint.c what only says
// where values lie, partition_manual.c regions that are per-device code already,
// partition_control.c loops and branches, partition_op.c all else; partition_io.c main's parameters
// and results; partition.c goes through the blocks. The functions append the per-device op to
// `versions.block` and note its results as versions of the op's results. Messages name the op.
#ifndef MINIPOD_SIM_SPMD_PARTITION_PARTITIONER_H_
#define MINIPOD_SIM_SPMD_PARTITION_PARTITIONER_H_

#include "sim/base/containers/array.h"
#include "sim/spmd/partition/partition.h"
#include "sim/spmd/partition/versions.h"
#include "sim/spmd/propagation/propagate.h"

typedef struct {
  mp_module_t *module;
  mp_arena_t *arena;
  mp_versions_t versions;
  const mp_spmd_scope_t *scope;
  // What every value is sharded by; without it (shardings that one space of atoms cannot say, or
  // one partition) only elementwise ops work on parts.
  bool is_propagated;
  mp_propagation_t propagation;
  uint32_t *uses;         // [values of the whole program]: how often each is an operand
  const mp_op_t **users;  // [values]: the last op that uses it
  MP_ARRAY(mp_replicated_op_t) replicated;  // computed whole though their values are not
} mp_partitioner_t;

// ---- partition.c ----

// The ops of a block up to its terminator (NULL: it has none).
MP_NODISCARD mp_status_t mp_partitioner_block(mp_partitioner_t *p, const mp_block_t *block,
                                              const mp_op_t **out_terminator);
// The version of `value` that is whole, for `op`.
MP_NODISCARD mp_status_t mp_partitioner_get_whole(mp_partitioner_t *p, const mp_op_t *op,
                                                  const mp_value_t *value, mp_value_t **out_value);
// `status` with the op and its location in the message.
MP_NODISCARD mp_status_t mp_partitioner_at_op(const mp_op_t *op, mp_status_t status);
// INVALID_ARGUMENT unless `local_type` is what a partition holds of `global_type` in `boxes`.
MP_NODISCARD mp_status_t mp_partitioner_check_local_type(mp_partitioner_t *p, const mp_op_t *op,
                                                         const mp_type_t *global_type,
                                                         const mp_boxes_t *boxes,
                                                         const mp_type_t *local_type);

// ---- partition_constraint.c ----

MP_NODISCARD mp_status_t mp_partitioner_identity(mp_partitioner_t *p, const mp_op_t *op);
// GSPMD's way into manual code and out of it.
bool mp_partitioner_is_call_to(const mp_op_t *op, const char *target);
MP_NODISCARD mp_status_t mp_partitioner_full_to_shard(mp_partitioner_t *p, const mp_op_t *op);
MP_NODISCARD mp_status_t mp_partitioner_shard_to_full(mp_partitioner_t *p, const mp_op_t *op);

// ---- partition_manual.c ----

MP_NODISCARD mp_status_t mp_partitioner_manual(mp_partitioner_t *p, const mp_op_t *op);
// INVALID_ARGUMENT unless the attributes and the body of a sdy.manual_computation fit its operands.
MP_NODISCARD mp_status_t mp_partitioner_check_manual(mp_partitioner_t *p, const mp_op_t *op);
// Where an operand or result of a manual region lies by the manual axes; `local_type` is its type
// inside.
MP_NODISCARD mp_status_t mp_partitioner_manual_placement(mp_partitioner_t *p, const mp_op_t *op,
                                                         const mp_type_t *type,
                                                         const mp_sdy_sharding_t *sharding,
                                                         const mp_axis_list_t *manual_axes,
                                                         const mp_type_t *local_type,
                                                         const mp_boxes_t **out_boxes);

// ---- partition_op.c ----

// An op in the making: its operands and regions are per-device already.
typedef struct {
  mp_value_t **operands;
  const mp_type_t **types;
  mp_block_t **regions;
  const mp_named_attr_t *attrs;
} mp_op_parts_t;

// Room for the parts; the attributes are the op's.
MP_NODISCARD mp_status_t mp_partitioner_start_op(mp_partitioner_t *p, const mp_op_t *op,
                                                 mp_op_parts_t *out_parts);
MP_NODISCARD mp_status_t mp_partitioner_finish_op(mp_partitioner_t *p, const mp_op_t *op,
                                                  const mp_op_parts_t *parts, mp_op_t **out_copy);
MP_NODISCARD mp_status_t mp_partitioner_op(mp_partitioner_t *p, const mp_op_t *op);

// ---- partition_terms.c ----

MP_NODISCARD mp_status_t mp_partitioner_count_uses(mp_partitioner_t *p);
// A linear op whose operands are terms of sums may work on these: then `out_done`.
MP_NODISCARD mp_status_t mp_partitioner_terms(mp_partitioner_t *p, const mp_op_t *op,
                                              bool *out_done);

// ---- partition_note.c ----

// Remembers for the report that `op` works on whole operands, if some of its values lie in parts.
MP_NODISCARD mp_status_t mp_partitioner_note_whole(mp_partitioner_t *p, const mp_op_t *op);

// ---- partition_control.c ----

MP_NODISCARD mp_status_t mp_partitioner_control(mp_partitioner_t *p, const mp_op_t *op);
// A region whose arguments and returned values lie as these placements say (NULL: all whole).
MP_NODISCARD mp_status_t mp_partitioner_copy_region(mp_partitioner_t *p, const mp_block_t *from,
                                                    const mp_boxes_t *const *args,
                                                    const mp_boxes_t *const *returned,
                                                    mp_block_t **out_to);

// ---- partition_io.c ----

// An entry of the client's "may be sharded" flags: one for all, or one per value.
bool mp_partitioner_is_allowed(const bool *flags, uint32_t count, uint32_t index);
// Begins the per-device main with its parameters.
MP_NODISCARD mp_status_t mp_partitioner_params(mp_partitioner_t *p, const mp_func_t *main,
                                               const mp_partition_options_t *options,
                                               mp_block_t **out_body, mp_partition_io_t *params);
// Ends it with its results.
MP_NODISCARD mp_status_t mp_partitioner_results(mp_partitioner_t *p, const mp_func_t *main,
                                                const mp_op_t *terminator,
                                                const mp_partition_options_t *options,
                                                mp_partition_io_t *results);

#endif  // MINIPOD_SIM_SPMD_PARTITION_PARTITIONER_H_
