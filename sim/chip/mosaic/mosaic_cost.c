#include "sim/chip/mosaic/mosaic_cost.h"

#include <math.h>

#include "sim/base/alloc.h"
#include "sim/chip/rules/chip_rules.h"
#include "sim/mosaic/read/mosaic_call.h"

static bool mosaic_cost_is_call(const mp_op_t *op) {
  if (op->code != MP_OP_CUSTOM_CALL) return false;
  const mp_str_t target = mp_op_str(op, MP_ATTR_CALL_TARGET_NAME);
  // minipod's own target is that of calls which run.
  return mp_str_is(target, "tpu_custom_call") || mp_str_is(target, "minipod.mosaic");
}

static mp_price_chip_t mosaic_cost_chip(const mp_chip_t *chip) {
  enum { WIDE_UNIT = 256 };
  const mp_chip_figures_t *figures = &chip->figures;
  const double cores = mp_figure_or(figures->attention_cores, 1);
  const double columns = figures->matmul_tile.count > MP_MATMUL_TILE_COLUMNS
                             ? figures->matmul_tile.each[MP_MATMUL_TILE_COLUMNS]
                             : 0;
  return (mp_price_chip_t){
      .clock = figures->kernel_clock,
      .is_wide = columns >= WIDE_UNIT,
      .has_s8 = chip->flops[MP_FLOP_S8] > 1.5 * chip->flops[MP_FLOP_BF16],
      .bandwidth = chip->memory_bandwidth / cores,
      .latency = mp_figure_or(figures->memory_latency, 0) / 2,
      .cores = (uint32_t)cores,
      .rules = {.latency = mp_chip_rule(figures, MP_CHIP_RULE_kernel_latencies),
                .rows = mp_chip_rule(figures, MP_CHIP_RULE_kernel_weights),
                .overhead = mp_chip_rule(figures, MP_CHIP_RULE_kernel_steps)}};
}

// An operand's values: those that are given, or those of a constant.
static mp_price_operand_t mosaic_cost_operand(const mp_value_t *value, const void *given) {
  const mp_op_t *op = value->op;
  const mp_attr_t *attr =
      op != NULL && op->code == MP_OP_CONSTANT ? mp_op_attr(op, MP_ATTR_VALUE) : NULL;
  int64_t count = 0;
  if (!mp_type_is_tensor(value->type) || !mp_type_num_elements(value->type, &count))
    return (mp_price_operand_t){0};
  if (given != NULL) return (mp_price_operand_t){given, count, false};
  if (attr == NULL || attr->kind != MP_KIND_DENSE) return (mp_price_operand_t){0};
  return (mp_price_operand_t){attr->u.dense.data, count, attr->u.dense.splat};
}

mp_mosaic_module_t *mp_mosaic_price_module(const mp_chip_t *chip, const mp_op_t *op) {
  mp_mosaic_call_t call = {0};
  if (isnan(chip->figures.kernel_clock) || !mosaic_cost_is_call(op)) return NULL;
  mp_status_t status = mp_mosaic_read_call(mp_op_str(op, MP_ATTR_BACKEND_CONFIG), &call);
  if (status == NULL) {
    status = mp_mosaic_verify(call.module);
    if (status == NULL) return call.module;
    mp_mosaic_module_release(call.module);
  }
  mp_status_release(status);
  return NULL;
}

bool mp_mosaic_price(const mp_chip_t *chip, const mp_op_t *op, const mp_mosaic_module_t *module,
                     const void *const *operands, mp_price_t *out_price) {
  const mp_price_chip_t units = mosaic_cost_chip(chip);
  mp_price_operand_t *known = mp_calloc(op->num_operands + 1, sizeof(*known));
  if (known == NULL) return false;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    known[i] = mosaic_cost_operand(op->operands[i], operands == NULL ? NULL : operands[i]);
  }
  mp_status_t status = mp_price_kernel(&units, module, known, op->num_operands, out_price);
  mp_free(known);
  const double most = 1e6;  // seconds: numbers that no kernel has
  const bool is_priced = status == NULL && out_price->seconds < most && out_price->bytes < INFINITY;
  mp_status_release(status);
  return is_priced;
}

double mp_mosaic_seconds(const mp_chip_t *chip, const mp_price_t *price) {
  return price->seconds / chip->efficiency[MP_WORK_FOREIGN] + chip->op_latency;
}
