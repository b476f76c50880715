// The parts of the printer; private to this folder and to the printer of Mosaic modules. All append
// to a buffer, which remembers that memory ran out, so that only the entry has to ask
// (mp_strbuf_t).
#ifndef MINIPOD_SIM_IR_PRINT_PRINT_PARTS_H_
#define MINIPOD_SIM_IR_PRINT_PRINT_PARTS_H_

#include "sim/base/containers/hash_map.h"
#include "sim/ir/print/print_module.h"
#include "sim/ir/schema.h"

// ---- print_number.c ----

// Prints a number of the given floating-point format; `value` is that number as a double.
void mp_print_float(mp_dtype_t dtype, double value, mp_strbuf_t *out);
// Prints a constant, dense<...> : type, and without its type.
void mp_print_dense(const mp_attr_t *attr, uint32_t elide_elements, mp_strbuf_t *out);
void mp_print_elements(const mp_attr_t *attr, uint32_t elide_elements, mp_strbuf_t *out);

// ---- print_names.c ----

// Prints "text" with escapes.
void mp_print_quoted(mp_str_t text, mp_strbuf_t *out);
// Prints name, with quotes where MLIR needs them.
void mp_print_name(mp_str_t name, mp_strbuf_t *out);
// Prints @name, with quotes where MLIR needs them.
void mp_print_symbol(mp_str_t name, mp_strbuf_t *out);
// Prints [1, 2].
void mp_print_index_list(mp_index_list_t list, mp_strbuf_t *out);

// ---- print_attr.c ----

// The values of an attribute of the kind INTS or BOOLS.
mp_index_list_t mp_print_ints_of(const mp_attr_t *attr);
// Prints {name = value, unit}.
void mp_print_dict(const mp_named_attr_t *items, size_t count, mp_strbuf_t *out);
// Prints `name = value`, or `name` for a unit attribute. `row` is the row of the schema for an op's
// own attribute, and NULL for a discardable one.
void mp_print_named(const mp_named_attr_t *attr, const mp_schema_attr_t *row, mp_strbuf_t *out);
// Prints loc(...), in full while `room` has as many nodes as the location; they are taken from it.
void mp_print_loc(const mp_loc_t *loc, uint64_t *room, mp_strbuf_t *out);

// ---- print_sdy.c ----

// Prints what defines a mesh: <["x"=2]>.
void mp_print_mesh_body(const mp_mesh_t *mesh, mp_strbuf_t *out);
// Prints a sharding: <@mesh, [{"x"}, {}]>.
void mp_print_sharding_body(const mp_sdy_sharding_t *sharding, mp_strbuf_t *out);
// Prints a list of shardings: [<@mesh, ...>, ...].
void mp_print_shardings_body(mp_sdy_shardings_t shardings, mp_strbuf_t *out);
// Prints a list of axes: {"x", "y":(1)2}.
void mp_print_axes(mp_axis_list_t axes, mp_strbuf_t *out);
// Prints a list of axes per dimension: [{"x"}, {}].
void mp_print_axes_lists(const mp_attr_t *attr, mp_strbuf_t *out);
// Prints the parameters of sdy.all_to_all: [{"x"}: 0->1].
void mp_print_all_to_all(const mp_attr_t *attr, mp_strbuf_t *out);
// Prints an attribute of any of Shardy's kinds with its #sdy prefix.
void mp_print_sdy(const mp_attr_t *attr, mp_strbuf_t *out);

// ---- print_struct.c: several attributes of the IR that the text has as one ----

enum { MP_MAX_PRINTED_ATTRS = 32 };

// One item of an op's printed dictionary.
typedef struct {
  mp_str_t name;
  const mp_named_attr_t *attr;                         // NULL for a struct of several attributes
  void (*print)(const mp_op_t *op, mp_strbuf_t *out);  // prints the value of a struct
} mp_print_item_t;

// The op's own attributes that are to be printed, in the order of their printed names: without
// those that have their default value, and with the attributes of a struct put together. `skip` are
// the attributes that the op's pretty form has shown already. `items` has room for
// MP_MAX_PRINTED_ATTRS; returns how many were written.
uint32_t mp_print_own_items(const mp_op_t *op, const mp_attr_name_t *skip, uint32_t num_skip,
                            mp_print_item_t *items);
// Prints `name = value`, or `name` for a unit attribute.
void mp_print_item(const mp_op_t *op, const mp_print_item_t *item, mp_strbuf_t *out);
// Prints a convolution's dimension numbers: [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f].
void mp_print_conv_numbers(const mp_op_t *op, mp_strbuf_t *out);
// Prints the algorithm of a dot_general: <lhs_precision_type = tf32, ...>.
void mp_print_dot_algorithm(const mp_op_t *op, mp_strbuf_t *out);

// ---- printer.c ----

// The printed name of an op's results or of a block argument.
typedef struct {
  uint64_t hash;  // of the pointer to the op or to the argument
  uint64_t name;
} mp_print_name_t;

typedef struct mp_printer_s mp_printer_t;

// The state of one printing.
struct mp_printer_s {
  mp_strbuf_t *out;
  // mp_printer_pretty: pretty forms have regions, and these have ops.
  bool (*pretty)(mp_printer_t *p, const mp_op_t *op);
  mp_print_options_t options;
  MP_HASH_MAP(mp_print_name_t) names;
  uint64_t next_result, next_arg;  // numbers for the names of the next values
  uint64_t room_for_locs;          // how many nodes of locations may still be printed
  int indent;
  mp_status_t status;  // the first failure of `names`
};

// Prints a value's name: %0, %0#1 or %arg0.
void mp_printer_value(mp_printer_t *p, const mp_value_t *value);
// Prints the names of `count` operands from operand `first` on: %0, %1.
void mp_printer_operands(mp_printer_t *p, const mp_op_t *op, uint32_t first, uint32_t count);
// Gives the block's arguments names; prints nothing.
void mp_printer_name_args(mp_printer_t *p, const mp_block_t *block);
// Prints (%arg0: tensor<f32>, ...).
void mp_printer_block_args(mp_printer_t *p, const mp_block_t *block);
// Prints { ops }. The caller has named the block's arguments.
void mp_printer_region(mp_printer_t *p, const mp_block_t *block);
// Begins a new line with the current indentation.
void mp_printer_newline(mp_printer_t *p);
// Prints the operands' types, T, T.
void mp_printer_operand_types(mp_printer_t *p, const mp_op_t *op);
// Prints (T, T) -> T.
void mp_printer_function_type(mp_printer_t *p, const mp_op_t *op);
// Prints all attributes but those in `skip` as " {...}"; prints nothing when there are none.
void mp_printer_attr_dict(mp_printer_t *p, const mp_op_t *op, const mp_attr_name_t *skip,
                          uint32_t num_skip);

// Prints the op with its results' names, in its pretty form or else in the generic one.
void mp_printer_op(mp_printer_t *p, const mp_op_t *op);

// ---- print_ops.c ----

// Prints the op in its pretty form, without results and location. Returns false, and has printed
// nothing, when the op has no pretty form or its attributes do not fit the form.
bool mp_printer_pretty(mp_printer_t *p, const mp_op_t *op);

#endif  // MINIPOD_SIM_IR_PRINT_PRINT_PARTS_H_
