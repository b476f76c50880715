// Custom calls: by the cost that they state, or as attention kernels.
#include <math.h>

#include "sim/chip/cost/attention_cost.h"
#include "sim/chip/cost/irregular_cost.h"
#include "sim/work/foreign_text.h"

// The work of a kernel in all steps of its grid.
typedef struct {
  double flops, vector, functions, bytes, steps, cores;
} foreign_work_t;

// By its own estimate, or else as counted when it was lowered.
static foreign_work_t foreign_cost_of(const mp_op_t *op) {
  const mp_str_t estimate = mp_foreign_estimate(op);
  const mp_str_t text = estimate.size != 0 ? estimate : mp_foreign_counted(op);
  return (foreign_work_t){.flops = mp_foreign_number(text, "\"flops"),
                          .vector = mp_foreign_number(text, "\"vector"),
                          .functions = mp_foreign_number(text, "\"transcendentals"),
                          .bytes = mp_foreign_number(text, "\"bytes_accessed"),
                          .steps = mp_foreign_number(text, "\"steps"),
                          .cores = mp_foreign_number(text, "\"cores")};
}

// The units of a device work concurrently.
static double foreign_cost_units(const mp_chip_t *chip, const foreign_work_t *work, double share) {
  const double each = mp_figure_or(chip->figures.vector_exponential, chip->transcendental_flops);
  return fmax(work->flops / (share * chip->flops[MP_FLOP_BF16]),
              (work->vector + work->functions * each) / mp_vector_rate(chip));
}

// A core of a TPU fetches the blocks of the next step while it computes one. Without overhead: the
// same work and bytes in one step.
static double foreign_cost_steps(const mp_chip_t *chip, const foreign_work_t *work,
                                 bool has_overhead) {
  const mp_figure_list_t *figures = &chip->figures.attention_splash_forward;
  const double cores = mp_figure_or(chip->figures.attention_cores, 1);
  const double used = work->cores > 1 ? cores : 1;
  const double share = figures->each[MP_ATTENTION_TPU_SHARE];
  const double skip = has_overhead ? figures->each[MP_ATTENTION_TPU_SKIP] * 1e-9 : 0;
  const double latency = has_overhead ? mp_figure_or(chip->figures.memory_latency, 0) / 2 : 0;
  const double inside = foreign_cost_units(chip, work, share) / work->steps * cores + skip;
  const double fetch =
      work->bytes == 0 ? 0 : latency + work->bytes / work->steps / chip->memory_bandwidth;
  return work->steps / used * fmax(inside, fetch);
}

// Whether steps have a cost: the grid and the parameters of steps are known.
static bool foreign_cost_has_steps(const mp_chip_t *chip, const foreign_work_t *work) {
  return work->steps > 1 && chip->figures.attention_splash_forward.count == MP_ATTENTION_TPU_COUNT;
}

double mp_foreign_seconds(const mp_chip_t *chip, const mp_op_t *op) {
  if (op->code != MP_OP_CUSTOM_CALL) return 0;
  mp_attention_t attention;
  if (mp_attention_of_call(op, &attention)) return mp_attention_seconds(chip, &attention);
  const foreign_work_t work = foreign_cost_of(op);
  if (foreign_cost_has_steps(chip, &work)) return foreign_cost_steps(chip, &work, true);
  return fmax(foreign_cost_units(chip, &work, 1), work.bytes / chip->memory_bandwidth);
}

double mp_foreign_step_overhead(const mp_chip_t *chip, const mp_op_t *op) {
  mp_attention_t attention;
  if (op->code != MP_OP_CUSTOM_CALL || mp_attention_of_call(op, &attention)) return 0;
  const foreign_work_t work = foreign_cost_of(op);
  if (!foreign_cost_has_steps(chip, &work)) return 0;
  const double seconds = foreign_cost_steps(chip, &work, true);
  return seconds > 0 ? 1 - foreign_cost_steps(chip, &work, false) / seconds : 0;
}

double mp_foreign_flops(const mp_op_t *op) {
  mp_attention_t attention;
  if (mp_attention_of_call(op, &attention)) return mp_attention_flops(&attention);
  return foreign_cost_of(op).flops;
}
