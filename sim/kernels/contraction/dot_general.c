// dot_general (StableHLO specification, "dot_general"): contraction of any dimensions, in any
// element types.
//
// The accumulator is f32 for floating-point types of up to 32 bits and f64 for f64; for integers it
// is a wrapping integer of 32 or 64 bits. The widest of the operands' and the result's types
// decides. For booleans it counts the products that are true. This is at least as exact as any
// precision or algorithm attribute can require, except that these may require a wider accumulator.
#include "sim/kernels/contraction/contraction_makers.h"
#include "sim/kernels/contraction/gemm.h"
#include "sim/kernels/contraction/matvec.h"
#include "sim/kernels/contraction/operand.h"
#include "sim/kernels/shape.h"

typedef struct {
  mp_kernel_t base;
  mp_gemm_t gemm;
  mp_matvec_t matvec;
  mp_operand_t sides[2];
  mp_convert_t store;  // from the accumulation type to that of (the real part of) the result
  bool complex;
  bool use_matvec;
} dot_kernel_t;

static mp_status_t dot_general_run(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const dot_kernel_t *self = (const dot_kernel_t *)kernel;
  if (self->use_matvec) {
    mp_matvec_run_part(&self->matvec, kernel, call);
  } else {
    mp_gemm_run_part(&self->gemm, kernel, call);
  }
  return NULL;
}

static void dot_general_pack(const dot_kernel_t *self, uint32_t number,
                             const mp_kernel_call_t *call, const mp_gemm_range_t *range,
                             uint32_t width, void *panels) {
  if (mp_acc_k_per_element(self->gemm.acc) != 1) {
    mp_operand_words_pack(&self->sides[number], call->operands[number], range, width, panels);
  } else {
    mp_operand_pack(&self->sides[number], call->operands[number], range, width, panels);
  }
}

static void dot_general_pack_a(const void *context, const mp_kernel_call_t *call,
                               const mp_gemm_range_t *range, uint32_t width, void *panels) {
  dot_general_pack(context, 0, call, range, width, panels);
}

static void dot_general_pack_b(const void *context, const mp_kernel_call_t *call,
                               const mp_gemm_range_t *range, uint32_t width, void *panels) {
  dot_general_pack(context, 1, call, range, width, panels);
}

static void dot_general_lines(const void *context, const mp_kernel_call_t *call,
                              const mp_gemm_range_t *range, int64_t step, void *lines) {
  const dot_kernel_t *self = context;
  if (mp_acc_k_per_element(self->gemm.acc) != 1) {
    mp_operand_words_lines(&self->sides[0], call->operands[0], range, step, lines);
  } else {
    mp_operand_lines(&self->sides[0], call->operands[0], range, step, lines);
  }
}

static const char *dot_general_locate_a(const void *context, const mp_kernel_call_t *call,
                                        int64_t batch) {
  int64_t offset = 0;
  mp_axes_offsets(&((const dot_kernel_t *)context)->sides[0].batch, batch, 1, &offset);
  return (const char *)call->operands[0] + offset;
}

static const char *dot_general_locate_b(const void *context, const mp_kernel_call_t *call,
                                        int64_t batch) {
  int64_t offset = 0;
  mp_axes_offsets(&((const dot_kernel_t *)context)->sides[1].batch, batch, 1, &offset);
  return (const char *)call->operands[1] + offset;
}

static void dot_general_store(const void *context, const mp_kernel_call_t *call,
                              const mp_gemm_block_t *block) {
  const dot_kernel_t *self = context;
  int64_t acc_size = (int64_t)mp_acc_size(self->gemm.acc);
  int64_t size = (int64_t)mp_dtype_size(self->store.to);
  for (int64_t i = 0; i < block->rows; ++i) {
    int64_t at = (block->batch * self->gemm.m + block->m + i) * self->gemm.n + block->n;
    mp_convert_run(&self->store, block->columns, block->c + i * block->ldc * acc_size,
                   (char *)call->results[0] + at * size);
  }
}

// Whether each side has several rows, so that this is not a matrix times a vector.
static bool dot_general_is_matrix(const mp_op_t *op) {
  for (uint32_t number = 0; number < 2; ++number) {
    const mp_type_t *type = mp_op_operand_type(op, number);
    const bool is_left = number == 0;
    mp_index_list_t batch =
        mp_op_ints(op, is_left ? MP_ATTR_LHS_BATCHING_DIMENSIONS : MP_ATTR_RHS_BATCHING_DIMENSIONS);
    mp_index_list_t contracting = mp_op_ints(
        op, is_left ? MP_ATTR_LHS_CONTRACTING_DIMENSIONS : MP_ATTR_RHS_CONTRACTING_DIMENSIONS);
    bool has_rows = false;
    for (uint32_t i = 0; i < type->rank; ++i) {
      has_rows |=
          type->dims[i] != 1 && !mp_index_list_has(batch, i) && !mp_index_list_has(contracting, i);
    }
    if (!has_rows) return false;
  }
  return true;
}

static mp_acc_t dot_general_accumulator(const mp_op_t *op) {
  mp_dtype_t dtypes[4] = {mp_op_operand_type(op, 0)->dtype, mp_op_operand_type(op, 1)->dtype,
                          mp_op_result_type(op, 0)->dtype};
  uint32_t count = 3;
  const mp_attr_t *wanted = mp_op_attr(op, MP_ATTR_ACCUMULATION_TYPE);
  if (wanted != NULL && wanted->kind == MP_KIND_TYPE && wanted->u.type != NULL &&
      wanted->u.type->kind == MP_TYPE_TENSOR) {
    dtypes[count++] = wanted->u.type->dtype;
  }
  const mp_acc_t acc = mp_acc_for(dtypes, count);
  if (acc != MP_ACC_U32 || !dot_general_is_matrix(op)) return acc;
  const bool are_bytes = mp_operand_is_byte(dtypes[0]) && mp_operand_is_byte(dtypes[1]);
  if (are_bytes && mp_gemm_micro(MP_ACC_QUADS) != NULL) return MP_ACC_QUADS;
  const bool are_short = mp_operand_is_short(dtypes[0]) && mp_operand_is_short(dtypes[1]);
  return are_short ? MP_ACC_PAIRS : acc;
}

// Sets up one side: decides which of its dimensions are batch, rows and k.
static mp_status_t dot_general_side(mp_arena_t *arena, const mp_op_t *op, uint32_t number,
                                    dot_kernel_t *self) {
  const mp_type_t *type = mp_op_operand_type(op, number);
  mp_operand_t *side = &self->sides[number];
  mp_index_list_t batch = mp_op_ints(
      op, number == 0 ? MP_ATTR_LHS_BATCHING_DIMENSIONS : MP_ATTR_RHS_BATCHING_DIMENSIONS);
  mp_index_list_t contracting = mp_op_ints(
      op, number == 0 ? MP_ATTR_LHS_CONTRACTING_DIMENSIONS : MP_ATTR_RHS_CONTRACTING_DIMENSIONS);
  MP_RETURN_IF_ERROR(mp_axes_init(arena, type->rank, &side->batch));
  MP_RETURN_IF_ERROR(mp_axes_init(arena, type->rank, &side->rows));
  MP_RETURN_IF_ERROR(mp_axes_init(arena, type->rank + 1, &side->k));
  mp_dtype_t real = mp_dtype_real_part(type->dtype);
  mp_dtype_t acc = mp_acc_dtype(self->gemm.acc);
  const int64_t in_element = mp_acc_k_per_element(self->gemm.acc);
  const mp_dtype_t part = in_element == 1 ? acc : in_element == 2 ? MP_DTYPE_S16 : MP_DTYPE_S8;
  side->has_offset = self->gemm.acc == MP_ACC_QUADS && number == 0;
  if (!mp_convert_bind(real, part, &side->convert)) {
    return mp_op_error(op, MP_UNIMPLEMENTED, "dot_general of %s", mp_dtype_name(type->dtype));
  }
  side->element = (uint32_t)mp_dtype_size(real);
  side->acc_bytes = (uint32_t)mp_dtype_size(acc);
  int64_t strides[MP_MAX_RANK];
  mp_dims_strides(type->dims, type->rank, (int64_t)mp_dtype_size(type->dtype), strides);
  for (uint32_t i = 0; i < batch.count; ++i) {
    mp_axes_add(&side->batch, type->dims[batch.values[i]], strides[batch.values[i]]);
  }
  for (uint32_t i = 0; i < type->rank; ++i) {
    if (mp_index_list_has(batch, i) || mp_index_list_has(contracting, i)) continue;
    mp_axes_add(&side->rows, type->dims[i], strides[i]);
  }
  for (uint32_t i = 0; i < contracting.count; ++i) {
    mp_axes_add(&side->k, type->dims[contracting.values[i]], strides[contracting.values[i]]);
  }
  if (self->complex && number == 0) mp_axes_add(&side->k, 2, side->element);
  side->crossed = self->complex && number == 1;
  return NULL;
}

// How the product reads a side: in place, if its elements need no conversion and are at equal
// distances.
static mp_gemm_side_t dot_general_gemm_side(const dot_kernel_t *self, uint32_t number) {
  const mp_operand_t *side = &self->sides[number];
  mp_gemm_side_t out = {.pack = number == 0 ? dot_general_pack_a : dot_general_pack_b};
  const bool rows_are_even = mp_axes_step(&side->rows, &out.row_step);
  const bool k_is_even = mp_axes_step(&side->k, &out.k_step);
  const bool is_as_stored =
      mp_convert_is_copy(&side->convert) && mp_acc_k_per_element(self->gemm.acc) == 1;
  if (rows_are_even && k_is_even && !side->crossed && is_as_stored) {
    out.locate = number == 0 ? dot_general_locate_a : dot_general_locate_b;
  }
  // Rows that are contiguous in memory go into panels as they are; all others are copied as lines.
  const bool is_turned = rows_are_even && out.row_step == side->element && side->rows.count > 1;
  if (number == 0 && !side->crossed && !is_turned) out.lines = dot_general_lines;
  return out;
}

static mp_status_t dot_general_plan(mp_arena_t *arena, dot_kernel_t *self) {
  mp_gemm_t *gemm = &self->gemm;
  gemm->batch = self->sides[0].batch.count;
  gemm->m = self->sides[0].rows.count;
  gemm->n = self->sides[1].rows.count * (self->complex ? 2 : 1);
  gemm->k = self->sides[0].k.count;
  const int64_t in_element = mp_acc_k_per_element(gemm->acc);
  gemm->k = (gemm->k + in_element - 1) / in_element;
  gemm->context = self;
  gemm->a = dot_general_gemm_side(self, 0);
  gemm->b = dot_general_gemm_side(self, 1);
  gemm->store = mp_dtype_size(self->store.to) == mp_acc_size(gemm->acc) &&
                        (mp_dtype_is_float(self->store.to) == mp_dtype_is_float(self->store.from))
                    ? NULL
                    : dot_general_store;
  self->use_matvec = !self->complex && (gemm->m == 1 || gemm->n == 1);
  if (self->use_matvec) {
    uint32_t matrix = gemm->n == 1 ? 0 : 1;
    self->matvec = (mp_matvec_t){.acc = gemm->acc,
                                 .matrix = &self->sides[matrix],
                                 .vector = &self->sides[1 - matrix],
                                 .matrix_operand = matrix,
                                 .vector_operand = 1 - matrix,
                                 .store = self->store};
    return mp_matvec_plan(arena, &self->matvec, &self->base);
  }
  mp_gemm_plan(gemm, &self->base);
  return NULL;
}

mp_status_t mp_kernel_make_dot_general(mp_arena_t *arena, const mp_op_t *op,
                                       const mp_kernel_t **out_kernel) {
  const mp_type_t *lhs = mp_op_operand_type(op, 0), *rhs = mp_op_operand_type(op, 1);
  const mp_type_t *out = mp_op_result_type(op, 0);
  bool is_complex = mp_dtype_is_complex(lhs->dtype);
  if (is_complex != mp_dtype_is_complex(rhs->dtype) ||
      is_complex != mp_dtype_is_complex(out->dtype)) {
    return mp_op_error(op, MP_UNIMPLEMENTED, "dot_general of %s and %s to %s",
                       mp_dtype_name(lhs->dtype), mp_dtype_name(rhs->dtype),
                       mp_dtype_name(out->dtype));
  }
  dot_kernel_t *self = MP_ARENA_NEW(arena, dot_kernel_t);
  MP_RETURN_IF_NULL(self);
  mp_kernel_init(&self->base, dot_general_run, op);
  self->complex = is_complex;
  self->gemm.acc = dot_general_accumulator(op);
  MP_RETURN_IF_ERROR(dot_general_side(arena, op, 0, self));
  MP_RETURN_IF_ERROR(dot_general_side(arena, op, 1, self));
  mp_dtype_t real = mp_dtype_real_part(out->dtype);
  if (!mp_convert_bind(mp_acc_dtype(self->gemm.acc), real, &self->store)) {
    return mp_op_error(op, MP_UNIMPLEMENTED, "dot_general to %s", mp_dtype_name(out->dtype));
  }
  MP_RETURN_IF_ERROR(dot_general_plan(arena, self));
  *out_kernel = &self->base;
  return NULL;
}
