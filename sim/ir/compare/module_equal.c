#include "sim/ir/compare/module_equal.h"

#include "sim/base/containers/hash_map.h"
#include "sim/base/hash.h"
#include "sim/ir/print/print_module.h"

// Something that is defined in module `a` (an op with results, or a block argument), and what
// stands in its place in module `b`.
typedef struct {
  uint64_t hash;  // of the pointer to what is defined in `a`
  const void *like;
} pair_t;

typedef struct {
  MP_HASH_MAP(pair_t) pairs;
} compare_t;

static mp_status_t module_equal_differ(const mp_op_t *op, const char *what) {
  return mp_op_error(op, MP_FAILED_PRECONDITION, "modules differ in %s", what);
}

static const void *module_equal_key_of(const mp_value_t *value) {
  return value->op != NULL ? (const void *)value->op : (const void *)value;
}

static bool module_equal_same_value(const compare_t *c, const mp_value_t *a, const mp_value_t *b) {
  const pair_t *known;
  return a->index == b->index && (a->op == NULL) == (b->op == NULL) &&
         MP_HASH_MAP_GET(&c->pairs, mp_hash_pointer(module_equal_key_of(a)), known) != NULL &&
         known->like == module_equal_key_of(b);
}

static mp_status_t module_equal_pair(compare_t *c, const void *a, const void *b) {
  return MP_HASH_MAP_SET(NULL, &c->pairs, &(pair_t){mp_hash_pointer(a), b});
}

static mp_status_t module_equal_compare_attrs(const mp_op_t *a, const mp_op_t *b) {
  if (a->num_attrs != b->num_attrs) return module_equal_differ(a, "the number of attributes");
  for (uint32_t i = 0; i < a->num_attrs; ++i) {
    const mp_named_attr_t *x = &a->attrs[i], *y = &b->attrs[i];
    if (x->name == y->name && mp_str_equal(x->text, y->text) && mp_attr_equal(x->value, y->value))
      continue;
    mp_strbuf_t text;
    mp_strbuf_init(&text);
    mp_strbuf_printf(&text, "attribute %.*s (", MP_STR_ARG(x->text));
    mp_attr_print(x->value, &text);
    mp_strbuf_printf(&text, ") and %.*s (", MP_STR_ARG(y->text));
    mp_attr_print(y->value, &text);
    mp_strbuf_putc(&text, ')');
    mp_status_t status = module_equal_differ(a, mp_strbuf_text(&text));
    mp_strbuf_deinit(&text);
    return status;
  }
  return NULL;
}

static mp_status_t module_equal_compare_blocks(compare_t *c, const mp_block_t *a,
                                               const mp_block_t *b, const mp_op_t *op);

static mp_status_t module_equal_compare_ops(compare_t *c, const mp_op_t *a, const mp_op_t *b) {
  if (a->code != b->code) return module_equal_differ(a, mp_op_info(b->code)->name);
  if (a->num_operands != b->num_operands || a->num_results != b->num_results ||
      a->num_regions != b->num_regions)
    return module_equal_differ(a, "the number of operands, results or regions");
  for (uint32_t i = 0; i < a->num_operands; ++i)
    if (!module_equal_same_value(c, a->operands[i], b->operands[i]))
      return module_equal_differ(a, "operands");
  for (uint32_t i = 0; i < a->num_results; ++i)
    if (!mp_type_equal(a->results[i].type, b->results[i].type))
      return module_equal_differ(a, "result types");
  MP_RETURN_IF_ERROR(module_equal_compare_attrs(a, b));
  for (uint32_t i = 0; i < a->num_regions; ++i)
    MP_RETURN_IF_ERROR(module_equal_compare_blocks(c, a->regions[i], b->regions[i], a));
  return a->num_results > 0 ? module_equal_pair(c, a, b) : NULL;
}

static mp_status_t module_equal_compare_blocks(compare_t *c, const mp_block_t *a,
                                               const mp_block_t *b, const mp_op_t *op) {
  bool same = a->num_args == b->num_args;
  for (uint32_t i = 0; same && i < a->num_args; ++i) {
    same = mp_type_equal(a->args[i].type, b->args[i].type);
    MP_RETURN_IF_ERROR(module_equal_pair(c, &a->args[i], &b->args[i]));
  }
  if (!same && op != NULL) return module_equal_differ(op, "a region's arguments");
  if (!same) return mp_status_make(MP_FAILED_PRECONDITION, "modules differ in parameters");
  const mp_op_t *x = a->first, *y = b->first;
  for (; x != NULL && y != NULL; x = x->next, y = y->next)
    MP_RETURN_IF_ERROR(module_equal_compare_ops(c, x, y));
  if (x == NULL && y == NULL) return NULL;
  return module_equal_differ(x != NULL ? x : y, "the number of operations");
}

static mp_status_t module_equal_compare_funcs(compare_t *c, const mp_func_t *a,
                                              const mp_func_t *b) {
  bool same = mp_str_equal(a->name, b->name) && mp_str_equal(a->visibility, b->visibility) &&
              mp_attr_equal(a->attrs, b->attrs) && a->num_results == b->num_results &&
              a->body->num_args == b->body->num_args;
  for (uint32_t i = 0; same && i < a->num_results; ++i)
    same = mp_type_equal(a->result_types[i], b->result_types[i]) &&
           mp_attr_equal(a->result_attrs[i], b->result_attrs[i]);
  for (uint32_t i = 0; same && i < a->body->num_args; ++i)
    same = mp_attr_equal(a->arg_attrs[i], b->arg_attrs[i]);
  if (!same)
    return mp_status_make(MP_FAILED_PRECONDITION, "modules differ in function @%.*s",
                          MP_STR_ARG(a->name));
  return module_equal_compare_blocks(c, a->body, b->body, NULL);
}

static bool module_equal_same_meshes(const mp_module_t *a, const mp_module_t *b) {
  if (a->meshes.count != b->meshes.count) return false;
  for (uint32_t i = 0; i < a->meshes.count; ++i) {
    mp_attr_t x = {.kind = MP_KIND_MESH, .u.mesh = a->meshes.items[i]};
    mp_attr_t y = {.kind = MP_KIND_MESH, .u.mesh = b->meshes.items[i]};
    if (!mp_attr_equal(&x, &y)) return false;
  }
  return true;
}

static mp_status_t module_equal_compare_modules(compare_t *c, const mp_module_t *a,
                                                const mp_module_t *b) {
  if (!mp_str_equal(a->name, b->name) || a->num_replicas != b->num_replicas ||
      a->num_partitions != b->num_partitions || !mp_attr_equal(a->attrs, b->attrs))
    return mp_status_make(MP_FAILED_PRECONDITION, "modules differ in name or attributes");
  if (!module_equal_same_meshes(a, b))
    return mp_status_make(MP_FAILED_PRECONDITION, "modules differ in meshes");
  const mp_func_t *x = a->funcs.first, *y = b->funcs.first;
  for (; x != NULL && y != NULL; x = x->next, y = y->next)
    MP_RETURN_IF_ERROR(module_equal_compare_funcs(c, x, y));
  if (x == NULL && y == NULL) return NULL;
  return mp_status_make(MP_FAILED_PRECONDITION, "modules differ in the number of functions");
}

mp_status_t mp_module_compare(const mp_module_t *a, const mp_module_t *b) {
  compare_t c = {0};
  mp_status_t status = module_equal_compare_modules(&c, a, b);
  MP_HASH_MAP_FREE(&c.pairs);
  return status;
}
