// Mutation of text by tokens: puts another token of the text (or a word of the grammar) in a
// token's place, drops, doubles or swaps tokens, or replaces a token wherever it stands.
#ifndef MINIPOD_TESTS_FUZZ_FUZZ_TOKENS_H_
#define MINIPOD_TESTS_FUZZ_FUZZ_TOKENS_H_

#include "sim/readers/text/text_lexer.h"
#include "tests/fuzz/fuzz.h"

enum { FUZZ_MAX_TOKENS = 4096, FUZZ_MAX_TEXT = 16384 };

typedef struct {
  char *data;
  size_t size, capacity;
} fuzz_out_t;

static inline void fuzz_put(fuzz_out_t *out, const char *data, size_t size) {
  if (size > out->capacity - out->size) return;
  memcpy(out->data + out->size, data, size);
  out->size += size;
}

static inline size_t fuzz_split(const char *text, size_t size, mp_str_t *tokens) {
  mp_lexer_t lexer = mp_lexer_start(text, size);
  size_t count = 0;
  while (count < FUZZ_MAX_TOKENS) {
    mp_token_t token = mp_lexer_next(&lexer);
    if (token.kind == MP_TOKEN_END) break;
    tokens[count++] = (mp_str_t){token.start, (size_t)(lexer.at - token.start)};
  }
  return count;
}

static inline mp_str_t fuzz_other_token(uint64_t *state, const mp_str_t *tokens, size_t count) {
  static const char *const words[] = {"0",
                                      "1",
                                      "-1",
                                      "2",
                                      "3",
                                      "64",
                                      "9223372036854775807",
                                      "0x7F800000",
                                      "1.0e30",
                                      "true",
                                      "false",
                                      "\"x\"",
                                      "\"\"",
                                      "{",
                                      "}",
                                      "<",
                                      ">",
                                      "[",
                                      "]",
                                      "(",
                                      ")",
                                      ",",
                                      "=",
                                      ":",
                                      "->",
                                      "?",
                                      "f32",
                                      "i1",
                                      "bf16",
                                      "ui8",
                                      "tensor<2xf32>",
                                      "tensor<f32>",
                                      "loc",
                                      "unknown",
                                      "dense",
                                      "array",
                                      "i64",
                                      "unit",
                                      "%arg0",
                                      "%0",
                                      "@main",
                                      "@mesh",
                                      "{}",
                                      "[]",
                                      "i4",
                                      "i32",
                                      "complex<f32>",
                                      "tensor<0xf32>",
                                      "f8E4M3",
                                      "none",
                                      "xi1",
                                      "xi4",
                                      "xi8",
                                      "xui8",
                                      "xi32",
                                      "xui32",
                                      "xi64",
                                      "xui64",
                                      "xbf16",
                                      "xf32",
                                      "xf64",
                                      "index",
                                      "dense<1> : tensor<2x2xi64>"};
  if (count > 0 && fuzz_below(state, 3) != 0) return tokens[fuzz_below(state, count)];
  return mp_str(words[fuzz_below(state, sizeof(words) / sizeof(words[0]))]);
}

// A token of the same first character, most of the time: names for names, types for types.
static inline mp_str_t fuzz_like_token(uint64_t *state, const mp_str_t *tokens, size_t count,
                                       mp_str_t token) {
  for (int tries = 0; tries < 16; ++tries) {
    mp_str_t other = fuzz_other_token(state, tokens, count);
    bool digits = other.data[0] >= '0' && other.data[0] <= '9' && token.data[0] >= '0' &&
                  token.data[0] <= '9';
    if (digits || other.data[0] == token.data[0]) return other;
  }
  return fuzz_other_token(state, tokens, count);
}

static inline void fuzz_put_changed(uint64_t *state, fuzz_out_t *out, const mp_str_t *tokens,
                                    size_t count, size_t i) {
  mp_str_t other;
  switch (fuzz_below(state, 6)) {
    case 0:
      return;
    case 1:
      fuzz_put(out, tokens[i].data, tokens[i].size);
      fuzz_put(out, " ", 1);
      fuzz_put(out, tokens[i].data, tokens[i].size);
      return;
    case 2:
      other = fuzz_other_token(state, tokens, count);
      fuzz_put(out, tokens[i].data, tokens[i].size);
      fuzz_put(out, " ", 1);
      break;
    default:
      other = fuzz_like_token(state, tokens, count, tokens[i]);
      break;
  }
  fuzz_put(out, other.data, other.size);
}

// One token becomes another one wherever it stands: a size or an element type in all types.
static inline void fuzz_put_renamed(uint64_t *state, fuzz_out_t *out, const mp_str_t *tokens,
                                    size_t count, const char *text) {
  const mp_str_t token = tokens[fuzz_below(state, count)];
  const mp_str_t other = fuzz_like_token(state, tokens, count, token);
  const char *at = text;
  for (size_t i = 0; i < count; ++i) {
    bool same = tokens[i].size == token.size && memcmp(tokens[i].data, token.data, token.size) == 0;
    fuzz_put(out, at, (size_t)(tokens[i].data - at));
    fuzz_put(out, same ? other.data : tokens[i].data, same ? other.size : tokens[i].size);
    at = tokens[i].data + tokens[i].size;
  }
}

// Changes the text in `data`; the new size, 0 if it has no tokens.
static inline size_t fuzz_mutate_tokens(uint64_t *state, uint8_t *data, size_t size,
                                        size_t max_size) {
  static mp_str_t tokens[FUZZ_MAX_TOKENS];
  static char room[FUZZ_MAX_TEXT];
  const char *text = (const char *)data;
  size_t count = fuzz_split(text, size, tokens);
  if (count == 0) return 0;
  fuzz_out_t out = {room, 0, max_size < FUZZ_MAX_TEXT ? max_size : FUZZ_MAX_TEXT};
  if (fuzz_below(state, 3) == 0) {
    fuzz_put_renamed(state, &out, tokens, count, text);
    memcpy(data, room, out.size);
    return out.size;
  }
  size_t changes = 1 + fuzz_below(state, 3);
  size_t places[3];
  for (size_t i = 0; i < changes; ++i) places[i] = fuzz_below(state, count);
  const char *at = text;
  for (size_t i = 0; i < count; ++i) {
    bool changed = false;
    for (size_t j = 0; j < changes; ++j) changed = changed || places[j] == i;
    // White space stays: dimensions are no tokens of their own.
    fuzz_put(&out, at, (size_t)(tokens[i].data - at));
    if (changed)
      fuzz_put_changed(state, &out, tokens, count, i);
    else
      fuzz_put(&out, tokens[i].data, tokens[i].size);
    at = tokens[i].data + tokens[i].size;
  }
  memcpy(data, room, out.size);
  return out.size;
}

#endif  // MINIPOD_TESTS_FUZZ_FUZZ_TOKENS_H_
