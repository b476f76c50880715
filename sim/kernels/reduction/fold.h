// A fold is the step acc = f(acc, x) of a reduction, done for many independent lanes at once.
//
// `f` is a region with 2n arguments: n accumulators and n elements. Regions with one operand that
// are of a known kind (add, multiply, minimum, maximum, and, or, xor) become one loop in the
// computing type: sums and products of bf16 and f16 accumulate in f32 and are rounded once at the
// end. All other regions run exactly as written, in their own types.
//
// Elements and start values are converted to the accumulators' types when they are loaded.
#ifndef MINIPOD_SIM_KERNELS_REDUCTION_FOLD_H_
#define MINIPOD_SIM_KERNELS_REDUCTION_FOLD_H_

#include "sim/kernels/elementwise/elementwise.h"
#include "sim/kernels/elementwise/region.h"
#include "sim/kernels/kernel.h"
#include "sim/kernels/reduction/fold_blocks.h"
#include "sim/kernels/source.h"

enum { MP_FOLD_LANES = MP_REGION_MAX_LANES };

// One operand's types and the conversions between them.
typedef struct {
  size_t in_size, init_size, acc_size, out_size;
  mp_ew_t load, load_init, store;
  bool converts, converts_init, converts_result;
} mp_fold_operand_t;

typedef struct {
  uint32_t num_operands;
  mp_reduce_kind_t kind;    // CUSTOM: through `fn`
  mp_ew_loop_t loop;        // kinds other than CUSTOM
  mp_dtype_t type;          // of their accumulators
  mp_fold_blocks_t blocks;  // of some of them
  mp_fold_row_loop_t row;   // the same, of elements of the operand's type
  const mp_region_fn_t *fn;
  mp_fold_operand_t *operands;
  size_t scratch_bytes;
} mp_fold_t;

// A part's working memory, laid out in its scratch by mp_fold_work. Each array has room for
// MP_FOLD_LANES elements of any type.
typedef struct {
  char **acc;             // [num_operands]
  char **x;               // [num_operands]
  char **spare;           // [num_operands]
  const char **loaded;    // [num_operands], for the caller: where operands were loaded
  int64_t *offsets;       // for the caller: one number per lane
  int64_t distance;       // for the caller: between all neighbours of these; 0: not known
  const void **pointers;  // inputs of the region
  void *region_scratch;
  mp_source_t *source;  // NULL, unless the caller sets it: elements are read from an array
} mp_fold_work_t;

// The types of elements, start values and results, [num_operands] each.
typedef struct {
  uint32_t num_operands;
  const mp_type_t *const *in, *const *init, *const *out;
} mp_fold_types_t;

// Makes the fold of an op by its first region, of which the verifier has checked that it fits.
MP_NODISCARD mp_status_t mp_fold_create(mp_arena_t *arena, const mp_op_t *op,
                                        const mp_fold_types_t *types, mp_fold_t *out_fold);

// The same for an op that has its elements and then its start values as operands, and one region.
MP_NODISCARD mp_status_t mp_fold_create_of(mp_arena_t *arena, const mp_op_t *op,
                                           mp_fold_t *out_fold);

// Lays out the working memory in `scratch`, which has fold->scratch_bytes.
void mp_fold_work(const mp_fold_t *fold, void *scratch, mp_fold_work_t *out_work);

// Folds one element into each of `lanes` lanes: acc = f(acc, x). `x` may be any arrays of the
// accumulators' types. `captures` are the region's captured scalars.
void mp_fold_step(const mp_fold_t *fold, const mp_fold_work_t *work, int64_t lanes,
                  char *const *acc, const char *const *x, const void *const *captures);

// The same with the arguments exchanged, acc = f(first, acc), for start values, which come first.
void mp_fold_start(const mp_fold_t *fold, const mp_fold_work_t *work, int64_t lanes,
                   const char *const *first, const void *const *captures);

// Sets the accumulators `acc` of operand k to the start value `init`.
void mp_fold_fill(const mp_fold_t *fold, uint32_t k, int64_t lanes, const void *init, char *acc);

// Where lanes have their elements: at `src` plus the lane's offset plus `shift`, counted in
// elements. If `contiguous`, the lanes are neighbours, and only offsets[0] counts.
typedef struct {
  const void *src;
  const int64_t *offsets;
  int64_t shift;
  bool contiguous;
} mp_fold_place_t;

// Loads an element of operand k for each lane, in the accumulators' type. Returns where the
// elements are: in `dst`, or in the operand itself if they are contiguous and need no conversion.
const char *mp_fold_load(const mp_fold_t *fold, const mp_fold_work_t *work, uint32_t k,
                         int64_t lanes, const mp_fold_place_t *place, char *dst);

// The number of elements per lane that mp_fold_load_runs can load at once, for up to
// MP_FOLD_RUN_LANES lanes.
enum { MP_FOLD_RUN_LANES = 128 };
int64_t mp_fold_run_length(const mp_fold_t *fold);
// Loads `count` neighbours of each lane at once, for lanes that are far apart and fold their
// neighbours one after the other. Element t of lane i goes to x[k][t * lanes + i], in the
// accumulators' type.
void mp_fold_load_runs(const mp_fold_t *fold, const mp_fold_work_t *work, uint32_t k, int64_t lanes,
                       int64_t count, const mp_fold_place_t *place);

// Folds `length` >= 1 contiguous elements of `src`, from number `first` on, into one, `out`, of the
// accumulator's type, without a start value. For folds of one operand and a known kind; the order
// is a tree whose form depends on the length only.
void mp_fold_row(const mp_fold_t *fold, const mp_fold_work_t *work, const void *src, int64_t first,
                 int64_t length, char *out);

// Runs of `length` elements each, at most MP_FOLD_ROW_MAX, one after the other at `x`. `row` folds
// one run; it is the fold's own loop, or a loop for elements of another type, of `in_size` bytes.
typedef struct {
  mp_fold_row_loop_t row;
  size_t in_size;
  const void *x;
  int64_t length, count;
} mp_fold_rows_t;

// out[i] = f(start, mp_fold_row(run i)).
void mp_fold_rows(const mp_fold_t *fold, const mp_fold_rows_t *rows, const void *start, void *out);

// The longest run that mp_fold_row sums in lanes. Longer ones are divided into halves first, so
// that the rounding errors of long sums stay small.
enum { MP_FOLD_ROW_MAX = 32 * MP_FOLD_LANES };
// The elements [first, last) of one of `num_pieces` pieces, a power of two, of a run that
// mp_fold_row would fold: the halves, or their halves, and so on. Folding each piece, and then
// neighbouring results until one is left, gives the same. The pieces have more than MP_FOLD_ROW_MAX
// elements.
void mp_fold_row_piece(int64_t length, uint32_t num_pieces, uint32_t piece, int64_t *out_first,
                       int64_t *out_last);

// Writes the accumulators of operand k to `out`, converted to the result's type.
void mp_fold_store(const mp_fold_t *fold, uint32_t k, int64_t lanes, const char *acc, void *out);

#endif  // MINIPOD_SIM_KERNELS_REDUCTION_FOLD_H_
