// Layouts: placements in terms of atoms, for planning standard collectives.
//
// A placement is boxes (placement.h), whatever annotation it comes from. If all of its parts are
// equally large, and the part numbers consist of digits of the partition id, it is also a layout:
// the dimension that each atom cuts. Placements with uneven parts or other orders of devices are no
// layouts.
#ifndef MINIPOD_SIM_SPMD_SHARDING_ATOM_LAYOUT_H_
#define MINIPOD_SIM_SPMD_SHARDING_ATOM_LAYOUT_H_

#include "sim/spmd/sharding/atoms.h"

// The "dimension" of an atom that cuts none: partitions that differ in it hold copies, or terms of
// a sum.
enum { MP_LAYOUT_COPIES = 0xFF, MP_LAYOUT_TERMS = 0xFE };

// Layouts are plain bytes and are compared as such. Entries of atoms that the space does not have
// are COPIES.
typedef struct {
  uint8_t dim[MP_MAX_ATOMS];
  uint8_t place[MP_MAX_ATOMS];  // in the dimension's list, where 0 is the major one; otherwise 0
} mp_layout_t;

enum { MP_MAX_SPACES = 24 };

// Makes the spaces of atoms for this many partitions, one per order of the prime factors, at most
// MP_MAX_SPACES; `spaces` has room for these. Returns how many there are.
uint32_t mp_layout_spaces(uint32_t num_partitions, mp_atom_space_t *spaces);

// The layout of `boxes` (NULL: whole); false when they are no layout in this space.
bool mp_layout_from_boxes(const mp_atom_space_t *space, const mp_boxes_t *boxes,
                          mp_layout_t *out_layout);

// The atoms of a dimension, or those that stand for copies or terms, which are in the space's
// order.
mp_atoms_t mp_layout_atoms(const mp_atom_space_t *space, const mp_layout_t *layout, uint8_t dim);

// Moves `atoms` to the minor end of `dim`'s list, or to the copies or terms. If they are in the
// list of a dimension before, they must be at its minor end.
void mp_layout_move(const mp_atom_space_t *space, mp_layout_t *layout, const mp_atoms_t *atoms,
                    uint8_t dim);

// The number of parts into which a dimension is cut.
int64_t mp_layout_parts(const mp_atom_space_t *space, const mp_layout_t *layout, uint8_t dim);

// Whether both are the same layout.
bool mp_layout_equal(const mp_layout_t *a, const mp_layout_t *b);

#endif  // MINIPOD_SIM_SPMD_SHARDING_ATOM_LAYOUT_H_
