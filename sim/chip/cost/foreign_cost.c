// Kernels of others: what they say of themselves, and what is known of those for attention.
#include <math.h>

#include "sim/chip/cost/attention_cost.h"
#include "sim/chip/cost/foreign_text.h"
#include "sim/chip/cost/irregular_cost.h"
#include "sim/chip/cost/vector_cost.h"

static mp_str_t foreign_cost_estimate(const mp_op_t *op) {
  mp_str_t rest;
  const bool is_there =
      mp_foreign_find_word(mp_op_str(op, MP_ATTR_BACKEND_CONFIG), "\"cost_estimate\"", &rest);
  return is_there ? mp_str_cut(&rest, '}') : MP_STR("");
}

double mp_foreign_seconds(const mp_chip_t *chip, const mp_op_t *op) {
  if (op->code != MP_OP_CUSTOM_CALL) return 0;
  mp_attention_t attention;
  if (mp_attention_of_call(op, &attention)) return mp_attention_seconds(chip, &attention);
  const mp_str_t estimate = foreign_cost_estimate(op);
  const double flops = mp_foreign_number(estimate, "\"flops");
  const double functions = mp_foreign_number(estimate, "\"transcendentals");
  const double bytes = mp_foreign_number(estimate, "\"bytes_accessed");
  const double each = mp_figure_or(chip->figures.vector_exponential, chip->transcendental_flops);
  const double seconds =
      fmax(flops / chip->flops[MP_FLOP_BF16], functions * each / mp_vector_rate(chip));
  return fmax(seconds, bytes / chip->memory_bandwidth);
}
