// Tokens, errors and scalars, which all files of the text reader use.
#include "sim/readers/text/text_parser.h"
#include "sim/base/assert.h"

#include <stdarg.h>

// ---- errors ----

static void text_parser_describe(const mp_token_t *token, mp_strbuf_t *out) {
  enum { MAX_SHOWN = 40 };
  if (token->kind == MP_TOKEN_END) {
    mp_strbuf_puts(out, "the end of the text");
    return;
  }
  if (token->kind == MP_TOKEN_ERROR && token->text.size > 0 && token->text.data[0] == '"') {
    mp_strbuf_puts(out, "a string without end");
    return;
  }
  size_t size = (size_t)(token->text.data + token->text.size - token->start);
  mp_strbuf_putc(out, '\'');
  for (size_t i = 0; i < size && i < MAX_SHOWN; ++i) {
    unsigned char c = (unsigned char)token->start[i];
    if (c >= 0x20 && c != 0x7F)
      mp_strbuf_putc(out, (char)c);
    else
      mp_strbuf_printf(out, "\\%02X", c);
  }
  mp_strbuf_puts(out, size > MAX_SHOWN ? "...'" : "'");
}

mp_status_t mp_text_expected(const mp_text_t *t, const char *what) {
  mp_strbuf_t found;
  mp_strbuf_init(&found);
  text_parser_describe(&t->tok, &found);
  mp_status_t status = mp_status_make(MP_INVALID_ARGUMENT, "%u:%u: expected %s, found %s",
                                      t->tok.line, t->tok.column, what, mp_strbuf_text(&found));
  mp_strbuf_deinit(&found);
  return status;
}

mp_status_t mp_text_error(const mp_text_t *t, const mp_token_t *token, mp_status_code_t code,
                          const char *format, ...) {
  (void)t;
  va_list args;
  va_start(args, format);
  mp_status_t status = mp_status_vmake(code, format, args);
  va_end(args);
  return mp_status_annotate(status, "%u:%u", token->line, token->column);
}

// ---- tokens ----

void mp_text_advance(mp_text_t *t) {
  t->last = t->tok;
  t->tok = mp_lexer_next(&t->lex);
}

bool mp_text_is(const mp_text_t *t, char c) {
  return t->tok.kind == MP_TOKEN_PUNCT && t->tok.text.data[0] == c;
}

bool mp_text_is_word(const mp_text_t *t, const char *word) {
  return t->tok.kind == MP_TOKEN_WORD && mp_str_is(t->tok.text, word);
}

bool mp_text_accept(mp_text_t *t, char c) {
  if (!mp_text_is(t, c)) return false;
  mp_text_advance(t);
  return true;
}

bool mp_text_accept_word(mp_text_t *t, const char *word) {
  if (!mp_text_is_word(t, word)) return false;
  mp_text_advance(t);
  return true;
}

mp_status_t mp_text_expect(mp_text_t *t, char c) {
  if (mp_text_accept(t, c)) return NULL;
  return mp_text_expected(t, (const char[]){'\'', c, '\'', '\0'});
}

mp_status_t mp_text_expect_word(mp_text_t *t, const char *word) {
  if (mp_text_accept_word(t, word)) return NULL;
  return mp_text_expected(t, word);
}

mp_status_t mp_text_expect_arrow(mp_text_t *t) {
  if (t->tok.kind != MP_TOKEN_ARROW) return mp_text_expected(t, "'->'");
  mp_text_advance(t);
  return NULL;
}

mp_token_t mp_text_peek(const mp_text_t *t) {
  mp_lexer_t ahead = t->lex;
  return mp_lexer_next(&ahead);
}

// ---- bounds ----

mp_status_t mp_text_enter(mp_text_t *t) {
  if (t->depth >= MP_TEXT_MAX_DEPTH)
    return mp_text_error(t, &t->tok, MP_INVALID_ARGUMENT, "nested more than %d deep",
                         MP_TEXT_MAX_DEPTH);
  ++t->depth;
  return mp_text_add_weight(t, 1);
}

mp_status_t mp_text_add_weight(mp_text_t *t, uint64_t weight) {
  MP_ASSERT(t->weight <= t->max_weight);
  if (weight > t->max_weight - t->weight)
    return mp_text_error(t, &t->tok, MP_INVALID_ARGUMENT,
                         "the aliases expand to more than a program of this size may hold");
  t->weight += weight;
  return NULL;
}

// ---- scalars ----

int mp_text_hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool mp_text_scan_u64(const mp_token_t *token, uint64_t *out_value) {
  mp_str_t text = token->text;
  uint64_t value = 0;
  if (token->kind == MP_TOKEN_HEX) {
    if (text.size > 18) return false;
    MP_ASSERT(text.size > 2);  // the lexer takes "0x" only with a digit
    for (size_t i = 2; i < text.size; ++i)
      value = value << 4 | (uint64_t)mp_text_hex_digit(text.data[i]);
  } else {
    for (size_t i = 0; i < text.size; ++i)
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, (uint64_t)(text.data[i] - '0'), &value))
        return false;
  }
  *out_value = value;
  return true;
}

// Removes the quotes from a string token's text and resolves its escapes: \\ \" \n \t \HH.
static mp_status_t text_parser_unescape(mp_text_t *t, mp_str_t quoted, mp_str_t *out_text) {
  char *text = mp_arena_alloc(t->arena, quoted.size);
  MP_RETURN_IF_NULL(text);
  size_t size = 0;
  MP_ASSERT(quoted.size >= 2);  // the quotes
  const char *end = quoted.data + quoted.size - 1;
  for (const char *c = quoted.data + 1; c < end; ++c) {
    if (*c != '\\') {
      text[size++] = *c;
      continue;
    }
    ++c;  // the lexer takes a backslash only together with the character behind it
    int high = mp_text_hex_digit(*c), low = end - c > 1 ? mp_text_hex_digit(c[1]) : -1;
    if (*c == 'n' || *c == 't') {
      text[size++] = *c == 'n' ? '\n' : '\t';
    } else if (high >= 0 && low >= 0) {
      text[size++] = (char)(high * 16 + low);
      ++c;
    } else if (*c == '\\' || *c == '"') {
      text[size++] = *c;
    } else {
      return mp_text_error(t, &t->tok, MP_INVALID_ARGUMENT, "unknown escape '\\%c' in a string",
                           *c >= 0x20 ? *c : '?');
    }
  }
  MP_ASSERT(size <= quoted.size - 2);
  *out_text = (mp_str_t){text, size};
  return NULL;
}

mp_status_t mp_text_string(mp_text_t *t, mp_str_t *out_text) {
  if (t->tok.kind != MP_TOKEN_STRING) return mp_text_expected(t, "a string");
  MP_RETURN_IF_ERROR(text_parser_unescape(t, t->tok.text, out_text));
  mp_text_advance(t);
  return NULL;
}

mp_status_t mp_text_symbol(mp_text_t *t, mp_str_t *out_name) {
  if (t->tok.kind != MP_TOKEN_SYMBOL) return mp_text_expected(t, "a symbol '@name'");
  mp_str_t text = t->tok.text;
  if (text.data[0] == '"') {
    MP_RETURN_IF_ERROR(text_parser_unescape(t, text, out_name));
  } else {
    char *copy = mp_arena_strndup(t->arena, text.data, text.size);
    MP_RETURN_IF_NULL(copy);
    *out_name = (mp_str_t){copy, text.size};
  }
  mp_text_advance(t);
  return NULL;
}

mp_status_t mp_text_name(mp_text_t *t, mp_str_t *out_name) {
  if (t->tok.kind == MP_TOKEN_STRING) return mp_text_string(t, out_name);
  if (t->tok.kind != MP_TOKEN_WORD) return mp_text_expected(t, "a name");
  mp_attr_name_t known = mp_attr_name_from_text(t->tok.text);
  if (known != MP_ATTR_OTHER) {
    *out_name = mp_str(mp_attr_name_text(known));
  } else {
    char *copy = mp_arena_strndup(t->arena, t->tok.text.data, t->tok.text.size);
    MP_RETURN_IF_NULL(copy);
    *out_name = (mp_str_t){copy, t->tok.text.size};
  }
  mp_text_advance(t);
  return NULL;
}

mp_status_t mp_text_i64(mp_text_t *t, int64_t *out_value) {
  bool negative = mp_text_accept(t, '-');
  if (t->tok.kind != MP_TOKEN_INTEGER) return mp_text_expected(t, "an integer");
  int64_t value = 0;
  for (size_t i = 0; i < t->tok.text.size; ++i) {
    int64_t digit = t->tok.text.data[i] - '0';
    if (__builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, negative ? -digit : digit, &value))
      return mp_text_error(t, &t->tok, MP_INVALID_ARGUMENT,
                           "the integer does not fit into 64 bits");
  }
  mp_text_advance(t);
  *out_value = value;
  return NULL;
}

mp_status_t mp_text_bool(mp_text_t *t, bool *out_value) {
  bool is_true = mp_text_is_word(t, "true");
  if (!is_true && !mp_text_is_word(t, "false")) return mp_text_expected(t, "true or false");
  mp_text_advance(t);
  *out_value = is_true;
  return NULL;
}

mp_status_t mp_text_index_list(mp_text_t *t, mp_index_list_t *out_list) {
  mp_text_ints_t list = {0};
  MP_TEXT_LIST(t, '[', ']', int64_t, &list, mp_text_i64);
  int64_t *values = mp_arena_copy(t->arena, list.items, list.count * sizeof(int64_t));
  MP_RETURN_IF_NULL(values);
  *out_list = (mp_index_list_t){list.count, values};
  return NULL;
}
