// The plugin's versions and other attributes.

#include "pjrt/pjrt_objects.h"

// The lowest and highest version of StableHLO whose portable bytecode the readers accept.
static const int64_t stablehlo_minimum_version[] = {0, 9, 0};
static const int64_t stablehlo_current_version[] = {1, 17, 0};

// Callers show this as the version of the plugin's compiler, although minipod contains no XLA.
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
