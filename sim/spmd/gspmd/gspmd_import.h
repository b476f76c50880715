// From GSPMD's annotations to Shardy's: one form for all that follows.
//
// GSPMD says which devices hold which tile. Where all lists of devices of a module are digits of a
// device's position in one order, they are axes of one mesh, and everything has a Shardy form:
// mhlo.sharding strings become sdy.sharding attributes, @Sharding calls sdy.sharding_constraint,
// `shard_as` a sdy.sharding_group, and a call between SPMDFullToShardShape and SPMDShardToFullShape
// a sdy.manual_computation around the function's body. Modules that cannot be said so are left as
// they are; the partitioner then goes by boxes (placement.h).
#ifndef MINIPOD_SIM_SPMD_GSPMD_GSPMD_IMPORT_H_
#define MINIPOD_SIM_SPMD_GSPMD_GSPMD_IMPORT_H_

#include "sim/base/status.h"
#include "sim/ir/module.h"

// To be called before functions are inlined. INVALID_ARGUMENT, with the op or the argument, for
// strings that do not parse or do not fit their tensor or the number of partitions.
MP_NODISCARD mp_status_t mp_spmd_import_gspmd(mp_module_t *module, uint32_t num_partitions);

#endif  // MINIPOD_SIM_SPMD_GSPMD_GSPMD_IMPORT_H_
