// Operands, attributes and operations for the builders.
#include "sim/base/assert.h"
#include "sim/ir/schema.h"
#include "sim/readers/hlo/hlo_build.h"

// ---- operands ----

mp_hlo_leaves_t mp_hlo_operand(const mp_hlo_build_t *b, const mp_hlo_inst_t *inst, uint32_t i) {
  MP_ASSERT(i < inst->operand_ids.count);
  return b->values[inst->operands[i]->index];
}

mp_status_t mp_hlo_array(const mp_hlo_build_t *b, const mp_hlo_inst_t *inst, uint32_t i,
                         mp_value_t **out_value) {
  const mp_hlo_leaves_t leaves = mp_hlo_operand(b, inst, i);
  if (inst->operands[i]->shape->type == NULL || leaves.items[0]->type->kind != MP_TYPE_TENSOR) {
    return mp_hlo_error(inst, MP_INVALID_ARGUMENT, "operand %u ('%.*s') is not an array", i,
                        MP_STR_ARG(inst->operands[i]->name));
  }
  *out_value = leaves.items[0];
  return NULL;
}

mp_status_t mp_hlo_one_dimension(const mp_hlo_inst_t *inst, int64_t *out_dim) {
  if (inst->dimensions.count != 1) {
    return mp_hlo_error(inst, MP_INVALID_ARGUMENT, "dimensions: %u of them instead of one",
                        inst->dimensions.count);
  }
  *out_dim = inst->dimensions.items[0];
  return NULL;
}

mp_status_t mp_hlo_new_leaves(mp_hlo_t *h, uint32_t count, mp_hlo_leaves_t *out) {
  mp_value_t **items = MP_ARENA_ARRAY(h->source.arena, mp_value_t *, count);
  MP_RETURN_IF_NULL(items);
  *out = (mp_hlo_leaves_t){count, items};
  return NULL;
}

mp_status_t mp_hlo_gather_operands(const mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                   uint32_t first, uint32_t count, mp_hlo_leaves_t *out) {
  uint64_t total = 0;
  if (count == 1) {
    *out = mp_hlo_operand(b, inst, first);
    return NULL;
  }
  for (uint32_t i = 0; i < count; ++i) total += mp_hlo_operand(b, inst, first + i).count;
  if (total > UINT32_MAX) return mp_status_out_of_memory();
  mp_hlo_leaves_t all = {0};
  MP_RETURN_IF_ERROR(mp_hlo_new_leaves(b->h, (uint32_t)total, &all));
  uint32_t at = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const mp_hlo_leaves_t part = mp_hlo_operand(b, inst, first + i);
    for (uint32_t k = 0; k < part.count; ++k) all.items[at++] = part.items[k];
  }
  MP_ASSERT(at == total);
  *out = all;
  return NULL;
}

// ---- attributes ----

mp_hlo_attrs_t mp_hlo_attrs(const mp_hlo_build_t *b) {
  return (mp_hlo_attrs_t){.arena = b->h->module->arena};
}

void mp_hlo_put(mp_hlo_attrs_t *attrs, mp_attr_name_t name, const mp_attr_t *value) {
  MP_ASSERT(attrs->count < sizeof(attrs->items) / sizeof(attrs->items[0]));
  if (value == NULL) attrs->failed = true;
  if (attrs->failed) return;
  attrs->items[attrs->count++] = (mp_named_attr_t){name, mp_str(mp_attr_name_text(name)), value};
}

// Adds the result of an attribute maker, whose only error is a lack of memory.
static void hlo_emit_take(mp_hlo_attrs_t *attrs, mp_attr_name_t name, mp_status_t status,
                          const mp_attr_t *value) {
  mp_hlo_put(attrs, name, status == NULL ? value : NULL);
  mp_status_ignore(status);
}

void mp_hlo_put_int(mp_hlo_attrs_t *attrs, mp_attr_name_t name, mp_dtype_t dtype, int64_t value) {
  const mp_attr_t *attr = NULL;
  mp_status_t status = mp_attr_make_int(attrs->arena, dtype, value, &attr);
  hlo_emit_take(attrs, name, status, attr);
}

void mp_hlo_put_bool(mp_hlo_attrs_t *attrs, mp_attr_name_t name, bool value) {
  const mp_attr_t *attr = NULL;
  mp_status_t status = mp_attr_make_bool(attrs->arena, value, &attr);
  hlo_emit_take(attrs, name, status, attr);
}

void mp_hlo_put_ints(mp_hlo_attrs_t *attrs, mp_attr_name_t name, const int64_t *values,
                     size_t count) {
  const mp_attr_t *attr = NULL;
  mp_status_t status = mp_attr_make_ints(attrs->arena, values, count, &attr);
  hlo_emit_take(attrs, name, status, attr);
}

void mp_hlo_put_list(mp_hlo_attrs_t *attrs, mp_attr_name_t name, const mp_hlo_ints_t *list) {
  mp_hlo_put_ints(attrs, name, list->items, list->count);
}

void mp_hlo_put_pairs(mp_hlo_attrs_t *attrs, mp_attr_name_t name, const int64_t *values,
                      size_t count) {
  const mp_attr_t *attr = NULL;
  mp_status_t status = mp_attr_make_table(attrs->arena, values, (int64_t)count, 2, &attr);
  hlo_emit_take(attrs, name, status, attr);
}

void mp_hlo_put_enum(mp_hlo_attrs_t *attrs, mp_attr_name_t name, mp_enum_kind_t kind,
                     uint32_t value) {
  const mp_attr_t *attr = NULL;
  mp_status_t status = mp_attr_make_enum(attrs->arena, kind, value, &attr);
  hlo_emit_take(attrs, name, status, attr);
}

void mp_hlo_put_string(mp_hlo_attrs_t *attrs, mp_attr_name_t name, mp_str_t text) {
  const mp_attr_t *attr = NULL;
  mp_status_t status = mp_attr_make_string(attrs->arena, text, &attr);
  hlo_emit_take(attrs, name, status, attr);
}

mp_attr_t *mp_hlo_new_attr(mp_hlo_attrs_t *attrs, mp_attr_kind_t kind) {
  mp_attr_t *attr = MP_ARENA_NEW(attrs->arena, mp_attr_t);
  if (attr == NULL) attrs->failed = true;
  if (attr != NULL) attr->kind = kind;
  return attr;
}

void mp_hlo_put_array(mp_hlo_attrs_t *attrs, mp_attr_name_t name, const mp_attr_t *const *items,
                      size_t count) {
  mp_attr_t *attr = mp_hlo_new_attr(attrs, MP_KIND_ARRAY);
  const mp_attr_t **copy = MP_ARENA_ARRAY(attrs->arena, const mp_attr_t *, count);
  if (attr == NULL || copy == NULL) {
    attrs->failed = true;
    return;
  }
  for (size_t i = 0; i < count; ++i) copy[i] = items[i];
  attr->u.array.items = copy;
  attr->u.array.count = count;
  mp_hlo_put(attrs, name, attr);
}

// ---- operations ----

mp_status_t mp_hlo_emit(mp_hlo_build_t *b, const mp_hlo_inst_t *inst, const mp_hlo_op_t *op,
                        mp_hlo_leaves_t *out) {
  mp_named_attr_t *attrs = NULL;
  uint32_t num_attrs = 0;
  if (op->attrs != NULL && op->attrs->failed) return mp_status_out_of_memory();
  MP_RETURN_IF_ERROR(
      mp_schema_complete(b->h->module->arena, op->code, op->attrs == NULL ? NULL : op->attrs->items,
                         op->attrs == NULL ? 0 : op->attrs->count, &attrs, &num_attrs));
  const mp_op_spec_t spec = {.code = op->code,
                             .loc = inst->loc,
                             .num_operands = op->operands.count,
                             .operands = op->operands.items,
                             .num_results = op->num_results,
                             .result_types = op->types,
                             .num_regions = op->num_regions,
                             .regions = op->regions,
                             .num_attrs = num_attrs,
                             .attrs = attrs};
  mp_op_t *made = NULL;
  MP_RETURN_IF_ERROR(mp_op_create(b->h->module, &spec, &made));
  mp_block_append(b->block, made);
  MP_RETURN_IF_ERROR(mp_hlo_new_leaves(b->h, op->num_results, out));
  for (uint32_t i = 0; i < op->num_results; ++i) out->items[i] = &made->results[i];
  return NULL;
}

mp_status_t mp_hlo_emit_one(mp_hlo_build_t *b, const mp_hlo_inst_t *inst, mp_opcode_t code,
                            mp_value_t *const *operands, uint32_t num_operands,
                            const mp_type_t *type, const mp_hlo_attrs_t *attrs,
                            mp_value_t **out_value) {
  mp_hlo_leaves_t values = {0}, results = {0};
  MP_RETURN_IF_ERROR(mp_hlo_new_leaves(b->h, num_operands, &values));
  for (uint32_t i = 0; i < num_operands; ++i) values.items[i] = operands[i];
  const mp_hlo_op_t op = {
      .code = code, .operands = values, .num_results = 1, .types = &type, .attrs = attrs};
  MP_RETURN_IF_ERROR(mp_hlo_emit(b, inst, &op, &results));
  MP_ASSERT(results.count == 1);
  *out_value = results.items[0];
  return NULL;
}

mp_status_t mp_hlo_emit_whole(mp_hlo_build_t *b, const mp_hlo_inst_t *inst, mp_opcode_t code,
                              mp_hlo_leaves_t operands, mp_block_t *const *regions,
                              uint32_t num_regions, const mp_hlo_attrs_t *attrs,
                              mp_hlo_leaves_t *out) {
  const mp_hlo_op_t op = {.code = code,
                          .operands = operands,
                          .num_results = inst->shape->num_leaves,
                          .types = inst->shape->types,
                          .num_regions = num_regions,
                          .regions = regions,
                          .attrs = attrs};
  return mp_hlo_emit(b, inst, &op, out);
}

mp_status_t mp_hlo_emit_constant(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                 const mp_type_t *type, const void *data, size_t size, bool splat,
                                 mp_value_t **out_value) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  const mp_attr_t *value = NULL;
  MP_RETURN_IF_ERROR(mp_attr_make_dense(attrs.arena, type, data, size, splat, &value));
  mp_hlo_put(&attrs, MP_ATTR_VALUE, value);
  return mp_hlo_emit_one(b, inst, MP_OP_CONSTANT, NULL, 0, type, &attrs, out_value);
}

mp_status_t mp_hlo_tensor(mp_hlo_build_t *b, mp_dtype_t dtype, const int64_t *dims, uint32_t rank,
                          const mp_type_t **out_type) {
  return mp_type_tensor(b->h->module->arena, dtype, dims, rank, out_type);
}
