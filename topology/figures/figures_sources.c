// The key `sources` of a chip's file: kinds of sources, in each the parameters or groups that come
// from there, with a text that says from where.
#include <string.h>

#include "topology/figures/figures_impl.h"

static const char *const g_source_names[] = {
#define ROW(name, text) [MP_CHIP_SOURCE_##name] = text,
    MP_CHIP_SOURCES(ROW)
#undef ROW
};

const char *mp_chip_source_name(mp_chip_source_t source) {
  return g_source_names[source];
}

static mp_status_t figures_sources_unknown(const mp_yaml_t *yaml, const char *what, mp_str_t name,
                                           const char *nearest) {
  return mp_status_make(MP_INVALID_ARGUMENT, "%s:%d: key 'sources': unknown %s '%.*s'%s%s%s",
                        yaml->origin, mp_yaml_line(yaml), what, MP_STR_SHOWN(name, 64),
                        nearest == NULL ? "" : ", did you mean '", nearest == NULL ? "" : nearest,
                        nearest == NULL ? "" : "'?");
}

static mp_str_t figures_sources_text(const mp_yaml_t *yaml) {
  return yaml->event.type == YAML_SCALAR_EVENT ? mp_yaml_scalar(yaml) : MP_STR("");
}

static mp_status_t figures_sources_find_kind(const mp_yaml_t *yaml, mp_chip_source_t *out_source) {
  enum { FIRST = MP_CHIP_SOURCE_UNMARKED + 1 };
  const mp_str_t name = figures_sources_text(yaml);
  for (int i = FIRST; i < MP_CHIP_SOURCE_COUNT; ++i) {
    if (!mp_str_is(name, g_source_names[i])) continue;
    *out_source = (mp_chip_source_t)i;
    return NULL;
  }
  const char *nearest = mp_str_nearest(name, &g_source_names[FIRST], MP_CHIP_SOURCE_COUNT - FIRST);
  return figures_sources_unknown(yaml, "kind", name, nearest);
}

// Whether the key is that of a group, "matmul", to which the parameter belongs.
static bool figures_sources_has(mp_str_t group, const char *key) {
  return strncmp(key, group.data, group.size) == 0 && key[group.size] == '.';
}

static mp_status_t figures_sources_mark(const mp_yaml_t *yaml, size_t number, mp_figure_mark_t mark,
                                        mp_figure_mark_t *marks) {
  mp_figure_mark_t *old = &marks[number];
  if (old->source != MP_CHIP_SOURCE_UNMARKED && old->is_own == mark.is_own) {
    const mp_str_t name = mp_yaml_scalar(yaml);
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "%s:%d: key 'sources': '%.*s' is given twice, first in line %d",
                          yaml->origin, mark.line, MP_STR_SHOWN(name, 64), old->line);
  }
  if (mark.is_own || old->source == MP_CHIP_SOURCE_UNMARKED) *old = mark;
  return NULL;
}

// A parameter or a group: the current event.
static mp_status_t figures_sources_read_key(mp_yaml_t *yaml, mp_chip_source_t source,
                                            mp_figure_mark_t *marks) {
  const mp_str_t name = figures_sources_text(yaml);
  const char *names[MP_FIGURE_COUNT];
  bool is_known = false;
  for (size_t i = 0; i < MP_FIGURE_COUNT; ++i) {
    names[i] = mp_figure_keys[i].key;
    const bool is_own = mp_str_is(name, names[i]) && mp_figure_keys[i].type != MP_FIGURE_COMPILER;
    if (!is_own && (name.size == 0 || !figures_sources_has(name, names[i]))) continue;
    const mp_figure_mark_t mark = {(uint8_t)source, is_own, mp_yaml_line(yaml)};
    MP_RETURN_IF_ERROR(figures_sources_mark(yaml, i, mark, marks));
    is_known = true;
  }
  if (is_known) return NULL;
  return figures_sources_unknown(yaml, "parameter or group", name,
                                 mp_str_nearest(name, names, MP_FIGURE_COUNT));
}

static mp_status_t figures_sources_read_kind(mp_yaml_t *yaml, mp_chip_source_t source,
                                             mp_figure_mark_t *marks) {
  MP_RETURN_IF_ERROR(mp_yaml_advance(yaml));
  const bool is_mapping = yaml->event.type == YAML_MAPPING_START_EVENT;
  while (is_mapping) {
    MP_RETURN_IF_ERROR(mp_yaml_advance(yaml));
    if (yaml->event.type == YAML_MAPPING_END_EVENT) return NULL;
    MP_RETURN_IF_ERROR(figures_sources_read_key(yaml, source, marks));
    MP_RETURN_IF_ERROR(mp_yaml_advance(yaml));
    if (figures_sources_text(yaml).size == 0) break;
  }
  return mp_status_make(MP_INVALID_ARGUMENT,
                        "%s:%d: key 'sources': expected parameters or groups, each with a text "
                        "that says where its value comes from",
                        yaml->origin, mp_yaml_line(yaml));
}

mp_status_t mp_figure_read_marks(mp_yaml_t *yaml, mp_figure_mark_t out_marks[MP_FIGURE_COUNT]) {
  for (;;) {
    MP_RETURN_IF_ERROR(mp_yaml_advance(yaml));
    if (yaml->event.type == YAML_MAPPING_END_EVENT) return NULL;
    mp_chip_source_t source = MP_CHIP_SOURCE_UNMARKED;
    MP_RETURN_IF_ERROR(figures_sources_find_kind(yaml, &source));
    MP_RETURN_IF_ERROR(figures_sources_read_kind(yaml, source, out_marks));
  }
}

mp_status_t mp_figure_take_marks(const char *origin, const mp_figure_mark_t marks[MP_FIGURE_COUNT],
                                 const int lines[MP_FIGURE_COUNT],
                                 mp_chip_figures_t *in_out_figures) {
  for (size_t i = 0; i < MP_FIGURE_COUNT; ++i) {
    const mp_figure_mark_t *mark = &marks[i];
    const bool is_given = mp_chip_figure_is_given(in_out_figures, (mp_chip_figure_t)i);
    if (mark->is_own && !is_given) {
      return mp_status_make(MP_INVALID_ARGUMENT, "%s:%d: key 'sources': '%s' has no value", origin,
                            mark->line, mp_figure_keys[i].key);
    }
    uint8_t *source = &in_out_figures->sources[i];
    // A group's mark is for what the file sets itself; the rest of the group is another chip's.
    if (mark->is_own || (is_given && lines[i] != 0)) {
      *source = mark->source;
    } else {
      *source = is_given ? MP_CHIP_SOURCE_COPIED : MP_CHIP_SOURCE_UNMARKED;
    }
  }
  return NULL;
}
