// The way of a program, in one function: bytes to a device program.
#ifndef MINIPOD_SIM_PLAN_COMPILE_H_
#define MINIPOD_SIM_PLAN_COMPILE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/plan/program.h"

typedef struct {
  uint32_t num_replicas, num_partitions;  // 0: as the module says
  // CompileOptions' allow_spmd_sharding_propagation_to_output and …_to_parameters: none, one for
  // all, or one each.
  const bool *propagate_to_results;
  uint32_t num_propagate_to_results;
  const bool *propagate_to_params;
  uint32_t num_propagate_to_params;
} mp_compile_request_t;

// Reads (bytecode or text), verifies, simplifies, partitions and plans. Thread-safe. Everything but
// the program dies before it returns.
MP_NODISCARD mp_status_t mp_compile(const void *code, size_t size,
                                    const mp_compile_request_t *request,
                                    mp_program_t **out_program);

// From a module that was read but not verified; adopts it, also on failure.
MP_NODISCARD mp_status_t mp_compile_module(mp_module_t *module, const mp_compile_request_t *request,
                                           mp_program_t **out_program);

#endif  // MINIPOD_SIM_PLAN_COMPILE_H_
