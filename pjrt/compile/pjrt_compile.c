#include "pjrt/compile/pjrt_compile.h"

#include "sim/base/os/clock.h"
#include "sim/ir/print/print_module.h"
#include "sim/plan/compile.h"
#include "sim/readers/options/compile_options.h"
#include "sim/readers/options/libtpu_options.h"

static mp_status_t pjrt_compile_find_form(const mp_pjrt_source_t *source,
                                          mp_program_form_t *out_form) {
  if (source->code.size == 0) {
    return mp_status_make(MP_INVALID_ARGUMENT, "the program is empty");
  }
  if (mp_program_form_from_name(source->format, out_form)) return NULL;
  return mp_status_make(
      MP_INVALID_ARGUMENT,
      "unknown program form '%.*s'; 'mlir', 'hlo' and 'hlo_with_config' are known",
      MP_STR_ARG(source->format));
}

// The devices that the options name, in logical order; without an assignment the first ones.
static mp_status_t pjrt_compile_assign_devices(const mp_compile_options_t *options,
                                               uint32_t replicas, uint32_t partitions,
                                               uint32_t pod_devices, mp_arena_t *arena,
                                               mp_pjrt_compiled_t *out) {
  uint64_t count = (uint64_t)replicas * partitions;
  if (count > pod_devices) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "%u replicas of %u partitions need %llu devices, the pod has %u",
                          replicas, partitions, (unsigned long long)count, pod_devices);
  }
  bool is_given = options->assignment != NULL;
  if (is_given &&
      (options->assigned_replicas != replicas || options->assigned_partitions != partitions)) {
    return mp_status_make(
        MP_INVALID_ARGUMENT,
        "the device assignment is for %u replicas of %u partitions, the program has %u of %u",
        options->assigned_replicas, options->assigned_partitions, replicas, partitions);
  }
  out->num_devices = (uint32_t)count;
  out->assignment = MP_ARENA_ARRAY(arena, uint32_t, count);
  MP_RETURN_IF_NULL(out->assignment);
  for (uint32_t i = 0; i < count; ++i) out->assignment[i] = is_given ? options->assignment[i] : i;
  if (!is_given && count == 1 && options->device_ordinal >= 0) {
    out->assignment[0] = (uint32_t)options->device_ordinal;
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (out->assignment[i] < pod_devices) continue;
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "the device assignment names device %u, the pod has %u",
                          out->assignment[i], pod_devices);
  }
  return NULL;
}

static void pjrt_compile_log(const mp_pjrt_compiled_t *compiled, double began) {
  const mp_program_t *program = compiled->program;
  const double seconds = mp_clock_seconds() - began;
  // A compilation that takes this long keeps the user waiting.
  mp_log(seconds >= 10 ? MP_LOG_INFO : MP_LOG_DEBUG,
         "compiled %.*s in %.3f ms: %u replicas of %u partitions, %u commands (%u collectives, %u "
         "foreign calls), %llu bytes of temporaries",
         MP_STR_ARG(program->name), 1e3 * seconds, program->num_replicas, program->num_partitions,
         program->num_commands, program->num_collectives, program->num_calls,
         (unsigned long long)program->arena_bytes);
}

// Copies the flags of libtpu among the options into the program.
static mp_status_t pjrt_compile_keep_flags(const mp_compile_options_t *options,
                                           mp_program_t *program) {
  const uint32_t count = options->libtpu_flags.count;
  if (count == 0) return NULL;
  mp_str_t *flags = MP_ARENA_ARRAY(program->arena, mp_str_t, count);
  MP_RETURN_IF_NULL(flags);
  for (uint32_t i = 0; i < count; ++i) {
    const mp_str_t flag = options->libtpu_flags.items[i];
    flags[i] = (mp_str_t){mp_arena_strndup(program->arena, flag.data, flag.size), flag.size};
    MP_RETURN_IF_NULL(flags[i].data);
  }
  program->libtpu_flags = flags;
  program->num_libtpu_flags = count;
  return NULL;
}

// What kernels are made for, with the flags of libtpu among the options.
static mp_mosaic_target_t pjrt_compile_target(const mp_compile_options_t *options,
                                              mp_mosaic_target_t target) {
  for (uint32_t i = 0; i < options->libtpu_flags.count; ++i) {
    const uint64_t vmem = mp_libtpu_scoped_vmem(options->libtpu_flags.items[i]);
    if (vmem != 0) target.scoped_vmem = (int64_t)vmem;
  }
  return target;
}

mp_status_t mp_pjrt_compile(const mp_pjrt_source_t *source, uint32_t pod_devices, bool is_tpu,
                            const mp_compile_request_t *wishes, mp_arena_t *arena,
                            mp_pjrt_compiled_t *out_compiled) {
  mp_program_form_t form = MP_PROGRAM_MLIR;
  const double began = mp_clock_seconds();
  mp_compile_options_t options;
  MP_RETURN_IF_ERROR(pjrt_compile_find_form(source, &form));
  MP_RETURN_IF_ERROR(
      mp_compile_options_read(source->options.data, source->options.size, is_tpu, arena, &options));
  if (options.is_tupled && mp_str_is(source->format, "mlir")) {
    return mp_status_make(MP_UNIMPLEMENTED,
                          "compile options: parameter_is_tupled_arguments is only supported for "
                          "programs that are HLO protos");
  }
  mp_compile_request_t request = {
      .form = form,
      .num_replicas = options.num_replicas,
      .num_partitions = options.num_partitions,
      .propagate_to_results = options.propagate_to_output.items,
      .num_propagate_to_results = options.propagate_to_output.count,
      .propagate_to_params = options.propagate_to_parameters.items,
      .num_propagate_to_params = options.propagate_to_parameters.count,
      .op_by_op = wishes->op_by_op,
      .as_written = wishes->as_written || options.as_written,
      .keep_partitioned = wishes->keep_partitioned,
      .open_loops = wishes->open_loops,
      .absent_calls = wishes->absent_calls,
      .kernels = pjrt_compile_target(&options, wishes->kernels),
      .answers = source->is_stored ? &source->answers : NULL,
  };
  mp_pjrt_compiled_t compiled = {.uses_shardy = options.use_shardy_partitioner};
  MP_RETURN_IF_ERROR(mp_compile(source->code.data, source->code.size, &request, &compiled.program));
  mp_status_t status =
      pjrt_compile_assign_devices(&options, compiled.program->num_replicas,
                                  compiled.program->num_partitions, pod_devices, arena, &compiled);
  if (status == NULL) status = pjrt_compile_keep_flags(&options, compiled.program);
  if (status != NULL) {
    mp_program_release(compiled.program);
    return status;
  }
  pjrt_compile_log(&compiled, began);
  *out_compiled = compiled;
  return NULL;
}

mp_status_t mp_pjrt_print_program(const mp_program_t *program, const mp_attr_t *attrs, bool unfused,
                                  mp_strbuf_t *out_text) {
  mp_print_options_t options = {.locations = true, .unfused = unfused};
  if (unfused) {
    options.renamed[0] = MP_MOSAIC_KERNEL_TARGET;
    options.renamed[1] = MP_MOSAIC_TARGET;
  }
  mp_module_t module = *program->module;
  module.attrs = attrs;
  mp_spmd_report_print(&program->report, out_text);
  return mp_module_print(&module, &options, out_text);
}
