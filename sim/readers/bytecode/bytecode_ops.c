// Which attributes each operation stores, and how they become the IR's.
//
// A file stores an operation's own attributes without their names, in ascending order of the
// names. Versions before 5 keep all attributes in one dictionary instead.
#include <stdlib.h>

#include "sim/ir/schema.h"
#include "sim/readers/bytecode/bytecode_reader.h"
#include "sim/readers/bytecode/vhlo_table.h"

static const mp_bc_op_row_t g_vhlo_ops[] = {
#define ROW(spelling, ...) {spelling, {__VA_ARGS__}},
    MP_VHLO_OPS(ROW)
#undef ROW
};

#define OPTIONAL(name) (MP_ATTR_##name | MP_BC_OPTIONAL)

// Sorted by spelling. sdy.mesh is not an operation of the IR: it fills in the module's meshes.
static const mp_bc_op_row_t g_sdy_ops[] = {
    {"all_gather", {MP_OP_SDY_ALL_GATHER, MP_ATTR_GATHERING_AXES, MP_ATTR_OUT_SHARDING}},
    {"all_reduce", {MP_OP_SDY_ALL_REDUCE, MP_ATTR_OUT_SHARDING, MP_ATTR_REDUCTION_AXES}},
    {"all_slice", {MP_OP_SDY_ALL_SLICE, MP_ATTR_OUT_SHARDING, MP_ATTR_SLICING_AXES}},
    {"all_to_all", {MP_OP_SDY_ALL_TO_ALL, MP_ATTR_OUT_SHARDING, MP_ATTR_PARAMS}},
    {"collective_permute", {MP_OP_SDY_COLLECTIVE_PERMUTE, MP_ATTR_OUT_SHARDING}},
    {"constant", {MP_OP_SDY_CONSTANT, MP_ATTR_VALUE}},
    {"data_flow_edge", {MP_OP_SDY_DATA_FLOW_EDGE, OPTIONAL(SHARDING)}},
    {"manual_computation",
     {MP_OP_SDY_MANUAL_COMPUTATION, MP_ATTR_IN_SHARDINGS, MP_ATTR_MANUAL_AXES,
      MP_ATTR_OUT_SHARDINGS}},
    {"named_computation",
     {MP_OP_SDY_NAMED_COMPUTATION, OPTIONAL(IN_SHARDINGS), MP_ATTR_NAME, OPTIONAL(OUT_SHARDINGS)}},
    {"propagation_barrier", {MP_OP_SDY_PROPAGATION_BARRIER, MP_ATTR_ALLOWED_DIRECTION}},
    {"reduce_scatter",
     {MP_OP_SDY_REDUCE_SCATTER, MP_ATTR_OUT_SHARDING, MP_ATTR_REDUCE_SCATTER_AXES}},
    {"replicated_to_unreduced",
     {MP_OP_SDY_REPLICATED_TO_UNREDUCED, MP_ATTR_AXES, MP_ATTR_OUT_SHARDING}},
    {"reshard", {MP_OP_SDY_RESHARD, MP_ATTR_SHARDING}},
    {"return", {MP_OP_RETURN}},
    {"sharded_to_unreduced", {MP_OP_SDY_SHARDED_TO_UNREDUCED, MP_ATTR_AXES, MP_ATTR_OUT_SHARDING}},
    {"sharding_constraint", {MP_OP_SDY_SHARDING_CONSTRAINT, MP_ATTR_SHARDING}},
    {"sharding_group", {MP_OP_SDY_SHARDING_GROUP, MP_ATTR_GROUP_ID}},
};

static int bytecode_ops_compare_row(const void *key, const void *row) {
  return mp_str_compare(*(const mp_str_t *)key, mp_str(((const mp_bc_op_row_t *)row)->spelling));
}

const mp_bc_op_row_t *mp_bc_op_find(mp_bc_dialect_t dialect, mp_str_t spelling) {
  if (dialect == MP_BC_VHLO) {
    return bsearch(&spelling, g_vhlo_ops, sizeof(g_vhlo_ops) / sizeof(g_vhlo_ops[0]),
                   sizeof(g_vhlo_ops[0]), bytecode_ops_compare_row);
  }
  if (dialect == MP_BC_SDY) {
    return bsearch(&spelling, g_sdy_ops, sizeof(g_sdy_ops) / sizeof(g_sdy_ops[0]),
                   sizeof(g_sdy_ops[0]), bytecode_ops_compare_row);
  }
  return NULL;
}

// Reads one property: a reference to an attribute. That of an optional property has a flag that
// says whether the attribute is there; if not, `*out_attr` is NULL.
static mp_status_t bytecode_ops_read_property(mp_bc_reader_t *r, mp_bc_cursor_t *c, bool optional,
                                              bool plain, const mp_attr_t **out_attr) {
  mp_bc_cursor_t before = *c;
  uint64_t index = 0;
  bool present = true;
  if (optional) {
    MP_RETURN_IF_ERROR(mp_bc_flagged(c, &index, &present));
  } else {
    MP_RETURN_IF_ERROR(mp_bc_varint(c, &index));
  }
  *out_attr = NULL;
  if (!present) return NULL;
  if (plain) return mp_bc_plain_attr_at(r, &before, index, out_attr);
  return mp_bc_attr_at(r, &before, index, out_attr);
}

mp_status_t mp_bc_op_fields(mp_bc_reader_t *r, const char *const *names, uint32_t num_names,
                            uint32_t optional, const mp_bc_op_attrs_t *stored,
                            const mp_attr_t **out_fields) {
  mp_bc_cursor_t c = stored->properties;
  if (c.at == c.end) {
    for (uint32_t i = 0; i < num_names; ++i) {
      out_fields[i] = mp_attr_dict_get_text(stored->dict, names[i]);
    }
    return NULL;
  }
  for (uint32_t i = 0; i < num_names; ++i) {
    MP_RETURN_IF_ERROR(
        bytecode_ops_read_property(r, &c, (optional >> i & 1) != 0, false, &out_fields[i]));
  }
  return mp_bc_finish(&c, "an operation's properties");
}

static bool bytecode_ops_row_has(const mp_bc_op_row_t *row, mp_attr_name_t name) {
  for (const uint16_t *field = row->fields + 1; *field != 0; ++field) {
    if ((*field & ~MP_BC_OPTIONAL) == (int)name) return true;
  }
  return false;
}

// Whether `attr` is a placeholder, because VHLO writes every attribute, even one that the operation
// does not have: an attribute of type none (a dot_general without algorithm has seven of them) or
// an empty list.
static bool bytecode_ops_is_absent(const mp_bc_op_row_t *row, mp_attr_name_t name,
                                   const mp_attr_t *attr) {
  const mp_schema_attr_t *schema = mp_schema_find((mp_opcode_t)row->fields[0], name);
  if (schema == NULL || schema->when_absent != MP_DEFAULT_ABSENT) return false;
  return (attr->kind == MP_KIND_TYPE && attr->u.type->kind == MP_TYPE_NONE) ||
         (attr->kind == MP_KIND_INTS && attr->u.ints.count == 0) ||
         (attr->kind == MP_KIND_ARRAY && attr->u.array.count == 0);
}

static mp_status_t bytecode_ops_add_properties(mp_bc_reader_t *r, const mp_bc_op_row_t *row,
                                               const mp_bc_op_attrs_t *stored,
                                               mp_named_attr_t *attrs, uint32_t *count) {
  mp_bc_cursor_t c = stored->properties;
  if (c.at == c.end) return NULL;
  for (const uint16_t *field = row->fields + 1; *field != 0; ++field) {
    mp_attr_name_t name = (mp_attr_name_t)(*field & ~MP_BC_OPTIONAL);
    const mp_attr_t *value = NULL;
    // A constant's value stays in its dense form.
    MP_RETURN_IF_ERROR(bytecode_ops_read_property(r, &c, (*field & MP_BC_OPTIONAL) != 0,
                                                  name != MP_ATTR_VALUE, &value));
    if (value == NULL || bytecode_ops_is_absent(row, name, value)) continue;
    attrs[(*count)++] = (mp_named_attr_t){name, mp_str(mp_attr_name_text(name)), value};
  }
  return mp_bc_finish(&c, "an operation's properties");
}

static mp_status_t bytecode_ops_add_dictionary(mp_bc_reader_t *r, const mp_bc_op_row_t *row,
                                               const mp_bc_op_attrs_t *stored,
                                               mp_named_attr_t *attrs, uint32_t *count) {
  if (stored->dict == NULL) return NULL;
  for (size_t i = 0; i < stored->dict->u.dict.count; ++i) {
    mp_named_attr_t attr = stored->dict->u.dict.items[i];
    if (attr.name != MP_ATTR_OTHER && bytecode_ops_row_has(row, attr.name)) {
      if (attr.name != MP_ATTR_VALUE) {
        MP_RETURN_IF_ERROR(mp_bc_plain_attr(r, &r->whole, attr.value, &attr.value));
      }
      if (bytecode_ops_is_absent(row, attr.name, attr.value)) continue;
    }
    attrs[(*count)++] = attr;
  }
  return NULL;
}

mp_status_t mp_bc_op_attrs(mp_bc_reader_t *r, const mp_bc_op_row_t *row,
                           const mp_bc_op_attrs_t *stored, mp_named_attr_t **out_attrs,
                           uint32_t *out_count) {
  size_t discardable = stored->dict == NULL ? 0 : stored->dict->u.dict.count;
  mp_named_attr_t *attrs =
      MP_ARENA_ARRAY(r->scratch, mp_named_attr_t, MP_BC_MAX_OP_ATTRS + discardable);
  MP_RETURN_IF_NULL(attrs);
  uint32_t count = 0;
  MP_RETURN_IF_ERROR(bytecode_ops_add_properties(r, row, stored, attrs, &count));
  MP_RETURN_IF_ERROR(bytecode_ops_add_dictionary(r, row, stored, attrs, &count));
  // Older spellings of an operation lack attributes that newer ones have.
  return mp_schema_complete(r->arena, (mp_opcode_t)row->fields[0], attrs, count, out_attrs,
                            out_count);
}
