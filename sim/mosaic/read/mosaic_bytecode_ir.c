// The IR section: the module, its functions and their ops.
#include <stdio.h>

#include "sim/mosaic/read/mosaic_bytecode.h"
#include "sim/mosaic/read/mosaic_text.h"

// What is read, with the module and the current function.
typedef struct {
  mp_bc_ir_t ir;  // first: readers of ops get a pointer to it
  mp_mosaic_module_t *module;
  mp_str_t kernel;  // "": not within a function
} state_t;

// ---- the form ----

// "arith.addi [kernel.py:12:7]: ...", since the tables do not know whose attributes they hold.
static mp_status_t mosaic_bytecode_ir_name_op(const mp_bc_op_t *op, mp_status_t status) {
  mp_strbuf_t where;
  if (status == NULL) return NULL;
  mp_strbuf_init(&where);
  mp_loc_describe(op->loc, &where);
  status = mp_status_annotate(status, "%.*s [%s]", MP_STR_SHOWN(op->name->name, 60),
                              mp_strbuf_text(&where));
  mp_strbuf_deinit(&where);
  return status;
}

static mp_status_t mosaic_bytecode_ir_read_dict(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                mp_bc_op_t *op) {
  const mp_bc_cursor_t before = *c;
  const mp_mosaic_attr_t *dict = NULL;
  MP_RETURN_IF_ERROR(mosaic_bytecode_ir_name_op(op, mp_mosaic_bc_attr(r, c, &dict)));
  if (dict->kind != MP_MOSAIC_DICT) {
    return mosaic_bytecode_ir_name_op(op, mp_bc_fail(&before, "a dictionary is expected"));
  }
  op->other_dict = dict;
  return NULL;
}

static mp_status_t mosaic_bytecode_ir_make_block(mp_bc_reader_t *r, const void *const *types,
                                                 uint32_t num_types, void **out_args,
                                                 void **out_block) {
  mp_mosaic_block_t *block = NULL;
  MP_RETURN_IF_ERROR(
      mp_mosaic_block_create(r->arena, (const mp_mosaic_type_t *const *)types, num_types, &block));
  for (uint32_t i = 0; i < num_types; ++i) out_args[i] = &block->args[i];
  *out_block = block;
  return NULL;
}

static const mp_bc_form_t g_form = {.value_type_at = mp_mosaic_bc_value_type_at,
                                    .read_dict = mosaic_bytecode_ir_read_dict,
                                    .make_block = mosaic_bytecode_ir_make_block,
                                    .empty_regions = true};

static const mp_mosaic_named_t *mosaic_bytecode_ir_attrs(const mp_bc_op_t *op,
                                                         uint32_t *out_count) {
  const mp_mosaic_attr_t *dict = op->other_dict;
  *out_count = dict != NULL ? dict->list.count : 0;
  return dict != NULL ? dict->list.items : NULL;
}

// ---- ops ----

// "arith.addi" of the dialect stable_mosaic; without serialization "addi" of the dialect arith.
static bool mosaic_bytecode_ir_find_op(const mp_bc_reader_t *r, const mp_bc_op_name_t *name,
                                       mp_mosaic_opcode_t *out_code) {
  const mp_str_t dialect = r->dialects[name->dialect].name;
  if (mp_str_is(dialect, "stable_mosaic")) return mp_mosaic_opcode_from_name(name->name, out_code);
  char full[80];
  const int size = snprintf(full, sizeof(full), "%.*s.%.*s", MP_STR_SHOWN(dialect, 40),
                            MP_STR_SHOWN(name->name, 60));
  if (size < 0 || (size_t)size >= sizeof(full)) return false;
  return mp_mosaic_opcode_from_name((mp_str_t){full, (size_t)size}, out_code);
}

static mp_status_t mosaic_bytecode_ir_read_op(mp_bc_ir_t *ir, mp_bc_cursor_t *c, mp_bc_op_t *op,
                                              void *block) {
  mp_bc_reader_t *r = ir->r;
  size_t first = 0;
  mp_mosaic_op_t *made = NULL;
  mp_mosaic_op_spec_t spec = {.loc = op->loc,
                              .operands = (mp_mosaic_value_t *const *)op->operands,
                              .num_operands = op->num_operands,
                              .result_types = (const mp_mosaic_type_t *const *)op->result_types,
                              .num_results = op->num_results,
                              .num_regions = (uint32_t)op->num_regions};
  if (!mosaic_bytecode_ir_find_op(r, op->name, &spec.code))
    return mp_bc_op_unknown(ir, op, "is not supported");
  MP_RETURN_IF_ERROR(mp_bc_take_numbers(ir, &op->origin, op->num_results, &first));
  void **regions = MP_ARENA_ARRAY(r->scratch, void *, op->num_regions);
  MP_RETURN_IF_NULL(regions);
  MP_RETURN_IF_ERROR(mp_bc_read_regions(ir, c, op, mosaic_bytecode_ir_read_op, regions));
  spec.regions = (mp_mosaic_block_t *const *)regions;
  spec.attrs = mosaic_bytecode_ir_attrs(op, &spec.num_attrs);
  MP_RETURN_IF_ERROR(mp_mosaic_op_create(r->arena, &spec, block, &made));
  for (uint32_t i = 0; i < op->num_results; ++i)
    ir->values.slots.items[first + i] = &made->results[i];
  return NULL;
}

// ---- functions and the module ----

static mp_status_t mosaic_bytecode_ir_read_func(mp_bc_ir_t *ir, mp_bc_cursor_t *c, mp_bc_op_t *op,
                                                void *block) {
  state_t *state = (state_t *)ir;
  (void)block;
  if (!mp_str_is(op->name->name, "func.func") && !mp_str_is(op->name->name, "func"))
    return mp_bc_op_unknown(ir, op, "stands outside of any function");
  uint32_t count = 0;
  const mp_mosaic_named_t *attrs = mosaic_bytecode_ir_attrs(op, &count);
  const mp_mosaic_attr_t *name = mp_mosaic_attr(attrs, count, "sym_name");
  if (name != NULL && name->kind == MP_MOSAIC_STRING) state->kernel = name->str;
  void *body = NULL;
  MP_RETURN_IF_ERROR(mp_bc_read_only_region(ir, c, op, mosaic_bytecode_ir_read_op, &body));
  MP_RETURN_IF_ERROR(mp_mosaic_func_create(state->module, attrs, count, body, op->loc));
  state->kernel = MP_STR("");
  return NULL;
}

static mp_status_t mosaic_bytecode_ir_read_module(state_t *state, mp_bc_cursor_t *c,
                                                  const mp_bc_op_t *op) {
  if (!mp_bc_op_is(&state->ir, op, MP_BC_BUILTIN, "module"))
    return mp_bc_op_unknown(&state->ir, op, "stands where a module is expected");
  void *body = NULL;
  MP_RETURN_IF_ERROR(
      mp_bc_read_only_region(&state->ir, c, op, mosaic_bytecode_ir_read_func, &body));
  uint32_t count = 0;
  const mp_mosaic_named_t *attrs = mosaic_bytecode_ir_attrs(op, &count);
  return mp_mosaic_finish_module(state->module, attrs, count);
}

static mp_status_t mosaic_bytecode_ir_read_head(mp_bc_ir_t *ir, mp_bc_cursor_t *c, mp_bc_op_t *op) {
  const mp_bc_cursor_t start = *c;
  uint64_t num_ops = 0;
  bool has_args = false;
  MP_RETURN_IF_ERROR(mp_bc_flagged(c, &num_ops, &has_args));
  if (num_ops != 1 || has_args) return mp_bc_fail(&start, "the program is not one module");
  return mp_bc_read_op_head(ir, c, op);
}

static mp_status_t mosaic_bytecode_ir_read_all(state_t *state) {
  mp_bc_cursor_t c = state->ir.r->sections[MP_BC_SECTION_IR];
  mp_bc_op_t op;
  MP_RETURN_IF_ERROR(mosaic_bytecode_ir_read_head(&state->ir, &c, &op));
  MP_RETURN_IF_ERROR(mosaic_bytecode_ir_read_module(state, &c, &op));
  return mp_bc_finish(&c, "the section of operations");
}

mp_status_t mp_mosaic_read_module_attrs(mp_bc_reader_t *r, const mp_mosaic_attr_t **out_dict) {
  mp_bc_ir_t ir = {.r = r, .form = &g_form};
  mp_bc_cursor_t c = r->sections[MP_BC_SECTION_IR];
  mp_bc_op_t op;
  mp_status_t status = mosaic_bytecode_ir_read_head(&ir, &c, &op);
  if (status == NULL) *out_dict = op.other_dict;
  MP_ARRAY_FREE(&ir.values.slots);
  return status;
}

mp_status_t mp_mosaic_read_ir(mp_bc_reader_t *r, mp_mosaic_module_t *module) {
  state_t state = {.ir = {.r = r, .form = &g_form}, .module = module};
  mp_status_t status = mosaic_bytecode_ir_read_all(&state);
  if (status != NULL && state.kernel.size > 0)
    status = mp_status_annotate(status, "Mosaic kernel %.*s", MP_STR_SHOWN(state.kernel, 100));
  else if (status != NULL)
    status = mp_status_annotate(status, "Mosaic module");
  MP_ARRAY_FREE(&state.ir.values.slots);
  return status;
}
