// All steps from the bytes of a program to the program of a device, in one function.
#ifndef MINIPOD_SIM_PLAN_COMPILE_H_
#define MINIPOD_SIM_PLAN_COMPILE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/mosaic/kernel/mosaic_kernel.h"
#include "sim/plan/program.h"
#include "sim/readers/reader.h"

typedef struct {
  mp_program_form_t form;                 // of the bytes, for mp_compile
  uint32_t num_replicas, num_partitions;  // 0: the module's own number
  // CompileOptions' allow_spmd_sharding_propagation_to_output and …_to_parameters: no flag, one for
  // all values, or one for each. Borrowed during the call.
  const bool *propagate_to_results;
  uint32_t num_propagate_to_results;
  const bool *propagate_to_params;
  uint32_t num_propagate_to_params;
  // Nothing is fused (sim/fuse), and no loop becomes one command.
  bool op_by_op;
  // Every op is computed as written: without XLA's rewrites (sim/passes/xla/xla_values.h).
  bool as_written;
  // Keeps a copy of the partitioned program, from which models of time make the described chip's
  // program (mp_program_t.partitioned), and makes runs record the path of their control flow.
  bool keep_partitioned;
  // No loop becomes one command: for tests that replace the kernels of commands.
  bool open_loops;
  // Accepts calls of functions that are not registered: the program will only run for its shapes
  // (option `values`), which does not call them. Otherwise such a program is refused.
  bool absent_calls;
  // What Mosaic kernels are made for.
  mp_mosaic_target_t kernels;
  // The answers of custom partitioners in an earlier compilation of the same program
  // (mp_program_t.answers); then they are not asked again. NULL: they are asked. Borrowed.
  const mp_str_t *answers;
} mp_compile_request_t;

// Reads, verifies, rewrites, partitions and plans. The caller owns the program, which does not
// refer to `code`. Errors are those of the stages. Thread-safe.
MP_NODISCARD mp_status_t mp_compile(const void *code, size_t size,
                                    const mp_compile_request_t *request,
                                    mp_program_t **out_program);

// The same for a module that was read but not verified. The program owns the module afterwards; on
// failure it is released.
MP_NODISCARD mp_status_t mp_compile_module(mp_module_t *module, const mp_compile_request_t *request,
                                           mp_program_t **out_program);

#endif  // MINIPOD_SIM_PLAN_COMPILE_H_
