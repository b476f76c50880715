// Reads parameters that are lists: numbers in order, or a mapping from the names of members.
#include "topology/figures/figures_impl.h"

// Members that a mapping may miss, and a list of numbers may have too few or too many.
static mp_status_t figures_list_refuse(const mp_yaml_t *yaml, int line, const mp_figure_key_t *key,
                                       const char *what, const char *name) {
  const mp_figure_members_t members = mp_figure_members(key);
  mp_strbuf_t all;
  mp_strbuf_init(&all);
  for (size_t i = 0; i < members.count; ++i) {
    mp_strbuf_printf(&all, "%s%s", i == 0 ? "" : ", ", members.names[i]);
  }
  const mp_status_t status =
      mp_status_make(MP_INVALID_ARGUMENT, "%s:%d: key '%s': %s%s; its %zu members are %s",
                     yaml->origin, line, key->key, what, name, members.count, mp_strbuf_text(&all));
  mp_strbuf_deinit(&all);
  return status;
}

static mp_status_t figures_list_read_number(mp_yaml_t *yaml, const mp_figure_key_t *key,
                                            const char *name, double *out) {
  if (yaml->event.type == YAML_SCALAR_EVENT && mp_figure_parse_number(mp_yaml_scalar(yaml), out)) {
    return NULL;
  }
  return figures_list_refuse(yaml, mp_yaml_line(yaml), key, "expected a number from 0 for ", name);
}

static mp_status_t figures_list_read_sequence(mp_yaml_t *yaml, const mp_figure_key_t *key,
                                              mp_figure_list_t *list) {
  const mp_figure_members_t members = mp_figure_members(key);
  const int line = mp_yaml_line(yaml);
  for (size_t i = 0;; ++i) {
    MP_RETURN_IF_ERROR(mp_yaml_advance(yaml));
    const bool is_end = yaml->event.type == YAML_SEQUENCE_END_EVENT;
    if (is_end && i == members.count) return NULL;
    if (is_end || i == members.count) {
      return figures_list_refuse(yaml, line, key, is_end ? "too few" : "too many", " numbers");
    }
    MP_RETURN_IF_ERROR(figures_list_read_number(yaml, key, members.names[i], &list->each[i]));
  }
}

// The position of the member that the current event names.
static mp_status_t figures_list_find(const mp_yaml_t *yaml, const mp_figure_key_t *key,
                                     size_t *out_position) {
  const mp_figure_members_t members = mp_figure_members(key);
  const int line = mp_yaml_line(yaml);
  if (yaml->event.type != YAML_SCALAR_EVENT) {
    return figures_list_refuse(yaml, line, key, "expected the name of a member", "");
  }
  const mp_str_t name = mp_yaml_scalar(yaml);
  for (size_t i = 0; i < members.count; ++i) {
    if (!mp_str_is(name, members.names[i])) continue;
    *out_position = i;
    return NULL;
  }
  const char *nearest = mp_str_nearest(name, members.names, members.count);
  mp_strbuf_t what;
  mp_strbuf_init(&what);
  mp_strbuf_printf(&what, "no member '%.*s'%s", MP_STR_SHOWN(name, 64),
                   nearest == NULL ? "" : ", did you mean ");
  const mp_status_t status =
      figures_list_refuse(yaml, line, key, mp_strbuf_text(&what), nearest == NULL ? "" : nearest);
  mp_strbuf_deinit(&what);
  return status;
}

static mp_status_t figures_list_read_mapping(mp_yaml_t *yaml, const mp_figure_key_t *key,
                                             mp_figure_list_t *list) {
  const mp_figure_members_t members = mp_figure_members(key);
  const int line = mp_yaml_line(yaml);
  bool given[MP_FIGURE_LIST_MOST] = {false};
  for (;;) {
    MP_RETURN_IF_ERROR(mp_yaml_advance(yaml));
    if (yaml->event.type == YAML_MAPPING_END_EVENT) break;
    size_t i = 0;
    MP_RETURN_IF_ERROR(figures_list_find(yaml, key, &i));
    const char *name = members.names[i];
    if (given[i]) return figures_list_refuse(yaml, mp_yaml_line(yaml), key, "twice: ", name);
    given[i] = true;
    MP_RETURN_IF_ERROR(mp_yaml_advance(yaml));
    MP_RETURN_IF_ERROR(figures_list_read_number(yaml, key, name, &list->each[i]));
  }
  for (size_t i = 0; list->count == 0 && i < members.count; ++i) {
    if (!given[i]) return figures_list_refuse(yaml, line, key, "missing: ", members.names[i]);
  }
  return NULL;
}

mp_status_t mp_figure_read_list(mp_yaml_t *yaml, const mp_figure_key_t *key,
                                mp_figure_list_t *in_out_list) {
  mp_figure_list_t list = *in_out_list;
  if (yaml->event.type == YAML_SEQUENCE_START_EVENT) {
    MP_RETURN_IF_ERROR(figures_list_read_sequence(yaml, key, &list));
  } else if (yaml->event.type == YAML_MAPPING_START_EVENT) {
    MP_RETURN_IF_ERROR(figures_list_read_mapping(yaml, key, &list));
  } else {
    return figures_list_refuse(yaml, mp_yaml_line(yaml), key, "expected names and numbers", "");
  }
  list.count = (uint32_t)mp_figure_members(key).count;
  *in_out_list = list;
  return NULL;
}
