// A small program of every op (tests/fixtures/op_samples.txt), for tests of the op list.
//
// Each program's main returns the op's first result, so that it is in use, or what was made of it.
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_OP_SAMPLES_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_OP_SAMPLES_H_

#include <stdlib.h>
#include <string.h>

#include "sim/ir/verify/verify.h"
#include "sim/plan/compile.h"
#include "sim/readers/text/text.h"
#include "tests/unit/support/fixtures.h"

static fixture_t g_sample_file;
static const char *g_samples[MP_OP_COUNT];  // the program's text; NULL: there is none

// To be called once, before any test.
static inline void samples_load(void) {
  g_sample_file = fixture_read("op_samples.txt");
  for (char *at = g_sample_file.data, *next; at != NULL; at = next) {
    char *name = at + strlen("=== ");
    next = strstr(at, "\n=== ");
    if (next != NULL) *next++ = '\0';
    char *text = strchr(name, '\n');
    *text++ = '\0';
    mp_opcode_t code = MP_OP_COUNT;
    if (!mp_opcode_from_name(mp_str(name), &code)) fail_msg("%s is no op", name);
    if (g_samples[code] != NULL) fail_msg("%s has two programs", name);
    g_samples[code] = text;
  }
}

static inline void samples_unload(void) {
  free(g_sample_file.data);
}

static inline const char *op_name(mp_opcode_t code) {
  return mp_op_info(code)->name;
}

static inline mp_module_t *sample_read(mp_opcode_t code) {
  mp_module_t *module = NULL;
  assert_non_null(g_samples[code]);
  mp_status_t status = mp_read_text(g_samples[code], strlen(g_samples[code]), &module);
  if (status != NULL) fail_msg("%s: %s", op_name(code), mp_status_message(status));
  return module;
}

// ---- what is in a module ----

typedef struct {
  mp_opcode_t code;
  uint32_t count;
  mp_op_t *first;
} sample_count_t;

static inline mp_status_t sample_count_op(void *context, mp_op_t *op) {
  sample_count_t *found = context;
  if (op->code != found->code) return NULL;
  if (found->count++ == 0) found->first = op;
  return NULL;
}

static inline uint32_t count_ops(mp_module_t *module, mp_opcode_t code) {
  sample_count_t found = {.code = code};
  assert_ok(mp_module_walk(module, sample_count_op, &found));
  return found.count;
}

static inline mp_op_t *first_op(mp_module_t *module, mp_opcode_t code) {
  sample_count_t found = {.code = code};
  assert_ok(mp_module_walk(module, sample_count_op, &found));
  if (found.first == NULL) fail_msg("%s is not in its program", op_name(code));
  return found.first;
}

// main returns these values and nothing else.
static inline void return_values(mp_module_t *module, uint32_t count, mp_value_t *const *values) {
  mp_op_t *end = mp_block_terminator(module->main->body);
  mp_func_t *main = module->main;
  main->num_results = end->num_operands = count;
  end->operands = mp_arena_copy(module->arena, values, count * sizeof(*values));
  main->result_types = MP_ARENA_ARRAY(module->arena, const mp_type_t *, count + 1);
  main->result_attrs = MP_ARENA_ARRAY(module->arena, const mp_attr_t *, count + 1);
  for (uint32_t i = 0; i < count; ++i) main->result_types[i] = values[i]->type;
}

// ---- programs ----

// For so many replicas and as many partitions.
static inline mp_status_t compile_module(mp_module_t *module, uint32_t grid,
                                         mp_program_t **out_program) {
  const mp_compile_request_t request = {
      .num_replicas = grid, .num_partitions = grid, .op_by_op = true};
  return mp_compile_module(module, &request, out_program);
}

static inline mp_program_t *compile_one(mp_opcode_t code) {
  mp_program_t *program = NULL;
  mp_status_t status = compile_module(sample_read(code), 1, &program);
  if (status != NULL) fail_msg("%s: %s", op_name(code), mp_status_message(status));
  return program;
}

#define FOR_EACH_OP(code) \
  for (mp_opcode_t code = (mp_opcode_t)0; code < MP_OP_COUNT; code = (mp_opcode_t)(code + 1))

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_OP_SAMPLES_H_
