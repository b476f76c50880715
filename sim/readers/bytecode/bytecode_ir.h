// Operations while they are read: shared by bytecode_ir.c (operations, regions, values) and
// bytecode_module.c (the module, its functions and meshes).
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
  MP_ARRAY(mp_value_t *) slots;  // the current region's slots are the last ones
  size_t base;                   // slot of value 0: where the innermost isolated region begins
  size_t next;                   // slot of the next value that the current region defines
} mp_bc_values_t;

// The state of reading the IR section.
typedef struct {
  mp_bc_reader_t *r;
  mp_bc_values_t values;
  int depth;  // how many regions enclose the current point
} mp_bc_ir_t;

// An operation's fields up to its regions. The arrays are in the reader's scratch arena.
typedef struct {
  mp_bc_cursor_t origin;  // where the operation begins, for errors
  const mp_bc_op_name_t *name;
  uint8_t mask;  // which of the optional fields the file has (bytecode_ir.c lists the bits)
  const mp_loc_t *loc;
  mp_bc_op_attrs_t attrs;
  uint32_t num_results;
  const mp_type_t **result_types;
  uint32_t num_operands;
  mp_value_t **operands;
  uint64_t num_regions;
  bool isolated;  // its regions do not see the values outside
} mp_bc_op_t;

// Whether the operation has this dialect and this name (spelt without the dialect).
bool mp_bc_op_is(const mp_bc_ir_t *ir, const mp_bc_op_t *op, mp_bc_dialect_t dialect,
                 const char *name);
// Makes the error UNIMPLEMENTED about an operation: its name, the reason, and the line of the
// user's program.
MP_NODISCARD mp_status_t mp_bc_op_unknown(const mp_bc_ir_t *ir, const mp_bc_op_t *op,
                                          const char *reason);

// Reads everything of an operation up to its regions into `op`, whose old contents do not matter.
MP_NODISCARD mp_status_t mp_bc_read_op_head(mp_bc_ir_t *ir, mp_bc_cursor_t *c, mp_bc_op_t *op);

// Reads the rest of an operation whose head was read, and puts it into `block`.
typedef mp_status_t (*mp_bc_op_reader_t)(mp_bc_ir_t *ir, mp_bc_cursor_t *c, mp_bc_op_t *op,
                                         mp_block_t *block);
// Such a reader for the operations within a function: creates the operation, with its regions, in
// the module and appends it to `block`. A cast creates nothing: its results are its operands.
MP_NODISCARD mp_status_t mp_bc_read_body_op(mp_bc_ir_t *ir, mp_bc_cursor_t *c, mp_bc_op_t *op,
                                            mp_block_t *block);
// Reads the region of an operation that must have exactly one; `read_op` reads each operation in
// it. `*out_block` is the region's only block.
MP_NODISCARD mp_status_t mp_bc_read_only_region(mp_bc_ir_t *ir, mp_bc_cursor_t *c,
                                                const mp_bc_op_t *op, mp_bc_op_reader_t read_op,
                                                mp_block_t **out_block);

#endif  // MINIPOD_SIM_READERS_BYTECODE_BYTECODE_IR_H_
