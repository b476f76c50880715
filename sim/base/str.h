// Strings: a borrowed view (mp_str_t) and a growing buffer (mp_strbuf_t).
//
// A view does not own its bytes; they may have any value and need not end in NUL. A buffer
// remembers failure: after an allocation has failed, all further writes do nothing, and
// mp_strbuf_status reports it. Not thread-safe.
#ifndef MINIPOD_SIM_BASE_STR_H_
#define MINIPOD_SIM_BASE_STR_H_

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "sim/base/status.h"

typedef struct {
  const char *data;
  size_t size;
} mp_str_t;

// The precision of `size` bytes for printf, which knows no more than INT_MAX.
static inline int mp_str_precision(size_t size) {
  return size < INT_MAX ? (int)size : INT_MAX;
}

// For printf: printf("%.*s", MP_STR_ARG(s)).
#define MP_STR_ARG(s) mp_str_precision((s).size), (s).data
// The same, but no more of a user's text than `most` bytes; it may be NULL if it is empty.
#define MP_STR_SHOWN(s, most) \
  (int)((s).size < (most) ? (s).size : (most)), (s).size == 0 ? "" : (s).data
#define MP_STR(literal) ((mp_str_t){(literal), sizeof(literal) - 1})

// A view of a NUL-terminated text.
static inline mp_str_t mp_str(const char *text) {
  return (mp_str_t){text, strlen(text)};
}

// Whether both have the same bytes.
static inline bool mp_str_equal(mp_str_t a, mp_str_t b) {
  return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

// The order of their bytes, for qsort and bsearch; a text comes after what it begins with.
static inline int mp_str_compare(mp_str_t a, mp_str_t b) {
  const size_t size = a.size < b.size ? a.size : b.size;
  const int order = size == 0 ? 0 : memcmp(a.data, b.data, size);
  return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

// Whether `a` has the bytes of a NUL-terminated text.
static inline bool mp_str_is(mp_str_t a, const char *text) {
  return mp_str_equal(a, mp_str(text));
}

// Whether `a` begins with the bytes of a NUL-terminated text.
static inline bool mp_str_starts_with(mp_str_t a, const char *prefix) {
  size_t size = strlen(prefix);
  return a.size >= size && memcmp(a.data, prefix, size) == 0;
}

// Whether `a` ends with the bytes of a NUL-terminated text.
static inline bool mp_str_ends_with(mp_str_t a, const char *end) {
  size_t size = strlen(end);
  return a.size >= size && memcmp(a.data + a.size - size, end, size) == 0;
}

typedef struct {
  char *data;  // NUL-terminated once something was written; NULL before
  size_t size;
  size_t capacity;
  bool failed;
} mp_strbuf_t;

// Makes an empty buffer; allocates nothing.
void mp_strbuf_init(mp_strbuf_t *buffer);
// Frees the bytes.
void mp_strbuf_deinit(mp_strbuf_t *buffer);
// Append bytes, a NUL-terminated text, a character, and formatted text.
void mp_strbuf_append(mp_strbuf_t *buffer, const char *data, size_t size);
void mp_strbuf_puts(mp_strbuf_t *buffer, const char *text);
void mp_strbuf_putc(mp_strbuf_t *buffer, char c);
MP_PRINTF(2, 3) void mp_strbuf_printf(mp_strbuf_t *buffer, const char *format, ...);
// Appends the shortest decimal form that reads back to the same finite double, with '.' in every
// locale.
void mp_strbuf_put_double(mp_strbuf_t *buffer, double value);
// Appends a string of JSON, quotes included.
void mp_strbuf_put_json(mp_strbuf_t *buffer, mp_str_t text);
// Whether a byte could steer a terminal: a control character, newline and tab included; `before` is
// the byte before it, because those from U+0080 to U+009F have two.
static inline bool mp_char_is_control(unsigned char before, unsigned char c) {
  return c < 0x20 || c == 0x7F || (before == 0xC2 && c >= 0x80 && c < 0xA0);
}

// Appends a name that a user's program has chosen, with its control characters as "\x1b".
void mp_strbuf_put_visible(mp_strbuf_t *buffer, mp_str_t text);
// OK, or out of memory if a write was lost.
MP_NODISCARD mp_status_t mp_strbuf_status(const mp_strbuf_t *buffer);
// The text so far, never NULL.
const char *mp_strbuf_text(const mp_strbuf_t *buffer);
// Gives the bytes to the caller (mp_free), or NULL after a failure; the buffer is empty afterwards.
char *mp_strbuf_take(mp_strbuf_t *buffer, size_t *out_size);

// The text without blanks, tabs and carriage returns at its ends.
mp_str_t mp_str_trim(mp_str_t text);
// The part of the text up to the first `end`, which is taken away with it; all of it where there is
// none.
mp_str_t mp_str_cut(mp_str_t *text, char end);

// A flag of a command line, as in LIBTPU_INIT_ARGS.
typedef struct {
  mp_str_t text;  // without dashes; empty: there is none
  mp_str_t name, value;
} mp_flag_t;

// Takes the first of flags such as "--a=1 --b" away. A flag without a value is switched on: "true".
mp_flag_t mp_str_cut_flag(mp_str_t *flags);

// The candidate nearest to `word` by edit distance, or NULL when none is near enough to suggest.
const char *mp_str_nearest(mp_str_t word, const char *const *candidates, size_t count);

// Decimal integer, whole string, optional sign; false if it is none or does not fit.
bool mp_str_parse_i64(mp_str_t text, long long *out_value);
// The decimal number that `text` begins with: sign, digits, fraction, exponent, never "inf", "nan"
// or hexadecimal, with '.' in every locale. Returns how many bytes it takes; 0 if there is none.
size_t mp_str_scan_double(mp_str_t text, double *out_value);
// A byte size: digits, optional fraction, and B, KB, KiB, MB, MiB, GB, GiB, TB, TiB or none.
bool mp_str_parse_bytes(mp_str_t text, unsigned long long *out_bytes);

#endif  // MINIPOD_SIM_BASE_STR_H_
