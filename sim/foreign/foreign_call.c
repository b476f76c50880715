#include "sim/foreign/foreign_call.h"

#include "sim/base/alloc.h"
#include "sim/base/os/lock.h"
#include "sim/foreign/foreign_api.h"
#include "sim/foreign/foreign_attrs.h"
#include "sim/foreign/foreign_guard.h"
#include "sim/foreign/foreign_values.h"
#include "sim/ir/layout.h"
#include "sim/work/work.h"

typedef struct {
  mp_foreign_call_t base;  // first, because callers have pointers to it
  mp_arena_t *arena;       // owned; this object is in it
  // The state of the instantiate stage. Written only while the call is made.
  mp_foreign_state_t state;
  XLA_FFI_Attrs attrs;
  // Templates for a frame's buffers: everything but the addresses.
  XLA_FFI_Buffer *inputs, *outputs;  // [num_inputs], [num_outputs]
  XLA_FFI_ArgType *input_types;
  XLA_FFI_RetType *output_types;
  uint32_t api_version;  // of an untyped call
  mp_str_t opaque;
} call_t;

static mp_str_t foreign_call_target(const mp_op_t *op) {
  return mp_op_str(op, MP_ATTR_CALL_TARGET_NAME);
}

// ---- Making calls ----

static mp_status_t foreign_call_unknown(const mp_op_t *op, bool is_typed) {
  mp_strbuf_t names;
  mp_strbuf_init(&names);
  mp_foreign_list(foreign_call_target(op), 8, &names);
  const bool is_other = mp_foreign_find(foreign_call_target(op), !is_typed) != NULL;
  mp_status_t status = mp_op_error(
      op, MP_UNIMPLEMENTED,
      "custom_call target '%.*s' is not known to minipod%s; foreign functions that are registered "
      "for minipod or cpu (jax.ffi.register_ffi_target): %s",
      MP_STR_ARG(foreign_call_target(op)),
      !is_other  ? ""
      : is_typed ? " as a typed function (API version 4), only as one of an older API"
                 : " as a function of this older API, only as a typed one (API version 4)",
      names.size == 0 ? "none" : mp_strbuf_text(&names));
  mp_strbuf_deinit(&names);
  return status;
}

// The dimensions of the array in the program's order. The op has them in the order of memory
// (sim/foreign/README.md, "Layouts").
static mp_status_t foreign_call_dims(mp_arena_t *arena, const mp_type_t *type,
                                     const mp_attr_t *layouts, uint32_t index, int64_t **out_dims) {
  int64_t *dims = MP_ARENA_ARRAY(arena, int64_t, (size_t)type->rank + 1);
  MP_RETURN_IF_NULL(dims);
  const bool has_layout = layouts != NULL && index < layouts->u.array.count;
  for (uint32_t k = 0; k < type->rank; ++k) {
    const int64_t *order = has_layout ? layouts->u.array.items[index]->u.ints.values : NULL;
    dims[order == NULL ? k : (uint32_t)mp_layout_logical(order, type->rank, k)] = type->dims[k];
  }
  *out_dims = dims;
  return NULL;
}

static mp_status_t foreign_call_model(const call_t *call, const mp_type_t *type,
                                      mp_attr_name_t layouts, uint32_t index,
                                      XLA_FFI_Buffer *out_buffer) {
  const mp_op_t *op = call->base.op;
  *out_buffer = (XLA_FFI_Buffer){.struct_size = XLA_FFI_SIZE(XLA_FFI_Buffer, dims),
                                 .dtype = XLA_FFI_DataType_TOKEN};
  if (!mp_type_is_tensor(type)) {
    return foreign_call_dims(call->arena, type, NULL, 0, &out_buffer->dims);
  }
  out_buffer->dtype = mp_foreign_dtype(type->dtype);
  out_buffer->rank = type->rank;
  if (out_buffer->dtype == XLA_FFI_DataType_INVALID && call->base.handler->is_typed) {
    return mp_op_error(op, MP_UNIMPLEMENTED,
                       "custom_call target '%.*s': foreign functions cannot be given arrays of %s",
                       MP_STR_ARG(foreign_call_target(op)), mp_dtype_name(type->dtype));
  }
  return foreign_call_dims(call->arena, type, mp_op_attr(op, layouts), index, &out_buffer->dims);
}

static mp_status_t foreign_call_models(call_t *call) {
  const mp_op_t *op = call->base.op;
  call->inputs = MP_ARENA_ARRAY(call->arena, XLA_FFI_Buffer, op->num_operands);
  call->outputs = MP_ARENA_ARRAY(call->arena, XLA_FFI_Buffer, op->num_results);
  call->input_types = MP_ARENA_ARRAY(call->arena, XLA_FFI_ArgType, op->num_operands);
  call->output_types = MP_ARENA_ARRAY(call->arena, XLA_FFI_RetType, op->num_results);
  if (call->inputs == NULL || call->outputs == NULL || call->input_types == NULL ||
      call->output_types == NULL) {
    return mp_status_out_of_memory();
  }
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    call->input_types[i] = XLA_FFI_ArgType_BUFFER;
    MP_RETURN_IF_ERROR(foreign_call_model(call, op->operands[i]->type, MP_ATTR_OPERAND_LAYOUTS, i,
                                          &call->inputs[i]));
  }
  for (uint32_t i = 0; i < op->num_results; ++i) {
    call->output_types[i] = XLA_FFI_RetType_BUFFER;
    MP_RETURN_IF_ERROR(foreign_call_model(call, op->results[i].type, MP_ATTR_RESULT_LAYOUTS, i,
                                          &call->outputs[i]));
  }
  return NULL;
}

// Whether the pool's threads do not pay off for one matrix of the call's batch.
static bool foreign_call_is_small(const mp_op_t *op) {
  mp_work_t work;
  mp_work_of_op(op, &work);
  double batch = 1;
  if (op->num_operands != 0 && mp_type_is_tensor(op->operands[0]->type)) {
    const mp_type_t *type = op->operands[0]->type;
    for (uint32_t d = 0; d + 2 < type->rank; ++d) batch *= (double)type->dims[d];
  }
  return batch == 0 || mp_foreign_pool_is_small(work.vector_flops / batch);
}

// The function's own error, with the function's name added. Consumes `status`.
static mp_status_t foreign_call_explain(const call_t *call, mp_status_t status) {
  if (status == NULL || call->base.handler->explains_itself) return status;
  mp_status_t full =
      mp_op_error(call->base.op, mp_status_code(status), "%s (foreign function '%.*s')",
                  mp_status_message(status), MP_STR_ARG(foreign_call_target(call->base.op)));
  mp_status_release(status);
  return full;
}

static XLA_FFI_CallFrame foreign_call_frame(const call_t *call, XLA_FFI_ExecutionContext *context) {
  return (XLA_FFI_CallFrame){
      .struct_size = XLA_FFI_SIZE(XLA_FFI_CallFrame, attrs),
      .api = mp_foreign_api(),
      .ctx = context,
      .stage = context->stage,
      .args = {.struct_size = XLA_FFI_SIZE(XLA_FFI_Args, args)},
      .rets = {.struct_size = XLA_FFI_SIZE(XLA_FFI_Rets, rets)},
      .attrs = call->attrs,
  };
}

static mp_status_t foreign_call_instantiate(call_t *call) {
  XLA_FFI_Handler *handler = call->base.handler->bundle.instantiate;
  if (handler == NULL) return NULL;
  XLA_FFI_ExecutionContext context = {.call = &call->base,
                                      .stage = XLA_FFI_ExecutionStage_INSTANTIATE,
                                      .instantiate = &call->state};
  XLA_FFI_CallFrame frame = foreign_call_frame(call, &context);
  XLA_FFI_Future *future = NULL;
  mp_status_t status = mp_foreign_invoke(handler, &frame, &future);
  if (status == NULL && future != NULL) status = mp_foreign_future_await(future);
  return foreign_call_explain(call, status);
}

// The handler of a function that is not registered: it has no stages.
static const mp_foreign_handler_t g_absent = {.name = {"absent", sizeof("absent") - 1}};

static mp_status_t foreign_call_fill_absent(call_t *call, const mp_op_t *op) {
  call->base = (mp_foreign_call_t){.op = op,
                                   .handler = &g_absent,
                                   .is_absent = true,
                                   .num_inputs = op->num_operands,
                                   .num_outputs = op->num_results};
  return NULL;
}

static mp_status_t foreign_call_fill(call_t *call, const mp_op_t *op, bool may_be_absent) {
  const bool is_typed = mp_foreign_is_typed(op);
  const mp_foreign_handler_t *handler = mp_foreign_find(foreign_call_target(op), is_typed);
  if (handler == NULL && may_be_absent) return foreign_call_fill_absent(call, op);
  if (handler == NULL) return foreign_call_unknown(op, is_typed);
  if (handler->before_use != NULL) handler->before_use();
  call->base = (mp_foreign_call_t){
      .op = op,
      .handler = handler,
      .may_block = handler->may_block,
      .has_stages = handler->bundle.prepare != NULL || handler->bundle.initialize != NULL,
      .num_inputs = op->num_operands,
      .num_outputs = op->num_results,
  };
  MP_RETURN_IF_ERROR(foreign_call_models(call));
  call->base.pool = mp_foreign_find_pool(handler->name);
  call->base.is_small = call->base.pool != NULL && foreign_call_is_small(op);
  if (!is_typed) {
    call->api_version = mp_op_enum(op, MP_ATTR_API_VERSION, MP_API_ORIGINAL);
    call->opaque = mp_foreign_opaque(op);
    return NULL;
  }
  MP_RETURN_IF_ERROR(mp_foreign_attrs_create(call->arena, op, &call->attrs));
  return foreign_call_instantiate(call);
}

static mp_status_t foreign_call_create(const mp_op_t *op, bool may_be_absent,
                                       mp_foreign_call_t **out_call) {
  mp_arena_t *arena = NULL;
  MP_RETURN_IF_ERROR(mp_arena_create(&arena));
  call_t *call = MP_ARENA_NEW(arena, call_t);
  mp_status_t status = mp_status_out_of_memory();
  if (call != NULL) {
    call->arena = arena;
    status = foreign_call_fill(call, op, may_be_absent);
  }
  if (status == NULL) {
    *out_call = &call->base;
    return NULL;
  }
  if (call != NULL) mp_foreign_state_clear(&call->state);
  mp_arena_release(arena);
  return status;
}

mp_status_t mp_foreign_call_create(const mp_op_t *op, mp_foreign_call_t **out_call) {
  return foreign_call_create(op, false, out_call);
}

mp_status_t mp_foreign_call_create_or_absent(const mp_op_t *op, mp_foreign_call_t **out_call) {
  return foreign_call_create(op, true, out_call);
}

void mp_foreign_call_release(mp_foreign_call_t *base) {
  if (base == NULL) return;
  call_t *call = (call_t *)base;
  mp_foreign_state_clear(&call->state);
  mp_arena_release(call->arena);
}

// ---- Frames ----

// The arguments of a handler. They live until the handler is done, which may be after it has
// returned.
typedef struct {
  const call_t *call;
  const mp_foreign_invocation_t *invocation;
  XLA_FFI_ExecutionContext context;
  XLA_FFI_CallFrame frame;
  XLA_FFI_Buffer *buffers;  // inputs, then outputs; in the same block of memory
} frame_t;

static mp_status_t foreign_call_make_frame(const call_t *call,
                                           const mp_foreign_invocation_t *invocation,
                                           XLA_FFI_ExecutionStage stage, frame_t **out_frame) {
  const uint32_t num_inputs = call->base.num_inputs;
  const uint32_t count = num_inputs + call->base.num_outputs;
  char *memory = mp_malloc(sizeof(frame_t) + count * (sizeof(XLA_FFI_Buffer) + sizeof(void *)));
  MP_RETURN_IF_NULL(memory);
  frame_t *f = (frame_t *)memory;
  f->call = call;
  f->invocation = invocation;
  f->buffers = (XLA_FFI_Buffer *)(memory + sizeof(frame_t));
  void **pointers = (void **)(memory + sizeof(frame_t) + count * sizeof(XLA_FFI_Buffer));
  for (uint32_t i = 0; i < count; ++i) {
    const bool is_input = i < num_inputs;
    f->buffers[i] = is_input ? call->inputs[i] : call->outputs[i - num_inputs];
    if (f->buffers[i].dtype != XLA_FFI_DataType_TOKEN) {
      f->buffers[i].data =
          is_input ? (void *)(uintptr_t)invocation->inputs[i] : invocation->outputs[i - num_inputs];
    }
    pointers[i] = &f->buffers[i];
  }
  f->context = (XLA_FFI_ExecutionContext){
      .call = &call->base,
      .invocation = invocation,
      .stage = stage,
      .instantiate = (mp_foreign_state_t *)(uintptr_t)&call->state,
  };
  f->frame = foreign_call_frame(call, &f->context);
  f->frame.args.size = num_inputs;
  f->frame.args.types = call->input_types;
  f->frame.args.args = pointers;
  f->frame.rets.size = call->base.num_outputs;
  f->frame.rets.types = call->output_types;
  f->frame.rets.rets = pointers + num_inputs;
  *out_frame = f;
  return NULL;
}

// ---- The stages before `execute` ----

static mp_status_t foreign_call_run_stage(const call_t *call,
                                          const mp_foreign_invocation_t *invocation,
                                          XLA_FFI_ExecutionStage stage, XLA_FFI_Handler *handler) {
  if (handler == NULL) return NULL;
  frame_t *f = NULL;
  MP_RETURN_IF_ERROR(foreign_call_make_frame(call, invocation, stage, &f));
  XLA_FFI_Future *future = NULL;
  mp_status_t status = mp_foreign_invoke(handler, &f->frame, &future);
  if (status == NULL && future != NULL) status = mp_foreign_future_await(future);
  mp_free(f);
  return foreign_call_explain(call, status);
}

mp_status_t mp_foreign_call_prepare(const mp_foreign_call_t *call,
                                    const mp_foreign_invocation_t *invocation) {
  return foreign_call_run_stage((const call_t *)call, invocation, XLA_FFI_ExecutionStage_PREPARE,
                                call->handler->bundle.prepare);
}

mp_status_t mp_foreign_call_initialize(const mp_foreign_call_t *call,
                                       const mp_foreign_invocation_t *invocation) {
  return foreign_call_run_stage((const call_t *)call, invocation, XLA_FFI_ExecutionStage_INITIALIZE,
                                call->handler->bundle.initialize);
}

// ---- Untyped functions ----

// XLA's object for failures is a std::optional<std::string>, which the function writes by calling
// XLA's own library. It is zero until something is written.
enum { STATUS_BYTES = 128 };

typedef struct {
  const call_t *call;
  const mp_foreign_invocation_t *invocation;
  XlaCustomCallStatus *status;
} untyped_t;

static void foreign_call_run_untyped(void *argument) {
  const untyped_t *u = argument;
  const void **in = (const void **)(uintptr_t)u->invocation->inputs;
  void *const *outputs = u->invocation->outputs;
  // One result is passed as itself, several as an array of pointers.
  void *out = u->call->base.num_outputs == 1 ? outputs[0] : (void *)(uintptr_t)outputs;
  const uintptr_t function = (uintptr_t)u->call->base.handler->untyped;
  if (u->call->api_version == MP_API_STATUS_RETURNING) {
    ((mp_foreign_untyped_v2_t *)function)(out, in, u->status);
  } else if (u->call->api_version == MP_API_STATUS_RETURNING_UNIFIED) {
    ((mp_foreign_untyped_v3_t *)function)(out, in, u->call->opaque.data, u->call->opaque.size,
                                          u->status);
  } else {
    ((mp_foreign_untyped_v1_t *)function)(out, in);
  }
}

static mp_status_t foreign_call_untyped(const call_t *call,
                                        const mp_foreign_invocation_t *invocation) {
  mp_lock_assert_none_held();
  _Alignas(16) char failure[STATUS_BYTES] = {0};
  static const char nothing[STATUS_BYTES] = {0};
  untyped_t u = {call, invocation, (XlaCustomCallStatus *)failure};
  MP_RETURN_IF_ERROR(mp_foreign_guard(foreign_call_run_untyped, &u));
  if (memcmp(failure, nothing, sizeof(failure)) == 0) return NULL;
  return mp_status_make(MP_INTERNAL, "the function has reported a failure");
}

// ---- Starting ----

static void foreign_call_done(void *context, mp_status_t status) {
  frame_t *f = context;
  void (*done)(void *, mp_status_t) = f->invocation->done;
  void *of_caller = f->invocation->context;
  status = foreign_call_explain(f->call, status);
  mp_free(f);
  done(of_caller, status);
}

mp_status_t mp_foreign_call_start(const mp_foreign_call_t *base,
                                  const mp_foreign_invocation_t *invocation, bool *out_is_pending) {
  const call_t *call = (const call_t *)base;
  *out_is_pending = false;
  if (!base->handler->is_typed) {
    return foreign_call_explain(call, foreign_call_untyped(call, invocation));
  }
  frame_t *f = NULL;
  MP_RETURN_IF_ERROR(foreign_call_make_frame(call, invocation, XLA_FFI_ExecutionStage_EXECUTE, &f));
  XLA_FFI_Future *future = NULL;
  mp_foreign_pool_enter(base->pool, base->is_small);
  mp_status_t status = mp_foreign_invoke(base->handler->bundle.execute, &f->frame, &future);
  mp_foreign_pool_leave(base->pool, base->is_small);
  if (status == NULL && future != NULL &&
      !mp_foreign_future_take(future, foreign_call_done, f, &status)) {
    // From now on foreign_call_done owns the frame, and may already have run. `out_is_pending` is
    // still valid, because it points to this thread's stack.
    *out_is_pending = true;
    return NULL;
  }
  mp_free(f);
  return foreign_call_explain(call, status);
}
