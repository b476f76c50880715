#include "topology/spec_value.h"

#include <float.h>

typedef struct {
  const char *text;
  double factor;
} unit_t;

static const unit_t g_time_units[] = {{"s", 1},     {"ms", 1e-3}, {"us", 1e-6},
                                      {"ns", 1e-9}, {"", 1},      {NULL, 0}};
static const unit_t g_rate_units[] = {{"B/s", 1},
                                      {"KB/s", 1e3},
                                      {"MB/s", 1e6},
                                      {"GB/s", 1e9},
                                      {"TB/s", 1e12},
                                      {"KiB/s", 1024.0},
                                      {"MiB/s", 1048576.0},
                                      {"GiB/s", 1073741824.0},
                                      {"Mbit/s", 125e3},
                                      {"Gbit/s", 125e6},
                                      {"", 1},
                                      {NULL, 0}};
static const unit_t g_flop_units[] = {{"G", 1e9},      {"T", 1e12},      {"P", 1e15},
                                      {"GFLOPS", 1e9}, {"TFLOPS", 1e12}, {"PFLOPS", 1e15},
                                      {"", 1},         {NULL, 0}};

static bool spec_value_parse_quantity(const unit_t *units, mp_str_t text, double least, double most,
                                      double *out_value) {
  double number = 0;
  if (text.size == 0 || text.data[0] < '0' || text.data[0] > '9') return false;  // no sign
  size_t used = mp_str_scan_double(text, &number);
  if (used == 0) return false;
  while (used < text.size && text.data[used] == ' ') ++used;
  mp_str_t unit = {text.data + used, text.size - used};
  for (; units->text != NULL; ++units) {
    if (!mp_str_is(unit, units->text)) continue;
    double value = number * units->factor;
    if (!(value >= least && value <= most)) return false;
    *out_value = value;
    return true;
  }
  return false;
}

static bool spec_value_parse_up_to(mp_str_t text, long long max, int32_t *out_value) {
  long long value = 0;
  if (!mp_str_parse_i64(text, &value) || value < 1 || value > max) return false;
  *out_value = (int32_t)value;
  return true;
}

static bool spec_value_parse_int(mp_str_t text, void *out_member) {
  return spec_value_parse_up_to(text, MP_POD_MAX_DEVICES, out_member);
}

static bool spec_value_parse_dims(mp_str_t text, void *out_member) {
  return spec_value_parse_up_to(text, MP_POD_MAX_DIMS, out_member);
}

static void spec_value_write_int(const void *member, mp_strbuf_t *out_text) {
  mp_strbuf_printf(out_text, "%d", *(const int32_t *)member);
}

// Removes the part before the next of `separators` (or the end) from the text, with that character.
// False: nothing is left. "a," has two parts.
typedef struct {
  mp_str_t text;
  size_t at;  // beyond the end when nothing is left
} parts_t;

static bool spec_value_next_part(parts_t *parts, const char *separators, mp_str_t *out_part) {
  if (parts->at > parts->text.size) return false;
  size_t end = parts->at;
  while (end < parts->text.size && strchr(separators, parts->text.data[end]) == NULL) ++end;
  *out_part = (mp_str_t){parts->text.data + parts->at, end - parts->at};
  parts->at = end + 1;
  return true;
}

// Sizes joined by 'x', or by ',' if they come from a list.
static bool spec_value_parse_shape(mp_str_t text, void *out_member) {
  mp_shape_t shape = {0};
  mp_str_t part;
  for (parts_t parts = {text, 0}; spec_value_next_part(&parts, "x,", &part);) {
    if (shape.num_dims == MP_POD_MAX_DIMS) return false;
    if (!spec_value_parse_int(part, &shape.dims[shape.num_dims++])) return false;
  }
  *(mp_shape_t *)out_member = shape;
  return true;
}

static void spec_value_write_shape(const void *member, mp_strbuf_t *out_text) {
  mp_shape_write(member, out_text);
}

// A quantity, or several joined by ','.
static bool spec_value_parse_quantities(const unit_t *units, mp_str_t text, double least,
                                        double most, mp_quantities_t *out_values) {
  mp_quantities_t values = {0};
  mp_str_t part;
  for (parts_t parts = {text, 0}; spec_value_next_part(&parts, ",", &part);) {
    if (values.count == MP_POD_MAX_DIMS) return false;
    if (!spec_value_parse_quantity(units, part, least, most, &values.each[values.count++]))
      return false;
  }
  *out_values = values;
  return true;
}

static void spec_value_write_quantities(const void *member, mp_strbuf_t *out_text) {
  const mp_quantities_t *values = member;
  for (int32_t i = 0; i < values->count; ++i) {
    if (i != 0) mp_strbuf_putc(out_text, ',');
    mp_strbuf_put_double(out_text, values->each[i]);
  }
}

static void spec_value_write_double(const void *member, mp_strbuf_t *out_text) {
  mp_strbuf_put_double(out_text, *(const double *)member);
}

// Parsers of a time or times in seconds, and so on. A latency may be 0.
static bool spec_value_parse_time(mp_str_t text, void *out_member) {
  return spec_value_parse_quantity(g_time_units, text, 0, 1e6, out_member);
}

static bool spec_value_parse_times(mp_str_t text, void *out_member) {
  return spec_value_parse_quantities(g_time_units, text, 0, 1e6, out_member);
}

static bool spec_value_parse_rate(mp_str_t text, void *out_member) {
  return spec_value_parse_quantity(g_rate_units, text, DBL_MIN, 1e18, out_member);
}

static bool spec_value_parse_rates(mp_str_t text, void *out_member) {
  return spec_value_parse_quantities(g_rate_units, text, DBL_MIN, 1e18, out_member);
}

static bool spec_value_parse_flops(mp_str_t text, void *out_member) {
  return spec_value_parse_quantity(g_flop_units, text, DBL_MIN, 1e24, out_member);
}

static bool spec_value_parse_text(mp_str_t text, void *out_member) {
  if (text.size == 0 || text.size > MP_SPEC_MAX_TEXT) return false;
  for (size_t i = 0; i < text.size; ++i) {
    // Quotes are refused, so that every value can be written back between quotes.
    if (text.data[i] < ' ' || text.data[i] > '~') return false;
    if (text.data[i] == '"' || text.data[i] == '\\') return false;
  }
  memcpy(out_member, text.data, text.size);
  ((char *)out_member)[text.size] = '\0';
  return true;
}

static void spec_value_write_text(const void *member, mp_strbuf_t *out_text) {
  mp_strbuf_printf(out_text, "\"%s\"", (const char *)member);
}

// Enumerations are written by name. Users cannot write the wiring "mixed".
#define SPEC_VALUE_NAMED(what, type, count, name_of)                               \
  static bool spec_value_parse_##what(mp_str_t text, void *out_member) {           \
    for (int i = 0; i < (count); ++i) {                                            \
      if (!mp_str_is(text, name_of((type)i))) continue;                            \
      *(type *)out_member = (type)i;                                               \
      return true;                                                                 \
    }                                                                              \
    return false;                                                                  \
  }                                                                                \
  static void spec_value_write_##what(const void *member, mp_strbuf_t *out_text) { \
    mp_strbuf_puts(out_text, name_of(*(const type *)member));                      \
  }
SPEC_VALUE_NAMED(wiring, mp_wiring_t, MP_WIRING_MIXED, mp_wiring_name)
SPEC_VALUE_NAMED(fabric, mp_fabric_t, MP_FABRIC_COUNT, mp_fabric_name)
SPEC_VALUE_NAMED(mode, mp_time_mode_t, MP_TIME_MODE_COUNT, mp_time_mode_name)
SPEC_VALUE_NAMED(values, mp_values_mode_t, MP_VALUES_MODE_COUNT, mp_values_mode_name)
SPEC_VALUE_NAMED(clock, mp_clock_mode_t, MP_CLOCK_MODE_COUNT, mp_clock_mode_name)
SPEC_VALUE_NAMED(platform, mp_platform_t, MP_PLATFORM_COUNT, mp_platform_name)
SPEC_VALUE_NAMED(absent, mp_absent_mode_t, MP_ABSENT_MODE_COUNT, mp_absent_mode_name)
#undef SPEC_VALUE_NAMED

// A wiring, or those of the dimensions joined by ','.
static bool spec_value_parse_wirings(mp_str_t text, void *out_member) {
  mp_wirings_t wirings = {0};
  mp_str_t part;
  for (parts_t parts = {text, 0}; spec_value_next_part(&parts, ",", &part);) {
    if (wirings.count == MP_POD_MAX_DIMS) return false;
    if (!spec_value_parse_wiring(part, &wirings.each[wirings.count++])) return false;
  }
  *(mp_wirings_t *)out_member = wirings;
  return true;
}

static void spec_value_write_wirings(const void *member, mp_strbuf_t *out_text) {
  const mp_wirings_t *wirings = member;
  for (int32_t i = 0; i < wirings->count; ++i) {
    if (i != 0) mp_strbuf_putc(out_text, ',');
    spec_value_write_wiring(&wirings->each[i], out_text);
  }
}

static bool spec_value_parse_real(mp_str_t text, double least, double most, double *out_real) {
  double real = 0;
  if (text.size == 0 || mp_str_scan_double(text, &real) != text.size) return false;
  if (!(real >= least && real <= most)) return false;
  *out_real = real;
  return true;
}

static bool spec_value_parse_factor(mp_str_t text, void *out_member) {
  return spec_value_parse_real(text, 1e-9, 1e9, out_member);
}

static bool spec_value_parse_ratio(mp_str_t text, void *out_member) {
  return spec_value_parse_real(text, 1, MP_POD_MAX_DEVICES, out_member);
}

static bool spec_value_parse_bytes(mp_str_t text, void *out_member) {
  unsigned long long bytes = UINT64_MAX;
  if (!mp_str_is(text, "unlimited") && (!mp_str_parse_bytes(text, &bytes) || bytes == 0)) {
    return false;
  }
  *(uint64_t *)out_member = bytes;
  return true;
}

static void spec_value_write_bytes(const void *member, mp_strbuf_t *out_text) {
  const uint64_t bytes = *(const uint64_t *)member;
  if (bytes == UINT64_MAX) {
    mp_strbuf_puts(out_text, "unlimited");
  } else {
    mp_strbuf_printf(out_text, "%llu", (unsigned long long)bytes);
  }
}

static const struct {
  size_t size;
  bool (*parse)(mp_str_t text, void *out_member);
  void (*write)(const void *member, mp_strbuf_t *out_text);
  const char *expected;
} g_types[] = {
#define SPEC_VALUE_TYPE(name, type, reader, writer, expected) \
  {sizeof(type), spec_value_parse_##reader, spec_value_write_##writer, expected},
    MP_SPEC_TYPES(SPEC_VALUE_TYPE)
#undef SPEC_VALUE_TYPE
};

size_t mp_spec_value_size(mp_spec_type_t type) {
  return g_types[type].size;
}

bool mp_spec_value_parse(mp_spec_type_t type, mp_str_t text, void *out_member) {
  return g_types[type].parse(text, out_member);
}

void mp_spec_value_write(mp_spec_type_t type, const void *member, mp_strbuf_t *out_text) {
  g_types[type].write(member, out_text);
}

const char *mp_spec_value_expected(mp_spec_type_t type) {
  return g_types[type].expected;
}

void mp_shape_write(const mp_shape_t *shape, mp_strbuf_t *out_text) {
  for (int32_t i = 0; i < shape->num_dims; ++i) {
    mp_strbuf_printf(out_text, "%s%d", i == 0 ? "" : "x", shape->dims[i]);
  }
}

int64_t mp_shape_num_chips(const mp_shape_t *shape) {
  int64_t count = 1;
  for (int32_t i = 0; i < shape->num_dims; ++i) {
    count *= shape->dims[i];
    // The count saturates, because six factors of 65,536 would not fit.
    if (count > MP_POD_MAX_DEVICES) return MP_POD_MAX_DEVICES + 1;
  }
  return count;
}
