#include <math.h>
#include <string.h>

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

static uint64_t sort_key_f64_key(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits >> 63 != 0 ? ~bits : bits | UINT64_C(1) << 63;
}

static uint32_t sort_key_f32_key(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits >> 31 != 0 ? ~bits : bits | 1u << 31;
}

// Turns elements into numbers that are in the same order as unsigned numbers. False when there is a
// NaN that has no place in the order.
static bool sort_key_make_keys(const mp_sort_key_t *key, int64_t n, const void *values,
                               item_t *items) {
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
  bool ordered = true;
  switch (type) {
#define INTEGER(name, T, flip)                                               \
  case MP_DTYPE_##name:                                                      \
    for (int64_t i = 0; i < n; ++i) {                                        \
      items[i].key = (uint64_t)(T)((const T *)values)[i] ^ (uint64_t)(flip); \
    }                                                                        \
    break;
    INTEGER(BOOL, uint8_t, 0)
    INTEGER(U8, uint8_t, 0)
    INTEGER(U16, uint16_t, 0)
    INTEGER(U32, uint32_t, 0)
    INTEGER(U64, uint64_t, 0)
    // The bits as an unsigned number, with the sign bit inverted.
    INTEGER(S8, uint8_t, 0x80)
    INTEGER(S16, uint16_t, 0x8000)
    INTEGER(S32, uint32_t, 0x80000000u)
    INTEGER(S64, uint64_t, UINT64_C(1) << 63)
#undef INTEGER
#define FLOAT(name, T, function)             \
  case MP_DTYPE_##name:                      \
    for (int64_t i = 0; i < n; ++i) {        \
      T value = ((const T *)values)[i];      \
      if (!key->total) {                     \
        ordered = ordered && value == value; \
        value += 0; /* -0 and 0 are equal */ \
      }                                      \
      items[i].key = function(value);        \
    }                                        \
    break;
    FLOAT(F32, float, sort_key_f32_key)
    FLOAT(F64, double, sort_key_f64_key)
#undef FLOAT
    default:
      return false;
  }
  return ordered;
}

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

// The scratch holds the pointers to the arguments, the values of f, and two lists of items for one
// slice.
size_t mp_sort_key_scratch(const mp_sort_key_t *key, uint32_t num_operands, int64_t length) {
  return mp_round_up_64((size_t)num_operands * 2 * sizeof(void *)) + MP_REGION_MAX_LANES * 16 +
         2 * (size_t)length * sizeof(item_t) + 64 + mp_region_fn_scratch_bytes(key->fn);
}

bool mp_sort_by_key(const mp_sort_key_t *key, const mp_sort_rows_t *rows, uint32_t *order,
                    void *scratch) {
  const void **inputs = scratch;
  char *values = (char *)scratch + mp_round_up_64((size_t)rows->num_operands * 2 * sizeof(void *));
  item_t *items = (item_t *)(void *)(values + MP_REGION_MAX_LANES * 16);
  item_t *other = items + rows->length;
  void *registers =
      (char *)(void *)items + mp_round_up_64(2 * (size_t)rows->length * sizeof(item_t));
  for (int64_t slice = 0; slice < rows->num_slices; ++slice) {
    int64_t base = slice * rows->length;
    for (int64_t i = 0; i < rows->length; i += MP_REGION_MAX_LANES) {
      int64_t n = mp_min_i64(rows->length - i, MP_REGION_MAX_LANES);
      for (uint32_t k = 0; k < rows->num_operands; ++k) {
        const char *data = rows->data[k];
        inputs[2 * k] = inputs[2 * k + 1] = data + (size_t)(base + i) * rows->sizes[k];
      }
      void *out = values;
      mp_region_fn_run(key->fn, n, inputs, rows->captures, &out, registers);
      if (!sort_key_make_keys(key, n, values, items + i)) return false;
      for (int64_t j = i; j < i + n; ++j) {
        if (key->descending) items[j].key = ~items[j].key;
        items[j].row = (uint64_t)(base + j);
      }
    }
    const item_t *sorted = items;
    if (rows->length < 64) {
      sort_key_insertion_sort(items, rows->length);
    } else {
      sorted = sort_key_digit_sort(items, other, rows->length);
    }
    for (int64_t i = 0; i < rows->length; ++i) order[base + i] = (uint32_t)sorted[i].row;
  }
  return true;
}
