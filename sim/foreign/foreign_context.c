#include "sim/foreign/foreign_context.h"

#include <stdatomic.h>

#include "sim/base/alloc.h"
#include "sim/base/assert.h"
#include "sim/base/os/lock.h"
#include "sim/foreign/foreign_options.h"

struct mp_foreign_context_s {
  atomic_int references;
  mp_lock_t lock;
  // Newest first; under the lock. Items are only added, before the first, and never change: a
  // thread that has read `first` under the lock may walk the list without the lock, as calls in
  // flight do.
  mp_foreign_user_data_t *first;
  // Of a context with options:
  mp_foreign_context_t *outer;  // retained; NULL: none
  mp_arena_t *arena;            // owned; of the options. NULL: there are none
  XLA_FFI_Attrs options;
};

mp_status_t mp_foreign_context_create(mp_foreign_context_t **out_context) {
  mp_foreign_context_t *context = mp_calloc(1, sizeof(*context));
  MP_RETURN_IF_NULL(context);
  atomic_init(&context->references, 1);
  mp_lock_init(&context->lock, MP_LOCK_FOREIGN);
  *out_context = context;
  return NULL;
}

mp_status_t mp_foreign_context_create_with(mp_foreign_context_t *outer,
                                           const mp_named_value_t *options, size_t num_options,
                                           mp_foreign_context_t **out_context) {
  mp_foreign_context_t *context = NULL;
  MP_RETURN_IF_ERROR(mp_foreign_context_create(&context));
  context->outer = mp_foreign_context_retain(outer);
  mp_status_t status = mp_arena_create(&context->arena);
  if (status == NULL) {
    status = mp_foreign_options_create(context->arena, options, num_options, &context->options);
  }
  if (status != NULL) {
    mp_foreign_context_release(context);
    return status;
  }
  *out_context = context;
  return NULL;
}

mp_foreign_context_t *mp_foreign_context_retain(mp_foreign_context_t *context) {
  // Relaxed: the caller has a reference already.
  if (context != NULL) atomic_fetch_add_explicit(&context->references, 1, memory_order_relaxed);
  return context;
}

void mp_foreign_context_release(mp_foreign_context_t *context) {
  if (context == NULL) return;
  // Acquire: the last one frees what others have added and read, so it must come after them.
  const int before = atomic_fetch_sub_explicit(&context->references, 1, memory_order_acq_rel);
  MP_ASSERT(before > 0);
  if (before != 1) return;
  while (context->first != NULL) {
    mp_foreign_user_data_t *item = context->first;
    context->first = (mp_foreign_user_data_t *)(uintptr_t)item->next;
    mp_free(item);
  }
  mp_foreign_context_release(context->outer);
  mp_arena_release(context->arena);
  mp_lock_deinit(&context->lock);
  mp_free(context);
}

mp_status_t mp_foreign_context_add(mp_foreign_context_t *context, int64_t type_id, void *data) {
  if (type_id == 0) return mp_status_make(MP_INVALID_ARGUMENT, "user data of no type");
  mp_foreign_user_data_t *item = mp_calloc(1, sizeof(*item));
  MP_RETURN_IF_NULL(item);
  mp_lock(&context->lock);
  const mp_foreign_user_data_t *other = context->first;
  while (other != NULL && other->type_id != type_id) other = other->next;
  if (other == NULL) {
    *item = (mp_foreign_user_data_t){context->first, type_id, data};
    context->first = item;
  }
  mp_unlock(&context->lock);
  if (other == NULL) return NULL;
  mp_free(item);
  return mp_status_make(MP_ALREADY_EXISTS, "the context has user data of type %lld already",
                        (long long)type_id);
}

const mp_foreign_user_data_t *mp_foreign_context_data(mp_foreign_context_t *context) {
  if (context == NULL) return NULL;
  if (context->arena != NULL) return mp_foreign_context_data(context->outer);
  mp_lock(&context->lock);
  const mp_foreign_user_data_t *first = context->first;
  mp_unlock(&context->lock);
  return first;
}

const XLA_FFI_Attrs *mp_foreign_context_options(const mp_foreign_context_t *context) {
  return context == NULL || context->arena == NULL ? NULL : &context->options;
}
