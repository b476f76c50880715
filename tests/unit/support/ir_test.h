// Small modules for tests: a builder in few words, and a compact dump to compare with.
//
//   ir_t ir = ir_start("4xf32 4xf32", "4xf32");
//   mp_value_t *sum = ir_op(&ir, MP_OP_ADD, "4xf32", VALUES(ir.args[0], ir.args[1]), NO_ATTRS);
//   ir_return(&ir, VALUES(sum));
//   ir_check(&ir, "%2 = add(%0, %1) : tensor<4xf32>\n"
//                 "return(%2)\n");
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_IR_TEST_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_IR_TEST_H_

#include <stdlib.h>
#include <string.h>

#include "sim/ir/module.h"
#include "sim/ir/schema.h"
#include "tests/unit/support/unit.h"

typedef struct {
  mp_module_t *module;
  mp_func_t *main;
  mp_block_t *block;  // where ops go
  mp_value_t *args[8];
} ir_t;

enum { IR_MAX = 16 };

#define VALUES(...) ((mp_value_t *[]){__VA_ARGS__, NULL})
#define NO_VALUES   ((mp_value_t *[]){NULL})
#define ATTRS(...)  ((mp_named_attr_t[]){__VA_ARGS__, {.value = NULL}})
#define NO_ATTRS    ((mp_named_attr_t[]){{.value = NULL}})

// ---- types: "4x8xf32", "f32", "token"; "(f32,(token,s))" is a tuple, "<f32>" a future ----

static inline const mp_type_t *ir_parse_type(ir_t *ir, const char **at);

static inline const mp_type_t *ir_parse_list(ir_t *ir, const char **at, char end) {
  const mp_type_t *elements[IR_MAX];
  uint32_t count = 0;
  ++*at;
  while (**at != end) {
    elements[count++] = ir_parse_type(ir, at);
    if (**at == ',') ++*at;
  }
  ++*at;
  const mp_type_t *type = NULL;
  assert_ok(mp_type_compound(ir->module->arena, end == ')' ? MP_TYPE_TUPLE : MP_TYPE_FUTURE,
                             elements, count, &type));
  return type;
}

static inline const mp_type_t *ir_parse_type(ir_t *ir, const char **at) {
  if (**at == '(') return ir_parse_list(ir, at, ')');
  if (**at == '<') return ir_parse_list(ir, at, '>');
  int64_t dims[MP_MAX_RANK];
  uint32_t rank = 0;
  while ((**at >= '0' && **at <= '9') || **at == '?') {
    char *end = NULL;
    dims[rank++] = **at == '?' ? MP_DYNAMIC : strtoll(*at, &end, 10);
    *at = (end == NULL ? *at + 1 : end) + 1;
  }
  size_t size = strcspn(*at, ",)> ");
  if (strncmp(*at, "complex<", 8) == 0) ++size;
  const mp_str_t name = {*at, size};
  *at += size;
  if (mp_str_is(name, "token")) return mp_type_token();
  const mp_type_t *type = NULL;
  assert_int_not_equal(mp_dtype_from_name(name), MP_DTYPE_INVALID);
  assert_ok(mp_type_tensor(ir->module->arena, mp_dtype_from_name(name), dims, rank, &type));
  return type;
}

// Types with blanks between; returns their number.
static inline uint32_t ir_types(ir_t *ir, const char *text, const mp_type_t **types) {
  uint32_t count = 0;
  while (*text != '\0') {
    types[count++] = ir_parse_type(ir, &text);
    while (*text == ' ') ++text;
  }
  return count;
}

// ---- building ----

static inline ir_t ir_start(const char *params, const char *results) {
  ir_t ir = {0};
  const mp_type_t *types[IR_MAX], *result_types[IR_MAX];
  assert_ok(mp_module_create(&ir.module));
  const uint32_t num_args = ir_types(&ir, params, types);
  const uint32_t num_results = ir_types(&ir, results, result_types);
  assert_ok(mp_func_create(ir.module, MP_STR("main"), num_args, types, num_results, result_types,
                           &ir.main));
  ir.module->main = ir.main;
  ir.block = ir.main->body;
  for (uint32_t i = 0; i < num_args && i < 8; ++i) ir.args[i] = &ir.block->args[i];
  return ir;
}

static inline void ir_end(ir_t *ir) {
  mp_module_release(ir->module);
}

static inline mp_op_t *ir_op_regions(ir_t *ir, mp_opcode_t code, const char *result_types,
                                     mp_value_t *const *operands, const mp_named_attr_t *attrs,
                                     uint32_t num_regions, mp_block_t *const *regions) {
  const mp_type_t *types[IR_MAX];
  mp_op_spec_t spec = {.code = code, .operands = operands, .result_types = types};
  spec.num_results = ir_types(ir, result_types, types);
  while (operands[spec.num_operands] != NULL) ++spec.num_operands;
  uint32_t count = 0;
  while (attrs[count].value != NULL) ++count;
  mp_named_attr_t *all = NULL;
  assert_ok(mp_schema_complete(ir->module->arena, code, attrs, count, &all, &spec.num_attrs));
  spec.attrs = all;
  spec.num_regions = num_regions;
  spec.regions = regions;
  mp_op_t *op = NULL;
  assert_ok(mp_op_create(ir->module, &spec, &op));
  mp_block_append(ir->block, op);
  return op;
}

// The op's first result.
static inline mp_value_t *ir_op(ir_t *ir, mp_opcode_t code, const char *result_types,
                                mp_value_t *const *operands, const mp_named_attr_t *attrs) {
  return ir_op_regions(ir, code, result_types, operands, attrs, 0, NULL)->results;
}

static inline void ir_return(ir_t *ir, mp_value_t *const *operands) {
  (void)ir_op_regions(ir, MP_OP_RETURN, "", operands, NO_ATTRS, 0, NULL);
}

// Makes a block; ops go there until ir->block is set back.
static inline mp_block_t *ir_block(ir_t *ir, const char *arg_types) {
  const mp_type_t *types[IR_MAX];
  mp_block_t *block = NULL;
  const uint32_t count = ir_types(ir, arg_types, types);
  assert_ok(mp_block_create(ir->module, count, types, &block));
  ir->block = block;
  return block;
}

static inline mp_named_attr_t ir_attr(mp_attr_name_t name, const mp_attr_t *value) {
  return (mp_named_attr_t){name, mp_str(mp_attr_name_text(name)), value};
}

static inline mp_named_attr_t ir_int(ir_t *ir, mp_attr_name_t name, int64_t number) {
  const mp_attr_t *value = NULL;
  assert_ok(mp_attr_make_int(ir->module->arena, MP_DTYPE_S64, number, &value));
  return ir_attr(name, value);
}

static inline mp_named_attr_t ir_string(ir_t *ir, mp_attr_name_t name, const char *text) {
  const mp_attr_t *value = NULL;
  assert_ok(mp_attr_make_string(ir->module->arena, mp_str(text), &value));
  return ir_attr(name, value);
}

static inline mp_named_attr_t ir_list(ir_t *ir, mp_attr_name_t name, const int64_t *numbers,
                                      size_t count) {
  const mp_attr_t *value = NULL;
  assert_ok(mp_attr_make_ints(ir->module->arena, numbers, count, &value));
  return ir_attr(name, value);
}
#define IR_INTS(ir, name, ...)                    \
  ir_list((ir), (name), (int64_t[]){__VA_ARGS__}, \
          sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

// A constant from stored elements; a splat when there is one for many.
static inline mp_value_t *ir_constant(ir_t *ir, const char *type_text, const void *data,
                                      size_t size) {
  const mp_type_t *type = NULL;
  const mp_attr_t *value = NULL;
  int64_t bytes = 0;
  (void)ir_types(ir, type_text, &type);
  assert_true(mp_type_num_bytes(type, &bytes));
  assert_ok(mp_attr_make_dense(ir->module->arena, type, data, size, (size_t)bytes != size, &value));
  return ir_op(ir, MP_OP_CONSTANT, type_text, NO_VALUES, ATTRS(ir_attr(MP_ATTR_VALUE, value)));
}
#define IR_I64S(ir, type, ...) \
  ir_constant((ir), (type), (int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}))

// ---- the dump: one line per op; attributes that hold their default are left out ----

static inline void ir_dump_numbers(mp_strbuf_t *out, const int64_t *values, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    mp_strbuf_printf(out, "%s%lld", i == 0 ? "" : ",", (long long)values[i]);
  }
}

// "0:[0+2,0+4] 1:[2+2,0+4]": start+size of each partition's box; "/g" is its group.
static inline void ir_dump_boxes(mp_strbuf_t *out, const mp_boxes_t *boxes) {
  for (uint32_t p = 0; p < boxes->num_partitions; ++p) {
    mp_strbuf_printf(out, "%s%u", p == 0 ? "" : " ", p);
    if (boxes->groups[p] != 0) mp_strbuf_printf(out, "/%d", boxes->groups[p]);
    mp_strbuf_puts(out, ":[");
    for (uint32_t d = 0; d < boxes->rank; ++d) {
      const size_t at = (size_t)p * boxes->rank + d;
      mp_strbuf_printf(out, "%s%lld+%lld", d == 0 ? "" : ",", (long long)boxes->starts[at],
                       (long long)boxes->sizes[at]);
    }
    mp_strbuf_putc(out, ']');
  }
}

static inline void ir_dump_dense(mp_strbuf_t *out, const mp_attr_t *attr) {
  const mp_dtype_t dtype = attr->u.dense.type->dtype;
  const size_t size = mp_dtype_size(dtype);
  mp_strbuf_puts(out, attr->u.dense.splat ? "splat " : "");
  for (size_t i = 0; i * size < attr->u.dense.size && i < 8; ++i) {
    const char *at = (const char *)attr->u.dense.data + i * size;
    double value = 0;
    int64_t bits = 0;
    memcpy(&bits, at, size < 8 ? size : 8);
    if (mp_dtype_is_float(dtype)) {
      value = mp_float_decode(dtype, at);
    } else {
      value = (double)bits;
    }
    mp_strbuf_printf(out, "%s%g", i == 0 ? "" : ",", value);
  }
}

static inline void ir_dump_attr(mp_strbuf_t *out, const mp_attr_t *attr) {
  switch (attr->kind) {
    case MP_KIND_INT:
      mp_strbuf_printf(out, "%lld", (long long)attr->u.i64);
      return;
    case MP_KIND_BOOL:
      mp_strbuf_puts(out, attr->u.boolean ? "true" : "false");
      return;
    case MP_KIND_STRING:
      mp_strbuf_printf(out, "\"%.*s\"", MP_STR_ARG(attr->u.str));
      return;
    case MP_KIND_INTS:
    case MP_KIND_BOOLS:
      mp_strbuf_putc(out, '[');
      for (int64_t row = 0; attr->u.ints.rank == 2 && row < attr->u.ints.dims[0]; ++row) {
        const int64_t columns = attr->u.ints.dims[1];
        mp_strbuf_puts(out, row == 0 ? "[" : ",[");
        ir_dump_numbers(out, attr->u.ints.values + row * columns, (size_t)columns);
        mp_strbuf_putc(out, ']');
      }
      if (attr->u.ints.rank == 1) ir_dump_numbers(out, attr->u.ints.values, attr->u.ints.count);
      mp_strbuf_putc(out, ']');
      return;
    case MP_KIND_DENSE:
      ir_dump_dense(out, attr);
      return;
    case MP_KIND_BOXES:
      ir_dump_boxes(out, attr->u.boxes);
      return;
    default:
      mp_strbuf_printf(out, "kind %d", (int)attr->kind);
  }
}

static inline void ir_dump_attrs(mp_strbuf_t *out, const mp_op_t *op) {
  const char *separator = " {";
  for (uint32_t i = 0; i < op->num_attrs; ++i) {
    const mp_named_attr_t *attr = &op->attrs[i];
    const mp_schema_attr_t *row = mp_schema_find(op->code, attr->name);
    if (row != NULL && row->when_absent != MP_DEFAULT_REQUIRED &&
        mp_schema_is_default(op, row, attr->value)) {
      continue;
    }
    mp_strbuf_printf(out, "%s%.*s=", separator, MP_STR_ARG(attr->text));
    ir_dump_attr(out, attr->value);
    separator = " ";
  }
  if (separator[1] == '\0') mp_strbuf_putc(out, '}');
}

static inline void ir_dump_block(mp_strbuf_t *out, const mp_block_t *block, int indent) {
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    mp_strbuf_printf(out, "%*s", indent, "");
    for (uint32_t i = 0; i < op->num_results; ++i) {
      mp_strbuf_printf(out, "%s%%%u", i == 0 ? "" : ", ", op->results[i].id);
    }
    const char *name = mp_op_info(op->code)->name;
    if (strncmp(name, "stablehlo.", 10) == 0) name += 10;
    mp_strbuf_printf(out, "%s%s(", op->num_results == 0 ? "" : " = ", name);
    for (uint32_t i = 0; i < op->num_operands; ++i) {
      mp_strbuf_printf(out, "%s%%%u", i == 0 ? "" : ", ", op->operands[i]->id);
    }
    mp_strbuf_putc(out, ')');
    ir_dump_attrs(out, op);
    for (uint32_t i = 0; i < op->num_results; ++i) {
      mp_strbuf_puts(out, i == 0 ? " : " : ", ");
      mp_type_print(op->results[i].type, out);
    }
    mp_strbuf_putc(out, '\n');
    for (uint32_t r = 0; r < op->num_regions; ++r) {
      const mp_block_t *region = op->regions[r];
      assert_ptr_equal(region->parent_op, op);
      mp_strbuf_printf(out, "%*s^(", indent + 1, "");
      for (uint32_t i = 0; i < region->num_args; ++i) {
        mp_strbuf_printf(out, "%s%%%u: ", i == 0 ? "" : ", ", region->args[i].id);
        mp_type_print(region->args[i].type, out);
      }
      mp_strbuf_puts(out, ")\n");
      ir_dump_block(out, region, indent + 2);
    }
  }
}

// The dump of main's body must be `expected`.
static inline void ir_check(ir_t *ir, const char *expected) {
  mp_strbuf_t out;
  mp_strbuf_init(&out);
  (void)mp_module_number_values(ir->module);
  ir_dump_block(&out, ir->module->main->body, 0);
  if (strcmp(mp_strbuf_text(&out), expected) != 0) {
    fail_msg("expected:\n%s\nbut it is:\n%s", expected, mp_strbuf_text(&out));
  }
  mp_strbuf_deinit(&out);
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_IR_TEST_H_
