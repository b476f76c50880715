// The compile options reader on any bytes.
#include "sim/readers/options/compile_options.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  return fuzz_set_limits(argc, argv);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  mp_arena_t *arena = NULL;
  mp_compile_options_t options;
  mp_status_t status = mp_arena_create(&arena);
  if (status == NULL) status = mp_compile_options_read(data, size, size % 2 == 0, arena, &options);
  if (status == NULL) {
    // Reads all that was given out.
    uint64_t sum = mp_flag_list_at(options.propagate_to_output, 3);
    for (uint32_t i = 0; i < options.propagate_to_parameters.count; ++i) {
      sum += options.propagate_to_parameters.items[i];
    }
    for (uint32_t i = 0; i < options.assigned_replicas * options.assigned_partitions; ++i) {
      sum += options.assignment[i];
    }
    if (sum == UINT64_MAX) __builtin_trap();
  }
  mp_status_release(status);
  mp_arena_release(arena);
  return 0;
}
