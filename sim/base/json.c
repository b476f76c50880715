#include "sim/base/json.h"

#include <stdint.h>

enum { MAX_DEPTH = 64 };

typedef struct {
  mp_arena_t *arena;
  const char *start, *at, *end;
  int depth;
} json_t;

// ---- errors, characters ----

static mp_status_t json_error(const json_t *j, const char *expected) {
  unsigned line = 1, column = 1;
  for (const char *c = j->start; c < j->at; ++c) {
    column = *c == '\n' ? 1 : column + 1;
    line += *c == '\n';
  }
  return mp_status_make(MP_INVALID_ARGUMENT, "JSON: %u:%u: expected %s", line, column, expected);
}

static void json_skip_blank(json_t *j) {
  while (j->at < j->end && (*j->at == ' ' || *j->at == '\t' || *j->at == '\n' || *j->at == '\r'))
    ++j->at;
}

static bool json_is(const json_t *j, char c) {
  return j->at < j->end && *j->at == c;
}

static bool json_accept(json_t *j, char c) {
  json_skip_blank(j);
  if (!json_is(j, c)) return false;
  ++j->at;
  return true;
}

static bool json_is_digit(const json_t *j) {
  return j->at < j->end && *j->at >= '0' && *j->at <= '9';
}

// ---- texts ----

static bool json_read_hex(json_t *j, uint32_t *out_code) {
  if (j->end - j->at < 4) return false;
  uint32_t code = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = *j->at++;
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return false;
    code = code << 4 | (uint32_t)digit;
  }
  *out_code = code;
  return true;
}

// Four digits behind \u; a character beyond the first plane takes two of them.
static bool json_read_code(json_t *j, uint32_t *out_code) {
  uint32_t low = 0;
  if (!json_read_hex(j, out_code)) return false;
  if (*out_code < 0xD800 || *out_code > 0xDFFF) return true;
  if (*out_code > 0xDBFF || j->end - j->at < 6 || j->at[0] != '\\' || j->at[1] != 'u') return false;
  j->at += 2;
  if (!json_read_hex(j, &low) || low < 0xDC00 || low > 0xDFFF) return false;
  *out_code = 0x10000 + ((*out_code - 0xD800) << 10) + (low - 0xDC00);
  return true;
}

static size_t json_put_utf8(uint32_t code, char *out) {
  if (code < 0x80) {
    out[0] = (char)code;
    return 1;
  }
  const size_t more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  static const unsigned char marks[] = {0, 0xC0, 0xE0, 0xF0};
  for (size_t i = more; i > 0; --i, code >>= 6) out[i] = (char)(0x80 | (code & 0x3F));
  out[0] = (char)(marks[more] | code);
  return more + 1;
}

// What stands behind a backslash. It takes no fewer bytes than it makes.
static bool json_read_escape(json_t *j, char *out, size_t *out_size) {
  static const char letters[] = "\"\\/bfnrt", codes[] = "\"\\/\b\f\n\r\t";
  if (j->at == j->end) return false;
  const char c = *j->at++;
  *out_size = 1;
  for (size_t i = 0; i < sizeof(letters) - 1; ++i) {
    if (letters[i] != c) continue;
    *out = codes[i];
    return true;
  }
  uint32_t code = 0;
  if (c != 'u' || !json_read_code(j, &code)) return false;
  *out_size = json_put_utf8(code, out);
  return true;
}

static mp_status_t json_read_string(json_t *j, mp_str_t *out_text) {
  json_skip_blank(j);
  if (!json_is(j, '"')) return json_error(j, "a string");
  const char *close = ++j->at;
  while (close < j->end && *close != '"') close += *close == '\\' ? 2 : 1;
  if (close >= j->end) return json_error(j, "a string with an end");
  char *text = mp_arena_alloc(j->arena, (size_t)(close - j->at) + 1);
  MP_RETURN_IF_NULL(text);
  size_t size = 0, more = 0;
  while (j->at < close) {
    const unsigned char c = (unsigned char)*j->at++;
    if (c < 0x20) return json_error(j, "no control characters in a string");
    if (c != '\\') {
      text[size++] = (char)c;
      continue;
    }
    if (!json_read_escape(j, text + size, &more) || j->at > close)
      return json_error(j, "an escape of JSON");
    size += more;
  }
  ++j->at;
  *out_text = (mp_str_t){text, size};
  return NULL;
}

// ---- numbers and words ----

static mp_status_t json_read_number(json_t *j, mp_json_t *value) {
  const char *start = j->at;
  bool is_int = true;
  if (json_is(j, '-')) ++j->at;
  if (!json_is_digit(j)) return json_error(j, "a value");
  if (json_is(j, '0'))
    ++j->at;
  else
    while (json_is_digit(j)) ++j->at;
  if (json_is(j, '.')) {
    is_int = false;
    ++j->at;
    if (!json_is_digit(j)) return json_error(j, "a digit");
    while (json_is_digit(j)) ++j->at;
  }
  if (json_is(j, 'e') || json_is(j, 'E')) {
    is_int = false;
    ++j->at;
    if (json_is(j, '+') || json_is(j, '-')) ++j->at;
    if (!json_is_digit(j)) return json_error(j, "a digit");
    while (json_is_digit(j)) ++j->at;
  }
  const mp_str_t text = {start, (size_t)(j->at - start)};
  if (mp_str_scan_double(text, &value->f64) != text.size) return json_error(j, "a number");
  value->kind = is_int && mp_str_parse_i64(text, &value->i64) ? MP_JSON_INT : MP_JSON_DOUBLE;
  return NULL;
}

static mp_status_t json_read_word(json_t *j, mp_json_t *value) {
  static const struct {
    const char *text;
    mp_json_kind_t kind;
    long long i64;
  } words[] = {{"null", MP_JSON_NULL, 0}, {"false", MP_JSON_BOOL, 0}, {"true", MP_JSON_BOOL, 1}};
  const mp_str_t left = {j->at, (size_t)(j->end - j->at)};
  for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); ++i) {
    if (!mp_str_starts_with(left, words[i].text)) continue;
    j->at += strlen(words[i].text);
    value->kind = words[i].kind;
    value->i64 = words[i].i64;
    return NULL;
  }
  return json_read_number(j, value);
}

// ---- lists and objects ----

static mp_status_t json_read_value(json_t *j, mp_json_t **out_value);

static mp_status_t json_read_item(json_t *j, bool is_object, const mp_json_t *first,
                                  mp_json_t **out_item) {
  mp_str_t name = MP_STR("");
  if (is_object) {
    MP_RETURN_IF_ERROR(json_read_string(j, &name));
    for (const mp_json_t *item = first; item != NULL; item = item->next)
      if (mp_str_equal(item->name, name)) return json_error(j, "each name once");
    if (!json_accept(j, ':')) return json_error(j, "':'");
  }
  MP_RETURN_IF_ERROR(json_read_value(j, out_item));
  (*out_item)->name = name;
  return NULL;
}

static mp_status_t json_read_items(json_t *j, mp_json_t *value) {
  enum { MAX_NAMES = 1000 };  // names are compared with each other
  const bool is_object = *j->at++ == '{';
  const char close = is_object ? '}' : ']';
  mp_json_t *last = NULL;
  value->kind = is_object ? MP_JSON_OBJECT : MP_JSON_LIST;
  for (size_t count = 0; !json_accept(j, close); ++count) {
    mp_json_t *item = NULL;
    if (is_object && count == MAX_NAMES) return json_error(j, "at most 1000 names in an object");
    MP_RETURN_IF_ERROR(json_read_item(j, is_object, value->first, &item));
    if (last == NULL)
      value->first = item;
    else
      last->next = item;
    last = item;
    json_skip_blank(j);
    if (!json_accept(j, ',') && !json_is(j, close))
      return json_error(j, is_object ? "',' or '}'" : "',' or ']'");
  }
  return NULL;
}

static mp_status_t json_read_value(json_t *j, mp_json_t **out_value) {
  mp_json_t *value = MP_ARENA_NEW(j->arena, mp_json_t);
  MP_RETURN_IF_NULL(value);
  json_skip_blank(j);
  *out_value = value;
  if (json_is(j, '{') || json_is(j, '[')) {
    if (j->depth == MAX_DEPTH) return json_error(j, "values nested at most 64 deep");
    ++j->depth;
    MP_RETURN_IF_ERROR(json_read_items(j, value));
    --j->depth;
    return NULL;
  }
  if (!json_is(j, '"')) return json_read_word(j, value);
  value->kind = MP_JSON_STRING;
  return json_read_string(j, &value->str);
}

mp_status_t mp_json_read(mp_arena_t *arena, mp_str_t text, const mp_json_t **out_value) {
  static const char nothing[1];
  const char *start = text.size > 0 ? text.data : nothing;
  json_t j = {.arena = arena, .start = start, .at = start, .end = start + text.size};
  mp_json_t *value = NULL;
  MP_RETURN_IF_ERROR(json_read_value(&j, &value));
  json_skip_blank(&j);
  if (j.at != j.end) return json_error(&j, "the end of the text");
  *out_value = value;
  return NULL;
}

const mp_json_t *mp_json_item(const mp_json_t *object, const char *name) {
  if (object == NULL || object->kind != MP_JSON_OBJECT) return NULL;
  for (const mp_json_t *item = object->first; item != NULL; item = item->next)
    if (mp_str_is(item->name, name)) return item;
  return NULL;
}
