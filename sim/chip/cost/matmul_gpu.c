// Matmuls on a GPU: tiles of the result run in waves over the multiprocessors. k is split if there
// are few tiles.
#include <math.h>

#include "sim/base/assert.h"
#include "sim/chip/cost/matmul_cost.h"
#include "sim/chip/rules/chip_rules.h"

// Tiles of libraries: rows and columns of the result.
static const double g_tiles[][2] = {{64, 64},   {64, 128},  {128, 64},
                                    {128, 128}, {128, 256}, {256, 128}};
// The numbers of parts of k.
static const double g_splits[] = {1, 2, 4, 8, 16};

// The shortest part of k.
#define MATMUL_GPU_LEAST_PART 128
// Channels of a convolution are padded to this many.
#define MATMUL_GPU_CHANNELS 8
// The share of the vector rate that convolutions on CUDA cores reach.
#define MATMUL_GPU_CUDA_CORES 0.5

// All rates in operations or bytes a second, times in seconds.
typedef struct {
  double batch, m, n, k;
  double width, out_width;  // bytes of an element
  double launch, rate, sustained, load, store, split, sum, memory;
  double units;
} matmul_gpu_t;

bool mp_matmul_has_waves(const mp_chip_t *chip) {
  return chip->figures.matmul_bf16.count == MP_MATMUL_GPU_COUNT;
}

// The parameters for elements of this kind.
static const double *matmul_gpu_list(const mp_chip_t *chip, mp_flop_kind_t kind) {
  const mp_chip_figures_t *figures = &chip->figures;
  const bool is_narrow = kind == MP_FLOP_F8 || kind == MP_FLOP_S8 || kind == MP_FLOP_S4;
  const mp_figure_list_t *list = &figures->matmul_bf16;
  if (is_narrow) list = &figures->matmul_f8;
  if (kind == MP_FLOP_F32) list = &figures->matmul_f32;
  return list->count == MP_MATMUL_GPU_COUNT ? list->each : figures->matmul_bf16.each;
}

// The peak rate. f32 with the highest precision does not run as TF32.
static double matmul_gpu_peak(const mp_chip_t *chip, const mp_work_matmul_t *matmul,
                              mp_flop_kind_t kind) {
  const bool is_exact = kind == MP_FLOP_F32 && matmul->bf16_passes > 3;
  return (is_exact ? fmin(chip->vector_flops, chip->flops[kind]) : chip->flops[kind]) /
         matmul->passes;
}

static matmul_gpu_t matmul_gpu_of(const mp_chip_t *chip, const mp_work_matmul_t *matmul) {
  const mp_flop_kind_t kind = mp_chip_flop_kind(matmul->dtype);
  const double *each = matmul_gpu_list(chip, kind);
  const double peak = matmul_gpu_peak(chip, matmul, kind);
  matmul_gpu_t p = {
      .batch = matmul->batch,
      .m = matmul->m,
      .n = matmul->n,
      .k = matmul->k,
      .width = mp_dtype_bits(matmul->dtype) / 8.0,
      .out_width = mp_dtype_bits(matmul->result) / 8.0,
      .launch = each[MP_MATMUL_GPU_LAUNCH] * 1e-6,
      .rate = each[MP_MATMUL_GPU_RATE] * peak,
      .sustained = each[MP_MATMUL_GPU_SUSTAINED] * peak,
      .load = each[MP_MATMUL_GPU_LOAD] * 1e9,
      .store = each[MP_MATMUL_GPU_STORE] * 1e9,
      .split = each[MP_MATMUL_GPU_SPLIT] * 1e-6,
      .sum = each[MP_MATMUL_GPU_SUM] * 1e12,
      .memory = each[MP_MATMUL_GPU_MEMORY] * mp_matmul_bandwidth(chip),
      .units = chip->figures.matmul_units,
  };
  const double window = matmul->convolution.window;
  if (window > 0) {
    const double channels = fmax(1, matmul->k / window);
    const double padded = ceil(channels / MATMUL_GPU_CHANNELS) * MATMUL_GPU_CHANNELS;
    p.k *= padded / channels;
  }
  return p;
}

// The seconds with these tiles and so many parts of k.
static double matmul_gpu_waves(const matmul_gpu_t *p, const double tile[2], double parts) {
  const double k = ceil(p->k / parts), rows = tile[0], columns = tile[1];
  const double multiply = 2 * rows * columns * k * p->units / p->rate;
  // Elements of a tile outside of the matrices are neither loaded nor stored.
  const double full_rows = fmin(rows, p->m), full_columns = fmin(columns, p->n);
  const double load = (full_rows + full_columns) * k * p->width / p->load;
  const double store = full_rows * full_columns * p->out_width / p->store;
  const double block = fmax(multiply, load) + store;
  const double tiles = p->batch * ceil(p->m / rows) * ceil(p->n / columns);
  const double waves = ceil(tiles * parts / p->units) * block;
  if (parts == 1) return waves;
  enum { F32_BYTES = 4 };
  return waves + p->split + parts * p->batch * p->m * p->n * F32_BYTES / p->sum;
}

static double matmul_gpu_best(const matmul_gpu_t *p) {
  double best = INFINITY;
  for (size_t i = 0; i < sizeof(g_tiles) / sizeof(g_tiles[0]); ++i) {
    for (size_t j = 0; j < sizeof(g_splits) / sizeof(g_splits[0]); ++j) {
      const double parts = g_splits[j];
      const bool may = ceil(p->k / parts) >= MATMUL_GPU_LEAST_PART;
      if (parts == 1 || may) best = fmin(best, matmul_gpu_waves(p, g_tiles[i], parts));
    }
  }
  MP_ASSERT(best >= 0 && best < INFINITY);  // 0: without elements
  return best;
}

// A vector by a matrix is a reduction, bound by memory.
static double matmul_gpu_sum(const mp_chip_t *chip, const mp_matmul_kernel_t *kernel) {
  const mp_work_matmul_t *matmul = kernel->matmul;
  const double flops = 2 * matmul->batch * matmul->m * matmul->n * matmul->k;
  const double work = fmax(flops / chip->vector_flops, kernel->vector_seconds);
  return fmax(work, kernel->bytes / chip->memory_bandwidth) / kernel->efficiency + chip->op_latency;
}

double mp_matmul_gpu_seconds(const mp_chip_t *chip, const mp_matmul_kernel_t *kernel) {
  const mp_work_matmul_t *matmul = kernel->matmul;
  if (matmul->convolution.window == 0 && fmin(matmul->m, matmul->n) == 1 &&
      mp_chip_rule(&chip->figures, MP_CHIP_RULE_matvec_reduction)) {
    return matmul_gpu_sum(chip, kernel);
  }
  const matmul_gpu_t p = matmul_gpu_of(chip, matmul);
  const double flops = 2 * p.batch * p.m * p.n * matmul->k;
  double seconds = fmax(matmul_gpu_best(&p), flops / p.sustained);
  double bytes = p.batch * (p.m * p.n * p.out_width);
  if (matmul->convolution.window == 0) {
    bytes += p.batch * (p.m + p.n) * p.k * p.width;
  } else {
    seconds = fmin(seconds, flops / chip->vector_flops / MATMUL_GPU_CUDA_CORES);
  }
  // A kernel that is bound by memory has only the latency of a kernel, not the library's launch.
  const double moved = chip->op_latency + fmax(bytes, kernel->bytes) / p.memory;
  seconds = fmax(fmax(seconds, kernel->vector_seconds) + p.launch, moved);
  return seconds / kernel->efficiency;
}
