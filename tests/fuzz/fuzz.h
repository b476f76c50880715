// Shared by the libFuzzer targets: limits for every input, a small generator, the compile pipeline.
#ifndef MINIPOD_TESTS_FUZZ_FUZZ_H_
#define MINIPOD_TESTS_FUZZ_FUZZ_H_

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/ir/module.h"
#include "sim/ir/print/print_module.h"
#include "sim/ir/verify/verify.h"
#include "sim/passes/passes.h"
#include "sim/plan/plan.h"
#include "sim/spmd/gspmd/gspmd_import.h"
#include "sim/spmd/partition/partition.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

// Limits that hold unless the command line says otherwise: they come first among the arguments.
static inline int fuzz_set_limits(int *argc, char ***argv) {
  static char timeout[] = "-timeout=20", memory[] = "-rss_limit_mb=2048";
  static char one[] = "-malloc_limit_mb=1024", length[] = "-max_len=16384";
  char *const extra[] = {timeout, memory, one, length};
  enum { NUM_EXTRA = sizeof(extra) / sizeof(extra[0]) };
  char **longer = calloc((size_t)*argc + NUM_EXTRA + 1, sizeof(*longer));
  if (longer == NULL) return 0;
  longer[0] = (*argv)[0];
  memcpy(longer + 1, extra, sizeof(extra));
  for (int i = 1; i < *argc; ++i) longer[NUM_EXTRA + i] = (*argv)[i];
  *argv = longer;
  *argc += NUM_EXTRA;
  return 0;
}

// xorshift64*; the state is never 0.
static inline uint64_t fuzz_random(uint64_t *state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * UINT64_C(2685821657736338717);
}

static inline size_t fuzz_below(uint64_t *state, size_t bound) {
  return bound == 0 ? 0 : (size_t)(fuzz_random(state) % bound);
}

static inline mp_status_t fuzz_print(const mp_module_t *module) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  const mp_print_options_t options = {.locations = true, .elide_elements = 64};
  mp_status_t status = mp_module_print(module, &options, &text);
  mp_strbuf_deinit(&text);
  return status;
}

// Prints, verifies and compiles a module as far as it goes. Programs with much data are only
// verified: folding and planning them is right, but slow under sanitizers.
static inline mp_status_t fuzz_stages(mp_module_t *module, bool *out_verified,
                                      mp_program_t **out_program) {
  MP_RETURN_IF_ERROR(mp_module_verify(module));
  *out_verified = true;
  MP_RETURN_IF_ERROR(fuzz_print(module));
  const uint64_t devices = (uint64_t)module->num_replicas * module->num_partitions;
  if (devices >= 1 && devices <= 64) {
    MP_RETURN_IF_ERROR(mp_spmd_import_gspmd(module, module->num_partitions));
  }
  MP_RETURN_IF_ERROR(mp_passes_prepare(module));
  MP_RETURN_IF_ERROR(mp_module_verify(module));
  if (devices > 64) return NULL;
  mp_plan_options_t plan = {.num_replicas = module->num_replicas,
                            .num_partitions = module->num_partitions};
  const bool propagate = true;
  const mp_partition_options_t partition = {.num_partitions = module->num_partitions,
                                            .propagate_to_results = &propagate,
                                            .num_propagate_to_results = 1,
                                            .propagate_to_params = &propagate,
                                            .num_propagate_to_params = 1};
  MP_RETURN_IF_ERROR(mp_spmd_partition(module, &partition, &plan.partition));
  MP_RETURN_IF_ERROR(mp_passes_finish(module));
  // What the passes made must still be a program that the verifier accepts.
  mp_status_t status = mp_module_verify(module);
  if (status != NULL) {
    fprintf(stderr, "after the passes: %s\n", mp_status_message(status));
    __builtin_trap();
  }
  return mp_plan_create(module, &plan, out_program);
}

// Adopts the module. True if it was a valid program.
static inline bool fuzz_compile(mp_module_t *module) {
  bool verified = false;
  mp_program_t *program = NULL;
  mp_status_ignore(fuzz_stages(module, &verified, &program));
  // A program owns its module.
  if (program == NULL) {
    mp_module_release(module);
  } else {
    mp_program_release(program);
  }
  return verified;
}

#endif  // MINIPOD_TESTS_FUZZ_FUZZ_H_
