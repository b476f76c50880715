// A fold: the step acc = f(acc, x) of reductions, over many independent lanes at once.
//
// `f` is a region with 2n arguments (n accumulators, n elements). Recognised single-operand regions
// (add, multiply, minimum, maximum, and, or, xor) become one loop in the computing type: bf16 and
// f16 sums and products accumulate in f32 and are rounded once at the end. All others run exactly
// as written, in the region's types.
//
// Elements and start values are converted to the accumulators' types while loading.
#ifndef MINIPOD_SIM_KERNELS_REDUCTION_FOLD_H_
#define MINIPOD_SIM_KERNELS_REDUCTION_FOLD_H_

#include "sim/kernels/elementwise/elementwise.h"
#include "sim/kernels/elementwise/region.h"
#include "sim/kernels/kernel.h"

enum { MP_FOLD_LANES = MP_REGION_MAX_LANES };

// One operand's types and the conversions between them.
typedef struct {
  size_t in_size, init_size, acc_size, out_size;
  mp_ew_t load, load_init, store;
  bool converts, converts_init, converts_result;
} mp_fold_operand_t;

typedef struct {
  uint32_t num_operands;
  mp_reduce_kind_t kind;  // CUSTOM: through `fn`
  mp_ew_loop_t loop;      // kinds other than CUSTOM
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
  const void **pointers;  // inputs of the region
  void *region_scratch;
} mp_fold_work_t;

// For an op with operands x_0 .. x_{n-1}, start values init_0 .. init_{n-1} of these types, and
// results of these types. `region` has been verified to fit.
MP_NODISCARD mp_status_t mp_fold_create(mp_arena_t *arena, const mp_op_t *op,
                                        const mp_block_t *region, uint32_t num_operands,
                                        const mp_type_t *const *in, const mp_type_t *const *init,
                                        const mp_type_t *const *out, mp_fold_t *out_fold);

void mp_fold_work(const mp_fold_t *fold, void *scratch, mp_fold_work_t *out_work);

// acc[k][0..lanes) = f(acc, x). `x` may be any arrays of the accumulators' types.
void mp_fold_step(const mp_fold_t *fold, const mp_fold_work_t *work, int64_t lanes,
                  char *const *acc, const char *const *x, const void *const *captures);

// acc = f(x, acc), the other way round (for start values, which come first).
void mp_fold_start(const mp_fold_t *fold, const mp_fold_work_t *work, int64_t lanes,
                   const char *const *first, const void *const *captures);

// All accumulators of operand k := the start value.
void mp_fold_fill(const mp_fold_t *fold, uint32_t k, int64_t lanes, const void *init, char *acc);

// `lanes` elements of operand k at `src` plus each lane's offset (in elements), as accumulators do
// store them: into `dst`, or in place. Returns where they are.
const char *mp_fold_load(const mp_fold_t *fold, const mp_fold_work_t *work, uint32_t k,
                         int64_t lanes, const void *src, const int64_t *offsets, int64_t shift,
                         bool contiguous, char *dst);

// Elements that mp_fold_load_runs takes of each lane, of up to MP_FOLD_RUN_LANES lanes.
enum { MP_FOLD_RUN_LANES = 128 };
int64_t mp_fold_run_length(const mp_fold_t *fold);
// For lanes that are far apart, with neighbours to be folded one after the other: loads `count` of
// them at once. Element t of lane i comes to x[k][t * lanes + i], as an accumulator.
void mp_fold_load_runs(const mp_fold_t *fold, const mp_fold_work_t *work, uint32_t k, int64_t lanes,
                       int64_t count, const void *src, const int64_t *offsets, int64_t shift);

// out[0..lanes) = the accumulators of operand k in the result's type.
void mp_fold_store(const mp_fold_t *fold, uint32_t k, int64_t lanes, const char *acc, void *out);

#endif  // MINIPOD_SIM_KERNELS_REDUCTION_FOLD_H_
