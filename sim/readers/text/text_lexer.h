// Tokens of MLIR text; private to this folder.
#ifndef MINIPOD_SIM_READERS_TEXT_TEXT_LEXER_H_
#define MINIPOD_SIM_READERS_TEXT_TEXT_LEXER_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/str.h"

typedef enum {
  MP_TOKEN_END,
  MP_TOKEN_ERROR,    // a character that begins no token, or a string without end
  MP_TOKEN_WORD,     // stablehlo.add
  MP_TOKEN_INTEGER,  // 12
  MP_TOKEN_HEX,      // 0x7FC0
  MP_TOKEN_FLOAT,    // 1.0e-5
  MP_TOKEN_STRING,   // "text": with the quotes, escapes as written
  MP_TOKEN_VALUE,    // %arg0: without the %
  MP_TOKEN_SYMBOL,   // @main, @"a b": without the @
  MP_TOKEN_HASH,     // #stablehlo.gather: without the #
  MP_TOKEN_BANG,     // !stablehlo.token: without the !
  MP_TOKEN_CARET,    // ^bb0: without the ^
  MP_TOKEN_ARROW,    // ->
  MP_TOKEN_PUNCT,    // one character
} mp_token_kind_t;

typedef struct {
  mp_token_kind_t kind;
  mp_str_t text;
  const char *start;      // where it begins in the text, marks such as % included
  uint32_t line, column;  // of `start`, both counted from 1; a tab is one column
} mp_token_t;

// A position in a text. Copies are independent positions; nothing is owned.
typedef struct {
  const char *at;  // the next character
  const char *end;
  const char *line_start;
  uint32_t line;
} mp_lexer_t;

// A lexer at the beginning of a text, which must outlive the lexer and its tokens.
mp_lexer_t mp_lexer_start(const char *text, size_t size);

// The next token; comments and white space are skipped. At the end of the text it is END, however
// often it is called. The token's text points into the program.
mp_token_t mp_lexer_next(mp_lexer_t *lexer);

#endif  // MINIPOD_SIM_READERS_TEXT_TEXT_LEXER_H_
