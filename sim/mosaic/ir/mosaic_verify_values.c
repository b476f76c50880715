// Ops of the dialects arith and math, and conversions.
#include "sim/mosaic/ir/mosaic_verify.h"

static bool mosaic_verify_values_all_equal(const mp_mosaic_op_t *op) {
  for (uint32_t i = 0; i < op->num_operands; ++i)
    if (!mp_mosaic_type_equal(mp_mosaic_in(op, i), mp_mosaic_out(op, 0))) return false;
  return true;
}

static mp_status_t mosaic_verify_values_float(const mp_mosaic_op_t *op) {
  MP_MOSAIC_CHECK(op,
                  mosaic_verify_values_all_equal(op) && mp_mosaic_is_float(mp_mosaic_out(op, 0)),
                  "operands and result are not of one floating-point type");
  return NULL;
}

static mp_status_t mosaic_verify_values_int(const mp_mosaic_op_t *op) {
  MP_MOSAIC_CHECK(op, mosaic_verify_values_all_equal(op) && mp_mosaic_is_int(mp_mosaic_out(op, 0)),
                  "operands and result are not of one integer type");
  return NULL;
}

static mp_status_t mosaic_verify_values_extended(const mp_mosaic_op_t *op) {
  MP_RETURN_IF_ERROR(mosaic_verify_values_int(op));
  MP_MOSAIC_CHECK(op, mp_mosaic_type_equal(mp_mosaic_out(op, 0), mp_mosaic_out(op, 1)),
                  "the results have different types");
  return NULL;
}

static mp_status_t mosaic_verify_values_is_test(const mp_mosaic_op_t *op) {
  const mp_mosaic_type_t *in = mp_mosaic_in(op, 0), *out = mp_mosaic_out(op, 0);
  MP_MOSAIC_CHECK(
      op, mp_mosaic_is_float(in) && mp_mosaic_same_shape(in, out) && out->dtype == MP_DTYPE_BOOL,
      "it does not make i1 of floating-point numbers");
  return NULL;
}

static mp_status_t mosaic_verify_values_compare(const mp_mosaic_op_t *op) {
  const mp_mosaic_type_t *in = mp_mosaic_in(op, 0), *out = mp_mosaic_out(op, 0);
  const bool is_float = op->code == MP_MOSAIC_CMPF;
  const int64_t predicate = mp_mosaic_op_int(op, "predicate", -1);
  MP_MOSAIC_CHECK(op,
                  mp_mosaic_type_equal(in, mp_mosaic_in(op, 1)) &&
                      (is_float ? mp_mosaic_is_float(in) : mp_mosaic_is_int(in)),
                  "it does not compare %s of one type", is_float ? "floats" : "integers");
  MP_MOSAIC_CHECK(op, mp_mosaic_same_shape(in, out) && out->dtype == MP_DTYPE_BOOL,
                  "its result is not i1 of the operands' shape");
  MP_MOSAIC_CHECK(op, predicate >= 0 && predicate <= (is_float ? 15 : 9),
                  "there is no predicate %lld", (long long)predicate);
  return NULL;
}

static mp_status_t mosaic_verify_values_select(const mp_mosaic_op_t *op) {
  const mp_mosaic_type_t *condition = mp_mosaic_in(op, 0), *out = mp_mosaic_out(op, 0);
  MP_MOSAIC_CHECK(op,
                  condition->kind != MP_MOSAIC_MEMREF && condition->dtype == MP_DTYPE_BOOL &&
                      (condition->kind == MP_MOSAIC_SCALAR || mp_mosaic_same_shape(condition, out)),
                  "its condition is not i1, or has another shape");
  MP_MOSAIC_CHECK(op,
                  mp_mosaic_type_equal(mp_mosaic_in(op, 1), out) &&
                      mp_mosaic_type_equal(mp_mosaic_in(op, 2), out),
                  "its values and its result have different types");
  return NULL;
}

static mp_status_t mosaic_verify_values_constant(const mp_mosaic_op_t *op) {
  const mp_mosaic_attr_t *value = mp_mosaic_op_attr(op, "value");
  const mp_mosaic_type_t *out = mp_mosaic_out(op, 0);
  bool fits = value != NULL;
  if (fits && value->kind == MP_MOSAIC_DENSE) {
    fits = mp_mosaic_type_equal(value->dense.type, out);
  } else if (fits) {
    fits = out->kind == MP_MOSAIC_SCALAR && value->dtype == out->dtype &&
           (value->kind == MP_MOSAIC_INT || value->kind == MP_MOSAIC_BOOL ||
            value->kind == MP_MOSAIC_FLOAT);
  }
  MP_MOSAIC_CHECK(op, fits, "its value does not have the type of its result");
  return NULL;
}

static mp_status_t mosaic_verify_values_fpowi(const mp_mosaic_op_t *op) {
  MP_MOSAIC_CHECK(op,
                  mp_mosaic_type_equal(mp_mosaic_in(op, 0), mp_mosaic_out(op, 0)) &&
                      mp_mosaic_is_float(mp_mosaic_out(op, 0)) &&
                      mp_mosaic_is_int(mp_mosaic_in(op, 1)) &&
                      mp_mosaic_same_shape(mp_mosaic_in(op, 0), mp_mosaic_in(op, 1)),
                  "it does not raise floats to integers");
  return NULL;
}

// ---- conversions ----

typedef enum { ANY, WIDER, NARROWER } width_t;

static mp_status_t mosaic_verify_values_convert(const mp_mosaic_op_t *op, bool from_float,
                                                bool to_float, width_t width) {
  const mp_mosaic_type_t *in = mp_mosaic_in(op, 0), *out = mp_mosaic_out(op, 0);
  const int change = mp_dtype_bits(out->dtype) - mp_dtype_bits(in->dtype);
  MP_MOSAIC_CHECK(op, mp_mosaic_same_shape(in, out), "it changes the shape");
  MP_MOSAIC_CHECK(op,
                  (from_float ? mp_mosaic_is_float(in) : mp_mosaic_is_int(in)) &&
                      (to_float ? mp_mosaic_is_float(out) : mp_mosaic_is_int(out)),
                  "it does not convert %s to %s", from_float ? "floats" : "integers",
                  to_float ? "floats" : "integers");
  MP_MOSAIC_CHECK(op, width == ANY || (width == WIDER ? change > 0 : change < 0),
                  "it converts %s to %s", mp_dtype_name(in->dtype), mp_dtype_name(out->dtype));
  return NULL;
}

static mp_status_t mosaic_verify_values_extf(const mp_mosaic_op_t *op) {
  return mosaic_verify_values_convert(op, true, true, op->code == MP_MOSAIC_EXTF ? WIDER : ANY);
}
static mp_status_t mosaic_verify_values_truncf(const mp_mosaic_op_t *op) {
  return mosaic_verify_values_convert(op, true, true,
                                      op->code == MP_MOSAIC_TRUNCF ? NARROWER : ANY);
}
static mp_status_t mosaic_verify_values_exti(const mp_mosaic_op_t *op) {
  return mosaic_verify_values_convert(op, false, false, WIDER);
}
static mp_status_t mosaic_verify_values_trunci(const mp_mosaic_op_t *op) {
  return mosaic_verify_values_convert(op, false, false, NARROWER);
}
static mp_status_t mosaic_verify_values_ftoi(const mp_mosaic_op_t *op) {
  return mosaic_verify_values_convert(op, true, false, ANY);
}
static mp_status_t mosaic_verify_values_itof(const mp_mosaic_op_t *op) {
  return mosaic_verify_values_convert(op, false, true, ANY);
}
static mp_status_t mosaic_verify_values_index(const mp_mosaic_op_t *op) {
  return mosaic_verify_values_convert(op, false, false, ANY);
}

static mp_status_t mosaic_verify_values_bitcast(const mp_mosaic_op_t *op) {
  const mp_mosaic_type_t *in = mp_mosaic_in(op, 0), *out = mp_mosaic_out(op, 0);
  MP_MOSAIC_CHECK(
      op, mp_mosaic_same_shape(in, out) && mp_dtype_bits(in->dtype) == mp_dtype_bits(out->dtype),
      "it changes the shape or the width of its elements");
  return NULL;
}

mp_mosaic_check_t mp_mosaic_check_values(mp_mosaic_opcode_t code) {
  static const mp_mosaic_check_t checks[MP_MOSAIC_OP_COUNT] = {
#define MOSAIC_UNARY_CHECK(name, ...) [MP_MOSAIC_##name] = mosaic_verify_values_float,
      MP_MOSAIC_UNARY(MOSAIC_UNARY_CHECK)
#undef MOSAIC_UNARY_CHECK
#define MOSAIC_BINARY_CHECK(name, ...) [MP_MOSAIC_##name] = mosaic_verify_values_int,
          MP_MOSAIC_BINARY(MOSAIC_BINARY_CHECK)
#undef MOSAIC_BINARY_CHECK
  };
  switch (code) {
    case MP_MOSAIC_ADDF:
    case MP_MOSAIC_SUBF:
    case MP_MOSAIC_MULF:
    case MP_MOSAIC_DIVF:
    case MP_MOSAIC_REMF:
    case MP_MOSAIC_MAXIMUMF:
    case MP_MOSAIC_MINIMUMF:
    case MP_MOSAIC_MAXNUMF:
    case MP_MOSAIC_MINNUMF:
    case MP_MOSAIC_ATAN2:
    case MP_MOSAIC_COPYSIGN:
    case MP_MOSAIC_POWF:
    case MP_MOSAIC_FMA:
      return mosaic_verify_values_float;
    case MP_MOSAIC_ABSI:
    case MP_MOSAIC_CTLZ:
    case MP_MOSAIC_CTTZ:
    case MP_MOSAIC_CTPOP:
      return mosaic_verify_values_int;
    case MP_MOSAIC_MULSI_EXTENDED:
    case MP_MOSAIC_MULUI_EXTENDED:
      return mosaic_verify_values_extended;
    case MP_MOSAIC_CMPF:
    case MP_MOSAIC_CMPI:
      return mosaic_verify_values_compare;
    case MP_MOSAIC_FPOWI:
      return mosaic_verify_values_fpowi;
    case MP_MOSAIC_ISFINITE:
    case MP_MOSAIC_ISINF:
    case MP_MOSAIC_ISNAN:
    case MP_MOSAIC_WEIRD:
      return mosaic_verify_values_is_test;
    case MP_MOSAIC_SELECT:
      return mosaic_verify_values_select;
    case MP_MOSAIC_CONSTANT:
      return mosaic_verify_values_constant;
    case MP_MOSAIC_EXTF:
    case MP_MOSAIC_TPU_EXTF:
      return mosaic_verify_values_extf;
    case MP_MOSAIC_TRUNCF:
    case MP_MOSAIC_TPU_TRUNCF:
      return mosaic_verify_values_truncf;
    case MP_MOSAIC_EXTSI:
    case MP_MOSAIC_EXTUI:
      return mosaic_verify_values_exti;
    case MP_MOSAIC_TRUNCI:
      return mosaic_verify_values_trunci;
    case MP_MOSAIC_FPTOSI:
    case MP_MOSAIC_FPTOUI:
    case MP_MOSAIC_TPU_FPTOSI:
    case MP_MOSAIC_TPU_FPTOUI:
      return mosaic_verify_values_ftoi;
    case MP_MOSAIC_SITOFP:
    case MP_MOSAIC_UITOFP:
    case MP_MOSAIC_TPU_SITOFP:
    case MP_MOSAIC_TPU_UITOFP:
      return mosaic_verify_values_itof;
    case MP_MOSAIC_INDEX_CAST:
    case MP_MOSAIC_INDEX_CASTUI:
      return mosaic_verify_values_index;
    case MP_MOSAIC_BITCAST:
      return mosaic_verify_values_bitcast;
    default:
      return checks[code];
  }
}
