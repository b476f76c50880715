// What the checks of ops have in common.
#include "sim/mosaic/ir/mosaic_verify.h"

bool mp_mosaic_same_dims(const mp_mosaic_type_t *a, const mp_mosaic_type_t *b) {
  if (a->rank != b->rank) return false;
  for (uint32_t i = 0; i < a->rank; ++i)
    if (a->dims[i] != b->dims[i] && a->dims[i] != MP_MOSAIC_DYNAMIC &&
        b->dims[i] != MP_MOSAIC_DYNAMIC)
      return false;
  return true;
}

bool mp_mosaic_same_shape(const mp_mosaic_type_t *a, const mp_mosaic_type_t *b) {
  return a->kind == b->kind && a->kind != MP_MOSAIC_MEMREF && mp_mosaic_same_dims(a, b);
}

bool mp_mosaic_ints_of(const mp_mosaic_attr_t *attr, mp_mosaic_ints_t *out_ints) {
  if (attr == NULL) return false;
  if (attr->kind == MP_MOSAIC_INTS) {
    *out_ints = (mp_mosaic_ints_t){attr, attr->ints.count};
    return true;
  }
  if (attr->kind != MP_MOSAIC_ARRAY) return false;
  for (uint32_t i = 0; i < attr->list.count; ++i)
    if (attr->list.items[i].value->kind != MP_MOSAIC_INT) return false;
  *out_ints = (mp_mosaic_ints_t){attr, attr->list.count};
  return true;
}

bool mp_mosaic_ints(const mp_mosaic_op_t *op, const char *name, mp_mosaic_ints_t *out_ints) {
  return mp_mosaic_ints_of(mp_mosaic_op_attr(op, name), out_ints);
}

mp_status_t mp_mosaic_segments(const mp_mosaic_op_t *op, uint32_t count, unsigned many,
                               unsigned needed, uint32_t *out_sizes) {
  mp_mosaic_ints_t sizes = {0};
  MP_MOSAIC_CHECK(op, mp_mosaic_ints(op, "operandSegmentSizes", &sizes) && sizes.count == count,
                  "operandSegmentSizes does not have %u numbers", count);
  uint64_t total = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const int64_t size = mp_mosaic_int_at(sizes, i);
    const int64_t least = needed >> i & 1, most = (many >> i & 1) != 0 ? op->num_operands : 1;
    MP_MOSAIC_CHECK(op, size >= least && size <= most, "operandSegmentSizes[%u] is %lld", i,
                    (long long)size);
    out_sizes[i] = (uint32_t)size;
    total += (uint64_t)size;
  }
  MP_MOSAIC_CHECK(op, total == op->num_operands, "operandSegmentSizes add up to %llu, not to %u",
                  (unsigned long long)total, op->num_operands);
  return NULL;
}

mp_status_t mp_mosaic_check_dim(const mp_mosaic_op_t *op, const char *name, uint32_t rank,
                                uint32_t *out_dim) {
  const int64_t dim = mp_mosaic_op_int(op, name, -1);
  MP_MOSAIC_CHECK(op, dim >= 0 && dim < rank, "%s is %lld, the rank %u", name, (long long)dim,
                  rank);
  *out_dim = (uint32_t)dim;
  return NULL;
}

mp_status_t mp_mosaic_check_dims(const mp_mosaic_op_t *op, const char *name, mp_mosaic_ints_t dims,
                                 uint32_t rank) {
  for (uint32_t i = 0; i < dims.count; ++i) {
    const int64_t dim = mp_mosaic_int_at(dims, i);
    MP_MOSAIC_CHECK(op, dim >= 0 && dim < rank, "%s: there is no dimension %lld", name,
                    (long long)dim);
    for (uint32_t j = 0; j < i; ++j)
      MP_MOSAIC_CHECK(op, mp_mosaic_int_at(dims, j) != dim, "%s has dimension %lld twice", name,
                      (long long)dim);
  }
  return NULL;
}

mp_status_t mp_mosaic_check_indices(const mp_mosaic_op_t *op, uint32_t first, uint32_t count) {
  MP_MOSAIC_CHECK(op, first <= op->num_operands && op->num_operands - first >= count,
                  "it has %u operands, %u indices are expected from operand %u on",
                  op->num_operands, count, first);
  for (uint32_t i = first; i < first + count; ++i)
    MP_MOSAIC_CHECK(op, mp_mosaic_is_scalar_int(mp_mosaic_in(op, i)), "operand %u is not an index",
                    i);
  return NULL;
}
