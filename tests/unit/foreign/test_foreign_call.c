// Calls: what a handler gets, what becomes of what it gives back.
#include "sim/base/fault.h"
#include "sim/foreign/foreign_context.h"
#include "tests/unit/support/foreign_test.h"

#define CALL(target, operands, rest, types)                                    \
  "%r = \"stablehlo.custom_call\"(" operands ") {call_target_name = \"" target \
  "\", "                                                                       \
  "api_version = 4 : i32, " rest "} : " types

// ---- What a handler gets ----

static char g_seen[2048];

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *format, ...) {
  const size_t at = strlen(g_seen);
  va_list args;
  va_start(args, format);
  vsnprintf(g_seen + at, sizeof(g_seen) - at, format, args);
  va_end(args);
}

static void note_buffers(void *const *buffers, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const XLA_FFI_Buffer *buffer = buffers[i];
    assert_int_equal(buffer->struct_size, 48);
    note(" %d[", (int)buffer->dtype);
    for (int64_t d = 0; d < buffer->rank; ++d) note(d == 0 ? "%d" : ",%d", (int)buffer->dims[d]);
    note("]%s", buffer->data == NULL ? "null" : "");
  }
}

static void note_numbers(XLA_FFI_DataType dtype, const void *data, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    switch (dtype) {
      case XLA_FFI_DataType_PRED:
        note(" %d", ((const uint8_t *)data)[i]);
        break;
      case XLA_FFI_DataType_S8:
        note(" %d", ((const int8_t *)data)[i]);
        break;
      case XLA_FFI_DataType_U16:
        note(" %u", ((const uint16_t *)data)[i]);
        break;
      case XLA_FFI_DataType_S32:
        note(" %d", ((const int32_t *)data)[i]);
        break;
      case XLA_FFI_DataType_S64:
        note(" %lld", (long long)((const int64_t *)data)[i]);
        break;
      case XLA_FFI_DataType_F32:
        note(" %g", (double)((const float *)data)[i]);
        break;
      case XLA_FFI_DataType_F64:
        note(" %g", ((const double *)data)[i]);
        break;
      default:
        note(" ?");
    }
  }
}

static void note_attrs(const XLA_FFI_Attrs *attrs) {
  assert_int_equal(attrs->struct_size, 48);
  for (int64_t i = 0; i < attrs->size; ++i) {
    note(" %.*s:", (int)attrs->names[i]->len, attrs->names[i]->ptr);
    const XLA_FFI_Scalar *scalar = attrs->attrs[i];
    const XLA_FFI_Array *array = attrs->attrs[i];
    const XLA_FFI_ByteSpan *text = attrs->attrs[i];
    switch (attrs->types[i]) {
      case XLA_FFI_AttrType_SCALAR:
        note("%d", (int)scalar->dtype);
        note_numbers(scalar->dtype, scalar->value, 1);
        break;
      case XLA_FFI_AttrType_ARRAY:
        note("%d*", (int)array->dtype);
        note_numbers(array->dtype, array->data, array->size);
        break;
      case XLA_FFI_AttrType_STRING:
        note("'%.*s'", (int)text->len, text->ptr);
        break;
      case XLA_FFI_AttrType_DICTIONARY:
        note("{");
        note_attrs(attrs->attrs[i]);
        note(" }");
        break;
    }
  }
}

static XLA_FFI_Error *look(XLA_FFI_CallFrame *frame) {
  assert_int_equal(frame->struct_size, 168);
  if (foreign_is_metadata(frame, 3)) return NULL;
  note("in");
  note_buffers(frame->args.args, frame->args.size);
  note("; out");
  note_buffers(frame->rets.rets, frame->rets.size);
  note(";");
  note_attrs(&frame->attrs);
  return NULL;
}

// Options of the execution, in all stages that ask.
static XLA_FFI_Error *look_at_options(XLA_FFI_CallFrame *frame) {
  if (foreign_is_metadata(frame, 5)) return NULL;
  XLA_FFI_CustomOptions_Get_Args args = {
      .struct_size = XLA_FFI_SIZE(XLA_FFI_CustomOptions_Get_Args, attrs), .ctx = frame->ctx};
  XLA_FFI_Error *error = frame->api->XLA_FFI_CustomOptions_Get(&args);
  if (error != NULL) return error;
  note("[");
  note_attrs(args.attrs);
  note(" ]");
  return NULL;
}

static const XLA_FFI_Attrs *g_options;  // of the next runs

// Runs a call on zeros.
static mp_status_t run(const mp_foreign_call_t *call, foreign_device_t *device, foreign_end_t *end,
                       bool *out_is_pending) {
  static char memory[4096];
  const void *inputs[8];
  void *outputs[8];
  for (int i = 0; i < 8; ++i) inputs[i] = outputs[i] = memory + 256 * i;
  static mp_foreign_invocation_t invocation;
  static mp_foreign_states_t states;
  invocation = (mp_foreign_invocation_t){.inputs = inputs,
                                         .outputs = outputs,
                                         .device_ordinal = 5,
                                         .run_id = 99,
                                         .host = &k_foreign_host,
                                         .host_data = device,
                                         .options = g_options,
                                         .states = &states,
                                         .done = foreign_note_end,
                                         .context = end};
  mp_status_t status = mp_foreign_call_prepare(call, &invocation);
  if (status == NULL) status = mp_foreign_call_initialize(call, &invocation);
  if (status == NULL) status = mp_foreign_call_start(call, &invocation, out_is_pending);
  mp_foreign_states_clear(&states);
  return status;
}

static mp_status_t make(const char *arguments, const char *text, mp_module_t **out_module,
                        mp_foreign_call_t **out_call) {
  return mp_foreign_call_create(foreign_read_call(arguments, text, out_module), out_call);
}

static void expect_seen(const char *arguments, const char *text, const char *wanted) {
  mp_module_t *module = NULL;
  mp_foreign_call_t *call = NULL;
  foreign_device_t device = {0};
  bool is_pending = true;
  g_seen[0] = '\0';
  assert_ok(make(arguments, text, &module, &call));
  assert_ok(run(call, &device, NULL, &is_pending));
  assert_false(is_pending);
  assert_string_equal(g_seen, wanted);
  mp_foreign_call_release(call);
  mp_module_release(module);
}

static void frames_say_what_the_op_says(void **state) {
  (void)state;
  assert_ok(foreign_register("look", "cpu", (XLA_FFI_Handler_Bundle){.execute = look}));
  expect_seen("%a: tensor<2x3xf32>, %b: tensor<i1>",
              CALL("look", "%a, %b", "backend_config = {}",
                   "(tensor<2x3xf32>, tensor<i1>) -> tensor<4xcomplex<f64>>"),
              "in 11[2,3] 1[]; out 18[4];");
  // The op has its arrays as they lie in memory; the layout says which dimension is which.
  expect_seen("%a: tensor<3x2xf32>",
              CALL("look", "%a",
                   "backend_config = {}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], "
                   "result_layouts = [dense<[0]> : tensor<1xindex>]",
                   "(tensor<3x2xf32>) -> tensor<1xbf16>"),
              "in 11[2,3]; out 16[1];");
}

static void tokens_have_no_memory(void **state) {
  (void)state;
  expect_seen("%t: !stablehlo.token",
              CALL("look", "%t", "backend_config = {}", "(!stablehlo.token) -> !stablehlo.token"),
              "in 17[]null; out 17[]null;");
}

static void attributes_are_sorted_and_typed(void **state) {
  (void)state;
  expect_seen("",
              CALL("look", "",
                   "backend_config = {z = true, b = -3 : i8, a = \"x\", ab = 65000 : ui16, "
                   "c = 1.5 : f32, d = dense<[1, -2]> : tensor<2xi64>, e = dense<7> : "
                   "tensor<2x2xi32>, f = array<i64: 5, 6>, g = {y = -0.25 : f64, x = {}}, "
                   "h = dense<[1.0, 2.0]> : tensor<2xf32>}",
                   "() -> tensor<f32>"),
              "in; out 11[]; a:'x' ab:7 65000 b:2 -3 c:11 1.5 d:5* 1 -2 e:4* 7 7 7 7 f:5* 5 6 "
              "g:{ x:{ } y:12 -0.25 } h:11* 1 2 z:1 1");
}

static void options_of_an_execution_are_typed(void **state) {
  (void)state;
  static const int64_t list[] = {3, -4};
  const mp_named_value_t values[] = {
      {.name = MP_STR("z"), .type = MP_VALUE_STRING, .string_value = MP_STR("text")},
      {.name = MP_STR("b"), .type = MP_VALUE_INT64, .int64_value = 1},
      {.name = MP_STR("a"), .type = MP_VALUE_FLOAT, .float_value = 0.5f},
      {.name = MP_STR("b"), .type = MP_VALUE_INT64, .int64_value = -7},  // in place of the first
      {.name = MP_STR("bb"), .type = MP_VALUE_BOOL, .bool_value = true},
      {.name = MP_STR("l"),
       .type = MP_VALUE_INT64_LIST,
       .int64_list_data = list,
       .int64_list_count = 2}};
  mp_foreign_context_t *outer = NULL, *context = NULL;
  int datum = 0;
  assert_ok(mp_foreign_context_create(&outer));
  assert_null(mp_foreign_context_options(outer));
  assert_ok(mp_foreign_context_create_with(outer, values, 6, &context));
  // Data that are added to the outer context are found in both.
  assert_ok(mp_foreign_context_add(outer, 5, &datum));
  mp_foreign_context_release(outer);
  assert_ptr_equal(mp_foreign_context_data(context)->data, &datum);
  assert_ok(foreign_register(
      "options", "cpu",
      (XLA_FFI_Handler_Bundle){
          .instantiate = look_at_options, .prepare = look_at_options, .execute = look_at_options}));
  const char *text = CALL("options", "", "backend_config = {}", "() -> tensor<f32>");
  expect_seen("", text, "[ ][ ][ ]");
  g_options = mp_foreign_context_options(context);
  static const char all[] = "[ a:11 0.5 b:5 -7 bb:1 1 l:5* 3 -4 z:'text' ]";
  char wanted[256];
  snprintf(wanted, sizeof(wanted), "[ ]%s%s", all, all);
  expect_seen("", text, wanted);
  g_options = NULL;
  mp_foreign_context_release(context);
}

static void attributes_that_cannot_be_passed_are_named(void **state) {
  (void)state;
  const char *values[] = {"bad = 1.0 : f16",
                          "bad = [1, 2]",
                          "bad = 3 : i4",
                          "bad = f32",
                          "bad = dense<true> : tensor<2xi1>",
                          "in = {bad = 2 : index}"};
  for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); ++i) {
    char text[512];
    mp_module_t *module = NULL;
    mp_foreign_call_t *call = NULL;
    snprintf(text, sizeof(text),
             "%%r = \"stablehlo.custom_call\"() {call_target_name = \"look\", api_version = 4 : "
             "i32, backend_config = {%s}} : () -> tensor<f32>",
             values[i]);
    assert_status(make("", text, &module, &call), MP_INVALID_ARGUMENT, "attribute 'bad'");
    mp_module_release(module);
  }
}

// ---- What it gives back ----

static XLA_FFI_Error *fails(XLA_FFI_CallFrame *frame) {
  if (foreign_is_metadata(frame, 1)) return NULL;
  return foreign_fail(frame, MP_OUT_OF_RANGE, "too far");
}

static XLA_FFI_Error *use_device(XLA_FFI_CallFrame *frame) {
  if (foreign_is_metadata(frame, 3)) return NULL;
  XLA_FFI_DeviceMemory_Allocate_Args allocate = {
      .struct_size = XLA_FFI_SIZE(XLA_FFI_DeviceMemory_Allocate_Args, data),
      .ctx = frame->ctx,
      .size = 100,
      .alignment = 64};
  XLA_FFI_Error *error = frame->api->XLA_FFI_DeviceMemory_Allocate(&allocate);
  if (error != NULL) return error;
  assert_true(allocate.data != NULL && (uintptr_t)allocate.data % 64 == 0);
  XLA_FFI_DeviceMemory_Free_Args give = {
      .struct_size = XLA_FFI_SIZE(XLA_FFI_DeviceMemory_Free_Args, data),
      .ctx = frame->ctx,
      .size = 100,
      .data = allocate.data};
  assert_null(frame->api->XLA_FFI_DeviceMemory_Free(&give));
  XLA_FFI_DeviceOrdinal_Get_Args where = {
      .struct_size = XLA_FFI_SIZE(XLA_FFI_DeviceOrdinal_Get_Args, device_ordinal),
      .ctx = frame->ctx};
  XLA_FFI_RunId_Get_Args which = {.struct_size = XLA_FFI_SIZE(XLA_FFI_RunId_Get_Args, run_id),
                                  .ctx = frame->ctx};
  assert_null(frame->api->XLA_FFI_DeviceOrdinal_Get(&where));
  assert_null(frame->api->XLA_FFI_RunId_Get(&which));
  assert_true(where.device_ordinal == 5 && which.run_id == 99);
  allocate.alignment = 3;
  error = frame->api->XLA_FFI_DeviceMemory_Allocate(&allocate);
  assert_non_null(error);
  XLA_FFI_Error_Destroy_Args destroy = {
      .struct_size = XLA_FFI_SIZE(XLA_FFI_Error_Destroy_Args, error), .error = error};
  frame->api->XLA_FFI_Error_Destroy(&destroy);
  where.struct_size = 3;
  error = frame->api->XLA_FFI_DeviceOrdinal_Get(&where);
  return error;  // "struct_size is 3"
}

static XLA_FFI_Future *g_future;
static bool g_is_set_at_once;

static void set_future(const XLA_FFI_CallFrame *frame, XLA_FFI_Error *error) {
  XLA_FFI_Future_SetAvailable_Args available = {
      .struct_size = XLA_FFI_SIZE(XLA_FFI_Future_SetAvailable_Args, future), .future = g_future};
  XLA_FFI_Future_SetError_Args failed = {
      .struct_size = XLA_FFI_SIZE(XLA_FFI_Future_SetError_Args, error),
      .future = g_future,
      .error = error};
  const XLA_FFI_Api *api = frame == NULL ? mp_foreign_api() : frame->api;
  if (error == NULL) {
    assert_null(api->XLA_FFI_Future_SetAvailable(&available));
  } else {
    assert_null(api->XLA_FFI_Future_SetError(&failed));
  }
}

static XLA_FFI_Error *later(XLA_FFI_CallFrame *frame) {
  if (foreign_is_metadata(frame, 3)) return NULL;
  XLA_FFI_Future_Create_Args args = {.struct_size =
                                         XLA_FFI_SIZE(XLA_FFI_Future_Create_Args, extension_start)};
  XLA_FFI_Error *error = frame->api->XLA_FFI_Future_Create(&args);
  if (error != NULL) return error;
  frame->future = g_future = args.future;
  if (g_is_set_at_once) set_future(frame, foreign_fail(frame, MP_ABORTED, "at once"));
  return NULL;
}

static void run_one(const char *target, mp_status_t *out_status, foreign_end_t *end,
                    bool *out_is_pending) {
  mp_module_t *module = NULL;
  mp_foreign_call_t *call = NULL;
  foreign_device_t device = {0};
  char text[256];
  snprintf(text, sizeof(text),
           "%%r = \"stablehlo.custom_call\"() {call_target_name = \"%s\", api_version = 4 : i32, "
           "backend_config = {}} : () -> tensor<f32>",
           target);
  assert_ok(make("", text, &module, &call));
  *out_status = run(call, &device, end, out_is_pending);
  if (*out_is_pending) {
    assert_int_equal(end->num_ends, 0);
    set_future(NULL, end->status == NULL
                         ? NULL
                         : mp_foreign_error(mp_status_make(MP_DATA_LOSS, "in the end")));
  }
  assert_int_equal(device.num_allocations, 0);
  mp_foreign_call_release(call);
  mp_module_release(module);
}

static void errors_keep_code_and_words(void **state) {
  (void)state;
  bool is_pending = false;
  mp_status_t status = NULL;
  assert_ok(foreign_register("fail", "cpu", (XLA_FFI_Handler_Bundle){.execute = fails}));
  run_one("fail", &status, NULL, &is_pending);
  assert_status(status, MP_OUT_OF_RANGE, "too far (foreign function 'fail')");
  assert_ok(foreign_register("device", "cpu", (XLA_FFI_Handler_Bundle){.execute = use_device}));
  run_one("device", &status, NULL, &is_pending);
  assert_status(status, MP_INVALID_ARGUMENT, "struct_size is 3");
}

static void futures_end_calls(void **state) {
  (void)state;
  bool is_pending = false;
  mp_status_t status = NULL;
  foreign_end_t end = {0};
  assert_ok(foreign_register("later", "cpu", (XLA_FFI_Handler_Bundle){.execute = later}));
  run_one("later", &status, &end, &is_pending);
  assert_true(status == NULL && is_pending && end.num_ends == 1 && end.status == NULL);
  end = (foreign_end_t){.status = mp_status_out_of_memory()};  // asks for an error
  run_one("later", &status, &end, &is_pending);
  assert_true(status == NULL && is_pending && end.num_ends == 1);
  assert_status(end.status, MP_DATA_LOSS, "in the end (foreign function 'later')");
  g_is_set_at_once = true;
  end = (foreign_end_t){0};
  run_one("later", &status, &end, &is_pending);
  assert_false(is_pending);
  assert_int_equal(end.num_ends, 0);
  assert_status(status, MP_ABORTED, "at once (foreign function 'later')");
}

// ---- States and stages ----

static XLA_FFI_TypeId g_type;
static int g_alive;

static void end_object(void *object) {
  --g_alive;
  free(object);
}

static XLA_FFI_Error *leave(XLA_FFI_CallFrame *frame, XLA_FFI_ExecutionStage stage, int value,
                            bool is_old) {
  int *object = malloc(sizeof(*object));
  *object = value;
  ++g_alive;
  XLA_FFI_State_Set_Args args = {.struct_size = XLA_FFI_SIZE(XLA_FFI_State_Set_Args, state),
                                 .ctx = frame->ctx,
                                 .stage = stage,
                                 .type_id = &g_type,
                                 .state = object};
  XLA_FFI_State_Args_V02 old = {.struct_size = XLA_FFI_SIZE(XLA_FFI_State_Args_V02, state),
                                .ctx = frame->ctx,
                                .type_id = &g_type,
                                .state = object};
  XLA_FFI_Error *error =
      frame->api->XLA_FFI_State_Set(is_old ? (XLA_FFI_State_Set_Args *)(void *)&old : &args);
  if (error != NULL) end_object(object);  // a refused one stays the handler's
  return error;
}

static int state_of(XLA_FFI_CallFrame *frame, XLA_FFI_ExecutionStage stage) {
  XLA_FFI_State_Get_Args args = {.struct_size = XLA_FFI_SIZE(XLA_FFI_State_Get_Args, state),
                                 .ctx = frame->ctx,
                                 .stage = stage,
                                 .type_id = &g_type};
  assert_null(frame->api->XLA_FFI_State_Get(&args));
  return *(int *)args.state;
}

static XLA_FFI_Error *stage_instantiate(XLA_FFI_CallFrame *frame) {
  if (foreign_is_metadata(frame, 2)) return NULL;
  assert_int_equal(frame->args.size + frame->rets.size, 0);
  return leave(frame, XLA_FFI_ExecutionStage_INSTANTIATE, 1, true);
}
static XLA_FFI_Error *stage_prepare(XLA_FFI_CallFrame *frame) {
  if (foreign_is_metadata(frame, 3)) return NULL;
  return leave(frame, XLA_FFI_ExecutionStage_PREPARE, 2, false);
}
static XLA_FFI_Error *stage_initialize(XLA_FFI_CallFrame *frame) {
  if (foreign_is_metadata(frame, 3)) return NULL;
  assert_int_equal(state_of(frame, XLA_FFI_ExecutionStage_PREPARE), 2);
  return leave(frame, XLA_FFI_ExecutionStage_INITIALIZE, 3, false);
}
static XLA_FFI_Error *stage_execute(XLA_FFI_CallFrame *frame) {
  if (foreign_is_metadata(frame, 3)) return NULL;
  XLA_FFI_State_Args_V02 old = {.struct_size = XLA_FFI_SIZE(XLA_FFI_State_Args_V02, state),
                                .ctx = frame->ctx,
                                .type_id = &g_type};
  assert_null(frame->api->XLA_FFI_State_Get((XLA_FFI_State_Get_Args *)(void *)&old));
  note("%d%d%d", *(int *)old.state, state_of(frame, XLA_FFI_ExecutionStage_PREPARE),
       state_of(frame, XLA_FFI_ExecutionStage_INITIALIZE));
  return leave(frame, XLA_FFI_ExecutionStage_PREPARE, 4, false);  // which is another stage's
}

static void stages_leave_states_for_later_ones(void **state) {
  (void)state;
  mp_module_t *module = NULL;
  mp_foreign_call_t *call = NULL;
  foreign_device_t device = {0};
  bool is_pending = false;
  assert_ok(mp_foreign_register_type(MP_STR("stage state"), end_object, &g_type));
  assert_ok(foreign_register(
      "stages", "cpu",
      (XLA_FFI_Handler_Bundle){stage_instantiate, stage_prepare, stage_initialize, stage_execute}));
  assert_ok(
      make("", CALL("stages", "", "backend_config = {}", "() -> tensor<f32>"), &module, &call));
  assert_true(call->has_stages && g_alive == 1);
  for (int i = 0; i < 2; ++i) {
    g_seen[0] = '\0';
    assert_status(run(call, &device, NULL, &is_pending), MP_FAILED_PRECONDITION, "stage");
    assert_string_equal(g_seen, "123");
    assert_int_equal(g_alive, 1);
  }
  mp_foreign_call_release(call);
  assert_int_equal(g_alive, 0);
  mp_module_release(module);
}

// ---- Functions of the interface before FFI ----

static void old_add(void *out, const void **in) {
  *(float *)out = *(const float *)in[0] + 1;
}
static void old_fail(void *out, const void **in, XlaCustomCallStatus *status) {
  (void)out, (void)in;
  ((char *)status)[32] = 1;
}
static void old_opaque(void *out, const void **in, const char *opaque, size_t size,
                       XlaCustomCallStatus *status) {
  (void)in, (void)status;
  void **outs = out;
  note("%.*s %d", (int)size, opaque, outs[0] != outs[1]);
}

static mp_status_t run_old(const char *target, int version, const char *results) {
  char text[256];
  mp_module_t *module = NULL;
  mp_foreign_call_t *call = NULL;
  foreign_device_t device = {0};
  bool is_pending = false;
  snprintf(text, sizeof(text),
           "%%r%s = \"stablehlo.custom_call\"(%%a) {call_target_name = \"%s\", api_version = %d : "
           "i32, backend_config = \"words\"} : (tensor<f32>) -> %s",
           results[0] == '(' ? ":2" : "", target, version, results);
  assert_ok(make("%a: tensor<f32>", text, &module, &call));
  mp_status_t status = run(call, &device, NULL, &is_pending);
  assert_false(is_pending);
  mp_foreign_call_release(call);
  mp_module_release(module);
  return status;
}

static void old_functions_are_called_as_their_version_says(void **state) {
  (void)state;
  const mp_str_t cpu = MP_STR("cpu");
  assert_ok(mp_foreign_register_untyped(MP_STR("old_add"), cpu, (void *)(uintptr_t)old_add));
  assert_ok(mp_foreign_register_untyped(MP_STR("old_fail"), cpu, (void *)(uintptr_t)old_fail));
  assert_ok(mp_foreign_register_untyped(MP_STR("old_opaque"), cpu, (void *)(uintptr_t)old_opaque));
  assert_ok(run_old("old_add", 1, "tensor<f32>"));
  assert_status(run_old("old_fail", 2, "tensor<f32>"), MP_INTERNAL, "reported a failure");
  g_seen[0] = '\0';
  assert_ok(run_old("old_opaque", 3, "(tensor<f32>, tensor<f32>)"));
  assert_string_equal(g_seen, "words 1");
}

static void unknown_targets_are_refused(void **state) {
  (void)state;
  mp_module_t *module = NULL;
  mp_foreign_call_t *call = NULL;
  assert_status(
      make("", CALL("loom", "", "backend_config = {}", "() -> tensor<f32>"), &module, &call),
      MP_UNIMPLEMENTED, "'loom' is not known to minipod; ");
  mp_module_release(module);
  assert_status(
      make("", CALL("old_add", "", "backend_config = {}", "() -> tensor<f32>"), &module, &call),
      MP_UNIMPLEMENTED, "only as one of an older API");
  mp_module_release(module);
}

// ---- Short memory ----

static void every_failed_allocation_is_an_error(void **state) {
  (void)state;
  mp_module_t *module = NULL;
  const mp_op_t *op =
      foreign_read_call("%a: tensor<2x3xf32>",
                        CALL("stages", "%a", "backend_config = {x = 1 : i32, y = {z = \"t\"}}",
                             "(tensor<2x3xf32>) -> tensor<f32>"),
                        &module);
  const int alive = g_alive;
  mp_status_t status = mp_status_out_of_memory();
  for (int64_t n = 1; status != NULL; ++n) {
    mp_foreign_call_t *call = NULL;
    assert_true(n < 100);
    mp_alloc_fail_at(n, 0);
    status = mp_foreign_call_create(op, &call);
    mp_alloc_fail_at(0, 0);
    if (status != NULL) assert_int_equal(mp_status_code(status), MP_RESOURCE_EXHAUSTED);
    if (status == NULL) mp_foreign_call_release(call);
    assert_int_equal(g_alive, alive);
    mp_status_release(status);
  }
  mp_module_release(module);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(frames_say_what_the_op_says),
      cmocka_unit_test(tokens_have_no_memory),
      cmocka_unit_test(attributes_are_sorted_and_typed),
      cmocka_unit_test(options_of_an_execution_are_typed),
      cmocka_unit_test(attributes_that_cannot_be_passed_are_named),
      cmocka_unit_test(errors_keep_code_and_words),
      cmocka_unit_test(futures_end_calls),
      cmocka_unit_test(stages_leave_states_for_later_ones),
      cmocka_unit_test(old_functions_are_called_as_their_version_says),
      cmocka_unit_test(unknown_targets_are_refused),
      cmocka_unit_test(every_failed_allocation_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
