// The partitioner makes the per-device program from the program of the whole arrays.
//
// Manual regions are per-device code already; they are taken out of their wrapper. Around them
// every value has *versions*: arrays on a device, each with the placement of its parts. Ops work on
// parts where their rules and local forms allow it (lower.h). Every other op gets its operands
// whole and is computed completely on each device, which is correct for all shardings. Slices,
// collectives and minipod.exchange make one version from another (reshard.h).
//
// The module must have been through mp_passes_prepare: `main` is its only function.
#ifndef MINIPOD_SIM_SPMD_PARTITION_PARTITION_H_
#define MINIPOD_SIM_SPMD_PARTITION_PARTITION_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/ir/module.h"
#include "sim/spmd/partition/partition_report.h"

// The program that a client's partitioner makes for a custom_call.
typedef struct {
  // Its main computes a device's part. It was verified and prepared, and the partitioned module
  // has adopted it.
  mp_module_t *module;
  // How main takes the operands and leaves the results, as GSPMD strings (gspmd.h).
  const mp_str_t *operand_shardings, *result_shardings;
} mp_custom_answer_t;

// The client's partitioners; the functions get `context`.
typedef struct {
  void *context;
  // Whether there is one for custom_calls of this target.
  bool (*knows)(void *context, mp_str_t target);
  // Asks it about a call with these placements of operands and results (NULL: whole). The answer is
  // in the module's arena.
  mp_status_t (*ask)(void *context, mp_module_t *module, const mp_op_t *op,
                     const mp_boxes_t *const *operands, const mp_boxes_t *const *results,
                     mp_custom_answer_t *out_answer);
} mp_custom_partitioner_t;

typedef struct {
  uint32_t num_partitions;
  // Whether a result without a sharding of its own may be sharded (CompileOptions'
  // allow_spmd_sharding_propagation_to_output: one for all, or one per result; none: false).
  const bool *propagate_to_results;
  uint32_t num_propagate_to_results;
  // The same for parameters (allow_spmd_sharding_propagation_to_parameters).
  const bool *propagate_to_params;
  uint32_t num_propagate_to_params;
  const mp_custom_partitioner_t *custom;  // NULL: there are none
} mp_partition_options_t;

// One parameter or result of the whole program.
typedef struct {
  const mp_type_t *global_type;
  const mp_boxes_t *boxes;  // NULL: every partition holds the whole value
} mp_partition_io_t;

// A call of InspectSharding: the program requests the sharding of a value.
typedef struct {
  const mp_loc_t *loc;
  mp_str_t config;          // the call's backend_config, which identifies the receiver
  const mp_boxes_t *boxes;  // of the value; NULL: whole
  bool is_manual;           // it is in a manual region, where a value is local to its device
} mp_inspected_t;

typedef struct {
  const mp_partition_io_t *params;   // [main's parameters], in the module's arena
  const mp_partition_io_t *results;  // [main's results]
  // The ops that are computed whole. The communication is counted later, when all passes have run
  // (mp_spmd_count_communication).
  mp_spmd_report_t report;
  const mp_inspected_t *inspected;  // [num_inspected], in program order
  uint32_t num_inspected;
} mp_partition_t;

// Partitions the module in place; everything is allocated in its arena. INVALID_ARGUMENT and
// UNIMPLEMENTED name the op, parameter or result.
MP_NODISCARD mp_status_t mp_spmd_partition(mp_module_t *module,
                                           const mp_partition_options_t *options,
                                           mp_partition_t *out_partition);

#endif  // MINIPOD_SIM_SPMD_PARTITION_PARTITION_H_
