// How a compiler for TPUs has a table from which slices are looked up lie in memory, and which unit
// looks them up. Pure functions of verified gathers.
#ifndef MINIPOD_SIM_CHIP_FUSE_LOOKUP_H_
#define MINIPOD_SIM_CHIP_FUSE_LOOKUP_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/ir/module.h"
#include "topology/figures/figures.h"

typedef struct {
  int32_t lane;      // the table's dimension across the lanes of tiles; -1: any, of single elements
  double slices;     // that are looked up
  bool is_row;       // each is a row, or a part of one: no more than one dimension of a slice
  bool is_turned;    // not as arrays lie: the table is laid out anew before
  bool is_stepwise;  // slices begin anywhere in the lanes
  double padding;    // the size of the table in such tiles, as a multiple of its size
} mp_lookup_t;

mp_lookup_t mp_lookup_of_gather(const mp_op_t *op);

// Whether SparseCores look it up, from memory and into it.
bool mp_lookup_is_apart(const mp_chip_figures_t *figures, const mp_op_t *op);

// The bytes of the table in the form from which it is looked up.
double mp_lookup_form_bytes(const mp_op_t *op, const mp_lookup_t *lookup);

// Whether the table has to be brought into that form before: it is turned, or came as an argument
// in whose lanes another dimension lies, since that wastes less.
bool mp_lookup_is_formed(const mp_op_t *op, const mp_lookup_t *lookup);

#endif  // MINIPOD_SIM_CHIP_FUSE_LOOKUP_H_
