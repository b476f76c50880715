// Python callbacks: the foreign functions that pass calls to the Python package.
#include "pjrt/package/pjrt_foreign.h"

#include <stdatomic.h>
#include <string.h>

#include "pjrt/pjrt_objects.h"
#include "sim/base/alloc.h"
#include "sim/base/os/clock.h"
#include "sim/base/os/futex.h"
#include "sim/foreign/foreign_api.h"
#include "sim/runtime/runs/executable.h"
#include "sim/runtime/workers/caller.h"

// The state of the instantiate stage: records that a program calls a callable.
typedef struct held_s {
  struct held_s *next;  // in the list of freed ones
  uint64_t number;
} held_t;

enum { MP_PYTHON_SMALL = 128 };  // calls with at most this many numbers need no allocation

// A bit of g_num_calls: the package is not called any more.
#define MP_PYTHON_CLOSED 0x80000000u

static minipod_python_t g_python;   // set once, before any handler is registered
static XLA_FFI_TypeId g_held_type;  // likewise
// Newest first. Lock-free, because programs are released on any thread, with or without Python's
// lock: they push, and Python takes the whole list at once, so an equal head means an equal list.
static _Atomic(held_t *) g_gone;
static atomic_uint g_num_calls;  // calls in the package's functions; futex word
static _Thread_local mp_status_t t_error;
static _Thread_local bool t_is_known;  // registered with Python, until the thread ends

// ---- Calling the package ----

// False: it is closed.
static bool pjrt_python_enter(void) {
  // The bit and the number are one word: a call either is counted before the bit is set, and waited
  // for, or it finds the bit.
  if ((atomic_fetch_add(&g_num_calls, 1) & MP_PYTHON_CLOSED) == 0) return true;
  atomic_fetch_sub(&g_num_calls, 1);
  return false;
}

// Python's state of an ended thread remains until Python ends; so only the one thread that stays
// with the client registers.
static void pjrt_python_introduce(void) {
  if (t_is_known || !mp_caller_stays()) return;
  (void)g_python.ensure();
  (void)g_python.save();
  t_is_known = true;
}

static void pjrt_python_leave(void) {
  if ((atomic_fetch_sub(&g_num_calls, 1) & MP_PYTHON_CLOSED) != 0) mp_futex_wake_all(&g_num_calls);
}

static mp_status_t pjrt_python_closed(void) {
  return mp_status_make(MP_CANCELLED, "Python is ending: callbacks are not called any more");
}

// The error of a function of the package that has returned `result`.
static mp_status_t pjrt_python_result(int result) {
  mp_status_t error = t_error;
  t_error = NULL;
  if (result != 0 && error == NULL) {
    return mp_status_make(MP_INTERNAL, "a Python callback failed without an error");
  }
  MP_ASSERT(result != 0 || error == NULL);
  return error;
}

void minipod_python_fail(const char *text, size_t size) {
  mp_status_release(t_error);
  t_error = mp_status_make(MP_INTERNAL, "%.*s", mp_str_precision(size), text);
}

uint32_t minipod_python_pending(void) {
  return mp_executable_num_blocking_runs();
}

uint32_t minipod_python_close(double seconds) {
  // A call that finds the bit increments and decrements the number, and may wake this thread in
  // vain.
  unsigned calls = atomic_fetch_or(&g_num_calls, MP_PYTHON_CLOSED) & ~MP_PYTHON_CLOSED;
  const double end = mp_clock_seconds() + seconds;
  for (double left = seconds; calls != 0 && left > 0; left = end - mp_clock_seconds()) {
    const struct timespec timeout = mp_clock_interval(left < 1 ? left : 1);
    mp_futex_wait(&g_num_calls, calls | MP_PYTHON_CLOSED, &timeout);
    calls = atomic_load(&g_num_calls) & ~MP_PYTHON_CLOSED;
  }
  return calls;
}

// ---- The callables of programs ----

static void pjrt_python_on_gone(void *state) {
  held_t *held = state;
  held->next = atomic_load(&g_gone);
  while (!atomic_compare_exchange_weak(&g_gone, &held->next, held)) {
  }
}

size_t minipod_python_take_released(uint64_t *numbers, size_t room) {
  size_t count = 0;
  held_t *held = atomic_exchange(&g_gone, NULL);
  while (held != NULL) {
    held_t *next = held->next;
    if (count < room) {
      numbers[count++] = held->number;
      mp_free(held);
    } else {
      pjrt_python_on_gone(held);  // keep it for the next time
    }
    held = next;
  }
  return count;
}

// ---- Handlers ----

static bool pjrt_python_is_metadata(const XLA_FFI_CallFrame *frame) {
  if (frame->extension_start == NULL ||
      frame->extension_start->type != XLA_FFI_Extension_Metadata) {
    return false;
  }
  XLA_FFI_Metadata *metadata =
      ((XLA_FFI_Metadata_Extension *)(void *)frame->extension_start)->metadata;
  metadata->api_version.major_version = XLA_FFI_API_MAJOR;
  metadata->api_version.minor_version = XLA_FFI_API_MINOR;
  return true;
}

static mp_status_t pjrt_python_number(const XLA_FFI_CallFrame *frame, uint64_t *out_number) {
  for (int64_t i = 0; i < frame->attrs.size; ++i) {
    const XLA_FFI_ByteSpan *name = frame->attrs.names[i];
    if (!mp_str_is((mp_str_t){name->ptr, name->len}, "index")) continue;
    const XLA_FFI_Scalar *scalar = frame->attrs.attrs[i];
    if (frame->attrs.types[i] != XLA_FFI_AttrType_SCALAR) break;
    if (scalar->dtype != XLA_FFI_DataType_U64) break;
    memcpy(out_number, scalar->value, sizeof(*out_number));
    return NULL;
  }
  return mp_status_make(MP_INVALID_ARGUMENT,
                        "a Python callback needs an attribute 'index', an unsigned 64-bit number");
}

static mp_status_t pjrt_python_hold(const XLA_FFI_CallFrame *frame) {
  uint64_t number = 0;
  MP_RETURN_IF_ERROR(pjrt_python_number(frame, &number));
  held_t *held = mp_calloc(1, sizeof(*held));
  MP_RETURN_IF_NULL(held);
  held->number = number;
  mp_status_t status = pjrt_python_closed();
  if (pjrt_python_enter()) {
    mp_status_release(status);
    status = pjrt_python_result(g_python.hold(number));
    pjrt_python_leave();
  }
  if (status != NULL) {
    mp_free(held);
    return status;
  }
  XLA_FFI_State_Set_Args args = {.struct_size = XLA_FFI_SIZE(XLA_FFI_State_Set_Args, state),
                                 .ctx = frame->ctx,
                                 .stage = frame->stage,
                                 .type_id = &g_held_type,
                                 .state = held};
  status = mp_foreign_status(frame->api->XLA_FFI_State_Set(&args));
  if (status != NULL) pjrt_python_on_gone(held);
  return status;
}

static XLA_FFI_Error *pjrt_python_instantiate(XLA_FFI_CallFrame *frame) {
  if (pjrt_python_is_metadata(frame)) return NULL;
  return mp_foreign_error(pjrt_python_hold(frame));
}

// Writes the encoding of one array or token; NULL: only counts. Returns the number of numbers.
static size_t pjrt_python_describe(const XLA_FFI_Buffer *buffer, int64_t *numbers) {
  const size_t rank = (size_t)buffer->rank;
  if (numbers != NULL) {
    numbers[0] = buffer->dtype;
    numbers[1] = (int64_t)(intptr_t)buffer->data;
    numbers[2] = buffer->rank;
    if (rank != 0) memcpy(&numbers[3], buffer->dims, rank * sizeof(*numbers));
  }
  return 3 + rank;
}

static size_t pjrt_python_describe_all(const XLA_FFI_CallFrame *frame, int64_t *numbers) {
  size_t length = MP_PYTHON_HEAD;
  for (int64_t i = 0; i < frame->args.size + frame->rets.size; ++i) {
    const bool is_input = i < frame->args.size;
    const XLA_FFI_Buffer *buffer =
        is_input ? frame->args.args[i] : frame->rets.rets[i - frame->args.size];
    length += pjrt_python_describe(buffer, numbers == NULL ? NULL : &numbers[length]);
  }
  if (numbers != NULL) {
    numbers[MP_PYTHON_LENGTH] = (int64_t)length;
    numbers[MP_PYTHON_NUM_INPUTS] = frame->args.size;
    numbers[MP_PYTHON_NUM_OUTPUTS] = frame->rets.size;
  }
  return length;
}

static mp_status_t pjrt_python_call(const XLA_FFI_CallFrame *frame, int64_t kind) {
  uint64_t number = 0;
  MP_RETURN_IF_ERROR(pjrt_python_number(frame, &number));
  int64_t small[MP_PYTHON_SMALL];
  const size_t length = pjrt_python_describe_all(frame, NULL);
  int64_t *numbers = length <= MP_PYTHON_SMALL ? small : mp_malloc(length * sizeof(*numbers));
  MP_RETURN_IF_NULL(numbers);
  pjrt_python_describe_all(frame, numbers);
  numbers[MP_PYTHON_KIND] = kind;
  numbers[MP_PYTHON_NUMBER] = (int64_t)number;
  mp_status_t status = NULL;
  if (pjrt_python_enter()) {
    pjrt_python_introduce();
    status = pjrt_python_result(g_python.call(numbers));
    pjrt_python_leave();
  } else {
    status = pjrt_python_closed();
  }
  if (numbers != small) mp_free(numbers);
  return status;
}

static XLA_FFI_Error *pjrt_python_arrays(XLA_FFI_CallFrame *frame) {
  if (pjrt_python_is_metadata(frame)) return NULL;
  return mp_foreign_error(pjrt_python_call(frame, MP_PYTHON_ARRAYS));
}

static XLA_FFI_Error *pjrt_python_buffers(XLA_FFI_CallFrame *frame) {
  if (pjrt_python_is_metadata(frame)) return NULL;
  return mp_foreign_error(pjrt_python_call(frame, MP_PYTHON_BUFFERS));
}

// ---- Registration ----

static mp_status_t pjrt_python_register(const char *name, XLA_FFI_Handler *execute) {
  const XLA_FFI_Handler_Bundle bundle = {.instantiate = pjrt_python_instantiate,
                                         .execute = execute};
  // The package composes error messages like JAX's CPU backend.
  const mp_foreign_traits_t traits = {.may_block = true, .explains_itself = true};
  return mp_foreign_register_typed(mp_str(name), mp_str("minipod"), &bundle, traits);
}

static mp_status_t pjrt_python_open(const minipod_python_t *python) {
  if (python == NULL || python->struct_size < sizeof(*python) || python->hold == NULL ||
      python->call == NULL || python->ensure == NULL || python->save == NULL) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "minipod_python_open: the package is not this library's");
  }
  if (g_python.call != NULL) {
    return mp_status_make(MP_ALREADY_EXISTS, "minipod_python_open was called before");
  }
  MP_RETURN_IF_ERROR(
      mp_foreign_register_type(mp_str("minipod.python"), pjrt_python_on_gone, &g_held_type));
  g_python = *python;
  MP_RETURN_IF_ERROR(pjrt_python_register("xla_ffi_python_cpu_callback", pjrt_python_arrays));
  MP_RETURN_IF_ERROR(
      pjrt_python_register("xla_ffi_partitioned_python_cpu_callback", pjrt_python_arrays));
  return pjrt_python_register("xla_buffer_python_cpu_callback", pjrt_python_buffers);
}

const char *minipod_python_open(const minipod_python_t *python) {
  return mp_pjrt_text(pjrt_python_open(python));
}
