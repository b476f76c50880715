// The bridge between the partitioner and the partitioners of clients (jax.experimental's
// custom_partitioning): questions become messages, and the program in an answer is read. Answers
// are recorded, and taken from an earlier record if there is one (partition_answers.h).
#ifndef MINIPOD_SIM_PLAN_PARTITIONERS_CUSTOM_PARTITION_H_
#define MINIPOD_SIM_PLAN_PARTITIONERS_CUSTOM_PARTITION_H_

#include "sim/spmd/partition/partition.h"

// The answers of one compilation. It begins with those of an earlier one, or none.
typedef struct {
  bool was_given;     // there is an earlier record: no partitioner is asked
  mp_str_t given;     // that record; borrowed
  mp_str_t left;      // the part of it that was not used yet
  mp_strbuf_t taken;  // the record of this compilation
} mp_plan_answers_t;

// For mp_partition_options_t.custom. `answers` must not change as long as the result is used.
mp_custom_partitioner_t mp_plan_custom_partitioner(mp_plan_answers_t *answers);

#endif  // MINIPOD_SIM_PLAN_PARTITIONERS_CUSTOM_PARTITION_H_
