// NamedShardingProto (xla_data.proto), OpSharding's newer form: dimensions are cut along axes of a
// mesh that have names, as in Shardy.
#ifndef MINIPOD_SIM_SPMD_SHARDING_NAMED_SHARDING_H_
#define MINIPOD_SIM_SPMD_SHARDING_NAMED_SHARDING_H_

#include "sim/base/status.h"
#include "sim/base/str.h"

// Appends the message as a GSPMD string (gspmd.h has the grammar), in which devices stand for the
// axes. Whether a dimension is open is not kept: what is stated holds. INVALID_ARGUMENT with the
// field that is wrong.
MP_NODISCARD mp_status_t mp_named_sharding_print(mp_str_t message, mp_strbuf_t *out);

#endif  // MINIPOD_SIM_SPMD_SHARDING_NAMED_SHARDING_H_
