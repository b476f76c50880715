// Shared by the libFuzzer targets: limits for every input, a small generator, the compile pipeline,
// what described chips would take for its programs, and what is run of them.
#ifndef MINIPOD_TESTS_FUZZ_FUZZ_H_
#define MINIPOD_TESTS_FUZZ_FUZZ_H_

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/fuse/fuse.h"
#include "sim/ir/module.h"
#include "sim/ir/print/print_module.h"
#include "sim/ir/verify/verify.h"
#include "sim/passes/passes.h"
#include "sim/plan/plan.h"
#include "sim/spmd/gspmd/gspmd_import.h"
#include "sim/spmd/partition/partition.h"
#include "tests/fuzz/fuzz_chip.h"
#include "tests/fuzz/fuzz_execute.h"
#include "tests/fuzz/fuzz_pool.h"

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

static inline size_t fuzz_below(uint64_t *state, size_t bound) {
  return bound == 0 ? 0 : (size_t)(hostile_random(state) % bound);
}

static inline mp_status_t fuzz_print(const mp_module_t *module) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  const mp_print_options_t options = {.locations = true, .elide_elements = 64};
  mp_status_t status = mp_module_print(module, &options, &text);
  mp_strbuf_deinit(&text);
  return status;
}

// Makes main return all that its ops compute, because unused values would not be computed. Only if
// main is the whole program, because then nothing calls it.
static inline void fuzz_return_all(mp_module_t *module) {
  enum { MAX_RESULTS = 64 };
  mp_func_t *main = module->main;
  if (module->funcs.first != main || main->next != NULL) return;
  mp_op_t *end = main->body->last;
  mp_value_t **values = MP_ARENA_ARRAY(module->arena, mp_value_t *, MAX_RESULTS);
  const mp_type_t **types = MP_ARENA_ARRAY(module->arena, const mp_type_t *, MAX_RESULTS);
  const mp_attr_t **attrs = MP_ARENA_ARRAY(module->arena, const mp_attr_t *, MAX_RESULTS);
  uint32_t count = end->num_operands;
  if (values == NULL || types == NULL || attrs == NULL || count > MAX_RESULTS) return;
  for (uint32_t i = 0; i < count; ++i) {
    values[i] = end->operands[i];
    types[i] = main->result_types[i];
    if (main->result_attrs != NULL) attrs[i] = main->result_attrs[i];
  }
  for (mp_op_t *op = main->body->first; op != end; op = op->next) {
    for (uint32_t r = 0; r < op->num_results && count < MAX_RESULTS; ++r) {
      if (!mp_type_is_tensor(op->results[r].type)) continue;
      values[count] = &op->results[r];
      types[count++] = op->results[r].type;
    }
  }
  end->operands = values;
  end->num_operands = count;
  main->result_types = types;
  main->result_attrs = attrs;
  main->num_results = count;
}

// Fuses and plans a partitioned module, and keeps what it was.
static inline mp_status_t fuzz_plan(mp_module_t *module, mp_plan_options_t *plan,
                                    mp_program_t **out_program) {
  MP_RETURN_IF_ERROR(mp_module_number_control(module));
  MP_RETURN_IF_ERROR(mp_module_copy_main(module, &plan->partitioned));
  mp_status_t status = mp_fuse(module);
  if (status == NULL) {
    // What the passes made must still be a program that the verifier accepts.
    mp_status_t verified = mp_module_verify(module);
    if (verified != NULL) {
      fprintf(stderr, "after the passes: %s\n", mp_status_message(verified));
      __builtin_trap();
    }
    status = mp_plan_create(module, plan, out_program);
  }
  if (status != NULL) mp_module_release(plan->partitioned);
  return status;
}

// Prints, verifies and compiles a module as far as it goes. Programs with much data are only
// verified: folding and planning them is right, but slow under sanitizers.
static inline mp_status_t fuzz_stages(mp_module_t *module, bool returns_all, bool *out_verified,
                                      mp_program_t **out_program) {
  MP_RETURN_IF_ERROR(mp_module_verify(module));
  *out_verified = true;
  MP_RETURN_IF_ERROR(fuzz_print(module));
  if (returns_all) fuzz_return_all(module);
  const uint64_t devices = (uint64_t)module->num_replicas * module->num_partitions;
  if (devices >= 1 && devices <= 64) {
    MP_RETURN_IF_ERROR(mp_spmd_import_gspmd(module, module->num_partitions));
  }
  MP_RETURN_IF_ERROR(mp_passes_prepare(module));
  MP_RETURN_IF_ERROR(mp_module_verify(module));
  if (devices > 64) return NULL;
  mp_plan_options_t plan = {.num_replicas = module->num_replicas,
                            .num_partitions = module->num_partitions,
                            .open_loops = true};  // what guards kernels sees each command
  const bool propagate = true;
  const mp_partition_options_t partition = {.num_partitions = module->num_partitions,
                                            .propagate_to_results = &propagate,
                                            .num_propagate_to_results = 1,
                                            .propagate_to_params = &propagate,
                                            .num_propagate_to_params = 1};
  MP_RETURN_IF_ERROR(mp_spmd_partition(module, &partition, &plan.partition));
  MP_RETURN_IF_ERROR(mp_passes_finish(module));
  return fuzz_plan(module, &plan, out_program);
}

// Adopts the module of the input `data`. Valid programs go into the pool; small ones are run, with
// arguments that the input decides about.
static inline void fuzz_compile(mp_module_t *module, const uint8_t *data, size_t size) {
  bool verified = false, was_run = false;
  mp_program_t *program = NULL;
  const bool returns_all = mp_hash_bytes(MP_HASH_START, data, size) % 2 == 0;
  mp_status_ignore(fuzz_stages(module, returns_all, &verified, &program));
  // A program owns its module.
  if (program == NULL) {
    mp_module_release(module);
  } else {
    fuzz_chips(program, mp_hash_bytes(MP_HASH_START, data, size));
    was_run = fuzz_execute(program, data, size);
  }
  if (verified) fuzz_pool_add(data, size, was_run);
}

#endif  // MINIPOD_TESTS_FUZZ_FUZZ_H_
