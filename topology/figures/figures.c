// Finds a chip's file, in the library or by its path, and reads it.
#include "topology/figures/figures.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/alloc.h"
#include "sim/base/os/file.h"
#include "topology/figures/figures_impl.h"
#include "topology/presets/presets.h"
#include "topology/yaml_events.h"

// A file that is being read, and the one whose key `like` names it; NULL: none.
typedef struct figures_file_s {
  const char *origin;  // the chip's name, or the path
  const struct figures_file_s *liked_by;
} figures_file_t;

enum { MOST_KEY = 64 };

mp_chip_figures_t mp_chip_figures_none(void) {
  mp_chip_figures_t none;
  memset(&none, 0, sizeof(none));
  for (size_t i = 0; i < MP_FIGURE_COUNT; ++i) mp_figure_clear(&mp_figure_keys[i], &none);
  return none;
}

// ---- the text ----

static mp_status_t figures_find_file(const figures_file_t *liked_by, mp_str_t name,
                                     mp_chip_figures_t *out_figures);

typedef struct {
  mp_yaml_t yaml;
  const figures_file_t *file;
  int lines[MP_FIGURE_COUNT];  // the line of each key; 0: not given yet
  mp_figure_mark_t marks[MP_FIGURE_COUNT];
  bool has_keys, has_sources;
  mp_chip_figures_t *out;
} figures_reader_t;

static mp_status_t figures_unknown(const figures_reader_t *r, int line, const char *key) {
  const char *names[MP_FIGURE_COUNT];
  for (size_t i = 0; i < MP_FIGURE_COUNT; ++i) names[i] = mp_figure_keys[i].key;
  const char *nearest = mp_str_nearest(mp_str(key), names, MP_FIGURE_COUNT);
  return mp_status_make(MP_INVALID_ARGUMENT, "%s:%d: key '%s': unknown%s%s%s", r->yaml.origin, line,
                        key, nearest == NULL ? "" : ", did you mean '",
                        nearest == NULL ? "" : nearest, nearest == NULL ? "" : "'?");
}

static mp_status_t figures_refuse(const figures_reader_t *r, int line, const mp_figure_key_t *key) {
  return mp_status_make(MP_INVALID_ARGUMENT, "%s:%d: key '%s': expected %s", r->yaml.origin, line,
                        key->key, mp_figure_expected(key->type));
}

// The key `like`: the chip whose parameters are used where the file has none. Before all others.
static mp_status_t figures_read_like(figures_reader_t *r, int line) {
  if (r->has_keys) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "%s:%d: key 'like': expected once, before all others", r->yaml.origin,
                          line);
  }
  const bool is_text = r->yaml.event.type == YAML_SCALAR_EVENT;
  const mp_str_t name = is_text ? mp_yaml_scalar(&r->yaml) : MP_STR("");
  return mp_status_annotate(figures_find_file(r->file, name, r->out), "%s:%d: key 'like'",
                            r->yaml.origin, line);
}

// Reads the value whose first event is the current one.
static mp_status_t figures_read_value(figures_reader_t *r, int line, const char *name) {
  size_t i = 0;
  while (i < MP_FIGURE_COUNT && strcmp(mp_figure_keys[i].key, name) != 0) ++i;
  if (i == MP_FIGURE_COUNT) return figures_unknown(r, line, name);
  if (r->lines[i] != 0) {
    return mp_status_make(MP_INVALID_ARGUMENT, "%s:%d: key '%s': given twice, first in line %d",
                          r->yaml.origin, line, name, r->lines[i]);
  }
  r->lines[i] = line;
  const mp_figure_key_t *key = &mp_figure_keys[i];
  const bool is_text = r->yaml.event.type == YAML_SCALAR_EVENT;
  const mp_str_t text = is_text ? mp_yaml_scalar(&r->yaml) : MP_STR("");
  if (mp_str_is(text, "none") && key->type != MP_FIGURE_COMPILER) {
    mp_figure_clear(key, r->out);
    return NULL;
  }
  if (mp_figure_is_list(key)) {
    return mp_figure_read_list(&r->yaml, key, mp_figure_list(key, r->out));
  }
  return mp_figure_parse(key, text, r->out) ? NULL : figures_refuse(r, line, key);
}

// The key `sources`: where parameters come from.
static mp_status_t figures_read_sources(figures_reader_t *r, int line) {
  if (r->has_sources || r->yaml.event.type != YAML_MAPPING_START_EVENT) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "%s:%d: key 'sources': expected once, with kinds of sources as keys",
                          r->yaml.origin, line);
  }
  r->has_sources = true;
  return mp_figure_read_marks(&r->yaml, r->marks);
}

static mp_status_t figures_read_mapping(figures_reader_t *r, const char *group);

// Reads what follows a key of the outermost mapping (group "") or of a group.
static mp_status_t figures_read_entry(figures_reader_t *r, const char *group, const char *name,
                                      int line) {
  const bool is_outer = group[0] == 0;
  if (is_outer && strcmp(name, "like") == 0) {
    MP_RETURN_IF_ERROR(figures_read_like(r, line));
  } else if (is_outer && strcmp(name, "sources") == 0) {
    MP_RETURN_IF_ERROR(figures_read_sources(r, line));
  } else if (is_outer && r->yaml.event.type == YAML_MAPPING_START_EVENT) {
    MP_RETURN_IF_ERROR(figures_read_mapping(r, name));
  } else {
    MP_RETURN_IF_ERROR(figures_read_value(r, line, name));
  }
  r->has_keys = true;
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
    MP_RETURN_IF_ERROR(figures_read_entry(r, group, name, line));
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
  MP_RETURN_IF_ERROR(mp_figure_take_marks(r->yaml.origin, r->marks, r->lines, r->out));
  return mp_yaml_finish_document(&r->yaml);
}

static mp_status_t figures_read_text(const figures_file_t *file, mp_str_t text,
                                     mp_chip_figures_t *out_figures) {
  mp_chip_figures_t figures = mp_chip_figures_none();
  figures_reader_t reader = {.file = file, .out = &figures};
  MP_RETURN_IF_ERROR(mp_yaml_begin(&reader.yaml, file->origin, text));
  const mp_status_t status = figures_read_stream(&reader);
  mp_yaml_end(&reader.yaml);
  if (status == NULL) *out_figures = figures;
  return status;
}

// ---- the file ----

static const char *figures_nearest_chip(mp_str_t name) {
  enum { CHIPS_MOST = 64 };
  const char *names[CHIPS_MOST];
  size_t count = 0;
  while (count < CHIPS_MOST && mp_chip_files[count].name != NULL) {
    names[count] = mp_chip_files[count].name;
    ++count;
  }
  return mp_str_nearest(name, names, count);
}

static mp_status_t figures_no_such_chip(mp_str_t name) {
  mp_strbuf_t known;
  mp_strbuf_init(&known);
  mp_carried_files_list(mp_chip_files, &known);
  const char *nearest = figures_nearest_chip(name);
  const mp_status_t status = mp_status_make(
      MP_INVALID_ARGUMENT,
      "there are no parameters of chip '%.*s'%s%s%s; known are %s, or give a file",
      MP_STR_ARG(name), nearest == NULL ? "" : ", did you mean '", nearest == NULL ? "" : nearest,
      nearest == NULL ? "" : "'?", mp_strbuf_text(&known));
  mp_strbuf_deinit(&known);
  return status;
}

// A file that is like itself is found by its depth, however its path is written.
static mp_status_t figures_check_depth(const figures_file_t *file) {
  enum { DEPTH_MOST = 8 };
  int depth = 0;
  for (const figures_file_t *f = file->liked_by; f != NULL; f = f->liked_by) {
    const bool is_same = strcmp(f->origin, file->origin) == 0;
    if (!is_same && ++depth < DEPTH_MOST) continue;
    return mp_status_make(MP_INVALID_ARGUMENT,
                          is_same ? "'%s' is like itself"
                                  : "'%s' is the last of more than 8 files that are like the next "
                                    "one: is one of them like itself?",
                          file->origin);
  }
  return NULL;
}

static mp_status_t figures_read_path(const figures_file_t *file, mp_chip_figures_t *out_figures) {
  char *text = NULL;
  size_t size = 0;
  MP_RETURN_IF_ERROR(mp_file_read("chip parameters", file->origin, &text, &size));
  const mp_status_t status = figures_read_text(file, (mp_str_t){text, size}, out_figures);
  mp_free(text);
  return status;
}

static mp_status_t figures_find_file(const figures_file_t *liked_by, mp_str_t name,
                                     mp_chip_figures_t *out_figures) {
  const mp_carried_file_t *carried = mp_carried_file_find(mp_chip_files, name);
  if (carried != NULL) {
    const figures_file_t file = {carried->name, liked_by};
    MP_RETURN_IF_ERROR(figures_check_depth(&file));
    return figures_read_text(&file, mp_str(carried->text), out_figures);
  }
  const bool is_path =
      name.size != 0 && (memchr(name.data, '/', name.size) != NULL ||
                         mp_str_ends_with(name, ".yaml") || mp_str_ends_with(name, ".yml"));
  char path[1024];
  if (!is_path || name.size >= sizeof(path)) return figures_no_such_chip(name);
  memcpy(path, name.data, name.size);
  path[name.size] = 0;
  const figures_file_t file = {path, liked_by};
  MP_RETURN_IF_ERROR(figures_check_depth(&file));
  return figures_read_path(&file, out_figures);
}

mp_status_t mp_chip_figures_read(const char *origin, mp_str_t text,
                                 mp_chip_figures_t *out_figures) {
  const figures_file_t file = {.origin = origin};
  return figures_read_text(&file, text, out_figures);
}

mp_status_t mp_chip_figures_find(mp_str_t name, mp_chip_figures_t *out_figures) {
  *out_figures = mp_chip_figures_none();
  return name.size == 0 ? NULL : figures_find_file(NULL, name, out_figures);
}
