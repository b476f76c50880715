// The key-value callbacks of PJRT_Client_Create, as the store through which processes find each
// other.
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "pjrt/pjrt_objects.h"
#include "sim/base/os/system.h"

// ---- Errors that callbacks return ----

// For the client's callbacks: makes a minipod error.
static PJRT_Error *pjrt_key_value_make_error(PJRT_Error_Code code, const char *message,
                                             size_t message_size) {
  return mp_pjrt_error(code == PJRT_Error_Code_OK ? NULL
                                                  : mp_pjrt_status(code, message, message_size));
}

static PJRT_CallbackError pjrt_key_value_error = pjrt_key_value_make_error;

// ---- The store ----

static mp_status_t pjrt_key_value_put(void *context, const char *key, mp_str_t value) {
  const PJRT_Client_Create_Args *client = context;
  PJRT_KeyValuePutCallback_Args args = {
      .struct_size = PJRT_STRUCT_SIZE(PJRT_KeyValuePutCallback_Args, user_arg),
      .key = key,
      .key_size = strlen(key),
      .value = value.data,
      .value_size = value.size,
      .callback_error = &pjrt_key_value_error,
      .user_arg = client->kv_put_user_arg};
  return mp_pjrt_take_error(client->kv_put_callback(&args));
}

static mp_status_t pjrt_key_value_get(void *context, const char *key, double timeout_s,
                                      mp_strbuf_t *value) {
  const PJRT_Client_Create_Args *client = context;
  PJRT_KeyValueGetCallback_Args args = {
      .struct_size = PJRT_STRUCT_SIZE(PJRT_KeyValueGetCallback_Args, value_deleter_callback),
      .key = key,
      .key_size = strlen(key),
      .timeout_in_ms = timeout_s < INT_MAX / 1000 ? (int)(timeout_s * 1000) + 1 : INT_MAX,
      .callback_error = &pjrt_key_value_error,
      .user_arg = client->kv_get_user_arg};
  MP_RETURN_IF_ERROR(mp_pjrt_take_error(client->kv_get_callback(&args)));
  if (args.value != NULL) mp_strbuf_append(value, args.value, args.value_size);
  if (args.value_deleter_callback != NULL) args.value_deleter_callback(args.value);
  return NULL;
}

static mp_status_t pjrt_key_value_try_get(void *context, const char *key, mp_strbuf_t *value) {
  const PJRT_Client_Create_Args *client = context;
  PJRT_KeyValueTryGetCallback_Args args = {
      .struct_size = PJRT_STRUCT_SIZE(PJRT_KeyValueTryGetCallback_Args, value_deleter_callback),
      .key = key,
      .key_size = strlen(key),
      .callback_error = &pjrt_key_value_error,
      .user_arg = client->kv_try_get_user_arg};
  MP_RETURN_IF_ERROR(mp_pjrt_take_error(client->kv_try_get_callback(&args)));
  if (args.value != NULL) mp_strbuf_append(value, args.value, args.value_size);
  if (args.value_deleter_callback != NULL) args.value_deleter_callback(args.value);
  return NULL;
}

// Whether the address is in memory that may be executed.
static bool pjrt_key_value_is_code(uintptr_t address) {
  FILE *maps = mp_fopen("/proc/self/maps", "re");
  if (maps == NULL) return true;  // it is unknown
  bool is_code = false;
  char line[512];
  for (bool is_begin = true; fgets(line, sizeof(line), maps) != NULL;) {
    uintptr_t first, end;
    char mode[5];
    if (is_begin && sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &first, &end, mode) == 3 &&
        first <= address && address < end) {
      is_code = mode[2] == 'x';
      break;
    }
    is_begin = strchr(line, '\n') != NULL;
  }
  fclose(maps);
  return is_code;
}

bool mp_pjrt_key_value_store(PJRT_Client_Create_Args *args, const mp_options_t *options,
                             mp_key_value_store_t *out_store) {
  // Frameworks without a store leave these fields uninitialized. With a store they set the option
  // num_nodes; but a user may have set it by hand, so check that the fields are code before calling
  // them.
  if (options->num_nodes <= 1 || !pjrt_key_value_is_code((uintptr_t)args->kv_get_callback) ||
      !pjrt_key_value_is_code((uintptr_t)args->kv_put_callback)) {
    return false;
  }
  const bool can_try = pjrt_key_value_is_code((uintptr_t)args->kv_try_get_callback);
  *out_store = (mp_key_value_store_t){.put = pjrt_key_value_put,
                                      .get = pjrt_key_value_get,
                                      .try_get = can_try ? pjrt_key_value_try_get : NULL,
                                      .context = args};
  return true;
}
