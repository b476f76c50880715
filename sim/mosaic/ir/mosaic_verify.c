// Checks modules: what all ops, blocks and functions must keep. The ops themselves have their
// checks in the files beside this one.
#include "sim/mosaic/ir/mosaic_verify.h"

// ---- types ----

static bool mosaic_verify_is_value_type(const mp_mosaic_type_t *type) {
  if (type->kind == MP_MOSAIC_FUNCTION) return false;
  if (type->kind != MP_MOSAIC_MEMREF && type->element != MP_MOSAIC_NUMBER) return false;
  return type->element != MP_MOSAIC_NUMBER || !mp_dtype_is_complex(type->dtype);
}

static mp_status_t mosaic_verify_types(const mp_mosaic_op_t *op) {
  int64_t count = 0;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    const mp_mosaic_type_t *type = op->results[i].type;
    MP_MOSAIC_CHECK(op, mosaic_verify_is_value_type(type), "result %u has a type of no value", i);
    MP_MOSAIC_CHECK(op, !mp_mosaic_is_vector(type) || mp_mosaic_num_elements(type, &count),
                    "result %u is too large", i);
  }
  return NULL;
}

// Elementwise ops take and make scalars or vectors; others of vectors no memrefs.
static mp_status_t mosaic_verify_class(const mp_mosaic_op_t *op) {
  const mp_mosaic_class_t op_class = mp_mosaic_op_info(op->code)->op_class;
  if (op_class != MP_MOSAIC_CLASS_SCALAR_OR_VECTOR && op_class != MP_MOSAIC_CLASS_VECTOR)
    return NULL;
  const bool is_select = op->code == MP_MOSAIC_SELECT;  // it also chooses among memrefs' views
  for (uint32_t i = 0; i < op->num_operands && !is_select; ++i)
    MP_MOSAIC_CHECK(op, !mp_mosaic_is_memref(mp_mosaic_in(op, i)), "operand %u is a memref", i);
  for (uint32_t i = 0; i < op->num_results && !is_select; ++i)
    MP_MOSAIC_CHECK(op, !mp_mosaic_is_memref(mp_mosaic_out(op, i)), "result %u is a memref", i);
  return NULL;
}

// ---- control flow ----

// Whether values are of the types of others, one by one.
static bool mosaic_verify_values_fit(mp_mosaic_value_t *const *values, uint32_t num_values,
                                     const mp_mosaic_value_t *others, uint32_t num_others) {
  if (num_values != num_others) return false;
  for (uint32_t i = 0; i < num_values; ++i)
    if (!mp_mosaic_type_equal(values[i]->type, others[i].type)) return false;
  return true;
}

// The block ends in `code`, whose operands from `first` on are of the types of `values`. A block
// without ops is one whose end was left out, which is possible where there are no values.
static mp_status_t mosaic_verify_end(const mp_mosaic_op_t *op, const mp_mosaic_block_t *block,
                                     mp_mosaic_opcode_t code, uint32_t first,
                                     const mp_mosaic_value_t *values, uint32_t count) {
  const mp_mosaic_op_t *end = block->last;
  if (end == NULL && count == 0 && first == 0) return NULL;
  MP_MOSAIC_CHECK(op, end != NULL && end->code == code, "a region does not end in %s",
                  mp_mosaic_op_info(code)->name);
  MP_MOSAIC_CHECK(
      op,
      end->num_operands >= first &&
          mosaic_verify_values_fit(end->operands + first, end->num_operands - first, values, count),
      "%s does not have the requested values", mp_mosaic_op_info(code)->name);
  return NULL;
}

static mp_status_t mosaic_verify_if(const mp_mosaic_op_t *op) {
  MP_MOSAIC_CHECK(
      op,
      mp_mosaic_in(op, 0)->kind == MP_MOSAIC_SCALAR && mp_mosaic_in(op, 0)->dtype == MP_DTYPE_BOOL,
      "its condition is not i1");
  for (uint32_t i = 0; i < 2; ++i) {
    MP_MOSAIC_CHECK(op, op->regions[i]->num_args == 0, "a region has arguments");
    MP_RETURN_IF_ERROR(mosaic_verify_end(op, op->regions[i], MP_MOSAIC_SCF_YIELD, 0, op->results,
                                         op->num_results));
  }
  return NULL;
}

// Lower bound, upper bound, step, first values.
static mp_status_t mosaic_verify_for(const mp_mosaic_op_t *op) {
  const mp_mosaic_block_t *body = op->regions[0];
  MP_RETURN_IF_ERROR(mp_mosaic_check_indices(op, 0, 3));
  MP_MOSAIC_CHECK(op,
                  body->num_args == op->num_results + 1 &&
                      mp_mosaic_type_equal(mp_mosaic_in(op, 0), mp_mosaic_in(op, 1)) &&
                      mp_mosaic_type_equal(mp_mosaic_in(op, 0), mp_mosaic_in(op, 2)) &&
                      mp_mosaic_type_equal(mp_mosaic_in(op, 0), body->args[0].type),
                  "its bounds, its step and its counter have different types");
  MP_MOSAIC_CHECK(op,
                  mosaic_verify_values_fit(op->operands + 3, op->num_operands - 3, body->args + 1,
                                           body->num_args - 1) &&
                      mosaic_verify_values_fit(op->operands + 3, op->num_operands - 3, op->results,
                                               op->num_results),
                  "its first values, its arguments and its results have different types");
  return mosaic_verify_end(op, body, MP_MOSAIC_SCF_YIELD, 0, op->results, op->num_results);
}

static mp_status_t mosaic_verify_while(const mp_mosaic_op_t *op) {
  const mp_mosaic_block_t *before = op->regions[0], *after = op->regions[1];
  MP_MOSAIC_CHECK(
      op, mosaic_verify_values_fit(op->operands, op->num_operands, before->args, before->num_args),
      "its first values and its arguments have different types");
  MP_MOSAIC_CHECK(op, after->num_args == op->num_results, "its body does not have its results");
  for (uint32_t i = 0; i < op->num_results; ++i)
    MP_MOSAIC_CHECK(op, mp_mosaic_type_equal(after->args[i].type, op->results[i].type),
                    "argument %u of its body has another type than the result", i);
  MP_RETURN_IF_ERROR(
      mosaic_verify_end(op, before, MP_MOSAIC_CONDITION, 1, op->results, op->num_results));
  const mp_mosaic_type_t *condition = before->last->operands[0]->type;
  MP_MOSAIC_CHECK(op, condition->kind == MP_MOSAIC_SCALAR && condition->dtype == MP_DTYPE_BOOL,
                  "its condition is not i1");
  return mosaic_verify_end(op, after, MP_MOSAIC_SCF_YIELD, 0, before->args, before->num_args);
}

// The first region is the default; `cases` has a number for each of the others.
static mp_status_t mosaic_verify_switch(const mp_mosaic_op_t *op) {
  mp_mosaic_ints_t cases = {0};
  MP_RETURN_IF_ERROR(mp_mosaic_check_indices(op, 0, 1));
  MP_MOSAIC_CHECK(op,
                  op->num_regions > 0 && mp_mosaic_ints(op, "cases", &cases) &&
                      cases.count == op->num_regions - 1,
                  "it does not have a region for each of its cases");
  for (uint32_t i = 0; i < op->num_regions; ++i)
    MP_RETURN_IF_ERROR(mosaic_verify_end(op, op->regions[i], MP_MOSAIC_SCF_YIELD, 0, op->results,
                                         op->num_results));
  return NULL;
}

static mp_status_t mosaic_verify_region(const mp_mosaic_op_t *op) {
  MP_MOSAIC_CHECK(op, op->regions[0]->num_args == 0, "its region has arguments");
  return mosaic_verify_end(op, op->regions[0], MP_MOSAIC_TPU_YIELD, 0, op->results,
                           op->num_results);
}

static mp_status_t mosaic_verify_assert(const mp_mosaic_op_t *op) {
  return mp_mosaic_check_indices(op, 0, 1);
}

static mp_status_t mosaic_verify_call(const mp_mosaic_module_t *module, const mp_mosaic_op_t *op) {
  const mp_mosaic_attr_t *name = mp_mosaic_op_attr(op, "callee");
  MP_MOSAIC_CHECK(op, name != NULL && name->kind == MP_MOSAIC_STRING, "it has no callee");
  const mp_mosaic_func_t *callee = mp_mosaic_find_func(module, name->str);
  MP_MOSAIC_CHECK(op, callee != NULL, "there is no function %.*s", MP_STR_SHOWN(name->str, 100));
  const mp_mosaic_type_t *type = callee->type;
  bool fits = type->num_inputs == op->num_operands &&
              type->num_elements == op->num_operands + op->num_results;
  for (uint32_t i = 0; fits && i < type->num_elements; ++i)
    fits = mp_mosaic_type_equal(type->elements[i], i < type->num_inputs
                                                       ? op->operands[i]->type
                                                       : op->results[i - type->num_inputs].type);
  MP_MOSAIC_CHECK(op, fits, "it does not have the types of %.*s", MP_STR_SHOWN(name->str, 100));
  return NULL;
}

static mp_mosaic_check_t mosaic_verify_flow(mp_mosaic_opcode_t code) {
  static const mp_mosaic_check_t checks[MP_MOSAIC_OP_COUNT] = {
      [MP_MOSAIC_IF] = mosaic_verify_if,         [MP_MOSAIC_FOR] = mosaic_verify_for,
      [MP_MOSAIC_WHILE] = mosaic_verify_while,   [MP_MOSAIC_INDEX_SWITCH] = mosaic_verify_switch,
      [MP_MOSAIC_REGION] = mosaic_verify_region, [MP_MOSAIC_TRACE] = mosaic_verify_region,
      [MP_MOSAIC_ASSERT] = mosaic_verify_assert,
  };
  return checks[code];
}

// ---- ops and blocks ----

static mp_status_t mosaic_verify_count(const mp_mosaic_op_t *op, const char *what, uint32_t count,
                                       int expected) {
  MP_MOSAIC_CHECK(op, expected < 0 || count == (uint32_t)expected, "it has %u %s, not %d", count,
                  what, expected);
  return NULL;
}

static bool mosaic_verify_is_end(mp_mosaic_opcode_t code) {
  return code == MP_MOSAIC_RETURN || code == MP_MOSAIC_SCF_YIELD || code == MP_MOSAIC_CONDITION ||
         code == MP_MOSAIC_TPU_YIELD;
}

static mp_status_t mosaic_verify_block(const mp_mosaic_module_t *module,
                                       const mp_mosaic_block_t *block);

static mp_status_t mosaic_verify_op(const mp_mosaic_module_t *module, const mp_mosaic_op_t *op) {
  static mp_mosaic_check_t (*const rooms[])(mp_mosaic_opcode_t code) = {
      mosaic_verify_flow,     mp_mosaic_check_values, mp_mosaic_check_vectors,
      mp_mosaic_check_matmul, mp_mosaic_check_memory, mp_mosaic_check_async};
  const mp_mosaic_op_info_t *info = mp_mosaic_op_info(op->code);
  MP_RETURN_IF_ERROR(mosaic_verify_count(op, "operands", op->num_operands, info->num_operands));
  MP_RETURN_IF_ERROR(mosaic_verify_count(op, "results", op->num_results, info->num_results));
  MP_RETURN_IF_ERROR(mosaic_verify_count(op, "regions", op->num_regions, info->num_regions));
  MP_RETURN_IF_ERROR(mosaic_verify_types(op));
  MP_RETURN_IF_ERROR(mosaic_verify_class(op));
  for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); ++i) {
    const mp_mosaic_check_t check = rooms[i](op->code);
    if (check != NULL) MP_RETURN_IF_ERROR(check(op));
  }
  if (op->code == MP_MOSAIC_CALL) MP_RETURN_IF_ERROR(mosaic_verify_call(module, op));
  for (uint32_t i = 0; i < op->num_regions; ++i)
    MP_RETURN_IF_ERROR(mosaic_verify_block(module, op->regions[i]));
  return NULL;
}

static mp_status_t mosaic_verify_block(const mp_mosaic_module_t *module,
                                       const mp_mosaic_block_t *block) {
  for (const mp_mosaic_op_t *op = block->first; op != NULL; op = op->next) {
    MP_MOSAIC_CHECK(op, op->next == NULL || !mosaic_verify_is_end(op->code),
                    "it ends a block, but ops follow");
    MP_RETURN_IF_ERROR(mosaic_verify_op(module, op));
  }
  return NULL;
}

// ---- functions ----

static mp_status_t mosaic_verify_signature(const mp_mosaic_func_t *func) {
  const mp_mosaic_type_t *type = func->type;
  const uint32_t num_results = type->num_elements - type->num_inputs;
  const mp_mosaic_op_t *end = func->body->last;
  bool fits = func->body->num_args == type->num_inputs;
  for (uint32_t i = 0; fits && i < type->num_inputs; ++i)
    fits = mosaic_verify_is_value_type(type->elements[i]) &&
           mp_mosaic_type_equal(func->body->args[i].type, type->elements[i]);
  if (!fits)
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "the arguments of the Mosaic function %.*s do not have its types",
                          MP_STR_SHOWN(func->name, 100));
  fits = end != NULL && end->code == MP_MOSAIC_RETURN && end->num_operands == num_results;
  for (uint32_t i = 0; fits && i < num_results; ++i)
    fits = mp_mosaic_type_equal(end->operands[i]->type, type->elements[type->num_inputs + i]);
  if (fits) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT,
                        "the Mosaic function %.*s does not return what its type says",
                        MP_STR_SHOWN(func->name, 100));
}

static mp_status_t mosaic_verify_func(const mp_mosaic_module_t *module,
                                      const mp_mosaic_func_t *func) {
  if (mp_mosaic_find_func(module, func->name) != func)
    return mp_status_make(MP_INVALID_ARGUMENT, "the Mosaic function %.*s is defined twice",
                          MP_STR_SHOWN(func->name, 100));
  MP_RETURN_IF_ERROR(mosaic_verify_signature(func));
  MP_RETURN_IF_ERROR(mp_mosaic_check_kernel(module, func));
  return mosaic_verify_block(module, func->body);
}

mp_status_t mp_mosaic_verify(const mp_mosaic_module_t *module) {
  enum { MAX_FUNCS = 4096 };  // each is looked for by its name
  int count = 0;
  for (const mp_mosaic_func_t *func = module->funcs.first; func != NULL; func = func->next)
    if (++count > MAX_FUNCS)
      return mp_status_make(MP_UNIMPLEMENTED, "a Mosaic module of more than %d functions",
                            MAX_FUNCS);
  for (const mp_mosaic_func_t *func = module->funcs.first; func != NULL; func = func->next)
    MP_RETURN_IF_ERROR(mosaic_verify_func(module, func));
  return mp_mosaic_check_calls(module);
}
