// Products (dot, convolution, einsum) whose operands and result are of different classes of element
// types, such as f32 x f32 -> complex<f32> or i1 x i1 -> f32. As in XLA, the op is computed in the
// higher of two types: the higher one of the operands, and the result's. The operands are converted
// to it, and if it is not the result's type, the result is converted, too.
#include "sim/passes/desugar/desugar_impl.h"
#include "sim/passes/rewrite/rewrite.h"

// The properties by which XLA orders two types, the most important first.
typedef struct {
  bool is_complex;
  int exponent, fraction;  // bits of a floating-point type
  int bits;
  bool is_signed;
} rank_t;

static rank_t desugar_products_rank(mp_dtype_t dtype) {
#define FORMAT(name, text, class, bits, storage, style, exponent, fraction, ...) \
  [MP_DTYPE_##name] = {exponent, fraction},
  static const int formats[MP_DTYPE_COUNT][2] = {MP_DTYPES(FORMAT)};
#undef FORMAT
  const mp_dtype_t part = mp_dtype_real_part(dtype);
  return (rank_t){.is_complex = mp_dtype_is_complex(dtype),
                  .exponent = formats[part][0],
                  .fraction = formats[part][1],
                  .bits = mp_dtype_bits(dtype),
                  .is_signed = mp_dtype_class(dtype) == MP_CLASS_SIGNED};
}

// The higher of two types; `a` if they are equal.
static mp_dtype_t desugar_products_higher(mp_dtype_t a, mp_dtype_t b) {
  const rank_t x = desugar_products_rank(a), y = desugar_products_rank(b);
  if (x.is_complex != y.is_complex) return x.is_complex ? a : b;
  if (x.exponent != y.exponent) return x.exponent > y.exponent ? a : b;
  if (x.fraction != y.fraction) return x.fraction > y.fraction ? a : b;
  if (x.bits != y.bits) return x.bits > y.bits ? a : b;
  return x.is_signed || !y.is_signed ? a : b;
}

// Whether kernels exist: all types are of one class, or the operands are integers and the result is
// floating-point.
static bool desugar_products_is_plain(mp_dtype_t lhs, mp_dtype_t rhs, mp_dtype_t result) {
  if (mp_dtype_is_integer(lhs) && mp_dtype_is_integer(rhs))
    return mp_dtype_is_integer(result) || mp_dtype_is_float(result);
  const mp_dtype_class_t class = mp_dtype_class(result);
  return mp_dtype_class(lhs) == class && mp_dtype_class(rhs) == class;
}

static mp_status_t desugar_products_type(mp_module_t *module, const mp_type_t *type,
                                         mp_dtype_t dtype, const mp_type_t **out_type) {
  mp_type_t *copy = mp_arena_copy(module->arena, type, sizeof(*type));
  MP_RETURN_IF_NULL(copy);
  copy->dtype = dtype;
  *out_type = copy;
  return NULL;
}

static mp_status_t desugar_products_convert_operands(mp_module_t *module, mp_op_t *op,
                                                     mp_dtype_t dtype) {
  for (uint32_t i = 0; i < 2; ++i) {
    mp_value_t **operand = &op->operands[i];
    const mp_type_t *type = NULL;
    if ((*operand)->type->dtype == dtype) continue;
    MP_RETURN_IF_ERROR(desugar_products_type(module, (*operand)->type, dtype, &type));
    MP_RETURN_IF_ERROR(mp_rewrite_insert(module, op, MP_OP_CONVERT, operand, 1, type, operand));
  }
  return NULL;
}

mp_status_t mp_desugar_product(mp_module_t *module, mp_op_t *op, mp_op_t **out_op) {
  const mp_dtype_t lhs = op->operands[0]->type->dtype, rhs = op->operands[1]->type->dtype;
  const mp_type_t *result = op->results[0].type;
  *out_op = op;
  if (desugar_products_is_plain(lhs, rhs, result->dtype)) return NULL;
  const mp_dtype_t operands = desugar_products_higher(lhs, rhs);
  const mp_dtype_t dtype = desugar_products_higher(operands, result->dtype);
  MP_RETURN_IF_ERROR(desugar_products_convert_operands(module, op, dtype));
  if (dtype == result->dtype) return NULL;
  const mp_type_t *type = NULL;
  mp_value_t *product = NULL;
  MP_RETURN_IF_ERROR(desugar_products_type(module, result, dtype, &type));
  const mp_op_one_t made = {.code = op->code,
                            .type = type,
                            .operands = op->operands,
                            .num_operands = op->num_operands,
                            .attrs = op->attrs,
                            .num_attrs = op->num_attrs};
  MP_RETURN_IF_ERROR(mp_rewrite_insert_op(module, op, &made, &product));
  MP_RETURN_IF_ERROR(mp_rewrite_set_operands(module, op, &product, 1));
  *out_op = product->op;
  return mp_rewrite_become(module, op, MP_OP_CONVERT, NULL, 0);
}
