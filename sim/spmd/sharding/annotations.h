// The sharding annotations of a module: finding, reading and writing them.
#ifndef MINIPOD_SIM_SPMD_SHARDING_ANNOTATIONS_H_
#define MINIPOD_SIM_SPMD_SHARDING_ANNOTATIONS_H_

#include "sim/base/arena.h"
#include "sim/base/containers/array.h"
#include "sim/base/status.h"
#include "sim/ir/module.h"

typedef struct {
  MP_ARRAY(const mp_mesh_t *) meshes;  // distinct by address
  bool has_gspmd;                      // some sharding is a GSPMD string
} mp_annotations_t;

// Whether an op returns its one operand, and only states its placement or layout: Shardy's
// constraints, and custom calls such as @Sharding or @annotate_device_placement.
bool mp_is_placement_op(const mp_op_t *op);

// The attribute sdy.sharding in the i-th dictionary of main's argument or result attributes; NULL
// when it has none, or when `dicts` is NULL.
const mp_attr_t *mp_annotation_of(const mp_attr_t *const *dicts, uint32_t i);

// Copies a dictionary of attributes (NULL: an empty one) with `attr` as its sharding, in place of
// any other.
MP_NODISCARD mp_status_t mp_annotation_set(mp_arena_t *arena, const mp_attr_t *dict,
                                           const mp_attr_t *attr, const mp_attr_t **out_dict);

// Make the attributes #sdy.sharding and #sdy.sharding_per_value. The shardings are not copied and
// must live as long as `arena`.
MP_NODISCARD mp_status_t mp_annotation_make(mp_arena_t *arena, const mp_sdy_sharding_t *sharding,
                                            const mp_attr_t **out_attr);
MP_NODISCARD mp_status_t mp_annotation_make_list(mp_arena_t *arena,
                                                 const mp_sdy_sharding_t *shardings, uint32_t count,
                                                 const mp_attr_t **out_attr);

// Collects the meshes that the module's annotations use, in the module's arena.
MP_NODISCARD mp_status_t mp_annotations_collect(mp_module_t *module, mp_annotations_t *out);

#endif  // MINIPOD_SIM_SPMD_SHARDING_ANNOTATIONS_H_
