#include "sim/kernels/reduction/best.h"

#include <string.h>

#include "sim/base/assert.h"
#include "sim/base/table.h"
#include "sim/base/vector.h"
#include "sim/kernels/reduction/fold.h"
#include "sim/kernels/shape.h"

// ---- Recognising ----

static bool best_has_types(const mp_op_t *op) {
  const mp_block_t *region = op->regions[0];
  for (uint32_t k = 0; k < 2; ++k) {
    const mp_dtype_t dtype = region->args[k].type->dtype;
    if (mp_op_operand_type(op, k)->dtype != dtype || region->args[k + 2].type->dtype != dtype ||
        mp_op_operand_type(op, k + 2)->dtype != dtype || mp_op_result_type(op, k)->dtype != dtype) {
      return false;
    }
  }
  return true;
}

static bool best_counts_along(const mp_op_t *op) {
  const mp_op_t *iota = op->operands[1]->op;
  const mp_index_list_t dimensions = mp_op_ints(op, MP_ATTR_DIMENSIONS);
  if (iota == NULL || iota->code != MP_OP_IOTA || dimensions.count != 1) return false;
  // The numbers must fit the type: they are compared as they are.
  const mp_dtype_t dtype = iota->results[0].type->dtype;
  const int64_t most = dtype == MP_DTYPE_S32                            ? INT32_MAX
                       : dtype == MP_DTYPE_U32                          ? UINT32_MAX
                       : dtype == MP_DTYPE_S64 || dtype == MP_DTYPE_U64 ? INT64_MAX
                                                                        : 0;
  return mp_op_int(iota, MP_ATTR_IOTA_DIMENSION, -1) == dimensions.values[0] &&
         iota->results[0].type->dims[dimensions.values[0]] <= most;
}

bool mp_best_find(const mp_op_t *op, mp_best_t *out_best) {
  if (op->code != MP_OP_REDUCE || op->num_operands != 4 || op->regions[0]->num_args != 4) {
    return false;
  }
  if (!best_counts_along(op) || !best_has_types(op)) return false;
  const mp_dtype_t dtype = mp_op_operand_type(op, 0)->dtype;
  if (mp_dtype_is_complex(dtype)) return false;
  const bool is_min = mp_best_is_choice(op->regions[0], true);
  if (!is_min && !mp_best_is_choice(op->regions[0], false)) return false;
  mp_best_t best = {.is_min = is_min, .size = mp_dtype_size(dtype)};
  best.position_size = mp_dtype_size(mp_op_operand_type(op, 1)->dtype);
  best.type = mp_ew_computing_type(dtype);
  best.converts = best.type != dtype;
  if (best.converts && !mp_ew_bind_convert(dtype, best.type, &best.load)) return false;
  *out_best = best;
  return true;
}

// ---- Loops ----

#define TYPES(X)   \
  X(BOOL, uint8_t) \
  X(U8, uint8_t)   \
  X(U16, uint16_t) \
  X(U32, uint32_t) \
  X(U64, uint64_t) \
  X(S8, int8_t)    \
  X(S16, int16_t)  \
  X(S32, int32_t)  \
  X(S64, int64_t)  \
  X(F32, float)    \
  X(F64, double)
_Static_assert(MP_ROWS(TYPES) == 1 + MP_ROWS(MP_DTYPES_SIGNED) + MP_ROWS(MP_DTYPES_UNSIGNED) +
                                     MP_ROWS(MP_DTYPES_FLOATS),
               "loops for booleans and all real numbers");

// BLOCK: the elements that are compared before the place of the best is searched. WIDE: the bytes
// of the accumulators of a block, several registers, so that their steps overlap.
enum { BLOCK = 1024, WIDE = 256, CHUNK = 64 };

// The outcome of a block: the best so far is better than its elements, equals one, or is a new one
// of them.
typedef enum { WORSE, SAME, BETTER, NOT_A_NUMBER } outcome_t;

// block_...: folds `n` elements into *best, which is not set yet if `is_first`. find_...: the first
// or last place of a number, or of any NaN; one must exist. step_...: folds row number `r` into `n`
// lanes: the best elements, and the rows of the values and positions.
#define LOOPS(name, T, way, IS_BETTER)                                                         \
  MP_VECTOR static outcome_t block_##way##_##name(const void *row, int64_t n, bool is_first,   \
                                                  void *best) {                                \
    enum { LANES = WIDE / sizeof(T) };                                                         \
    const T *x = row;                                                                          \
    T acc[LANES], old = is_first ? x[0] : *(T *)best;                                          \
    int64_t i = 0;                                                                             \
    for (int64_t k = 0; k < LANES; ++k) acc[k] = x[0];                                         \
    for (; i + LANES <= n; i += LANES) {                                                       \
      MP_INDEPENDENT for (int64_t k = 0; k < LANES; ++k) {                                     \
        const T a = acc[k], v = x[i + k];                                                      \
        acc[k] = ((a IS_BETTER v) | (a != a)) ? a : v;                                         \
      }                                                                                        \
    }                                                                                          \
    T here = acc[0];                                                                           \
    for (int64_t k = 1; k < LANES; ++k)                                                        \
      here = ((here IS_BETTER acc[k]) | (here != here)) ? here : acc[k];                       \
    for (; i < n; ++i) here = ((here IS_BETTER x[i]) | (here != here)) ? here : x[i];          \
    const bool is_better = is_first || here IS_BETTER old;                                     \
    if (is_better || here != here) *(T *)best = here;                                          \
    return here != here ? NOT_A_NUMBER : is_better ? BETTER : here == old ? SAME : WORSE;      \
  }                                                                                            \
  MP_VECTOR static void step_##way##_##name(const void *row, int64_t n, int32_t r, void *best, \
                                            int32_t *values, int32_t *positions) {             \
    const T *x = row;                                                                          \
    T *acc = best;                                                                             \
    MP_INDEPENDENT for (int64_t i = 0; i < n; ++i) {                                           \
      const T a = acc[i], v = x[i];                                                            \
      const bool keeps = (a IS_BETTER v) | (a != a), ties = a == v;                            \
      acc[i] = keeps ? a : v;                                                                  \
      values[i] = keeps ? values[i] : r;                                                       \
      positions[i] = (keeps | ties) ? positions[i] : r;                                        \
    }                                                                                          \
  }
#define FIND(name, T)                                                                      \
  MP_VECTOR static bool chunk_##name(const T *x, int64_t n, T best) {                      \
    uint32_t found = 0;                                                                    \
    for (int64_t i = 0; i < n; ++i) {                                                      \
      found |= (uint32_t)((x[i] == best) | ((best != best) & (x[i] != x[i])));             \
    }                                                                                      \
    return found != 0;                                                                     \
  }                                                                                        \
  static int64_t find_##name(const void *row, int64_t n, bool is_last, const void *best) { \
    const T *x = row, wanted = *(const T *)best;                                           \
    int64_t at = -1;                                                                       \
    for (int64_t begin = 0; begin < n && (at < 0 || is_last); begin += CHUNK) {            \
      const int64_t end = mp_min_i64(begin + CHUNK, n);                                    \
      if (!chunk_##name(x + begin, end - begin, wanted)) continue;                         \
      for (int64_t i = begin; i < end && (at < 0 || is_last); ++i) {                       \
        if (x[i] == wanted || (wanted != wanted && x[i] != x[i])) at = i;                  \
      }                                                                                    \
    }                                                                                      \
    MP_ASSERT(at >= 0);                                                                    \
    return at;                                                                             \
  }
#define LOOPS_OF(name, T) \
  LOOPS(name, T, max, >)  \
  LOOPS(name, T, min, <)  \
  FIND(name, T)
TYPES(LOOPS_OF)

typedef struct {
  outcome_t (*block[2])(const void *row, int64_t n, bool is_first, void *best);
  void (*step[2])(const void *row, int64_t n, int32_t r, void *best, int32_t *values,
                  int32_t *positions);
  int64_t (*find)(const void *row, int64_t n, bool is_last, const void *best);
  size_t size;
} loops_t;

static const loops_t g_loops[MP_DTYPE_COUNT] = {
#define ROW(name, T)                                         \
  [MP_DTYPE_##name] = {{block_max_##name, block_min_##name}, \
                       {step_max_##name, step_min_##name},   \
                       find_##name,                          \
                       sizeof(T)},
    TYPES(ROW)
#undef ROW
};

// ---- Rows and lanes ----

// Elements [begin, begin + n) of an array, in the type in which they are compared.
static const void *best_load(const mp_best_t *best, const void *array, int64_t begin, int64_t n,
                             void *scratch) {
  const void *in[] = {(const char *)array + begin * (int64_t)best->size};
  if (!best->converts) return in[0];
  mp_ew_run(&best->load, n, in, scratch);
  return scratch;
}

// Finds, in a row of `length` >= 1 neighbours, the places of the value and of the position with
// which a fold ends. The scratch has room for a block.
static void best_row(const mp_best_t *best, const void *row, int64_t length, void *scratch,
                     int64_t *out_value, int64_t *out_position) {
  const loops_t *loops = &g_loops[best->type];
  MP_ASSERT(loops->find != NULL && length > 0);
  uint64_t most = 0;
  int64_t first = 0, last = 0;  // the blocks with the first place of the best, and with the last
  for (int64_t begin = 0; begin < length; begin += BLOCK) {
    const int64_t n = mp_min_i64(length - begin, BLOCK);
    const void *x = best_load(best, row, begin, n, scratch);
    mp_prefetch(row, (begin + BLOCK) * (int64_t)best->size, n * (int64_t)best->size);
    const outcome_t outcome = loops->block[best->is_min](x, n, begin == 0, &most);
    if (outcome == BETTER || outcome == NOT_A_NUMBER) first = begin;
    if (outcome != WORSE) last = begin;
    if (outcome == NOT_A_NUMBER) break;
  }
  int64_t n = mp_min_i64(length - first, BLOCK);
  *out_position = first + loops->find(best_load(best, row, first, n, scratch), n, false, &most);
  *out_value = *out_position;
  // Equal numbers have the same bits, except zeros. A NaN ends the search, in the last block.
  const uint64_t sign = UINT64_C(1) << (8 * loops->size - 1);
  if (!mp_dtype_is_float(best->type) || (most & ~sign) != 0) return;
  n = mp_min_i64(length - last, BLOCK);
  *out_value = last + loops->find(best_load(best, row, last, n, scratch), n, true, &most);
}

// In the scratch memory of lanes: the rows of their values, and behind them those of positions.
static int32_t *best_lane_values(void *scratch) {
  return (int32_t *)(void *)((char *)scratch + (size_t)2 * MP_BEST_LANES * 8);
}

// The same for neighbouring lanes, over `length` rows that are `stride` elements apart.
static void best_lanes(const mp_best_t *best, const void *rows, int64_t lanes, int64_t stride,
                       int64_t length, void *scratch) {
  const loops_t *loops = &g_loops[best->type];
  MP_ASSERT(loops->find != NULL && lanes <= MP_BEST_LANES && length > 0 && length <= INT32_MAX);
  char *acc = scratch, *loaded = acc + (size_t)MP_BEST_LANES * 8;
  int32_t *values = best_lane_values(scratch), *positions = values + MP_BEST_LANES;
  memcpy(acc, best_load(best, rows, 0, lanes, loaded), (size_t)lanes * loops->size);
  memset(values, 0, (size_t)lanes * sizeof(*values));
  memset(positions, 0, (size_t)lanes * sizeof(*positions));
  for (int64_t r = 1; r < length; ++r) {
    const void *x = best_load(best, rows, r * stride, lanes, loaded);
    const int64_t size = (int64_t)best->size;
    mp_prefetch(rows, (r + 2) * stride * size, lanes * size);
    loops->step[best->is_min](x, lanes, (int32_t)r, acc, values, positions);
  }
}

bool mp_best_has_way(const mp_fold_axes_t *kept, const mp_fold_axes_t *reduced) {
  enum { SHORTEST_RUN = 16 };
  if (reduced->count < 2 || kept->count == 0 || reduced->rank != 1) return false;
  if (reduced->strides[0] == 1) return true;
  // Lanes count their rows in 32 bits.
  return reduced->count <= INT32_MAX && kept->rank > 0 && kept->strides[kept->rank - 1] == 1 &&
         kept->dims[kept->rank - 1] >= SHORTEST_RUN;
}

int64_t mp_best_results(const mp_best_t *best, const mp_best_box_t *box, void *scratch,
                        char *out_values, char *out_positions) {
  const mp_fold_axes_t *kept = box->kept;
  const int64_t size = (int64_t)best->size, stride = box->reduced->strides[0];
  const int64_t length = box->last - box->first, first = box->first * stride;
  const bool by_rows = stride == 1;
  const int32_t *values = best_lane_values(scratch), *positions = values + MP_BEST_LANES;
  int64_t count = mp_min_i64(box->end - box->begin, MP_BEST_LANES);
  mp_fold_walk_t walk;
  mp_fold_walk_begin(kept, kept->rank, box->begin, &walk);
  if (!by_rows) {
    const int64_t run = kept->dims[kept->rank - 1];
    count = mp_min_i64(count, run - box->begin % run);
    const char *from = (const char *)box->array + (walk.offset + first) * size;
    best_lanes(best, from, count, stride, length, scratch);
  }
  for (int64_t i = 0; i < count; ++i, mp_fold_walk_next(&walk)) {
    const char *from = (const char *)box->array + (walk.offset + first) * size;
    int64_t value = 0, position = 0;
    if (by_rows) {
      best_row(best, from, length, scratch, &value, &position);
    } else {
      value = values[i];
      position = positions[i];
    }
    memcpy(out_values + i * size, from + value * stride * size, (size_t)size);
    position += box->first;
    // Little endian: the low bytes.
    memcpy(out_positions + (size_t)i * best->position_size, &position, best->position_size);
  }
  return count;
}
