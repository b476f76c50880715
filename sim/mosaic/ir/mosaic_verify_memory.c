// Ops that read and write memory, and those that make memrefs of memrefs.
#include "sim/mosaic/ir/mosaic_verify.h"

// ---- loads and stores ----

// Operand `base` is a memref of numbers with as many indices behind it as it has dimensions.
static mp_status_t mosaic_verify_memory_base(const mp_mosaic_op_t *op, uint32_t base,
                                             uint32_t num_indices) {
  const mp_mosaic_type_t *type = mp_mosaic_in(op, base);
  MP_MOSAIC_CHECK(op, mp_mosaic_is_numbers(type), "operand %u is not a memref of numbers", base);
  MP_MOSAIC_CHECK(op, num_indices == type->rank, "a memref of rank %u has %u indices", type->rank,
                  num_indices);
  return mp_mosaic_check_indices(op, base + 1, num_indices);
}

// The vector that is read or written: of the memref's elements, of no higher rank.
static mp_status_t mosaic_verify_memory_vector(const mp_mosaic_op_t *op,
                                               const mp_mosaic_type_t *vector,
                                               const mp_mosaic_type_t *base) {
  MP_MOSAIC_CHECK(
      op, mp_mosaic_is_vector(vector) && vector->dtype == base->dtype && vector->rank <= base->rank,
      "the vector does not fit the memref");
  return NULL;
}

static mp_status_t mosaic_verify_memory_scalar(const mp_mosaic_op_t *op) {
  const bool is_store = op->code == MP_MOSAIC_MEMREF_STORE;
  const uint32_t base = is_store ? 1 : 0;
  MP_MOSAIC_CHECK(op, op->num_operands > base, "it has no memref");
  MP_RETURN_IF_ERROR(mosaic_verify_memory_base(op, base, op->num_operands - base - 1));
  const mp_mosaic_type_t *value = is_store ? mp_mosaic_in(op, 0) : mp_mosaic_out(op, 0);
  MP_MOSAIC_CHECK(op,
                  value->kind == MP_MOSAIC_SCALAR && value->dtype == mp_mosaic_in(op, base)->dtype,
                  "the value is not an element of the memref");
  return NULL;
}

// A list of numbers, one for each index; it may be empty or absent if `optional`.
static mp_status_t mosaic_verify_memory_strides(const mp_mosaic_op_t *op, const char *name,
                                                uint32_t count, bool optional) {
  mp_mosaic_ints_t ints = {0};
  if (optional && mp_mosaic_op_attr(op, name) == NULL) return NULL;
  MP_MOSAIC_CHECK(
      op, mp_mosaic_ints(op, name, &ints) && (ints.count == count || (optional && ints.count == 0)),
      "%s does not have %u numbers", name, count);
  for (uint32_t i = 0; i < ints.count; ++i)
    MP_MOSAIC_CHECK(op, mp_mosaic_int_at(ints, i) >= 0, "%s[%u] is negative", name, i);
  return NULL;
}

// vector.load and tpu.strided_load; without segments.
static mp_status_t mosaic_verify_memory_load(const mp_mosaic_op_t *op) {
  MP_MOSAIC_CHECK(op, op->num_operands > 0, "it has no memref");
  const mp_mosaic_type_t *base = mp_mosaic_in(op, 0);
  MP_RETURN_IF_ERROR(mosaic_verify_memory_base(op, 0, op->num_operands - 1));
  if (op->code == MP_MOSAIC_STRIDED_LOAD) {
    MP_RETURN_IF_ERROR(mosaic_verify_memory_strides(op, "strides", base->rank, false));
    MP_MOSAIC_CHECK(op, mp_mosaic_out(op, 0)->rank == base->rank, "the vector has another rank");
  }
  return mosaic_verify_memory_vector(op, mp_mosaic_out(op, 0), base);
}

static mp_status_t mosaic_verify_memory_store(const mp_mosaic_op_t *op) {
  MP_MOSAIC_CHECK(op, op->num_operands > 1, "it has no memref");
  const mp_mosaic_type_t *base = mp_mosaic_in(op, 1);
  MP_RETURN_IF_ERROR(mosaic_verify_memory_base(op, 1, op->num_operands - 2));
  if (op->code == MP_MOSAIC_STRIDED_STORE) {
    MP_RETURN_IF_ERROR(mosaic_verify_memory_strides(op, "strides", base->rank, false));
    MP_MOSAIC_CHECK(op, mp_mosaic_in(op, 0)->rank == base->rank, "the vector has another rank");
  }
  return mosaic_verify_memory_vector(op, mp_mosaic_in(op, 0), base);
}

static mp_status_t mosaic_verify_memory_mask(const mp_mosaic_op_t *op, bool has_mask,
                                             const mp_mosaic_type_t *vector) {
  if (!has_mask) return NULL;
  const mp_mosaic_type_t *mask = mp_mosaic_in(op, op->num_operands - 1);
  MP_MOSAIC_CHECK(op, mp_mosaic_is_vector(mask) && mp_mosaic_is_int(mask),
                  "the mask is not a vector of i1 or integers");
  MP_MOSAIC_CHECK(op, mask->dtype != MP_DTYPE_BOOL || mp_mosaic_same_shape(mask, vector),
                  "the mask has another shape than the vector");
  return NULL;
}

// Base, indices, mask.
static mp_status_t mosaic_verify_memory_tpu_load(const mp_mosaic_op_t *op) {
  uint32_t sizes[3] = {0};
  MP_RETURN_IF_ERROR(mp_mosaic_segments(op, 3, 1u << 1, 1, sizes));
  MP_RETURN_IF_ERROR(mosaic_verify_memory_base(op, 0, sizes[1]));
  MP_RETURN_IF_ERROR(mosaic_verify_memory_strides(op, "strides", sizes[1], true));
  MP_RETURN_IF_ERROR(mosaic_verify_memory_mask(op, sizes[2] == 1, mp_mosaic_out(op, 0)));
  return mosaic_verify_memory_vector(op, mp_mosaic_out(op, 0), mp_mosaic_in(op, 0));
}

// Value, base, indices, mask.
static mp_status_t mosaic_verify_memory_tpu_store(const mp_mosaic_op_t *op) {
  uint32_t sizes[4] = {0};
  MP_RETURN_IF_ERROR(mp_mosaic_segments(op, 4, 1u << 2, 3, sizes));
  MP_RETURN_IF_ERROR(mosaic_verify_memory_base(op, 1, sizes[2]));
  MP_RETURN_IF_ERROR(mosaic_verify_memory_strides(op, "strides", sizes[2], true));
  MP_RETURN_IF_ERROR(mosaic_verify_memory_mask(op, sizes[3] == 1, mp_mosaic_in(op, 0)));
  return mosaic_verify_memory_vector(op, mp_mosaic_in(op, 0), mp_mosaic_in(op, 1));
}

// ---- views ----

static mp_status_t mosaic_verify_memory_view(const mp_mosaic_op_t *op) {
  MP_MOSAIC_CHECK(op, op->num_operands > 0, "it has no memref");
  const mp_mosaic_type_t *in = mp_mosaic_in(op, 0), *out = mp_mosaic_out(op, 0);
  MP_MOSAIC_CHECK(op, mp_mosaic_is_memref(in) && mp_mosaic_is_memref(out),
                  "it does not make a memref of a memref");
  MP_MOSAIC_CHECK(op, in->space == out->space, "it changes the memory space");
  MP_MOSAIC_CHECK(op, in->element == out->element, "it changes the kind of elements");
  return NULL;
}

static mp_status_t mosaic_verify_memory_same_dtype(const mp_mosaic_op_t *op) {
  MP_RETURN_IF_ERROR(mosaic_verify_memory_view(op));
  MP_MOSAIC_CHECK(op, mp_mosaic_in(op, 0)->dtype == mp_mosaic_out(op, 0)->dtype,
                  "it changes the element type");
  return NULL;
}

// Memref, offsets, sizes of dynamic dimensions. A slice may be larger than the memref, as libtpu
// 0.0.52 allows: a run finds out where it is.
static mp_status_t mosaic_verify_memory_slice(const mp_mosaic_op_t *op) {
  uint32_t sizes[3] = {0}, dynamic = 0;
  MP_RETURN_IF_ERROR(mosaic_verify_memory_same_dtype(op));
  MP_RETURN_IF_ERROR(mp_mosaic_segments(op, 3, 6, 1, sizes));
  const mp_mosaic_type_t *in = mp_mosaic_in(op, 0), *out = mp_mosaic_out(op, 0);
  MP_MOSAIC_CHECK(op, sizes[1] == in->rank && out->rank == in->rank,
                  "it has %u offsets for rank %u", sizes[1], in->rank);
  for (uint32_t i = 0; i < in->rank; ++i) dynamic += out->dims[i] == MP_MOSAIC_DYNAMIC;
  MP_MOSAIC_CHECK(op, dynamic == sizes[2], "%u dimensions are dynamic, %u sizes are given", dynamic,
                  sizes[2]);
  return mp_mosaic_check_indices(op, 1, op->num_operands - 1);
}

// The result has the dimensions of the operand but for some of size 1.
static mp_status_t mosaic_verify_memory_squeeze(const mp_mosaic_op_t *op) {
  MP_RETURN_IF_ERROR(mosaic_verify_memory_same_dtype(op));
  const mp_mosaic_type_t *in = mp_mosaic_in(op, 0), *out = mp_mosaic_out(op, 0);
  uint32_t kept = 0, left = in->rank;
  MP_MOSAIC_CHECK(op, out->rank <= in->rank, "it makes dimensions");
  for (uint32_t i = 0; i < in->rank; ++i, --left) {
    // A 1 is kept if all that follow are needed.
    const bool fits = kept < out->rank && out->dims[kept] == in->dims[i];
    if (fits && (in->dims[i] != 1 || out->rank - kept == left || out->dims[kept] == 1))
      ++kept;
    else
      MP_MOSAIC_CHECK(op, in->dims[i] == 1, "it drops dimension %u, which is not 1", i);
  }
  MP_MOSAIC_CHECK(op, kept == out->rank, "it makes dimensions that the operand does not have");
  return NULL;
}

static mp_status_t mosaic_verify_memory_reshape(const mp_mosaic_op_t *op) {
  int64_t in = 0, out = 0;
  MP_RETURN_IF_ERROR(mosaic_verify_memory_same_dtype(op));
  MP_MOSAIC_CHECK(op,
                  mp_mosaic_num_elements(mp_mosaic_in(op, 0), &in) &&
                      mp_mosaic_num_elements(mp_mosaic_out(op, 0), &out) && in == out,
                  "it changes the number of elements");
  return NULL;
}

static mp_status_t mosaic_verify_memory_bitcast(const mp_mosaic_op_t *op) {
  MP_RETURN_IF_ERROR(mosaic_verify_memory_view(op));
  const mp_mosaic_type_t *in = mp_mosaic_in(op, 0), *out = mp_mosaic_out(op, 0);
  int64_t in_bits = 0, out_bits = 0;
  const bool fits = mp_mosaic_is_numbers(in) && in->rank == out->rank &&
                    mp_mosaic_num_elements(in, &in_bits) &&
                    mp_mosaic_num_elements(out, &out_bits) &&
                    !__builtin_mul_overflow(in_bits, mp_dtype_bits(in->dtype), &in_bits) &&
                    !__builtin_mul_overflow(out_bits, mp_dtype_bits(out->dtype), &out_bits);
  MP_MOSAIC_CHECK(op, fits && in_bits == out_bits, "it changes the rank or the number of bits");
  return NULL;
}

static mp_status_t mosaic_verify_memory_cast(const mp_mosaic_op_t *op) {
  MP_RETURN_IF_ERROR(mosaic_verify_memory_same_dtype(op));
  MP_MOSAIC_CHECK(op, mp_mosaic_same_dims(mp_mosaic_in(op, 0), mp_mosaic_out(op, 0)),
                  "it changes a dimension");
  return NULL;
}

// Memref, offset, sizes.
static mp_status_t mosaic_verify_memory_reinterpret(const mp_mosaic_op_t *op) {
  uint32_t sizes[3] = {0};
  MP_RETURN_IF_ERROR(mosaic_verify_memory_view(op));
  MP_RETURN_IF_ERROR(mp_mosaic_segments(op, 3, 1u << 2, 1, sizes));
  return mp_mosaic_check_indices(op, 1, op->num_operands - 1);
}

static mp_status_t mosaic_verify_memory_dim(const mp_mosaic_op_t *op) {
  MP_MOSAIC_CHECK(
      op, mp_mosaic_is_memref(mp_mosaic_in(op, 0)) && mp_mosaic_is_scalar_int(mp_mosaic_out(op, 0)),
      "it does not make a number of a memref");
  return mp_mosaic_check_indices(op, 1, 1);
}

static mp_status_t mosaic_verify_memory_new(const mp_mosaic_op_t *op) {
  int64_t count = 0;
  MP_MOSAIC_CHECK(op,
                  mp_mosaic_is_memref(mp_mosaic_out(op, 0)) &&
                      mp_mosaic_num_elements(mp_mosaic_out(op, 0), &count),
                  "it does not make a memref of known size");
  return NULL;
}

mp_mosaic_check_t mp_mosaic_check_memory(mp_mosaic_opcode_t code) {
  static const mp_mosaic_check_t checks[MP_MOSAIC_OP_COUNT] = {
      [MP_MOSAIC_MEMREF_LOAD] = mosaic_verify_memory_scalar,
      [MP_MOSAIC_MEMREF_STORE] = mosaic_verify_memory_scalar,
      [MP_MOSAIC_VECTOR_LOAD] = mosaic_verify_memory_load,
      [MP_MOSAIC_STRIDED_LOAD] = mosaic_verify_memory_load,
      [MP_MOSAIC_TPU_LOAD] = mosaic_verify_memory_load,
      [MP_MOSAIC_VECTOR_STORE] = mosaic_verify_memory_store,
      [MP_MOSAIC_STRIDED_STORE] = mosaic_verify_memory_store,
      [MP_MOSAIC_TPU_VECTOR_LOAD] = mosaic_verify_memory_tpu_load,
      [MP_MOSAIC_TPU_VECTOR_STORE] = mosaic_verify_memory_tpu_store,
      [MP_MOSAIC_TPU_STORE] = mosaic_verify_memory_tpu_store,
      [MP_MOSAIC_MEMREF_SLICE] = mosaic_verify_memory_slice,
      [MP_MOSAIC_MEMREF_SQUEEZE] = mosaic_verify_memory_squeeze,
      [MP_MOSAIC_MEMREF_RESHAPE] = mosaic_verify_memory_reshape,
      [MP_MOSAIC_MEMREF_BITCAST] = mosaic_verify_memory_bitcast,
      [MP_MOSAIC_REINTERPRET_CAST] = mosaic_verify_memory_reinterpret,
      [MP_MOSAIC_ERASE_MEMREF_LAYOUT] = mosaic_verify_memory_cast,
      [MP_MOSAIC_MEMREF_CAST] = mosaic_verify_memory_cast,
      [MP_MOSAIC_MEMREF_DIM] = mosaic_verify_memory_dim,
      [MP_MOSAIC_ALLOCA] = mosaic_verify_memory_new,
      [MP_MOSAIC_INTERNAL_SCRATCH] = mosaic_verify_memory_new,
  };
  return checks[code];
}
