// The Shardings extension (type 19): how an executable's parameters and results are split over its
// partitions, as OpSharding messages.

#include "pjrt/pjrt_executable.h"
#include "sim/spmd/sharding/op_sharding.h"

mp_status_t mp_pjrt_write_sharding(mp_arena_t *arena, const mp_boxes_t *boxes, bool is_manual,
                                   bool spell_out, mp_strbuf_t *out) {
  if (is_manual) {
    mp_op_sharding_write_manual(out);
    return NULL;
  }
  bool is_grid = false;
  MP_RETURN_IF_ERROR(mp_op_sharding_write(arena, boxes, spell_out, out, &is_grid));
  if (is_grid) return NULL;
  return mp_status_make(MP_INTERNAL, "the parts of a value are not a grid");
}

static mp_status_t ext_shardings_list_one(mp_arena_t *arena, const mp_boxes_t *boxes,
                                          bool spell_out, const char **out_bytes,
                                          size_t *out_size) {
  *out_bytes = "";
  *out_size = 0;
  if (boxes == NULL) return NULL;
  mp_strbuf_t bytes;
  mp_strbuf_init(&bytes);
  mp_status_t status = mp_pjrt_write_sharding(arena, boxes, false, spell_out, &bytes);
  if (status == NULL) status = mp_strbuf_status(&bytes);
  if (status == NULL) {
    *out_bytes = mp_arena_strndup(arena, mp_strbuf_text(&bytes), bytes.size);
    *out_size = bytes.size;
    if (*out_bytes == NULL) status = mp_status_out_of_memory();
  }
  mp_strbuf_deinit(&bytes);
  return status;
}

static mp_status_t ext_shardings_list_all(const PJRT_Executable *executable,
                                          const mp_program_io_t *values, uint32_t count,
                                          const char ***out_shardings, size_t **out_sizes) {
  if (count == 0) return NULL;  // no list, not an empty one: the client tells them apart
  mp_arena_t *arena = executable->arena;
  const char **shardings = MP_ARENA_ARRAY(arena, const char *, count + 1);
  size_t *sizes = MP_ARENA_ARRAY(arena, size_t, count + 1);
  MP_RETURN_IF_NULL(shardings);
  MP_RETURN_IF_NULL(sizes);
  for (uint32_t i = 0; i < count; ++i) {
    MP_RETURN_IF_ERROR(ext_shardings_list_one(arena, values[i].sharding, executable->lists_devices,
                                              &shardings[i], &sizes[i]));
  }
  *out_shardings = shardings;
  *out_sizes = sizes;
  return NULL;
}

// A program of one partition has no shardings. For a program without outputs, jaxlib takes a
// missing list, but not an empty one.
mp_status_t mp_pjrt_list_shardings(PJRT_Executable *executable) {
  const mp_program_t *program = executable->program;
  if (program->num_partitions == 1) return NULL;
  MP_RETURN_IF_ERROR(ext_shardings_list_all(executable, program->params, program->num_params,
                                            &executable->parameter_shardings,
                                            &executable->parameter_sharding_sizes));
  if (program->num_results == 0) return NULL;
  return ext_shardings_list_all(executable, program->results, program->num_results,
                                &executable->output_shardings, &executable->output_sharding_sizes);
}

static PJRT_Error *ext_shardings_parameter_shardings(
    PJRT_Shardings_PJRT_Executable_ParameterShardings_Args *args) {
  if (args->executable == NULL) {
    return mp_pjrt_error(mp_pjrt_null_argument(__func__, "executable"));
  }
  args->num_parameters = args->executable->program->num_params;
  args->shardings = args->executable->parameter_shardings;
  args->sharding_sizes = args->executable->parameter_sharding_sizes;
  return NULL;
}

static PJRT_Error *ext_shardings_output_shardings(
    PJRT_Shardings_PJRT_Executable_OutputShardings_Args *args) {
  if (args->executable == NULL) {
    return mp_pjrt_error(mp_pjrt_null_argument(__func__, "executable"));
  }
  args->num_outputs = args->executable->program->num_results;
  args->shardings = args->executable->output_shardings;
  args->sharding_sizes = args->executable->output_sharding_sizes;
  return NULL;
}

PJRT_Shardings_Extension mp_pjrt_shardings_extension = {
    .base = {.struct_size = sizeof(PJRT_Shardings_Extension),
             .type = PJRT_Extension_Type_Shardings,
             .next = &mp_pjrt_abi_version_extension.base},
    .PJRT_Shardings_PJRT_Executable_ParameterShardings = ext_shardings_parameter_shardings,
    .PJRT_Shardings_PJRT_Executable_OutputShardings = ext_shardings_output_shardings,
};
