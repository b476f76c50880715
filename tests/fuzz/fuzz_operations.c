// Single operations, drawn by the input's bytes (tests/unit/support/hostile/hostile_programs.h):
// every input is a program that compiles, unless a kernel has something against its element types,
// and is run.
#include "sim/readers/text/text.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/support/hostile/hostile_calls.h"

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  return fuzz_set_limits(argc, argv);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  draw_program(data, size, mp_hash_bytes(MP_HASH_START, data, size), &text);
  mp_module_t *module = NULL;
  mp_status_t status = mp_read_text(mp_strbuf_text(&text), text.size, &module);
  if (status == NULL) status = mp_module_verify(module);
  if (status != NULL) {
    fprintf(stderr, "%s\n%s", mp_status_message(status), mp_strbuf_text(&text));
    __builtin_trap();
  }
  fuzz_compile(module, data, size);
  mp_strbuf_deinit(&text);
  return 0;
}
