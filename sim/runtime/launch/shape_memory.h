// Where runs without values (shapes.h) have the few values that there are.
//
// Nothing lies behind the blocks of such a client. A run has a region (memory/run_region.h) with
// the layout of all that its commands name: temporaries, results, and what is read although it has
// no value. The values that its parameters have are put there, or read where they are; those that
// its results have in the end become contents. Devices that came to the same share them, so that a
// pod holds what its devices have of their own.
#ifndef MINIPOD_SIM_RUNTIME_LAUNCH_SHAPE_MEMORY_H_
#define MINIPOD_SIM_RUNTIME_LAUNCH_SHAPE_MEMORY_H_

#include "sim/runtime/launch/run.h"

// Gives the run its region, which mp_run_end takes back, and sets run->arena, params and results.
// After mp_shape_run_begin, before the first command.
// RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_shape_memory_begin(mp_run_t *run);
// Keeps the values that the results have. After mp_shape_run_end. (No bits are flipped where there
// are hardly any: such faults are refused.)
// RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_shape_memory_end(mp_run_t *run);

#endif  // MINIPOD_SIM_RUNTIME_LAUNCH_SHAPE_MEMORY_H_
