// Custom calls: by the cost that they state, or as attention kernels.
#include <math.h>

#include "sim/chip/cost/attention_cost.h"
#include "sim/chip/cost/irregular_cost.h"
#include "sim/work/foreign_text.h"

typedef struct {
  double flops, vector, functions, bytes;
} foreign_work_t;

// By its own estimate, or else as counted when it was lowered.
static foreign_work_t foreign_cost_of(const mp_op_t *op) {
  const mp_str_t estimate = mp_foreign_estimate(op);
  const mp_str_t text = estimate.size != 0 ? estimate : mp_foreign_counted(op);
  return (foreign_work_t){.flops = mp_foreign_number(text, "\"flops"),
                          .vector = mp_foreign_number(text, "\"vector"),
                          .functions = mp_foreign_number(text, "\"transcendentals"),
                          .bytes = mp_foreign_number(text, "\"bytes_accessed")};
}

// The units of a device work concurrently.
static double foreign_cost_units(const mp_chip_t *chip, const foreign_work_t *work) {
  const double each = mp_figure_or(chip->figures.vector_exponential, chip->transcendental_flops);
  return fmax(work->flops / chip->flops[MP_FLOP_BF16],
              (work->vector + work->functions * each) / mp_vector_rate(chip));
}

double mp_foreign_seconds(const mp_chip_t *chip, const mp_op_t *op) {
  if (op->code != MP_OP_CUSTOM_CALL) return 0;
  mp_attention_t attention;
  if (mp_attention_of_call(op, &attention)) return mp_attention_seconds(chip, &attention);
  const foreign_work_t work = foreign_cost_of(op);
  return fmax(foreign_cost_units(chip, &work), work.bytes / chip->memory_bandwidth);
}

double mp_foreign_flops(const mp_op_t *op) {
  mp_attention_t attention;
  if (mp_attention_of_call(op, &attention)) return mp_attention_flops(&attention);
  return foreign_cost_of(op).flops;
}
