// The names that descriptions and pods have for what is one of a few.
#include "topology/pod.h"

const char *mp_memory_space_name(mp_memory_space_t space) {
  static const char *const names[] = {
#define MP_MEMORY_SPACE_TEXT(name, text) text,
      MP_MEMORY_SPACES(MP_MEMORY_SPACE_TEXT)
#undef MP_MEMORY_SPACE_TEXT
  };
  return names[space];
}

const char *mp_wiring_name(mp_wiring_t wiring) {
  static const char *const names[] = {
#define MP_WIRING_TEXT(name, text) text,
      MP_WIRINGS(MP_WIRING_TEXT)
#undef MP_WIRING_TEXT
  };
  return names[wiring];
}

const char *mp_fabric_name(mp_fabric_t fabric) {
  static const char *const names[] = {
#define MP_FABRIC_TEXT(name, text) text,
      MP_FABRICS(MP_FABRIC_TEXT)
#undef MP_FABRIC_TEXT
  };
  return names[fabric];
}

const char *mp_time_mode_name(mp_time_mode_t mode) {
  static const char *const names[] = {
#define MP_TIME_MODE_TEXT(name, text) text,
      MP_TIME_MODES(MP_TIME_MODE_TEXT)
#undef MP_TIME_MODE_TEXT
  };
  return names[mode];
}

const char *mp_values_mode_name(mp_values_mode_t values) {
  static const char *const names[] = {
#define MP_VALUES_MODE_TEXT(name, text) text,
      MP_VALUES_MODES(MP_VALUES_MODE_TEXT)
#undef MP_VALUES_MODE_TEXT
  };
  return names[values];
}
