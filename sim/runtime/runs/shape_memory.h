// Where runs without values (shapes.h) keep the few values that they compute.
//
// The memory blocks of such a client have no bytes. A run has a region (memory/run_region.h) with a
// place for all that its commands name: temporaries, results, and what is read although it has no
// value. Values of parameters are copied there, or read in place; values of results become contents
// at the end. Devices with equal results share their contents, so the pod stores only what differs.
#ifndef MINIPOD_SIM_RUNTIME_RUNS_SHAPE_MEMORY_H_
#define MINIPOD_SIM_RUNTIME_RUNS_SHAPE_MEMORY_H_

#include "sim/runtime/runs/run.h"

// Gives the run its region, which mp_run_end takes back, and sets run->arena, params and results.
// After mp_shape_run_begin, before the first command.
// RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_shape_memory_begin(mp_run_t *run);
// Keeps the values that the results have. After mp_shape_run_end. (Faults that flip bits are
// refused for such clients, so none is flipped here.) RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_shape_memory_end(mp_run_t *run);

#endif  // MINIPOD_SIM_RUNTIME_RUNS_SHAPE_MEMORY_H_
