// Tiles: a fused op as steps over a few hundred elements at a time, so that intermediate values
// stay in the cache.
//
// All arrays that a fused op computes have equally many elements, and step k computes the elements
// [i, i + n) of one of them from the same elements of others. A step reads and writes *slots*. A
// slot is an array of the tile's elements: a register (in the scratch memory), or a part of an
// operand or a result. Operands that are smaller arrays, or in another order, are read through
// views.
//
// If the op reduces, the arrays are divided into rows, each of which becomes one element of a
// *column*. A tile has whole rows then, and slots of columns have an element for each of them.
//
// Registers hold narrow floating-point numbers (f4 ... bf16) as f32, rounded to their type after
// each step; only results are narrow. The bits are those of the ops done one by one.
#ifndef MINIPOD_SIM_KERNELS_FUSED_TILE_TILE_H_
#define MINIPOD_SIM_KERNELS_FUSED_TILE_TILE_H_

#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/status.h"
#include "sim/ir/module.h"
#include "sim/kernels/elementwise/elementwise.h"
#include "sim/kernels/fused/tile/view.h"
#include "sim/kernels/kernel.h"
#include "sim/kernels/reduction/fold.h"
#include "sim/native/native.h"

typedef enum {
  MP_TILE_REGISTER,
  MP_TILE_OPERAND,  // operand `index` of the kernel, read in its own order
  MP_TILE_RESULT,   // result `index`
} mp_tile_place_t;

typedef struct {
  mp_tile_place_t place;
  uint32_t index;    // OPERAND, RESULT: which
  uint32_t size;     // bytes of an element, as held here
  uint32_t offset;   // REGISTER: where it begins, in bytes per lane; of a scalar, in bytes
  bool is_constant;  // REGISTER: filled once, before the first tile
  bool is_scalar;    // REGISTER: has only one element, because no step reads more
  bool is_column;    // an element for each row
  bool is_cyclic;    // REGISTER: the same in each tile; written by the cyclic steps, which run
                     // first
} mp_tile_slot_t;

typedef enum {
  MP_TILE_COMPUTE,  // out = an elementwise op of in[0], in[1], in[2]
  MP_TILE_LOAD,     // out = elements of an operand through a view; its slot may point into it
  MP_TILE_FILL,     // out = the element at view->offset of an operand, or `element`, everywhere
  MP_TILE_COUNT,    // out = elements of an iota through a view
  MP_TILE_WIDEN,    // out = in[0], narrow, as f32
  MP_TILE_ROUND,    // out = in[0], f32, rounded to `dtype`; may be the same slot
  MP_TILE_NARROW,   // out = in[0], f32, as `dtype`
  MP_TILE_COPY,     // out = in[0]
  MP_TILE_REDUCE,   // out, a column = the rows of in[0] and the start value in[1] folded
  MP_TILE_SPREAD,   // out = in[0], a column, with each element repeated for its row
} mp_tile_kind_t;

// Which inputs of a loop may be scalars, in bits: the first choice first.
enum { MP_TILE_NUM_SCALARS = 4 };
static const uint32_t mp_tile_scalars[MP_TILE_NUM_SCALARS] = {5, 1, 2, 4};

typedef struct {
  mp_tile_kind_t kind;
  uint32_t in[MP_EW_MAX_INPUTS], out;  // numbers of slots
  mp_dtype_t dtype;                    // of a COMPUTE: what it computes in, with `code`
  mp_opcode_t code;                    // COMPUTE: the op; COUNT if it is not a single op
  mp_ew_t ew;                          // COMPUTE
  // COMPUTE: the same op for machine code. For a product and a sum it is the sum; in[0] * in[1] is
  // operand `product`, 1 or 2, of the sum, and in[2] the other one.
  mp_native_op_t native;
  uint32_t product;
  uint32_t scalars;  // bit k: in[k] is one element
  // COMPUTE: loops that read one element of each input with a bit set in mp_tile_scalars.
  mp_ew_loop_t with_scalars[MP_TILE_NUM_SCALARS];
  uint32_t operand;       // LOAD, FILL
  const mp_view_t *view;  // LOAD, FILL, COUNT
  // LOAD: whether it reads blocks (mp_tile_blocks_t), and the bytes per lane of the blocks before
  // its own.
  bool is_block;
  uint32_t block;
  // LOAD: whether it puts the elements into the memory of a later result, and that result's slot.
  // Then the result's memory is written while an operand is read. Long loads and long stores in
  // turn would leave memory idle.
  bool lands;
  uint32_t landing;
  const void *element;    // FILL: NULL if it is the operand's
  const mp_fold_t *fold;  // REDUCE
  // REDUCE: folds a row of in[0]; elements may be narrower than the accumulator. NULL if
  // mp_fold_row does it.
  mp_fold_row_loop_t fold_row;
} mp_tile_step_t;

// Steps that have become machine code.
typedef struct {
  uint32_t end;    // after the last of the steps
  bool has_loads;  // some steps are loads, which run before the code
  mp_native_map_fn_t map;
} mp_tile_code_t;

// The state that changes while threads run a program: its heat, and the code that is made once it
// is hot.
typedef struct {
  mp_native_heat_t heat;
  _Atomic bool is_ready;  // if true, threads may read `codes`, which do not change any more
  mp_tile_code_t *codes;  // [num_steps]: of the first step of each piece of code; `map` or NULL
} mp_tile_native_t;

// The order of tiles if operands are read through views that transpose long rows. A block is a tile
// of `lanes` elements from column c on, of each of the rows r, r + 1, ...; the next block begins at
// column c + lanes. The first tile of a block loads the block through the view, for all of its
// tiles.
typedef struct {
  int64_t row;       // elements of a row; 0 if tiles follow each other and there are no blocks
  int64_t num_rows;  // of the enclosing dimension; no block crosses its end
  uint32_t height;   // the most rows of a block
  uint32_t lanes;
  uint32_t bytes;  // per lane, of the blocks that are kept
  size_t offset;   // where the blocks begin in the scratch memory
} mp_tile_blocks_t;

typedef struct {
  int64_t count;   // elements of the arrays
  int64_t row;     // elements of a row; 1 without rows
  int64_t cycle;   // elements after which all cyclic slots repeat; a multiple of `row`
  uint32_t lanes;  // of a tile; a multiple of `cycle`
  uint32_t room;   // lanes for which registers have room
  uint32_t num_slots, num_steps, num_first, num_cyclic;
  uint32_t num_landing;  // steps up to and including the load that lands; 0: none does
  mp_tile_slot_t *slots;
  // The slots in operands and results: their address changes with each tile. Most slots are
  // registers.
  uint32_t num_moving;
  const uint32_t *moving;
  // The first num_first are done once for each part; the next num_cyclic for each mp_tile_run,
  // because all of its tiles begin at the same place of a cycle; the others for each tile.
  mp_tile_step_t *steps;
  size_t scalars, pointers, fold;  // where they begin in the scratch memory
  size_t scratch_bytes;
  mp_tile_blocks_t blocks;
  const uint32_t *in_place;  // [results]: for each as mp_kernel_t's of result 0
  uint32_t weight;           // of an element: about how many simple operations it takes
  mp_tile_native_t *native;
} mp_tile_program_t;

// Whether a tile is one row, so that an element that is repeated for a row is a scalar in the tile.
// Shorter rows would make too many tiles.
static inline bool mp_tile_has_one_row(const mp_tile_program_t *program) {
  return program->row >= 512;
}

// Makes the steps of the ops of a minipod.fusion's region before `end`; the results are
// `num_results` operands of `end`, from operand `first` on. UNIMPLEMENTED, by mp_op_error, for an
// op that cannot be fused (README.md of this room says which can).
MP_NODISCARD mp_status_t mp_tile_compile(mp_arena_t *arena, const mp_block_t *block,
                                         const mp_op_t *end, uint32_t first, uint32_t num_results,
                                         mp_tile_program_t *out_program);

// The state of a part's run: where the current tile's part of each slot is.
typedef struct {
  const mp_tile_program_t *program;
  const mp_kernel_call_t *call;
  char **at;   // [num_slots]
  bool lands;  // loads may use the results' memory, because no operand shares it
} mp_tile_run_t;

// Begins a part: lays out call->scratch, which has program->scratch_bytes, and does the steps that
// are done once. The call must stay as long as tiles are run; its results may change meanwhile.
mp_tile_run_t mp_tile_begin(const mp_tile_program_t *program, const mp_kernel_call_t *call);
// Makes machine code of runs of steps, where it can; for one thread at a time.
void mp_tile_make_native(const mp_tile_program_t *program);

// mp_tile_run computes multiples of so many elements.
static inline int64_t mp_tile_unit(const mp_tile_program_t *program) {
  return program->blocks.row != 0 ? program->blocks.row : program->row;
}

// Computes the elements [begin, end) of all results, which are whole units.
void mp_tile_run(const mp_tile_run_t *run, int64_t begin, int64_t end);

// Whether the op is a reduction that can be a step; `out_row` gets the number of elements of a row.
bool mp_tile_reduces(const mp_op_t *op, int64_t *out_row);

// Whether the op needs no step: readers of its result read its operand instead, through a view.
bool mp_tile_looks_through(const mp_op_t *op);

// Whether the op is one that steps compute, element by element.
bool mp_tile_computes(const mp_op_t *op);

#endif  // MINIPOD_SIM_KERNELS_FUSED_TILE_TILE_H_
