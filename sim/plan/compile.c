#include "sim/plan/compile.h"

#include "sim/fuse/fuse.h"
#include "sim/ir/verify/module_check.h"
#include "sim/ir/verify/verify.h"
#include "sim/mosaic/kernel/mosaic_kernel.h"
#include "sim/passes/attention/attention.h"
#include "sim/passes/passes.h"
#include "sim/passes/xla/xla_values.h"
#include "sim/plan/call_layouts.h"
#include "sim/plan/partitioners/custom_partition.h"
#include "sim/plan/plan.h"
#include "sim/readers/reader.h"
#include "sim/spmd/gspmd/gspmd_import.h"
#include "sim/spmd/partition/partition.h"

enum { MP_MAX_LOGICAL_DEVICES = 65536 };

static mp_status_t compile_check_grid(uint32_t replicas, uint32_t partitions) {
  if (replicas == 0 || partitions == 0 ||
      (uint64_t)replicas * partitions > MP_MAX_LOGICAL_DEVICES) {
    return mp_status_make(MP_INVALID_ARGUMENT, "a program for %u replicas x %u partitions",
                          replicas, partitions);
  }
  return NULL;
}

// Partitions the module, and keeps the answers of custom partitioners.
static mp_status_t compile_partition(mp_module_t *module, const mp_compile_request_t *request,
                                     mp_plan_options_t *options) {
  mp_plan_answers_t answers = {.was_given = false};
  if (request->answers != NULL) {
    answers.was_given = true;
    answers.given = answers.left = *request->answers;
  }
  mp_strbuf_init(&answers.taken);
  const mp_custom_partitioner_t custom = mp_plan_custom_partitioner(&answers);
  const mp_partition_options_t partition = {
      options->num_partitions,           request->propagate_to_results,
      request->num_propagate_to_results, request->propagate_to_params,
      request->num_propagate_to_params,  &custom};
  mp_status_t status = mp_spmd_partition(module, &partition, &options->partition);
  if (status == NULL) status = mp_strbuf_status(&answers.taken);
  if (status == NULL && answers.taken.size != 0) {
    options->answers.size = answers.taken.size;
    options->answers.data =
        mp_arena_strndup(module->arena, mp_strbuf_text(&answers.taken), answers.taken.size);
    if (options->answers.data == NULL) status = mp_status_out_of_memory();
  }
  mp_strbuf_deinit(&answers.taken);
  return status;
}

// Then simplifies the new ops by the passes that the program has already been through.
static mp_status_t compile_open_attention(mp_module_t *module) {
  bool is_changed = false;
  MP_RETURN_IF_ERROR(mp_pass_open_attention(module, &is_changed));
  if (!is_changed) return NULL;
  MP_RETURN_IF_ERROR(mp_pass_transposes(module));
  MP_RETURN_IF_ERROR(mp_pass_fold(module));
  return mp_pass_dead_code(module);
}

// Makes the program that this machine runs. Its fusions are this machine's alone: the described
// chip's program has its own.
static mp_status_t compile_for_machine(mp_module_t *module, const mp_compile_request_t *request,
                                       mp_plan_options_t *options, mp_program_t **out_program) {
  MP_RETURN_IF_ERROR(
      (request->absent_calls ? mp_pass_close_kernels : mp_pass_open_kernels)(module));
  if (!request->absent_calls) {
    MP_RETURN_IF_ERROR(compile_open_attention(module));
    MP_RETURN_IF_ERROR(mp_mosaic_claim_calls(module));
  }
  mp_module_check_verified(module);
  if (!request->op_by_op) MP_RETURN_IF_ERROR(mp_fuse(module));
  MP_RETURN_IF_ERROR(mp_pass_unit_broadcasts(module));
  mp_module_check_verified(module);
  MP_RETURN_IF_ERROR(mp_spmd_count_communication(module, &options->partition.report));
  return mp_plan_create(module, options, out_program);
}

// Prepares the copy from which the described chip's program is made. NULL: none was requested.
static mp_status_t compile_for_chip(mp_module_t *partitioned) {
  if (partitioned == NULL) return NULL;
  MP_RETURN_IF_ERROR(mp_pass_close_kernels(partitioned));
  return mp_pass_find_host_values(partitioned);
}

static mp_status_t compile_rewrite(mp_module_t *module, const mp_compile_request_t *request) {
  return request->as_written ? NULL : mp_pass_xla_values(module);
}

static mp_status_t compile(mp_module_t *module, const mp_compile_request_t *request,
                           mp_program_t **out_program) {
  mp_plan_options_t options = {
      .num_replicas = request->num_replicas != 0 ? request->num_replicas : module->num_replicas,
      .num_partitions =
          request->num_partitions != 0 ? request->num_partitions : module->num_partitions,
      .answers = MP_STR(""),
      .open_loops = request->op_by_op || request->open_loops,
      .absent_calls = request->absent_calls,
      .kernels = request->kernels,
  };
  MP_RETURN_IF_ERROR(compile_check_grid(options.num_replicas, options.num_partitions));
  module->num_replicas = options.num_replicas;
  MP_RETURN_IF_ERROR(mp_module_verify(module));
  MP_RETURN_IF_ERROR(mp_spmd_import_gspmd(module, options.num_partitions));
  mp_module_check(module);
  MP_RETURN_IF_ERROR(mp_passes_prepare(module));
  MP_RETURN_IF_ERROR(compile_rewrite(module, request));
  // The verifier runs a second time, because dynamic operations and einsum can be checked only
  // after desugaring.
  MP_RETURN_IF_ERROR(mp_module_verify(module));
  MP_RETURN_IF_ERROR(compile_partition(module, request, &options));
  // Again, because sharding constraints no longer separate operations.
  MP_RETURN_IF_ERROR(compile_rewrite(module, request));
  mp_module_check_verified(module);
  if (!request->keep_partitioned) MP_RETURN_IF_ERROR(mp_pass_drop_placements(module));
  MP_RETURN_IF_ERROR(mp_plan_lay_out_calls(module));
  mp_module_check_verified(module);
  MP_RETURN_IF_ERROR(mp_passes_finish(module));
  if (request->keep_partitioned) {
    MP_RETURN_IF_ERROR(mp_module_number_control(module));
    MP_RETURN_IF_ERROR(mp_module_copy_main(module, &options.partitioned));
  }
  mp_status_t status = compile_for_chip(options.partitioned);
  if (status == NULL) status = mp_pass_drop_placements(module);
  if (status == NULL) status = compile_for_machine(module, request, &options, out_program);
  if (status != NULL) mp_module_release(options.partitioned);
  return status;
}

mp_status_t mp_compile_module(mp_module_t *module, const mp_compile_request_t *request,
                              mp_program_t **out_program) {
  mp_status_t status = compile(module, request, out_program);
  if (status != NULL) mp_module_release(module);
  return status;
}

mp_status_t mp_compile(const void *code, size_t size, const mp_compile_request_t *request,
                       mp_program_t **out_program) {
  mp_module_t *module = NULL;
  MP_RETURN_IF_ERROR(mp_read_program(code, size, request->form, &module));
  return mp_compile_module(module, request, out_program);
}
