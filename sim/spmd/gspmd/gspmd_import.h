// Turns GSPMD's annotations into Shardy's, so that all later stages see one form.
//
// GSPMD lists the device of each tile. If all lists of a module number the tiles by digits of a
// device's position in one common order of the devices, these digits are the axes of one mesh, and
// everything has a Shardy form: mhlo.sharding strings become sdy.sharding attributes, @Sharding
// calls sdy.sharding_constraint, `shard_as` a sdy.sharding_group, and a call between
// SPMDFullToShardShape and SPMDShardToFullShape a sdy.manual_computation around the function's
// body. Modules for which there is no such mesh are left as they are; the partitioner then uses
// boxes (placement.h).
#ifndef MINIPOD_SIM_SPMD_GSPMD_GSPMD_IMPORT_H_
#define MINIPOD_SIM_SPMD_GSPMD_GSPMD_IMPORT_H_

#include "sim/base/status.h"
#include "sim/ir/module.h"

// Rewrites the module; to be called before functions are inlined. INVALID_ARGUMENT, with the op or
// the argument, for strings that do not parse or do not fit their tensor or the number of
// partitions.
MP_NODISCARD mp_status_t mp_spmd_import_gspmd(mp_module_t *module, uint32_t num_partitions);

#endif  // MINIPOD_SIM_SPMD_GSPMD_GSPMD_IMPORT_H_
