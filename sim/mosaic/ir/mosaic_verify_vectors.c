// Ops that make vectors of vectors: shapes, slices, permutations.
#include "sim/mosaic/ir/mosaic_verify.h"

static bool mosaic_verify_vectors_same_dtype(const mp_mosaic_op_t *op) {
  return mp_mosaic_in(op, 0)->dtype == mp_mosaic_out(op, 0)->dtype;
}

// Whether `out` has the dimensions of `in` but for dimension `except`.
static bool mosaic_verify_vectors_same_except(const mp_mosaic_type_t *in,
                                              const mp_mosaic_type_t *out, uint32_t except) {
  if (in->rank != out->rank) return false;
  for (uint32_t i = 0; i < in->rank; ++i)
    if (i != except && in->dims[i] != out->dims[i]) return false;
  return true;
}

static mp_status_t mosaic_verify_vectors_broadcast(const mp_mosaic_op_t *op) {
  const mp_mosaic_type_t *in = mp_mosaic_in(op, 0), *out = mp_mosaic_out(op, 0);
  bool fits = mp_mosaic_is_vector(out) && !mp_mosaic_is_memref(in) &&
              mosaic_verify_vectors_same_dtype(op) && in->rank <= out->rank;
  for (uint32_t i = 0; fits && i < in->rank; ++i) {
    const int64_t size = in->dims[in->rank - 1 - i];
    fits = size == 1 || size == out->dims[out->rank - 1 - i];
  }
  MP_MOSAIC_CHECK(op, fits, "the operand's type does not broadcast to the result's");
  return NULL;
}

static mp_status_t mosaic_verify_vectors_reshape(const mp_mosaic_op_t *op) {
  int64_t in = 0, out = 0;
  MP_MOSAIC_CHECK(op,
                  mp_mosaic_is_vector(mp_mosaic_in(op, 0)) &&
                      mp_mosaic_is_vector(mp_mosaic_out(op, 0)) &&
                      mosaic_verify_vectors_same_dtype(op),
                  "it does not make a vector of a vector");
  MP_MOSAIC_CHECK(op,
                  mp_mosaic_num_elements(mp_mosaic_in(op, 0), &in) &&
                      mp_mosaic_num_elements(mp_mosaic_out(op, 0), &out) && in == out,
                  "it changes the number of elements");
  return NULL;
}

// The bits of all elements stay as many; that is also true of each dimension but the last two.
static mp_status_t mosaic_verify_vectors_bitcast(const mp_mosaic_op_t *op) {
  const mp_mosaic_type_t *in = mp_mosaic_in(op, 0), *out = mp_mosaic_out(op, 0);
  int64_t in_bits = 0, out_bits = 0;
  MP_MOSAIC_CHECK(op, mp_mosaic_is_vector(in) && mp_mosaic_is_vector(out) && in->rank == out->rank,
                  "it changes the rank");
  for (uint32_t i = 0; i + 2 < in->rank; ++i)
    MP_MOSAIC_CHECK(op, in->dims[i] == out->dims[i], "it changes dimension %u", i);
  const bool is_sized = mp_mosaic_num_elements(in, &in_bits) &&
                        mp_mosaic_num_elements(out, &out_bits) &&
                        !__builtin_mul_overflow(in_bits, mp_dtype_bits(in->dtype), &in_bits) &&
                        !__builtin_mul_overflow(out_bits, mp_dtype_bits(out->dtype), &out_bits);
  MP_MOSAIC_CHECK(op, is_sized && in_bits == out_bits, "it changes the number of bits");
  return NULL;
}

// A position: static numbers, of which dynamic ones take operands from `first` on.
static mp_status_t mosaic_verify_vectors_position(const mp_mosaic_op_t *op,
                                                  const mp_mosaic_type_t *whole, uint32_t first,
                                                  uint32_t *out_count) {
  mp_mosaic_ints_t position = {0};
  uint32_t dynamic = 0;
  MP_MOSAIC_CHECK(op,
                  mp_mosaic_ints(op, "static_position", &position) && mp_mosaic_is_vector(whole) &&
                      position.count <= whole->rank,
                  "static_position is missing or too long");
  for (uint32_t i = 0; i < position.count; ++i) {
    const int64_t at = mp_mosaic_int_at(position, i);
    dynamic += at == MP_MOSAIC_DYNAMIC;
    MP_MOSAIC_CHECK(op, at == MP_MOSAIC_DYNAMIC || (at >= 0 && at < whole->dims[i]),
                    "the position %lld is outside of dimension %u", (long long)at, i);
  }
  MP_MOSAIC_CHECK(op, op->num_operands == first + dynamic, "%u positions are dynamic, %u are given",
                  dynamic, op->num_operands - first);
  *out_count = position.count;
  return mp_mosaic_check_indices(op, first, dynamic);
}

// Whether `part` is what is left of `whole` behind its first `count` dimensions.
static bool mosaic_verify_vectors_is_tail(const mp_mosaic_type_t *part,
                                          const mp_mosaic_type_t *whole, uint32_t count) {
  if (part->kind == MP_MOSAIC_MEMREF || part->dtype != whole->dtype ||
      part->rank != whole->rank - count)
    return false;
  for (uint32_t i = 0; i < part->rank; ++i)
    if (part->dims[i] != whole->dims[count + i]) return false;
  return true;
}

static mp_status_t mosaic_verify_vectors_extract(const mp_mosaic_op_t *op) {
  uint32_t count = 0;
  MP_MOSAIC_CHECK(op, op->num_operands > 0, "it has no operand");
  const mp_mosaic_type_t *in = mp_mosaic_in(op, 0);
  MP_RETURN_IF_ERROR(mosaic_verify_vectors_position(op, in, 1, &count));
  MP_MOSAIC_CHECK(op, mosaic_verify_vectors_is_tail(mp_mosaic_out(op, 0), in, count),
                  "the result is not a part of the operand");
  return NULL;
}

static mp_status_t mosaic_verify_vectors_insert(const mp_mosaic_op_t *op) {
  uint32_t count = 0;
  MP_MOSAIC_CHECK(op, op->num_operands > 1, "it has less than two operands");
  const mp_mosaic_type_t *whole = mp_mosaic_in(op, 1);
  MP_RETURN_IF_ERROR(mosaic_verify_vectors_position(op, whole, 2, &count));
  MP_MOSAIC_CHECK(op,
                  mp_mosaic_type_equal(whole, mp_mosaic_out(op, 0)) &&
                      mosaic_verify_vectors_is_tail(mp_mosaic_in(op, 0), whole, count),
                  "the operand is not a part of the result");
  return NULL;
}

// Whether a part of `size` elements, each `stride` behind the one before, lies in `whole`.
static bool mosaic_verify_vectors_lies_in(int64_t offset, int64_t size, int64_t stride,
                                          int64_t whole) {
  int64_t last;
  if (offset < 0 || size < 1 || stride < 1) return false;
  return !__builtin_mul_overflow(size - 1, stride, &last) &&
         !__builtin_add_overflow(last, offset, &last) && last < whole;
}

static mp_status_t mosaic_verify_vectors_slice(const mp_mosaic_op_t *op) {
  const mp_mosaic_type_t *in = mp_mosaic_in(op, 0), *out = mp_mosaic_out(op, 0);
  mp_mosaic_ints_t offsets = {0}, sizes = {0}, strides = {0};
  MP_MOSAIC_CHECK(op,
                  mp_mosaic_ints(op, "offsets", &offsets) && mp_mosaic_ints(op, "sizes", &sizes) &&
                      mp_mosaic_ints(op, "strides", &strides) && mp_mosaic_is_vector(in) &&
                      mp_mosaic_is_vector(out) && offsets.count <= in->rank &&
                      sizes.count == offsets.count && strides.count == offsets.count,
                  "offsets, sizes or strides are missing or of the wrong length");
  MP_MOSAIC_CHECK(op, in->rank == out->rank && mosaic_verify_vectors_same_dtype(op),
                  "the result has another rank or element type");
  for (uint32_t i = 0; i < in->rank; ++i) {
    const bool whole = i >= offsets.count;
    const int64_t size = whole ? in->dims[i] : mp_mosaic_int_at(sizes, i);
    MP_MOSAIC_CHECK(op, size == out->dims[i], "dimension %u of the result has another size", i);
    MP_MOSAIC_CHECK(
        op,
        whole || mosaic_verify_vectors_lies_in(mp_mosaic_int_at(offsets, i), size,
                                               mp_mosaic_int_at(strides, i), in->dims[i]),
        "the slice is outside of dimension %u", i);
  }
  return NULL;
}

static mp_status_t mosaic_verify_vectors_insert_slice(const mp_mosaic_op_t *op) {
  const mp_mosaic_type_t *part = mp_mosaic_in(op, 0), *whole = mp_mosaic_in(op, 1);
  mp_mosaic_ints_t offsets = {0}, strides = {0};
  MP_MOSAIC_CHECK(op,
                  mp_mosaic_ints(op, "offsets", &offsets) &&
                      mp_mosaic_ints(op, "strides", &strides) && mp_mosaic_is_vector(part) &&
                      mp_mosaic_is_vector(whole) && offsets.count == whole->rank &&
                      strides.count == part->rank && part->rank <= whole->rank,
                  "offsets or strides are missing or of the wrong length");
  MP_MOSAIC_CHECK(op,
                  mp_mosaic_type_equal(whole, mp_mosaic_out(op, 0)) && part->dtype == whole->dtype,
                  "the result has another type");
  for (uint32_t i = 0; i < whole->rank; ++i) {
    const uint32_t first = whole->rank - part->rank;
    const int64_t size = i < first ? 1 : part->dims[i - first];
    const int64_t stride = i < first ? 1 : mp_mosaic_int_at(strides, i - first);
    MP_MOSAIC_CHECK(
        op,
        mosaic_verify_vectors_lies_in(mp_mosaic_int_at(offsets, i), size, stride, whole->dims[i]),
        "the slice is outside of dimension %u", i);
  }
  return NULL;
}

static mp_status_t mosaic_verify_vectors_transpose(const mp_mosaic_op_t *op) {
  const mp_mosaic_type_t *in = mp_mosaic_in(op, 0), *out = mp_mosaic_out(op, 0);
  mp_mosaic_ints_t order = {0};
  MP_MOSAIC_CHECK(op,
                  mp_mosaic_ints(op, "permutation", &order) && mp_mosaic_is_vector(in) &&
                      mp_mosaic_is_vector(out) && order.count == in->rank &&
                      out->rank == in->rank && mosaic_verify_vectors_same_dtype(op),
                  "permutation is missing or of the wrong length");
  MP_RETURN_IF_ERROR(mp_mosaic_check_dims(op, "permutation", order, in->rank));
  for (uint32_t i = 0; i < in->rank; ++i)
    MP_MOSAIC_CHECK(op, out->dims[i] == in->dims[mp_mosaic_int_at(order, i)],
                    "dimension %u of the result has another size", i);
  return NULL;
}

static mp_status_t mosaic_verify_vectors_concatenate(const mp_mosaic_op_t *op) {
  const mp_mosaic_type_t *out = mp_mosaic_out(op, 0);
  uint32_t dim = 0;
  int64_t total = 0;
  MP_MOSAIC_CHECK(op, op->num_operands > 0 && mp_mosaic_is_vector(out),
                  "it does not make a vector of vectors");
  MP_RETURN_IF_ERROR(mp_mosaic_check_dim(op, "dimension", out->rank, &dim));
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_mosaic_type_t *in = mp_mosaic_in(op, i);
    MP_MOSAIC_CHECK(op,
                    mp_mosaic_is_vector(in) && in->dtype == out->dtype &&
                        mosaic_verify_vectors_same_except(in, out, dim) &&
                        !__builtin_add_overflow(total, in->dims[dim], &total),
                    "operand %u does not fit the result", i);
  }
  MP_MOSAIC_CHECK(op, total == out->dims[dim], "the operands have %lld elements, the result %lld",
                  (long long)total, (long long)out->dims[dim]);
  return NULL;
}

static mp_status_t mosaic_verify_vectors_repeat(const mp_mosaic_op_t *op) {
  const mp_mosaic_type_t *in = mp_mosaic_in(op, 0), *out = mp_mosaic_out(op, 0);
  uint32_t dim = 0;
  int64_t size = 0;
  MP_MOSAIC_CHECK(
      op,
      mp_mosaic_is_vector(in) && mp_mosaic_is_vector(out) && mosaic_verify_vectors_same_dtype(op),
      "it does not make a vector of a vector");
  MP_RETURN_IF_ERROR(mp_mosaic_check_dim(op, "dimension", in->rank, &dim));
  const int64_t times = mp_mosaic_op_int(op, "times", 0);
  MP_MOSAIC_CHECK(op,
                  times > 0 && !__builtin_mul_overflow(in->dims[dim], times, &size) &&
                      mosaic_verify_vectors_same_except(in, out, dim) && out->dims[dim] == size,
                  "the result is not %lld times the operand", (long long)times);
  return NULL;
}

static mp_status_t mosaic_verify_vectors_iota(const mp_mosaic_op_t *op) {
  const mp_mosaic_type_t *out = mp_mosaic_out(op, 0);
  mp_mosaic_ints_t dims = {0};
  MP_MOSAIC_CHECK(op, mp_mosaic_is_vector(out) && mp_mosaic_is_int(out),
                  "it does not make a vector of integers");
  MP_MOSAIC_CHECK(
      op, mp_mosaic_ints(op, "dimensions", &dims) && dims.count > 0 && dims.count <= out->rank,
      "dimensions is missing or of the wrong length");
  return mp_mosaic_check_dims(op, "dimensions", dims, out->rank);
}

static mp_status_t mosaic_verify_vectors_rotate(const mp_mosaic_op_t *op) {
  const mp_mosaic_type_t *in = mp_mosaic_in(op, 0);
  uint32_t dim = 0;
  MP_MOSAIC_CHECK(op, mp_mosaic_is_vector(in) && mp_mosaic_type_equal(in, mp_mosaic_out(op, 0)),
                  "operand and result are not vectors of one type");
  MP_RETURN_IF_ERROR(mp_mosaic_check_indices(op, 1, 1));
  if (mp_mosaic_op_attr(op, "stride_dimension") != NULL)
    MP_RETURN_IF_ERROR(mp_mosaic_check_dim(op, "stride_dimension", in->rank, &dim));
  return mp_mosaic_check_dim(op, "dimension", in->rank, &dim);
}

static mp_status_t mosaic_verify_vectors_gather(const mp_mosaic_op_t *op) {
  const mp_mosaic_type_t *in = mp_mosaic_in(op, 0), *indices = mp_mosaic_in(op, 1);
  const mp_mosaic_type_t *out = mp_mosaic_out(op, 0);
  mp_mosaic_ints_t dims = {0};
  MP_MOSAIC_CHECK(op,
                  mp_mosaic_is_vector(in) && mp_mosaic_is_vector(indices) &&
                      mp_mosaic_is_int(indices) && mp_mosaic_same_shape(indices, out) &&
                      mosaic_verify_vectors_same_dtype(op) && in->rank == out->rank,
                  "its indices are not integers of the result's shape");
  MP_MOSAIC_CHECK(op, mp_mosaic_ints(op, "dimensions", &dims) && dims.count > 0,
                  "dimensions is missing");
  for (uint32_t d = 0; d < dims.count; ++d)
    MP_MOSAIC_CHECK(op, mp_mosaic_int_at(dims, d) >= 0 && mp_mosaic_int_at(dims, d) < in->rank,
                    "there is no dimension %lld", (long long)mp_mosaic_int_at(dims, d));
  for (uint32_t i = 0; i < in->rank; ++i) {
    bool gathered = false;
    for (uint32_t d = 0; d < dims.count; ++d) gathered |= mp_mosaic_int_at(dims, d) == i;
    MP_MOSAIC_CHECK(op, gathered || in->dims[i] == out->dims[i],
                    "dimension %u of the result has another size", i);
  }
  return NULL;
}

static mp_status_t mosaic_verify_vectors_bits(const mp_mosaic_op_t *op) {
  MP_MOSAIC_CHECK(op, mp_mosaic_is_int(mp_mosaic_out(op, 0)), "it does not make integers");
  return NULL;
}

static mp_status_t mosaic_verify_vectors_seed(const mp_mosaic_op_t *op) {
  return mp_mosaic_check_indices(op, 0, op->num_operands);
}

static mp_status_t mosaic_verify_vectors_mask(const mp_mosaic_op_t *op) {
  const mp_mosaic_type_t *out = mp_mosaic_out(op, 0);
  MP_MOSAIC_CHECK(
      op,
      mp_mosaic_is_vector(out) && out->dtype == MP_DTYPE_BOOL && op->num_operands == 2 * out->rank,
      "it does not make i1 from two bounds for each dimension");
  return mp_mosaic_check_indices(op, 0, op->num_operands);
}

mp_mosaic_check_t mp_mosaic_check_vectors(mp_mosaic_opcode_t code) {
  static const mp_mosaic_check_t checks[MP_MOSAIC_OP_COUNT] = {
      [MP_MOSAIC_BROADCAST] = mosaic_verify_vectors_broadcast,
      [MP_MOSAIC_SHAPE_CAST] = mosaic_verify_vectors_reshape,
      [MP_MOSAIC_RESHAPE] = mosaic_verify_vectors_reshape,
      [MP_MOSAIC_VECTOR_BITCAST] = mosaic_verify_vectors_bitcast,
      [MP_MOSAIC_TPU_BITCAST] = mosaic_verify_vectors_bitcast,
      [MP_MOSAIC_EXTRACT] = mosaic_verify_vectors_extract,
      [MP_MOSAIC_INSERT] = mosaic_verify_vectors_insert,
      [MP_MOSAIC_EXTRACT_STRIDED_SLICE] = mosaic_verify_vectors_slice,
      [MP_MOSAIC_INSERT_STRIDED_SLICE] = mosaic_verify_vectors_insert_slice,
      [MP_MOSAIC_VECTOR_TRANSPOSE] = mosaic_verify_vectors_transpose,
      [MP_MOSAIC_TRANSPOSE] = mosaic_verify_vectors_transpose,
      [MP_MOSAIC_CONCATENATE] = mosaic_verify_vectors_concatenate,
      [MP_MOSAIC_REPEAT] = mosaic_verify_vectors_repeat,
      [MP_MOSAIC_IOTA] = mosaic_verify_vectors_iota,
      [MP_MOSAIC_DYNAMIC_ROTATE] = mosaic_verify_vectors_rotate,
      [MP_MOSAIC_DYNAMIC_GATHER] = mosaic_verify_vectors_gather,
      [MP_MOSAIC_PRNG_RANDOM_BITS] = mosaic_verify_vectors_bits,
      [MP_MOSAIC_PRNG_SET_SEED] = mosaic_verify_vectors_seed,
      [MP_MOSAIC_CREATE_MASK] = mosaic_verify_vectors_mask,
  };
  return checks[code];
}
