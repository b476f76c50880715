// Gathers on TPUs: the layout of the table, and the unit that runs the lookup. Pure functions of
// verified gathers.
#ifndef MINIPOD_SIM_CHIP_FUSE_LOOKUP_H_
#define MINIPOD_SIM_CHIP_FUSE_LOOKUP_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/ir/module.h"
#include "topology/figures/figures.h"

typedef struct {
  int32_t lane;    // the table's dimension in the lanes; -1: any, as slices are single elements
  double slices;   // the number of slices
  bool is_row;     // a slice has at most one dimension of several elements: a row or part of one
  bool is_turned;  // the table needs another layout than arrays have: it is copied first
  double padding;  // the table's size in such tiles, as a multiple of its size without padding
} mp_lookup_t;

mp_lookup_t mp_lookup_of_gather(const mp_op_t *op);

// Whether SparseCores run the gather, from HBM to HBM.
bool mp_lookup_is_apart(const mp_chip_figures_t *figures, const mp_op_t *op);

#endif  // MINIPOD_SIM_CHIP_FUSE_LOOKUP_H_
