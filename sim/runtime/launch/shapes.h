// Running programs for their shapes alone (option `values`: shapes).
//
// A pod that is larger than the machine cannot be computed, but the model of time needs only which
// commands run. So commands are skipped, and their results have no values: nothing reads or writes
// the memory, which is counted but not backed. What is small is computed all the same, as long as
// it follows from values that are there: counters and conditions of loops, random keys, tables of
// sizes.
//
// A choice that depends on values that are not there is guessed, as the options say: loops go round
// `unknown_trip_count` times in all, of branches the one that costs most is taken. The run's path
// says so. What such a choice decides about has no
// value afterwards: whatever is written in any of the branches, or in the loop, which includes all
// that the loop carries from round to round. So no value ever depends on a guess.
//
// Foreign functions are called where all that they get is small and has values. One that has an
// effect outside of the pod, such as a callback that prints, is called in any case, for it reads
// what it gets (buffers/absent.h); but not on a way that was guessed, as nobody knows whether the
// program would go there.
//
// Collectives are computed, too, where all members have small values to bring and all are sure to
// come: meetings.c has the rules.
//
// What belongs to a program is immutable; what belongs to a run is used by the thread that runs it.
#ifndef MINIPOD_SIM_RUNTIME_LAUNCH_SHAPES_H_
#define MINIPOD_SIM_RUNTIME_LAUNCH_SHAPES_H_

#include "sim/model/clock/model.h"
#include "sim/plan/program.h"
#include "sim/runtime/buffers/storage.h"

typedef struct mp_run_s mp_run_t;
typedef struct mp_shapes_s mp_shapes_t;
typedef struct mp_shape_run_s mp_shape_run_t;

// What commands of a program need to be computed. `timed` (borrowed during the call) is the same
// program in the model of time, which says what branch to guess; loops whose end is guessed go
// round `trip_count` times. RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_shapes_create(const mp_program_t *program,
                                          const mp_model_program_t *timed, uint64_t trip_count,
                                          mp_shapes_t **out_shapes);
void mp_shapes_release(mp_shapes_t *shapes);
// Called once after that: finds the collectives that may be computed, without which none is
// (meetings.c). RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_shapes_find_meetings(mp_shapes_t *shapes);

// The state of a run. RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_shape_run_create(const mp_shapes_t *shapes, mp_shape_run_t **out_run);
// NULL has no effect.
void mp_shape_run_release(mp_shape_run_t *shape_run);
// Called when the launch happens, for all parameters in order, and then for all results: the
// storage of each (NULL: an error buffer). Storages of results get new values.
void mp_shape_run_add_param(mp_shape_run_t *shape_run, const mp_storage_t *storage);
void mp_shape_run_add_result(mp_shape_run_t *shape_run, mp_storage_t *storage);
// What says of parameter i, or of result i - num_params, whether it has values; NULL: of an error
// buffer.
mp_values_t *mp_shape_run_values(const mp_shape_run_t *shape_run, uint32_t i);

// Called before the first command: which parameters have values.
void mp_shape_run_begin(mp_shape_run_t *shape_run);
// Called before each command. True: it is skipped, and `*next` says where the run goes on. False:
// it is to be executed.
bool mp_shape_run_skips(mp_run_t *run, uint32_t pc, uint32_t *next);
// Of a collective that is executed: what the run meets the others at next. That is a vote, whether
// all have values for it, and sets `contribution`; or the collective itself.
const mp_collective_t *mp_shape_run_meeting(mp_run_t *run, uint32_t pc,
                                            mp_contribution_t *contribution);
// Called after that meeting. False: there is another one. True: the collective is over, and it is
// noted whether its results have values.
bool mp_shape_run_has_met(mp_run_t *run, uint32_t pc);
// Whether an operand of the command that the run is at has a value.
bool mp_shape_run_has_operand(const mp_shape_run_t *shape_run, const mp_cmd_t *cmd,
                              uint32_t operand);
// Called after the last command: says of the results whether they have values.
void mp_shape_run_end(mp_shape_run_t *shape_run);

#endif  // MINIPOD_SIM_RUNTIME_LAUNCH_SHAPES_H_
