// Resharding: the ops that bring a value from one placement to another.
//
// These are slices and standard collectives if a plan of them is found (reshard_plan.h), and
// minipod.exchange otherwise: for uneven parts, for placements with other orders of devices, and if
// the plan would be long or send much more than the exchange does. All of them only copy, so that
// the bits of the result are the same.
#ifndef MINIPOD_SIM_SPMD_RESHARD_RESHARD_H_
#define MINIPOD_SIM_SPMD_RESHARD_RESHARD_H_

#include "sim/spmd/build/append.h"
#include "sim/spmd/sharding/placement.h"

typedef struct mp_resharder_s mp_resharder_t;

// Makes a resharder for one module. It lives in the module's arena and remembers the plans that it
// has found.
MP_NODISCARD mp_status_t mp_resharder_create(mp_module_t *module, mp_resharder_t **out_resharder);

// The bytes that a device receives when a value of `type` goes from placement `from` to `to`: the
// mean over the devices. `from` may be terms of sums, `to` may not; NULL is whole.
MP_NODISCARD mp_status_t mp_reshard_cost(mp_resharder_t *resharder, const mp_type_t *type,
                                         const mp_boxes_t *from, const mp_boxes_t *to,
                                         double *out_bytes);

// `value` holds a value of the whole program of `type` in placement `from`; the result shall hold
// it in `to`.
typedef struct {
  mp_append_at_t at;  // where the ops go
  const mp_spmd_scope_t *scope;
  const mp_type_t *type;
  const mp_boxes_t *from, *to;
  mp_value_t *value;
} mp_reshard_request_t;

// Appends the ops.
MP_NODISCARD mp_status_t mp_reshard(mp_resharder_t *resharder, const mp_reshard_request_t *request,
                                    mp_value_t **out_value);

#endif  // MINIPOD_SIM_SPMD_RESHARD_RESHARD_H_
