#include "sim/ir/verify/verify.h"

#include "sim/base/alloc.h"
#include "sim/ir/verify/verify_rules.h"
#include "sim/ir/verify/verify_table.h"

enum { MAX_REGION_DEPTH = 256 };

static const struct {
  mp_verify_rule_t rule;
  bool tensors_only;
} g_rules[MP_OP_COUNT] = {
#define TENSORS(rule) \
  { mp_verify_##rule, true }
#define ANY(rule) \
  { mp_verify_##rule, false }
#define ROW(name, ...) [MP_OP_##name] = VERIFY_##name,
    MP_OPS(ROW)
#undef ROW
#undef ANY
#undef TENSORS
};

// Which values may be used at the current point: those that were defined before it, in this block
// or in one around it.
typedef struct {
  // visible[id] is 0 while the value is not visible, else its place in the order of definition,
  // counted from 1.
  uint32_t *visible;
  uint32_t count;  // the last number given
  uint32_t base;   // values up to this number lie outside of the isolated region
  int depth;
} scope_t;

// ---- types ----

static mp_status_t verify_tensor_type(const mp_op_t *op, const mp_type_t *type) {
  const char *reason = NULL;
  if (type->quant != NULL) reason = "quantised types are not supported";
  if (!mp_dtype_is_storable(type->dtype)) {
    reason = "values of this element type are not supported";
  }
  if (type->rank > MP_MAX_RANK) reason = "tensors of so many dimensions are not supported";
  int64_t size = (int64_t)mp_dtype_size(type->dtype);
  for (uint32_t i = 0; reason == NULL && i < type->rank; ++i) {
    int64_t dim = type->dims[i];
    if (dim == MP_DYNAMIC) {
      reason = "dynamic shapes are not supported";
    } else if (dim < 0) {
      MP_CHECK(op, false, "a dimension is %lld", (long long)dim);
    } else if (__builtin_mul_overflow(size, dim == 0 ? 1 : dim, &size)) {
      // This holds for empty tensors too, because strides are computed from the other dimensions.
      reason = "the size of a tensor does not fit 64 bits";
    }
  }
  if (reason == NULL) return NULL;
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  if (type->rank <= MP_MAX_RANK) mp_type_print(type, &text);
  mp_status_t status = mp_op_error(op, MP_UNIMPLEMENTED, "%s: %s", reason, mp_strbuf_text(&text));
  mp_strbuf_deinit(&text);
  return status;
}

static mp_status_t verify_type(const mp_op_t *op, const mp_type_t *type, int depth) {
  switch (type->kind) {
    case MP_TYPE_TENSOR:
    case MP_TYPE_BUFFER:
      return verify_tensor_type(op, type);
    case MP_TYPE_TOKEN:
      return NULL;
    case MP_TYPE_TUPLE:
    case MP_TYPE_FUTURE:
      MP_CHECK(op, depth < MAX_REGION_DEPTH, "types are nested too deeply");
      for (uint32_t i = 0; i < type->num_elements; ++i) {
        MP_RETURN_IF_ERROR(verify_type(op, type->elements[i], depth + 1));
      }
      return NULL;
    case MP_TYPE_UNRANKED:
      return mp_op_error(op, MP_UNIMPLEMENTED, "tensors without a rank are not supported");
    case MP_TYPE_FUNCTION:
    case MP_TYPE_NONE:
      break;
  }
  return mp_op_error(op, MP_INVALID_ARGUMENT, "a value has a type that no value can have");
}

// ---- operations ----

static mp_status_t verify_counts(const mp_op_t *op) {
  const mp_op_info_t *info = mp_op_info(op->code);
  MP_CHECK(op, info->num_operands < 0 || op->num_operands == (uint32_t)info->num_operands,
           "%u operands instead of %d", op->num_operands, info->num_operands);
  MP_CHECK(op, info->num_results < 0 || op->num_results == (uint32_t)info->num_results,
           "%u results instead of %d", op->num_results, info->num_results);
  MP_CHECK(op, info->num_regions < 0 || op->num_regions == (uint32_t)info->num_regions,
           "%u regions instead of %d", op->num_regions, info->num_regions);
  return NULL;
}

// A value may be used from its definition to the end of its block, also in the regions there.
static mp_status_t verify_operands(const mp_op_t *op, const scope_t *scope) {
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_value_t *value = op->operands[i];
    MP_CHECK(op, value != NULL && scope->visible[value->id] > scope->base,
             "operand %u is not defined where it is used", i);
    MP_CHECK(op, !g_rules[op->code].tensors_only || value->type->kind == MP_TYPE_TENSOR,
             "operand %u is not a tensor", i);
  }
  return NULL;
}

// Checks the types of the results. Operands are results or arguments themselves, so that all types
// get checked.
static mp_status_t verify_results(const mp_op_t *op) {
  for (uint32_t i = 0; i < op->num_results; ++i) {
    const mp_type_t *type = op->results[i].type;
    MP_RETURN_IF_ERROR(verify_type(op, type, 0));
    MP_CHECK(op, !g_rules[op->code].tensors_only || type->kind == MP_TYPE_TENSOR,
             "result %u is not a tensor", i);
  }
  return NULL;
}

static void verify_define(scope_t *scope, const mp_value_t *value) {
  scope->visible[value->id] = ++scope->count;
}

static mp_status_t verify_block(const mp_op_t *owner, const mp_block_t *block, scope_t *scope);

static mp_status_t verify_regions(const mp_op_t *op, scope_t *scope) {
  uint32_t base = scope->base;
  // A manual computation uses nothing from outside, because values have other shapes in it.
  if (mp_op_has(op, MP_OP_TRAIT_ISOLATED)) scope->base = scope->count;
  for (uint32_t i = 0; i < op->num_regions; ++i) {
    MP_RETURN_IF_ERROR(verify_block(op, op->regions[i], scope));
  }
  scope->base = base;
  return NULL;
}

// Regions are verified before the op's own rule, which may rely on their terminators and types.
static mp_status_t verify_op(const mp_op_t *op, scope_t *scope) {
  MP_RETURN_IF_ERROR(verify_counts(op));
  MP_RETURN_IF_ERROR(verify_operands(op, scope));
  MP_RETURN_IF_ERROR(verify_results(op));
  MP_RETURN_IF_ERROR(mp_verify_attrs(op));
  MP_RETURN_IF_ERROR(verify_regions(op, scope));
  MP_RETURN_IF_ERROR(g_rules[op->code].rule(op));
  for (uint32_t i = 0; i < op->num_results; ++i) verify_define(scope, &op->results[i]);
  return NULL;
}

// ---- blocks and functions ----

static void verify_hide_block(const mp_block_t *block, scope_t *scope) {
  for (uint32_t i = 0; i < block->num_args; ++i) scope->visible[block->args[i].id] = 0;
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    for (uint32_t i = 0; i < op->num_results; ++i) scope->visible[op->results[i].id] = 0;
  }
}

// Errors about the block name `owner`: the op with the region, or the first op of a function's
// body.
static mp_status_t verify_block(const mp_op_t *owner, const mp_block_t *block, scope_t *scope) {
  const mp_op_t *end = block->last;
  MP_CHECK(owner, end != NULL && mp_op_has(end, MP_OP_TRAIT_TERMINATOR),
           "a region does not end in return");
  MP_CHECK(owner, scope->depth < MAX_REGION_DEPTH, "regions are nested too deeply");
  ++scope->depth;
  for (uint32_t i = 0; i < block->num_args; ++i) {
    MP_RETURN_IF_ERROR(verify_type(owner, block->args[i].type, 0));
    verify_define(scope, &block->args[i]);
  }
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    MP_CHECK(op, op == end || !mp_op_has(op, MP_OP_TRAIT_TERMINATOR),
             "return is not the last operation");
    MP_RETURN_IF_ERROR(verify_op(op, scope));
  }
  verify_hide_block(block, scope);
  --scope->depth;
  return NULL;
}

// The body's arguments are the function's parameters; what its terminator returns must have the
// types in `result_types`.
static mp_status_t verify_func(const mp_func_t *func, scope_t *scope) {
  const mp_block_t *body = func->body;
  if (body == NULL || body->last == NULL) {
    return mp_status_make(MP_INVALID_ARGUMENT, "function '%.*s' has no body",
                          MP_STR_ARG(func->name));
  }
  const mp_op_t *end = body->last;
  MP_RETURN_IF_ERROR(verify_block(body->first, body, scope));
  MP_CHECK(end, end->num_operands == func->num_results, "function '%.*s' has %u results, not %u",
           MP_STR_ARG(func->name), func->num_results, end->num_operands);
  for (uint32_t i = 0; i < func->num_results; ++i) {
    MP_RETURN_IF_ERROR(mp_verify_same_type(end, mp_operand_type(end, i), func->result_types[i],
                                           "a returned value and the function's result"));
  }
  return mp_status_annotate(mp_verify_func_attrs(func), "function '%.*s'", MP_STR_ARG(func->name));
}

static mp_status_t verify_funcs(mp_module_t *module, scope_t *scope) {
  for (uint32_t i = 0; i < module->meshes.count; ++i) {
    MP_RETURN_IF_ERROR(mp_verify_mesh(NULL, module->meshes.items[i]));
  }
  for (const mp_func_t *func = module->funcs.first; func != NULL; func = func->next) {
    MP_RETURN_IF_ERROR(verify_func(func, scope));
  }
  return mp_verify_calls(module);
}

mp_status_t mp_module_verify(mp_module_t *module) {
  if (module->main == NULL) {
    return mp_status_make(MP_INVALID_ARGUMENT, "the program has no function 'main'");
  }
  scope_t scope = {0};
  scope.visible = mp_calloc(mp_module_number_values(module) + (size_t)1, sizeof(*scope.visible));
  MP_RETURN_IF_NULL(scope.visible);
  mp_status_t status = verify_funcs(module, &scope);
  mp_free(scope.visible);
  return status;
}
