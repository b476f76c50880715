#include "sim/base/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/alloc.h"
#include "sim/base/assert.h"

extern char **environ;

static const mp_option_info_t g_options[MP_OPTION_ID_COUNT] = {
#define MP_OPTION_ROW(field, type, min, max, default_text, unit, environment, help) \
  [MP_OPTION_ID_##                                                                  \
      field] = {#field, MP_OPTION_##type, min, max, default_text, unit, environment, help},
    MP_OPTIONS(MP_OPTION_ROW)
#undef MP_OPTION_ROW
};

// The offset of each option's value in mp_options_t.
static const size_t g_offsets[MP_OPTION_ID_COUNT] = {
#define MP_OPTION_OFFSET(field, ...) [MP_OPTION_ID_##field] = offsetof(mp_options_t, field),
    MP_OPTIONS(MP_OPTION_OFFSET)
#undef MP_OPTION_OFFSET
};

static const char *const g_log_levels[] = {"off", "error", "warning", "info", "debug"};
enum { MP_LOG_LEVEL_COUNT = sizeof(g_log_levels) / sizeof(g_log_levels[0]) };

const mp_option_info_t *mp_option_info(mp_option_id_t id) {
  MP_ASSERT((unsigned)id < MP_OPTION_ID_COUNT);
  return &g_options[id];
}

const char *mp_option_source_name(mp_option_source_t source) {
  static const char *const names[] = {"default", "environment variable", "create option"};
  MP_ASSERT((unsigned)source < sizeof(names) / sizeof(names[0]));
  return names[source];
}

static void *options_field_of(mp_options_t *options, mp_option_id_t id) {
  return (char *)options + g_offsets[id];
}

// Makes the error about an option. Its message begins with where the value came from: "create
// option 'x'" or "environment variable MINIPOD_X".
static mp_status_t options_refuse(mp_option_id_t id, mp_option_source_t source, mp_str_t given,
                                  const char *expected) {
  const mp_option_info_t *info = &g_options[id];
  bool env = source == MP_SOURCE_ENVIRONMENT;
  return mp_status_make(MP_INVALID_ARGUMENT, "%s %s%s%s: expected %s, got '%.*s'",
                        mp_option_source_name(source), env ? "" : "'",
                        env ? info->environment : info->name, env ? "" : "'", expected,
                        MP_STR_ARG(given));
}

static mp_status_t options_set_number(mp_options_t *options, mp_option_id_t id,
                                      mp_option_source_t source, long long value, mp_str_t given) {
  const mp_option_info_t *info = &g_options[id];
  if (value < info->min || value > info->max) {
    char expected[96];
    bool open = info->max == INT64_MAX;
    snprintf(expected, sizeof(expected), open ? "at least %lld" : "a number from %lld to %lld",
             (long long)info->min, (long long)info->max);
    return options_refuse(id, source, given, expected);
  }
  *(int64_t *)options_field_of(options, id) = value;
  return NULL;
}

static mp_status_t options_set_string(mp_options_t *options, mp_option_id_t id, mp_str_t text) {
  char *copy = mp_malloc(text.size + 1);
  MP_RETURN_IF_NULL(copy);
  if (text.size != 0) memcpy(copy, text.data, text.size);
  copy[text.size] = '\0';
  char **field = options_field_of(options, id);
  mp_free(*field);
  *field = copy;
  return NULL;
}

// Sets an option from text, from a create option or from the environment.
static mp_status_t options_set_text(mp_options_t *options, mp_option_id_t id,
                                    mp_option_source_t source, mp_str_t text) {
  switch (g_options[id].type) {
    case MP_OPTION_INT: {
      long long value = 0;
      if (!mp_str_parse_i64(text, &value))
        return options_refuse(id, source, text, "a whole number");
      return options_set_number(options, id, source, value, text);
    }
    case MP_OPTION_BYTES: {
      unsigned long long bytes = 0;
      if (!mp_str_parse_bytes(text, &bytes)) {
        return options_refuse(id, source, text, "a size such as 64MiB or 2GiB");
      }
      return options_set_number(options, id, source, (long long)bytes, text);
    }
    case MP_OPTION_STRING:
      if (memchr(text.data == NULL ? "" : text.data, '\0', text.size) != NULL) {
        return options_refuse(id, source, text, "text without NUL bytes");
      }
      return options_set_string(options, id, text);
    case MP_OPTION_LOG_LEVEL:
      for (int i = 0; i < MP_LOG_LEVEL_COUNT; ++i) {
        if (mp_str_is(text, g_log_levels[i])) {
          options->log_level = (mp_log_level_t)i;
          return NULL;
        }
      }
      return options_refuse(id, source, text, "off, error, warning, info or debug");
  }
  return mp_status_make(MP_INTERNAL, "option '%s' has no type", g_options[id].name);
}

static mp_status_t options_set_value(mp_options_t *options, mp_option_id_t id,
                                     const mp_named_value_t *value) {
  static const char *const type_names[] = {"a string", "an integer", "a list of integers",
                                           "a float", "a bool"};
  mp_option_type_t type = g_options[id].type;
  bool number = type == MP_OPTION_INT || type == MP_OPTION_BYTES;
  if (value->type == MP_VALUE_STRING) {
    return options_set_text(options, id, MP_SOURCE_CREATE_OPTION, value->string_value);
  }
  if (value->type == MP_VALUE_INT64 && number) {
    char text[32];
    snprintf(text, sizeof(text), "%lld", (long long)value->int64_value);
    return options_set_number(options, id, MP_SOURCE_CREATE_OPTION, value->int64_value,
                              mp_str(text));
  }
  size_t kind = (size_t)value->type;
  const char *given =
      kind < sizeof(type_names) / sizeof(type_names[0]) ? type_names[kind] : "an unknown type";
  return mp_status_make(MP_INVALID_ARGUMENT, "create option '%s': expected %s, got %s",
                        g_options[id].name, number ? "a number (or a string with one)" : "a string",
                        given);
}

// Takes away what has been set before.
static mp_status_t options_unset(mp_options_t *options, mp_option_id_t id) {
  const mp_option_info_t *info = &g_options[id];
  options->source[id] = MP_SOURCE_DEFAULT;
  if (info->default_text[0] == '\0' && info->type != MP_OPTION_STRING) {
    *(int64_t *)options_field_of(options, id) = MP_OPTION_UNSET;
    return NULL;
  }
  return options_set_text(options, id, MP_SOURCE_DEFAULT, mp_str(info->default_text));
}

// A topology that is given in code says how many devices there are: MINIPOD_DEVICES does not
// contradict it. (A number that is given in code may be that of a topology in the environment.)
static mp_status_t options_prefer_create_options(mp_options_t *options) {
  const mp_option_source_t *source = options->source;
  if (source[MP_OPTION_ID_topology] != MP_SOURCE_CREATE_OPTION ||
      source[MP_OPTION_ID_num_devices] != MP_SOURCE_ENVIRONMENT) {
    return NULL;
  }
  return options_unset(options, MP_OPTION_ID_num_devices);
}

static mp_status_t options_apply_create_option(mp_options_t *options,
                                               const mp_named_value_t *value) {
  const char *names[MP_OPTION_ID_COUNT];
  for (int id = 0; id < MP_OPTION_ID_COUNT; ++id) {
    names[id] = g_options[id].name;
    if (!mp_str_is(value->name, names[id])) continue;
    if (value->type == MP_VALUE_STRING && value->string_value.size == 0) {
      return options_unset(options, (mp_option_id_t)id);
    }
    options->source[id] = MP_SOURCE_CREATE_OPTION;
    return options_set_value(options, (mp_option_id_t)id, value);
  }
  const char *nearest = mp_str_nearest(value->name, names, MP_OPTION_ID_COUNT);
  if (nearest != NULL) {
    return mp_status_make(MP_INVALID_ARGUMENT, "unknown create option '%.*s', did you mean '%s'?",
                          MP_STR_ARG(value->name), nearest);
  }
  mp_strbuf_t known;
  mp_strbuf_init(&known);
  for (int id = 0; id < MP_OPTION_ID_COUNT; ++id) {
    mp_strbuf_printf(&known, "%s%s", id == 0 ? "" : ", ", names[id]);
  }
  mp_status_t status =
      mp_status_make(MP_INVALID_ARGUMENT, "unknown create option '%.*s'; known are %s",
                     MP_STR_ARG(value->name), mp_strbuf_text(&known));
  mp_strbuf_deinit(&known);
  return status;
}

// An empty variable counts as not set, so that a script can unset one with `X= command`.
static mp_status_t options_apply_environment(mp_options_t *options) {
  for (int id = 0; id < MP_OPTION_ID_COUNT; ++id) {
    if (g_options[id].environment[0] == '\0') continue;
    const char *text = getenv(g_options[id].environment);
    if (text == NULL || text[0] == '\0') continue;
    options->source[id] = MP_SOURCE_ENVIRONMENT;
    MP_RETURN_IF_ERROR(
        options_set_text(options, (mp_option_id_t)id, MP_SOURCE_ENVIRONMENT, mp_str(text)));
  }
  return NULL;
}

// Variables that are not the library's: the Python package's, and the test tools'.
static const char *const g_foreign[] = {
    "MINIPOD_LIBRARY", "MINIPOD_PROCESSES",    "MINIPOD_BUILD",  "MINIPOD_JAX_TESTS",
    "MINIPOD_JAX_GIT", "MINIPOD_START_HOOK",   "MINIPOD_LABELS", "MINIPOD_MPI_OWNER",
    "MINIPOD_PACKAGE", "MINIPOD_MLIR_PROGRAMS"};
enum { FOREIGN_COUNT = sizeof(g_foreign) / sizeof(g_foreign[0]) };
// What the names of more of them begin with.
static const char *const g_foreign_prefixes[] = {"MINIPOD_TEST_", "MINIPOD_RANDOM_",
                                                 "MINIPOD_NATIVE_", "MINIPOD_COMMUNICATION_"};
enum { FOREIGN_PREFIX_COUNT = sizeof(g_foreign_prefixes) / sizeof(g_foreign_prefixes[0]) };

// Without a warning, a misspelt variable would silently have no effect.
static void options_warn_of_unknown_variables(void) {
  const char *names[MP_OPTION_ID_COUNT + FOREIGN_COUNT];
  size_t count = 0;
  for (int id = 0; id < MP_OPTION_ID_COUNT; ++id) {
    if (g_options[id].environment[0] != '\0') names[count++] = g_options[id].environment;
  }
  for (size_t i = 0; i < FOREIGN_COUNT; ++i) names[count++] = g_foreign[i];
  for (char **entry = environ; entry != NULL && *entry != NULL; ++entry) {
    if (strncmp(*entry, "MINIPOD_", 8) != 0) continue;
    mp_str_t name = {*entry, strcspn(*entry, "=")};
    bool known = false;
    for (size_t i = 0; i < FOREIGN_PREFIX_COUNT; ++i) {
      known = known || mp_str_starts_with(name, g_foreign_prefixes[i]);
    }
    for (size_t i = 0; i < count; ++i) known = known || mp_str_is(name, names[i]);
    if (known) continue;
    const char *nearest = mp_str_nearest(name, names, count);
    mp_log(MP_LOG_WARNING, "unknown environment variable %.*s%s%s%s", MP_STR_ARG(name),
           nearest == NULL ? "" : ", did you mean ", nearest == NULL ? "" : nearest,
           nearest == NULL ? "" : "?");
  }
}

static mp_status_t options_set_defaults(mp_options_t *options) {
  for (int id = 0; id < MP_OPTION_ID_COUNT; ++id) {
    const mp_option_info_t *info = &g_options[id];
    bool number = info->type == MP_OPTION_INT || info->type == MP_OPTION_BYTES;
    if (number) *(int64_t *)options_field_of(options, (mp_option_id_t)id) = MP_OPTION_UNSET;
    if (number && info->default_text[0] == '\0') continue;
    MP_RETURN_IF_ERROR(options_set_text(options, (mp_option_id_t)id, MP_SOURCE_DEFAULT,
                                        mp_str(info->default_text)));
  }
  return NULL;
}

static mp_status_t options_resolve(mp_options_t *options, const mp_named_value_t *values,
                                   size_t count) {
  MP_RETURN_IF_ERROR(options_set_defaults(options));
  MP_RETURN_IF_ERROR(options_apply_environment(options));
  for (size_t i = 0; i < count; ++i) {
    MP_RETURN_IF_ERROR(options_apply_create_option(options, &values[i]));
  }
  return options_prefer_create_options(options);
}

mp_status_t mp_options_create(const mp_named_value_t *values, size_t count,
                              mp_options_t **out_options) {
  mp_options_t *options = mp_calloc(1, sizeof(*options));
  MP_RETURN_IF_NULL(options);
  mp_status_t status = options_resolve(options, values, count);
  if (status != NULL) {
    mp_options_release(options);
    return status;
  }
  mp_log_set_level(options->log_level);
  options_warn_of_unknown_variables();
  *out_options = options;
  return NULL;
}

void mp_options_release(mp_options_t *options) {
  if (options == NULL) return;
  for (int id = 0; id < MP_OPTION_ID_COUNT; ++id) {
    if (g_options[id].type != MP_OPTION_STRING) continue;
    mp_free(*(char **)options_field_of(options, (mp_option_id_t)id));
  }
  mp_free(options);
}
