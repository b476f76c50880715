// Versions: for each value of the whole program, the arrays that hold it on a device. A value may
// exist whole, in parts, or as terms of a sum, and in several of these forms at once.
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
  const mp_boxes_t **preferred;  // [values]: the placement that a constraint asks for, or NULL
  mp_resharder_t *resharder;
  mp_block_t *block;       // to which new ops are appended
  MP_ARRAY(uint32_t) log;  // value ids in the order in which their versions were added
} mp_versions_t;

// Makes an empty table for the values of the module, which it numbers; all memory is the module's.
MP_NODISCARD mp_status_t mp_versions_create(mp_module_t *module, mp_versions_t *out_versions);

// Adds a version: `value` of the per-device program holds `old` with the placement `boxes`.
MP_NODISCARD mp_status_t mp_versions_add(mp_versions_t *versions, const mp_value_t *old,
                                         const mp_boxes_t *boxes, mp_value_t *value);

// Removes the versions that were added since log.count was `mark`. Versions that were made inside
// of a region are not visible after it.
void mp_versions_rewind(mp_versions_t *versions, uint32_t mark);

// The version with this placement. If there is none, it is made from the version from which the
// least must be sent (reshard.h).
MP_NODISCARD mp_status_t mp_versions_get(mp_versions_t *versions, const mp_spmd_scope_t *scope,
                                         const mp_value_t *old, const mp_boxes_t *boxes,
                                         const mp_loc_t *loc, mp_value_t **out_value);

// The same for boxes that may overlap and need not cover the value (elements that a part needs from
// its neighbours). The result does not become a version, because nothing else can be made from it.
MP_NODISCARD mp_status_t mp_versions_get_excerpt(mp_versions_t *versions,
                                                 const mp_spmd_scope_t *scope,
                                                 const mp_value_t *old, const mp_boxes_t *boxes,
                                                 const mp_loc_t *loc, mp_value_t **out_value);

// Whether there is a version with this placement.
bool mp_versions_has(const mp_versions_t *versions, const mp_value_t *old, const mp_boxes_t *boxes);

// The placement of the newest version that is in parts and no terms of a sum; NULL when there is
// none.
const mp_boxes_t *mp_versions_sharded(const mp_versions_t *versions, const mp_value_t *old);

#endif  // MINIPOD_SIM_SPMD_PARTITION_VERSIONS_H_
