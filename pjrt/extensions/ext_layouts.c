// The Layouts extension (type 4). The objects are those of pjrt_layout.c, which are never freed:
// destroying them has no effect.

#include "pjrt/extensions/extensions.h"

static PJRT_Error *ext_layouts_layout_destroy(PJRT_Layouts_MemoryLayout_Destroy_Args *args) {
  (void)args;
  return NULL;
}

static void ext_layouts_delete_serialized(PJRT_Layouts_SerializedLayout *serialized) {
  (void)serialized;
}

static PJRT_Error *ext_layouts_layout_serialize(PJRT_Layouts_MemoryLayout_Serialize_Args *args) {
  MP_EXTENSION_REQUIRE(args, layout);
  args->serialized_bytes = args->layout->text;
  args->serialized_bytes_size = strlen(args->layout->text);
  args->serialized_layout = (PJRT_Layouts_SerializedLayout *)args->layout;
  args->serialized_layout_deleter = ext_layouts_delete_serialized;
  return NULL;
}

static PJRT_Error *ext_layouts_default_layout(PJRT_Buffer_Type type, const int64_t *dims,
                                              size_t num_dims,
                                              PJRT_Layouts_MemoryLayout **out_layout) {
  mp_dtype_t dtype = MP_DTYPE_INVALID;
  mp_status_t status =
      mp_pjrt_check_shape("PJRT_Layouts_GetDefaultLayout", type, dims, num_dims, &dtype);
  if (status == NULL) status = mp_pjrt_layout_row_major(num_dims, out_layout);
  return mp_pjrt_error(status);
}

static PJRT_Error *ext_layouts_client_default(
    PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args *args) {
  return ext_layouts_default_layout(args->type, args->dims, args->num_dims, &args->layout);
}

static PJRT_Error *ext_layouts_topology_default(
    PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args *args) {
  return ext_layouts_default_layout(args->type, args->dims, args->num_dims, &args->layout);
}

static PJRT_Error *ext_layouts_buffer_layout(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args *args) {
  MP_EXTENSION_REQUIRE(args, buffer);
  if (mp_pjrt_buffer_layout(args->buffer) != NULL) {
    args->layout = (PJRT_Layouts_MemoryLayout *)mp_pjrt_buffer_layout(args->buffer);
    return NULL;
  }
  return mp_pjrt_error(
      mp_pjrt_layout_row_major(mp_buffer_type(args->buffer->buffer)->rank, &args->layout));
}

static PJRT_Error *ext_layouts_output_layouts(
    PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args *args) {
  MP_EXTENSION_REQUIRE(args, executable);
  args->num_outputs = args->executable->program->num_results;
  args->layouts = args->executable->output_layouts;
  return NULL;
}

static PJRT_Error *ext_layouts_parameter_layouts(
    PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args *args) {
  MP_EXTENSION_REQUIRE(args, executable);
  args->num_parameters = args->executable->program->num_params;
  args->layouts = args->executable->parameter_layouts;
  return NULL;
}

MP_PJRT_EXTENSION(Layouts, layouts) = {
    MP_PJRT_EXTENSION_BASE(Layouts),
    .PJRT_Layouts_MemoryLayout_Destroy = ext_layouts_layout_destroy,
    .PJRT_Layouts_MemoryLayout_Serialize = ext_layouts_layout_serialize,
    .PJRT_Layouts_PJRT_Client_GetDefaultLayout = ext_layouts_client_default,
    .PJRT_Layouts_PJRT_Buffer_MemoryLayout = ext_layouts_buffer_layout,
    .PJRT_Layouts_PJRT_Topology_GetDefaultLayout = ext_layouts_topology_default,
    .PJRT_Layouts_PJRT_Executable_GetOutputLayouts = ext_layouts_output_layouts,
    .PJRT_Layouts_PJRT_Executable_GetParameterLayouts = ext_layouts_parameter_layouts,
};
