#include "sim/readers/text/text_lexer.h"

enum { LETTER = 1, DIGIT = 2, HEX_DIGIT = 4, MARK = 8, DASH = 16 };

// What a character may be part of. MARK: in words behind the first letter; DASH: in value names.
static int class_of(char c) {
  if (c >= '0' && c <= '9') return DIGIT | HEX_DIGIT;
  if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) return LETTER | HEX_DIGIT;
  if ((c >= 'g' && c <= 'z') || (c >= 'G' && c <= 'Z') || c == '_') return LETTER;
  if (c == '$' || c == '.') return MARK;
  return c == '-' ? DASH : 0;
}

mp_lexer_t mp_lexer_start(const char *text, size_t size) {
  return (mp_lexer_t){.at = text, .end = text + size, .line_start = text, .line = 1};
}

static void skip_blank(mp_lexer_t *l) {
  for (; l->at < l->end; l->at++) {
    if (*l->at == '\n') {
      l->line++;
      l->line_start = l->at + 1;
    } else if (*l->at == '/' && l->end - l->at > 1 && l->at[1] == '/') {
      while (l->at + 1 < l->end && l->at[1] != '\n') l->at++;
    } else if (*l->at != ' ' && *l->at != '\t' && *l->at != '\r') {
      return;
    }
  }
}

static void skip_class(mp_lexer_t *l, int mask) {
  while (l->at < l->end && (class_of(*l->at) & mask) != 0) l->at++;
}

static bool is_at(const mp_lexer_t *l, size_t ahead, int mask) {
  return (size_t)(l->end - l->at) > ahead && (class_of(l->at[ahead]) & mask) != 0;
}

static bool is_char(const mp_lexer_t *l, size_t ahead, char c) {
  return (size_t)(l->end - l->at) > ahead && l->at[ahead] == c;
}

static mp_token_kind_t lex_number(mp_lexer_t *l) {
  if (is_char(l, 0, '0') && is_char(l, 1, 'x') && is_at(l, 2, HEX_DIGIT)) {
    l->at += 2;
    skip_class(l, HEX_DIGIT);
    return MP_TOKEN_HEX;
  }
  mp_token_kind_t kind = MP_TOKEN_INTEGER;
  skip_class(l, DIGIT);
  if (is_char(l, 0, '.')) {
    kind = MP_TOKEN_FLOAT;
    l->at++;
    skip_class(l, DIGIT);
  }
  if (!is_char(l, 0, 'e') && !is_char(l, 0, 'E')) return kind;
  size_t sign = is_char(l, 1, '+') || is_char(l, 1, '-') ? 1 : 0;
  if (!is_at(l, 1 + sign, DIGIT)) return kind;
  l->at += 1 + sign;
  skip_class(l, DIGIT);
  return MP_TOKEN_FLOAT;
}

// From the opening quote behind the closing one. Strings do not span lines.
static bool lex_string(mp_lexer_t *l) {
  for (l->at++; l->at < l->end && *l->at != '\n'; l->at++) {
    if (*l->at == '"') {
      l->at++;
      return true;
    }
    if (*l->at == '\\' && l->end - l->at > 1 && l->at[1] != '\n') l->at++;
  }
  return false;
}

static mp_token_kind_t lex_marked(mp_lexer_t *l, char mark) {
  l->at++;
  const char *start = l->at;
  switch (mark) {
    case '%':
    case '^':
      skip_class(l, LETTER | DIGIT | MARK | DASH);
      // "->" behind a name is no part of it.
      if (l->at > start && l->at[-1] == '-' && is_char(l, 0, '>')) l->at--;
      return l->at == start ? MP_TOKEN_ERROR : mark == '%' ? MP_TOKEN_VALUE : MP_TOKEN_CARET;
    case '@':
      if (is_char(l, 0, '"')) return lex_string(l) ? MP_TOKEN_SYMBOL : MP_TOKEN_ERROR;
      if (!is_at(l, 0, LETTER)) return MP_TOKEN_ERROR;
      skip_class(l, LETTER | DIGIT | MARK);
      return MP_TOKEN_SYMBOL;
    default:
      skip_class(l, LETTER | DIGIT | MARK);
      if (l->at == start) return MP_TOKEN_ERROR;
      return mark == '#' ? MP_TOKEN_HASH : MP_TOKEN_BANG;
  }
}

static mp_token_kind_t lex(mp_lexer_t *l) {
  char c = *l->at;
  if ((class_of(c) & LETTER) != 0) {
    skip_class(l, LETTER | DIGIT | MARK);
    return MP_TOKEN_WORD;
  }
  if ((class_of(c) & DIGIT) != 0) return lex_number(l);
  switch (c) {
    case '"':
      return lex_string(l) ? MP_TOKEN_STRING : MP_TOKEN_ERROR;
    case '%':
    case '@':
    case '#':
    case '!':
    case '^':
      return lex_marked(l, c);
    case '-':
      if (is_char(l, 1, '>')) {
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
      break;
    default:
      l->at++;
      return MP_TOKEN_ERROR;
  }
  l->at++;
  return MP_TOKEN_PUNCT;
}

mp_token_t mp_lexer_next(mp_lexer_t *l) {
  skip_blank(l);
  mp_token_t token = {.kind = MP_TOKEN_END,
                      .start = l->at,
                      .line = l->line,
                      .column = (uint32_t)(l->at - l->line_start) + 1};
  if (l->at == l->end) return token;
  token.kind = lex(l);
  size_t skip = token.kind >= MP_TOKEN_VALUE && token.kind <= MP_TOKEN_CARET ? 1 : 0;
  token.text = (mp_str_t){token.start + skip, (size_t)(l->at - token.start) - skip};
  return token;
}
