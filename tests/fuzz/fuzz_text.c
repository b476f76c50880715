// The text reader on mutated programs. What the verifier accepts must print to a text that reads
// back to an equal module; then it goes through passes, partitioner and planner, and
// is run when it is small.
//
// The mutator works on tokens (fuzz_tokens.h); now and then bytes are changed blindly. Parents that
// are no programs mostly give way to inputs that were.
#include "sim/ir/compare/module_equal.h"
#include "sim/readers/text/text.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_tokens.h"

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

static bool is_program(const uint8_t *data, size_t size) {
  mp_module_t *module = NULL;
  mp_status_t status = mp_read_text((const char *)data, size, &module);
  bool accepted = status == NULL;
  mp_status_release(status);
  mp_module_release(module);
  return accepted;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed) {
  uint64_t state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
  if (fuzz_below(&state, 16) == 0) return LLVMFuzzerMutate(data, size, max_size);
  if (fuzz_below(&state, 16) != 0 && !is_program(data, size)) {
    size_t picked = fuzz_pool_pick(&state, data, max_size);
    if (picked != 0) size = picked;
  }
  const size_t changed = fuzz_mutate_tokens(&state, data, size, max_size);
  return changed != 0 ? changed : LLVMFuzzerMutate(data, size, max_size);
}
