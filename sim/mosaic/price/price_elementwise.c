// Elementwise ops: operations of the vector unit and functions per register of 32-bit elements.
#include <math.h>

#include "sim/mosaic/price/price_units.h"

// Operations, and functions of the function unit, by generation.
typedef struct {
  mp_mosaic_opcode_t code;
  struct {
    float operations, functions;
  } narrow, wide;
} elementwise_t;

// Ops that are not in the table have one operation. Narrow: sequences of instructions that correct
// an approximation of the function unit.
static const elementwise_t g_elementwise[] = {
    {MP_MOSAIC_DIVF, {17, 1}, {1, 1}},      {MP_MOSAIC_RECIPROCAL, {15, 1}, {0, 1}},
    {MP_MOSAIC_EXP, {1, 1}, {1, 1}},        {MP_MOSAIC_EXP2, {0, 1}, {0, 1}},
    {MP_MOSAIC_EXPM1, {12, 1}, {12, 1}},    {MP_MOSAIC_LOG, {1, 1}, {1, 1}},
    {MP_MOSAIC_LOG2, {1, 1}, {1, 1}},       {MP_MOSAIC_LOG1P, {12, 1}, {12, 1}},
    {MP_MOSAIC_TANH, {0, 1}, {0, 1}},       {MP_MOSAIC_ERF, {41, 1}, {0, 1}},
    {MP_MOSAIC_RSQRT, {9, 1}, {0, 1}},      {MP_MOSAIC_SQRT, {13, 1}, {7, 1}},
    {MP_MOSAIC_SIN, {160, 2}, {77, 2}},     {MP_MOSAIC_COS, {160, 2}, {77, 2}},
    {MP_MOSAIC_TAN, {180, 3}, {90, 3}},     {MP_MOSAIC_POWF, {20, 2}, {13, 2}},
    {MP_MOSAIC_CBRT, {20, 2}, {13, 2}},     {MP_MOSAIC_ROUND, {4, 0}, {4, 0}},
    {MP_MOSAIC_ROUNDEVEN, {4, 0}, {4, 0}},  {MP_MOSAIC_REMF, {20, 1}, {8, 1}},
    {MP_MOSAIC_DIVSI, {50, 1}, {22, 1}},    {MP_MOSAIC_DIVUI, {50, 1}, {22, 1}},
    {MP_MOSAIC_REMSI, {50, 1}, {22, 1}},    {MP_MOSAIC_REMUI, {50, 1}, {22, 1}},
    {MP_MOSAIC_BITCAST, {0, 0}, {0, 0}},    {MP_MOSAIC_CONSTANT, {0, 0}, {0, 0}},
    {MP_MOSAIC_INDEX_CAST, {0, 0}, {0, 0}}, {MP_MOSAIC_FMA, {2, 0}, {2, 0}},
    {MP_MOSAIC_LOGISTIC, {17, 2}, {2, 2}},  {MP_MOSAIC_REDUCE_PRECISION, {4, 0}, {4, 0}},
};

static elementwise_t price_elementwise_find(mp_mosaic_opcode_t code) {
  for (size_t i = 0; i < sizeof(g_elementwise) / sizeof(*g_elementwise); ++i) {
    if (g_elementwise[i].code == code) return g_elementwise[i];
  }
  return (elementwise_t){code, {1, 0}, {1, 0}};
}

// The bits of the elements that the op computes with.
static int price_elementwise_bits(const mp_mosaic_op_t *op) {
  int bits = mp_dtype_bits(op->results[0].type->dtype);
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const int of_operand = mp_dtype_bits(op->operands[i]->type->dtype);
    if (of_operand > bits) bits = of_operand;
  }
  return bits;
}

// Narrow cores compute with 32 bits alone: operands are unpacked, and results are packed.
static void price_elementwise_widen(const mp_mosaic_op_t *op, double registers,
                                    mp_price_need_t *out) {
  const mp_mosaic_type_t *type = op->results[0].type;
  double packs = type->dtype == MP_DTYPE_BOOL ? 0 : registers / 2;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_mosaic_type_t *from = op->operands[i]->type;
    if (from->kind == MP_MOSAIC_VECTOR && from->dtype != MP_DTYPE_BOOL) packs += registers;
  }
  out->work[MP_PRICE_ARITHMETIC] += packs;
}

static void price_elementwise_convert(const mp_mosaic_op_t *op, mp_price_need_t *out) {
  const mp_mosaic_type_t *from = op->operands[0]->type, *to = op->results[0].type;
  const int from_bits = mp_dtype_bits(from->dtype), to_bits = mp_dtype_bits(to->dtype);
  const bool converts = mp_dtype_is_float(from->dtype) != mp_dtype_is_float(to->dtype);
  const double wide = mp_price_wide_registers(to);
  if (from->dtype == MP_DTYPE_BOOL || to->dtype == MP_DTYPE_BOOL) {
    out->work[MP_PRICE_ARITHMETIC] = wide;
    return;
  }
  out->work[MP_PRICE_ARITHMETIC] = converts ? wide : 0;
  if (from_bits < to_bits) out->work[MP_PRICE_ARITHMETIC] += mp_price_registers(to);
  // Two registers become one at a time.
  if (from_bits > to_bits)
    out->work[MP_PRICE_ARITHMETIC] += to_bits >= 16 ? mp_price_registers(to) : wide * 3 / 4;
}

static bool price_elementwise_is_conversion(mp_mosaic_opcode_t code) {
  return code == MP_MOSAIC_EXTF || code == MP_MOSAIC_TRUNCF || code == MP_MOSAIC_EXTSI ||
         code == MP_MOSAIC_EXTUI || code == MP_MOSAIC_TRUNCI || code == MP_MOSAIC_SITOFP ||
         code == MP_MOSAIC_UITOFP || code == MP_MOSAIC_FPTOSI || code == MP_MOSAIC_FPTOUI;
}

bool mp_price_elementwise(const mp_price_chip_t *chip, const mp_mosaic_op_t *op,
                          mp_price_need_t *out) {
  const mp_price_core_t *core = mp_price_core(chip);
  if (mp_mosaic_op_info(op->code)->op_class != MP_MOSAIC_CLASS_SCALAR_OR_VECTOR) return false;
  out->latency = core->arithmetic;
  if (price_elementwise_is_conversion(op->code)) {
    price_elementwise_convert(op, out);
    return true;
  }
  elementwise_t row = price_elementwise_find(op->code);
  // The approximations of the function unit are exact enough for 16 bits.
  if (price_elementwise_bits(op) <= 16 && row.narrow.functions > 0) row.narrow.operations = 1;
  const double operations = chip->is_wide ? row.wide.operations : row.narrow.operations;
  const double functions = chip->is_wide ? row.wide.functions : row.narrow.functions;
  const mp_mosaic_type_t *type = op->results[0].type;
  const double wide = mp_price_wide_registers(type);
  const int bits = price_elementwise_bits(op);
  const bool is_packed = bits < 32 && bits > 1;
  const double packed = is_packed ? ceil(wide * bits / 32) : wide;
  out->work[MP_PRICE_ARITHMETIC] = operations * (chip->is_wide ? packed : wide);
  out->work[MP_PRICE_FUNCTION] = functions * wide;
  if (is_packed && !chip->is_wide && (operations > 0 || functions > 0))
    price_elementwise_widen(op, wide, out);
  if (functions > 0) out->latency = core->function + core->arithmetic * fmin(operations, 8);
  return true;
}
