// Making operations from instructions; shared by the files of builders (hlo_ops_*.c).
//
// An HLO value is a list of leaves, the arrays and tokens in its shape; here each leaf is a value
// of the IR. A builder gets an instruction whose operands are built, appends operations to the
// block, and returns the values of the instruction's leaves.
#ifndef MINIPOD_SIM_READERS_HLO_HLO_BUILD_H_
#define MINIPOD_SIM_READERS_HLO_HLO_BUILD_H_

#include "sim/readers/hlo/message/hlo_graph.h"

typedef struct {
  uint32_t count;
  mp_value_t **items;
} mp_hlo_leaves_t;

// The state of building a computation into a block.
typedef struct {
  mp_hlo_t *h;
  mp_hlo_comp_t *comp;
  mp_block_t *block;
  mp_hlo_leaves_t args;     // of all parameters
  mp_hlo_leaves_t *values;  // [comp->count]: of each instruction that was built
} mp_hlo_build_t;

typedef mp_status_t (*mp_hlo_builder_t)(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                        mp_hlo_leaves_t *out);

// A row of the table of opcodes (hlo_ops.c).
struct mp_hlo_row_s {
  const char *opcode;
  mp_hlo_builder_t build;
  mp_opcode_t code;     // for builders of many opcodes
  int num_operands;     // -1: any
  const char *trouble;  // for opcodes that are refused: why
};

// ---- computations (hlo_build.c) ----

// Builds all instructions of a computation at the end of `block`, with `args` as the leaves of its
// parameters, and gives the leaves of its root. INVALID_ARGUMENT if it calls itself.
MP_NODISCARD mp_status_t mp_hlo_build_comp(mp_hlo_t *h, mp_hlo_comp_t *comp, mp_block_t *block,
                                           mp_hlo_leaves_t args, mp_hlo_leaves_t *out_root);
// Ends a block by returning the values.
MP_NODISCARD mp_status_t mp_hlo_build_return(mp_hlo_t *h, mp_block_t *block, const mp_loc_t *loc,
                                             mp_hlo_leaves_t values);
// Makes a region of the instruction's called computation `number`, whose arguments are the leaves
// of its parameters. INVALID_ARGUMENT when the instruction calls fewer.
MP_NODISCARD mp_status_t mp_hlo_build_region(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                             uint32_t number, mp_block_t **out_region);
// Finds the instruction's called computation `number`.
MP_NODISCARD mp_status_t mp_hlo_called(const mp_hlo_inst_t *inst, uint32_t number,
                                       mp_hlo_comp_t **out_comp);
// The function of a computation, made on first use.
MP_NODISCARD mp_status_t mp_hlo_func_of(mp_hlo_t *h, mp_hlo_comp_t *comp, mp_func_t **out_func);
// Calls the function of a computation.
MP_NODISCARD mp_status_t mp_hlo_emit_call(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                          mp_hlo_comp_t *comp, mp_hlo_leaves_t args,
                                          mp_hlo_leaves_t *out);

// ---- operands (hlo_emit.c) ----

// The leaves of operand `i`, which must exist.
mp_hlo_leaves_t mp_hlo_operand(const mp_hlo_build_t *b, const mp_hlo_inst_t *inst, uint32_t i);
// The array that operand `i` must be.
MP_NODISCARD mp_status_t mp_hlo_array(const mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                      uint32_t i, mp_value_t **out_value);
// The leaves of the operands from `first` on, `count` of them.
MP_NODISCARD mp_status_t mp_hlo_gather_operands(const mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                                uint32_t first, uint32_t count,
                                                mp_hlo_leaves_t *out);
// The one dimension that the instruction must have.
MP_NODISCARD mp_status_t mp_hlo_one_dimension(const mp_hlo_inst_t *inst, int64_t *out_dim);
// Room for a number of leaves.
MP_NODISCARD mp_status_t mp_hlo_new_leaves(mp_hlo_t *h, uint32_t count, mp_hlo_leaves_t *out);

// ---- attributes (hlo_emit.c) ----

// The attributes of an operation that is being built. After an allocation has failed nothing more
// is added, and the operation is not made.
typedef struct {
  mp_arena_t *arena;
  uint32_t count;
  bool failed;
  mp_named_attr_t items[24];
} mp_hlo_attrs_t;

mp_hlo_attrs_t mp_hlo_attrs(const mp_hlo_build_t *b);
void mp_hlo_put(mp_hlo_attrs_t *attrs, mp_attr_name_t name, const mp_attr_t *value);
void mp_hlo_put_int(mp_hlo_attrs_t *attrs, mp_attr_name_t name, mp_dtype_t dtype, int64_t value);
void mp_hlo_put_bool(mp_hlo_attrs_t *attrs, mp_attr_name_t name, bool value);
void mp_hlo_put_ints(mp_hlo_attrs_t *attrs, mp_attr_name_t name, const int64_t *values,
                     size_t count);
void mp_hlo_put_list(mp_hlo_attrs_t *attrs, mp_attr_name_t name, const mp_hlo_ints_t *list);
// `count` rows of two.
void mp_hlo_put_pairs(mp_hlo_attrs_t *attrs, mp_attr_name_t name, const int64_t *values,
                      size_t count);
void mp_hlo_put_enum(mp_hlo_attrs_t *attrs, mp_attr_name_t name, mp_enum_kind_t kind,
                     uint32_t value);
void mp_hlo_put_string(mp_hlo_attrs_t *attrs, mp_attr_name_t name, mp_str_t text);
// A list of attributes.
void mp_hlo_put_array(mp_hlo_attrs_t *attrs, mp_attr_name_t name, const mp_attr_t *const *items,
                      size_t count);
// A new attribute of a kind, all zero; NULL after a failure.
mp_attr_t *mp_hlo_new_attr(mp_hlo_attrs_t *attrs, mp_attr_kind_t kind);

// ---- operations (hlo_emit.c) ----

typedef struct {
  mp_opcode_t code;
  mp_hlo_leaves_t operands;
  uint32_t num_results;
  const mp_type_t *const *types;
  uint32_t num_regions;
  mp_block_t *const *regions;
  const mp_hlo_attrs_t *attrs;  // NULL: none
} mp_hlo_op_t;

// Makes an operation of an instruction; `out` gets its results.
MP_NODISCARD mp_status_t mp_hlo_emit(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                     const mp_hlo_op_t *op, mp_hlo_leaves_t *out);
// The same, with one result of the type.
MP_NODISCARD mp_status_t mp_hlo_emit_one(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                         mp_opcode_t code, mp_value_t *const *operands,
                                         uint32_t num_operands, const mp_type_t *type,
                                         const mp_hlo_attrs_t *attrs, mp_value_t **out_value);
// Makes an operation whose results are the leaves of the instruction's shape.
MP_NODISCARD mp_status_t mp_hlo_emit_whole(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                           mp_opcode_t code, mp_hlo_leaves_t operands,
                                           mp_block_t *const *regions, uint32_t num_regions,
                                           const mp_hlo_attrs_t *attrs, mp_hlo_leaves_t *out);
// Makes a constant; `size` bytes are all elements, or with `splat` one.
MP_NODISCARD mp_status_t mp_hlo_emit_constant(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                              const mp_type_t *type, const void *data, size_t size,
                                              bool splat, mp_value_t **out_value);
// A tensor type in the module.
MP_NODISCARD mp_status_t mp_hlo_tensor(mp_hlo_build_t *b, mp_dtype_t dtype, const int64_t *dims,
                                       uint32_t rank, const mp_type_t **out_type);

#endif  // MINIPOD_SIM_READERS_HLO_HLO_BUILD_H_
