// The planner: the program of a device from its (partitioned) module.
//
// Three steps, one file each: liveness.c numbers the ops and finds how long each value is needed,
// emit.c flattens control flow into commands and gives every value a place, places.c packs the
// places that live at the same time side by side into one arena.
#ifndef MINIPOD_SIM_PLAN_PLAN_H_
#define MINIPOD_SIM_PLAN_PLAN_H_

#include "sim/base/status.h"
#include "sim/ir/module.h"
#include "sim/plan/program.h"
#include "sim/spmd/partition/partition.h"

typedef struct {
  uint32_t num_replicas, num_partitions;
  mp_partition_t partition;
} mp_plan_options_t;

// `module` has been through mp_passes_finish. On success the program owns it; on error it stays the
// caller's. UNIMPLEMENTED, with op and location, for what no kernel or collective can do.
MP_NODISCARD mp_status_t mp_plan_create(mp_module_t *module, const mp_plan_options_t *options,
                                        mp_program_t **out_program);

// ---- between the planner's files ----

typedef struct {
  uint32_t start, end;  // positions, inclusive
  uint64_t bytes;
  uint64_t offset;  // set by mp_places_pack
} mp_place_t;

// Gives each place an offset so that places which live at the same time do not overlap; offsets are
// 64-byte aligned. Returns the arena's size.
MP_NODISCARD mp_status_t mp_places_pack(mp_arena_t *scratch, mp_place_t *places, uint32_t count,
                                        uint64_t *out_bytes);

// Facts about every value, by value id (mp_module_number_values). A value that is another one's
// bytes under another type (reshape) has that one as its root; the facts stand at the root.
typedef struct {
  mp_value_t *root;
  uint32_t defined;   // position of its definition
  uint32_t last_use;  // position; = defined when it is never used
} mp_liveness_t;

// Sets op->id to the op's position for all ops of main. A region op's position comes before those
// of its regions; `ends[op->id]` is the position after them.
typedef struct {
  mp_liveness_t *values;
  uint32_t num_values;
  uint32_t *ends;  // [num_positions]
  uint32_t num_positions;
} mp_liveness_table_t;

MP_NODISCARD mp_status_t mp_liveness_compute(mp_module_t *module, mp_arena_t *scratch,
                                             mp_liveness_table_t *out_table);

// The collective that an op performs; `ordinal` is its number in the program.
MP_NODISCARD mp_status_t mp_plan_lower_collective(mp_arena_t *arena, const mp_op_t *op,
                                                  uint32_t num_replicas, uint32_t num_partitions,
                                                  uint32_t ordinal,
                                                  const mp_collective_t **out_collective);
// Whether an op becomes a COLLECTIVE, SEND or RECV command.
bool mp_plan_is_collective(const mp_op_t *op);

#endif  // MINIPOD_SIM_PLAN_PLAN_H_
