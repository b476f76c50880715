#include "sim/base/str.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/base/alloc.h"
#include "sim/base/assert.h"

void mp_strbuf_init(mp_strbuf_t *buffer) {
  *buffer = (mp_strbuf_t){0};
}

void mp_strbuf_deinit(mp_strbuf_t *buffer) {
  mp_free(buffer->data);
  *buffer = (mp_strbuf_t){0};
}

// Makes room for `more` bytes and a NUL.
static bool str_reserve(mp_strbuf_t *buffer, size_t more) {
  if (buffer->failed) return false;
  MP_ASSERT(buffer->size <= buffer->capacity);
  if (more < buffer->capacity - buffer->size) return true;
  size_t capacity = buffer->capacity < 128 ? 128 : buffer->capacity * 2;
  while (capacity - buffer->size <= more) {
    if (capacity > SIZE_MAX / 4) {
      buffer->failed = true;
      return false;
    }
    capacity *= 2;
  }
  char *data = mp_realloc(buffer->data, capacity);
  if (data == NULL) {
    buffer->failed = true;
    return false;
  }
  MP_ASSERT(more < capacity - buffer->size);
  buffer->data = data;
  buffer->capacity = capacity;
  return true;
}

void mp_strbuf_append(mp_strbuf_t *buffer, const char *data, size_t size) {
  MP_ASSERT(data != NULL || size == 0);
  if (!str_reserve(buffer, size)) return;
  if (size != 0) memcpy(buffer->data + buffer->size, data, size);
  buffer->size += size;
  buffer->data[buffer->size] = '\0';
}

void mp_strbuf_puts(mp_strbuf_t *buffer, const char *text) {
  mp_strbuf_append(buffer, text, strlen(text));
}

void mp_strbuf_putc(mp_strbuf_t *buffer, char c) {
  mp_strbuf_append(buffer, &c, 1);
}

void mp_strbuf_printf(mp_strbuf_t *buffer, const char *format, ...) {
  va_list args;
  va_start(args, format);
  va_list again;
  va_copy(again, args);
  int length = vsnprintf(NULL, 0, format, again);
  va_end(again);
  if (length < 0) buffer->failed = true;  // more than an int can count
  if (length >= 0 && str_reserve(buffer, (size_t)length)) {
    vsnprintf(buffer->data + buffer->size, (size_t)length + 1, format, args);
    buffer->size += (size_t)length;
  }
  va_end(args);
}

// Numbers in files and programs have '.' whatever locale the process has set. (The C library keeps
// this locale in static memory, so that it needs no freelocale.)
static locale_t str_c_locale(void) {
  return newlocale(LC_ALL_MASK, "C", NULL);
}

void mp_strbuf_put_double(mp_strbuf_t *buffer, double value) {
  char text[32];
  locale_t before = uselocale(str_c_locale());
  for (int digits = 15; digits <= 17; ++digits) {
    snprintf(text, sizeof(text), "%.*g", digits, value);
    if (strtod(text, NULL) == value) break;
  }
  uselocale(before);
  mp_strbuf_puts(buffer, text);
}

void mp_strbuf_put_json(mp_strbuf_t *buffer, mp_str_t text) {
  mp_strbuf_putc(buffer, '"');
  for (size_t i = 0; i < text.size; ++i) {
    const unsigned char c = (unsigned char)text.data[i];
    if (c == '"' || c == '\\') mp_strbuf_putc(buffer, '\\');
    if (c >= 0x20) {
      mp_strbuf_putc(buffer, (char)c);
    } else {
      mp_strbuf_printf(buffer, "\\u%04x", c);
    }
  }
  mp_strbuf_putc(buffer, '"');
}

void mp_strbuf_put_visible(mp_strbuf_t *buffer, mp_str_t text) {
  unsigned char before = 0;
  for (size_t i = 0; i < text.size; ++i) {
    const unsigned char c = (unsigned char)text.data[i];
    if (mp_char_is_control(before, c)) {
      mp_strbuf_printf(buffer, "\\x%02x", c);
    } else {
      mp_strbuf_putc(buffer, (char)c);
    }
    before = c;
  }
}

mp_status_t mp_strbuf_status(const mp_strbuf_t *buffer) {
  return buffer->failed ? mp_status_out_of_memory() : NULL;
}

const char *mp_strbuf_text(const mp_strbuf_t *buffer) {
  return buffer->data == NULL ? "" : buffer->data;
}

char *mp_strbuf_take(mp_strbuf_t *buffer, size_t *out_size) {
  if (buffer->data == NULL) mp_strbuf_append(buffer, "", 0);
  if (buffer->failed) {
    mp_strbuf_deinit(buffer);
    return NULL;
  }
  char *data = buffer->data;
  if (out_size != NULL) *out_size = buffer->size;
  *buffer = (mp_strbuf_t){0};
  return data;
}

enum { MP_NEAREST_MAX_WORD = 48 };

static size_t str_edit_distance(mp_str_t a, mp_str_t b) {
  MP_ASSERT(a.size <= MP_NEAREST_MAX_WORD && b.size <= MP_NEAREST_MAX_WORD);
  size_t row[MP_NEAREST_MAX_WORD + 1];
  for (size_t j = 0; j <= b.size; ++j) row[j] = j;
  for (size_t i = 1; i <= a.size; ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size; ++j) {
      size_t best = diagonal + (a.data[i - 1] != b.data[j - 1]);
      if (row[j] + 1 < best) best = row[j] + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      diagonal = row[j];
      row[j] = best;
    }
  }
  return row[b.size];
}

static bool str_is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

mp_str_t mp_str_trim(mp_str_t text) {
  while (text.size != 0 && str_is_blank(text.data[0])) ++text.data, --text.size;
  while (text.size != 0 && str_is_blank(text.data[text.size - 1])) --text.size;
  return text;
}

mp_str_t mp_str_cut(mp_str_t *text, char end) {
  const char *found = text->size == 0 ? NULL : memchr(text->data, end, text->size);
  const mp_str_t part = {text->data, found == NULL ? text->size : (size_t)(found - text->data)};
  const size_t taken = part.size + (found != NULL);
  text->data += taken;
  text->size -= taken;
  return part;
}

mp_flag_t mp_str_cut_flag(mp_str_t *flags) {
  mp_flag_t flag = {.text = mp_str_cut(flags, ' ')};
  while (flag.text.size > 0 && flag.text.data[0] == '-') ++flag.text.data, --flag.text.size;
  flag.value = flag.text;
  flag.name = mp_str_cut(&flag.value, '=');
  if (flag.name.size == flag.text.size) flag.value = MP_STR("true");
  return flag;
}

// How long the parts are with which both begin: 6 of "links.speed" and "links.count".
static size_t str_common_parts(mp_str_t a, mp_str_t b) {
  size_t parts = 0;
  for (size_t i = 0; i < a.size && i < b.size && a.data[i] == b.data[i]; ++i) {
    if (a.data[i] == '.' || a.data[i] == '_') parts = i + 1;
  }
  return parts;
}

const char *mp_str_nearest(mp_str_t word, const char *const *candidates, size_t count) {
  if (word.size == 0 || word.size > MP_NEAREST_MAX_WORD) return NULL;
  const char *best = NULL;
  size_t best_distance = SIZE_MAX;
  for (size_t i = 0; i < count; ++i) {
    mp_str_t candidate = mp_str(candidates[i]);
    if (candidate.size > MP_NEAREST_MAX_WORD) continue;
    size_t distance = str_edit_distance(word, candidate);
    // A word is not suggested if more than half of it differs; that all begin alike says nothing.
    const size_t own = word.size - str_common_parts(word, candidate);
    if (distance < best_distance && distance <= own / 2) {
      best_distance = distance;
      best = candidates[i];
    }
  }
  return best;
}

// Copies the text to `scratch` and adds a NUL, which the C library's parsers need.
static bool str_to_c_string(mp_str_t text, char *scratch, size_t size) {
  if (text.size == 0 || text.size >= size) return false;
  memcpy(scratch, text.data, text.size);
  scratch[text.size] = '\0';
  return strlen(scratch) == text.size;
}

bool mp_str_parse_i64(mp_str_t text, long long *out_value) {
  char scratch[32];
  if (!str_to_c_string(text, scratch, sizeof(scratch))) return false;
  if (scratch[0] == ' ' || scratch[0] == '\t') return false;
  char *end = NULL;
  errno = 0;
  long long value = strtoll(scratch, &end, 10);
  if (errno != 0 || end == scratch || *end != '\0') return false;
  *out_value = value;
  return true;
}

static size_t str_scan_digits(mp_str_t text, size_t at) {
  while (at < text.size && text.data[at] >= '0' && text.data[at] <= '9') ++at;
  return at;
}

// The number of bytes that the decimal number at the beginning of `text` takes; 0 if there is none.
static size_t str_scan_number(mp_str_t text) {
  size_t at = text.size > 0 && (text.data[0] == '-' || text.data[0] == '+') ? 1 : 0;
  size_t digits = str_scan_digits(text, at);
  if (digits == at) return 0;
  at = digits;
  if (at < text.size && text.data[at] == '.') at = str_scan_digits(text, at + 1);
  if (at >= text.size || (text.data[at] != 'e' && text.data[at] != 'E')) return at;
  size_t exponent = at + 1;
  if (exponent < text.size && (text.data[exponent] == '-' || text.data[exponent] == '+')) {
    ++exponent;
  }
  digits = str_scan_digits(text, exponent);
  return digits == exponent ? at : digits;
}

size_t mp_str_scan_double(mp_str_t text, double *out_value) {
  char scratch[512];
  size_t size = str_scan_number(text);
  if (size == 0 || size >= sizeof(scratch)) return 0;
  memcpy(scratch, text.data, size);
  scratch[size] = '\0';
  *out_value = strtod_l(scratch, NULL, str_c_locale());
  return size;
}

bool mp_str_parse_bytes(mp_str_t text, unsigned long long *out_bytes) {
  static const struct {
    const char *unit;
    double factor;
  } units[] = {{"", 1},
               {"B", 1},
               {"KB", 1e3},
               {"MB", 1e6},
               {"GB", 1e9},
               {"TB", 1e12},
               {"KiB", 1024.0},
               {"MiB", 1048576.0},
               {"GiB", 1073741824.0},
               {"TiB", 1099511627776.0}};
  double number = 0;
  if (text.size == 0 || text.data[0] < '0' || text.data[0] > '9') return false;
  size_t used = mp_str_scan_double(text, &number);
  if (used == 0) return false;
  while (used < text.size && text.data[used] == ' ') ++used;
  mp_str_t unit = {text.data + used, text.size - used};
  for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); ++i) {
    if (!mp_str_is(unit, units[i].unit)) continue;
    double bytes = number * units[i].factor;
    if (!(bytes >= 0 && bytes < 9e18)) return false;
    *out_bytes = (unsigned long long)llround(bytes);
    return true;
  }
  return false;
}
