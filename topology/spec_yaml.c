// Pod descriptions in YAML: one document, one mapping, values are scalars, some also lists.
//
// Supports only a part of YAML, by intent: no aliases (with them a file of a few lines could grow
// without bound), tags are ignored, and nested mappings are allowed only where the schema has them.
// Networks of ASTRA-sim are read, too (spec_astra.h).
#include <stdio.h>

#include "sim/base/alloc.h"
#include "sim/base/os/file.h"
#include "topology/spec_astra.h"
#include "topology/yaml_events.h"

enum {
  MP_YAML_MAX_DEPTH = 4,
  MP_YAML_MAX_PATH = 256,
};

// The state of reading one text.
typedef struct {
  mp_yaml_t yaml;
  mp_pod_spec_t *spec;
  mp_astra_t *astra;  // NULL except for a network of ASTRA-sim
} reader_t;

static mp_spec_place_t spec_yaml_place_at(const reader_t *reader, int line) {
  return (mp_spec_place_t){reader->yaml.origin, line, MP_LAYER_FILE};
}

static mp_status_t spec_yaml_set(reader_t *reader, mp_str_t key, int line, mp_str_t value) {
  const mp_spec_place_t place = spec_yaml_place_at(reader, line);
  if (reader->astra != NULL) return mp_astra_set(reader->astra, reader->spec, place, key, value);
  return mp_spec_set(reader->spec, place, key, value);
}

static mp_status_t spec_yaml_refuse(const reader_t *reader, mp_str_t key, int line,
                                    const char *got) {
  const mp_spec_place_t place = spec_yaml_place_at(reader, line);
  if (reader->astra == NULL) return mp_spec_refuse(place, key, got);
  return mp_spec_error(place, key, "expected a list of values, got %s", got);
}

// Reads the rest of a list after its start, and joins it with commas, as in the one-line form.
static mp_status_t spec_yaml_read_list(reader_t *reader, mp_str_t key, int line) {
  char text[MP_YAML_MAX_PATH];
  size_t size = 0;
  for (;;) {
    MP_RETURN_IF_ERROR(mp_yaml_advance(&reader->yaml));
    if (reader->yaml.event.type == YAML_SEQUENCE_END_EVENT) break;
    if (reader->yaml.event.type != YAML_SCALAR_EVENT) {
      return spec_yaml_refuse(reader, key, line, "a list of something else");
    }
    mp_str_t item = mp_yaml_scalar(&reader->yaml);
    if (item.size + 1 >= sizeof(text) - size) {
      return spec_yaml_refuse(reader, key, line, "a longer list");
    }
    if (size != 0) text[size++] = ',';
    memcpy(text + size, item.data, item.size);
    size += item.size;
  }
  return spec_yaml_set(reader, key, line, (mp_str_t){text, size});
}

static mp_status_t spec_yaml_read_mapping(reader_t *reader, mp_str_t prefix, int depth);

// Reads the value of a key; the current event is the value's first.
static mp_status_t spec_yaml_read_value(reader_t *reader, mp_str_t key, int line, int depth) {
  // Faults are not part of the pod's properties (topology/faults).
  if (reader->astra == NULL && mp_str_is(key, "faults")) return mp_yaml_skip(&reader->yaml);
  switch (reader->yaml.event.type) {
    case YAML_SCALAR_EVENT:
      return spec_yaml_set(reader, key, line, mp_yaml_scalar(&reader->yaml));
    case YAML_SEQUENCE_START_EVENT:
      if (reader->astra == NULL && !mp_spec_is_list(key))
        return spec_yaml_refuse(reader, key, line, "a list");
      return spec_yaml_read_list(reader, key, line);
    case YAML_MAPPING_START_EVENT:
      if (reader->astra != NULL || !mp_spec_is_mapping(key) || depth == MP_YAML_MAX_DEPTH) {
        return spec_yaml_refuse(reader, key, line, "a mapping");
      }
      return spec_yaml_read_mapping(reader, key, depth);
    default:
      return spec_yaml_refuse(reader, key, line, "an alias");
  }
}

// Reads the rest of a mapping after its start. The depth is bounded by that of the schema.
static mp_status_t spec_yaml_read_mapping(reader_t *reader, mp_str_t prefix, int depth) {
  char path[MP_YAML_MAX_PATH];
  for (;;) {
    MP_RETURN_IF_ERROR(mp_yaml_advance(&reader->yaml));
    if (reader->yaml.event.type == YAML_MAPPING_END_EVENT) return NULL;
    int line = mp_yaml_line(&reader->yaml);
    if (reader->yaml.event.type != YAML_SCALAR_EVENT) {
      return mp_status_make(MP_INVALID_ARGUMENT, "%s:%d: expected a key", reader->yaml.origin,
                            line);
    }
    mp_str_t key = mp_yaml_scalar(&reader->yaml);
    if (prefix.size + key.size + 2 > sizeof(path) ||
        memchr(key.size == 0 ? "" : key.data, '\0', key.size) != NULL) {
      return mp_status_make(MP_INVALID_ARGUMENT, "%s:%d: unknown key", reader->yaml.origin, line);
    }
    int size = snprintf(path, sizeof(path), "%.*s%s%.*s", MP_STR_ARG(prefix),
                        prefix.size == 0 ? "" : ".", MP_STR_ARG(key));
    MP_RETURN_IF_ERROR(mp_yaml_advance(&reader->yaml));
    MP_RETURN_IF_ERROR(
        spec_yaml_read_value(reader, (mp_str_t){path, (size_t)size}, line, depth + 1));
  }
}

static mp_status_t spec_yaml_read_stream(reader_t *reader) {
  MP_RETURN_IF_ERROR(mp_yaml_advance(&reader->yaml));  // stream start
  MP_RETURN_IF_ERROR(mp_yaml_advance(&reader->yaml));
  if (reader->yaml.event.type == YAML_DOCUMENT_START_EVENT)
    MP_RETURN_IF_ERROR(mp_yaml_advance(&reader->yaml));
  if (reader->yaml.event.type != YAML_MAPPING_START_EVENT) {
    return mp_status_make(MP_INVALID_ARGUMENT, "%s:%d: expected keys and values such as shape: 4x4",
                          reader->yaml.origin, mp_yaml_line(&reader->yaml));
  }
  MP_RETURN_IF_ERROR(spec_yaml_read_mapping(reader, MP_STR(""), 0));
  return mp_yaml_finish_document(&reader->yaml);
}

mp_status_t mp_spec_read_yaml(mp_pod_spec_t *spec, const char *origin, mp_str_t text) {
  mp_astra_t astra = {0};
  reader_t reader = {.spec = spec};
  if (mp_astra_is_network(text)) reader.astra = &astra;
  MP_RETURN_IF_ERROR(mp_yaml_begin(&reader.yaml, origin, text));
  mp_status_t status = spec_yaml_read_stream(&reader);
  if (status == NULL && reader.astra != NULL) {
    status = mp_astra_finish(&astra, spec_yaml_place_at(&reader, 0));
  }
  mp_yaml_end(&reader.yaml);
  return status;
}

mp_status_t mp_spec_read_file(mp_pod_spec_t *spec, const char *path) {
  char *text = NULL;
  size_t size = 0;
  MP_RETURN_IF_ERROR(mp_file_read("topology file", path, &text, &size));
  snprintf(spec->file, sizeof(spec->file), "%.*s", MP_SPEC_MAX_PATH - 1, path);
  const mp_status_t status = mp_spec_read_yaml(spec, path, (mp_str_t){text, size});
  mp_free(text);
  return status;
}
