// Products of which each group of rows has a factor of its own (`ragged_dot`), as JAX writes them
// for any backend: all rows by each group's matrix, masked, and added up.
//
// Pure functions; thread-safe.
#ifndef MINIPOD_SIM_CHIP_COST_PRODUCT_RAGGED_H_
#define MINIPOD_SIM_CHIP_COST_PRODUCT_RAGGED_H_

#include "sim/chip/clusters/cluster.h"
#include "sim/chip/cost/chip.h"

// What the steps of such a product take at least; 0: it is none, or no figure says so.
double mp_product_ragged_seconds(const mp_chip_t *chip, const mp_cluster_t *cluster);

#endif  // MINIPOD_SIM_CHIP_COST_PRODUCT_RAGGED_H_
