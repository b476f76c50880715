#include "sim/runtime/buffers/storage.h"

#include "sim/base/alloc.h"
#include "sim/runtime/devices/device_impl.h"

mp_status_t mp_contents_create(uint64_t bytes, mp_contents_t **out_contents) {
  mp_contents_t *contents = mp_aligned_malloc(64, sizeof(*contents) + bytes);
  MP_RETURN_IF_NULL(contents);
  atomic_init(&contents->references, 1);
  contents->bytes = bytes;
  *out_contents = contents;
  return NULL;
}

mp_contents_t *mp_contents_retain(mp_contents_t *contents) {
  // Relaxed: the caller has a reference already.
  if (contents != NULL) atomic_fetch_add_explicit(&contents->references, 1, memory_order_relaxed);
  return contents;
}

void mp_contents_release(mp_contents_t *contents) {
  if (contents == NULL) return;
  // As all counts of references: the last one frees it after the others.
  if (atomic_fetch_sub_explicit(&contents->references, 1, memory_order_acq_rel) == 1) {
    mp_free(contents);
  }
}

mp_status_t mp_values_create(mp_values_t **out_values) {
  mp_values_t *values = mp_calloc(1, sizeof(*values));
  MP_RETURN_IF_NULL(values);
  atomic_init(&values->references, 1);
  *out_values = values;
  return NULL;
}

mp_values_t *mp_values_retain(mp_values_t *values) {
  // Relaxed: the caller has a reference already.
  if (values != NULL) atomic_fetch_add_explicit(&values->references, 1, memory_order_relaxed);
  return values;
}

void mp_values_set_maker(mp_values_t *values, mp_name_t *maker) {
  mp_name_release(values->maker);
  values->maker = mp_name_retain(maker);
}

void mp_values_release(mp_values_t *values) {
  if (values == NULL) return;
  // As all counts of references: the last one frees it after the others.
  if (atomic_fetch_sub_explicit(&values->references, 1, memory_order_acq_rel) != 1) return;
  mp_contents_release(values->contents);
  mp_name_release(values->maker);
  mp_free(values);
}

// Retains the label. NULL when memory is short.
static mp_storage_t *storage_make(mp_memory_t *memory, uint64_t bytes, mp_label_t *label) {
  mp_storage_t *storage = mp_calloc(1, sizeof(*storage));
  if (storage == NULL) return NULL;
  atomic_init(&storage->references, 1);
  storage->memory = memory;
  storage->bytes = bytes;
  storage->data = mp_empty_array();
  storage->label = mp_label_retain(label);
  mp_client_hold(mp_device_client(memory->device));
  return storage;
}

static void storage_dispose(mp_storage_t *storage) {
  mp_client_t *client = mp_device_client(storage->memory->device);
  mp_label_release(storage->label);
  mp_values_release(storage->values);
  mp_free(storage);
  mp_client_unhold(client);
}

// A storage with its own label, and with its own values when programs run for their shapes alone.
static mp_status_t storage_make_single(mp_memory_t *memory, uint64_t bytes, const mp_label_t *label,
                                       mp_storage_t **out_storage) {
  mp_label_t *own = NULL;
  MP_RETURN_IF_ERROR(mp_label_create(label, &own));
  mp_storage_t *storage = storage_make(memory, bytes, own);
  mp_label_release(own);
  MP_RETURN_IF_NULL(storage);
  if (mp_device_client(memory->device)->shapes_only) {
    mp_status_t status = mp_values_create(&storage->values);
    if (status != NULL) {
      storage_dispose(storage);
      return status;
    }
  }
  *out_storage = storage;
  return NULL;
}

// Gives the storage its bytes; disposes of it on failure.
static mp_status_t storage_allocate(mp_storage_t *storage, uint64_t after) {
  if (storage->bytes == 0) return NULL;
  mp_status_t status =
      mp_memory_alloc(storage->memory, storage->bytes, after, storage->label, &storage->block);
  if (status != NULL) {
    storage_dispose(storage);
    return status;
  }
  storage->data = storage->block->data;
  return NULL;
}

mp_status_t mp_storage_create_result(mp_memory_t *memory, uint64_t bytes, uint64_t after,
                                     mp_label_t *label, mp_storage_t **out_storage) {
  mp_storage_t *storage = storage_make(memory, bytes, label);
  MP_RETURN_IF_NULL(storage);
  MP_RETURN_IF_ERROR(storage_allocate(storage, after));
  *out_storage = storage;
  return NULL;
}

mp_status_t mp_storage_create_copy(mp_memory_t *memory, uint64_t bytes, uint64_t after,
                                   const mp_label_t *label, mp_storage_t **out_storage) {
  mp_storage_t *storage = NULL;
  MP_RETURN_IF_ERROR(storage_make_single(memory, bytes, label, &storage));
  MP_RETURN_IF_ERROR(storage_allocate(storage, after));
  *out_storage = storage;
  return NULL;
}

mp_status_t mp_values_copy(mp_values_t *values, const mp_values_t *source, uint64_t bytes) {
  MP_ASSERT(source->are_there && values->contents == NULL);
  values->contents = mp_contents_retain(source->contents);
  if (values->contents == NULL) {
    MP_RETURN_IF_ERROR(mp_contents_create(bytes, &values->contents));
    if (bytes != 0) memcpy(values->contents->data, source->data, bytes);
  }
  values->data = values->contents->data;
  return NULL;
}

mp_status_t mp_storage_create(mp_memory_t *memory, uint64_t bytes, uint64_t after,
                              const mp_label_t *label, mp_storage_t **out_storage) {
  mp_storage_t *storage = NULL;
  MP_RETURN_IF_ERROR(mp_storage_create_copy(memory, bytes, after, label, &storage));
  mp_values_t *values = storage->values;
  if (values != NULL && bytes <= MP_SMALL_BYTES) {
    mp_status_t status = mp_contents_create(bytes, &values->contents);
    if (status != NULL) {
      mp_storage_release(storage);
      return status;
    }
    storage->data = values->data = values->contents->data;
  }
  *out_storage = storage;
  return NULL;
}

void *mp_storage_find(const mp_storage_t *storage, const void *data) {
  const mp_values_t *values = storage->values;
  if (values == NULL || values->data == NULL) return (void *)(uintptr_t)data;
  return (char *)values->data + ((const char *)data - (const char *)storage->data);
}

mp_status_t mp_storage_adopt(mp_memory_t *memory, uint64_t bytes, void *data,
                             const mp_label_t *label, mp_storage_t **out_storage) {
  mp_storage_t *storage = NULL;
  MP_RETURN_IF_ERROR(storage_make_single(memory, bytes, label, &storage));
  mp_status_t status = mp_memory_charge(memory, bytes, label);
  if (status != NULL) {
    storage_dispose(storage);
    return status;
  }
  if (data != NULL) storage->data = data;
  storage->is_adopted = true;
  if (storage->values != NULL) {
    storage->values->are_there = true;
    storage->values->data = storage->data;
  }
  *out_storage = storage;
  return NULL;
}

mp_status_t mp_storage_set_lender(mp_storage_t *storage, void (*on_release)(void *context),
                                  void *context) {
  MP_ASSERT(storage->is_adopted && storage->lender == NULL);
  mp_storage_lender_t *lender = mp_malloc(sizeof(*lender));
  MP_RETURN_IF_NULL(lender);
  *lender = (mp_storage_lender_t){on_release, context};
  storage->lender = lender;
  return NULL;
}

mp_storage_t *mp_storage_retain(mp_storage_t *storage) {
  if (storage == NULL) return NULL;
  // Relaxed: the caller has a hold, or the lock of a buffer that has one.
  const int before = atomic_fetch_add_explicit(&storage->references, 1, memory_order_relaxed);
  MP_ASSERT(before > 0);
  return storage;
}

void mp_storage_release(mp_storage_t *storage) {
  if (storage == NULL) return;
  // Release: this holder has finished reading and writing. Acquire: all holders have, before the
  // bytes are reused or returned to their owner.
  const int before = atomic_fetch_sub_explicit(&storage->references, 1, memory_order_acq_rel);
  MP_ASSERT(before > 0);
  if (before != 1) return;
  const bool is_adopted = storage->is_adopted;
  MP_ASSERT(is_adopted || storage->block == NULL || storage->block->bytes >= storage->bytes);
  if (!mp_client_is_forked(mp_device_client(storage->memory->device))) {
    if (is_adopted) {
      mp_memory_discharge(storage->memory, storage->bytes);
    } else if (storage->block != NULL) {
      mp_memory_free(storage->memory, storage->block, atomic_load(&storage->last_use));
    }
  }
  if (is_adopted && storage->lender != NULL) {
    mp_lock_assert_none_held();  // the user's function may do anything
    storage->lender->on_release(storage->lender->context);
    mp_free(storage->lender);
  }
  storage_dispose(storage);
}

bool mp_storage_is_sole(const mp_storage_t *storage) {
  MP_ASSERT(atomic_load(&storage->references) > 0);
  // Called under the lock of the buffer that has this hold, and only from that buffer others get
  // holds: so the count stays 1. Acquire, paired with the release of former holders: what they have
  // read may now be overwritten.
  return atomic_load_explicit(&storage->references, memory_order_acquire) == 1;
}

bool mp_storage_is_adopted(const mp_storage_t *storage) {
  return storage->is_adopted;
}

void mp_storage_used_by_run(mp_storage_t *storage, uint64_t number) {
  // Numbers only grow under the launch lock.
  MP_ASSERT(number >= atomic_load(&storage->last_use));
  MP_ASSERT(number <= storage->memory->device->enqueued);
  atomic_store(&storage->last_use, number);
}

void mp_storage_relabel(mp_storage_t *storage, mp_label_t *label) {
  mp_label_t *old = storage->label;
  mp_label_retain(label);
  // The table of holders reads labels under this lock, on any thread. The old label is freed only
  // when no thread can be reading it any more.
  mp_lock(&storage->memory->lock);
  storage->label = label;
  if (!storage->is_adopted && storage->block != NULL) storage->block->label = label;
  mp_unlock(&storage->memory->lock);
  mp_label_release(old);
}
