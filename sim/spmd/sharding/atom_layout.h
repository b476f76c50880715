// Layouts: placements read back as atoms, which is what standard collectives can be planned with.
//
// A placement is boxes (placement.h), from whatever annotation. Where all its parts are equally
// large and its part numbers are digits of the partition id, it is also a layout: where each atom
// stands. Uneven parts and device orders of their own are no layouts.
#ifndef MINIPOD_SIM_SPMD_SHARDING_ATOM_LAYOUT_H_
#define MINIPOD_SIM_SPMD_SHARDING_ATOM_LAYOUT_H_

#include "sim/spmd/sharding/atoms.h"

// Where an atom stands when it is in no dimension: partitions that differ in it hold copies, or
// terms of a sum.
enum { MP_LAYOUT_COPIES = 0xFF, MP_LAYOUT_TERMS = 0xFE };

// Plain bytes, so that layouts are compared as such. Atoms beyond the space's are COPIES.
typedef struct {
  uint8_t dim[MP_MAX_ATOMS];
  uint8_t place[MP_MAX_ATOMS];  // in the dimension's list, 0 is the major one; else 0
} mp_layout_t;

enum { MP_MAX_SPACES = 24 };

// The spaces of atoms for this many partitions, one per order of the prime factors, at most
// `MP_MAX_SPACES`. Returns how many.
uint32_t mp_layout_spaces(uint32_t num_partitions, mp_atom_space_t *spaces);

// The layout of `boxes` (NULL: whole, all copies); false when they are none in this space.
bool mp_layout_from_boxes(const mp_atom_space_t *space, const mp_boxes_t *boxes,
                          mp_layout_t *out_layout);

// The atoms of a dimension, or those that stand for copies or terms (in the space's order).
mp_atoms_t mp_layout_atoms(const mp_atom_space_t *space, const mp_layout_t *layout, uint8_t dim);

// Puts `atoms` at the minor end of `dim`'s list, or among copies or terms; takes them from where
// they are, which must be the minor end of a list too.
void mp_layout_move(const mp_atom_space_t *space, mp_layout_t *layout, const mp_atoms_t *atoms,
                    uint8_t dim);

// The number of parts of a dimension.
int64_t mp_layout_parts(const mp_atom_space_t *space, const mp_layout_t *layout, uint8_t dim);

bool mp_layout_equal(const mp_layout_t *a, const mp_layout_t *b);

#endif  // MINIPOD_SIM_SPMD_SHARDING_ATOM_LAYOUT_H_
