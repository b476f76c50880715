#include "topology/spec_astra.h"

#include "topology/spec_value.h"

// The translation of a key: the schema's key, the type of each value, and its unit.
typedef struct {
  const char *name;
  const char *key;
  mp_spec_type_t type;
  const char *unit;
  const char *expected;
} astra_key_t;

static const astra_key_t g_keys[MP_ASTRA_KEY_COUNT] = {
    {"topology", "topology", MP_SPEC_WIRING, "", "names such as [ Ring, FullyConnected, Switch ]"},
    {"npus_count", "shape", MP_SPEC_SHAPE, "", "whole numbers such as [ 8, 4 ]"},
    {"bandwidth", "links.bandwidth", MP_SPEC_RATES, "GiB/s", "GB/s such as [ 200.0, 50.0 ]"},
    {"latency", "links.latency", MP_SPEC_TIMES, "ns", "nanoseconds such as [ 50.0, 500.0 ]"},
};

static const struct {
  const char *name;
  mp_wiring_t wiring;
} g_wirings[] = {{"Ring", MP_WIRING_RING},
                 {"FullyConnected", MP_WIRING_FULLY_CONNECTED},
                 {"Switch", MP_WIRING_SWITCH}};

bool mp_astra_is_network(mp_str_t text) {
  const mp_str_t key = MP_STR("npus_count");
  char before = '\n';      // the last character that is no blank
  bool is_quoted = false;  // in double quotes; they end with the line
  for (size_t i = 0; i + key.size <= text.size; ++i) {
    const char c = text.data[i];
    is_quoted = c != '\n' && is_quoted != (c == '"');
    const bool may_begin = !is_quoted && (before == '\n' || before == '{' || before == ',');
    if (may_begin && memcmp(text.data + i, key.data, key.size) == 0) return true;
    if (c != ' ' && c != '\t') before = c;
  }
  return false;
}

MP_NODISCARD static mp_status_t spec_astra_refuse(mp_spec_place_t place, mp_str_t key, int id,
                                                  mp_str_t got) {
  return mp_spec_error(place, key, "expected %s, got '%.*s'", g_keys[id].expected,
                       MP_STR_SHOWN(got, 64));
}

static int spec_astra_find_key(mp_str_t key) {
  for (int id = 0; id < MP_ASTRA_KEY_COUNT; ++id) {
    if (mp_str_is(key, g_keys[id].name)) return id;
  }
  return -1;
}

// Appends one value in the schema's form. False: it is invalid.
static bool spec_astra_translate(int id, mp_str_t value, mp_strbuf_t *out_text) {
  if (g_keys[id].type != MP_SPEC_WIRING) {
    // A value with a unit would be another file format.
    const char last = value.size == 0 ? '\0' : value.data[value.size - 1];
    if ((last < '0' || last > '9') && last != '.') return false;
    mp_strbuf_append(out_text, value.data, value.size);
    mp_strbuf_puts(out_text, g_keys[id].unit);
    return true;
  }
  for (size_t i = 0; i < sizeof(g_wirings) / sizeof(g_wirings[0]); ++i) {
    if (!mp_str_is(value, g_wirings[i].name)) continue;
    mp_strbuf_puts(out_text, mp_wiring_name(g_wirings[i].wiring));
    return true;
  }
  return false;
}

// Translates all values, and counts them. A count of 0: some value is invalid.
static int32_t spec_astra_translate_all(int id, mp_str_t values, mp_strbuf_t *out_text) {
  int32_t count = 0;
  for (size_t begin = 0; begin <= values.size;) {
    size_t end = begin;
    while (end < values.size && values.data[end] != ',') ++end;
    if (count++ != 0) mp_strbuf_putc(out_text, ',');
    if (!spec_astra_translate(id, (mp_str_t){values.data + begin, end - begin}, out_text)) return 0;
    begin = end + 1;
  }
  union {
    mp_wirings_t wirings;
    mp_shape_t shape;
    mp_quantities_t quantities;
  } unused;
  const mp_str_t text = {mp_strbuf_text(out_text), out_text->size};
  return mp_spec_value_parse(g_keys[id].type, text, &unused) ? count : 0;
}

mp_status_t mp_astra_set(mp_astra_t *astra, mp_pod_spec_t *spec, mp_spec_place_t place,
                         mp_str_t key, mp_str_t values) {
  const int id = spec_astra_find_key(key);
  if (id < 0) {
    return mp_spec_error(place, key,
                         "unknown in a network of ASTRA-sim, which has topology, npus_count, "
                         "bandwidth and latency");
  }
  if (astra->given[id].line != 0) return mp_spec_error(place, key, "given twice");
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  astra->given[id].line = place.line;
  astra->given[id].count = spec_astra_translate_all(id, values, &text);
  mp_status_t status = mp_strbuf_status(&text);
  if (status == NULL && astra->given[id].count == 0) {
    status = spec_astra_refuse(place, key, id, values);
  }
  if (status == NULL) {
    status = mp_spec_set(spec, place, mp_str(g_keys[id].key),
                         (mp_str_t){mp_strbuf_text(&text), text.size});
  }
  mp_strbuf_deinit(&text);
  return status;
}

mp_status_t mp_astra_finish(const mp_astra_t *astra, mp_spec_place_t place) {
  for (int id = 0; id < MP_ASTRA_KEY_COUNT; ++id) {
    place.line = astra->given[id].line;
    if (place.line == 0) return mp_spec_error(place, mp_str(g_keys[id].name), "missing");
    if (astra->given[id].count == astra->given[0].count) continue;
    return mp_spec_error(place, mp_str(g_keys[id].name),
                         "expected %d value(s), one for each of 'topology', got %d",
                         astra->given[0].count, astra->given[id].count);
  }
  return NULL;
}
