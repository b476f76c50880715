#include "topology/figures/figures.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/alloc.h"
#include "sim/base/os/file.h"
#include "topology/presets/presets.h"
#include "topology/spec_value.h"
#include "topology/yaml_events.h"

typedef enum {
  FIGURE_COMPILER,
  FIGURE_NUMBER,
  FIGURE_TIME,
  FIGURE_RATE,
  FIGURE_BYTES,
  FIGURE_LIST,
} figure_type_t;

typedef struct {
  const char *key;
  figure_type_t type;
  size_t offset;
} figure_key_t;

static const figure_key_t g_keys[] = {
#define ROW(member, key, type, meaning) {key, FIGURE_##type, offsetof(mp_chip_figures_t, member)},
    MP_CHIP_FIGURES(ROW)
#undef ROW
};
enum { NUM_KEYS = sizeof(g_keys) / sizeof(g_keys[0]), MOST_KEY = 64 };

static const char *const g_compilers[] = {
#define ROW(name, text) [MP_CHIP_COMPILER_##name] = text,
    MP_CHIP_COMPILERS(ROW)
#undef ROW
};

mp_chip_figures_t mp_chip_figures_none(void) {
  mp_chip_figures_t none;
  memset(&none, 0, sizeof(none));
  for (size_t i = 0; i < NUM_KEYS; ++i) {
    if (g_keys[i].type == FIGURE_COMPILER || g_keys[i].type == FIGURE_LIST) continue;
    const double absent = NAN;
    memcpy((char *)&none + g_keys[i].offset, &absent, sizeof(absent));
  }
  return none;
}

// ---- values ----

static bool figures_parse_number(mp_str_t text, double *out) {
  const size_t used = mp_str_scan_double(text, out);
  return used != 0 && used == text.size && isfinite(*out) && *out >= 0;
}

static bool figures_parse_bytes(mp_str_t text, double *out) {
  uint64_t bytes = 0;
  if (!mp_spec_value_parse(MP_SPEC_BYTES, text, &bytes) || bytes == UINT64_MAX) return false;
  *out = (double)bytes;
  return true;
}

static bool figures_parse_compiler(mp_str_t text, mp_chip_compiler_t *out) {
  for (int i = 0; i < MP_CHIP_COMPILER_COUNT; ++i) {
    if (!mp_str_is(text, g_compilers[i])) continue;
    *out = (mp_chip_compiler_t)i;
    return true;
  }
  return false;
}

static bool figures_parse(figure_type_t type, mp_str_t text, void *member) {
  switch (type) {
    case FIGURE_COMPILER:
      return figures_parse_compiler(text, member);
    case FIGURE_NUMBER:
      return figures_parse_number(text, member);
    case FIGURE_TIME:
      return mp_spec_value_parse(MP_SPEC_TIME, text, member);
    case FIGURE_RATE:
      return mp_spec_value_parse(MP_SPEC_RATE, text, member);
    case FIGURE_BYTES:
      return figures_parse_bytes(text, member);
    case FIGURE_LIST:
      break;
  }
  return false;
}

static const char *figures_expected(figure_type_t type) {
  static const char *const texts[] = {
      [FIGURE_COMPILER] = "plain, tpu or gpu",  [FIGURE_NUMBER] = "a number from 0",
      [FIGURE_TIME] = "a time such as 1.5us",   [FIGURE_RATE] = "a rate such as 800GB/s",
      [FIGURE_BYTES] = "a size such as 128MiB", [FIGURE_LIST] = "a list of at most 24 numbers",
  };
  return texts[type];
}

static mp_status_t figures_no_such_chip(mp_str_t name) {
  mp_strbuf_t known;
  mp_strbuf_init(&known);
  mp_carried_files_list(mp_chip_files, &known);
  const mp_status_t status = mp_status_make(
      MP_INVALID_ARGUMENT, "there are no parameters of chip '%.*s'; known are %s, or give a file",
      MP_STR_ARG(name), mp_strbuf_text(&known));
  mp_strbuf_deinit(&known);
  return status;
}

// ---- the file ----

typedef struct {
  mp_yaml_t yaml;
  int lines[NUM_KEYS];  // the line of each key; 0: not given yet
  mp_chip_figures_t *out;
} figures_reader_t;

static mp_status_t figures_unknown(const figures_reader_t *r, int line, const char *key) {
  const char *names[NUM_KEYS];
  for (size_t i = 0; i < NUM_KEYS; ++i) names[i] = g_keys[i].key;
  const char *nearest = mp_str_nearest(mp_str(key), names, NUM_KEYS);
  return mp_status_make(MP_INVALID_ARGUMENT, "%s:%d: key '%s': unknown%s%s%s", r->yaml.origin, line,
                        key, nearest == NULL ? "" : ", did you mean '",
                        nearest == NULL ? "" : nearest, nearest == NULL ? "" : "'?");
}

static mp_status_t figures_refuse(const figures_reader_t *r, int line, const figure_key_t *key) {
  return mp_status_make(MP_INVALID_ARGUMENT, "%s:%d: key '%s': expected %s", r->yaml.origin, line,
                        key->key, figures_expected(key->type));
}

static mp_status_t figures_read_list(figures_reader_t *r, int line, const figure_key_t *key) {
  mp_figure_list_t list = {0};
  for (;;) {
    MP_RETURN_IF_ERROR(mp_yaml_advance(&r->yaml));
    if (r->yaml.event.type == YAML_SEQUENCE_END_EVENT) break;
    if (r->yaml.event.type != YAML_SCALAR_EVENT || list.count == MP_FIGURE_LIST_MOST ||
        !figures_parse_number(mp_yaml_scalar(&r->yaml), &list.each[list.count++])) {
      return figures_refuse(r, line, key);
    }
  }
  memcpy((char *)r->out + key->offset, &list, sizeof(list));
  return NULL;
}

// The key `sibling`, before all others: a chip that the library knows, whose parameters are used
// where the file has none.
static mp_status_t figures_read_sibling(figures_reader_t *r, int line) {
  for (size_t i = 0; i < NUM_KEYS; ++i) {
    if (r->lines[i] == 0) continue;
    return mp_status_make(MP_INVALID_ARGUMENT, "%s:%d: key 'sibling': expected before all others",
                          r->yaml.origin, line);
  }
  const bool is_text = r->yaml.event.type == YAML_SCALAR_EVENT;
  const mp_str_t name = is_text ? mp_yaml_scalar(&r->yaml) : MP_STR("");
  const mp_carried_file_t *file = mp_carried_file_find(mp_chip_files, name);
  if (file != NULL) return mp_chip_figures_read(file->name, mp_str(file->text), r->out);
  return mp_status_annotate(figures_no_such_chip(name), "%s:%d: key 'sibling'", r->yaml.origin,
                            line);
}

// Reads the value whose first event is the current one.
static mp_status_t figures_read_value(figures_reader_t *r, int line, const char *name) {
  if (strcmp(name, "sibling") == 0) return figures_read_sibling(r, line);
  size_t i = 0;
  while (i < NUM_KEYS && strcmp(g_keys[i].key, name) != 0) ++i;
  if (i == NUM_KEYS) return figures_unknown(r, line, name);
  if (r->lines[i] != 0) {
    return mp_status_make(MP_INVALID_ARGUMENT, "%s:%d: key '%s': given twice, first in line %d",
                          r->yaml.origin, line, name, r->lines[i]);
  }
  r->lines[i] = line;
  const figure_key_t *key = &g_keys[i];
  if (r->yaml.event.type == YAML_SEQUENCE_START_EVENT && key->type == FIGURE_LIST) {
    return figures_read_list(r, line, key);
  }
  if (r->yaml.event.type != YAML_SCALAR_EVENT ||
      !figures_parse(key->type, mp_yaml_scalar(&r->yaml), (char *)r->out + key->offset)) {
    return figures_refuse(r, line, key);
  }
  return NULL;
}

// Reads the rest of a mapping after its start; groups are mappings in the outermost one.
static mp_status_t figures_read_mapping(figures_reader_t *r, const char *group) {
  for (;;) {
    MP_RETURN_IF_ERROR(mp_yaml_advance(&r->yaml));
    if (r->yaml.event.type == YAML_MAPPING_END_EVENT) return NULL;
    const int line = mp_yaml_line(&r->yaml);
    char name[MOST_KEY];
    const bool is_text = r->yaml.event.type == YAML_SCALAR_EVENT;
    const mp_str_t key = is_text ? mp_yaml_scalar(&r->yaml) : MP_STR("");
    const int size = snprintf(name, sizeof(name), "%s%s%.*s", group, group[0] == 0 ? "" : ".",
                              key.size > MOST_KEY ? MOST_KEY : (int)key.size, key.data);
    if (!is_text || size >= MOST_KEY) {
      return mp_status_make(MP_INVALID_ARGUMENT, "%s:%d: expected a key", r->yaml.origin, line);
    }
    MP_RETURN_IF_ERROR(mp_yaml_advance(&r->yaml));
    if (r->yaml.event.type == YAML_MAPPING_START_EVENT && group[0] == 0) {
      MP_RETURN_IF_ERROR(figures_read_mapping(r, name));
    } else {
      MP_RETURN_IF_ERROR(figures_read_value(r, line, name));
    }
  }
}

static mp_status_t figures_read_stream(figures_reader_t *r) {
  do {  // the start of the stream and of the document
    MP_RETURN_IF_ERROR(mp_yaml_advance(&r->yaml));
  } while (r->yaml.event.type == YAML_STREAM_START_EVENT ||
           r->yaml.event.type == YAML_DOCUMENT_START_EVENT);
  if (r->yaml.event.type != YAML_MAPPING_START_EVENT) {
    return mp_status_make(MP_INVALID_ARGUMENT, "%s:%d: expected keys and values, groups of them",
                          r->yaml.origin, mp_yaml_line(&r->yaml));
  }
  MP_RETURN_IF_ERROR(figures_read_mapping(r, ""));
  return mp_yaml_finish_document(&r->yaml);
}

mp_status_t mp_chip_figures_read(const char *origin, mp_str_t text,
                                 mp_chip_figures_t *out_figures) {
  mp_chip_figures_t figures = mp_chip_figures_none();
  figures_reader_t reader = {.out = &figures};
  MP_RETURN_IF_ERROR(mp_yaml_begin(&reader.yaml, origin, text));
  const mp_status_t status = figures_read_stream(&reader);
  mp_yaml_end(&reader.yaml);
  if (status == NULL) *out_figures = figures;
  return status;
}

// ---- the file ----

static mp_status_t figures_read_file(const char *path, mp_chip_figures_t *out_figures) {
  char *text = NULL;
  size_t size = 0;
  MP_RETURN_IF_ERROR(mp_file_read("chip parameters", path, &text, &size));
  const mp_status_t status = mp_chip_figures_read(path, (mp_str_t){text, size}, out_figures);
  mp_free(text);
  return status;
}

mp_status_t mp_chip_figures_find(mp_str_t name, mp_chip_figures_t *out_figures) {
  *out_figures = mp_chip_figures_none();
  if (name.size == 0) return NULL;
  const mp_carried_file_t *file = mp_carried_file_find(mp_chip_files, name);
  if (file != NULL) return mp_chip_figures_read(file->name, mp_str(file->text), out_figures);
  const bool is_file = memchr(name.data, '/', name.size) != NULL ||
                       mp_str_ends_with(name, ".yaml") || mp_str_ends_with(name, ".yml");
  char path[1024];
  if (!is_file || name.size >= sizeof(path)) return figures_no_such_chip(name);
  memcpy(path, name.data, name.size);
  path[name.size] = 0;
  return figures_read_file(path, out_figures);
}
