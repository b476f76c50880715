#include "sim/model/report/report_text.h"

#include <stdio.h>
#include <string.h>

// Three digits that matter, or four before the unit's end.
static int report_text_decimals(double value) {
  if (value >= 100) return 0;
  return value >= 10 ? 1 : 2;
}

const char *mp_report_time(mp_moment_t moment, char *out) {
  static const char *const units[] = {"ps", "ns", "us", "ms", "s"};
  double value = (double)moment;
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < sizeof(units) / sizeof(units[0])) {
    value /= 1000;
    ++unit;
  }
  const int decimals = unit == 0 ? 0 : report_text_decimals(value);
  (void)snprintf(out, MP_REPORT_NUMBER, "%.*f %s", decimals, value, units[unit]);
  return out;
}

const char *mp_report_scaled(double value, const char *unit, char *out) {
  static const char *const prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  size_t prefix = 0;
  while (value >= 1000 && prefix + 1 < sizeof(prefixes) / sizeof(prefixes[0])) {
    value /= 1000;
    ++prefix;
  }
  const int decimals = prefix == 0 ? 0 : report_text_decimals(value);
  (void)snprintf(out, MP_REPORT_NUMBER, "%.*f %s%s", decimals, value, prefixes[prefix], unit);
  return out;
}

const char *mp_report_share(double part, double whole, char *out) {
  if (whole > 0) {
    (void)snprintf(out, MP_REPORT_NUMBER, "%.1f %%", 100 * part / whole);
  } else {
    (void)snprintf(out, MP_REPORT_NUMBER, "-");
  }
  return out;
}

mp_str_t mp_report_end_of(mp_str_t text, size_t most) {
  if (text.size <= most) return text;
  text.data += text.size - most;
  text.size = most;
  while (text.size > 0 && ((unsigned char)*text.data & 0xC0) == 0x80) {  // no half of a character
    text.data += 1;
    text.size -= 1;
  }
  return text;
}

mp_str_t mp_report_user_place(const char *place) {
  const char *at = strstr(place, " at ");
  const char *library = strstr(at == NULL ? place : at + strlen(" at "), ", in ");
  return (mp_str_t){place, library == NULL ? strlen(place) : (size_t)(library - place)};
}
