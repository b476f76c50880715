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

// Least and largest values, in seconds, bytes per second and operations per second. A latency may
// be no time at all.
#define MP_TIME_LIMITS  0, 1e6
#define MP_RATE_LIMITS  DBL_MIN, 1e18
#define MP_FLOPS_LIMITS DBL_MIN, 1e24

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

static bool spec_value_parse_int(mp_str_t text, long long max, int32_t *out_value) {
  long long value = 0;
  if (!mp_str_parse_i64(text, &value) || value < 1 || value > max) return false;
  *out_value = (int32_t)value;
  return true;
}

// Takes the part before the next of `separators` (or the end) off the text, and that character with
// it. False: nothing is left. "a," has two parts.
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

// Sizes joined by 'x', or by ',' where they come from a list.
static bool spec_value_parse_shape(mp_str_t text, mp_shape_t *out_shape) {
  mp_shape_t shape = {0};
  mp_str_t part;
  for (parts_t parts = {text, 0}; spec_value_next_part(&parts, "x,", &part);) {
    if (shape.num_dims == MP_POD_MAX_DIMS) return false;
    if (!spec_value_parse_int(part, MP_POD_MAX_DEVICES, &shape.dims[shape.num_dims++]))
      return false;
  }
  *out_shape = shape;
  return true;
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

static bool spec_value_parse_text(mp_str_t text, char *out_text) {
  if (text.size == 0 || text.size > MP_SPEC_MAX_TEXT) return false;
  for (size_t i = 0; i < text.size; ++i) {
    // Quotes are refused, so that every value can be written back between quotes.
    if (text.data[i] < ' ' || text.data[i] > '~') return false;
    if (text.data[i] == '"' || text.data[i] == '\\') return false;
  }
  memcpy(out_text, text.data, text.size);
  out_text[text.size] = '\0';
  return true;
}

static bool spec_value_parse_wiring(mp_str_t text, mp_wiring_t *out_wiring) {
  for (int i = 0; i < MP_WIRING_MIXED; ++i) {
    if (!mp_str_is(text, mp_wiring_name((mp_wiring_t)i))) continue;
    *out_wiring = (mp_wiring_t)i;
    return true;
  }
  return false;
}

// A wiring, or those of the dimensions joined by ','.
static bool spec_value_parse_wirings(mp_str_t text, mp_wirings_t *out_wirings) {
  mp_wirings_t wirings = {0};
  mp_str_t part;
  for (parts_t parts = {text, 0}; spec_value_next_part(&parts, ",", &part);) {
    if (wirings.count == MP_POD_MAX_DIMS) return false;
    if (!spec_value_parse_wiring(part, &wirings.each[wirings.count++])) return false;
  }
  *out_wirings = wirings;
  return true;
}

static bool spec_value_parse_fabric(mp_str_t text, mp_fabric_t *out_fabric) {
  for (int i = 0; i < MP_FABRIC_COUNT; ++i) {
    if (!mp_str_is(text, mp_fabric_name((mp_fabric_t)i))) continue;
    *out_fabric = (mp_fabric_t)i;
    return true;
  }
  return false;
}

static bool spec_value_parse_mode(mp_str_t text, mp_time_mode_t *out_mode) {
  for (int i = 0; i < MP_TIME_MODE_COUNT; ++i) {
    if (!mp_str_is(text, mp_time_mode_name((mp_time_mode_t)i))) continue;
    *out_mode = (mp_time_mode_t)i;
    return true;
  }
  return false;
}

static bool spec_value_parse_values(mp_str_t text, mp_values_mode_t *out_values) {
  for (int i = 0; i < MP_VALUES_MODE_COUNT; ++i) {
    if (!mp_str_is(text, mp_values_mode_name((mp_values_mode_t)i))) continue;
    *out_values = (mp_values_mode_t)i;
    return true;
  }
  return false;
}

static bool spec_value_parse_factor(mp_str_t text, double *out_factor) {
  double factor = 0;
  if (text.size == 0 || mp_str_scan_double(text, &factor) != text.size) return false;
  if (!(factor >= 1e-9 && factor <= 1e9)) return false;
  *out_factor = factor;
  return true;
}

static bool spec_value_parse_ratio(mp_str_t text, double *out_ratio) {
  double ratio = 0;
  if (text.size == 0 || mp_str_scan_double(text, &ratio) != text.size) return false;
  if (!(ratio >= 1 && ratio <= MP_POD_MAX_DEVICES)) return false;
  *out_ratio = ratio;
  return true;
}

static bool spec_value_parse_bytes(mp_str_t text, uint64_t *out_bytes) {
  unsigned long long bytes = 0;
  if (mp_str_is(text, "unlimited")) {
    *out_bytes = UINT64_MAX;
    return true;
  }
  if (!mp_str_parse_bytes(text, &bytes) || bytes == 0) return false;
  *out_bytes = bytes;
  return true;
}

bool mp_spec_value_parse(mp_spec_type_t type, mp_str_t text, void *out_member) {
  switch (type) {
    case MP_SPEC_TEXT:
    case MP_SPEC_TEXTS:
      return spec_value_parse_text(text, out_member);
    case MP_SPEC_INT:
      return spec_value_parse_int(text, MP_POD_MAX_DEVICES, out_member);
    case MP_SPEC_DIMS:
      return spec_value_parse_int(text, MP_POD_MAX_DIMS, out_member);
    case MP_SPEC_WIRING:
      return spec_value_parse_wirings(text, out_member);
    case MP_SPEC_FABRIC:
      return spec_value_parse_fabric(text, out_member);
    case MP_SPEC_SHAPE:
      return spec_value_parse_shape(text, out_member);
    case MP_SPEC_BYTES:
      return spec_value_parse_bytes(text, out_member);
    case MP_SPEC_TIME:
      return spec_value_parse_quantity(g_time_units, text, MP_TIME_LIMITS, out_member);
    case MP_SPEC_TIMES:
      return spec_value_parse_quantities(g_time_units, text, MP_TIME_LIMITS, out_member);
    case MP_SPEC_RATE:
      return spec_value_parse_quantity(g_rate_units, text, MP_RATE_LIMITS, out_member);
    case MP_SPEC_RATES:
      return spec_value_parse_quantities(g_rate_units, text, MP_RATE_LIMITS, out_member);
    case MP_SPEC_FLOPS:
      return spec_value_parse_quantity(g_flop_units, text, MP_FLOPS_LIMITS, out_member);
    case MP_SPEC_RATIO:
      return spec_value_parse_ratio(text, out_member);
    case MP_SPEC_FACTOR:
      return spec_value_parse_factor(text, out_member);
    case MP_SPEC_MODE:
      return spec_value_parse_mode(text, out_member);
    case MP_SPEC_VALUES:
      return spec_value_parse_values(text, out_member);
  }
  return false;
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

static void spec_value_write_wirings(const mp_wirings_t *wirings, mp_strbuf_t *out_text) {
  for (int32_t i = 0; i < wirings->count; ++i) {
    mp_strbuf_printf(out_text, "%s%s", i == 0 ? "" : ",", mp_wiring_name(wirings->each[i]));
  }
}

static void spec_value_write_quantities(const mp_quantities_t *values, mp_strbuf_t *out_text) {
  for (int32_t i = 0; i < values->count; ++i) {
    if (i != 0) mp_strbuf_putc(out_text, ',');
    mp_strbuf_put_double(out_text, values->each[i]);
  }
}

void mp_spec_value_write(mp_spec_type_t type, const void *member, mp_strbuf_t *out_text) {
  switch (type) {
    case MP_SPEC_TEXT:
    case MP_SPEC_TEXTS:
      mp_strbuf_printf(out_text, "\"%s\"", (const char *)member);
      return;
    case MP_SPEC_INT:
    case MP_SPEC_DIMS:
      mp_strbuf_printf(out_text, "%d", *(const int32_t *)member);
      return;
    case MP_SPEC_WIRING:
      spec_value_write_wirings(member, out_text);
      return;
    case MP_SPEC_FABRIC:
      mp_strbuf_puts(out_text, mp_fabric_name(*(const mp_fabric_t *)member));
      return;
    case MP_SPEC_SHAPE:
      mp_shape_write(member, out_text);
      return;
    case MP_SPEC_BYTES:
      if (*(const uint64_t *)member == UINT64_MAX) {
        mp_strbuf_puts(out_text, "unlimited");
      } else {
        mp_strbuf_printf(out_text, "%llu", (unsigned long long)*(const uint64_t *)member);
      }
      return;
    case MP_SPEC_TIMES:
    case MP_SPEC_RATES:
      spec_value_write_quantities(member, out_text);
      return;
    case MP_SPEC_TIME:
    case MP_SPEC_RATE:
    case MP_SPEC_FLOPS:
    case MP_SPEC_RATIO:
    case MP_SPEC_FACTOR:
      mp_strbuf_put_double(out_text, *(const double *)member);
      return;
    case MP_SPEC_MODE:
      mp_strbuf_puts(out_text, mp_time_mode_name(*(const mp_time_mode_t *)member));
      return;
    case MP_SPEC_VALUES:
      mp_strbuf_puts(out_text, mp_values_mode_name(*(const mp_values_mode_t *)member));
      return;
  }
}

const char *mp_spec_value_expected(mp_spec_type_t type) {
  switch (type) {
    case MP_SPEC_TEXT:
      return "1 to 128 printable characters without quotes";
    case MP_SPEC_TEXTS:
      return "1 to 128 printable characters without quotes, or a list of texts";
    case MP_SPEC_INT:
      return "a whole number from 1 to 65536";
    case MP_SPEC_DIMS:
      return "a whole number from 1 to 6";
    case MP_SPEC_WIRING:
      return "torus, mesh, ring, switch or fully_connected, or a list of them by dimension";
    case MP_SPEC_FABRIC:
      return "switch or fat_tree";
    case MP_SPEC_SHAPE:
      return "up to 6 sizes such as 4x4 or [4, 4]";
    case MP_SPEC_BYTES:
      return "a size such as 16GiB, or unlimited";
    case MP_SPEC_TIME:
      return "a time such as 1us or 500ns";
    case MP_SPEC_TIMES:
      return "a time such as 1us or 500ns, or a list of them by dimension";
    case MP_SPEC_RATE:
      return "a rate such as 45GB/s";
    case MP_SPEC_RATES:
      return "a rate such as 45GB/s, or a list of them by dimension";
    case MP_SPEC_FLOPS:
      return "operations per second such as 197T";
    case MP_SPEC_RATIO:
      return "a number from 1 such as 2 or 1.5";
    case MP_SPEC_FACTOR:
      return "a number from 1e-9 to 1e9 such as 1 or 1000";
    case MP_SPEC_MODE:
      return "off, model or paced";
    case MP_SPEC_VALUES:
      return "real or shapes";
  }
  return "";
}
