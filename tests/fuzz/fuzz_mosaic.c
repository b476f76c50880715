// The readers of Mosaic modules on mutated ones: bytecode, text, and the JSON that carries them.
// What is read must print to a text that reads back to the same module, which the verifier takes or
// refuses alike.
//
// Text is mutated by tokens. In bytecode single numbers are changed that take one byte, so that the
// container stays whole. Parents that are not modules mostly give way to inputs that were.
#include "sim/mosaic/read/mosaic_call.h"
#include "sim/mosaic/read/mosaic_reader.h"
#include "sim/readers/bytecode/bytecode.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_tokens.h"

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  return fuzz_set_limits(argc, argv);
}

static mp_status_t read_any(const uint8_t *data, size_t size, mp_mosaic_module_t **out_module) {
  if (size == 0 || data[0] != '{') return mp_mosaic_read(data, size, out_module);
  mp_mosaic_call_t call;
  MP_RETURN_IF_ERROR(mp_mosaic_read_call((mp_str_t){(const char *)data, size}, &call));
  *out_module = call.module;
  return NULL;
}

static void fail(const char *what, mp_status_t status, const mp_strbuf_t *text) {
  fprintf(stderr, "%s: %s\n%s\n", what, mp_status_message(status), mp_strbuf_text(text));
  __builtin_trap();
}

static void check_print(const mp_mosaic_module_t *module, bool is_valid) {
  mp_strbuf_t text, again_text;
  mp_mosaic_module_t *again = NULL;
  mp_strbuf_init(&text);
  mp_strbuf_init(&again_text);
  mp_mosaic_print(module, &text);
  mp_status_t status = mp_mosaic_read(mp_strbuf_text(&text), text.size, &again);
  if (status != NULL) fail("reading back", status, &text);
  mp_mosaic_print(again, &again_text);
  if (strcmp(mp_strbuf_text(&text), mp_strbuf_text(&again_text)) != 0)
    fail("comparing", NULL, &again_text);
  status = mp_mosaic_verify(again);
  if ((status == NULL) != is_valid) fail("verifying", status, &text);
  mp_status_release(status);
  mp_mosaic_module_release(again);
  mp_strbuf_deinit(&again_text);
  mp_strbuf_deinit(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  mp_mosaic_module_t *module = NULL;
  mp_status_t status = read_any(data, size, &module);
  if (status == NULL) {
    status = mp_mosaic_verify(module);
    check_print(module, status == NULL);
    fuzz_pool_add(data, size, status == NULL);
  }
  mp_mosaic_module_release(module);
  mp_status_release(status);
  return 0;
}

// ---- mutation ----

static bool is_module(const uint8_t *data, size_t size) {
  mp_mosaic_module_t *module = NULL;
  mp_status_t status = read_any(data, size, &module);
  const bool is_read = status == NULL;
  mp_status_release(status);
  mp_mosaic_module_release(module);
  return is_read;
}

static size_t change_numbers(uint64_t *state, uint8_t *data, size_t size) {
  for (size_t i = 1 + fuzz_below(state, 3); i > 0; --i) {
    uint8_t *at = &data[fuzz_below(state, size)];
    switch (fuzz_below(state, 3)) {
      case 0:
        *at = (uint8_t)(fuzz_below(state, 128) << 1 | 1);
        break;
      case 1:  // another place's byte
        *at = data[fuzz_below(state, size)];
        break;
      default:
        *at = (uint8_t)(*at + (fuzz_below(state, 2) == 0 ? 2 : -2));
        break;
    }
  }
  return size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed) {
  uint64_t state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
  if (fuzz_below(&state, 16) == 0) return LLVMFuzzerMutate(data, size, max_size);
  if (fuzz_below(&state, 16) != 0 && !is_module(data, size)) {
    const size_t picked = fuzz_pool_pick(&state, data, max_size);
    if (picked != 0) size = picked;
  }
  if (mp_is_bytecode(data, size)) return change_numbers(&state, data, size);
  const size_t changed = fuzz_mutate_tokens(&state, data, size, max_size);
  return changed != 0 ? changed : LLVMFuzzerMutate(data, size, max_size);
}
