// InspectSharding, JAX's call for inspecting the sharding of a value.
#ifndef MINIPOD_PJRT_PACKAGE_PJRT_INSPECT_H_
#define MINIPOD_PJRT_PACKAGE_PJRT_INSPECT_H_

#include "sim/base/status.h"
#include "sim/plan/program.h"

// Calls back for each InspectSharding of the program, with the sharding that its value got.
// INVALID_ARGUMENT for a call that was not made by the jaxlib of this process, and the callback's
// error; both with the call's line. The caller holds no lock, as callbacks run Python.
MP_NODISCARD mp_status_t mp_pjrt_inspect_shardings(const mp_program_t *program);

#endif  // MINIPOD_PJRT_PACKAGE_PJRT_INSPECT_H_
