#include "sim/plan/program_blame.h"

#include <inttypes.h>

#include "sim/ir/module.h"

// Appends `stablehlo.dot_general (dot at train.py:3:9)`.
static void program_blame_describe_op(const mp_op_t *op, mp_strbuf_t *out) {
  mp_strbuf_printf(out, "%s (", mp_op_info(op->code)->name);
  mp_loc_describe(op->loc, out);
  mp_strbuf_puts(out, ")");
}

// Adds `line`, which is consumed, to an error of a memory space.
static mp_status_t program_blame_add_line(mp_status_t status, mp_strbuf_t *line) {
  mp_status_t longer = NULL;
  if (!line->failed) {
    longer = mp_status_make(mp_status_code(status), "%s\n%s", mp_status_message(status),
                            mp_strbuf_text(line));
    mp_status_release(status);
  } else {
    longer = status;
  }
  mp_strbuf_deinit(line);
  return longer;
}

static bool program_blame_is_wanted(const mp_program_t *program, mp_status_t status) {
  return mp_status_code(status) == MP_RESOURCE_EXHAUSTED && program->module != NULL &&
         program->module->main != NULL;
}

// The op that computes a result; NULL: it is an argument, or there is no module.
static const mp_op_t *program_blame_maker(const mp_program_t *program, uint32_t result) {
  if (program->module == NULL || program->module->main == NULL) return NULL;
  const mp_op_t *terminator = mp_block_terminator(program->module->main->body);
  if (terminator == NULL || result >= terminator->num_operands) return NULL;
  return terminator->operands[result]->op;
}

void mp_program_describe_result(const mp_program_t *program, uint32_t result, mp_strbuf_t *out) {
  const mp_op_t *op = program_blame_maker(program, result);
  if (op != NULL) mp_loc_describe(op->loc, out);
}

mp_status_t mp_program_blame_result(const mp_program_t *program, uint32_t result,
                                    mp_status_t status) {
  if (!program_blame_is_wanted(program, status)) return status;
  const mp_op_t *op = program_blame_maker(program, result);
  if (op == NULL) return status;
  mp_strbuf_t line;
  mp_strbuf_init(&line);
  mp_strbuf_printf(&line, "in the program: result %" PRIu32 " of %.*s is made by ", result,
                   MP_STR_ARG(program->name));
  program_blame_describe_op(op, &line);
  return program_blame_add_line(status, &line);
}

typedef struct {
  const mp_op_t *op;
  const mp_type_t *type;
  int64_t bytes;
} largest_t;

static mp_status_t program_blame_compare(void *context, mp_op_t *op) {
  largest_t *largest = context;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    const mp_type_t *type = op->results[i].type;
    int64_t bytes = 0;
    if (!mp_type_is_tensor(type) || !mp_type_num_bytes(type, &bytes)) continue;
    if (bytes > largest->bytes) *largest = (largest_t){op, type, bytes};
  }
  return NULL;
}

mp_status_t mp_program_blame_temporaries(const mp_program_t *program, mp_status_t status) {
  if (!program_blame_is_wanted(program, status)) return status;
  largest_t largest = {0};
  mp_status_ignore(mp_module_walk(program->module, program_blame_compare, &largest));
  if (largest.op == NULL) return status;
  mp_strbuf_t line;
  mp_strbuf_init(&line);
  mp_strbuf_printf(&line, "in the program: the largest value of %.*s is ",
                   MP_STR_ARG(program->name));
  mp_type_print(largest.type, &line);
  mp_strbuf_puts(&line, " of ");
  program_blame_describe_op(largest.op, &line);
  return program_blame_add_line(status, &line);
}
