// The names of enumerations in descriptions and pods.
#include "topology/pod.h"

#define TEXT(name, text) text,
#define DEFINE_NAME(function, type, rows)            \
  const char *function(type value) {                 \
    static const char *const names[] = {rows(TEXT)}; \
    return names[value];                             \
  }
DEFINE_NAME(mp_memory_space_name, mp_memory_space_t, MP_MEMORY_SPACES)
DEFINE_NAME(mp_wiring_name, mp_wiring_t, MP_WIRINGS)
DEFINE_NAME(mp_fabric_name, mp_fabric_t, MP_FABRICS)
DEFINE_NAME(mp_time_mode_name, mp_time_mode_t, MP_TIME_MODES)
DEFINE_NAME(mp_values_mode_name, mp_values_mode_t, MP_VALUES_MODES)
DEFINE_NAME(mp_clock_mode_name, mp_clock_mode_t, MP_CLOCK_MODES)
DEFINE_NAME(mp_platform_name, mp_platform_t, MP_PLATFORMS)
DEFINE_NAME(mp_absent_mode_name, mp_absent_mode_t, MP_ABSENT_MODES)
