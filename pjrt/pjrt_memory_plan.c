// The memory that executables need: by minipod's own plan or, if time is modelled, by that of the
// described chip's compiler.

#include "pjrt/pjrt_executable.h"
#include "sim/chip/chip_program.h"

// ---- the described chip's memory ----

// Without a client there is no model, so the described chip's program is made here.
static mp_status_t pjrt_memory_plan_for_topology(PJRT_Executable *executable,
                                                 const PJRT_TopologyDescription *topology) {
  mp_chip_t chip;
  const mp_chip_program_t *chip_program = NULL;
  MP_RETURN_IF_ERROR(mp_chip_from_pod(mp_pod_info(topology->pod), &chip));
  MP_RETURN_IF_ERROR(
      mp_chip_program_create(&chip, executable->program, NULL, executable->arena, &chip_program));
  executable->memory = &chip_program->memory;
  return NULL;
}

mp_status_t mp_pjrt_executable_plan_memory(PJRT_Executable *executable,
                                           const PJRT_TopologyDescription *topology) {
  if (!topology->is_timed) return NULL;
  if (executable->executable != NULL) {
    executable->memory = mp_executable_memory(executable->executable);
  } else {
    MP_RETURN_IF_ERROR(pjrt_memory_plan_for_topology(executable, topology));
  }
  const mp_pod_device_t *device = mp_pod_device(topology->pod, 0);
  // Memory that is not described is this machine's, which says nothing about the chip.
  if (!device->is_shared[MP_MEMORY_DEVICE]) {
    MP_RETURN_IF_ERROR(mp_chip_memory_check(executable->memory, executable->program,
                                            device->capacity[MP_MEMORY_DEVICE]));
  }
  if (device->is_shared[MP_MEMORY_PINNED_HOST]) return NULL;
  return mp_chip_memory_check_host(executable->memory, executable->program,
                                   device->capacity[MP_MEMORY_PINNED_HOST]);
}

// ---- statistics ----

// Bytes per device that minipod's own program uses.
static mp_chip_memory_t pjrt_memory_plan_own(const mp_program_t *program) {
  mp_chip_memory_t memory = {.device.temporaries = program->arena_bytes};
  for (uint32_t i = 0; i < program->num_params; ++i) {
    const mp_program_io_t *io = &program->params[i];
    mp_chip_space_t *space = io->memory != MP_MEMORY_DEVICE ? &memory.host : &memory.device;
    space->arguments += io->bytes;
    if (io->alias >= 0) space->aliased += io->bytes;
  }
  for (uint32_t i = 0; i < program->num_results; ++i) {
    const mp_program_io_t *io = &program->results[i];
    (io->memory != MP_MEMORY_DEVICE ? &memory.host : &memory.device)->results += io->bytes;
  }
  return memory;
}

mp_status_t mp_PJRT_Executable_GetCompiledMemoryStats(
    PJRT_Executable_GetCompiledMemoryStats_Args *args) {
  MP_REQUIRE(args, executable);
  const PJRT_Executable *executable = args->executable;
  const mp_chip_memory_t memory =
      executable->memory != NULL ? *executable->memory : pjrt_memory_plan_own(executable->program);
  const int64_t temp = (int64_t)memory.device.temporaries;
  const int64_t total = (int64_t)mp_chip_space_total(&memory.device);
  args->generated_code_size_in_bytes = mp_pjrt_executable_code_size(executable->program);
  args->argument_size_in_bytes = (int64_t)memory.device.arguments;
  args->output_size_in_bytes = (int64_t)memory.device.results;
  args->alias_size_in_bytes = (int64_t)memory.device.aliased;
  args->temp_size_in_bytes = temp;
  args->host_generated_code_size_in_bytes = 0;
  args->host_argument_size_in_bytes = (int64_t)memory.host.arguments;
  args->host_output_size_in_bytes = (int64_t)memory.host.results;
  args->host_alias_size_in_bytes = (int64_t)memory.host.aliased;
  args->host_temp_size_in_bytes = (int64_t)memory.host.temporaries;
  if (MP_HAS(args, peak_memory_in_bytes)) args->peak_memory_in_bytes = total;
  if (MP_HAS(args, total_size_in_bytes)) args->total_size_in_bytes = total;
  if (MP_HAS(args, total_allocation_bytes)) args->total_allocation_bytes = total;
  if (MP_HAS(args, indefinite_allocations)) args->indefinite_allocations = 0;
  if (MP_HAS(args, peak_unpadded_heap_bytes)) args->peak_unpadded_heap_bytes = temp;
  return NULL;
}

int64_t mp_pjrt_executable_code_size(const mp_program_t *program) {
  uint64_t bytes = program->num_commands * sizeof(mp_cmd_t);
  for (uint32_t i = 0; i < program->num_constants; ++i) bytes += program->constants[i].bytes;
  return (int64_t)bytes;
}
