// Types: equality, size.
#include "sim/mosaic/ir/mosaic_ir.h"

static bool mosaic_type_ints_equal(const int64_t *a, const int64_t *b, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i)
    if (a[i] != b[i]) return false;
  return true;
}

static bool mosaic_type_layout_equal(const mp_mosaic_type_t *a, const mp_mosaic_type_t *b) {
  if (a->space != b->space || (a->strides == NULL) != (b->strides == NULL)) return false;
  if (a->strides == NULL) return true;
  return a->offset == b->offset && mosaic_type_ints_equal(a->strides, b->strides, a->rank);
}

bool mp_mosaic_type_equal(const mp_mosaic_type_t *a, const mp_mosaic_type_t *b) {
  if (a == b) return true;
  if (a->kind != b->kind || a->element != b->element || a->dtype != b->dtype || a->rank != b->rank)
    return false;
  if (!mosaic_type_ints_equal(a->dims, b->dims, a->rank)) return false;
  if (a->kind == MP_MOSAIC_MEMREF) return mosaic_type_layout_equal(a, b);
  if (a->num_inputs != b->num_inputs || a->num_elements != b->num_elements) return false;
  for (uint32_t i = 0; i < a->num_elements; ++i)
    if (!mp_mosaic_type_equal(a->elements[i], b->elements[i])) return false;
  return true;
}

bool mp_mosaic_num_elements(const mp_mosaic_type_t *type, int64_t *out_count) {
  int64_t count = 1;
  bool is_empty = false, is_large = false;
  for (uint32_t i = 0; i < type->rank; ++i) {
    if (type->dims[i] == MP_MOSAIC_DYNAMIC) return false;
    if (type->dims[i] == 0)
      is_empty = true;
    else
      is_large |= __builtin_mul_overflow(count, type->dims[i], &count);
  }
  if (is_large && !is_empty) return false;
  *out_count = is_empty ? 0 : count;
  return true;
}
