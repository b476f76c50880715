// Running programs for their shapes alone (option `values`: shapes).
//
// A pod that is larger than the machine cannot be computed, but the model of time needs only which
// commands run. So commands are skipped, and their results have no values: nothing reads or writes
// the memory, which is counted but has no bytes. Small arrays are computed all the same if their
// operands have values: counters and conditions of loops, random keys, tables of sizes.
//
// A choice that depends on a value that was not computed is guessed as the options say: a loop
// makes `unknown_trip_count` rounds in total, and of several branches the most expensive one is
// taken. The run's path records the guess. Everything that depends on such a choice has no value
// afterwards: all that is written in any of the branches, or in the loop, including the values that
// the loop carries from round to round. So no value ever depends on a guess.
//
// Foreign functions are called if all their operands are small and have values. One that has an
// effect outside of the pod, such as a callback that prints, is called in any case, and operands
// without values are replaced (buffers/absent.h). It is not called on a guessed path, because the
// program might not take that path.
//
// Collectives are computed, too, if all members have small operands with values and are sure to
// arrive: meetings.c has the rules.
//
// What belongs to a program is immutable; what belongs to a run is used by the thread that runs it.
#ifndef MINIPOD_SIM_RUNTIME_RUNS_SHAPES_H_
#define MINIPOD_SIM_RUNTIME_RUNS_SHAPES_H_

#include "sim/model/clock/model.h"
#include "sim/plan/program.h"
#include "sim/runtime/buffers/storage.h"

// What processes that do not exist (option `bootstrap`: absent) bring to the collectives of a
// launch.
typedef enum {
  MP_OTHERS_EQUAL,    // what this process brings
  MP_OTHERS_ZERO,     // zeros: they are the receivers of a broadcast that is made of a sum
  MP_OTHERS_UNKNOWN,  // something else: one of them is the source of such a broadcast
} mp_others_t;

typedef struct mp_run_s mp_run_t;
typedef struct mp_shapes_s mp_shapes_t;
typedef struct mp_shape_run_s mp_shape_run_t;

// What each command of a program needs to be computed. `timed` (borrowed during the call) is the
// same program in the model of time, which tells the branch to guess; loops whose end is guessed
// make `trip_count` rounds. RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_shapes_create(const mp_program_t *program,
                                          const mp_model_program_t *timed, uint64_t trip_count,
                                          mp_shapes_t **out_shapes);
void mp_shapes_release(mp_shapes_t *shapes);
// Called once after that: finds the collectives that may be computed (meetings.c). Without this
// call none is computed. RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_shapes_find_meetings(mp_shapes_t *shapes);

// The state of a run. RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_shape_run_create(const mp_shapes_t *shapes, mp_shape_run_t **out_run);
// NULL has no effect.
void mp_shape_run_release(mp_shape_run_t *shape_run);
// Called when the launch happens, for all parameters in order, and then for all results: the
// storage of each (NULL: an error buffer). Storages of results get new values.
void mp_shape_run_add_param(mp_shape_run_t *shape_run, const mp_storage_t *storage);
void mp_shape_run_add_result(mp_shape_run_t *shape_run, mp_storage_t *storage);
// The record of whether parameter i, or result i - num_params, has values; NULL: an error buffer.
mp_values_t *mp_shape_run_values(const mp_shape_run_t *shape_run, uint32_t i);

// Called before the first command: which parameters have values.
void mp_shape_run_begin(mp_shape_run_t *shape_run);
// Called before each command. True: it is skipped, and `*next` is the command to continue with.
// False: it must be executed.
bool mp_shape_run_skips(mp_run_t *run, uint32_t pc, uint32_t *next);
// For a collective that is executed: the meeting that comes next, and its `contribution`. First a
// vote on whether all members have values, then the collective itself.
const mp_collective_t *mp_shape_run_meeting(mp_run_t *run, uint32_t pc,
                                            mp_contribution_t *contribution);
// Called after that meeting. False: another meeting follows. True: the collective is over, and the
// run has recorded whether its results have values.
bool mp_shape_run_has_met(mp_run_t *run, uint32_t pc);
// The same without any meeting, if the other members are on devices that do not exist
// (meetings_alone.c).
MP_NODISCARD mp_status_t mp_shape_run_meet_alone(mp_run_t *run, uint32_t pc);
// Whether an operand of the command that the run is at has a value.
bool mp_shape_run_has_operand(const mp_shape_run_t *shape_run, const mp_cmd_t *cmd,
                              uint32_t operand);
// Called after the last command: records which results have values.
void mp_shape_run_end(mp_shape_run_t *shape_run);

#endif  // MINIPOD_SIM_RUNTIME_RUNS_SHAPES_H_
