// The Shardings extension (type 19): how an executable's parameters and results are split over its
// partitions, as OpSharding messages.

#include "pjrt/executable.h"

mp_status_t mp_pjrt_list_shardings(PJRT_Executable *executable) {
  (void)executable;
  return NULL;
}

static PJRT_Error *parameter_shardings(
    PJRT_Shardings_PJRT_Executable_ParameterShardings_Args *args) {
  if (args->executable == NULL) {
    return mp_pjrt_error(mp_pjrt_null_argument(__func__, "executable"));
  }
  args->num_parameters = args->executable->program->num_params;
  args->shardings = args->executable->parameter_shardings;
  args->sharding_sizes = args->executable->parameter_sharding_sizes;
  return NULL;
}

static PJRT_Error *output_shardings(PJRT_Shardings_PJRT_Executable_OutputShardings_Args *args) {
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
             .type = PJRT_Extension_Type_Shardings},
    .PJRT_Shardings_PJRT_Executable_ParameterShardings = parameter_shardings,
    .PJRT_Shardings_PJRT_Executable_OutputShardings = output_shardings,
};
