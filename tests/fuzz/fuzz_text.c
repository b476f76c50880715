// The text reader on mutated programs. What the verifier accepts must print to a text that reads
// back to an equal module; then it goes through passes, partitioner and planner, and
// is run when it is small.
//
// The mutator works on tokens: it puts another token of the program (or a word of the grammar) in a
// token's place, drops, doubles or swaps tokens, or replaces a token wherever it stands; now and
// then bytes are changed blindly. Parents that are no programs mostly give way to inputs that were.
#include "sim/ir/compare/module_equal.h"
#include "sim/readers/text/text.h"
#include "sim/readers/text/text_lexer.h"
#include "tests/fuzz/fuzz.h"

enum { MAX_TOKENS = 4096, MAX_TEXT = 16384 };

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  return fuzz_set_limits(argc, argv);
}

static void fail(const char *what, mp_status_t status, const mp_strbuf_t *text) {
  fprintf(stderr, "%s: %s\n%s\n", what, mp_status_message(status), mp_strbuf_text(text));
  __builtin_trap();
}

static void check_print(const mp_module_t *module, bool generic) {
  const mp_print_options_t options = {.generic = generic, .locations = !generic};
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_module_t *again = NULL;
  mp_status_t status = mp_module_print(module, &options, &text);
  if (status != NULL) fail("printing", status, &text);
  status = mp_read_text(mp_strbuf_text(&text), text.size, &again);
  if (status != NULL) fail("reading back", status, &text);
  status = mp_module_compare(module, again);
  if (status != NULL) fail("comparing", status, &text);
  mp_module_release(again);
  mp_strbuf_deinit(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  mp_module_t *module = NULL;
  mp_status_t status = mp_read_text((const char *)data, size, &module);
  if (status == NULL) status = mp_module_verify(module);
  if (status == NULL) {
    check_print(module, false);
    check_print(module, true);
    fuzz_compile(module, data, size);
  } else {
    mp_module_release(module);
  }
  mp_status_release(status);
  return 0;
}

// ---- mutation ----

typedef struct {
  char *data;
  size_t size, capacity;
} out_t;

static void put(out_t *out, const char *data, size_t size) {
  if (size > out->capacity - out->size) return;
  memcpy(out->data + out->size, data, size);
  out->size += size;
}

static size_t split(const char *text, size_t size, mp_str_t *tokens) {
  mp_lexer_t lexer = mp_lexer_start(text, size);
  size_t count = 0;
  while (count < MAX_TOKENS) {
    mp_token_t token = mp_lexer_next(&lexer);
    if (token.kind == MP_TOKEN_END) break;
    tokens[count++] = (mp_str_t){token.start, (size_t)(lexer.at - token.start)};
  }
  return count;
}

static mp_str_t other_token(uint64_t *state, const mp_str_t *tokens, size_t count) {
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
static mp_str_t like_token(uint64_t *state, const mp_str_t *tokens, size_t count, mp_str_t token) {
  for (int tries = 0; tries < 16; ++tries) {
    mp_str_t other = other_token(state, tokens, count);
    bool digits = other.data[0] >= '0' && other.data[0] <= '9' && token.data[0] >= '0' &&
                  token.data[0] <= '9';
    if (digits || other.data[0] == token.data[0]) return other;
  }
  return other_token(state, tokens, count);
}

static void put_changed(uint64_t *state, out_t *out, const mp_str_t *tokens, size_t count,
                        size_t i) {
  mp_str_t other;
  switch (fuzz_below(state, 6)) {
    case 0:
      return;
    case 1:
      put(out, tokens[i].data, tokens[i].size);
      put(out, " ", 1);
      put(out, tokens[i].data, tokens[i].size);
      return;
    case 2:
      other = other_token(state, tokens, count);
      put(out, tokens[i].data, tokens[i].size);
      put(out, " ", 1);
      break;
    default:
      other = like_token(state, tokens, count, tokens[i]);
      break;
  }
  put(out, other.data, other.size);
}

// One token becomes another one wherever it stands: a size or an element type in all types.
static void put_renamed(uint64_t *state, out_t *out, const mp_str_t *tokens, size_t count,
                        const char *text) {
  const mp_str_t token = tokens[fuzz_below(state, count)];
  const mp_str_t other = like_token(state, tokens, count, token);
  const char *at = text;
  for (size_t i = 0; i < count; ++i) {
    bool same = tokens[i].size == token.size && memcmp(tokens[i].data, token.data, token.size) == 0;
    put(out, at, (size_t)(tokens[i].data - at));
    put(out, same ? other.data : tokens[i].data, same ? other.size : tokens[i].size);
    at = tokens[i].data + tokens[i].size;
  }
}

static bool is_program(const uint8_t *data, size_t size) {
  mp_module_t *module = NULL;
  mp_status_t status = mp_read_text((const char *)data, size, &module);
  bool accepted = status == NULL;
  mp_status_release(status);
  mp_module_release(module);
  return accepted;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed) {
  static mp_str_t tokens[MAX_TOKENS];
  static char room[MAX_TEXT];
  uint64_t state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
  if (fuzz_below(&state, 16) == 0) return LLVMFuzzerMutate(data, size, max_size);
  if (fuzz_below(&state, 16) != 0 && !is_program(data, size)) {
    size_t picked = fuzz_pool_pick(&state, data, max_size);
    if (picked != 0) size = picked;
  }
  const char *text = (const char *)data;
  size_t count = split(text, size, tokens);
  if (count == 0) return LLVMFuzzerMutate(data, size, max_size);
  out_t out = {room, 0, max_size < MAX_TEXT ? max_size : MAX_TEXT};
  if (fuzz_below(&state, 3) == 0) {
    put_renamed(&state, &out, tokens, count, text);
    memcpy(data, room, out.size);
    return out.size;
  }
  size_t changes = 1 + fuzz_below(&state, 3);
  size_t places[3];
  for (size_t i = 0; i < changes; ++i) places[i] = fuzz_below(&state, count);
  const char *at = text;
  for (size_t i = 0; i < count; ++i) {
    bool changed = false;
    for (size_t j = 0; j < changes; ++j) changed = changed || places[j] == i;
    // White space stays: dimensions are no tokens of their own.
    put(&out, at, (size_t)(tokens[i].data - at));
    if (changed)
      put_changed(&state, &out, tokens, count, i);
    else
      put(&out, tokens[i].data, tokens[i].size);
    at = tokens[i].data + tokens[i].size;
  }
  memcpy(data, room, out.size);
  return out.size;
}
