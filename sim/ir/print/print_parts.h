// The parts of the printer; private to sim/ir/print*.c. All append to a buffer that latches
// failure.
#ifndef MINIPOD_SIM_IR_PRINT_PRINT_PARTS_H_
#define MINIPOD_SIM_IR_PRINT_PRINT_PARTS_H_

#include "sim/base/containers/hash_map.h"
#include "sim/ir/print/print_module.h"
#include "sim/ir/schema.h"

// ---- print_number.c ----

// One stored element as MLIR writes it: 7, true, 1.000000e+00, 0x7FC00000, (1.0,2.0).
void mp_print_element(mp_dtype_t dtype, const void *element, mp_strbuf_t *out);
// A double of the given float format.
void mp_print_float(mp_dtype_t dtype, double value, mp_strbuf_t *out);
// dense<...> : type
void mp_print_dense(const mp_attr_t *attr, uint32_t elide_elements, mp_strbuf_t *out);

// ---- print_attr.c ----

// "text" with escapes.
void mp_print_quoted(mp_str_t text, mp_strbuf_t *out);
// @name, quoted where needed.
void mp_print_symbol(mp_str_t name, mp_strbuf_t *out);
// [1, 2]
void mp_print_index_list(mp_index_list_t list, mp_strbuf_t *out);
mp_index_list_t mp_print_ints_of(const mp_attr_t *attr);
// {name = value, unit}
void mp_print_dict(const mp_named_attr_t *items, size_t count, mp_strbuf_t *out);
// name, or name = value; `row` gives the rules for an op's own attribute, NULL for others.
void mp_print_named(const mp_named_attr_t *attr, const mp_schema_attr_t *row, mp_strbuf_t *out);
void mp_print_loc(const mp_loc_t *loc, mp_strbuf_t *out);

// ---- print_sdy.c ----

// <["x"=2]>
void mp_print_mesh_body(const mp_mesh_t *mesh, mp_strbuf_t *out);
// <@mesh, [{"x"}, {}]>
void mp_print_sharding_body(const mp_sdy_sharding_t *sharding, mp_strbuf_t *out);
// [<@mesh, ...>, ...]
void mp_print_shardings_body(mp_sdy_shardings_t shardings, mp_strbuf_t *out);
// {"x", "y":(1)2}
void mp_print_axes(mp_axis_list_t axes, mp_strbuf_t *out);
// [{"x"}, {}]
void mp_print_axes_lists(const mp_attr_t *attr, mp_strbuf_t *out);
// [{"x"}: 0->1]
void mp_print_all_to_all(const mp_attr_t *attr, mp_strbuf_t *out);
// Any attribute of Shardy's kinds, with its #sdy prefix.
void mp_print_sdy(const mp_attr_t *attr, mp_strbuf_t *out);

// ---- print_struct.c: several attributes of the IR that the text has as one ----

enum { MP_MAX_PRINTED_ATTRS = 32 };

// One item of an op's printed dictionary.
typedef struct {
  mp_str_t name;
  const mp_named_attr_t *attr;                         // or:
  void (*print)(const mp_op_t *op, mp_strbuf_t *out);  // prints the value; NULL: unit
} mp_print_item_t;

// The op's own attributes that are to be printed, in the order of their printed names: without
// defaults, with struct attributes put together. `skip` has the bit of each attribute name that the
// op's pretty form has said already. Returns how many; at most MP_MAX_PRINTED_ATTRS.
uint32_t mp_print_own_items(const mp_op_t *op, const mp_attr_name_t *skip, uint32_t num_skip,
                            mp_print_item_t *items);
void mp_print_item(const mp_op_t *op, const mp_print_item_t *item, mp_strbuf_t *out);
// [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]
void mp_print_conv_numbers(const mp_op_t *op, mp_strbuf_t *out);
// <lhs_precision_type = tf32, ...>
void mp_print_dot_algorithm(const mp_op_t *op, mp_strbuf_t *out);

// ---- print.c, print_ops.c ----

// The printed name of an op's results or of a block argument.
typedef struct {
  uint64_t hash;  // of the pointer to the op or to the argument
  uint64_t name;
} mp_print_name_t;

typedef struct {
  mp_strbuf_t *out;
  mp_print_options_t options;
  MP_HASH_MAP(mp_print_name_t) names;
  uint64_t next_result, next_arg;
  int indent;
  mp_status_t status;  // of the map; first failure
} mp_printer_t;

void mp_printer_value(mp_printer_t *p, const mp_value_t *value);
void mp_printer_operands(mp_printer_t *p, const mp_op_t *op, uint32_t first, uint32_t count);
void mp_printer_name_args(mp_printer_t *p, const mp_block_t *block);
// (%arg0: tensor<f32>, ...)
void mp_printer_block_args(mp_printer_t *p, const mp_block_t *block);
// { ops }; the block's arguments are the caller's affair.
void mp_printer_region(mp_printer_t *p, const mp_block_t *block);
// {^bb0(...): ops}, the generic form
void mp_printer_generic_region(mp_printer_t *p, const mp_block_t *block);
void mp_printer_newline(mp_printer_t *p);
// The type list `T, T` of the operands.
void mp_printer_operand_types(mp_printer_t *p, const mp_op_t *op);
// (T, T) -> T
void mp_printer_function_type(mp_printer_t *p, const mp_op_t *op);
// All attributes but `skip` as " {...}"; nothing when there are none.
void mp_printer_attr_dict(mp_printer_t *p, const mp_op_t *op, const mp_attr_name_t *skip,
                          uint32_t num_skip);

// Prints the op in its pretty form, results and location excepted. False, and nothing printed, when
// it has none or this op's attributes do not fit it.
bool mp_printer_pretty(mp_printer_t *p, const mp_op_t *op);

#endif  // MINIPOD_SIM_IR_PRINT_PRINT_PARTS_H_
