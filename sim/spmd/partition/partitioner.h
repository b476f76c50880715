// Shared by the files of the partitioner (partition*.c).
//
// partition.c goes through the blocks, and each other file rewrites one kind of op of the whole
// program: partition_constraint.c ops that only state placements, partition_manual.c regions that
// already are per-device code, partition_control.c loops and branches, partition_op.c all others;
// partition_io.c does main's parameters and results. The functions append the per-device op to
// `versions.block` and add its results as versions of the op's results. Errors name the op.
#ifndef MINIPOD_SIM_SPMD_PARTITION_PARTITIONER_H_
#define MINIPOD_SIM_SPMD_PARTITION_PARTITIONER_H_

#include "sim/base/containers/array.h"
#include "sim/spmd/partition/partition.h"
#include "sim/spmd/partition/versions.h"
#include "sim/spmd/propagation/propagate.h"

typedef struct mp_partitioner_s mp_partitioner_t;

struct mp_partitioner_s {
  mp_module_t *module;
  mp_arena_t *arena;
  // Partitions one op of any kind; for mp_partitioner_block.
  mp_status_t (*partition_op)(mp_partitioner_t *p, const mp_op_t *op);
  mp_versions_t versions;
  const mp_spmd_scope_t *scope;
  // Whether `propagation` has a sharding for every value. If not, because there is one partition or
  // because one space of atoms cannot express all shardings, only elementwise ops work on parts.
  bool is_propagated;
  mp_propagation_t propagation;
  uint32_t *uses;         // [values of the whole program]: how often each is an operand
  const mp_op_t **users;  // [values]: the last op that uses it
  const mp_custom_partitioner_t *custom;    // the client's; NULL: none
  MP_ARRAY(mp_replicated_op_t) replicated;  // ops computed whole although values are in parts
  MP_ARRAY(mp_inspected_t) inspected;
  MP_ARRAY(mp_op_t *) early;  // see mp_partitioner_note_early
};

// ---- partition_parts.c ----

// Partitions the ops of a block up to its terminator, which is returned.
MP_NODISCARD mp_status_t mp_partitioner_block(mp_partitioner_t *p, const mp_block_t *block,
                                              const mp_op_t **out_terminator);
// The version of `value` that is whole, made if it does not exist; `op` is the op that needs it.
MP_NODISCARD mp_status_t mp_partitioner_get_whole(mp_partitioner_t *p, const mp_op_t *op,
                                                  const mp_value_t *value, mp_value_t **out_value);
// INVALID_ARGUMENT unless `local_type` is the type of a partition's part of `global_type` in
// `boxes`.
MP_NODISCARD mp_status_t mp_partitioner_check_local_type(mp_partitioner_t *p, const mp_op_t *op,
                                                         const mp_type_t *global_type,
                                                         const mp_boxes_t *boxes,
                                                         const mp_type_t *local_type);

// The parts of a per-device op that is being made.
typedef struct {
  mp_value_t **operands;
  const mp_type_t **types;
  mp_block_t **regions;
  const mp_named_attr_t *attrs;
} mp_op_parts_t;

// Makes room for the parts of a copy of `op`, for the caller to fill in; the attributes are the
// op's.
MP_NODISCARD mp_status_t mp_partitioner_start_op(mp_partitioner_t *p, const mp_op_t *op,
                                                 mp_op_parts_t *out_parts);
// Makes the copy of `op` from its parts and appends it.
MP_NODISCARD mp_status_t mp_partitioner_finish_op(mp_partitioner_t *p, const mp_op_t *op,
                                                  const mp_op_parts_t *parts, mp_op_t **out_copy);

// ---- partition_constraint.c ----

// An op whose result is its operand: the operand's versions become the result's too.
MP_NODISCARD mp_status_t mp_partitioner_identity(mp_partitioner_t *p, const mp_op_t *op);
// A constraint: its version is made here, once, for all readers of the result. The operand's other
// versions are the result's too, so that nothing is sent to get back to them; if no op reads the
// new version, it is removed again.
MP_NODISCARD mp_status_t mp_partitioner_constraint(mp_partitioner_t *p, const mp_op_t *op);
// A placement in some memory (mp_op_is_placement): each of the operand's versions is placed.
MP_NODISCARD mp_status_t mp_partitioner_place(mp_partitioner_t *p, const mp_op_t *op);
// InspectSharding: an identity whose operand's sharding is remembered for the caller.
MP_NODISCARD mp_status_t mp_partitioner_inspect(mp_partitioner_t *p, const mp_op_t *op);
// Whether the op is a custom call of this target.
bool mp_partitioner_is_call_to(const mp_op_t *op, const char *target);
// SPMDFullToShardShape and SPMDShardToFullShape, GSPMD's entry to manual code and exit from it.
MP_NODISCARD mp_status_t mp_partitioner_full_to_shard(mp_partitioner_t *p, const mp_op_t *op);
MP_NODISCARD mp_status_t mp_partitioner_shard_to_full(mp_partitioner_t *p, const mp_op_t *op);

// ---- partition_manual.c ----

// A sdy.manual_computation: inlines its body.
MP_NODISCARD mp_status_t mp_partitioner_manual(mp_partitioner_t *p, const mp_op_t *op);
// INVALID_ARGUMENT unless the attributes and the body of a sdy.manual_computation fit its operands.
MP_NODISCARD mp_status_t mp_partitioner_check_manual(mp_partitioner_t *p, const mp_op_t *op);
// The placement of an operand or result of a manual region by the manual axes alone; `local_type`
// is its type inside of the region.
MP_NODISCARD mp_status_t mp_partitioner_manual_placement(mp_partitioner_t *p, const mp_op_t *op,
                                                         const mp_type_t *type,
                                                         const mp_sdy_sharding_t *sharding,
                                                         const mp_axis_list_t *manual_axes,
                                                         const mp_type_t *local_type,
                                                         const mp_boxes_t **out_boxes);

// ---- partition_group.c ----

// The first group of the region around an op (all are alike), presented as a program of its own.
typedef struct {
  const mp_spmd_scope_t *scope;  // its partitions are the group's members, in their order
  const uint32_t *members;       // [scope->num_partitions]; NULL: the group is the whole program
  const uint32_t *numbers;       // [all partitions]: each one's number within its group
} mp_partition_group_t;
MP_NODISCARD mp_status_t mp_partitioner_group(mp_partitioner_t *p, const mp_op_t *op,
                                              mp_partition_group_t *out_group);
// Placements within the group (NULL, too, if groups differ), and back.
MP_NODISCARD mp_status_t mp_partitioner_to_group(const mp_partition_group_t *group,
                                                 const mp_type_t *type, const mp_boxes_t *boxes,
                                                 const mp_boxes_t **out_boxes);
MP_NODISCARD mp_status_t mp_partitioner_from_group(mp_partitioner_t *p,
                                                   const mp_partition_group_t *group,
                                                   const mp_type_t *type, const mp_boxes_t *boxes,
                                                   const mp_boxes_t **out_boxes);
// UNIMPLEMENTED when a program that was made for a group uses partition_id or communicates, because
// its partition numbers are the group's.
MP_NODISCARD mp_status_t mp_partitioner_check_group_program(const mp_partition_group_t *group,
                                                            const mp_op_t *op,
                                                            mp_module_t *program);

// ---- partition_op.c ----

// Any op that the other files do not handle.
MP_NODISCARD mp_status_t mp_partitioner_op(mp_partitioner_t *p, const mp_op_t *op);

// ---- partition_unread.c ----

// Records the ops after `last` in the current block, which were made before any op needed them.
MP_NODISCARD mp_status_t mp_partitioner_note_early(mp_partitioner_t *p, const mp_op_t *last);
// Removes those of them that no op reads from `body`, the module's new main.
MP_NODISCARD mp_status_t mp_partitioner_drop_unread(mp_partitioner_t *p, mp_block_t *body);

// ---- partition_rings.c ----

// The collective matmuls that compilers may make of a dot_general, as mp_op_rings_t; 0 for other
// ops. `is_sum`: the result is terms of a sum on its parts.
uint8_t mp_partitioner_rings(const mp_partitioner_t *p, const mp_op_t *op, bool is_sum);

// ---- partition_call.c ----

// A custom call that is made on one device only, or with the unchanged parts of its operands;
// `*out_done`: it was one of these.
MP_NODISCARD mp_status_t mp_partitioner_call(mp_partitioner_t *p, const mp_op_t *op,
                                             bool *out_done);

// ---- partition_custom.c ----

// Whether the op is a custom call that the client's partitioner handles.
bool mp_partitioner_is_custom(const mp_partitioner_t *p, const mp_op_t *op);
// Partitions such a call.
MP_NODISCARD mp_status_t mp_partitioner_custom(mp_partitioner_t *p, const mp_op_t *op);

// ---- partition_terms.c ----

// Fills in `uses` and `users`.
MP_NODISCARD mp_status_t mp_partitioner_count_uses(mp_partitioner_t *p);
// Lets a linear op work on operands that are terms of sums, if that is possible and pays off;
// `*out_done` says whether it did.
MP_NODISCARD mp_status_t mp_partitioner_terms(mp_partitioner_t *p, const mp_op_t *op,
                                              bool *out_done);

// ---- partition_note.c ----

// Records for the report that `op` works on whole operands, if some of its values are in parts.
MP_NODISCARD mp_status_t mp_partitioner_note_whole(mp_partitioner_t *p, const mp_op_t *op);

// ---- partition_control.c ----

// A loop, a branch or a barrier.
MP_NODISCARD mp_status_t mp_partitioner_control(mp_partitioner_t *p, const mp_op_t *op);
// Partitions a region. Its arguments and the values that it returns have these placements; in place
// of a list, NULL means that all of them are whole.
MP_NODISCARD mp_status_t mp_partitioner_copy_region(mp_partitioner_t *p, const mp_block_t *from,
                                                    const mp_boxes_t *const *args,
                                                    const mp_boxes_t *const *returned,
                                                    mp_block_t **out_to);

// ---- partition_io.c ----

// The flag of value `index` among the client's flags, which are one for all values, or one for
// each.
bool mp_partitioner_is_allowed(const bool *flags, uint32_t count, uint32_t index);
// Makes the body of the per-device main with its parameters, and describes these in `params`.
MP_NODISCARD mp_status_t mp_partitioner_params(mp_partitioner_t *p, const mp_func_t *main,
                                               const mp_partition_options_t *options,
                                               mp_block_t **out_body, mp_partition_io_t *params);
// Ends the body with a terminator that returns the results, and describes these in `results`.
MP_NODISCARD mp_status_t mp_partitioner_results(mp_partitioner_t *p, const mp_func_t *main,
                                                const mp_op_t *terminator,
                                                const mp_partition_options_t *options,
                                                mp_partition_io_t *results);

#endif  // MINIPOD_SIM_SPMD_PARTITION_PARTITIONER_H_
