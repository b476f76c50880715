#include "topology/faults/fault_list.h"

#include <stdio.h>

#include "sim/base/alloc.h"
#include "sim/base/containers/array.h"
#include "sim/base/os/file.h"
#include "topology/faults/fault_value.h"
#include "topology/yaml_events.h"

enum {
  FAULT_LIST_MOST = 4096,
  FAULT_LIST_MOST_PATH = 64,
};

// The state of reading one list.
typedef struct {
  mp_yaml_t yaml;
  mp_arena_t *arena;
  MP_ARRAY(mp_pod_fault_t) faults;
} list_t;

static mp_status_t fault_list_expected(const list_t *list, const char *what) {
  return mp_status_make(MP_INVALID_ARGUMENT, "%s:%d: expected %s", list->yaml.origin,
                        mp_yaml_line(&list->yaml), what);
}

// ---- One fault ----

static mp_status_t fault_list_read_keys(list_t *list, mp_pod_fault_reading_t *reading,
                                        const char *prefix);

// Reads a key, which is the current event, and its value.
static mp_status_t fault_list_read_key(list_t *list, mp_pod_fault_reading_t *reading,
                                       const char *prefix) {
  char path[FAULT_LIST_MOST_PATH];
  if (list->yaml.event.type != YAML_SCALAR_EVENT) return fault_list_expected(list, "a key");
  const mp_str_t key = mp_yaml_scalar(&list->yaml);
  reading->line = mp_yaml_line(&list->yaml);
  if (memchr(key.size == 0 ? "" : key.data, '\0', key.size) != NULL) {
    return fault_list_expected(list, "a key without NUL");
  }
  if (key.size + strlen(prefix) + 1 >= sizeof(path)) {
    return fault_list_expected(list, "a shorter key");
  }
  snprintf(path, sizeof(path), "%s%.*s", prefix, MP_STR_ARG(key));
  MP_RETURN_IF_ERROR(mp_yaml_advance(&list->yaml));
  if (list->yaml.event.type == YAML_SCALAR_EVENT) {
    return mp_pod_fault_set(reading, mp_str(path), mp_yaml_scalar(&list->yaml));
  }
  if (list->yaml.event.type == YAML_MAPPING_START_EVENT && prefix[0] == '\0') {
    MP_RETURN_IF_ERROR(mp_pod_fault_open(reading, mp_str(path)));
    const size_t size = strlen(path);
    path[size] = '.';
    path[size + 1] = '\0';
    MP_RETURN_IF_ERROR(mp_yaml_advance(&list->yaml));
    return fault_list_read_keys(list, reading, path);
  }
  return mp_pod_fault_refuse(reading, mp_str(path),
                             list->yaml.event.type == YAML_MAPPING_START_EVENT    ? "a mapping"
                             : list->yaml.event.type == YAML_SEQUENCE_START_EVENT ? "a list"
                                                                                  : "an alias");
}

// Reads the rest of a mapping, whose next event is the current one; `prefix` is the key of the
// mapping.
static mp_status_t fault_list_read_keys(list_t *list, mp_pod_fault_reading_t *reading,
                                        const char *prefix) {
  while (list->yaml.event.type != YAML_MAPPING_END_EVENT) {
    MP_RETURN_IF_ERROR(fault_list_read_key(list, reading, prefix));
    MP_RETURN_IF_ERROR(mp_yaml_advance(&list->yaml));
  }
  return NULL;
}

// Reads a fault, whose first key is the current event.
static mp_status_t fault_list_read_fault(list_t *list, int line) {
  if (list->faults.count == FAULT_LIST_MOST) {
    return fault_list_expected(list, "at most 4096 faults");
  }
  mp_pod_fault_t fault;
  mp_pod_fault_reading_t reading;
  mp_pod_fault_begin(&reading, list->arena, list->yaml.origin, line, &fault);
  MP_RETURN_IF_ERROR(fault_list_read_keys(list, &reading, ""));
  MP_RETURN_IF_ERROR(mp_pod_fault_finish(&reading));
  return MP_ARRAY_PUSH(NULL, &list->faults, fault);
}

// Reads a list; the current event is its first.
static mp_status_t fault_list_read_items(list_t *list) {
  static const char what[] = "a list of faults such as - {device: 3, slow: 2}";
  if (list->yaml.event.type != YAML_SEQUENCE_START_EVENT) return fault_list_expected(list, what);
  for (;;) {
    MP_RETURN_IF_ERROR(mp_yaml_advance(&list->yaml));
    if (list->yaml.event.type == YAML_SEQUENCE_END_EVENT) return NULL;
    if (list->yaml.event.type != YAML_MAPPING_START_EVENT) return fault_list_expected(list, what);
    const int line = mp_yaml_line(&list->yaml);
    MP_RETURN_IF_ERROR(mp_yaml_advance(&list->yaml));
    MP_RETURN_IF_ERROR(fault_list_read_fault(list, line));
  }
}

// ---- The text ----

// Reads the rest of a mapping after its start, for the key `faults`; if it has none, and is no pod
// description, the mapping is a fault.
static mp_status_t fault_list_read_mapping(list_t *list, bool is_pod) {
  bool has_faults = false;
  const int line = mp_yaml_line(&list->yaml);
  for (;;) {
    MP_RETURN_IF_ERROR(mp_yaml_advance(&list->yaml));
    if (list->yaml.event.type == YAML_MAPPING_END_EVENT) break;
    const bool is_it = list->yaml.event.type == YAML_SCALAR_EVENT &&
                       mp_str_is(mp_yaml_scalar(&list->yaml), "faults");
    if (is_it && has_faults) return fault_list_expected(list, "the key 'faults' once");
    if (!is_it && !is_pod && !has_faults) return fault_list_read_fault(list, line);
    if (!is_it && !is_pod) return fault_list_expected(list, "no other key than 'faults'");
    MP_RETURN_IF_ERROR(mp_yaml_skip(&list->yaml));
    MP_RETURN_IF_ERROR(mp_yaml_advance(&list->yaml));
    MP_RETURN_IF_ERROR(is_it ? fault_list_read_items(list) : mp_yaml_skip(&list->yaml));
    has_faults |= is_it;
  }
  if (has_faults || is_pod) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT, "%s:%d: expected a list of faults", list->yaml.origin,
                        line);
}

static mp_status_t fault_list_read_stream(list_t *list, bool is_pod) {
  MP_RETURN_IF_ERROR(mp_yaml_advance(&list->yaml));  // stream start
  MP_RETURN_IF_ERROR(mp_yaml_advance(&list->yaml));
  if (list->yaml.event.type == YAML_STREAM_END_EVENT) return NULL;
  MP_RETURN_IF_ERROR(mp_yaml_advance(&list->yaml));  // document start
  MP_RETURN_IF_ERROR(list->yaml.event.type == YAML_MAPPING_START_EVENT
                         ? fault_list_read_mapping(list, is_pod)
                         : fault_list_read_items(list));
  return mp_yaml_finish_document(&list->yaml);
}

mp_status_t mp_pod_fault_list_read(mp_arena_t *arena, const char *origin, mp_str_t text,
                                   bool is_pod, mp_pod_fault_list_t *out_list) {
  list_t list = {.arena = arena};
  const char *name = mp_arena_strndup(arena, origin, strlen(origin));
  MP_RETURN_IF_NULL(name);
  MP_RETURN_IF_ERROR(mp_yaml_begin(&list.yaml, name, text));
  mp_status_t status = fault_list_read_stream(&list, is_pod);
  mp_yaml_end(&list.yaml);
  const mp_pod_fault_t *items = NULL;
  const uint32_t count = list.faults.count;
  if (status == NULL) {
    items = mp_arena_copy(arena, list.faults.items, count * sizeof(*items));
    if (items == NULL) status = mp_status_out_of_memory();
  }
  MP_ARRAY_FREE(&list.faults);
  if (status == NULL) *out_list = (mp_pod_fault_list_t){name, count, items};
  return status;
}

mp_status_t mp_pod_fault_list_read_file(mp_arena_t *arena, const char *path, bool is_pod,
                                        mp_pod_fault_list_t *out_list) {
  char *text = NULL;
  size_t size = 0;
  MP_RETURN_IF_ERROR(mp_file_read(is_pod ? "topology file" : "file of faults", path, &text, &size));
  const mp_status_t status =
      mp_pod_fault_list_read(arena, path, (mp_str_t){text, size}, is_pod, out_list);
  mp_free(text);
  return status;
}
