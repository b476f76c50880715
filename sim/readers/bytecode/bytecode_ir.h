// Operations while they are read: shared by bytecode_ir.c (operations, regions, values),
// bytecode_body.c (the operations of functions), bytecode_module.c (the module, its functions and
// meshes), and the reader of Mosaic's bytecode, which has an IR of its own (sim/mosaic/read). What
// depends on the IR is behind `mp_bc_form_t`; values, types and blocks are void here.
#ifndef MINIPOD_SIM_READERS_BYTECODE_BYTECODE_IR_H_
#define MINIPOD_SIM_READERS_BYTECODE_BYTECODE_IR_H_

#include "sim/base/containers/array.h"
#include "sim/readers/bytecode/bytecode_reader.h"

// The values that can be referred to at the point that is being read.
//
// The format refers to values by number. Numbering starts at 0 in an isolated region and goes on
// through the regions within it; each region says first how many values it defines, and these take
// consecutive slots until the region ends. A slot is NULL until its value's definition was read.
typedef struct {
  MP_ARRAY(void *) slots;  // the current region's slots are the last ones
  size_t base;             // slot of value 0: where the innermost isolated region begins
  size_t next;             // slot of the next value that the current region defines
} mp_bc_values_t;

typedef struct mp_bc_op_s mp_bc_op_t;

// An IR in which operations are made.
typedef struct {
  // The type of a value, from its index in the table; `c` is for errors.
  mp_status_t (*value_type_at)(mp_bc_reader_t *r, const mp_bc_cursor_t *c, uint64_t index,
                               const void **out_type);
  // Reads the reference of an operation's dictionary into `op->attrs`, or `op->other_dict`.
  mp_status_t (*read_dict)(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_op_t *op);
  // Makes a block with arguments of these types, and gives out the arguments.
  mp_status_t (*make_block)(mp_bc_reader_t *r, const void *const *types, uint32_t num_types,
                            void **out_args, void **out_block);
  bool empty_regions;  // a region without blocks is read as one empty block
} mp_bc_form_t;

// The state of reading the IR section.
typedef struct {
  mp_bc_reader_t *r;
  const mp_bc_form_t *form;
  mp_bc_values_t values;
  int depth;  // how many regions enclose the current point
} mp_bc_ir_t;

// An operation's fields up to its regions. The arrays are in the reader's scratch arena.
struct mp_bc_op_s {
  mp_bc_cursor_t origin;  // where the operation begins, for errors
  const mp_bc_op_name_t *name;
  uint8_t mask;  // which of the optional fields the file has (bytecode_ir.c lists the bits)
  const mp_loc_t *loc;
  mp_bc_op_attrs_t attrs;
  const void *other_dict;  // the dictionary in another IR (sim/mosaic/read); may be NULL
  uint32_t num_results;
  const void **result_types;
  uint32_t num_operands;
  void **operands;
  uint64_t num_regions;
  bool isolated;  // its regions do not see the values outside
};

// Whether the operation has this dialect and this name (spelt without the dialect).
bool mp_bc_op_is(const mp_bc_ir_t *ir, const mp_bc_op_t *op, mp_bc_dialect_t dialect,
                 const char *name);
// Makes the error UNIMPLEMENTED about an operation: its name, the reason, and the line of the
// user's program.
MP_NODISCARD mp_status_t mp_bc_op_unknown(const mp_bc_ir_t *ir, const mp_bc_op_t *op,
                                          const char *reason);

// Reads everything of an operation up to its regions into `op`, whose old contents do not matter.
MP_NODISCARD mp_status_t mp_bc_read_op_head(mp_bc_ir_t *ir, mp_bc_cursor_t *c, mp_bc_op_t *op);

// Takes the next `count` numbers of the region for values that are about to be defined: the slots
// from `*out_first` on. The caller puts the values there when they exist.
MP_NODISCARD mp_status_t mp_bc_take_numbers(mp_bc_ir_t *ir, const mp_bc_cursor_t *c, size_t count,
                                            size_t *out_first);

// Reads the rest of an operation whose head was read, and puts it into `block`.
typedef mp_status_t (*mp_bc_op_reader_t)(mp_bc_ir_t *ir, mp_bc_cursor_t *c, mp_bc_op_t *op,
                                         void *block);
// Reads the regions of an operation, one block each, into `blocks`; `read_op` reads each operation
// in them.
MP_NODISCARD mp_status_t mp_bc_read_regions(mp_bc_ir_t *ir, mp_bc_cursor_t *c, const mp_bc_op_t *op,
                                            mp_bc_op_reader_t read_op, void **blocks);
// Reads the region of an operation that must have exactly one. `*out_block` is its only block.
MP_NODISCARD mp_status_t mp_bc_read_only_region(mp_bc_ir_t *ir, mp_bc_cursor_t *c,
                                                const mp_bc_op_t *op, mp_bc_op_reader_t read_op,
                                                void **out_block);

// ---- bytecode_body.c: the IR of StableHLO ----

extern const mp_bc_form_t mp_bc_stablehlo_form;

// Reads an operation within a function: creates it, with its regions, in the module and appends it
// to `block`. A cast creates nothing: its results are its operands.
MP_NODISCARD mp_status_t mp_bc_read_body_op(mp_bc_ir_t *ir, mp_bc_cursor_t *c, mp_bc_op_t *op,
                                            void *block);

#endif  // MINIPOD_SIM_READERS_BYTECODE_BYTECODE_IR_H_
