// Buffers that become other buffers: the same bytes with another type or a further condition, and
// placeholders for buffers that come later.

#include <inttypes.h>

#include "sim/base/alloc.h"
#include "sim/runtime/buffers/buffer_impl.h"

// ---- moving ----

// These types have invalid bytes (sim/numeric/dtype.h), so only elements of the same type may
// become their elements.
static bool move_has_invalid_bytes(mp_dtype_t dtype) {
  return mp_dtype_bits(dtype) != 8 * (int)mp_dtype_size(dtype);
}

static mp_status_t move_check(const mp_buffer_t *buffer, mp_dtype_t dtype, uint64_t bytes) {
  if (bytes != buffer->form->bytes) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "an array of %" PRIu64 " bytes cannot be one of %" PRIu64 " bytes",
                          buffer->form->bytes, bytes);
  }
  if (dtype == buffer->form->type.dtype || !move_has_invalid_bytes(dtype)) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT, "the bytes of %s elements may be no %s elements",
                        mp_dtype_name(buffer->form->type.dtype), mp_dtype_name(dtype));
}

// A definition that waits for two events.
typedef struct {
  atomic_int pending;  // of the two, and of the registration for them
  mp_event_t *definition;
  mp_status_t errors[2];  // each written by the callback of one event, before it counts down
} joint_t;

static void move_joint_done(joint_t *joint) {
  // The two events may be set on two threads at once. Acquire and release: the last one to count
  // down sees the errors of both.
  if (atomic_fetch_sub(&joint->pending, 1) != 1) return;
  mp_status_t error = joint->errors[0] != NULL ? joint->errors[0] : joint->errors[1];
  mp_event_set(joint->definition, mp_status_retain(error));
  mp_event_release(joint->definition);
  mp_status_release(joint->errors[0]);
  mp_status_release(joint->errors[1]);
  mp_free(joint);
}

static void move_on_contents(mp_status_t status, void *context) {
  joint_t *joint = context;
  joint->errors[0] = mp_status_retain(status);
  move_joint_done(joint);
}

static void move_on_condition(mp_status_t status, void *context) {
  joint_t *joint = context;
  joint->errors[1] = mp_status_retain(status);
  move_joint_done(joint);
}

// An event that is set when both are.
static mp_status_t move_join(mp_event_t *contents, mp_event_t *condition, mp_event_t **out_event) {
  mp_event_t *definition = NULL;
  MP_RETURN_IF_ERROR(mp_event_create(&definition));
  joint_t *joint = mp_calloc(1, sizeof(*joint));
  if (joint == NULL) {
    mp_event_release(definition);
    return mp_status_out_of_memory();
  }
  atomic_init(&joint->pending,
              3);  // the third is this function's, until both callbacks are registered
  joint->definition = mp_event_retain(definition);
  mp_status_t status = mp_event_on_ready(contents, move_on_contents, joint);
  if (status != NULL) {
    move_joint_done(joint);  // no callback will come for the contents
  } else {
    status = mp_event_on_ready(condition, move_on_condition, joint);
  }
  if (status != NULL) move_joint_done(joint);
  move_joint_done(joint);
  if (status != NULL) {
    mp_event_release(definition);
    return status;
  }
  *out_event = definition;
  return NULL;
}

mp_status_t mp_buffer_move(mp_buffer_t *buffer, mp_dtype_t dtype, const int64_t *dims,
                           uint32_t rank, mp_event_t *after, mp_buffer_t **out_buffer) {
  MP_RETURN_IF_ERROR(mp_client_check(mp_device_client(buffer->memory->device)));
  uint64_t bytes = 0;
  MP_RETURN_IF_ERROR(mp_buffer_form_bytes_of(dtype, dims, rank, &bytes));
  MP_RETURN_IF_ERROR(move_check(buffer, dtype, bytes));
  mp_event_t *definition = NULL;
  if (after == NULL) {
    definition = mp_event_retain(buffer->definition);
  } else {
    MP_RETURN_IF_ERROR(move_join(buffer->definition, after, &definition));
  }
  // The new buffer is made first, because taking the storage from the old one cannot be undone.
  mp_buffer_t *moved = NULL;
  mp_status_t status = mp_buffer_make(buffer->memory, dtype, dims, rank, NULL, definition, &moved);
  if (status == NULL) status = mp_buffer_give_up(buffer, &moved->storage);
  mp_event_release(definition);
  if (status != NULL) {
    mp_buffer_release(moved);
    return status;
  }
  moved->is_behind_call = buffer->is_behind_call;
  *out_buffer = moved;
  return NULL;
}

// ---- promises ----

struct mp_promise_s {
  mp_buffer_t *buffer;    // a reference
  mp_storage_t *storage;  // a hold: the buffer may be deleted or donated before its contents come
  mp_event_t *definition;
};

mp_status_t mp_buffer_promise(mp_memory_t *memory, mp_dtype_t dtype, const int64_t *dims,
                              uint32_t rank, mp_buffer_t **out_buffer, mp_promise_t **out_promise) {
  mp_promise_t *promise = mp_calloc(1, sizeof(*promise));
  MP_RETURN_IF_NULL(promise);
  mp_status_t status =
      mp_buffer_create(memory, dtype, dims, rank, &promise->buffer, &promise->definition);
  if (status != NULL) {
    mp_free(promise);
    return status;
  }
  promise->storage = mp_storage_retain(promise->buffer->storage);
  *out_buffer = mp_buffer_retain(promise->buffer);
  *out_promise = promise;
  return NULL;
}

static void move_free_promise(mp_promise_t *promise) {
  mp_storage_release(promise->storage);
  mp_event_release(promise->definition);
  mp_buffer_release(promise->buffer);
  mp_free(promise);
}

void mp_promise_break(mp_promise_t *promise, mp_status_t error) {
  if (promise == NULL) {
    mp_status_release(error);
    return;
  }
  mp_event_set(promise->definition, error);
  move_free_promise(promise);
}

static mp_status_t move_check_promised(const mp_buffer_t *promised, const mp_buffer_t *source) {
  if (mp_device_client(source->memory->device) != mp_device_client(promised->memory->device)) {
    return mp_status_make(MP_INVALID_ARGUMENT, "the buffer is another client's");
  }
  if (mp_type_equal(&promised->form->type, &source->form->type)) return NULL;
  mp_strbuf_t wanted, got;
  mp_strbuf_init(&wanted);
  mp_strbuf_init(&got);
  mp_type_print(&promised->form->type, &wanted);
  mp_type_print(&source->form->type, &got);
  mp_status_t status = mp_status_make(MP_INVALID_ARGUMENT, "%s was promised, not %s",
                                      mp_strbuf_text(&wanted), mp_strbuf_text(&got));
  mp_strbuf_deinit(&wanted);
  mp_strbuf_deinit(&got);
  return status;
}

mp_status_t mp_promise_keep(mp_promise_t *promise, mp_buffer_t *source) {
  mp_client_t *client = mp_device_client(promise->buffer->memory->device);
  mp_storage_copy_t copy = {.after = source->definition, .bytes = source->form->bytes};
  mp_status_t status = mp_client_check(client);
  if (status == NULL) status = move_check_promised(promise->buffer, source);
  if (status == NULL) status = mp_buffer_give_up(source, &copy.source);
  if (status == NULL) {
    copy.target = mp_storage_retain(promise->storage);
    status = mp_storage_copy(client, &copy, promise->definition);
  }
  if (status != NULL) mp_event_set(promise->definition, mp_status_retain(status));
  move_free_promise(promise);
  return status;
}
