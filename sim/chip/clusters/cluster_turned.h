// How the result of a product that main returns lies where its kernel wrote it, on a TPU. Private
// to sim/chip.
#ifndef MINIPOD_SIM_CHIP_CLUSTERS_CLUSTER_TURNED_H_
#define MINIPOD_SIM_CHIP_CLUSTERS_CLUSTER_TURNED_H_

#include "sim/ir/module.h"

typedef enum {
  MP_CLUSTER_LAID,     // as main returns it
  MP_CLUSTER_RELAID,   // a copy behind the kernel moves rows: the same dimension is in the lanes
  MP_CLUSTER_CROSSED,  // a copy behind the kernel brings another dimension into the lanes
} mp_cluster_lay_t;

// What has to be done with `result`, an operand of main's terminator, that comes of `product`, a
// dot_general, through reshapes, transposes and ops element by element.
mp_cluster_lay_t mp_cluster_lay(const mp_value_t *result, const mp_op_t *product);

#endif  // MINIPOD_SIM_CHIP_CLUSTERS_CLUSTER_TURNED_H_
