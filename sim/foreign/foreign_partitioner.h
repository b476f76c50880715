// Custom partitioners: functions of a client that choose the per-device program of a custom_call
// (jax.experimental.custom_partitioning). Registered per process and for ever, like foreign
// functions.
//
// Thread-safe.
#ifndef MINIPOD_SIM_FOREIGN_FOREIGN_PARTITIONER_H_
#define MINIPOD_SIM_FOREIGN_FOREIGN_PARTITIONER_H_

#include "sim/base/status.h"
#include "sim/base/str.h"

// An array of the whole program: a ShapeProto message, and an OpSharding message.
typedef struct {
  mp_str_t shape, sharding;
} mp_foreign_aval_t;

// The question to a partitioner. Everything is borrowed during the call.
typedef struct {
  uint32_t num_operands;
  const mp_foreign_aval_t *operands;  // [num_operands]
  mp_foreign_aval_t result;           // of several results: a tuple's
  mp_str_t config;                    // the call's backend_config
} mp_foreign_question_t;

// Its answer. The partitioner owns the texts; they are valid until `cleanup`(data) is called.
typedef struct {
  mp_str_t module;                    // MLIR: `main` computes a device's part
  const mp_str_t *operand_shardings;  // [num_operands] the OpShardings in which main takes them
  mp_str_t result_sharding;           // the OpSharding of what main returns
  void (*cleanup)(void *data);        // NULL: there is nothing to clean up
  void *data;
} mp_foreign_answer_t;

// Asks `partitioner`. Errors are the partitioner's.
typedef mp_status_t (*mp_foreign_ask_t)(void *partitioner, const mp_foreign_question_t *question,
                                        mp_foreign_answer_t *out_answer);

typedef struct mp_foreign_partitioner_s {
  const struct mp_foreign_partitioner_s *next;
  mp_str_t name;
  mp_foreign_ask_t ask;
  void *partitioner;
} mp_foreign_partitioner_t;

// Registers a partitioner for custom_calls of this target; a later one replaces an earlier one of
// the same name. INVALID_ARGUMENT without a name.
MP_NODISCARD mp_status_t mp_foreign_register_partitioner(mp_str_t name, mp_foreign_ask_t ask,
                                                         void *partitioner);
// The newest partitioner of this name; NULL when there is none.
const mp_foreign_partitioner_t *mp_foreign_find_partitioner(mp_str_t name);

#endif  // MINIPOD_SIM_FOREIGN_FOREIGN_PARTITIONER_H_
