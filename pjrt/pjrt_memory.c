// Memory spaces, and the user data that callers may attach to them.

#include <string.h>

#include "pjrt/pjrt_objects.h"
#include "sim/base/alloc.h"
#include "sim/base/os/lock.h"

mp_status_t mp_PJRT_Memory_Id(PJRT_Memory_Id_Args *args) {
  MP_REQUIRE(args, memory);
  args->id = mp_pjrt_memory(args->memory)->id;
  return NULL;
}

mp_status_t mp_PJRT_Memory_Kind(PJRT_Memory_Kind_Args *args) {
  MP_REQUIRE(args, memory);
  args->kind = mp_memory_space_name(mp_pjrt_memory(args->memory)->space);
  args->kind_size = strlen(args->kind);
  return NULL;
}

mp_status_t mp_PJRT_Memory_Kind_Id(PJRT_Memory_Kind_Id_Args *args) {
  MP_REQUIRE(args, memory);
  args->kind_id = (int)mp_pjrt_memory(args->memory)->space;
  return NULL;
}

mp_status_t mp_PJRT_Memory_DebugString(PJRT_Memory_DebugString_Args *args) {
  MP_REQUIRE(args, memory);
  args->debug_string = mp_pjrt_memory(args->memory)->debug_string;
  args->debug_string_size = strlen(args->debug_string);
  return NULL;
}

mp_status_t mp_PJRT_Memory_ToString(PJRT_Memory_ToString_Args *args) {
  MP_REQUIRE(args, memory);
  args->to_string = mp_pjrt_memory(args->memory)->to_string;
  args->to_string_size = strlen(args->to_string);
  return NULL;
}

mp_status_t mp_PJRT_Memory_AddressableByDevices(PJRT_Memory_AddressableByDevices_Args *args) {
  MP_REQUIRE(args, memory);
  args->devices = mp_pjrt_memory(args->memory)->device_list;
  args->num_devices = 1;
  return NULL;
}

// ---- user data: one value per key, freed by its own deleter when replaced or with the client ----

struct mp_pjrt_user_data_s {
  mp_pjrt_user_data_t *next;
  const void *key;
  void *value;
  void (*deleter)(void *value);
};

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
