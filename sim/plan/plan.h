// The planner makes the program of a device from the partitioned module.
//
// It has four steps. late.c moves ops to where their results are used, if that saves memory;
// liveness.c numbers the ops and finds how long each value is needed; emit_*.c turn ops into
// commands and control flow into jumps, and give every value a place; places.c gives the places
// offsets in one arena, so that places in use at the same time do not overlap.
#ifndef MINIPOD_SIM_PLAN_PLAN_H_
#define MINIPOD_SIM_PLAN_PLAN_H_

#include "sim/base/containers/array.h"
#include "sim/base/status.h"
#include "sim/ir/module.h"
#include "sim/mosaic/kernel/mosaic_kernel.h"
#include "sim/plan/program.h"
#include "sim/spmd/partition/partition.h"

typedef struct {
  uint32_t num_replicas, num_partitions;
  mp_partition_t partition;
  mp_str_t answers;  // for mp_program_t.answers
  bool open_loops;   // no loop becomes one command
  // Accepts functions that are not registered: the program runs for its shapes alone.
  bool absent_calls;
  mp_mosaic_target_t kernels;  // what Mosaic kernels are made for
  // For mp_program_t.partitioned: the program takes it over. If it is given, loops with branches do
  // not become one command, because that would not record the branches taken. May be NULL.
  mp_module_t *partitioned;
} mp_plan_options_t;

// Makes the program of a module after mp_passes_finish. On success the program owns the module; on
// error the caller keeps it. UNIMPLEMENTED, with op and location, if no kernel or collective can
// compute an op.
MP_NODISCARD mp_status_t mp_plan_create(mp_module_t *module, const mp_plan_options_t *options,
                                        mp_program_t **out_program);

// Sets owner[p] to the first partition of p's group that has the same box as p. Allocates in
// `arena`.
MP_NODISCARD mp_status_t mp_plan_find_owners(mp_arena_t *arena, const mp_boxes_t *boxes,
                                             uint32_t *owner);

// ---- between the planner's files ----

typedef struct {
  uint32_t start, end;  // positions, inclusive
  uint64_t bytes;
  // Set by mp_places_pack: the offset, in the arena (lender -1) or in a lender's memory.
  uint64_t offset;
  int32_t lender;
  // Set afterwards: the first and last command that names it; the first is UINT32_MAX if none does.
  uint32_t first_command, last_command;
} mp_place_t;

// Memory that places may use while it has no other use: `bytes`, before position `until`.
typedef struct {
  uint32_t until;
  uint64_t bytes;
} mp_lender_t;

// Gives each place an offset in the arena or in a lender's memory, so that places which are in use
// at the same time do not overlap. Offsets are 64-byte aligned; `*out_bytes` is the arena's size.
MP_NODISCARD mp_status_t mp_places_pack(mp_arena_t *scratch, mp_place_t *places, uint32_t count,
                                        const mp_lender_t *lenders, uint32_t num_lenders,
                                        uint64_t *out_bytes);

// Places of the arena by offset. Refers to `places`, which are packed.
typedef struct mp_place_finder_s mp_place_finder_t;
MP_NODISCARD mp_status_t mp_place_finder_create(mp_arena_t *scratch, const mp_place_t *places,
                                                uint32_t count, mp_place_finder_t **out_finder);
// The place that begins at `offset` of the arena when a command runs; NULL if it is not known.
const mp_place_t *mp_place_find(const mp_place_finder_t *finder, uint64_t offset, uint32_t command);

// Makes a LOOP command of each loop that is small enough (sim/loops). The program computes the same
// bits. `places` gives the place of each slot. Errors: those of mp_kernel_create, and
// RESOURCE_EXHAUSTED.
MP_NODISCARD mp_status_t mp_plan_fold_loops(mp_program_t *program, const mp_place_t *places,
                                            uint32_t num_places);

// The input of folding: the program, scratch memory, the places of the arena.
typedef struct {
  mp_program_t *program;
  mp_arena_t *scratch;
  const mp_place_t *places;
  mp_place_finder_t *finder;  // of `places`
} mp_fold_source_t;

// Makes a LOOP command of commands [first, last] of the program: a loop, or, if `is_straight`,
// commands without jumps. If sim/loops cannot run one of them, `*out_can` is false, and there is no
// command. The program's own commands do not change.
MP_NODISCARD mp_status_t mp_plan_fold_range(const mp_fold_source_t *fold, uint32_t first,
                                            uint32_t last, bool is_straight, bool *out_can,
                                            mp_cmd_t *out_command);

// Moves ops of main to just before the first op that uses their result, if that shortens the lives
// of values and lengthens none. `is_donated[i]` says whether a result takes over the memory of
// parameter i. Numbers the values; the module computes the same.
MP_NODISCARD mp_status_t mp_plan_move_late(mp_module_t *module, const bool *is_donated,
                                           mp_arena_t *scratch);

// The operand whose bytes a value shares under another type (the result of a reshape); NULL: its
// bytes are its own.
mp_value_t *mp_plan_aliased(const mp_value_t *value);

// How long a value is needed. If a value shares the bytes of another one under another type (the
// result of a reshape), that one is its root, and the positions are kept at the root.
typedef struct {
  mp_value_t *root;
  uint32_t defined;   // position of its definition
  uint32_t last_use;  // position; = defined when it is never used
} mp_liveness_t;

// The liveness of a module's values. The position of an op is its number in the order in which ops
// are emitted; an op with regions comes before the ops in them.
typedef struct {
  mp_liveness_t *values;  // by value id (mp_module_number_values)
  uint32_t num_values;
  uint32_t *ends;  // [num_positions]: the position after the regions of the op at a position
  uint32_t num_positions;
} mp_liveness_table_t;

// Computes the liveness of all values of main, in `scratch`. Numbers the values, and sets op->id of
// all ops of main to their position.
MP_NODISCARD mp_status_t mp_liveness_compute(mp_module_t *module, mp_arena_t *scratch,
                                             mp_liveness_table_t *out_table);

// The groups of a program's collectives, and the tables that they come from. Hundreds of
// collectives share a handful of groups, which take 17 bytes per device.
typedef struct {
  mp_group_mode_t mode;
  const int64_t *table;  // [rows * columns] the op's
  int64_t rows, columns;
  const mp_groups_t *groups;
} mp_plan_known_groups_t;
typedef MP_ARRAY(mp_plan_known_groups_t) mp_plan_groups_t;

// Makes the description of the collective that an op performs (collectives/), in `arena`. `ordinal`
// is its number in the program; `known` has the groups of the program's other collectives, in the
// same arena. Groups with members that do not exist are INVALID_ARGUMENT.
MP_NODISCARD mp_status_t mp_plan_lower_collective(mp_arena_t *arena, mp_plan_groups_t *known,
                                                  const mp_op_t *op, uint32_t num_replicas,
                                                  uint32_t num_partitions, uint32_t ordinal,
                                                  const mp_collective_t **out_collective);
// Whether an op becomes a COLLECTIVE, SEND or RECV command.
bool mp_plan_is_collective(const mp_op_t *op);
// Whether an op becomes a CALL command: a custom_call that minipod does not implement itself. Its
// target may not be registered.
bool mp_plan_is_foreign(const mp_op_t *op);
// Whether an op becomes no command, and exists only so that its operands are computed (JAX's
// dce_sink).
bool mp_plan_is_sink(const mp_op_t *op);

#endif  // MINIPOD_SIM_PLAN_PLAN_H_
