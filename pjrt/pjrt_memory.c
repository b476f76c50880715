// Memory spaces, and the user data that callers may attach to them.

#include <string.h>

#include "pjrt/pjrt_objects.h"
#include "sim/base/alloc.h"
#include "sim/base/os/lock.h"

MP_GETTER(PJRT_Memory_Id, memory, id, mp_pjrt_memory(it)->id)
MP_TEXT_GETTER(PJRT_Memory_Kind, memory, kind, mp_memory_space_name(mp_pjrt_memory(it)->space))
MP_GETTER(PJRT_Memory_Kind_Id, memory, kind_id, (int)mp_pjrt_memory(it)->space)
MP_TEXT_GETTER(PJRT_Memory_DebugString, memory, debug_string, mp_pjrt_memory(it)->debug_string)
MP_TEXT_GETTER(PJRT_Memory_ToString, memory, to_string, mp_pjrt_memory(it)->to_string)
MP_LIST_GETTER(PJRT_Memory_AddressableByDevices, memory, devices, mp_pjrt_memory(it)->device_list,
               num_devices, 1)

// ---- user data: one value per key, freed by its own deleter when replaced or with the client ----

struct mp_pjrt_user_data_s {
  mp_pjrt_user_data_t *next;
  const void *key;
  void *value;
  void (*deleter)(void *value);
};

// One lock for all memories: user data is attached rarely, and lookups are short.
static mp_lock_t user_data_mutex = MP_LOCK_INITIALIZER(MP_LOCK_USER_DATA);

static mp_pjrt_user_data_t *pjrt_memory_find_user_data(mp_pjrt_memory_t *memory, const void *key) {
  mp_pjrt_user_data_t *data = memory->user_data;
  while (data != NULL && data->key != key) data = data->next;
  return data;
}

static void *pjrt_memory_get_user_data(PJRT_Memory *memory, const void *key) {
  mp_lock(&user_data_mutex);
  mp_pjrt_user_data_t *data = pjrt_memory_find_user_data(mp_pjrt_memory(memory), key);
  void *value = data == NULL ? NULL : data->value;
  mp_unlock(&user_data_mutex);
  return value;
}

// The interface has no way to report a failed allocation here; the value is then dropped, as if it
// had been replaced at once. Deleters run without the lock.
static void pjrt_memory_set_user_data(PJRT_Memory *memory_base, const void *key, void *value,
                                      void (*deleter)(void *)) {
  mp_pjrt_memory_t *memory = mp_pjrt_memory(memory_base);
  mp_pjrt_user_data_t *fresh = mp_malloc(sizeof(*fresh));
  mp_pjrt_user_data_t old = {.value = value, .deleter = deleter};
  mp_lock(&user_data_mutex);
  mp_pjrt_user_data_t *data = pjrt_memory_find_user_data(memory, key);
  if (data != NULL) {
    old = *data;
    data->value = value;
    data->deleter = deleter;
  } else if (fresh != NULL) {
    *fresh = (mp_pjrt_user_data_t){memory->user_data, key, value, deleter};
    memory->user_data = fresh;
    fresh = NULL;
    old.deleter = NULL;
  }
  mp_unlock(&user_data_mutex);
  if (old.deleter != NULL) old.deleter(old.value);
  mp_free(fresh);
}

const PJRT_Memory_FunctionTable mp_pjrt_memory_functions = {
    .struct_size = PJRT_STRUCT_SIZE(PJRT_Memory_FunctionTable, set_user_data),
    .instance_struct_size = sizeof(PJRT_Memory),
    .get_user_data = pjrt_memory_get_user_data,
    .set_user_data = pjrt_memory_set_user_data,
};

void mp_pjrt_memory_deinit(mp_pjrt_memory_t *memory) {
  while (memory->user_data != NULL) {
    mp_pjrt_user_data_t *data = memory->user_data;
    memory->user_data = data->next;
    if (data->deleter != NULL) data->deleter(data->value);
    mp_free(data);
  }
}
