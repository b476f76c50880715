// The names of a program's ops, for profiles: users look for what they have called parts of their
// programs (jax.named_scope, torch_xla's Trace).
#ifndef MINIPOD_SIM_MODEL_REPORT_PROFILE_PROGRAM_NAMES_H_
#define MINIPOD_SIM_MODEL_REPORT_PROFILE_PROGRAM_NAMES_H_

#include "sim/model/report/profile/xplane.h"
#include "sim/plan/program.h"

// Names every op of the program that has a name or a place ("tf_op", "source").
void mp_xplane_put_program(mp_xplane_t *plane, const mp_program_t *program);

#endif  // MINIPOD_SIM_MODEL_REPORT_PROFILE_PROGRAM_NAMES_H_
