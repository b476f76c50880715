// The table of functions, GetPjrtApi, and what concerns the plugin as a whole.

#include "pjrt/pjrt_objects.h"

// Versions of StableHLO whose portable bytecode the readers take: least and greatest.
static const int64_t stablehlo_minimum_version[] = {0, 9, 0};
static const int64_t stablehlo_current_version[] = {1, 17, 0};

// What callers show as the version of the plugin's compiler, although minipod has no XLA in it.
enum { XLA_VERSION = 2 };

mp_status_t mp_PJRT_Plugin_Initialize(PJRT_Plugin_Initialize_Args *args) {
  (void)args;
  return NULL;
}

#define ATTRIBUTE(attribute, kind, field, value, count)                                   \
  {                                                                                       \
    .struct_size = PJRT_STRUCT_SIZE(PJRT_NamedValue, value_size), .name = attribute,      \
    .name_size = sizeof(attribute) - 1, .type = kind, .field = value, .value_size = count \
  }
static const PJRT_NamedValue attributes[] = {
    ATTRIBUTE("xla_version", PJRT_NamedValue_kInt64, int64_value, XLA_VERSION, 1),
    ATTRIBUTE("stablehlo_current_version", PJRT_NamedValue_kInt64List, int64_array_value,
              stablehlo_current_version, 3),
    ATTRIBUTE("stablehlo_minimum_version", PJRT_NamedValue_kInt64List, int64_array_value,
              stablehlo_minimum_version, 3),
};

mp_status_t mp_PJRT_Plugin_Attributes(PJRT_Plugin_Attributes_Args *args) {
  args->attributes = attributes;
  if (MP_HAS(args, num_attributes)) {
    args->num_attributes = sizeof(attributes) / sizeof(attributes[0]);
  }
  return NULL;
}

// The check of all shells: `args` must be there and cover the fields that every caller has.
static mp_status_t pjrt_api_check_args(const char *function, const void *args, size_t struct_size,
                                       size_t required) {
  if (args == NULL) return mp_pjrt_null_argument(function, "args");
  if (struct_size >= required) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT,
                        "%s: the arguments' struct_size is %zu, at least %zu is needed", function,
                        struct_size, required);
}

#define STATUS_TO_void(status)  mp_status_ignore(status)
#define STATUS_TO_error(status) return mp_pjrt_error(status)
#define DEFINE_SHELL(result, name, required)                                                    \
  static PJRT_RESULT_##result shell_##name(name##_Args *args) {                                 \
    mp_status_t status = pjrt_api_check_args(#name, args, args == NULL ? 0 : args->struct_size, \
                                             PJRT_STRUCT_SIZE(name##_Args, required));          \
    if (status == NULL) status = mp_##name(args);                                               \
    STATUS_TO_##result(status);                                                                 \
  }
PJRT_FUNCTIONS(DEFINE_SHELL)

#define FILL_SLOT(result, name, required) .name = shell_##name,
static const PJRT_Api api = {
    .struct_size = sizeof(PJRT_Api),
    .extension_start = &mp_pjrt_profiler_extension.base,
    .pjrt_api_version =
        {
            .struct_size = PJRT_STRUCT_SIZE(PJRT_Api_Version, minor_version),
            .major_version = PJRT_API_MAJOR,
            .minor_version = PJRT_API_MINOR,
        },
    PJRT_FUNCTIONS(FILL_SLOT)};

__attribute__((visibility("default"))) const PJRT_Api *GetPjrtApi(void) {
  return &api;
}
