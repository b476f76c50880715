#include "sim/readers/text/text_lexer.h"
#include "sim/base/assert.h"

enum { LETTER = 1, DIGIT = 2, HEX_DIGIT = 4, MARK = 8, DASH = 16 };

// The tokens that a character may be part of. A MARK may be in words after the first letter, a DASH
// in names of values.
static int text_lexer_class_of(char c) {
  if (c >= '0' && c <= '9') return DIGIT | HEX_DIGIT;
  if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) return LETTER | HEX_DIGIT;
  if ((c >= 'g' && c <= 'z') || (c >= 'G' && c <= 'Z') || c == '_') return LETTER;
  if (c == '$' || c == '.') return MARK;
  return c == '-' ? DASH : 0;
}

mp_lexer_t mp_lexer_start(const char *text, size_t size) {
  return (mp_lexer_t){.at = text, .end = text + size, .line_start = text, .line = 1};
}

static void text_lexer_skip_blank(mp_lexer_t *l) {
  for (; l->at < l->end; ++l->at) {
    if (*l->at == '\n') {
      ++l->line;
      l->line_start = l->at + 1;
    } else if (*l->at == '/' && l->end - l->at > 1 && l->at[1] == '/') {
      while (l->at + 1 < l->end && l->at[1] != '\n') ++l->at;
    } else if (*l->at != ' ' && *l->at != '\t' && *l->at != '\r') {
      return;
    }
  }
}

static void text_lexer_skip_class(mp_lexer_t *l, int mask) {
  while (l->at < l->end && (text_lexer_class_of(*l->at) & mask) != 0) ++l->at;
}

static bool text_lexer_is_at(const mp_lexer_t *l, size_t ahead, int mask) {
  return (size_t)(l->end - l->at) > ahead && (text_lexer_class_of(l->at[ahead]) & mask) != 0;
}

static bool text_lexer_is_char(const mp_lexer_t *l, size_t ahead, char c) {
  return (size_t)(l->end - l->at) > ahead && l->at[ahead] == c;
}

static mp_token_kind_t text_lexer_lex_number(mp_lexer_t *l) {
  if (text_lexer_is_char(l, 0, '0') && text_lexer_is_char(l, 1, 'x') &&
      text_lexer_is_at(l, 2, HEX_DIGIT)) {
    l->at += 2;
    text_lexer_skip_class(l, HEX_DIGIT);
    return MP_TOKEN_HEX;
  }
  mp_token_kind_t kind = MP_TOKEN_INTEGER;
  text_lexer_skip_class(l, DIGIT);
  if (text_lexer_is_char(l, 0, '.')) {
    kind = MP_TOKEN_FLOAT;
    ++l->at;
    text_lexer_skip_class(l, DIGIT);
  }
  if (!text_lexer_is_char(l, 0, 'e') && !text_lexer_is_char(l, 0, 'E')) return kind;
  size_t sign = text_lexer_is_char(l, 1, '+') || text_lexer_is_char(l, 1, '-') ? 1 : 0;
  if (!text_lexer_is_at(l, 1 + sign, DIGIT)) return kind;
  l->at += 1 + sign;
  text_lexer_skip_class(l, DIGIT);
  return MP_TOKEN_FLOAT;
}

// Moves from the opening quote past the closing one; false when there is none in this line.
static bool text_lexer_lex_string(mp_lexer_t *l) {
  for (l->at++; l->at < l->end && *l->at != '\n'; ++l->at) {
    if (*l->at == '"') {
      ++l->at;
      return true;
    }
    if (*l->at == '\\' && l->end - l->at > 1 && l->at[1] != '\n') ++l->at;
  }
  return false;
}

static mp_token_kind_t text_lexer_lex_marked(mp_lexer_t *l, char mark) {
  ++l->at;
  const char *start = l->at;
  switch (mark) {
    case '%':
    case '^':
      text_lexer_skip_class(l, LETTER | DIGIT | MARK | DASH);
      // A name may contain '-', but a "->" directly behind it does not belong to it.
      if (l->at > start && l->at[-1] == '-' && text_lexer_is_char(l, 0, '>')) --l->at;
      return l->at == start ? MP_TOKEN_ERROR : mark == '%' ? MP_TOKEN_VALUE : MP_TOKEN_CARET;
    case '@':
      if (text_lexer_is_char(l, 0, '"'))
        return text_lexer_lex_string(l) ? MP_TOKEN_SYMBOL : MP_TOKEN_ERROR;
      if (!text_lexer_is_at(l, 0, LETTER)) return MP_TOKEN_ERROR;
      text_lexer_skip_class(l, LETTER | DIGIT | MARK);
      return MP_TOKEN_SYMBOL;
    default:
      text_lexer_skip_class(l, LETTER | DIGIT | MARK);
      if (l->at == start) return MP_TOKEN_ERROR;
      return mark == '#' ? MP_TOKEN_HASH : MP_TOKEN_BANG;
  }
}

static mp_token_kind_t text_lexer_lex(mp_lexer_t *l) {
  char c = *l->at;
  if ((text_lexer_class_of(c) & LETTER) != 0) {
    text_lexer_skip_class(l, LETTER | DIGIT | MARK);
    return MP_TOKEN_WORD;
  }
  if ((text_lexer_class_of(c) & DIGIT) != 0) return text_lexer_lex_number(l);
  switch (c) {
    case '"':
      return text_lexer_lex_string(l) ? MP_TOKEN_STRING : MP_TOKEN_ERROR;
    case '%':
    case '@':
    case '#':
    case '!':
    case '^':
      return text_lexer_lex_marked(l, c);
    case '-':
      if (text_lexer_is_char(l, 1, '>')) {
        l->at += 2;
        return MP_TOKEN_ARROW;
      }
      break;
    case '(':
    case ')':
    case '[':
    case ']':
    case '{':
    case '}':
    case '<':
    case '>':
    case ':':
    case ',':
    case '=':
    case '?':
    case '*':
    case '+':
      break;
    default:
      ++l->at;
      return MP_TOKEN_ERROR;
  }
  ++l->at;
  return MP_TOKEN_PUNCT;
}

mp_token_t mp_lexer_next(mp_lexer_t *l) {
  text_lexer_skip_blank(l);
  MP_ASSERT(l->line_start <= l->at && l->at <= l->end);
  mp_token_t token = {.kind = MP_TOKEN_END,
                      .start = l->at,
                      .line = l->line,
                      .column = (uint32_t)(l->at - l->line_start) + 1};
  if (l->at == l->end) return token;
  token.kind = text_lexer_lex(l);
  // Every token takes a character, so that parsing ends, and none reaches behind the text.
  MP_ASSERT(l->at > token.start && l->at <= l->end);
  size_t skip = token.kind >= MP_TOKEN_VALUE && token.kind <= MP_TOKEN_CARET ? 1 : 0;
  token.text = (mp_str_t){token.start + skip, (size_t)(l->at - token.start) - skip};
  return token;
}
