// The bridge between the partitioner and the partitioners of clients (jax.experimental's
// custom_partitioning): questions become messages, and the program in an answer is read.
#ifndef MINIPOD_SIM_PLAN_CUSTOM_PARTITION_H_
#define MINIPOD_SIM_PLAN_CUSTOM_PARTITION_H_

#include "sim/spmd/partition/partition.h"

// For mp_partition_options_t.custom.
extern const mp_custom_partitioner_t mp_plan_custom_partitioner;

#endif  // MINIPOD_SIM_PLAN_CUSTOM_PARTITION_H_
