#include "topology/spec.h"

#include <stdio.h>

#include "topology/presets/presets.h"
#include "topology/spec_value.h"

typedef struct {
  const char *key;
  mp_spec_type_t type;
  size_t offset;  // of the member; two keys with the same member are synonyms
} spec_key_t;

static const spec_key_t g_keys[MP_SPEC_KEY_COUNT] = {
#define MP_SPEC_ROW(member, key, type, help) {key, MP_SPEC_##type, offsetof(mp_pod_spec_t, member)},
    MP_SPEC_KEYS(MP_SPEC_ROW)
#undef MP_SPEC_ROW
};

static void *spec_member_of(mp_pod_spec_t *spec, int id) {
  return (char *)spec + g_keys[id].offset;
}

int mp_spec_key_id(mp_str_t key) {
  for (int id = 0; id < MP_SPEC_KEY_COUNT; ++id) {
    if (!mp_str_is(key, g_keys[id].key)) continue;
    int first = 0;
    while (g_keys[first].offset != g_keys[id].offset) ++first;
    return first;
  }
  return -1;
}

mp_status_t mp_spec_error(mp_spec_place_t place, mp_str_t key, const char *format, ...) {
  char text[512];
  char line[16] = "";
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  if (place.line > 0) snprintf(line, sizeof(line), ":%d", place.line);
  return mp_status_make(MP_INVALID_ARGUMENT, "%s%s: key '%.*s': %s", place.origin, line,
                        MP_STR_SHOWN(key, 64), text);
}

bool mp_spec_is_key(mp_str_t key) {
  return mp_spec_key_id(key) >= 0;
}

bool mp_spec_is_mapping(mp_str_t key) {
  for (int id = 0; id < MP_SPEC_KEY_COUNT; ++id) {
    mp_str_t full = mp_str(g_keys[id].key);
    if (full.size > key.size && full.data[key.size] == '.' &&
        memcmp(full.data, key.data, key.size) == 0) {
      return true;
    }
  }
  return false;
}

bool mp_spec_is_list(mp_str_t key) {
  int id = mp_spec_key_id(key);
  if (id < 0) return false;
  mp_spec_type_t type = g_keys[id].type;
  return type == MP_SPEC_SHAPE || type == MP_SPEC_WIRING || type == MP_SPEC_TIMES ||
         type == MP_SPEC_RATES || type == MP_SPEC_TEXTS;
}

static mp_status_t spec_refuse_unknown(mp_spec_place_t place, mp_str_t key) {
  const char *names[MP_SPEC_KEY_COUNT];
  for (int id = 0; id < MP_SPEC_KEY_COUNT; ++id) names[id] = g_keys[id].key;
  const char *nearest = mp_str_nearest(key, names, MP_SPEC_KEY_COUNT);
  if (nearest != NULL) return mp_spec_error(place, key, "unknown, did you mean '%s'?", nearest);
  // For a known mapping, its keys.
  const char *dot = key.size == 0 ? NULL : memchr(key.data, '.', key.size);
  const mp_str_t mapping = {key.data, dot == NULL ? 0 : (size_t)(dot - key.data)};
  const size_t prefix = mapping.size != 0 && mp_spec_is_mapping(mapping) ? mapping.size + 1 : 0;
  mp_strbuf_t known;
  mp_strbuf_init(&known);
  for (int id = 0; id < MP_SPEC_KEY_COUNT; ++id) {
    if (strncmp(names[id], key.data, prefix) != 0) continue;
    mp_strbuf_printf(&known, "%s%s", known.size == 0 ? "" : ", ", names[id]);
  }
  mp_status_t status = mp_spec_error(place, key, "unknown; known are %s", mp_strbuf_text(&known));
  mp_strbuf_deinit(&known);
  return status;
}

mp_status_t mp_spec_refuse(mp_spec_place_t place, mp_str_t key, const char *got) {
  int id = mp_spec_key_id(key);
  if (id >= 0) {
    return mp_spec_error(place, key, "expected %s, got %s", mp_spec_value_expected(g_keys[id].type),
                         got);
  }
  if (!mp_spec_is_mapping(key)) return spec_refuse_unknown(place, key);
  mp_strbuf_t members;
  mp_strbuf_init(&members);
  for (id = 0; id < MP_SPEC_KEY_COUNT; ++id) {
    mp_str_t full = mp_str(g_keys[id].key);
    if (full.size <= key.size || full.data[key.size] != '.') continue;
    if (memcmp(full.data, key.data, key.size) != 0) continue;
    mp_strbuf_printf(&members, "%s%s", members.size == 0 ? "" : ", ", full.data + key.size + 1);
  }
  mp_status_t status =
      mp_spec_error(place, key, "expected a mapping of %s, got %s", mp_strbuf_text(&members), got);
  mp_strbuf_deinit(&members);
  return status;
}

// Drops all values of one layer.
static void spec_clear_layer(mp_pod_spec_t *spec, mp_spec_layer_t layer) {
  for (int id = 0; id < MP_SPEC_KEY_COUNT; ++id) {
    if (spec->given[id].layer != layer) continue;
    memset(spec_member_of(spec, id), 0, mp_spec_value_size(g_keys[id].type));
    spec->given[id].layer = MP_LAYER_NONE;
    spec->given[id].line = 0;
  }
}

// Sets a preset's keys in the lowest layer.
static mp_status_t spec_apply_preset(mp_pod_spec_t *spec, const mp_preset_t *preset) {
  const mp_spec_place_t place = {mp_preset_name(preset), 0, MP_LAYER_PRESET};
  spec_clear_layer(spec, MP_LAYER_PRESET);
  const mp_preset_setting_t *setting = NULL;
  for (size_t i = 0; (setting = mp_preset_setting(preset, i)) != NULL; ++i) {
    MP_RETURN_IF_ERROR(mp_spec_set(spec, place, mp_str(setting->key), mp_str(setting->value)));
  }
  return NULL;
}

mp_status_t mp_spec_set(mp_pod_spec_t *spec, mp_spec_place_t place, mp_str_t key, mp_str_t value) {
  char got[96];
  snprintf(got, sizeof(got), "'%.*s'", MP_STR_SHOWN(value, 64));
  int id = mp_spec_key_id(key);
  if (id < 0) return mp_spec_refuse(place, key, got);
  if (spec->given[id].layer == place.layer) {
    if (spec->given[id].line > 0) {
      return mp_spec_error(place, key, "given twice, first in line %d", spec->given[id].line);
    }
    return mp_spec_error(place, key, "given twice");
  }
  // Values that a higher layer overrides are parsed into this: they must be valid all the same.
  mp_pod_spec_t unused;
  bool wins = spec->given[id].layer < place.layer;
  if (!mp_spec_value_parse(g_keys[id].type, value, spec_member_of(wins ? spec : &unused, id))) {
    return mp_spec_refuse(place, key, got);
  }
  if (wins) {
    spec->given[id].layer = place.layer;
    spec->given[id].line = place.line;
  }
  if (!wins || id != mp_spec_key_id(MP_STR("preset"))) return NULL;
  const mp_preset_t *preset = mp_preset_find(value);
  if (preset == NULL) {
    mp_strbuf_t known;
    mp_strbuf_init(&known);
    mp_preset_list(&known);
    mp_status_t status =
        mp_spec_error(place, key, "expected one of %s, got %s", mp_strbuf_text(&known), got);
    mp_strbuf_deinit(&known);
    return status;
  }
  return spec_apply_preset(spec, preset);
}

static bool spec_is_zero(const void *bytes, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    if (((const char *)bytes)[i] != 0) return false;
  }
  return true;
}

// Whether a key was given or derived. Times are never derived, and may be 0, so for them only
// `given` counts.
static bool spec_has_value(const mp_pod_spec_t *spec, int id) {
  const mp_spec_type_t type = g_keys[id].type;
  const void *member = (const char *)spec + g_keys[id].offset;
  if (type == MP_SPEC_TIME) return spec->given[id].layer != MP_LAYER_NONE;
  if (type == MP_SPEC_SHAPE) return ((const mp_shape_t *)member)->num_dims != 0;
  return !spec_is_zero(member, mp_spec_value_size(type));
}

void mp_spec_write(const mp_pod_spec_t *spec, mp_strbuf_t *out_text) {
  // Keys that other keys represent once the spec is finished.
  const int skipped[] = {mp_spec_key_id(MP_STR("preset")), mp_spec_key_id(MP_STR("name")),
                         mp_spec_key_id(MP_STR("chips")), mp_spec_key_id(MP_STR("dims"))};
  for (int id = 0; id < MP_SPEC_KEY_COUNT; ++id) {
    bool skip = mp_spec_key_id(mp_str(g_keys[id].key)) != id;
    for (size_t i = 0; i < sizeof(skipped) / sizeof(skipped[0]); ++i) skip |= skipped[i] == id;
    if (skip || !spec_has_value(spec, id)) continue;
    const void *member = (const char *)spec + g_keys[id].offset;
    mp_strbuf_printf(out_text, "%s: ", g_keys[id].key);
    mp_spec_value_write(g_keys[id].type, member, out_text);
    mp_strbuf_putc(out_text, '\n');
  }
}
