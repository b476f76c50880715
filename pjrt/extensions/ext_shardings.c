// The Shardings extension (type 19): the shardings of an executable's parameters and results, as
// OpSharding messages.

#include "pjrt/extensions/extensions.h"

static PJRT_Error *ext_shardings_parameter_shardings(
    PJRT_Shardings_PJRT_Executable_ParameterShardings_Args *args) {
  MP_EXTENSION_REQUIRE(args, executable);
  args->num_parameters = args->executable->program->num_params;
  args->shardings = args->executable->parameter_shardings;
  args->sharding_sizes = args->executable->parameter_sharding_sizes;
  return NULL;
}

static PJRT_Error *ext_shardings_output_shardings(
    PJRT_Shardings_PJRT_Executable_OutputShardings_Args *args) {
  MP_EXTENSION_REQUIRE(args, executable);
  args->num_outputs = args->executable->program->num_results;
  args->shardings = args->executable->output_shardings;
  args->sharding_sizes = args->executable->output_sharding_sizes;
  return NULL;
}

MP_PJRT_EXTENSION(Shardings, shardings) = {
    MP_PJRT_EXTENSION_BASE(Shardings),
    .PJRT_Shardings_PJRT_Executable_ParameterShardings = ext_shardings_parameter_shardings,
    .PJRT_Shardings_PJRT_Executable_OutputShardings = ext_shardings_output_shardings,
};
