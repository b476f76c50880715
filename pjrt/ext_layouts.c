// The Layouts extension (type 4): every array is row-major, so there is one layout per rank. The
// objects are static; destroying them does nothing.

#include "pjrt/objects.h"

struct PJRT_Layouts_MemoryLayout {
  const char *text;  // the order of the dimensions, minor to major
};

// By rank.
static PJRT_Layouts_MemoryLayout layouts[MP_MAX_RANK + 1] = {
    {"{}"},
    {"{0}"},
    {"{1,0}"},
    {"{2,1,0}"},
    {"{3,2,1,0}"},
    {"{4,3,2,1,0}"},
    {"{5,4,3,2,1,0}"},
    {"{6,5,4,3,2,1,0}"},
    {"{7,6,5,4,3,2,1,0}"},
    {"{8,7,6,5,4,3,2,1,0}"},
    {"{9,8,7,6,5,4,3,2,1,0}"},
    {"{10,9,8,7,6,5,4,3,2,1,0}"},
    {"{11,10,9,8,7,6,5,4,3,2,1,0}"},
    {"{12,11,10,9,8,7,6,5,4,3,2,1,0}"},
    {"{13,12,11,10,9,8,7,6,5,4,3,2,1,0}"},
    {"{14,13,12,11,10,9,8,7,6,5,4,3,2,1,0}"},
    {"{15,14,13,12,11,10,9,8,7,6,5,4,3,2,1,0}"},
    {"{16,15,14,13,12,11,10,9,8,7,6,5,4,3,2,1,0}"},
    {"{17,16,15,14,13,12,11,10,9,8,7,6,5,4,3,2,1,0}"},
    {"{18,17,16,15,14,13,12,11,10,9,8,7,6,5,4,3,2,1,0}"},
    {"{19,18,17,16,15,14,13,12,11,10,9,8,7,6,5,4,3,2,1,0}"},
    {"{20,19,18,17,16,15,14,13,12,11,10,9,8,7,6,5,4,3,2,1,0}"},
    {"{21,20,19,18,17,16,15,14,13,12,11,10,9,8,7,6,5,4,3,2,1,0}"},
    {"{22,21,20,19,18,17,16,15,14,13,12,11,10,9,8,7,6,5,4,3,2,1,0}"},
    {"{23,22,21,20,19,18,17,16,15,14,13,12,11,10,9,8,7,6,5,4,3,2,1,0}"},
    {"{24,23,22,21,20,19,18,17,16,15,14,13,12,11,10,9,8,7,6,5,4,3,2,1,0}"},
    {"{25,24,23,22,21,20,19,18,17,16,15,14,13,12,11,10,9,8,7,6,5,4,3,2,1,0}"},
    {"{26,25,24,23,22,21,20,19,18,17,16,15,14,13,12,11,10,9,8,7,6,5,4,3,2,1,0}"},
    {"{27,26,25,24,23,22,21,20,19,18,17,16,15,14,13,12,11,10,9,8,7,6,5,4,3,2,1,0}"},
    {"{28,27,26,25,24,23,22,21,20,19,18,17,16,15,14,13,12,11,10,9,8,7,6,5,4,3,2,1,0}"},
    {"{29,28,27,26,25,24,23,22,21,20,19,18,17,16,15,14,13,12,11,10,9,8,7,6,5,4,3,2,1,0}"},
    {"{30,29,28,27,26,25,24,23,22,21,20,19,18,17,16,15,14,13,12,11,10,9,8,7,6,5,4,3,2,1,0}"},
    {"{31,30,29,28,27,26,25,24,23,22,21,20,19,18,17,16,15,14,13,12,11,10,9,8,7,6,5,4,3,2,1,0}"},
};

PJRT_Layouts_MemoryLayout *mp_pjrt_layout_of_rank(size_t rank) {
  return &layouts[rank];
}

static PJRT_Error *layout_destroy(PJRT_Layouts_MemoryLayout_Destroy_Args *args) {
  (void)args;
  return NULL;
}

static void delete_serialized(PJRT_Layouts_SerializedLayout *serialized) {
  (void)serialized;
}

static PJRT_Error *layout_serialize(PJRT_Layouts_MemoryLayout_Serialize_Args *args) {
  if (args->layout == NULL) return mp_pjrt_error(mp_pjrt_null_argument(__func__, "layout"));
  args->serialized_bytes = args->layout->text;
  args->serialized_bytes_size = strlen(args->layout->text);
  args->serialized_layout = (PJRT_Layouts_SerializedLayout *)args->layout;
  args->serialized_layout_deleter = delete_serialized;
  return NULL;
}

static PJRT_Error *default_layout(PJRT_Buffer_Type type, const int64_t *dims, size_t num_dims,
                                  PJRT_Layouts_MemoryLayout **out_layout) {
  mp_dtype_t dtype = MP_DTYPE_INVALID;
  mp_status_t status =
      mp_pjrt_check_shape("PJRT_Layouts_GetDefaultLayout", type, dims, num_dims, &dtype);
  if (status == NULL) *out_layout = mp_pjrt_layout_of_rank(num_dims);
  return mp_pjrt_error(status);
}

static PJRT_Error *client_default(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args *args) {
  return default_layout(args->type, args->dims, args->num_dims, &args->layout);
}

static PJRT_Error *topology_default(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args *args) {
  return default_layout(args->type, args->dims, args->num_dims, &args->layout);
}

static PJRT_Error *buffer_layout(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args *args) {
  if (args->buffer == NULL) return mp_pjrt_error(mp_pjrt_null_argument(__func__, "buffer"));
  args->layout = mp_pjrt_layout_of_rank(mp_buffer_type(args->buffer->buffer)->rank);
  return NULL;
}

static PJRT_Error *output_layouts(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args *args) {
  if (args->executable == NULL) {
    return mp_pjrt_error(mp_pjrt_null_argument(__func__, "executable"));
  }
  args->num_outputs = args->executable->program->num_results;
  args->layouts = args->executable->output_layouts;
  return NULL;
}

static PJRT_Error *parameter_layouts(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args *args) {
  if (args->executable == NULL) {
    return mp_pjrt_error(mp_pjrt_null_argument(__func__, "executable"));
  }
  args->num_parameters = args->executable->program->num_params;
  args->layouts = args->executable->parameter_layouts;
  return NULL;
}

PJRT_Layouts_Extension mp_pjrt_layouts_extension = {
    .base = {.struct_size = sizeof(PJRT_Layouts_Extension),
             .type = PJRT_Extension_Type_Layouts,
             .next = &mp_pjrt_memory_descriptions_extension.base},
    .PJRT_Layouts_MemoryLayout_Destroy = layout_destroy,
    .PJRT_Layouts_MemoryLayout_Serialize = layout_serialize,
    .PJRT_Layouts_PJRT_Client_GetDefaultLayout = client_default,
    .PJRT_Layouts_PJRT_Buffer_MemoryLayout = buffer_layout,
    .PJRT_Layouts_PJRT_Topology_GetDefaultLayout = topology_default,
    .PJRT_Layouts_PJRT_Executable_GetOutputLayouts = output_layouts,
    .PJRT_Layouts_PJRT_Executable_GetParameterLayouts = parameter_layouts,
};
