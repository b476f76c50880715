// Operations while they are read: shared by bytecode_ir.c (operations, regions, values) and
// bytecode_module.c (the module, its functions and meshes).
#ifndef MINIPOD_SIM_READERS_BYTECODE_BYTECODE_IR_H_
#define MINIPOD_SIM_READERS_BYTECODE_BYTECODE_IR_H_

#include "sim/base/containers/array.h"
#include "sim/readers/bytecode/bytecode_reader.h"

// Values are numbered through an isolated region and those within it; each region's own values
// take a run of numbers while it is read.
typedef struct {
  MP_ARRAY(mp_value_t *) slots;  // those of the current region are the last ones
  size_t base;                   // first slot of the innermost isolated region
  size_t next;                   // slot of the next value that the current region defines
} mp_bc_values_t;

typedef struct {
  mp_bc_reader_t *r;
  mp_bc_values_t values;
  int depth;  // of regions
} mp_bc_ir_t;

// An operation's fields up to its regions.
typedef struct {
  mp_bc_cursor_t origin;
  const mp_bc_op_name_t *name;
  uint8_t mask;
  const mp_loc_t *loc;
  mp_bc_op_attrs_t attrs;
  uint32_t num_results;
  const mp_type_t **result_types;
  uint32_t num_operands;
  mp_value_t **operands;
  uint64_t num_regions;
  bool isolated;
} mp_bc_op_t;

bool mp_bc_op_is(const mp_bc_ir_t *ir, const mp_bc_op_t *op, mp_bc_dialect_t dialect,
                 const char *name);
// UNIMPLEMENTED about an operation: its name, the reason, and where the user wrote it.
MP_NODISCARD mp_status_t mp_bc_op_unknown(const mp_bc_ir_t *ir, const mp_bc_op_t *op,
                                          const char *reason);

// Everything of an operation up to its regions.
MP_NODISCARD mp_status_t mp_bc_read_op_head(mp_bc_ir_t *ir, mp_bc_cursor_t *c, mp_bc_op_t *op);

// Reads the rest of an operation whose head was read, and puts it into `block`.
typedef mp_status_t (*mp_bc_op_reader_t)(mp_bc_ir_t *ir, mp_bc_cursor_t *c, mp_bc_op_t *op,
                                         mp_block_t *block);
// An operation within a function.
MP_NODISCARD mp_status_t mp_bc_read_body_op(mp_bc_ir_t *ir, mp_bc_cursor_t *c, mp_bc_op_t *op,
                                            mp_block_t *block);
// The one region of an operation that must have just one; `read_op` reads what stands in it.
MP_NODISCARD mp_status_t mp_bc_read_only_region(mp_bc_ir_t *ir, mp_bc_cursor_t *c,
                                                const mp_bc_op_t *op, mp_bc_op_reader_t read_op,
                                                mp_block_t **out_block);

#endif  // MINIPOD_SIM_READERS_BYTECODE_BYTECODE_IR_H_
