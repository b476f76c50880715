// The operations that hostile_programs.h draws: elementwise ones and bits under other types.
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_HOSTILE_HOSTILE_ELEMENTWISE_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_HOSTILE_HOSTILE_ELEMENTWISE_H_

#include <stdio.h>

#include "tests/unit/support/hostile/hostile_programs.h"

typedef enum { DRAW_SAME, DRAW_REAL_PART, DRAW_FLAGS } draw_result_kind_t;

typedef struct {
  const char *name;
  uint32_t num_operands, classes;
  draw_result_kind_t result;
} draw_elementwise_t;

static const draw_elementwise_t k_draw_elementwise[] = {
    {"abs", 1, DRAW_NUMBER, DRAW_REAL_PART},
    {"add", 2, DRAW_ANY, DRAW_SAME},
    {"and", 2, DRAW_INTEGER | DRAW_BOOL, DRAW_SAME},
    {"atan2", 2, DRAW_FLOAT | DRAW_COMPLEX, DRAW_SAME},
    {"cbrt", 1, DRAW_FLOAT | DRAW_COMPLEX, DRAW_SAME},
    {"ceil", 1, DRAW_FLOAT, DRAW_SAME},
    {"cosine", 1, DRAW_FLOAT | DRAW_COMPLEX, DRAW_SAME},
    {"count_leading_zeros", 1, DRAW_INTEGER, DRAW_SAME},
    {"divide", 2, DRAW_NUMBER, DRAW_SAME},
    {"exponential", 1, DRAW_FLOAT | DRAW_COMPLEX, DRAW_SAME},
    {"exponential_minus_one", 1, DRAW_FLOAT | DRAW_COMPLEX, DRAW_SAME},
    {"floor", 1, DRAW_FLOAT, DRAW_SAME},
    {"imag", 1, DRAW_FLOAT | DRAW_COMPLEX, DRAW_REAL_PART},
    {"is_finite", 1, DRAW_FLOAT, DRAW_FLAGS},
    {"log", 1, DRAW_FLOAT | DRAW_COMPLEX, DRAW_SAME},
    {"log_plus_one", 1, DRAW_FLOAT | DRAW_COMPLEX, DRAW_SAME},
    {"logistic", 1, DRAW_FLOAT | DRAW_COMPLEX, DRAW_SAME},
    {"maximum", 2, DRAW_ANY, DRAW_SAME},
    {"minimum", 2, DRAW_ANY, DRAW_SAME},
    {"multiply", 2, DRAW_ANY, DRAW_SAME},
    {"negate", 1, DRAW_NUMBER, DRAW_SAME},
    {"not", 1, DRAW_INTEGER | DRAW_BOOL, DRAW_SAME},
    {"or", 2, DRAW_INTEGER | DRAW_BOOL, DRAW_SAME},
    {"popcnt", 1, DRAW_INTEGER, DRAW_SAME},
    {"power", 2, DRAW_NUMBER, DRAW_SAME},
    {"real", 1, DRAW_FLOAT | DRAW_COMPLEX, DRAW_REAL_PART},
    {"remainder", 2, DRAW_INTEGER | DRAW_FLOAT, DRAW_SAME},
    {"round_nearest_afz", 1, DRAW_FLOAT, DRAW_SAME},
    {"round_nearest_even", 1, DRAW_FLOAT, DRAW_SAME},
    {"rsqrt", 1, DRAW_FLOAT | DRAW_COMPLEX, DRAW_SAME},
    {"shift_left", 2, DRAW_INTEGER, DRAW_SAME},
    {"shift_right_arithmetic", 2, DRAW_INTEGER, DRAW_SAME},
    {"shift_right_logical", 2, DRAW_INTEGER, DRAW_SAME},
    {"sign", 1, DRAW_NUMBER, DRAW_SAME},
    {"sine", 1, DRAW_FLOAT | DRAW_COMPLEX, DRAW_SAME},
    {"sqrt", 1, DRAW_FLOAT | DRAW_COMPLEX, DRAW_SAME},
    {"subtract", 2, DRAW_NUMBER, DRAW_SAME},
    {"tan", 1, DRAW_FLOAT | DRAW_COMPLEX, DRAW_SAME},
    {"tanh", 1, DRAW_FLOAT | DRAW_COMPLEX, DRAW_SAME},
    {"xor", 2, DRAW_INTEGER | DRAW_BOOL, DRAW_SAME},
};
enum { DRAW_NUM_ELEMENTWISE = sizeof(k_draw_elementwise) / sizeof(k_draw_elementwise[0]) };

// Now and then more elements than a block of the loops has.
static inline draw_shape_t draw_elements(draw_t *d, mp_dtype_t dtype) {
  draw_shape_t shape = draw_shape(d, dtype, 0, 3);
  if (shape.rank == 1 && draw_below(d, 4) == 0) shape.dims[0] = draw_between(d, 250, 600);
  return shape;
}

static inline void draw_elementwise(draw_t *d) {
  const draw_elementwise_t *op = &k_draw_elementwise[draw_below(d, DRAW_NUM_ELEMENTWISE)];
  const draw_shape_t shape = draw_elements(d, draw_dtype(d, op->classes));
  char name[64];
  snprintf(name, sizeof(name), "stablehlo.%s", op->name);
  for (uint32_t i = 0; i < op->num_operands; ++i) draw_operand(d, shape);
  draw_op(d, name);
  draw_result(d, op->result == DRAW_SAME    ? shape
                 : op->result == DRAW_FLAGS ? draw_retype(shape, MP_DTYPE_BOOL)
                                            : draw_retype(shape, mp_dtype_real_part(shape.dtype)));
}

static inline void draw_convert(draw_t *d) {
  const draw_shape_t shape = draw_elements(d, draw_dtype(d, DRAW_ANY));
  draw_operand(d, shape);
  draw_op(d, "stablehlo.convert");
  draw_result(d, draw_retype(shape, draw_dtype(d, DRAW_ANY)));
}

static inline void draw_compare(draw_t *d) {
  static const char *const directions[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
  const draw_shape_t shape = draw_elements(d, draw_dtype(d, DRAW_ANY));
  const bool is_total = mp_dtype_is_float(shape.dtype) && draw_bool(d);
  draw_operand(d, shape);
  draw_operand(d, shape);
  draw_op(d, "stablehlo.compare");
  mp_strbuf_printf(&d->op, " <{%scomparison_direction = #stablehlo<comparison_direction %s>}>",
                   is_total ? "compare_type = #stablehlo<comparison_type TOTALORDER>, " : "",
                   directions[draw_below(d, mp_dtype_is_complex(shape.dtype) ? 2 : 6)]);
  draw_result(d, draw_retype(shape, MP_DTYPE_BOOL));
}

static inline void draw_select(draw_t *d) {
  const draw_shape_t shape = draw_elements(d, draw_dtype(d, DRAW_ANY));
  draw_operand(d, draw_bool(d) ? draw_scalar(MP_DTYPE_BOOL) : draw_retype(shape, MP_DTYPE_BOOL));
  draw_operand(d, shape);
  draw_operand(d, shape);
  draw_op(d, "stablehlo.select");
  draw_result(d, shape);
}

static inline void draw_clamp(draw_t *d) {
  const draw_shape_t shape = draw_elements(d, draw_dtype(d, DRAW_ANY));
  draw_operand(d, draw_bool(d) ? draw_scalar(shape.dtype) : shape);
  draw_operand(d, shape);
  draw_operand(d, draw_bool(d) ? draw_scalar(shape.dtype) : shape);
  draw_op(d, "stablehlo.clamp");
  draw_result(d, shape);
}

static inline void draw_complex(draw_t *d) {
  const bool is_double = draw_bool(d);
  const draw_shape_t shape = draw_elements(d, is_double ? MP_DTYPE_F64 : MP_DTYPE_F32);
  draw_operand(d, shape);
  draw_operand(d, shape);
  draw_op(d, "stablehlo.complex");
  draw_result(d, draw_retype(shape, is_double ? MP_DTYPE_C128 : MP_DTYPE_C64));
}

static inline void draw_reduce_precision(draw_t *d) {
  const draw_shape_t shape = draw_elements(d, draw_dtype(d, DRAW_FLOAT));
  draw_operand(d, shape);
  draw_op(d, "stablehlo.reduce_precision");
  mp_strbuf_printf(&d->op, " <{exponent_bits = %d : i32, mantissa_bits = %d : i32}>",
                   (int)draw_between(d, 1, 12), (int)draw_between(d, 0, 60));
  draw_result(d, shape);
}

static inline void draw_bitcast(draw_t *d) {
  draw_shape_t from = draw_shape(d, draw_dtype(d, DRAW_INTEGER | DRAW_FLOAT), 0, 3);
  draw_shape_t to = draw_retype(from, draw_dtype(d, DRAW_INTEGER | DRAW_FLOAT));
  const int from_bits = mp_dtype_bits(from.dtype), to_bits = mp_dtype_bits(to.dtype);
  if (from_bits > to_bits && from_bits % to_bits == 0) {
    to.dims[to.rank++] = from_bits / to_bits;
  } else if (from_bits < to_bits && to_bits % from_bits == 0) {
    from.dims[from.rank++] = to_bits / from_bits;
  } else {
    to.dtype = from.dtype;
  }
  draw_operand(d, from);
  draw_op(d, "stablehlo.bitcast_convert");
  draw_result(d, to);
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_HOSTILE_HOSTILE_ELEMENTWISE_H_
