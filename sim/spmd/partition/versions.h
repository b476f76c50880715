// Versions: for each value of the whole program, the arrays that hold it on a device.
#ifndef MINIPOD_SIM_SPMD_PARTITION_VERSIONS_H_
#define MINIPOD_SIM_SPMD_PARTITION_VERSIONS_H_

#include "sim/base/containers/array.h"
#include "sim/spmd/reshard/reshard.h"
#include "sim/spmd/sharding/placement.h"

typedef struct mp_version_s mp_version_t;
struct mp_version_s {
  const mp_boxes_t *boxes;  // NULL: whole
  mp_value_t *value;        // in the per-device program
  mp_version_t *next;       // older
};

typedef struct {
  mp_module_t *module;
  uint32_t num_values;
  mp_version_t **versions;       // [values of the whole program], by value id
  const mp_boxes_t **preferred;  // [values]: what a constraint asked for, or NULL
  mp_resharder_t *resharder;
  mp_block_t *block;       // where new ops go
  MP_ARRAY(uint32_t) log;  // value ids in the order their versions were added
} mp_versions_t;

MP_NODISCARD mp_status_t mp_versions_create(mp_module_t *module, mp_versions_t *out_versions);

// Says that `value` holds `old` as `boxes`.
MP_NODISCARD mp_status_t mp_versions_add(mp_versions_t *versions, const mp_value_t *old,
                                         const mp_boxes_t *boxes, mp_value_t *value);

// Forgets the versions added since `mark` (a former log.count): those made inside a region are not
// visible after it.
void mp_versions_rewind(mp_versions_t *versions, uint32_t mark);

// The version with this placement; makes it from the one from which least is to be sent when there
// is none (reshard.h).
MP_NODISCARD mp_status_t mp_versions_get(mp_versions_t *versions, const mp_spmd_scope_t *scope,
                                         const mp_value_t *old, const mp_boxes_t *boxes,
                                         const mp_loc_t *loc, mp_value_t **out_value);

// The same for boxes that need not hold all of the value, or that overlap (what a part needs of its
// neighbours): it does not become a version, as nothing else can be made from it.
MP_NODISCARD mp_status_t mp_versions_get_excerpt(mp_versions_t *versions,
                                                 const mp_spmd_scope_t *scope,
                                                 const mp_value_t *old, const mp_boxes_t *boxes,
                                                 const mp_loc_t *loc, mp_value_t **out_value);

bool mp_versions_has(const mp_versions_t *versions, const mp_value_t *old, const mp_boxes_t *boxes);

// The newest version that has parts (and is no partial sum), or NULL.
const mp_boxes_t *mp_versions_sharded(const mp_versions_t *versions, const mp_value_t *old);

#endif  // MINIPOD_SIM_SPMD_PARTITION_VERSIONS_H_
