// Partners: the devices that a program's collectives connect with a device.
//
// In a job with one device per process, a process may launch a program that others do not launch
// with it. For example, TorchTPU launches a collective of groups {0, 1} and {2, 3} in the group {2,
// 3} only, if the members of the other group have nothing to exchange. TPUs match collectives by
// their groups, so this works there. With the option `match`: groups, minipod therefore counts the
// launches of a program among the devices that its collectives connect (order/device_set.h).
#ifndef MINIPOD_SIM_RUNTIME_RUNS_PARTNERS_H_
#define MINIPOD_SIM_RUNTIME_RUNS_PARTNERS_H_

#include <stdbool.h>

#include "sim/plan/program.h"

// Sets is_partner[i] ([devices of the program], all false before) for the logical device itself and
// for all devices that groups of collectives connect with it, also through others. A program that
// sends or receives connects all devices. The same for all partners.
void mp_partners_find(const mp_program_t *program, uint32_t logical, uint32_t num_devices,
                      bool *is_partner);

#endif  // MINIPOD_SIM_RUNTIME_RUNS_PARTNERS_H_
