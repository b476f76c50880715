// Reductions of few elements to one, as steps: those of mp_fold_row and of a fused op, in their
// order.
#include <math.h>

#include "sim/base/assert.h"
#include "sim/ir/reducer.h"
#include "sim/kernels/fused/tile/tile.h"
#include "sim/kernels/reduction/fold.h"
#include "sim/kernels/shape.h"
#include "sim/loops/loop_impl.h"

// A reduction that is being added.
typedef struct {
  mp_loop_builder_t *b;
  mp_fold_t fold;
  mp_native_op_t op;  // of two elements
  size_t size;        // of an element
} reduction_t;

static mp_status_t compute_reduce_find(mp_arena_t *arena, const mp_op_t *op, reduction_t *r,
                                       bool *out_can) {
  enum { MOST = 256 };
  int64_t row = 0;
  *out_can = mp_tile_reduces(op, &row) && row <= MOST && mp_shape_count(op->results[0].type) == 1;
  if (!*out_can) return NULL;
  MP_RETURN_IF_ERROR(mp_fold_create_of(arena, op, &r->fold));
  const mp_fold_operand_t *operand = &r->fold.operands[0];
  *out_can = r->fold.kind != MP_REDUCE_CUSTOM && !operand->converts && !operand->converts_init &&
             !operand->converts_result;
  if (!*out_can) return NULL;
  r->size = operand->acc_size;
  r->op = (mp_native_op_t){
      .code = mp_reduce_kind_opcode(r->fold.kind), .from = r->fold.type, .to = r->fold.type};
  return NULL;
}

mp_status_t mp_loop_can_reduce(const mp_loop_builder_t *b, const mp_op_t *op, bool *out_can) {
  reduction_t r;
  return compute_reduce_find(b->arena, op, &r, out_can);
}

static mp_loop_ref_t compute_reduce_at(mp_loop_ref_t ref, size_t bytes) {
  return (mp_loop_ref_t){ref.base, ref.offset + bytes};
}

static mp_status_t compute_reduce_pair(const reduction_t *r, mp_loop_ref_t x, mp_loop_ref_t y,
                                       mp_loop_ref_t out, int64_t count) {
  const mp_loop_ref_t in[] = {x, y};
  return mp_loop_add_elementwise(r->b, &r->op, r->fold.loop, 2, in, out, count);
}

// Combines the upper half of the elements into the lower half, repeatedly.
static mp_status_t compute_reduce_halves(const reduction_t *r, mp_loop_ref_t x, int64_t length,
                                         mp_loop_ref_t *out_folded) {
  *out_folded = x;
  for (int64_t left = length, rest; left > 1; left = rest) {
    const int64_t half = left / 2;
    rest = left - half;
    mp_loop_ref_t to;
    const mp_loop_ref_t from = *out_folded;
    MP_RETURN_IF_ERROR(mp_loop_own_ref(r->b, r->size * (size_t)rest, &to));
    const mp_loop_ref_t upper = compute_reduce_at(from, r->size * (size_t)rest);
    MP_RETURN_IF_ERROR(compute_reduce_pair(r, from, upper, to, half));
    if (rest > half) {  // the middle element
      const size_t middle = r->size * (size_t)half;
      MP_RETURN_IF_ERROR(mp_loop_add_copy_step(r->b, compute_reduce_at(from, middle),
                                               compute_reduce_at(to, middle), r->size));
    }
    *out_folded = to;
  }
  return NULL;
}

// If a sum or product is NaN, it becomes the NaN of mp_fold_settle_nan.
static mp_status_t compute_reduce_settle(const reduction_t *r, mp_loop_ref_t *folded) {
  static const float single = NAN;
  static const double both = NAN;
  const mp_dtype_t type = r->fold.type;
  const bool is_f32 = type == MP_DTYPE_F32;
  if (r->fold.kind != MP_REDUCE_ADD && r->fold.kind != MP_REDUCE_MUL) return NULL;
  if (!is_f32 && type != MP_DTYPE_F64) return NULL;
  const mp_dtype_t moved = mp_native_moved_type(r->size);
  const mp_native_op_t differs = {MP_OP_COMPARE, type, MP_DTYPE_BOOL, MP_CMP_NE, false};
  const mp_native_op_t select = {MP_OP_SELECT, moved, moved, 0, false};
  mp_loop_ref_t in[3] = {*folded, *folded}, is_nan, to;
  MP_RETURN_IF_ERROR(mp_loop_own_ref(r->b, 1, &is_nan));
  MP_RETURN_IF_ERROR(mp_loop_own_ref(r->b, r->size, &to));
  MP_RETURN_IF_ERROR(mp_loop_add_elementwise(
      r->b, &differs, mp_ew_compare_loop(MP_CMP_NE, false, type), 2, in, is_nan, 1));
  in[0] = is_nan;
  in[1] = mp_loop_address_ref(r->b, is_f32 ? (const void *)&single : (const void *)&both);
  in[2] = *folded;
  *folded = to;
  return mp_loop_add_elementwise(r->b, &select, mp_ew_select_loop(r->size), 3, in, to, 1);
}

mp_status_t mp_loop_add_reduction(mp_loop_builder_t *b, const mp_op_t *op, mp_loop_ref_t x,
                                  mp_loop_ref_t start, mp_loop_ref_t out) {
  bool can = false;
  reduction_t r = {.b = b};
  mp_loop_ref_t folded;
  MP_RETURN_IF_ERROR(compute_reduce_find(b->arena, op, &r, &can));
  MP_ASSERT(can);
  const int64_t length = mp_shape_count(op->operands[0]->type);
  MP_RETURN_IF_ERROR(compute_reduce_halves(&r, x, length, &folded));
  MP_RETURN_IF_ERROR(compute_reduce_settle(&r, &folded));
  return compute_reduce_pair(&r, start, folded, out, 1);
}
