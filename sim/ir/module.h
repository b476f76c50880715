// The IR: a module of functions; functions, regions and blocks of ops; ops and values.
//
// Everything lives in the module's arena and dies with it; nothing is freed singly. Regions have
// exactly one block (StableHLO's rule), so a region is its block. A value is a block argument or an
// op's result; its operands point at it directly and there are no use lists: a pass that needs
// uses numbers the values (mp_module_number_values) and builds its own table.
//
// A module is built and changed by one thread at a time; read-only it may be shared.
#ifndef MINIPOD_SIM_IR_MODULE_H_
#define MINIPOD_SIM_IR_MODULE_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/containers/array.h"
#include "sim/base/containers/list.h"
#include "sim/base/status.h"
#include "sim/ir/attr.h"
#include "sim/ir/loc.h"
#include "sim/ir/type.h"

typedef enum {
#define MP_OP_ENUM(name, ...) MP_OP_##name,
  MP_OPS(MP_OP_ENUM)
#undef MP_OP_ENUM
      MP_OP_COUNT
} mp_opcode_t;

// A row of the op list (sim/ir/op_list.h).
typedef struct {
  const char *name;  // "stablehlo.add"
  int num_operands;  // -1: variadic
  int num_results;
  int num_regions;
  mp_op_role_t role;
  mp_op_effect_t effect;
  mp_op_cost_t cost;
  uint32_t traits;  // MP_OP_TRAIT_*
} mp_op_info_t;

// The row of an op.
const mp_op_info_t *mp_op_info(mp_opcode_t code);
// Whether ops of this kind have the trait (one MP_OP_TRAIT_*).
bool mp_opcode_has(mp_opcode_t code, uint32_t trait);
// Finds an op by its full name; `mhlo.x` also names `stablehlo.x`. False when there is none.
bool mp_opcode_from_name(mp_str_t name, mp_opcode_t *out_code);

typedef struct mp_op_s mp_op_t;
typedef struct mp_block_s mp_block_t;
typedef struct mp_func_s mp_func_t;
typedef struct mp_module_s mp_module_t;

enum { MP_VALUE_INDEX_MOST = 0x7fffffff };

typedef struct mp_value_s mp_value_t;
struct mp_value_s {
  const mp_type_t *type;
  mp_op_t *op;              // the op whose result this is, or NULL
  mp_block_t *block;        // the block whose argument this is, or NULL
  uint32_t index : 31;      // result or argument number
  uint32_t is_on_host : 1;  // see mp_pass_find_host_values; 0 before it
  uint32_t id;              // see mp_module_number_values; passes may use it for their own numbers
};

struct mp_op_s {
  mp_opcode_t code;
  uint32_t num_operands, num_results, num_regions, num_attrs;
  mp_value_t **operands;
  mp_value_t *results;     // [num_results]; operands of other ops point into it
  mp_block_t **regions;    // [num_regions]
  mp_named_attr_t *attrs;  // the op's own, then the discardable ones (sim/ir/schema.h)
  const mp_loc_t *loc;     // NULL: unknown
  mp_block_t *parent;
  mp_op_t *prev, *next;  // in the parent's list
  uint32_t id;           // scratch for passes
  // Of control flow whose ways are followed (mp_module_number_control): its number in the program,
  // from 1, which copies keep. 0: none.
  uint32_t control;
  // Of a product that partitioning made: what compilers may do as a ring of permutes, as
  // mp_op_rings_t (sim/spmd/partition/partition_rings.c).
  uint8_t rings;
  // What compilers may make of permutes: an all_gather that partitioning put before a product for a
  // ring; an exchange of what an op needs of its neighbours.
  bool by_permutes;
};

// What of a product may be a ring, one of these at most: the gather of a factor, or the scatter of
// its sum. Which one wins something is for those to say who know times.
typedef enum {
  MP_OP_RING_LHS = 1,
  MP_OP_RING_RHS = 2,
  MP_OP_RING_SUM = 4,
  // The product is terms of a sum, whether that is scattered or not.
  MP_OP_RING_IN_TERMS = 8,
} mp_op_rings_t;

struct mp_block_s {
  uint32_t num_args;
  mp_value_t *args;  // [num_args]; operands of ops point into it
  mp_op_t *first, *last;
  mp_op_t *parent_op;      // the op whose region this is; NULL for a function's body
  mp_func_t *parent_func;  // the function whose body this is; NULL otherwise
};

struct mp_func_s {
  mp_str_t name;
  mp_str_t visibility;  // "public", "private", ""
  mp_block_t *body;     // arguments = parameters; ends in MP_OP_RETURN
  uint32_t num_results;
  const mp_type_t **result_types;
  const mp_attr_t **arg_attrs;     // [body->num_args] dictionaries or NULLs
  const mp_attr_t **result_attrs;  // [num_results]
  const mp_attr_t *attrs;          // other attributes of the function: a dictionary or NULL
  const mp_loc_t *loc;
  mp_func_t *next;
};

struct mp_module_s {
  mp_arena_t *arena;  // owned: released with the module
  mp_str_t name;      // "jit_f"
  MP_QUEUE(mp_func_t) funcs;
  mp_func_t *main;                        // the entry; set by the readers
  MP_ARRAY(const mp_mesh_t *) meshes;     // by name
  MP_ARRAY(const mp_attr_t *) tables;     // of mp_module_make_table
  uint32_t num_replicas, num_partitions;  // mhlo.num_*; 1 when the module does not say
  const mp_attr_t *attrs;                 // the other module attributes: a dictionary or NULL
  mp_module_t *adopted;                   // owned: a list of modules, by `adopted`
};

// Makes an empty module with an arena of its own; the caller owns it.
MP_NODISCARD mp_status_t mp_module_create(mp_module_t **out_module);
// Frees the module and everything in its arena. NULL is allowed.
void mp_module_release(mp_module_t *module);
// Makes `other` live as long as the module, which may then use what lies in its arena. Takes it.
void mp_module_adopt(mp_module_t *module, mp_module_t *other);

// The function of this name; NULL when there is none.
mp_func_t *mp_module_find_func(const mp_module_t *module, mp_str_t name);
// Adds a mesh, which is not copied and must live as long as the module.
MP_NODISCARD mp_status_t mp_module_add_mesh(mp_module_t *module, const mp_mesh_t *mesh);
// As mp_attr_make_table, but tables that are equal are one: a program has hundreds of collectives
// and a handful of different groups, each of which has a number for each device.
MP_NODISCARD mp_status_t mp_module_make_table(mp_module_t *module, const int64_t *values,
                                              int64_t rows, int64_t columns,
                                              const mp_attr_t **out_attr);

// Appends a function whose body has the arguments but no ops yet. The name and the arrays are
// copied.
MP_NODISCARD mp_status_t mp_func_create(mp_module_t *module, mp_str_t name, uint32_t num_args,
                                        const mp_type_t *const *arg_types, uint32_t num_results,
                                        const mp_type_t *const *result_types, mp_func_t **out_func);

// Makes an empty block with arguments of these types. It belongs to no op or function until it is
// given to one.
MP_NODISCARD mp_status_t mp_block_create(mp_module_t *module, uint32_t num_args,
                                         const mp_type_t *const *arg_types, mp_block_t **out_block);

// Makes the region (a, b) -> `code`(a, b) over scalars of `dtype`, as in reductions; `code` is a
// binary elementwise op.
MP_NODISCARD mp_status_t mp_block_create_reducer(mp_module_t *module, mp_opcode_t code,
                                                 mp_dtype_t dtype, const mp_loc_t *loc,
                                                 mp_block_t **out_block);

// What mp_op_create needs. The arrays are copied; the regions become the op's (their parent_op is
// set).
typedef struct {
  mp_opcode_t code;
  const mp_loc_t *loc;
  uint32_t num_operands;
  mp_value_t *const *operands;
  uint32_t num_results;
  const mp_type_t *const *result_types;
  uint32_t num_regions;
  mp_block_t *const *regions;
  uint32_t num_attrs;
  const mp_named_attr_t *attrs;
} mp_op_spec_t;

// Makes an op in the module's arena. It belongs to no block until it is inserted into one.
MP_NODISCARD mp_status_t mp_op_create(mp_module_t *module, const mp_op_spec_t *spec,
                                      mp_op_t **out_op);
// Adds an op that belongs to no block at the block's end.
void mp_block_append(mp_block_t *block, mp_op_t *op);
// Adds an op that belongs to no block before `position`, in its block.
void mp_block_insert_before(mp_op_t *position, mp_op_t *op);
// Takes an op out of its block, if it has one; the op itself, its results and its regions stay.
void mp_op_unlink(mp_op_t *op);
// Gives an op's attribute a new value, or adds the attribute behind the others.
MP_NODISCARD mp_status_t mp_op_set_attr(mp_module_t *module, mp_op_t *op, mp_attr_name_t name,
                                        const mp_attr_t *value);

// Copies an op with its regions; the copy belongs to no block. `map[id]` is the value that takes
// the place of the old value with this id (mp_module_number_values); where it is NULL, the old
// value stays. The results and the region arguments of the copy are entered into `map`, so it must
// have room for all ids of the module.
MP_NODISCARD mp_status_t mp_op_clone(mp_module_t *module, const mp_op_t *op, mp_value_t **map,
                                     mp_op_t **out_op);

// Numbers the loops and branches of main (mp_op_t.control), in the order of mp_module_walk.
MP_NODISCARD mp_status_t mp_module_number_control(mp_module_t *module);

// Makes a module whose only function is a copy of main. Its ops and values are its own; types,
// attributes and locations are those of `module`, which must live longer. Numbers the values of
// `module`.
MP_NODISCARD mp_status_t mp_module_copy_main(mp_module_t *module, mp_module_t **out_copy);

// The op that ends the block; NULL for a block without ops, which the verifier refuses.
static inline mp_op_t *mp_block_terminator(const mp_block_t *block) {
  return block->last;
}

// Whether the op has the trait (one MP_OP_TRAIT_*).
bool mp_op_has(const mp_op_t *op, uint32_t trait);
// Whether the op must stay although nothing uses its results. Ops in its regions are not asked.
bool mp_op_has_effect(const mp_op_t *op);
// The name of the function that a call calls or that a composite stands for; "" for other ops.
mp_str_t mp_op_callee(const mp_op_t *op);
// Of a constant: the element that all of its elements are, which lies in the module; NULL if they
// differ.
const void *mp_op_splat(const mp_op_t *op);
// Of a constant: its elements in the module, if each of them is stored as it is in memory; NULL if
// not.
const void *mp_op_stored(const mp_op_t *op);
// Of a custom_call: the operand in whose memory this result is to lie; -1: it may lie anywhere.
int64_t mp_op_aliased_operand(const mp_op_t *op, uint32_t result);
// Whether the op is one of Shardy's.
bool mp_op_is_sdy(const mp_op_t *op);

// Kernels of the user's (of Pallas, for one), which the chip runs as one and this machine as
// ordinary ops. A program has such a kernel as a composite of this name, whose decomposition
// computes what it computes. Inlining makes a custom_call with this target of it, which has the
// decomposition as its region, and says of the kernel what a call of it would.
#define MP_KERNEL_TARGET "minipod.kernel"
// Whether the op is a kernel that has its region still.
bool mp_op_is_kernel(const mp_op_t *op);

// What JAX makes of `device_put` to another memory within a program: a custom_call with this
// target, whose result is its operand in the memory that the frontend's attribute names.
#define MP_PLACEMENT_TARGET    "annotate_device_placement"
#define MP_PLACEMENT_ATTRIBUTE "_xla_buffer_placement"
bool mp_op_is_placement(const mp_op_t *op);
// Whether a placement is in memory of the host.
bool mp_op_places_on_host(const mp_op_t *op);
// Whether a memory kind's name is that of the host's memory.
bool mp_is_host_memory(mp_str_t kind);
// After mp_pass_find_host_values: whether the op copies its operand from the device to its host, or
// back.
bool mp_op_crosses(const mp_op_t *op);
// The same: whether what the op makes or changes lies in the host's memory, so that the device does
// nothing (a slice of an array that lies there).
bool mp_op_is_of_host(const mp_op_t *op);

// The attribute of this name; NULL when it is absent.
const mp_attr_t *mp_op_attr(const mp_op_t *op, mp_attr_name_t name);
// The value of an attribute of the kind INT, BOOL (or UNIT, which is true), ENUM, STRING or INTS
// (or BOOLS). An attribute of another kind counts as absent; the verifier has checked presence and
// kind for an op's own attributes. Without `when_absent` the value of an absent attribute is "" or
// the empty list.
int64_t mp_op_int(const mp_op_t *op, mp_attr_name_t name, int64_t when_absent);
bool mp_op_bool(const mp_op_t *op, mp_attr_name_t name, bool when_absent);
uint32_t mp_op_enum(const mp_op_t *op, mp_attr_name_t name, uint32_t when_absent);
mp_str_t mp_op_str(const mp_op_t *op, mp_attr_name_t name);
mp_index_list_t mp_op_ints(const mp_op_t *op, mp_attr_name_t name);

// Gives all values of the module the ids 0, 1, 2, ... and returns how many there are. Ids hold
// until the module changes or is renumbered.
uint32_t mp_module_number_values(mp_module_t *module);

// The values that an op's regions use but that are defined outside of them, in the order of their
// first use. The array is allocated in `arena`.
MP_NODISCARD mp_status_t mp_op_captures(const mp_op_t *op, mp_arena_t *arena,
                                        mp_value_t ***out_values, uint32_t *out_count);

typedef mp_status_t (*mp_op_visitor_t)(void *context, mp_op_t *op);
// Calls `visit` on every op of the block in order, an op before those in its regions. The visitor
// may unlink the op, whose regions are then not visited. Ends at the first error and returns it.
MP_NODISCARD mp_status_t mp_block_walk(mp_block_t *block, mp_op_visitor_t visit, void *context);
// The same for all functions of the module.
MP_NODISCARD mp_status_t mp_module_walk(mp_module_t *module, mp_op_visitor_t visit, void *context);

// Makes an error about an op: "<message> [stablehlo.add, psum at train.py:12:7]".
MP_NODISCARD MP_PRINTF(3, 4) mp_status_t
    mp_op_error(const mp_op_t *op, mp_status_code_t code, const char *format, ...);
// The same for an error whose maker knew of no op; consumes it. OK stays OK.
MP_NODISCARD mp_status_t mp_op_error_at(const mp_op_t *op, mp_status_t status);

#endif  // MINIPOD_SIM_IR_MODULE_H_
