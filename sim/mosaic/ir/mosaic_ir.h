// Mosaic modules in memory: functions, regions and blocks of ops, as the readers make them.
//
// Unlike StableHLO, Mosaic is imperative: ops read and write memory through memrefs, and control
// flow has regions. A region has one block. Everything lies in the module's arena; nothing is freed
// singly. A module is made by one thread, then it is never changed and may be shared.
//
// Semantics: MLIR's dialects (arith, math, vector, memref, scf, func) and the TPU dialect of
// jaxlib; version 13 of the dialect stable_mosaic, the serialised form of both.
#ifndef MINIPOD_SIM_MOSAIC_IR_MOSAIC_IR_H_
#define MINIPOD_SIM_MOSAIC_IR_MOSAIC_IR_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/containers/list.h"
#include "sim/base/status.h"
#include "sim/base/str.h"
#include "sim/ir/loc.h"
#include "sim/mosaic/ir/mosaic_op_list.h"
#include "sim/numeric/dtype.h"

typedef enum {
#define MP_MOSAIC_ENUM(name, ...) MP_MOSAIC_##name,
  MP_MOSAIC_OPS(MP_MOSAIC_ENUM)
#undef MP_MOSAIC_ENUM
      MP_MOSAIC_OP_COUNT
} mp_mosaic_opcode_t;

typedef enum {
  MP_MOSAIC_CLASS_SCALAR_OR_VECTOR,
  MP_MOSAIC_CLASS_VECTOR,
  MP_MOSAIC_CLASS_READ,
  MP_MOSAIC_CLASS_WRITE,
  MP_MOSAIC_CLASS_VIEW,
  MP_MOSAIC_CLASS_FLOW,
  MP_MOSAIC_CLASS_ASYNC,
  MP_MOSAIC_CLASS_SCALAR,
  MP_MOSAIC_CLASS_NOTE,
} mp_mosaic_class_t;

// A row of the op list.
typedef struct {
  const char *name;                            // "arith.addf"
  int num_operands, num_results, num_regions;  // -1: any
  mp_mosaic_class_t op_class;
} mp_mosaic_op_info_t;

const mp_mosaic_op_info_t *mp_mosaic_op_info(mp_mosaic_opcode_t code);
// Finds an op by its name, with or without "stable_mosaic."; false: there is none.
bool mp_mosaic_opcode_from_name(mp_str_t name, mp_mosaic_opcode_t *out_code);

// ---- types ----

typedef enum {
  MP_MOSAIC_SCALAR,
  MP_MOSAIC_VECTOR,
  MP_MOSAIC_MEMREF,
  MP_MOSAIC_FUNCTION,  // of attributes only
} mp_mosaic_type_kind_t;

// What a type's elements are. Only memrefs have semaphores.
typedef enum {
  MP_MOSAIC_NUMBER,  // of the type's dtype
  MP_MOSAIC_SEMAPHORE,
  MP_MOSAIC_DMA_SEMAPHORE,
  MP_MOSAIC_BARRIER_SEMAPHORE,
} mp_mosaic_element_t;

// The memory of a memref, as #tpu.memory_space spells it.
typedef enum {
  MP_MOSAIC_SPACE_ANY,  // "any": where the argument lies, HBM in general
  MP_MOSAIC_SPACE_VMEM,
  MP_MOSAIC_SPACE_SMEM,
  MP_MOSAIC_SPACE_HBM,
  MP_MOSAIC_SPACE_CMEM,
  MP_MOSAIC_SPACE_SEMAPHORE_MEM,
  MP_MOSAIC_SPACE_VMEM_SHARED,
  MP_MOSAIC_SPACE_HOST,
} mp_mosaic_space_t;

typedef struct mp_mosaic_type_s mp_mosaic_type_t;
struct mp_mosaic_type_s {
  mp_mosaic_type_kind_t kind;
  mp_mosaic_element_t element;
  mp_dtype_t dtype;  // of numbers; MP_DTYPE_INDEX for `index`; i1 is BOOL
  uint32_t rank;
  const int64_t *dims;      // [rank]; MP_MOSAIC_DYNAMIC where not known
  mp_mosaic_space_t space;  // of memrefs
  // Memrefs with a strided layout: the distance between elements of each dimension, in elements,
  // and of the first element from the beginning; NULL: dense and row-major. DYNAMIC: not known.
  const int64_t *strides;
  int64_t offset;
  uint32_t num_elements, num_inputs;  // functions: inputs, then results
  const mp_mosaic_type_t *const *elements;
};

#define MP_MOSAIC_DYNAMIC INT64_MIN

bool mp_mosaic_type_equal(const mp_mosaic_type_t *a, const mp_mosaic_type_t *b);
// The number of elements; false: a dimension is dynamic or the number does not fit.
bool mp_mosaic_num_elements(const mp_mosaic_type_t *type, int64_t *out_count);
void mp_mosaic_type_print(const mp_mosaic_type_t *type, mp_strbuf_t *out);

// ---- attributes ----

typedef enum {
  MP_MOSAIC_UNIT,
  MP_MOSAIC_BOOL,    // i64
  MP_MOSAIC_INT,     // i64; dtype
  MP_MOSAIC_FLOAT,   // f64; dtype
  MP_MOSAIC_STRING,  // str; symbols too
  MP_MOSAIC_INTS,    // ints: array<i64: ...>, dense integers of attributes
  MP_MOSAIC_DENSE,   // dense: the elements of a constant
  MP_MOSAIC_TYPE,    // type
  MP_MOSAIC_ARRAY,   // list
  MP_MOSAIC_DICT,    // list, with names
  MP_MOSAIC_MAP,     // map: an affine map
  MP_MOSAIC_LOC,     // loc: in lists of locations alone
  // list, with str: an attribute of a dialect, #tpu.dot_dimension_numbers<[1], [0], ...>. str is
  // "tpu.dot_dimension_numbers". Items: words are STRING, lists are ARRAY; `key = value` has a
  // name.
  MP_MOSAIC_DIALECT,
} mp_mosaic_attr_kind_t;

// An expression of an affine map.
typedef enum {
  MP_MOSAIC_AFFINE_CONSTANT,
  MP_MOSAIC_AFFINE_DIM,
  MP_MOSAIC_AFFINE_SYMBOL,
  MP_MOSAIC_AFFINE_ADD,
  MP_MOSAIC_AFFINE_MUL,
  MP_MOSAIC_AFFINE_MOD,
  MP_MOSAIC_AFFINE_FLOORDIV,
  MP_MOSAIC_AFFINE_CEILDIV,
} mp_mosaic_affine_kind_t;

typedef struct mp_mosaic_affine_s mp_mosaic_affine_t;
struct mp_mosaic_affine_s {
  mp_mosaic_affine_kind_t kind;
  int64_t value;  // of a constant; the number of a dim or symbol
  const mp_mosaic_affine_t *lhs, *rhs;
};

typedef struct {
  uint32_t num_dims, num_symbols, num_results;
  const mp_mosaic_affine_t *const *results;
} mp_mosaic_map_t;

typedef struct mp_mosaic_attr_s mp_mosaic_attr_t;

typedef struct {
  mp_str_t name;  // "": an item without a name
  const mp_mosaic_attr_t *value;
} mp_mosaic_named_t;

struct mp_mosaic_attr_s {
  mp_mosaic_attr_kind_t kind;
  mp_dtype_t dtype;
  int64_t i64;
  double f64;
  mp_str_t str;
  struct {
    const int64_t *values;
    uint32_t count;
  } ints;
  struct {
    const mp_mosaic_type_t *type;  // a vector, or a scalar
    const void *data;              // as sim/numeric/dtype.h stores elements
    bool splat;                    // one element for all
  } dense;
  const mp_mosaic_type_t *type;
  struct {
    const mp_mosaic_named_t *items;
    uint32_t count;
  } list;
  const mp_mosaic_map_t *map;
  const mp_loc_t *loc;
};

// ---- ops ----

typedef struct mp_mosaic_op_s mp_mosaic_op_t;
typedef struct mp_mosaic_block_s mp_mosaic_block_t;
typedef struct mp_mosaic_func_s mp_mosaic_func_t;

typedef struct {
  const mp_mosaic_type_t *type;
  mp_mosaic_op_t *op;        // whose result it is; NULL: an argument
  mp_mosaic_block_t *block;  // whose argument it is; NULL: a result
  uint32_t index;
  uint32_t id;  // unique in its function, from 0
} mp_mosaic_value_t;

struct mp_mosaic_op_s {
  mp_mosaic_opcode_t code;
  uint32_t num_operands, num_results, num_regions, num_attrs;
  mp_mosaic_value_t **operands;
  mp_mosaic_value_t *results;
  mp_mosaic_block_t **regions;  // a region without block is an empty block (scf.if without else)
  mp_mosaic_named_t *attrs;
  const mp_loc_t *loc;  // NULL: not known
  mp_mosaic_block_t *parent;
  mp_mosaic_op_t *next;
};

struct mp_mosaic_block_s {
  uint32_t num_args;
  mp_mosaic_value_t *args;
  mp_mosaic_op_t *first, *last;
  mp_mosaic_op_t *parent_op;     // NULL: a function's body
  const mp_mosaic_func_t *func;  // whose body it is; NULL: a region of an op
};

struct mp_mosaic_func_s {
  mp_str_t name;
  const mp_mosaic_type_t *type;  // FUNCTION
  mp_mosaic_block_t *body;
  mp_mosaic_named_t *attrs;  // iteration_bounds, window_params, ...
  uint32_t num_attrs;
  uint32_t num_values;  // ids of its values are below this
  const mp_loc_t *loc;
  mp_mosaic_func_t *next;
};

enum { MP_MOSAIC_OLDEST_VERSION = 2, MP_MOSAIC_NEWEST_VERSION = 15 };

typedef struct {
  mp_arena_t *arena;  // owned
  int64_t version;    // of stable_mosaic: MP_MOSAIC_NEWEST_VERSION, to which readers convert
  mp_str_t name;      // of the module, "" if it has none
  MP_QUEUE(mp_mosaic_func_t) funcs;
} mp_mosaic_module_t;

// Frees the module. NULL is allowed.
void mp_mosaic_module_release(mp_mosaic_module_t *module);
// The function of this name; NULL: there is none.
const mp_mosaic_func_t *mp_mosaic_find_func(const mp_mosaic_module_t *module, mp_str_t name);
// The kernel: the function with a grid or windows, or else the only one, or the last; NULL: none.
const mp_mosaic_func_t *mp_mosaic_find_kernel(const mp_mosaic_module_t *module);
// The ops of a block in an array of the arena, since blocks have no links backwards; NULL: out of
// memory.
const mp_mosaic_op_t **mp_mosaic_block_ops(const mp_mosaic_block_t *block, mp_arena_t *arena,
                                           uint32_t *out_count);
// The attribute of this name in a list of named ones; NULL: it is absent.
const mp_mosaic_attr_t *mp_mosaic_attr(const mp_mosaic_named_t *items, uint32_t count,
                                       const char *name);
static inline const mp_mosaic_attr_t *mp_mosaic_op_attr(const mp_mosaic_op_t *op,
                                                        const char *name) {
  return mp_mosaic_attr(op->attrs, op->num_attrs, name);
}
// An integer or boolean; the list of an INTS attribute (or of an ARRAY of INT).
int64_t mp_mosaic_op_int(const mp_mosaic_op_t *op, const char *name, int64_t when_absent);
// How many operands are in a segment of operandSegmentSizes.
uint32_t mp_mosaic_op_segment(const mp_mosaic_op_t *op, uint32_t index, uint32_t when_absent);
// The operand in a segment of at most one; NULL: it is empty, or absent.
mp_mosaic_value_t *mp_mosaic_op_optional(const mp_mosaic_op_t *op, uint32_t index);

// What tpu.wait_dma and tpu.wait_dma2 wait for: the bytes of `view` at a semaphore of this device.
typedef struct {
  mp_mosaic_value_t *semaphore, *view;
} mp_mosaic_awaited_t;
// For other ops, and for ops that are not verified, both may be NULL.
mp_mosaic_awaited_t mp_mosaic_op_awaited(const mp_mosaic_op_t *op);
// Makes an error about an op: "<message> [tpu.matmul, kernel.py:12:7 (flash)]".
MP_NODISCARD MP_PRINTF(3, 4) mp_status_t
    mp_mosaic_op_error(const mp_mosaic_op_t *op, mp_status_code_t code, const char *format, ...);
// The same of an op that a TPU's compiler refuses: UNIMPLEMENTED. The message has "Mosaic" in it;
// with the line of the location that is added, JAX raises a MosaicError.
MP_NODISCARD MP_PRINTF(2, 3) mp_status_t
    mp_mosaic_op_refused(const mp_mosaic_op_t *op, const char *format, ...);

// Checks a module that a reader has made: numbers of operands, results and regions, types of
// operands, attributes that an op needs, that each block ends in the op that its parent asks for.
// Passes after it may rely on all of that. INVALID_ARGUMENT or UNIMPLEMENTED by mp_mosaic_op_error.
MP_NODISCARD mp_status_t mp_mosaic_verify(const mp_mosaic_module_t *module);

// Appends the module as text in MLIR's generic form, which the reader accepts.
void mp_mosaic_print(const mp_mosaic_module_t *module, mp_strbuf_t *out);

#endif  // MINIPOD_SIM_MOSAIC_IR_MOSAIC_IR_H_
