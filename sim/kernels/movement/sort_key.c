#include <string.h>

#include "sim/base/vector.h"
#include "sim/kernels/movement/sort.h"
#include "sim/kernels/shape.h"

// ---- Recognising ----

enum { MAX_VISITS = 512 };

typedef struct {
  const mp_block_t *block;
  int visits;
} twins_t;

static bool sort_key_is_inside(const mp_block_t *block, const mp_value_t *value) {
  return value->op != NULL ? value->op->parent == block : value->block == block;
}

// Whether `y` is computed from the right side's arguments as `x` is from the left side's.
static bool sort_key_are_twins(twins_t *twins, const mp_value_t *x, const mp_value_t *y) {
  if (++twins->visits > MAX_VISITS) return false;
  bool inside = sort_key_is_inside(twins->block, x);
  if (inside != sort_key_is_inside(twins->block, y)) return false;
  if (!inside) return x == y;
  if (x->op == NULL || y->op == NULL) {
    return x->op == NULL && y->op == NULL && x->index % 2 == 0 && y->index == x->index + 1;
  }
  const mp_op_t *a = x->op, *b = y->op;
  if (a->code != b->code || x->index != y->index || a->num_operands != b->num_operands ||
      a->num_attrs != b->num_attrs || a->num_regions != 0 || b->num_regions != 0 ||
      !mp_type_equal(x->type, y->type)) {
    return false;
  }
  for (uint32_t i = 0; i < a->num_attrs; ++i) {
    if (a->attrs[i].name == MP_ATTR_OTHER) continue;  // has no influence on the value
    const mp_attr_t *other = mp_op_attr(b, a->attrs[i].name);
    if (other == NULL || !mp_attr_equal(a->attrs[i].value, other)) return false;
  }
  for (uint32_t i = 0; i < a->num_operands; ++i) {
    if (!sort_key_are_twins(twins, a->operands[i], b->operands[i])) return false;
  }
  return true;
}

mp_status_t mp_sort_key_create(mp_arena_t *arena, const mp_block_t *comparator,
                               mp_sort_key_t *out_key, bool *out_found) {
  *out_found = false;
  const mp_op_t *terminator = mp_block_terminator(comparator);
  if (terminator == NULL || terminator->num_operands != 1) return NULL;
  const mp_op_t *op = terminator->operands[0]->op;
  if (op == NULL || op->code != MP_OP_COMPARE || op->parent != comparator) return NULL;
  uint32_t direction = mp_op_enum(op, MP_ATTR_COMPARISON_DIRECTION, MP_CMP_EQ);
  if (direction != MP_CMP_LT && direction != MP_CMP_GT) return NULL;
  mp_dtype_t dtype = op->operands[0]->type->dtype;
  if (mp_dtype_is_complex(dtype)) return NULL;
  twins_t twins = {.block = comparator};
  if (!sort_key_are_twins(&twins, op->operands[0], op->operands[1])) return NULL;
  mp_sort_key_t key = {.dtype = dtype, .descending = direction == MP_CMP_GT};
  key.total = mp_op_enum(op, MP_ATTR_COMPARE_TYPE, MP_CMP_NOTYPE) == MP_CMP_TOTALORDER;
  MP_RETURN_IF_ERROR(mp_region_fn_create_value(arena, comparator, op->operands[0], &key.fn));
  *out_key = key;
  *out_found = true;
  return NULL;
}

// ---- Keys ----

typedef struct {
  uint64_t key;
  uint64_t row;
} item_t;

// Converts elements to unsigned numbers in the same order, or in the opposite order if `flip` is
// all ones and not 0. Returns whether there is no NaN.
#define INTEGER(name, T, sign)                                                                 \
  MP_VECTOR static bool sort_key_of_##name(const void *values, int64_t n, bool total,          \
                                           uint64_t flip, uint64_t *keys) {                    \
    const T *v = values;                                                                       \
    (void)total;                                                                               \
    MP_INDEPENDENT for (int64_t i = 0; i < n; ++i) keys[i] = ((uint64_t)v[i] ^ (sign)) ^ flip; \
    return true;                                                                               \
  }
INTEGER(BOOL, uint8_t, 0)
INTEGER(U8, uint8_t, 0)
INTEGER(U16, uint16_t, 0)
INTEGER(U32, uint32_t, 0)
INTEGER(U64, uint64_t, 0)
// The bits as an unsigned number, with the sign bit inverted.
INTEGER(S8, uint8_t, UINT64_C(0x80))
INTEGER(S16, uint16_t, UINT64_C(0x8000))
INTEGER(S32, uint32_t, UINT64_C(0x80000000))
INTEGER(S64, uint64_t, UINT64_C(1) << 63)
#undef INTEGER

// A comparison by value has no place for NaN, and -0 and 0 are equal.
#define FLOAT(name, T, U, sign)                                                       \
  MP_VECTOR static bool sort_key_of_##name(const void *values, int64_t n, bool total, \
                                           uint64_t flip, uint64_t *keys) {           \
    const T *v = values;                                                              \
    uint64_t unordered = 0;                                                           \
    for (int64_t i = 0; i < n; ++i) {                                                 \
      T value = v[i];                                                                 \
      U bits, ones = 0;                                                               \
      unordered |= (uint64_t)(value != value);                                        \
      if (!total) value += 0;                                                         \
      memcpy(&bits, &value, sizeof(bits));                                            \
      ones -= bits >> (8 * sizeof(U) - 1);                                            \
      keys[i] = (uint64_t)(bits ^ (ones | (sign))) ^ flip;                            \
    }                                                                                 \
    return total || unordered == 0;                                                   \
  }
FLOAT(F32, float, uint32_t, UINT32_C(1) << 31)
FLOAT(F64, double, uint64_t, UINT64_C(1) << 63)
#undef FLOAT

bool mp_sort_key_is_total(const mp_sort_key_t *key) {
  return key->total || !mp_dtype_is_float(key->dtype);
}

// False when there is a NaN that has no place in the order.
static bool sort_key_make_keys(const mp_sort_key_t *key, int64_t n, const void *values,
                               uint64_t *keys) {
  // Floating-point numbers and narrow integers are converted to the computing type, which keeps
  // their order.
  double wide[MP_REGION_MAX_LANES];
  const void *in[] = {values};
  mp_dtype_t type = mp_ew_computing_type(key->dtype);
  mp_ew_t widen;
  if (type != key->dtype && mp_ew_bind_convert(key->dtype, type, &widen)) {
    mp_ew_run(&widen, n, in, wide);
    values = wide;
  }
  const uint64_t flip = key->descending ? UINT64_MAX : 0;
  switch (type) {
#define CASE(name)      \
  case MP_DTYPE_##name: \
    return sort_key_of_##name(values, n, key->total, flip, keys);
    CASE(BOOL)
    CASE(U8)
    CASE(U16)
    CASE(U32)
    CASE(U64)
    CASE(S8)
    CASE(S16)
    CASE(S32)
    CASE(S64)
    CASE(F32)
    CASE(F64)
#undef CASE
    default:
      return false;
  }
}

// ---- Sorting ----

static void sort_key_insertion_sort(item_t *items, int64_t n) {
  for (int64_t i = 1; i < n; ++i) {
    item_t item = items[i];
    int64_t j = i;
    for (; j > 0 && items[j - 1].key > item.key; --j) items[j] = items[j - 1];
    items[j] = item;
  }
}

// Sorts by digits of one byte, the lowest first; digits that are the same in all items are skipped.
// Returns where the sorted items are, which is `items` or `other`.
static item_t *sort_key_digit_sort(item_t *items, item_t *other, int64_t n) {
  uint32_t counts[8][256] = {{0}};
  for (int64_t i = 0; i < n; ++i) {
    for (int d = 0; d < 8; ++d) ++counts[d][items[i].key >> (8 * d) & 0xff];
  }
  for (int d = 0; d < 8; ++d) {
    if (counts[d][items[0].key >> (8 * d) & 0xff] == (uint32_t)n) continue;
    uint32_t begin = 0;
    for (int v = 0; v < 256; ++v) {
      uint32_t count = counts[d][v];
      counts[d][v] = begin;
      begin += count;
    }
    for (int64_t i = 0; i < n; ++i) other[counts[d][items[i].key >> (8 * d) & 0xff]++] = items[i];
    item_t *swap = items;
    items = other;
    other = swap;
  }
  return items;
}

// The contents of mp_sort_by_key's scratch.
typedef struct {
  const void **inputs;    // [2 * num_operands]: arguments of f
  char *values;           // [MP_REGION_MAX_LANES]: of f
  uint64_t *keys;         // [MP_REGION_MAX_LANES]
  item_t *items, *other;  // [sort_key_room()] each
  void *registers;        // of f
} work_t;

// Room for the best rows so far, for as many candidates before the next choice, and for a block of
// them.
enum { CANDIDATES = 1024 };

// How many items are sorted at a time: as many as a slice has, or fewer if the first rows of it are
// chosen on the way.
static int64_t sort_key_room(int64_t length, int64_t kept) {
  const int64_t room = kept + mp_max_i64(kept, CANDIDATES) + MP_REGION_MAX_LANES;
  return mp_min_i64(length, room);
}

size_t mp_sort_key_scratch(const mp_sort_key_t *key, uint32_t num_operands, int64_t length,
                           int64_t kept) {
  const size_t items = (size_t)sort_key_room(length, kept) * sizeof(item_t);
  return mp_round_up_64((size_t)num_operands * 2 * sizeof(void *)) + MP_REGION_MAX_LANES * 24 +
         mp_round_up_64(2 * items) + mp_region_fn_scratch_bytes(key->fn);
}

static work_t sort_key_work(const mp_sort_rows_t *rows, void *scratch) {
  const int64_t room = sort_key_room(rows->length, rows->kept);
  work_t work = {.inputs = scratch};
  work.values = (char *)scratch + mp_round_up_64((size_t)rows->num_operands * 2 * sizeof(void *));
  work.keys = (uint64_t *)(void *)(work.values + MP_REGION_MAX_LANES * 16);
  work.items = (item_t *)(work.keys + MP_REGION_MAX_LANES);
  work.other = work.items + room;
  work.registers = (char *)work.items + mp_round_up_64(2 * (size_t)room * sizeof(item_t));
  return work;
}

// The keys of rows [row, row + n). False when one has no place in the order.
static bool sort_key_of_rows(const mp_sort_key_t *key, const mp_sort_rows_t *rows,
                             const work_t *work, int64_t row, int64_t n) {
  for (uint32_t k = 0; k < rows->num_operands; ++k) {
    const char *data = rows->data[k];
    if (data != NULL) data += (size_t)row * rows->sizes[k];
    work->inputs[2 * k] = work->inputs[2 * k + 1] = data;
  }
  void *out = work->values;
  mp_region_fn_run(key->fn, n, work->inputs, rows->captures, &out, work->registers);
  return sort_key_make_keys(key, n, work->values, work->keys);
}

// Whether one of the keys is below the limit.
MP_VECTOR static bool sort_key_any_below(const uint64_t *keys, int64_t n, uint64_t limit) {
  uint64_t below = 0;
  for (int64_t i = 0; i < n; ++i) below |= (uint64_t)(keys[i] < limit);
  return below != 0;
}

// Adds the keys that are below the limit, or all if there is no limit, to the items.
static int64_t sort_key_add(const uint64_t *keys, int64_t n, const uint64_t *limit, int64_t row,
                            item_t *items, int64_t count) {
  enum { BLOCK = 64 };
  for (int64_t begin = 0; begin < n; begin += BLOCK) {
    const int64_t end = mp_min_i64(begin + BLOCK, n);
    if (limit != NULL && !sort_key_any_below(keys + begin, end - begin, *limit)) continue;
    for (int64_t i = begin; i < end; ++i) {
      items[count] = (item_t){keys[i], (uint64_t)(row + i)};
      count += limit == NULL || keys[i] < *limit;
    }
  }
  return count;
}

static item_t *sort_key_sort_items(work_t *work, int64_t n) {
  if (n < 64) {
    sort_key_insertion_sort(work->items, n);
    return work->items;
  }
  return sort_key_digit_sort(work->items, work->other, n);
}

// Sorts one slice. Once there are enough candidates, a key must be below that of the last row that
// is kept so far; of equal keys the first ones stay.
static bool sort_key_sort_slice(const mp_sort_key_t *key, const mp_sort_rows_t *rows, work_t *work,
                                int64_t base, uint32_t *order) {
  const int64_t room = sort_key_room(rows->length, rows->kept);
  int64_t count = 0;
  uint64_t limit = 0;
  bool is_limited = false;
  for (int64_t i = 0, n; i < rows->length; i += n) {
    n = mp_min_i64(rows->length - i, MP_REGION_MAX_LANES);
    if (!sort_key_of_rows(key, rows, work, base + i, n)) return false;
    if (count + n > room) {
      item_t *sorted = sort_key_sort_items(work, count);
      if (sorted != work->items) {
        work->other = work->items;
        work->items = sorted;
      }
      count = rows->kept;
      limit = sorted[count - 1].key;
      is_limited = true;
    }
    count = sort_key_add(work->keys, n, is_limited ? &limit : NULL, base + i, work->items, count);
  }
  const item_t *sorted = sort_key_sort_items(work, count);
  for (int64_t i = 0; i < rows->kept; ++i) order[i] = (uint32_t)sorted[i].row;
  return true;
}

bool mp_sort_by_key(const mp_sort_key_t *key, const mp_sort_rows_t *rows, uint32_t *order,
                    void *scratch) {
  work_t work = sort_key_work(rows, scratch);
  for (int64_t slice = 0; slice < rows->num_slices; ++slice) {
    if (!sort_key_sort_slice(key, rows, &work, slice * rows->length, order + slice * rows->kept)) {
      return false;
    }
  }
  return true;
}
