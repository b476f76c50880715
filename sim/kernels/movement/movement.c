// Ops that are one strided copy: broadcast_in_dim, transpose, slice, reverse, and bitcast_convert
// between types of the same width (StableHLO specification, sections of these names).
#include <string.h>

#include "sim/kernels/movement/movement_makers.h"
#include "sim/kernels/shape.h"
#include "sim/kernels/strided.h"

typedef struct {
  mp_kernel_t base;
  int64_t src_offset;  // bytes to the element that becomes the result's first
  mp_strided_t copy;
} copy_kernel_t;

static mp_status_t movement_copy_run(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const copy_kernel_t *self = (const copy_kernel_t *)kernel;
  const char *src = call->operands[0];
  void *dst = call->results[0];
  if (self->copy.empty || dst == src) return NULL;
  mp_strided_run_part(&self->copy, dst, src + self->src_offset, kernel->num_parts, call->part);
  return NULL;
}

static mp_status_t movement_copy_new(mp_arena_t *arena, const mp_op_t *op,
                                     copy_kernel_t **out_kernel) {
  copy_kernel_t *self = MP_ARENA_NEW(arena, copy_kernel_t);
  MP_RETURN_IF_NULL(self);
  mp_kernel_init(&self->base, movement_copy_run, op);
  mp_strided_init(&self->copy, mp_dtype_size(mp_op_result_type(op, 0)->dtype));
  *out_kernel = self;
  return NULL;
}

static const mp_kernel_t *movement_copy_finish(copy_kernel_t *self) {
  mp_strided_finish(&self->copy);
  self->base.num_parts = mp_strided_num_parts(&self->copy);
  return &self->base;
}

mp_status_t mp_kernel_make_broadcast_in_dim(mp_arena_t *arena, const mp_op_t *op,
                                            const mp_kernel_t **out_kernel) {
  copy_kernel_t *self = NULL;
  MP_RETURN_IF_ERROR(movement_copy_new(arena, op, &self));
  const mp_type_t *in = mp_op_operand_type(op, 0), *out = mp_op_result_type(op, 0);
  mp_index_list_t map = mp_op_ints(op, MP_ATTR_BROADCAST_DIMENSIONS);
  int64_t dst[MP_MAX_RANK], in_strides[MP_MAX_RANK], src[MP_MAX_RANK] = {0};
  mp_dims_strides(out->dims, out->rank, self->copy.element, dst);
  mp_dims_strides(in->dims, in->rank, self->copy.element, in_strides);
  for (uint32_t i = 0; i < map.count; ++i) {
    if (in->dims[i] != 1) src[map.values[i]] = in_strides[i];
  }
  for (uint32_t i = 0; i < out->rank; ++i) {
    mp_strided_add_dim(&self->copy, out->dims[i], dst[i], src[i]);
  }
  *out_kernel = movement_copy_finish(self);
  return NULL;
}

mp_status_t mp_kernel_make_transpose(mp_arena_t *arena, const mp_op_t *op,
                                     const mp_kernel_t **out_kernel) {
  copy_kernel_t *self = NULL;
  MP_RETURN_IF_ERROR(movement_copy_new(arena, op, &self));
  const mp_type_t *in = mp_op_operand_type(op, 0), *out = mp_op_result_type(op, 0);
  mp_index_list_t permutation = mp_op_ints(op, MP_ATTR_PERMUTATION);
  int64_t dst[MP_MAX_RANK], src[MP_MAX_RANK];
  mp_dims_strides(out->dims, out->rank, self->copy.element, dst);
  mp_dims_strides(in->dims, in->rank, self->copy.element, src);
  for (uint32_t i = 0; i < out->rank; ++i) {
    mp_strided_add_dim(&self->copy, out->dims[i], dst[i], src[permutation.values[i]]);
  }
  *out_kernel = movement_copy_finish(self);
  return NULL;
}

mp_status_t mp_kernel_make_slice(mp_arena_t *arena, const mp_op_t *op,
                                 const mp_kernel_t **out_kernel) {
  copy_kernel_t *self = NULL;
  MP_RETURN_IF_ERROR(movement_copy_new(arena, op, &self));
  const mp_type_t *in = mp_op_operand_type(op, 0), *out = mp_op_result_type(op, 0);
  mp_index_list_t starts = mp_op_ints(op, MP_ATTR_START_INDICES);
  mp_index_list_t strides = mp_op_ints(op, MP_ATTR_STRIDES);
  int64_t dst[MP_MAX_RANK], src[MP_MAX_RANK];
  mp_dims_strides(out->dims, out->rank, self->copy.element, dst);
  mp_dims_strides(in->dims, in->rank, self->copy.element, src);
  for (uint32_t i = 0; i < out->rank; ++i) {
    int64_t step = out->dims[i] > 1 ? src[i] * strides.values[i] : src[i];
    self->src_offset += starts.values[i] * src[i];
    mp_strided_add_dim(&self->copy, out->dims[i], dst[i], step);
  }
  *out_kernel = movement_copy_finish(self);
  return NULL;
}

mp_status_t mp_kernel_make_reverse(mp_arena_t *arena, const mp_op_t *op,
                                   const mp_kernel_t **out_kernel) {
  copy_kernel_t *self = NULL;
  MP_RETURN_IF_ERROR(movement_copy_new(arena, op, &self));
  const mp_type_t *out = mp_op_result_type(op, 0);
  mp_index_list_t reversed = mp_op_ints(op, MP_ATTR_DIMENSIONS);
  int64_t strides[MP_MAX_RANK];
  mp_dims_strides(out->dims, out->rank, self->copy.element, strides);
  for (uint32_t i = 0; i < out->rank; ++i) {
    bool backwards = mp_index_list_has(reversed, i);
    if (backwards) self->src_offset += (out->dims[i] - 1) * strides[i];
    mp_strided_add_dim(&self->copy, out->dims[i], strides[i], backwards ? -strides[i] : strides[i]);
  }
  *out_kernel = movement_copy_finish(self);
  return NULL;
}

// ---- bitcast_convert ----

// bitcast_convert between types of different widths. Bits are little-endian: part i of a wide
// element holds its bits from i * narrow width on. Elements narrower than a byte take a byte each
// (sim/numeric/dtype.h).
typedef struct {
  mp_kernel_t base;
  int64_t wide_count;
  int64_t ratio;  // the number of narrow elements in a wide one
  uint32_t narrow_bits;
  uint32_t wide_bytes;
  bool widens;
} bitcast_kernel_t;

static mp_status_t movement_bitcast_bits_run(const mp_kernel_t *kernel,
                                             const mp_kernel_call_t *call) {
  const bitcast_kernel_t *self = (const bitcast_kernel_t *)kernel;
  const uint8_t *src = call->operands[0];
  uint8_t *dst = call->results[0];
  uint32_t bits = self->narrow_bits;
  uint8_t mask = (uint8_t)((1u << bits) - 1);
  for (int64_t w = 0; w < self->wide_count; ++w) {
    if (self->widens) memset(dst + w * self->wide_bytes, 0, self->wide_bytes);
    for (int64_t i = 0; i < self->ratio; ++i) {
      // Widths below a byte divide it, so no element crosses a byte.
      int64_t bit = i * bits, byte = w * self->wide_bytes + bit / 8;
      if (self->widens) {
        dst[byte] |= (uint8_t)((src[w * self->ratio + i] & mask) << (bit % 8));
      } else {
        dst[w * self->ratio + i] = (src[byte] >> (bit % 8)) & mask;
      }
    }
  }
  return NULL;
}

mp_status_t mp_kernel_make_bitcast_convert(mp_arena_t *arena, const mp_op_t *op,
                                           const mp_kernel_t **out_kernel) {
  const mp_type_t *in = mp_op_operand_type(op, 0), *out = mp_op_result_type(op, 0);
  int in_bits = mp_dtype_bits(in->dtype), out_bits = mp_dtype_bits(out->dtype);
  int narrow = in_bits < out_bits ? in_bits : out_bits;
  int wide = in_bits < out_bits ? out_bits : in_bits;
  if (narrow >= 8 || narrow == wide) {
    // Both types take whole bytes in the same order, so that the bytes are just copied.
    copy_kernel_t *self = NULL;
    MP_RETURN_IF_ERROR(movement_copy_new(arena, op, &self));
    mp_strided_init(&self->copy, 1);
    mp_strided_add_dim(&self->copy, mp_shape_bytes(out), 1, 1);
    self->base.in_place = 1;
    *out_kernel = movement_copy_finish(self);
    return NULL;
  }
  if (wide % narrow != 0 || 8 % narrow != 0) {
    return mp_op_error(op, MP_UNIMPLEMENTED, "bitcast_convert from %s to %s",
                       mp_dtype_name(in->dtype), mp_dtype_name(out->dtype));
  }
  bitcast_kernel_t *self = MP_ARENA_NEW(arena, bitcast_kernel_t);
  MP_RETURN_IF_NULL(self);
  mp_kernel_init(&self->base, movement_bitcast_bits_run, op);
  self->widens = in_bits < out_bits;
  self->wide_count = mp_shape_count(self->widens ? out : in);
  self->ratio = wide / narrow;
  self->narrow_bits = (uint32_t)narrow;
  self->wide_bytes = (uint32_t)mp_dtype_size(self->widens ? out->dtype : in->dtype);
  *out_kernel = &self->base;
  return NULL;
}
