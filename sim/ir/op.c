// Ops: the op list as a table, making ops, their attributes, errors about them.
#include "sim/base/assert.h"
#include "sim/ir/module.h"

#include <stdarg.h>
#include <string.h>

// These put the traits of a row, one or more, into one word. A row with a name that is no trait, or
// without any trait, does not compile.
#define TRAITS_1(a)                              MP_OP_TRAIT_##a
#define TRAITS_2(a, ...)                         MP_OP_TRAIT_##a | TRAITS_1(__VA_ARGS__)
#define TRAITS_3(a, ...)                         MP_OP_TRAIT_##a | TRAITS_2(__VA_ARGS__)
#define TRAITS_4(a, ...)                         MP_OP_TRAIT_##a | TRAITS_3(__VA_ARGS__)
#define TRAITS_PICK(t1, t2, t3, t4, traits, ...) traits
#define TRAITS(...)                                                      \
  TRAITS_PICK(__VA_ARGS__, TRAITS_4, TRAITS_3, TRAITS_2, TRAITS_1, none) \
  (__VA_ARGS__)

static const mp_op_info_t infos[MP_OP_COUNT] = {
#define ROW(name, text, operands, results, regions, role, effect, cost, ...) \
  [MP_OP_##name] = {text,                                                    \
                    operands,                                                \
                    results,                                                 \
                    regions,                                                 \
                    MP_OP_ROLE_##role,                                       \
                    MP_OP_EFFECT_##effect,                                   \
                    MP_OP_COST_##cost,                                       \
                    TRAITS(__VA_ARGS__)},
    MP_OPS(ROW)
#undef ROW
};

static const uint8_t name_sizes[MP_OP_COUNT] = {
#define ROW(name, text, ...) [MP_OP_##name] = sizeof(text) - 1,
    MP_OPS(ROW)
#undef ROW
};

const mp_op_info_t *mp_op_info(mp_opcode_t code) {
  MP_ASSERT((unsigned)code < MP_OP_COUNT);
  return &infos[code];
}

bool mp_opcode_has(mp_opcode_t code, uint32_t trait) {
  return (infos[code].traits & trait) != 0;
}

bool mp_op_has(const mp_op_t *op, uint32_t trait) {
  return mp_opcode_has(op->code, trait);
}

bool mp_op_has_effect(const mp_op_t *op) {
  switch (infos[op->code].effect) {
    case MP_OP_EFFECT_STAYS:
      return true;
    case MP_OP_EFFECT_STATED:
      return mp_op_bool(op, MP_ATTR_HAS_SIDE_EFFECT, false);
    default:
      return false;
  }
}

const void *mp_op_splat(const mp_op_t *op) {
  const mp_attr_t *value = mp_op_attr(op, MP_ATTR_VALUE);
  const size_t size = mp_dtype_size(op->results[0].type->dtype);
  if (value == NULL || value->kind != MP_KIND_DENSE || value->u.dense.size < size) return NULL;
  return value->u.dense.splat || value->u.dense.size == size ? value->u.dense.data : NULL;
}

const void *mp_op_stored(const mp_op_t *op) {
  const mp_attr_t *value = mp_op_attr(op, MP_ATTR_VALUE);
  int64_t bytes = 0;
  if (value == NULL || value->kind != MP_KIND_DENSE) return NULL;
  if (!mp_type_num_bytes(op->results[0].type, &bytes)) return NULL;
  return (int64_t)value->u.dense.size == bytes ? value->u.dense.data : NULL;
}

mp_str_t mp_op_callee(const mp_op_t *op) {
  if (op->code == MP_OP_CALL) return mp_op_str(op, MP_ATTR_CALLEE);
  return op->code == MP_OP_COMPOSITE ? mp_op_str(op, MP_ATTR_DECOMPOSITION) : MP_STR("");
}

int64_t mp_op_aliased_operand(const mp_op_t *op, uint32_t result) {
  const mp_attr_t *aliases = mp_op_attr(op, MP_ATTR_OUTPUT_OPERAND_ALIASES);
  for (size_t i = 0; aliases != NULL && i < aliases->u.array.count; ++i) {
    const mp_attr_t *alias = aliases->u.array.items[i];
    const mp_index_list_t output = alias->u.alias.output_tuple_indices;
    if ((output.count == 0 ? 0 : output.values[0]) == (int64_t)result) {
      return alias->u.alias.operand_index;
    }
  }
  return -1;
}

bool mp_op_is_kernel(const mp_op_t *op) {
  return op->code == MP_OP_CUSTOM_CALL && op->num_regions == 1;
}

bool mp_op_is_placement(const mp_op_t *op) {
  return op->code == MP_OP_CUSTOM_CALL && op->num_operands == 1 && op->num_results == 1 &&
         mp_str_is(mp_op_str(op, MP_ATTR_CALL_TARGET_NAME), MP_PLACEMENT_TARGET);
}

bool mp_is_host_memory(mp_str_t kind) {
  return mp_str_is(kind, "pinned_host") || mp_str_is(kind, "unpinned_host");
}

bool mp_op_places_on_host(const mp_op_t *op) {
  const mp_attr_t *kind = mp_attr_dict_get_text(mp_op_attr(op, MP_ATTR_MHLO_FRONTEND_ATTRIBUTES),
                                                MP_PLACEMENT_ATTRIBUTE);
  return kind != NULL && kind->kind == MP_KIND_STRING && mp_is_host_memory(kind->u.str);
}

bool mp_op_crosses(const mp_op_t *op) {
  return op->code == MP_OP_CUSTOM_CALL && op->num_operands == 1 && op->num_results == 1 &&
         op->operands[0]->is_on_host != op->results[0].is_on_host;
}

bool mp_op_is_of_host(const mp_op_t *op) {
  return op->num_results == 1 && op->num_regions == 0 && op->results[0].is_on_host &&
         !mp_op_crosses(op);
}

bool mp_op_is_sdy(const mp_op_t *op) {
  return strncmp(infos[op->code].name, "sdy.", 4) == 0;
}

// Only the prefix mhlo is an alias here. Ops that mhlo called otherwise than StableHLO does are the
// text reader's affair.
bool mp_opcode_from_name(mp_str_t name, mp_opcode_t *out_code) {
  static const mp_str_t mhlo = {"mhlo.", 5}, stablehlo = {"stablehlo.", 10};
  size_t skip_name = 0, skip_info = 0;
  if (mp_str_starts_with(name, mhlo.data)) skip_name = mhlo.size, skip_info = stablehlo.size;
  size_t rest = name.size - skip_name;
  for (int i = 0; i < MP_OP_COUNT; ++i) {
    if (name_sizes[i] != rest + skip_info) continue;
    if (skip_info > 0 && memcmp(infos[i].name, stablehlo.data, skip_info) != 0) continue;
    if (memcmp(infos[i].name + skip_info, name.data + skip_name, rest) != 0) continue;
    *out_code = (mp_opcode_t)i;
    return true;
  }
  return false;
}

static size_t op_round_up(size_t size) {
  return (size + 15) & ~(size_t)15;
}

// One allocation holds the op and its arrays.
mp_status_t mp_op_create(mp_module_t *module, const mp_op_spec_t *spec, mp_op_t **out_op) {
  MP_ASSERT((unsigned)spec->code < MP_OP_COUNT);
  for (uint32_t i = 0; i < spec->num_operands; ++i) MP_ASSERT(spec->operands[i] != NULL);
  for (uint32_t i = 0; i < spec->num_results; ++i) MP_ASSERT(spec->result_types[i] != NULL);
  size_t operands_at = op_round_up(sizeof(mp_op_t));
  size_t results_at = op_round_up(operands_at + spec->num_operands * sizeof(mp_value_t *));
  size_t regions_at = op_round_up(results_at + spec->num_results * sizeof(mp_value_t));
  size_t attrs_at = op_round_up(regions_at + spec->num_regions * sizeof(mp_block_t *));
  char *bytes = mp_arena_alloc(module->arena, attrs_at + spec->num_attrs * sizeof(mp_named_attr_t));
  MP_RETURN_IF_NULL(bytes);

  mp_op_t *op = (mp_op_t *)bytes;
  op->code = spec->code;
  op->loc = spec->loc;
  op->num_operands = spec->num_operands;
  op->operands = (mp_value_t **)(bytes + operands_at);
  for (uint32_t i = 0; i < spec->num_operands; ++i) op->operands[i] = spec->operands[i];
  op->num_results = spec->num_results;
  op->results = (mp_value_t *)(bytes + results_at);
  for (uint32_t i = 0; i < spec->num_results; ++i)
    op->results[i] =
        (mp_value_t){.type = spec->result_types[i], .op = op, .index = i & MP_VALUE_INDEX_MOST};
  op->num_regions = spec->num_regions;
  op->regions = (mp_block_t **)(bytes + regions_at);
  for (uint32_t i = 0; i < spec->num_regions; ++i) {
    MP_ASSERT(spec->regions[i] != NULL);
    MP_ASSERT(spec->regions[i]->parent_func == NULL);
    op->regions[i] = spec->regions[i];
    op->regions[i]->parent_op = op;
  }
  op->num_attrs = spec->num_attrs;
  op->attrs = (mp_named_attr_t *)(bytes + attrs_at);
  for (uint32_t i = 0; i < spec->num_attrs; ++i) op->attrs[i] = spec->attrs[i];
  *out_op = op;
  return NULL;
}

mp_status_t mp_op_set_attr(mp_module_t *module, mp_op_t *op, mp_attr_name_t name,
                           const mp_attr_t *value) {
  MP_ASSERT(value != NULL && name != MP_ATTR_OTHER);
  for (uint32_t i = 0; i < op->num_attrs; ++i) {
    if (op->attrs[i].name != name) continue;
    op->attrs[i].value = value;
    return NULL;
  }
  mp_named_attr_t *grown = MP_ARENA_ARRAY(module->arena, mp_named_attr_t, op->num_attrs + 1);
  MP_RETURN_IF_NULL(grown);
  for (uint32_t i = 0; i < op->num_attrs; ++i) grown[i] = op->attrs[i];
  grown[op->num_attrs] = (mp_named_attr_t){name, mp_str(mp_attr_name_text(name)), value};
  op->attrs = grown;
  ++op->num_attrs;
  return NULL;
}

const mp_attr_t *mp_op_attr(const mp_op_t *op, mp_attr_name_t name) {
  for (uint32_t i = 0; i < op->num_attrs; ++i)
    if (op->attrs[i].name == name) return op->attrs[i].value;
  return NULL;
}

// The attribute if it is there and of this kind. The readers and the verifier ask before kinds have
// been verified, so an attribute of a wrong kind counts as absent.
static const mp_attr_t *op_attr_of_kind(const mp_op_t *op, mp_attr_name_t name,
                                        mp_attr_kind_t kind) {
  const mp_attr_t *attr = mp_op_attr(op, name);
  return attr != NULL && attr->kind == kind ? attr : NULL;
}

int64_t mp_op_int(const mp_op_t *op, mp_attr_name_t name, int64_t when_absent) {
  const mp_attr_t *attr = op_attr_of_kind(op, name, MP_KIND_INT);
  return attr != NULL ? attr->u.i64 : when_absent;
}

bool mp_op_bool(const mp_op_t *op, mp_attr_name_t name, bool when_absent) {
  const mp_attr_t *attr = mp_op_attr(op, name);
  if (attr == NULL) return when_absent;
  if (attr->kind == MP_KIND_UNIT) return true;
  return attr->kind == MP_KIND_BOOL ? attr->u.boolean : when_absent;
}

uint32_t mp_op_enum(const mp_op_t *op, mp_attr_name_t name, uint32_t when_absent) {
  const mp_attr_t *attr = op_attr_of_kind(op, name, MP_KIND_ENUM);
  return attr != NULL ? attr->u.enumeration.value : when_absent;
}

mp_str_t mp_op_str(const mp_op_t *op, mp_attr_name_t name) {
  const mp_attr_t *attr = op_attr_of_kind(op, name, MP_KIND_STRING);
  return attr != NULL ? attr->u.str : MP_STR("");
}

mp_index_list_t mp_op_ints(const mp_op_t *op, mp_attr_name_t name) {
  const mp_attr_t *attr = mp_op_attr(op, name);
  if (attr == NULL || (attr->kind != MP_KIND_INTS && attr->kind != MP_KIND_BOOLS))
    return (mp_index_list_t){0};
  return (mp_index_list_t){(uint32_t)attr->u.ints.count, attr->u.ints.values};
}

mp_status_t mp_op_error(const mp_op_t *op, mp_status_code_t code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  mp_status_t status =
      mp_loc_verror(code, mp_op_info(op->code)->name, op->loc, MP_STR(""), format, args);
  va_end(args);
  return status;
}

mp_status_t mp_op_error_at(const mp_op_t *op, mp_status_t status) {
  if (status == NULL) return NULL;
  mp_status_t located = mp_op_error(op, mp_status_code(status), "%s", mp_status_message(status));
  mp_status_release(status);
  return located;
}
