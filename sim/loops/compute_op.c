// Elementwise ops on contiguous elements, as steps.
#include <string.h>

#include "sim/kernels/elementwise/elementwise_makers.h"
#include "sim/loops/loop_impl.h"

// ---- scalars ----

typedef struct {
  uint32_t code, from, to, direction, what;
} scalar_row_t;

static const scalar_row_t g_scalar_rows[] = {
#define ROW(kind, op, dtype) \
  {MP_OP_##op, MP_DTYPE_##dtype, MP_DTYPE_##dtype, 0, MP_DO_##op##_##dtype},
    MP_SCALAR_UNARY(ROW) MP_SCALAR_BINARY(ROW)
#undef ROW
#define ROW(direction, operator, dtype) \
  {MP_OP_COMPARE, MP_DTYPE_##dtype, MP_DTYPE_BOOL, MP_CMP_##direction, MP_DO_##direction##_##dtype},
        MP_SCALAR_COMPARE(ROW)
#undef ROW
#define ROW(from, to) {MP_OP_CONVERT, MP_DTYPE_##from, MP_DTYPE_##to, 0, MP_DO_##from##_TO_##to},
            MP_SCALAR_CONVERT(ROW)
#undef ROW
};

// The step that computes an op on single elements; MP_DO_LOOP: there is none of its own.
static uint32_t compute_op_find_row(mp_opcode_t code, mp_dtype_t from, mp_dtype_t to,
                                    uint32_t direction) {
  if (code == MP_OP_SELECT) {
#define CASE(bytes, dtype) \
  if (mp_dtype_size(to) == (bytes)) return MP_DO_SELECT_##bytes;
    MP_SCALAR_SELECT(CASE)
#undef CASE
    return MP_DO_LOOP;
  }
  for (size_t i = 0; i < sizeof(g_scalar_rows) / sizeof(g_scalar_rows[0]); ++i) {
    const scalar_row_t *row = &g_scalar_rows[i];
    if (row->code == (uint32_t)code && row->from == (uint32_t)from && row->to == (uint32_t)to &&
        row->direction == direction) {
      return row->what;
    }
  }
  return MP_DO_LOOP;
}

static uint32_t compute_op_scalar_step(const mp_op_t *op, const mp_ew_t *ew) {
  uint32_t direction = 0;
  if (op->code == MP_OP_COMPARE) {
    direction = mp_op_enum(op, MP_ATTR_COMPARISON_DIRECTION, MP_CMP_EQ);
    const bool is_total = mp_op_enum(op, MP_ATTR_COMPARE_TYPE, MP_CMP_NOTYPE) == MP_CMP_TOTALORDER;
    if (is_total && mp_dtype_is_float(ew->inputs[0])) return MP_DO_LOOP;
  }
  return compute_op_find_row(op->code, ew->inputs[0], ew->output, direction);
}

// Divides by a reciprocal if the divisor is a constant that has one (loop_run.c).
static void compute_op_use_reciprocal(const mp_loop_builder_t *b, mp_loop_step_t *step) {
  if (step->what != MP_DO_DIVIDE_S32 && step->what != MP_DO_REMAINDER_S32) return;
  const void *known = mp_loop_constant(b, step->in[1]);
  int32_t divisor = 0;
  if (known != NULL) memcpy(&divisor, known, sizeof(divisor));
  if (divisor < 2) return;
  step->what = step->what == MP_DO_DIVIDE_S32 ? MP_DO_DIVIDE_BY_S32 : MP_DO_REMAINDER_BY_S32;
  step->count = (int64_t)(UINT64_MAX / (uint32_t)divisor + 1);
}

// ---- an op on refs ----

// The op for machine code, on stored elements. Elements that are only selected may have any type of
// their size.
static mp_native_op_t compute_op_native(const mp_op_t *op, const mp_ew_t *ew) {
  if (op->code != MP_OP_SELECT) return mp_ew_native(op);
  const mp_dtype_t moved = mp_native_moved_type(mp_dtype_size(ew->output));
  return (mp_native_op_t){
      .code = moved == MP_DTYPE_INVALID ? MP_OP_COUNT : MP_OP_SELECT, .from = moved, .to = moved};
}

// Keeps the detail of a step if it may become machine code.
static mp_status_t compute_op_keep(const mp_loop_builder_t *b, const mp_loop_detail_t *detail,
                                   mp_loop_step_t *step) {
  if (b->is_straight) return NULL;
  step->detail = mp_arena_copy(b->arena, detail, sizeof(*detail));
  MP_RETURN_IF_NULL(step->detail);
  return NULL;
}

mp_status_t mp_loop_add_op(mp_loop_builder_t *b, const mp_op_t *op, const mp_ew_t *ew,
                           uint32_t ones, const mp_loop_ref_t *in, mp_loop_ref_t out,
                           int64_t count) {
  mp_loop_step_t step = {.what = MP_DO_LOOP,
                         .num_refs = ew->num_inputs,
                         .out = out,
                         .count = count,
                         .u.loop = ew->loop};
  mp_loop_detail_t detail = {.out_bytes = (uint64_t)count * mp_dtype_size(ew->output),
                             .op = compute_op_native(op, ew)};
  if (ones != 0) detail.op.code = MP_OP_COUNT;
  for (uint32_t i = 0; i < ew->num_inputs; ++i) {
    step.in[i] = in[i];
    detail.in_bytes[i] =
        ((ones >> i & 1) != 0 ? 1 : (uint64_t)count) * mp_dtype_size(ew->inputs[i]);
  }
  MP_RETURN_IF_ERROR(compute_op_keep(b, &detail, &step));
  if (ew->has_params) {
    void *params = mp_arena_copy(b->arena, ew->params, sizeof(ew->params));
    MP_RETURN_IF_NULL(params);
    step.in[step.num_refs++] = mp_loop_address_ref(b, params);
  } else if (count == 1) {
    step.what = compute_op_scalar_step(op, ew);
    compute_op_use_reciprocal(b, &step);
  }
  const bool is_costly = mp_op_info(op->code)->cost == MP_OP_COST_COSTLY;
  b->seconds += (double)count * (is_costly ? 10e-9 : 0.5e-9);
  return mp_loop_add_step(b, &step);
}

mp_status_t mp_loop_add_elementwise(mp_loop_builder_t *b, const mp_native_op_t *op,
                                    mp_ew_loop_t loop, uint32_t num_inputs, const mp_loop_ref_t *in,
                                    mp_loop_ref_t out, int64_t count) {
  mp_loop_step_t step = {
      .what = MP_DO_LOOP, .num_refs = num_inputs, .out = out, .count = count, .u.loop = loop};
  mp_loop_detail_t detail = {.out_bytes = (uint64_t)count * mp_dtype_size(op->to), .op = *op};
  if (!mp_native_knows(op)) detail.op.code = MP_OP_COUNT;
  for (uint32_t i = 0; i < num_inputs; ++i) {
    step.in[i] = in[i];
    detail.in_bytes[i] = (uint64_t)count * mp_dtype_size(mp_native_input_type(op, i));
  }
  MP_RETURN_IF_ERROR(compute_op_keep(b, &detail, &step));
  if (count == 1) step.what = compute_op_find_row(op->code, op->from, op->to, op->direction);
  b->seconds += (double)count * 0.5e-9;
  return mp_loop_add_step(b, &step);
}
