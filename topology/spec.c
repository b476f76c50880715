#include "topology/spec.h"

#include <stdio.h>

#include "topology/spec_value.h"

typedef struct {
  const char *key;
  mp_spec_type_t type;
  size_t offset;  // of the member; two keys with one member are names of the same thing
} spec_key_t;

static const spec_key_t g_keys[MP_SPEC_KEY_COUNT] = {
#define MP_SPEC_ROW(member, key, type, help) {key, MP_SPEC_##type, offsetof(mp_pod_spec_t, member)},
    MP_SPEC_KEYS(MP_SPEC_ROW)
#undef MP_SPEC_ROW
};

static void *spec_member_of(mp_pod_spec_t *spec, int id) {
  return (char *)spec + g_keys[id].offset;
}

// The id of a key, or -1. Keys that set the same member have the id of the first of them.
static int spec_find_key(mp_str_t key) {
  for (int id = 0; id < MP_SPEC_KEY_COUNT; ++id) {
    if (!mp_str_is(key, g_keys[id].key)) continue;
    int first = 0;
    while (g_keys[first].offset != g_keys[id].offset) ++first;
    return first;
  }
  return -1;
}

static int spec_key_id(const char *key) {
  return spec_find_key(mp_str(key));
}

MP_PRINTF(3, 4)
static mp_status_t spec_error_at(mp_spec_place_t place, mp_str_t key, const char *format, ...) {
  char text[512];
  char line[16] = "";
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  if (place.line > 0) snprintf(line, sizeof(line), ":%d", place.line);
  int shown = key.size > 64 ? 64 : (int)key.size;
  return mp_status_make(MP_INVALID_ARGUMENT, "%s%s: key '%.*s': %s", place.origin, line, shown,
                        key.data, text);
}

bool mp_spec_is_key(mp_str_t key) {
  return spec_find_key(key) >= 0;
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

bool mp_spec_is_shape(mp_str_t key) {
  int id = spec_find_key(key);
  return id >= 0 && g_keys[id].type == MP_SPEC_SHAPE;
}

static mp_status_t spec_refuse_unknown(mp_spec_place_t place, mp_str_t key) {
  const char *names[MP_SPEC_KEY_COUNT];
  for (int id = 0; id < MP_SPEC_KEY_COUNT; ++id) names[id] = g_keys[id].key;
  const char *nearest = mp_str_nearest(key, names, MP_SPEC_KEY_COUNT);
  if (nearest != NULL) return spec_error_at(place, key, "unknown, did you mean '%s'?", nearest);
  mp_strbuf_t known;
  mp_strbuf_init(&known);
  for (int id = 0; id < MP_SPEC_KEY_COUNT; ++id) {
    mp_strbuf_printf(&known, "%s%s", id == 0 ? "" : ", ", names[id]);
  }
  mp_status_t status = spec_error_at(place, key, "unknown; known are %s", mp_strbuf_text(&known));
  mp_strbuf_deinit(&known);
  return status;
}

mp_status_t mp_spec_refuse(mp_spec_place_t place, mp_str_t key, const char *got) {
  int id = spec_find_key(key);
  if (id >= 0) {
    return spec_error_at(place, key, "expected %s, got %s", mp_spec_value_expected(g_keys[id].type),
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
      spec_error_at(place, key, "expected a mapping of %s, got %s", mp_strbuf_text(&members), got);
  mp_strbuf_deinit(&members);
  return status;
}

mp_status_t mp_spec_set(mp_pod_spec_t *spec, mp_spec_place_t place, mp_str_t key, mp_str_t value) {
  char got[96];
  int shown = value.size > 64 ? 64 : (int)value.size;
  snprintf(got, sizeof(got), "'%.*s'", shown, value.size == 0 ? "" : value.data);
  int id = spec_find_key(key);
  if (id < 0) return mp_spec_refuse(place, key, got);
  if (spec->given[id].layer == place.layer) {
    if (spec->given[id].line > 0) {
      return spec_error_at(place, key, "given twice, first in line %d", spec->given[id].line);
    }
    return spec_error_at(place, key, "given twice");
  }
  // For values that a higher layer overrides: they must be valid all the same.
  mp_pod_spec_t unused;
  bool wins = spec->given[id].layer < place.layer;
  if (!mp_spec_value_parse(g_keys[id].type, value, spec_member_of(wins ? spec : &unused, id))) {
    return mp_spec_refuse(place, key, got);
  }
  if (wins) {
    spec->given[id].layer = place.layer;
    spec->given[id].line = place.line;
  }
  if (!wins || id != spec_key_id("preset")) return NULL;
  if (!mp_spec_is_preset(value)) {
    mp_strbuf_t known;
    mp_strbuf_init(&known);
    mp_spec_list_presets(&known);
    mp_status_t status =
        spec_error_at(place, key, "expected one of %s, got %s", mp_strbuf_text(&known), got);
    mp_strbuf_deinit(&known);
    return status;
  }
  return mp_spec_apply_preset(spec, value);
}

// An error that shows only when the whole description is known; it names the key and the place
// where that was given.
static mp_status_t spec_error_of(const mp_pod_spec_t *spec, const char *origin, const char *key,
                                 const char *message) {
  int id = spec_key_id(key);
  mp_spec_place_t place = {origin, spec->given[id].line, spec->given[id].layer};
  return spec_error_at(place, mp_str(key), "%s", message);
}

static mp_status_t spec_finish_shape(mp_pod_spec_t *spec, const char *origin) {
  char message[256];
  mp_strbuf_t text;
  if (spec->shape.num_dims == 0 && spec->chips == 0) {
    return spec_error_of(spec, origin, "shape",
                         "missing, expected the grid of chips of one slice such as 4x4");
  }
  if (spec->shape.num_dims == 0) spec->shape = (mp_shape_t){1, {spec->chips}};
  int64_t chips = mp_shape_num_chips(&spec->shape);
  if (spec->chips != 0 && spec->chips != chips) {
    mp_strbuf_init(&text);
    mp_shape_write(&spec->shape, &text);
    snprintf(message, sizeof(message), "expected the %lld chips of the shape %s, got %d",
             (long long)chips, mp_strbuf_text(&text), spec->chips);
    mp_strbuf_deinit(&text);
    return spec_error_of(spec, origin, "chips", message);
  }
  while (spec->shape.num_dims < spec->dims) spec->shape.dims[spec->shape.num_dims++] = 1;
  int64_t devices = chips * spec->slices * spec->cores_per_chip;
  if (devices > MP_POD_MAX_DEVICES) {
    snprintf(message, sizeof(message), "expected at most %d devices in all", MP_POD_MAX_DEVICES);
    return spec_error_of(spec, origin, spec->chips != 0 ? "chips" : "shape", message);
  }
  spec->chips = (int32_t)chips;
  int long_sides = 0;
  for (int32_t i = 0; i < spec->shape.num_dims; ++i) long_sides += spec->shape.dims[i] > 1;
  if (spec->wiring == MP_WIRING_RING && long_sides > 1) {
    return spec_error_of(spec, origin, "topology",
                         "a ring has one dimension, expected torus or mesh");
  }
  return NULL;
}

// Derives the hosts of a grid whose hosts are boxes of it. Boxes at the far edges may be cut off.
static mp_status_t spec_finish_host_shape(mp_pod_spec_t *spec, const char *origin) {
  mp_shape_t *box = &spec->host_shape;
  while (box->num_dims < spec->shape.num_dims) box->dims[box->num_dims++] = 1;
  if (box->num_dims > spec->shape.num_dims) {
    return spec_error_of(spec, origin, "host_shape", "has more sizes than 'shape'");
  }
  int64_t hosts = spec->slices;
  for (int32_t i = 0; i < box->num_dims; ++i) {
    if (box->dims[i] > spec->shape.dims[i]) box->dims[i] = spec->shape.dims[i];
    hosts *= (spec->shape.dims[i] + box->dims[i] - 1) / box->dims[i];
  }
  if (spec->hosts != 0 && spec->hosts != hosts) {
    char message[128];
    snprintf(message, sizeof(message), "expected the %lld hosts that 'host_shape' makes, got %d",
             (long long)hosts, spec->hosts);
    return spec_error_of(spec, origin, "hosts", message);
  }
  spec->hosts = (int32_t)hosts;
  return NULL;
}

static mp_status_t spec_finish_hosts(mp_pod_spec_t *spec, const char *origin) {
  int count = (int)spec->given[spec_key_id("hosts")].layer;
  int box = (int)spec->given[spec_key_id("host_shape")].layer;
  if (box > count) spec->hosts = 0;
  if (count > box) spec->host_shape.num_dims = 0;
  if (spec->host_shape.num_dims != 0) return spec_finish_host_shape(spec, origin);
  if (spec->hosts == 0) spec->hosts = spec->slices;
  if (spec->hosts % spec->slices != 0 || spec->chips % (spec->hosts / spec->slices) != 0) {
    char message[160];
    snprintf(message, sizeof(message),
             "expected a number that divides %d slice(s) of %d chip(s) into equal parts, got %d",
             spec->slices, spec->chips, spec->hosts);
    return spec_error_of(spec, origin, "hosts", message);
  }
  return NULL;
}

mp_status_t mp_spec_finish(mp_pod_spec_t *spec, const char *origin) {
  if (spec->kind[0] == '\0') strcpy(spec->kind, "minipod");
  if (spec->cores_per_chip == 0) spec->cores_per_chip = 1;
  if (spec->slices == 0) spec->slices = 1;
  if (spec->memory[MP_MEMORY_DEVICE] == UINT64_MAX) {
    return spec_error_of(spec, origin, "memory.device",
                         "expected a size such as 16GiB, got 'unlimited'");
  }
  MP_RETURN_IF_ERROR(spec_finish_shape(spec, origin));
  return spec_finish_hosts(spec, origin);
}

static bool spec_is_zero(const void *bytes, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    if (((const char *)bytes)[i] != 0) return false;
  }
  return true;
}

static size_t spec_size_of(mp_spec_type_t type) {
  static const size_t sizes[] = {
      [MP_SPEC_TEXT] = MP_SPEC_MAX_TEXT + 1, [MP_SPEC_INT] = sizeof(int32_t),
      [MP_SPEC_DIMS] = sizeof(int32_t),      [MP_SPEC_WIRING] = sizeof(mp_wiring_t),
      [MP_SPEC_SHAPE] = sizeof(mp_shape_t),  [MP_SPEC_BYTES] = sizeof(uint64_t),
      [MP_SPEC_TIME] = sizeof(double),       [MP_SPEC_RATE] = sizeof(double),
      [MP_SPEC_FLOPS] = sizeof(double)};
  return sizes[type];
}

void mp_spec_clear_layer(mp_pod_spec_t *spec, mp_spec_layer_t layer) {
  for (int id = 0; id < MP_SPEC_KEY_COUNT; ++id) {
    if (spec->given[id].layer != layer) continue;
    memset(spec_member_of(spec, id), 0, spec_size_of(g_keys[id].type));
    spec->given[id].layer = MP_LAYER_NONE;
    spec->given[id].line = 0;
  }
}

void mp_spec_write(const mp_pod_spec_t *spec, mp_strbuf_t *out_text) {
  // Keys whose meaning is in other keys once the spec is finished.
  const int skipped[] = {spec_key_id("preset"), spec_key_id("name"), spec_key_id("chips"),
                         spec_key_id("dims")};
  for (int id = 0; id < MP_SPEC_KEY_COUNT; ++id) {
    bool skip = spec_find_key(mp_str(g_keys[id].key)) != id;
    for (size_t i = 0; i < sizeof(skipped) / sizeof(skipped[0]); ++i) skip |= skipped[i] == id;
    const void *member = (const char *)spec + g_keys[id].offset;
    // A zero means "not given", except for the wiring, whose first value it is.
    if (g_keys[id].type != MP_SPEC_WIRING)
      skip |= spec_is_zero(member, spec_size_of(g_keys[id].type));
    if (g_keys[id].type == MP_SPEC_SHAPE) skip |= ((const mp_shape_t *)member)->num_dims == 0;
    if (skip) continue;
    mp_strbuf_printf(out_text, "%s: ", g_keys[id].key);
    mp_spec_value_write(g_keys[id].type, member, out_text);
    mp_strbuf_putc(out_text, '\n');
  }
}
