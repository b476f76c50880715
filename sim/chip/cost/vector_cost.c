// Vector work by kind: how many simple operations an element of each op counts as.
#include "sim/chip/cost/vector_cost.h"

#include <math.h>
#include <stddef.h>

#include "sim/chip/fuse/chip_fusion_kinds.h"

// ---- element by element ----

// Ops whose elements take more than one simple operation; ops of a kind share a parameter.
typedef struct {
  size_t figure;     // its offset in mp_chip_figures_t
  uint8_t number;    // the same parameter: mp_chip_figure_t
  double otherwise;  // without the parameter; 0: chip->transcendental_flops
  int8_t on_floats;  // 1: of floating-point numbers only, -1: of integers only, 0: of both
} vector_kind_t;

#define KIND(op, member, otherwise, on_floats) \
  [MP_OP_##                                    \
      op] = {offsetof(mp_chip_figures_t, member), MP_CHIP_FIGURE_##member, otherwise, on_floats}
static const vector_kind_t g_kinds[MP_OP_COUNT] = {
    KIND(EXPONENTIAL, vector_exponential, 0, 1),
    KIND(EXPONENTIAL_MINUS_ONE, vector_exponential, 0, 1),
    KIND(LOGISTIC, vector_logistic, 0, 1),
    KIND(LOG, vector_logarithm, 0, 1),
    KIND(LOG_PLUS_ONE, vector_logarithm, 0, 1),
    KIND(TANH, vector_tanh, 0, 1),
    KIND(SINE, vector_sine, 0, 1),
    KIND(COSINE, vector_sine, 0, 1),
    KIND(TAN, vector_sine, 0, 1),
    KIND(ATAN2, vector_sine, 0, 1),
    KIND(POWER, vector_power, 0, 0),
    KIND(CBRT, vector_power, 0, 1),
    KIND(SQRT, vector_root, 0, 1),
    KIND(RSQRT, vector_root, 0, 1),
    KIND(DIVIDE, vector_division, 1, 0),
    KIND(REMAINDER, vector_division, 1, 0),
};

static double vector_cost_figure(const mp_chip_t *chip, size_t offset) {
  return *(const double *)(const void *)((const char *)&chip->figures + offset);
}

// The type that an op computes in: a comparison's result is none.
static mp_dtype_t vector_cost_dtype(const mp_op_t *op) {
  return op->num_operands == 0 ? op->results[0].type->dtype : op->operands[0]->type->dtype;
}

// Quotients of integers have a parameter of their own.
static double vector_cost_each(const mp_chip_t *chip, const mp_op_t *op) {
  const vector_kind_t *kind = &g_kinds[op->code];
  if (kind->figure == 0 || mp_chip_fusion_is_scaling_quotient(op)) return 1;
  const bool is_integer = mp_dtype_is_integer(vector_cost_dtype(op));
  if (is_integer && (op->code == MP_OP_DIVIDE || op->code == MP_OP_REMAINDER)) {
    return mp_figure_or(chip->figures.vector_integer_division, 1);
  }
  if (is_integer && kind->on_floats > 0) return 1;
  const double otherwise = kind->otherwise == 0 ? chip->transcendental_flops : kind->otherwise;
  return mp_figure_or(vector_cost_figure(chip, kind->figure), otherwise);
}

static double vector_cost_count(const mp_type_t *type) {
  int64_t count = 0;
  if (!mp_type_is_tensor(type) || !mp_type_num_elements(type, &count)) return 0;
  return (double)count;
}

static double vector_cost_elementwise(const mp_chip_t *chip, const mp_op_t *op, double count) {
  return count * vector_cost_each(chip, op) * mp_work_weight(vector_cost_dtype(op));
}

// A function on elements, the region of a reduction for example; at least one operation.
static double vector_cost_of_region(const mp_chip_t *chip, const mp_block_t *region, double times) {
  double sum = 0;
  for (const mp_op_t *op = region->first; op != NULL; op = op->next) {
    if (mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE)) sum += vector_cost_elementwise(chip, op, times);
  }
  return sum > 0 ? sum : times;
}

// ---- ops ----

static double vector_cost_operations(const mp_chip_t *chip, const mp_op_t *op) {
  if (mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE)) {
    double count = 0;
    for (uint32_t i = 0; i < op->num_results; ++i) {
      count += vector_cost_count(op->results[i].type);
    }
    return vector_cost_elementwise(chip, op, count);
  }
  if (mp_chip_fusion_is_selection(&chip->figures, op)) {
    enum { COMPARES_AND_SELECTS = 2 };
    return COMPARES_AND_SELECTS * mp_chip_fusion_op_count(op);
  }
  if (op->code == MP_OP_REDUCE) {
    return vector_cost_of_region(chip, op->regions[0], vector_cost_count(op->operands[0]->type));
  }
  mp_work_t work;
  mp_work_of_op(op, &work);
  return work.vector_flops + work.vector_transcendentals * chip->transcendental_flops;
}

double mp_vector_seconds(const mp_chip_t *chip, const mp_op_t *op) {
  return vector_cost_operations(chip, op) / mp_vector_rate(chip);
}

mp_chip_figure_t mp_vector_figure(const mp_chip_t *chip, const mp_op_t *op) {
  if (mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE) && vector_cost_each(chip, op) > 1) {
    const bool is_quotient = op->code == MP_OP_DIVIDE || op->code == MP_OP_REMAINDER;
    const bool is_integer = mp_dtype_is_integer(vector_cost_dtype(op));
    return is_quotient && is_integer ? MP_CHIP_FIGURE_vector_integer_division
                                     : (mp_chip_figure_t)g_kinds[op->code].number;
  }
  const bool has_share = mp_chip_figure_is_given(&chip->figures, MP_CHIP_FIGURE_vector_share);
  return has_share ? MP_CHIP_FIGURE_vector_share : MP_CHIP_FIGURE_vector_rate;
}
