// Presence and kinds of attributes: of the op's own by the schema, and of the discardable ones that
// minipod reads.
#include "sim/ir/schema.h"
#include "sim/ir/verify/verify_rules.h"

#define KIND(name) (1u << MP_KIND_##name)

// The discardable attributes that minipod reads, and the kind that each must have.
static const struct {
  mp_attr_name_t name;
  uint32_t kinds;
} g_discardable[] = {
    {MP_ATTR_MHLO_SHARDING, KIND(STRING)},
    {MP_ATTR_MHLO_FRONTEND_ATTRIBUTES, KIND(DICT)},
    {MP_ATTR_MHLO_ATTRIBUTES, KIND(DICT)},
    {MP_ATTR_MHLO_BACKEND_CONFIG, KIND(DICT) | KIND(STRING)},
    {MP_ATTR_MHLO_MEMORY_KIND, KIND(STRING)},
    {MP_ATTR_MHLO_LAYOUT_MODE, KIND(STRING)},
    {MP_ATTR_SDY_SHARDING, KIND(SHARDING) | KIND(SHARDINGS)},
    {MP_ATTR_SDY_SHARDING_RULE, KIND(SHARDING_RULE)},
    {MP_ATTR_TF_ALIASING_OUTPUT, KIND(INT)},
    {MP_ATTR_JAX_BUFFER_DONOR, KIND(BOOL) | KIND(UNIT)},
    {MP_ATTR_JAX_RESULT_INFO, KIND(STRING)},
    {MP_ATTR_JAX_TOKEN, KIND(BOOL) | KIND(UNIT)},
    {MP_ATTR_ERROR_MESSAGE, KIND(STRING)},
};

// Discardable attributes that minipod does not read may have any value.
static bool verify_attr_discardable_fits(const mp_named_attr_t *attr) {
  for (size_t i = 0; i < sizeof(g_discardable) / sizeof(g_discardable[0]); ++i) {
    if (g_discardable[i].name == attr->name) {
      return (g_discardable[i].kinds >> attr->value->kind & 1) != 0;
    }
  }
  return true;
}

// Checks the entries of an array: values of an enumeration, or symbols. All other entries are left
// to the op's rule.
static mp_status_t verify_attr_items(const mp_op_t *op, const mp_schema_attr_t *row,
                                     const mp_attr_t *value) {
  const char *name = mp_attr_name_text(row->name);
  for (size_t i = 0; i < value->u.array.count; ++i) {
    const mp_attr_t *item = value->u.array.items[i];
    if (row->is_symbol) {
      MP_CHECK(op, item->kind == MP_KIND_STRING, "%s has an entry that is not a name", name);
    } else if (row->when_absent == MP_DEFAULT_PRECISION) {
      MP_CHECK(op, item->kind == MP_KIND_ENUM && item->u.enumeration.kind == row->enum_kind,
               "%s has an entry that is not a precision", name);
    }
  }
  MP_CHECK(op, row->when_absent != MP_DEFAULT_PRECISION || value->u.array.count <= 2,
           "%s has %zu entries for 2 operands", name, value->u.array.count);
  return NULL;
}

static mp_status_t verify_attr_own(const mp_op_t *op, const mp_schema_attr_t *row) {
  const char *name = mp_attr_name_text(row->name);
  const mp_attr_t *value = mp_op_attr(op, row->name);
  if (value == NULL) {
    MP_CHECK(op, row->when_absent == MP_DEFAULT_ABSENT, "attribute '%s' is missing", name);
    return NULL;
  }
  MP_CHECK(op, (row->kinds >> value->kind & 1) != 0, "attribute '%s' cannot be %s", name,
           mp_attr_kind_name(value->kind));
  if (value->kind == MP_KIND_ENUM) {
    MP_CHECK(op, value->u.enumeration.kind == row->enum_kind,
             "attribute '%s' has a value of another enumeration", name);
    MP_CHECK(op, mp_enum_value_name(row->enum_kind, value->u.enumeration.value) != NULL,
             "attribute '%s' has no value %u", name, value->u.enumeration.value);
  }
  if (value->kind == MP_KIND_RESULT_ACCURACY) {
    MP_CHECK(op,
             value->u.accuracy.mode == MP_ACCURACY_TOLERANCE ||
                 (value->u.accuracy.atol == 0 && value->u.accuracy.rtol == 0 &&
                  value->u.accuracy.ulps == 0),
             "%s has tolerances, but not the mode for them", name);
  }
  if (value->kind == MP_KIND_ARRAY) return verify_attr_items(op, row, value);
  return NULL;
}

// The attribute sdy.sharding of an op is a list with one sharding per result.
static mp_status_t verify_attr_op_sharding(const mp_op_t *op, const mp_attr_t *value) {
  MP_CHECK(op, value->kind == MP_KIND_SHARDINGS, "sdy.sharding is not a list of shardings");
  const mp_sdy_shardings_t *list = &value->u.shardings;
  // An operation without results that runs on one device has one sharding, which says which.
  MP_CHECK(op, list->count == op->num_results || (op->num_results == 0 && list->count == 1),
           "sdy.sharding has %u entries for %u results", list->count, op->num_results);
  for (uint32_t i = 0; i < op->num_results; ++i) {
    MP_RETURN_IF_ERROR(mp_verify_sharding(op, &list->shardings[i], op->results[i].type));
  }
  if (op->num_results > 0 || list->count == 0) return NULL;
  return mp_verify_mesh(op, list->shardings[0].mesh);
}

mp_status_t mp_verify_attrs(const mp_op_t *op) {
  mp_schema_t schema = mp_schema_of(op->code);
  for (uint32_t i = 0; i < schema.count; ++i) {
    MP_RETURN_IF_ERROR(verify_attr_own(op, &schema.attrs[i]));
  }
  for (uint32_t i = 0; i < op->num_attrs; ++i) {
    const mp_named_attr_t *attr = &op->attrs[i];
    if (mp_schema_find(op->code, attr->name) != NULL) continue;
    MP_CHECK(op, verify_attr_discardable_fits(attr), "attribute '%.*s' cannot be %s",
             MP_STR_ARG(attr->text), mp_attr_kind_name(attr->value->kind));
  }
  const mp_attr_t *sharding = mp_op_attr(op, MP_ATTR_SDY_SHARDING);
  if (sharding != NULL) MP_RETURN_IF_ERROR(verify_attr_op_sharding(op, sharding));
  const mp_attr_t *rule = mp_op_attr(op, MP_ATTR_SDY_SHARDING_RULE);
  return rule == NULL ? NULL : mp_verify_sharding_rule(op, rule->u.rule);
}

// Checks the dictionary of an argument or result, which `what` and `index` name in errors.
static mp_status_t verify_attr_value_attrs(const mp_attr_t *dict, const mp_type_t *type,
                                           const char *what, uint32_t index) {
  if (dict == NULL) return NULL;
  if (dict->kind != MP_KIND_DICT) {
    return mp_status_make(MP_INVALID_ARGUMENT, "attributes of %s %u are not a dictionary", what,
                          index);
  }
  for (size_t i = 0; i < dict->u.dict.count; ++i) {
    const mp_named_attr_t *attr = &dict->u.dict.items[i];
    bool fits = verify_attr_discardable_fits(attr) &&
                (attr->name != MP_ATTR_SDY_SHARDING || attr->value->kind == MP_KIND_SHARDING);
    if (!fits) {
      return mp_status_make(MP_INVALID_ARGUMENT, "attribute '%.*s' of %s %u cannot be %s",
                            MP_STR_ARG(attr->text), what, index,
                            mp_attr_kind_name(attr->value->kind));
    }
  }
  const mp_attr_t *sharding = mp_attr_dict_get(dict, MP_ATTR_SDY_SHARDING);
  if (sharding == NULL) return NULL;
  return mp_status_annotate(mp_verify_sharding(NULL, sharding->u.sharding, type), "%s %u", what,
                            index);
}

// Checks donations: at most one argument is donated to each result, and it has the result's size.
static mp_status_t verify_attr_aliases(const mp_func_t *func) {
  uint32_t num_args = func->body->num_args;
  for (uint32_t i = 0; i < num_args; ++i) {
    const mp_attr_t *alias = mp_attr_dict_get(func->arg_attrs[i], MP_ATTR_TF_ALIASING_OUTPUT);
    if (alias == NULL) continue;
    if (alias->u.i64 < 0 || alias->u.i64 >= (int64_t)func->num_results) {
      return mp_status_make(MP_INVALID_ARGUMENT, "argument %u is donated to result %lld of %u", i,
                            (long long)alias->u.i64, func->num_results);
    }
  }
  return NULL;
}

mp_status_t mp_verify_func_attrs(const mp_func_t *func) {
  for (uint32_t i = 0; i < func->body->num_args; ++i) {
    MP_RETURN_IF_ERROR(
        verify_attr_value_attrs(func->arg_attrs[i], func->body->args[i].type, "argument", i));
  }
  for (uint32_t i = 0; i < func->num_results; ++i) {
    MP_RETURN_IF_ERROR(
        verify_attr_value_attrs(func->result_attrs[i], func->result_types[i], "result", i));
  }
  return verify_attr_aliases(func);
}
