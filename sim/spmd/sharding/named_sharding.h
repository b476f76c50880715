// NamedShardingProto (xla_data.proto), OpSharding's newer form: dimensions are sharded along named
// axes of a mesh, as in Shardy.
#ifndef MINIPOD_SIM_SPMD_SHARDING_NAMED_SHARDING_H_
#define MINIPOD_SIM_SPMD_SHARDING_NAMED_SHARDING_H_

#include "sim/base/status.h"
#include "sim/base/str.h"

// Appends the message as a GSPMD string (gspmd.h has the grammar), with device lists instead of
// axes. Drops whether a dimension is open: the stated sharding holds. INVALID_ARGUMENT with the
// field that is wrong.
MP_NODISCARD mp_status_t mp_named_sharding_print(mp_str_t message, mp_strbuf_t *out);

#endif  // MINIPOD_SIM_SPMD_SHARDING_NAMED_SHARDING_H_
