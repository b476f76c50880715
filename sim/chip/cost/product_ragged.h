// Products of which each group of rows has a factor of its own (`ragged_dot`), as JAX writes them
// for any backend: all rows by each group's matrix, masked, and added up.
//
// Pure functions; thread-safe.
#ifndef MINIPOD_SIM_CHIP_COST_PRODUCT_RAGGED_H_
#define MINIPOD_SIM_CHIP_COST_PRODUCT_RAGGED_H_

#include "sim/chip/clusters/cluster.h"
#include "sim/chip/cost/chip.h"

// Where a compiler for TPUs makes such a kernel of it, `product` becomes what its steps multiply,
// and `out_steps` is what they take besides (else 0). They are those of the groups' own rows.
void mp_product_ragged(const mp_chip_t *chip, const mp_cluster_t *cluster,
                       mp_work_product_t *product, double *out_steps);

#endif  // MINIPOD_SIM_CHIP_COST_PRODUCT_RAGGED_H_
