#include "pjrt/package/pjrt_foreign.h"

#include <stdio.h>

#include "pjrt/pjrt_objects.h"
#include "sim/foreign/foreign_pool.h"

enum { MAX_TEXT = 1024 };

const char *mp_pjrt_text(mp_status_t status) {
  static _Thread_local char text[MAX_TEXT];
  if (status == NULL) return NULL;
  mp_pjrt_log_origin(status);
  snprintf(text, sizeof(text), "%s: %s", mp_status_code_name(mp_status_code(status)),
           mp_status_message(status));
  mp_status_release(status);
  return text;
}

const char *minipod_register_foreign_function(const minipod_foreign_function_t *function) {
  if (function == NULL || function->struct_size < sizeof(*function) || function->name == NULL ||
      function->platform == NULL) {
    return mp_pjrt_text(
        mp_status_make(MP_INVALID_ARGUMENT,
                       "minipod_register_foreign_function: the package is not this library's"));
  }
  const mp_str_t name = mp_str(function->name);
  const mp_str_t platform = mp_str(function->platform);
  if (function->untyped != NULL) {
    return mp_pjrt_text(mp_foreign_register_untyped(name, platform, function->untyped));
  }
  const mp_foreign_traits_t traits = {.may_block = function->may_block != 0,
                                      .traits = function->traits,
                                      .before_use = function->before_use};
  return mp_pjrt_text(mp_foreign_register_typed(name, platform, &function->bundle, traits));
}

const char *minipod_register_foreign_pool(const char *prefix, int (*get)(void),
                                          void (*set)(int threads), int usual) {
  if (prefix == NULL) return mp_pjrt_text(mp_pjrt_null_argument(__func__, "prefix"));
  const mp_foreign_pool_calls_t calls = {get, set, usual};
  return mp_pjrt_text(mp_foreign_register_pool(mp_str(prefix), calls));
}

const char *minipod_register_foreign_type(const char *name, int64_t *inout_id,
                                          void (*deleter)(void *object)) {
  if (name == NULL || inout_id == NULL) {
    return mp_pjrt_text(mp_pjrt_null_argument(__func__, name == NULL ? "name" : "inout_id"));
  }
  XLA_FFI_TypeId id = {*inout_id};
  mp_status_t status = mp_foreign_register_type(mp_str(name), deleter, &id);
  if (status == NULL) *inout_id = id.type_id;
  return mp_pjrt_text(status);
}
