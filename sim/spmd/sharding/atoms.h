// Atoms: the partitioner's own form of a sharding.
//
// The id of one of N = p0*p1*...*pk partitions is written as a number in mixed radix with prime
// digits, the major digit first; each digit is an atom. A mesh axis is a sequence of consecutive
// atoms and a sub-axis a shorter one, so that prefixes, overlaps and divisibility can be decided on
// short lists of small integers. A dimension that is sharded over a list of atoms (major to minor)
// has as many parts as the product of their primes, and the number of the part that a partition
// holds is its digits read along the list.
//
// The devices of a mesh may be in another order (device_ids). The digits are then those of a
// partition's *position* in that order; all meshes of one space have the same order.
//
// All types are plain values without ownership; a space is immutable and may be shared.
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
  int64_t stride[MP_MAX_ATOMS];  // the digit is position / stride % prime
  const int64_t *positions;      // [num_partitions]; NULL: a partition's position is its id
} mp_atom_space_t;

typedef struct {
  uint8_t count;
  uint8_t atoms[MP_MAX_ATOMS];  // major to minor
} mp_atoms_t;

typedef struct {
  mp_atoms_t atoms;
  bool is_open;  // propagation may add atoms
  // The user's priority: 0 propagates first. Until its round, a dimension counts as not sharded
  // (propagate.c).
  int64_t priority;
} mp_dim_atoms_t;

// An atom occurs at most once over all dimensions and sets.
typedef struct mp_atom_sharding_s {
  // The mesh whose axes the atoms represent; NULL until a sharding has reached this value.
  // Shardings over different meshes do not propagate to each other, even if their atoms are the
  // same.
  const mp_mesh_t *mesh;
  uint32_t rank;
  uint32_t replicated;  // bit sets of atoms
  uint32_t unreduced;
  uint32_t unreduced_kind;  // how the terms are combined: MP_UNREDUCED_SUM, ...
  uint32_t manual;
  mp_dim_atoms_t *dims;  // [rank]
  // The next member of its sharding group, in a circle; what one member gets, all get. NULL: it is
  // in no group.
  struct mp_atom_sharding_s *next_in_group;
} mp_atom_sharding_t;

// Makes the space in which every axis of these meshes is a sequence of atoms. `*out_found` is false
// when there is none: for meshes that do not nest (2x3 and 3x2) or have different orders of
// devices.
MP_NODISCARD mp_status_t mp_atom_space_create(mp_arena_t *arena, const mp_mesh_t *const *meshes,
                                              uint32_t num_meshes, uint32_t num_partitions,
                                              mp_atom_space_t *out_space, bool *out_found);

// Appends the atoms of an axis or sub-axis to `list`; false when it is no sequence of atoms.
bool mp_atoms_of_axis(const mp_atom_space_t *space, const mp_mesh_t *mesh,
                      const mp_axis_ref_t *axis, mp_atoms_t *list);

// Makes a sharding of `rank` dimensions without atoms, which are all open or all closed.
MP_NODISCARD mp_status_t mp_atom_sharding_create(mp_arena_t *arena, uint32_t rank, bool is_open,
                                                 mp_atom_sharding_t **out_sharding);

// Makes a sharding from Shardy's form. Atoms in the set `manual` are left out of the dimensions.
// `*out_found` is false when the space cannot express it.
MP_NODISCARD mp_status_t mp_atom_sharding_import(mp_arena_t *arena, const mp_atom_space_t *space,
                                                 const mp_sdy_sharding_t *sharding, uint32_t manual,
                                                 mp_atom_sharding_t **out_sharding,
                                                 bool *out_found);

// Converts a sharding back to Shardy's form, with axes and sub-axes of its mesh, which must not be
// NULL.
MP_NODISCARD mp_status_t mp_atom_sharding_export(mp_arena_t *arena, const mp_atom_space_t *space,
                                                 const mp_atom_sharding_t *sharding,
                                                 mp_sdy_sharding_t *out_sharding);

// Makes a copy that shares nothing with the original and is in no group.
MP_NODISCARD mp_status_t mp_atom_sharding_copy(mp_arena_t *arena, const mp_atom_sharding_t *from,
                                               mp_atom_sharding_t **out_sharding);

// Copies a sharding that has changed to the other members of its group.
void mp_atom_sharding_share(const mp_atom_sharding_t *sharding);

// The boxes of a tensor of `type` under the sharding; NULL when every partition of the scope holds
// it all.
MP_NODISCARD mp_status_t mp_atom_sharding_boxes(const mp_atom_space_t *space,
                                                const mp_spmd_scope_t *scope, const mp_type_t *type,
                                                const mp_atom_sharding_t *sharding,
                                                const mp_boxes_t **out_boxes);

// Appends atoms of `from`, beginning at *next, to `to` as long as they divide the rest of a factor
// of `size`, and moves *next past them. If the factor may be sharded unevenly, because it is the
// minor one of its dimension, all atoms are appended. Returns the rest of the factor: 1 when it is
// fully sharded, and the whole size if it may be uneven.
int64_t mp_atoms_take(const mp_atom_space_t *space, const mp_atoms_t *from, uint32_t *next,
                      int64_t size, bool may_be_uneven, mp_atoms_t *to);

// The number of parts into which the atoms cut a dimension: the product of their primes.
int64_t mp_atoms_product(const mp_atom_space_t *space, const mp_atoms_t *atoms);
// The atoms of a list as a set, one bit per atom.
uint32_t mp_atoms_set(const mp_atoms_t *atoms);
// The number of the part that a partition holds: its digits read along the list.
int64_t mp_atoms_number(const mp_atom_space_t *space, const mp_atoms_t *atoms, uint32_t partition);
// The number of atoms at the beginning of both lists that are the same.
uint32_t mp_atoms_common_prefix(const mp_atoms_t *a, const mp_atoms_t *b);
// Whether every part is in the same place; atoms that propagation may still add do not count.
bool mp_atom_sharding_equal(const mp_atom_sharding_t *a, const mp_atom_sharding_t *b);
// Whether everything is equal, including mesh, open dimensions, priorities and sets.
bool mp_atom_sharding_identical(const mp_atom_sharding_t *a, const mp_atom_sharding_t *b);
// The set of the atoms in its dimensions.
uint32_t mp_atom_sharding_used(const mp_atom_sharding_t *sharding);

// For assertions: whether the atoms exist in the space, and none is in two places.
bool mp_atom_sharding_is_sound(const mp_atom_space_t *space, const mp_atom_sharding_t *sharding);

#endif  // MINIPOD_SIM_SPMD_SHARDING_ATOMS_H_
