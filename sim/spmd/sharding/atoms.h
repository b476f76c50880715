// Atoms: the partitioner's one form of a sharding.
//
// A partition id of N = p0*p1*...*pk partitions is written in mixed radix with prime digits, major
// digit first; each digit is an atom. A mesh axis is a run of consecutive atoms, a sub-axis a
// shorter run, so that all questions of prefix, overlap and divisibility become questions about
// short lists of small integers. A dimension that is sharded over a list of atoms (major to minor)
// has as many parts as the product of their primes, and a partition's part number is its digits
// read along the list.
//
// Meshes that number their devices otherwise (device_ids) have digits of a partition's *position*;
// one space knows one such order.
//
// Plain values, no ownership; a space is immutable and shared.
#ifndef MINIPOD_SIM_SPMD_SHARDING_ATOMS_H_
#define MINIPOD_SIM_SPMD_SHARDING_ATOMS_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/status.h"
#include "sim/ir/module.h"
#include "sim/spmd/sharding/placement.h"

enum { MP_MAX_ATOMS = 16 };  // 2^16 partitions at most

typedef struct {
  uint32_t num_partitions;
  uint32_t count;
  int64_t prime[MP_MAX_ATOMS];
  int64_t stride[MP_MAX_ATOMS];  // of the digit in the partition's position
  const int64_t *positions;      // [num_partitions]; NULL: a partition's position is its id
} mp_atom_space_t;

typedef struct {
  uint8_t count;
  uint8_t atoms[MP_MAX_ATOMS];  // major to minor
} mp_atoms_t;

typedef struct {
  mp_atoms_t atoms;
  bool is_open;  // propagation may add atoms
  int64_t
      priority;  // 0: flows first; what waits for a later round is not yet counted (propagate.c)
} mp_dim_atoms_t;

// An atom occurs at most once over all dimensions and sets.
typedef struct mp_atom_sharding_s {
  // Whose axes the atoms stand for; NULL: nothing has reached this value yet. Shardings over
  // different meshes do not mix, although their atoms may be the same.
  const mp_mesh_t *mesh;
  uint32_t rank;
  uint32_t replicated;  // bit sets of atoms
  uint32_t unreduced;
  uint32_t manual;
  mp_dim_atoms_t *dims;  // [rank]
  // The other members of its sharding group in a circle: what one gets all get. NULL: no group.
  struct mp_atom_sharding_s *next_in_group;
} mp_atom_sharding_t;

// The space in which every axis of these meshes is a run of atoms. `out_found` is false when there
// is none: meshes that do not nest (2x3 beside 3x2) or number their devices differently.
MP_NODISCARD mp_status_t mp_atom_space_create(mp_arena_t *arena, const mp_mesh_t *const *meshes,
                                              uint32_t num_meshes, uint32_t num_partitions,
                                              mp_atom_space_t *out_space, bool *out_found);

// The atoms of a (sub-)axis, appended to `list`; false when it is no run of atoms.
bool mp_atoms_of_axis(const mp_atom_space_t *space, const mp_mesh_t *mesh,
                      const mp_axis_ref_t *axis, mp_atoms_t *list);

// A new sharding of `rank` dimensions, without atoms; all open or all closed.
MP_NODISCARD mp_status_t mp_atom_sharding_create(mp_arena_t *arena, uint32_t rank, bool is_open,
                                                 mp_atom_sharding_t **out_sharding);

// From Shardy's form; atoms in the set `manual` are left out of the dimensions. `out_found` is
// false when it cannot be said in this space.
MP_NODISCARD mp_status_t mp_atom_sharding_import(mp_arena_t *arena, const mp_atom_space_t *space,
                                                 const mp_sdy_sharding_t *sharding, uint32_t manual,
                                                 mp_atom_sharding_t **out_sharding,
                                                 bool *out_found);

// Back to Shardy's form, with axes and sub-axes of the sharding's mesh, which must not be
// NULL.
MP_NODISCARD mp_status_t mp_atom_sharding_export(mp_arena_t *arena, const mp_atom_space_t *space,
                                                 const mp_atom_sharding_t *sharding,
                                                 mp_sdy_sharding_t *out_sharding);

// A copy that shares nothing and is in no group.
MP_NODISCARD mp_status_t mp_atom_sharding_copy(mp_arena_t *arena, const mp_atom_sharding_t *from,
                                               mp_atom_sharding_t **out_sharding);

// Gives the other members of its group what the sharding has become.
void mp_atom_sharding_share(const mp_atom_sharding_t *sharding);

// The boxes of a tensor of `type` under the sharding; NULL when every partition of the scope holds
// it all.
MP_NODISCARD mp_status_t mp_atom_sharding_boxes(const mp_atom_space_t *space,
                                                const mp_spmd_scope_t *scope, const mp_type_t *type,
                                                const mp_atom_sharding_t *sharding,
                                                const mp_boxes_t **out_boxes);

// Moves atoms from `from`, beginning at *next, to `to` while they divide what is left of a factor
// of `size`; all of them when the factor may be sharded unevenly (the minor one of its dimension).
// Returns what is left of the factor: 1 when it is fully sharded, and for an uneven one its size.
int64_t mp_atoms_take(const mp_atom_space_t *space, const mp_atoms_t *from, uint32_t *next,
                      int64_t size, bool may_be_uneven, mp_atoms_t *to);

// The number of parts that the atoms make.
int64_t mp_atoms_product(const mp_atom_space_t *space, const mp_atoms_t *atoms);
uint32_t mp_atoms_set(const mp_atoms_t *atoms);
// A partition's digits read along the list: the number of the part it holds.
int64_t mp_atoms_number(const mp_atom_space_t *space, const mp_atoms_t *atoms, uint32_t partition);
uint32_t mp_atoms_common_prefix(const mp_atoms_t *a, const mp_atoms_t *b);
// The same places for every part, whatever propagation may still add.
bool mp_atom_sharding_equal(const mp_atom_sharding_t *a, const mp_atom_sharding_t *b);
// The same annotation: also mesh, open dimensions, priorities and sets.
bool mp_atom_sharding_identical(const mp_atom_sharding_t *a, const mp_atom_sharding_t *b);
// The union of the atoms in its dimensions.
uint32_t mp_atom_sharding_used(const mp_atom_sharding_t *sharding);

// For assertions only: the atoms exist in the space, and none is in two dimensions.
bool mp_atom_sharding_is_sound(const mp_atom_space_t *space, const mp_atom_sharding_t *sharding);
// Appends `[{0,1}, {?}]`: the atoms per dimension, `?` for open ones.
void mp_atom_sharding_print(const mp_atom_sharding_t *sharding, mp_strbuf_t *out);

#endif  // MINIPOD_SIM_SPMD_SHARDING_ATOMS_H_
