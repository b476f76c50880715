// Operations of ops that compute element by element, reduce, sort, transform or draw numbers.
#include <math.h>

#include "sim/work/work_impl.h"

// ---- element by element ----

// Whether callers of the cost analysis, used to XLA's, expect the op among the transcendentals.
static bool work_count_is_transcendental(const mp_op_t *op) {
  const bool is_costly = mp_op_info(op->code)->cost == MP_OP_COST_COSTLY;
  const bool is_root = op->code == MP_OP_SQRT || op->code == MP_OP_RSQRT;
  return (is_costly && op->code != MP_OP_REMAINDER) || is_root;
}

// The type that an elementwise op computes in: a comparison's result is none.
static mp_dtype_t work_count_dtype(const mp_op_t *op) {
  return op->num_operands == 0 ? op->results[0].type->dtype : op->operands[0]->type->dtype;
}

static void work_count_elements(const mp_op_t *op, double count, mp_work_t *work) {
  const mp_dtype_t dtype = work_count_dtype(op);
  if (!work_count_is_transcendental(op)) {
    mp_work_add(work, dtype, count);
    return;
  }
  work->transcendentals += count;
  work->vector_transcendentals += count * mp_work_weight(dtype);
}

void mp_work_count_elementwise(const mp_op_t *op, mp_work_t *work) {
  double count = 0;
  for (uint32_t i = 0; i < op->num_results; ++i) count += mp_work_result_count(op, i);
  work_count_elements(op, count, work);
}

// Adds the work of a function on elements, the region of a reduction for example, `times` times. A
// region without operations, one that takes one of its arguments, counts as one.
static void work_count_add_region(mp_work_t *work, const mp_block_t *region, double times) {
  const double flops = work->flops, transcendentals = work->transcendentals;
  for (const mp_op_t *op = region->first; op != NULL; op = op->next) {
    if (mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE)) work_count_elements(op, times, work);
  }
  if (work->flops != flops || work->transcendentals != transcendentals) return;
  mp_work_add(work, region->num_args == 0 ? MP_DTYPE_F32 : region->args[0].type->dtype, times);
}

void mp_work_count_map(const mp_op_t *op, mp_work_t *work) {
  work_count_add_region(work, op->regions[0], mp_work_result_count(op, 0));
}

// ---- reductions and windows ----

void mp_work_count_reduce(const mp_op_t *op, mp_work_t *work) {
  work_count_add_region(work, op->regions[0], mp_work_operand_count(op, 0));
}

// The steps from one element to the reduction of a window of `size` elements. Where neighbouring
// windows overlap, ones of 2, 4, 8, ... elements are made of each other.
static double work_count_window_steps(const mp_op_t *op) {
  const mp_index_list_t sizes = mp_op_ints(op, MP_ATTR_WINDOW_DIMENSIONS);
  double steps = 1;
  for (uint32_t d = 0; d < sizes.count; ++d) {
    const double size = (double)sizes.values[d];
    if (size > 1) steps *= fmin(size, 2 * ceil(log2(size)));
  }
  return steps;
}

void mp_work_count_reduce_window(const mp_op_t *op, mp_work_t *work) {
  work_count_add_region(work, op->regions[0],
                        mp_work_result_count(op, 0) * work_count_window_steps(op));
}

// Each window selects one of its elements, to which one element of the source is added.
void mp_work_count_select_and_scatter(const mp_op_t *op, mp_work_t *work) {
  const double windows = mp_work_operand_count(op, 1);
  work_count_add_region(work, op->regions[0], windows * work_count_window_steps(op));
  work_count_add_region(work, op->regions[1], windows);
}

// Per element: the sums of x and x^2 are 3 operations, scaling and shifting 4; a gradient has two
// more sums, of matmuls, and a longer formula.
void mp_work_count_batch_norm(const mp_op_t *op, mp_work_t *work) {
  const double each = op->code == MP_OP_BATCH_NORM_INFERENCE  ? 4
                      : op->code == MP_OP_BATCH_NORM_TRAINING ? 7
                                                              : 11;
  mp_work_add(work, op->operands[0]->type->dtype, each * mp_work_operand_count(op, 0));
}

// ---- scatter, sort ----

void mp_work_count_scatter(const mp_op_t *op, mp_work_t *work) {
  const uint32_t num_inputs = op->num_operands / 2;
  work_count_add_region(work, op->regions[0], mp_work_operand_count(op, num_inputs + 1));
}

void mp_work_count_sort(const mp_op_t *op, mp_work_t *work) {
  const mp_type_t *type = op->operands[0]->type;
  int64_t dimension = mp_op_int(op, MP_ATTR_DIMENSION, -1);
  if (dimension < 0) dimension += type->rank;
  const double line = type->rank == 0 ? 1 : (double)type->dims[dimension];
  const double depth = fmax(ceil(log2(fmax(line, 1))), 1);
  work_count_add_region(work, op->regions[0], mp_work_operand_count(op, 0) * depth);
}

// ---- transforms ----

// 5 n log2 n for n complex numbers; half of it where one side is real.
void mp_work_count_fft(const mp_op_t *op, mp_work_t *work) {
  const mp_index_list_t lengths = mp_op_ints(op, MP_ATTR_FFT_LENGTH);
  const uint32_t type = mp_op_enum(op, MP_ATTR_FFT_TYPE, MP_FFT_FFT);
  const bool is_real = type == MP_FFT_RFFT || type == MP_FFT_IRFFT;
  double length = 1;
  for (uint32_t d = 0; d < lengths.count; ++d) length *= (double)lengths.values[d];
  const double count =
      type == MP_FFT_RFFT ? mp_work_operand_count(op, 0) : mp_work_result_count(op, 0);
  const double flops = 5 * count * log2(fmax(length, 2)) * (is_real ? 0.5 : 1);
  mp_work_add(work, mp_dtype_real_part(op->results[0].type->dtype), flops);
}

// ---- random numbers ----

// Operations for a word of 32 bits: Threefry makes two words in 20 rounds of 5 operations and 5
// changes of 3, Philox four words in 10 rounds of 10.
enum { THREEFRY_WORD = 58, PHILOX_WORD = 25 };

static double work_count_words(const mp_op_t *op, uint32_t result) {
  return mp_work_result_count(op, result) *
         fmax(mp_dtype_bits(op->results[result].type->dtype) / 32.0, 1);
}

void mp_work_count_rng(const mp_op_t *op, mp_work_t *work) {
  mp_work_add(work, MP_DTYPE_U32, PHILOX_WORD * work_count_words(op, 0));
  if (mp_op_enum(op, MP_ATTR_RNG_DISTRIBUTION, MP_RNG_UNIFORM) != MP_RNG_NORMAL) return;
  // A logarithm, a root and a sine or cosine for each of two numbers.
  work->transcendentals += 2 * mp_work_result_count(op, 0);
  work->vector_transcendentals += 2 * work_count_words(op, 0);
}

void mp_work_count_random_bits(const mp_op_t *op, mp_work_t *work) {
  const bool is_threefry =
      mp_op_enum(op, MP_ATTR_RNG_ALGORITHM, MP_RNG_DEFAULT) == MP_RNG_THREE_FRY;
  const double each = is_threefry ? THREEFRY_WORD : PHILOX_WORD;
  mp_work_add(work, MP_DTYPE_U32, each * work_count_words(op, 1));
}
