// Options of the library in tests: without those of the environment, and from texts.
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_OPTIONS_TEST_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_OPTIONS_TEST_H_

#include <stdlib.h>
#include <string.h>

#include "sim/base/options.h"
#include "tests/unit/support/unit.h"

// For setups and teardowns.
static inline int clear_environment(void **state) {
  (void)state;
  for (int id = 0; id < MP_OPTION_ID_COUNT; ++id) {
    const char *name = mp_option_info((mp_option_id_t)id)->environment;
    if (name[0] != '\0') unsetenv(name);
  }
  return 0;
}

// Options given as one text: "name=value;name=value".
static inline mp_status_t options_from(const char *text, mp_options_t **out_options) {
  mp_named_value_t values[8];
  size_t count = 0;
  for (const char *at = text; *at != '\0'; ++count) {
    size_t name = strcspn(at, "=");
    size_t value = strcspn(at + name + 1, ";");
    values[count] = (mp_named_value_t){
        .name = {at, name}, .type = MP_VALUE_STRING, .string_value = {at + name + 1, value}};
    at += name + 1 + value;
    if (*at == ';') ++at;
  }
  return mp_options_create(values, count, out_options);
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_OPTIONS_TEST_H_
