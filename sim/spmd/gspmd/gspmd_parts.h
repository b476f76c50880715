// The state of an import of GSPMD's annotations, which the files of the room share.
#ifndef MINIPOD_SIM_SPMD_GSPMD_GSPMD_PARTS_H_
#define MINIPOD_SIM_SPMD_GSPMD_GSPMD_PARTS_H_

#include "sim/base/containers/hash_map.h"
#include "sim/ir/mesh.h"
#include "sim/ir/module.h"
#include "sim/spmd/gspmd/gspmd.h"

enum { MP_GSPMD_MAX_AXES = 16 };

// A tile dimension as axes of the mesh, major to minor.
typedef struct {
  uint32_t count;
  uint8_t axes[MP_GSPMD_MAX_AXES];
} mp_gspmd_axes_t;

// A distinct sharding string of the module.
typedef struct mp_gspmd_entry_s {
  mp_str_t text;
  mp_gspmd_sharding_t sharding;
  mp_gspmd_axes_t *dims;          // TILED: [num_dims]
  struct mp_gspmd_entry_s *next;  // of all
} mp_gspmd_entry_t;

typedef struct {
  uint64_t hash;  // of the text
  mp_gspmd_entry_t *entry;
} mp_gspmd_by_text_t;

typedef struct {
  mp_module_t *module;
  mp_arena_t *scratch;
  uint32_t num_partitions;
  mp_gspmd_entry_t *entries;  // list of all entries
  MP_HASH_MAP(mp_gspmd_by_text_t) by_text;
  const mp_mesh_t *mesh;       // the one mesh, of which all entries use axes
  const mp_axis_ref_t *names;  // [the mesh's axes]: the axis as a reference
  bool has_sdy;                // the module has annotations of Shardy too
  uint32_t num_borders;        // number of SPMDFullToShardShape and SPMDShardToFullShape calls
  mp_op_t **users;             // by value id: an op that uses it
  uint32_t *uses;              // by value id: how many operands it is
  uint32_t num_values;
} mp_gspmd_importer_t;

// ---- gspmd_mesh.c ----

// Finds the mesh of whose axes all entries are made, and sets `dims` of all entries. `*out_found`
// is false when there is no such mesh.
MP_NODISCARD mp_status_t mp_gspmd_find_mesh(mp_gspmd_importer_t *im, bool *out_found);

// ---- gspmd_entry.c ----

// The next element of a text with one sharding or a list of them; false after the last one. `*at`
// is the position to continue at, 0 at first.
bool mp_gspmd_next_element(mp_str_t text, size_t *at, mp_str_t *out_element);
// Makes entries of the shardings in a text that have none yet. INVALID_ARGUMENT.
MP_NODISCARD mp_status_t mp_gspmd_add_entries(mp_gspmd_importer_t *im, mp_str_t text);
// The entry of a sharding; NULL when there is none.
const mp_gspmd_entry_t *mp_gspmd_find_entry(const mp_gspmd_importer_t *im, mp_str_t text);
// The mesh of one device.
MP_NODISCARD mp_status_t mp_gspmd_maximal_mesh(mp_gspmd_importer_t *im, int64_t device,
                                               const mp_mesh_t **out_mesh);
// Whether the op is a custom call of this target.
bool mp_gspmd_is_call(const mp_op_t *op, const char *target);
// The entry of an op's sharding string; NULL when it has none.
const mp_gspmd_entry_t *mp_gspmd_entry_of(const mp_gspmd_importer_t *im, const mp_op_t *op);
// The entry as the Shardy sharding of a tensor of `type`. Dimensions in the op's unspecified_dims
// are open (`op` may be NULL), and axes that are not in the set `only` are left out.
MP_NODISCARD mp_status_t mp_gspmd_to_sdy(mp_gspmd_importer_t *im, const mp_gspmd_entry_t *entry,
                                         const mp_type_t *type, const mp_op_t *op, uint32_t only,
                                         mp_sdy_sharding_t *out_sharding);
// The set of the axes that an entry names as manual.
uint32_t mp_gspmd_manual_axes(const mp_gspmd_importer_t *im, const mp_gspmd_entry_t *entry);

// ---- gspmd_outline.c ----

// Moves manual operations of the entry function into a called function, if there are any. Values
// must be renumbered afterwards.
MP_NODISCARD mp_status_t mp_gspmd_outline(mp_module_t *module, mp_arena_t *scratch);

// ---- gspmd_manual.c ----

// Sets `*out_possible` to whether every border belongs to a call that can become a manual region.
// If so, and with `is_real`, makes the regions.
MP_NODISCARD mp_status_t mp_gspmd_make_regions(mp_gspmd_importer_t *im, bool is_real,
                                               bool *out_possible);

#endif  // MINIPOD_SIM_SPMD_GSPMD_GSPMD_PARTS_H_
