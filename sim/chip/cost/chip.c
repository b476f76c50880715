// A chip from its description.
#include "sim/chip/cost/chip.h"

#include <math.h>

#include "sim/base/table.h"
#include "sim/chip/cost/matmul_cost.h"
#include "sim/chip/rules/chip_policy.h"

// ---- what is not described ----

// A chip without a description: round numbers in usual proportions. Other rates derive from these.
#define CHIP_BF16_FLOPS 100e12
// Operations of a matmul that the matrix unit does while the vector unit does one.
#define CHIP_PRODUCTS_PER_VECTOR 32
// Operations of a matmul in the time of one byte from memory.
#define CHIP_PRODUCTS_PER_BYTE 240
// Where f64 is not described it is emulated.
#define CHIP_F32_PER_F64       32
#define CHIP_TRANSCENDENTAL    8
#define CHIP_LAUNCH_LATENCY    5e-6
#define CHIP_OP_LATENCY        500e-9
#define CHIP_OPS_PER_SCALAR_OP 0.1

// The share of the peak that kernels reach on a chip without parameters. Classes whose steps wait
// for each other, or whose accesses are scattered, have rough guesses.
#define EFFICIENCIES(X) \
  X(FREE, 1)            \
  X(SCALAR, 1)          \
  X(MATMUL, 1)          \
  X(CONVOLUTION, 1)     \
  X(ELEMENTWISE, 1)     \
  X(REDUCTION, 1)       \
  X(WINDOW, 0.5)        \
  X(COPY, 1)            \
  X(GATHER, 0.5)        \
  X(SCATTER, 0.25)      \
  X(SORT, 0.1)          \
  X(FFT, 0.25)          \
  X(LINALG, 0.1)        \
  X(RNG, 1)             \
  X(FOREIGN, 1)         \
  X(COLLECTIVE, 1)
static const double g_efficiency[MP_WORK_CLASS_COUNT] = {
#define ROW(name, share) [MP_WORK_##name] = share,
    EFFICIENCIES(ROW)
#undef ROW
};
_Static_assert(MP_ROWS(EFFICIENCIES) == MP_WORK_CLASS_COUNT, "a share for each class");

// A kind without a described rate has that of the first kind of `from` with one.
typedef struct {
  mp_flop_kind_t kind, from[2];
  uint32_t num_from;
  double factor;
} chip_rule_t;

static const chip_rule_t g_rules[] = {
    {MP_FLOP_BF16, {MP_FLOP_F16, MP_FLOP_F32}, 2, 1},
    {MP_FLOP_BF16, {MP_FLOP_F8, MP_FLOP_S8}, 2, 0.5},
    {MP_FLOP_BF16, {MP_FLOP_S4}, 1, 0.25},
    {MP_FLOP_BF16, {MP_FLOP_F64}, 1, 1},
    {MP_FLOP_F16, {MP_FLOP_BF16}, 1, 1},
    {MP_FLOP_F32, {MP_FLOP_BF16}, 1, 1},
    {MP_FLOP_F64, {MP_FLOP_F32}, 1, 1.0 / CHIP_F32_PER_F64},
    // Narrower types are converted first.
    {MP_FLOP_F8, {MP_FLOP_BF16}, 1, 1},
    {MP_FLOP_S8, {MP_FLOP_BF16}, 1, 1},
    {MP_FLOP_S4, {MP_FLOP_S8}, 1, 1},
};

static void chip_apply_rule(const chip_rule_t *rule, double *flops) {
  for (uint32_t i = 0; i < rule->num_from && flops[rule->kind] == 0; ++i) {
    flops[rule->kind] = flops[rule->from[i]] * rule->factor;
  }
}

// A described latency replaces the parameters of matmuls, too.
static void chip_set_matmul_latency(mp_chip_figures_t *figures, double latency) {
  mp_figure_list_t *lists[] = {&figures->matmul_bf16, &figures->matmul_f32, &figures->matmul_f8};
  figures->matmul_launch = figures->matmul_scratch_launch = latency;
  for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); ++i) {
    lists[i]->each[MP_MATMUL_GPU_LAUNCH] = latency * 1e6;
  }
}

static double chip_or(double described, double otherwise) {
  return described > 0 ? described : otherwise;
}

// A latency of 0 is one.
static double chip_latency_or(double described, double otherwise) {
  return described >= 0 ? described : otherwise;
}

mp_status_t mp_chip_from_pod(const mp_pod_info_t *info, mp_chip_t *out_chip) {
  mp_chip_t chip = {.matrix_rows = info->matrix_unit[0], .matrix_columns = info->matrix_unit[1]};
  MP_RETURN_IF_ERROR(mp_chip_figures_find(mp_str(info->chip), &chip.figures));
  MP_RETURN_IF_ERROR(mp_chip_figures_take_flags(mp_str(info->flags), &chip.figures));
  const mp_chip_figures_t *figures = &chip.figures;
  bool is_described = false;
  for (int kind = 0; kind < MP_FLOP_KIND_COUNT; ++kind) {
    chip.flops[kind] = info->flops[kind];
    is_described |= info->flops[kind] > 0;
  }
  if (!is_described) chip.flops[MP_FLOP_BF16] = CHIP_BF16_FLOPS;
  for (size_t i = 0; i < sizeof(g_rules) / sizeof(g_rules[0]); ++i) {
    chip_apply_rule(&g_rules[i], chip.flops);
  }
  chip.f32_by_bf16 = info->flops[MP_FLOP_F32] == 0;
  const double matmuls = chip.flops[MP_FLOP_BF16];
  chip.vector_flops =
      chip_or(info->vector_flops,
              mp_figure_or(figures->vector_rate,
                           chip_or(info->flops[MP_FLOP_F32], matmuls / CHIP_PRODUCTS_PER_VECTOR)));
  chip.transcendental_flops = CHIP_TRANSCENDENTAL;
  chip.memory_bandwidth = chip_or(info->memory_bandwidth, matmuls / CHIP_PRODUCTS_PER_BYTE);
  chip.launch_latency = chip_latency_or(info->launch_latency, CHIP_LAUNCH_LATENCY);
  chip.op_latency =
      chip_latency_or(info->op_latency, mp_figure_or(figures->kernel_latency, CHIP_OP_LATENCY));
  chip.scalar_latency = chip.op_latency * CHIP_OPS_PER_SCALAR_OP;
  if (info->op_latency < 0) {
    chip.scalar_latency = mp_figure_or(figures->scalar_latency, chip.scalar_latency);
  } else {
    chip_set_matmul_latency(&chip.figures, info->op_latency);
  }
  chip.memory_bandwidth *= mp_figure_or(figures->memory_share, 1);
  for (int i = 0; i < MP_WORK_CLASS_COUNT; ++i) {
    chip.efficiency[i] = mp_chip_policy(figures)->reaches_rates ? 1 : g_efficiency[i];
  }
  *out_chip = chip;
  return NULL;
}

double mp_chip_memory_latency(const mp_chip_t *chip, double bytes) {
  if (bytes == 0) return 0;
  const double ramp = fmin(bytes, mp_figure_or(chip->figures.memory_ramp, 0));
  return mp_figure_or(chip->figures.memory_latency, 0) + ramp / chip->memory_bandwidth;
}

// ---- element types ----

mp_flop_kind_t mp_chip_flop_kind(mp_dtype_t dtype) {
  const mp_dtype_t real = mp_dtype_real_part(dtype);
  const int bits = mp_dtype_bits(real);
  if (real == MP_DTYPE_BF16) return MP_FLOP_BF16;
  if (real == MP_DTYPE_F16) return MP_FLOP_F16;
  if (mp_dtype_is_float(real)) return bits > 32 ? MP_FLOP_F64 : bits > 8 ? MP_FLOP_F32 : MP_FLOP_F8;
  if (mp_dtype_is_integer(real) && bits <= 8) return bits > 4 ? MP_FLOP_S8 : MP_FLOP_S4;
  return MP_FLOP_F32;
}
