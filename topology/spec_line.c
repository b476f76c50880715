// The one-line form: NAME[:GRID] or a file, then key:value words.
#include "topology/presets/cloud_names.h"
#include "topology/presets/presets.h"
#include "topology/spec.h"
#include "topology/spec_value.h"

// Blanks separate words, but not within double quotes.
static mp_str_t spec_line_next_word(mp_str_t *rest) {
  size_t begin = 0;
  while (begin < rest->size && (rest->data[begin] == ' ' || rest->data[begin] == '\t')) ++begin;
  size_t end = begin;
  bool quoted = false;
  for (; end < rest->size; ++end) {
    char c = rest->data[end];
    if (c == '"') quoted = !quoted;
    if (!quoted && (c == ' ' || c == '\t')) break;
  }
  mp_str_t word = {rest->data + begin, end - begin};
  *rest = (mp_str_t){rest->data + end, rest->size - end};
  return word;
}

// Splits at the first ':'; without one the value is empty and `has_value` false.
typedef struct {
  mp_str_t key;
  mp_str_t value;
  bool has_value;
} word_t;

static word_t spec_line_split(mp_str_t word) {
  size_t colon = 0;
  while (colon < word.size && word.data[colon] != ':') ++colon;
  word_t parts = {.key = {word.data, colon}, .has_value = colon < word.size};
  if (!parts.has_value) return parts;
  parts.value = (mp_str_t){word.data + colon + 1, word.size - colon - 1};
  if (parts.value.size >= 2 && parts.value.data[0] == '"' &&
      parts.value.data[parts.value.size - 1] == '"') {
    parts.value = (mp_str_t){parts.value.data + 1, parts.value.size - 2};
  }
  return parts;
}

static bool spec_line_is_file(mp_str_t word) {
  return memchr(word.data, '/', word.size) != NULL || mp_str_ends_with(word, ".yaml") ||
         mp_str_ends_with(word, ".yml") || mp_str_ends_with(word, ".json");
}

static bool spec_line_is_wiring(mp_str_t name) {
  mp_wirings_t unused;
  return mp_spec_value_parse(MP_SPEC_WIRING, name, &unused);
}

bool mp_spec_file_of(mp_str_t line, char *out_path, size_t capacity) {
  const mp_str_t word = spec_line_next_word(&line);
  if (word.size == 0 || word.size >= capacity || !spec_line_is_file(word)) return false;
  memcpy(out_path, word.data, word.size);
  out_path[word.size] = '\0';
  return true;
}

static mp_status_t spec_line_read_file_word(mp_pod_spec_t *spec, const char *origin,
                                            mp_str_t word) {
  char path[MP_SPEC_MAX_PATH];
  if (mp_spec_file_of(word, path, sizeof(path))) return mp_spec_read_file(spec, path);
  return mp_status_make(MP_INVALID_ARGUMENT, "%s: the file name is too long", origin);
}

static mp_status_t spec_line_refuse_first_word(const char *origin, mp_str_t name) {
  mp_strbuf_t presets, pods;
  mp_strbuf_init(&presets);
  mp_strbuf_init(&pods);
  mp_preset_list(&presets);
  mp_carried_files_list(mp_pod_files, &pods);
  mp_status_t status = mp_status_make(
      MP_INVALID_ARGUMENT,
      "%s: expected a preset (%s), a wiring (torus, mesh, ring, switch, "
      "fully_connected) with its grid, such as "
      "v5e:4x4 or torus:4x4, a described pod (%s), or a YAML file (a word with '/' or ending in "
      ".yaml), got '%.*s'",
      origin, mp_strbuf_text(&presets), mp_strbuf_text(&pods), MP_STR_SHOWN(name, 64));
  mp_strbuf_deinit(&pods);
  mp_strbuf_deinit(&presets);
  return status;
}

static mp_status_t spec_line_read_first_word(mp_pod_spec_t *spec, mp_spec_place_t place,
                                             mp_str_t word) {
  word_t parts = spec_line_split(word);
  bool preset = mp_preset_find(parts.key) != NULL;
  if (preset || spec_line_is_wiring(parts.key)) {
    MP_RETURN_IF_ERROR(
        mp_spec_set(spec, place, preset ? MP_STR("preset") : MP_STR("topology"), parts.key));
    if (!parts.has_value) return NULL;
    return mp_spec_set(spec, place, MP_STR("shape"), parts.value);
  }
  if (spec_line_is_file(word)) return spec_line_read_file_word(spec, place.origin, word);
  const mp_carried_file_t *pod = mp_carried_file_find(mp_pod_files, word);
  if (pod != NULL) return mp_spec_read_yaml(spec, pod->name, mp_str(pod->text));
  const char *cloud = NULL;
  char shape[MP_CLOUD_SHAPE];
  if (mp_cloud_name_read(word, &cloud, shape)) {
    MP_RETURN_IF_ERROR(mp_spec_set(spec, place, MP_STR("preset"), mp_str(cloud)));
    return mp_spec_set(spec, place, MP_STR("shape"), mp_str(shape));
  }
  // The first word is no name, so it may be a key:value word.
  if (parts.has_value && mp_spec_is_key(parts.key)) {
    return mp_spec_set(spec, place, parts.key, parts.value);
  }
  return spec_line_refuse_first_word(place.origin, parts.key);
}

mp_status_t mp_spec_read_line(mp_pod_spec_t *spec, const char *origin, mp_str_t line) {
  mp_spec_place_t place = {origin, 0, MP_LAYER_WORDS};
  mp_str_t rest = line;
  mp_str_t word = spec_line_next_word(&rest);
  if (word.size == 0) return spec_line_refuse_first_word(origin, word);
  MP_RETURN_IF_ERROR(spec_line_read_first_word(spec, place, word));
  while ((word = spec_line_next_word(&rest)).size != 0) {
    word_t parts = spec_line_split(word);
    if (!parts.has_value) {
      return mp_status_make(MP_INVALID_ARGUMENT, "%s: expected a word key:value, got '%.*s'",
                            origin, MP_STR_SHOWN(word, 64));
    }
    MP_RETURN_IF_ERROR(mp_spec_set(spec, place, parts.key, parts.value));
  }
  return NULL;
}
