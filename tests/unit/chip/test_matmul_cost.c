// What matmuls take: GPUs' by the numbers of the formula's first form, a script with which it was
// fitted to tables of measured matmuls; TPUs' beside the cycles of a compiler, libtpu 0.0.52.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/chip/cost/kernel_cost.h"
#include "sim/chip/cost/matmul_cost.h"
#include "sim/chip/cost/ring_cost.h"
#include "tests/unit/support/unit.h"

// One chip of a preset, with other settings behind its name.
static mp_chip_t chip_of(const char *name) {
  static const char *const shapes[] = {"v4",   ":1x1x1", "v5e",    ":1x1", "v5p", ":1x1x1", "v6e",
                                       ":1x1", "7x",     ":1x1x1", "h100", ":1",  "a100",   ":1"};
  char description[256];
  const size_t size = strcspn(name, " ");
  const char *shape = "";
  for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i += 2) {
    if (strlen(shapes[i]) == size && strncmp(name, shapes[i], size) == 0) shape = shapes[i + 1];
  }
  snprintf(description, sizeof(description), "%.*s%s%s", (int)size, name, shape, name + size);

  mp_pod_t *pod = NULL;
  mp_chip_t chip;
  assert_ok(mp_pod_create_from_name(mp_str(description), "test", &pod));
  assert_ok(mp_chip_from_pod(mp_pod_info(pod), &chip));
  mp_pod_release(pod);
  return chip;
}

typedef struct {
  const char *chip;
  mp_dtype_t dtype;
  double batch, m, n, k;
  double us;
} sample_t;

static mp_dtype_t result_of(mp_dtype_t dtype) {
  if (dtype == MP_DTYPE_S8) return MP_DTYPE_S32;
  return dtype == MP_DTYPE_F8E4M3FN ? MP_DTYPE_BF16 : dtype;
}

static mp_work_matmul_t matmul_of(const sample_t *sample) {
  return (mp_work_matmul_t){.batch = sample->batch,
                            .m = sample->m,
                            .n = sample->n,
                            .k = sample->k,
                            .dtype = sample->dtype,
                            .result = result_of(sample->dtype),
                            .passes = 1,
                            .bf16_passes = 1};
}

static double padded(double rows, double columns) {
  const double one = ceil(rows / 8) * 8 * ceil(columns / 128) * 128;
  const double other = ceil(rows / 128) * 128 * ceil(columns / 8) * 8;
  return one < other ? one : other;
}

// The arrays of a matmul as a TPU keeps them.
static double bytes_of(const mp_work_matmul_t *p) {
  return p->batch * ((padded(p->m, p->k) + padded(p->k, p->n)) * mp_dtype_bits(p->dtype) / 8 +
                     padded(p->m, p->n) * mp_dtype_bits(p->result) / 8);
}

static double us_of(const mp_chip_t *chip, const mp_work_matmul_t *matmul, double bytes) {
  return 1e6 * mp_matmul_seconds(
                   chip, &(mp_matmul_kernel_t){.matmul = matmul, .bytes = bytes, .efficiency = 1});
}

// With all arrays in VMEM.
static double near_us_of(const mp_chip_t *chip, const mp_work_matmul_t *matmul) {
  const mp_matmul_streams_t near = {.is_near = true};
  return 1e6 * mp_matmul_seconds(chip, &(mp_matmul_kernel_t){
                                           .matmul = matmul, .efficiency = 1, .streams = &near});
}

static void expect_near(const sample_t *sample, double us) {
  if (fabs(us / sample->us - 1) < 0.01) return;
  fail_msg("%s, %g of %g x %g x %g: %g us, not %g", sample->chip, sample->batch, sample->m,
           sample->n, sample->k, us, sample->us);
}

// ---- GPUs: waves of tiles ----

static const sample_t g_gpu[] = {
    {"h100", MP_DTYPE_BF16, 1, 256, 256, 256, 5.925},
    {"h100", MP_DTYPE_BF16, 1, 1024, 1024, 1024, 8.878},
    {"h100", MP_DTYPE_BF16, 1, 4096, 4096, 4096, 201.9},
    {"h100", MP_DTYPE_BF16, 1, 8192, 8192, 8192, 1579.0},
    {"h100", MP_DTYPE_BF16, 1, 256, 4096, 512, 7.241},
    {"h100", MP_DTYPE_BF16, 2, 512, 1024, 2048, 12.15},
    {"h100", MP_DTYPE_BF16, 4, 4096, 512, 256, 13.89},
    {"h100", MP_DTYPE_BF16, 1, 700, 1100, 900, 8.482},
    {"h100", MP_DTYPE_BF16, 8, 128, 128, 1000, 7.511},
    {"h100", MP_DTYPE_BF16, 64, 512, 512, 512, 34.81},
    {"h100", MP_DTYPE_BF16, 1, 64, 4096, 4096, 12.78},
    {"h100", MP_DTYPE_F32, 1, 256, 256, 256, 8.283},
    {"h100", MP_DTYPE_F32, 1, 1024, 1024, 1024, 18.21},
    {"h100", MP_DTYPE_F32, 1, 4096, 4096, 4096, 384.8},
    {"h100", MP_DTYPE_F32, 1, 8192, 8192, 8192, 2986},
    {"h100", MP_DTYPE_F32, 1, 256, 4096, 512, 12.49},
    {"h100", MP_DTYPE_F32, 1, 700, 1100, 900, 16.83},
    {"h100", MP_DTYPE_F32, 1, 64, 4096, 4096, 25.57},
    {"h100", MP_DTYPE_F8E4M3FN, 1, 256, 256, 256, 6.11},
    {"h100", MP_DTYPE_F8E4M3FN, 1, 1024, 1024, 1024, 7.281},
    {"h100", MP_DTYPE_F8E4M3FN, 1, 4096, 4096, 4096, 103.749},
    {"h100", MP_DTYPE_F8E4M3FN, 1, 8192, 8192, 8192, 789.745},
    {"h100", MP_DTYPE_F8E4M3FN, 1, 256, 4096, 512, 6.712},
    {"h100", MP_DTYPE_F8E4M3FN, 2, 512, 1024, 2048, 8.81248},
    {"h100", MP_DTYPE_F8E4M3FN, 4, 4096, 512, 256, 11.5},
    {"h100", MP_DTYPE_F8E4M3FN, 1, 700, 1100, 900, 7.08},
    {"h100", MP_DTYPE_F8E4M3FN, 8, 128, 128, 1000, 6.464},
    {"h100", MP_DTYPE_F8E4M3FN, 64, 512, 512, 512, 31.4},
    {"h100", MP_DTYPE_F8E4M3FN, 1, 64, 4096, 4096, 9.065},
    {"b200", MP_DTYPE_BF16, 1, 256, 256, 256, 5.682},
    {"b200", MP_DTYPE_BF16, 1, 1024, 1024, 1024, 7.699},
    {"b200", MP_DTYPE_BF16, 1, 4096, 4096, 4096, 101.47},
    {"b200", MP_DTYPE_BF16, 1, 8192, 8192, 8192, 775.9},
    {"b200", MP_DTYPE_BF16, 1, 256, 4096, 512, 6.604},
    {"b200", MP_DTYPE_BF16, 2, 512, 1024, 2048, 9.888},
    {"b200", MP_DTYPE_BF16, 4, 4096, 512, 256, 10.92},
    {"b200", MP_DTYPE_F32, 1, 256, 256, 256, 7.611},
    {"b200", MP_DTYPE_F32, 1, 1024, 1024, 1024, 10.51},
    {"b200", MP_DTYPE_F32, 1, 4096, 4096, 4096, 171.8},
    {"b200", MP_DTYPE_F32, 1, 8192, 8192, 8192, 1298},
    {"b200", MP_DTYPE_F32, 1, 256, 4096, 512, 8.926},
    {"b200", MP_DTYPE_F32, 2, 512, 1024, 2048, 13.68},
    {"b200", MP_DTYPE_F32, 4, 4096, 512, 256, 15.98},
    {"b200", MP_DTYPE_F8E4M3FN, 1, 256, 256, 256, 5.762},
    {"b200", MP_DTYPE_F8E4M3FN, 1, 1024, 1024, 1024, 6.794},
    {"b200", MP_DTYPE_F8E4M3FN, 1, 4096, 4096, 4096, 48.97},
    {"b200", MP_DTYPE_F8E4M3FN, 1, 8192, 8192, 8192, 325.743},
    {"b200", MP_DTYPE_F8E4M3FN, 1, 256, 4096, 512, 6.271},
    {"b200", MP_DTYPE_F8E4M3FN, 2, 512, 1024, 2048, 7.841},
    {"b200", MP_DTYPE_F8E4M3FN, 4, 4096, 512, 256, 9.267},
    {"a100", MP_DTYPE_BF16, 1, 256, 256, 256, 6.298},
    {"a100", MP_DTYPE_BF16, 1, 1024, 1024, 1024, 15.65},
    {"a100", MP_DTYPE_BF16, 1, 4096, 4096, 4096, 539.99},
    {"a100", MP_DTYPE_BF16, 1, 8192, 8192, 8192, 4283.5},
};

static void products_on_gpus_run_in_waves(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof(g_gpu) / sizeof(g_gpu[0]); ++i) {
    const bool is_b200 = strcmp(g_gpu[i].chip, "b200") == 0;
    const mp_chip_t chip =
        chip_of(is_b200 ? "switch:1 chip:b200 flops.bf16:2250T flops.f32:1100T flops.f8:4500T "
                          "flops.vector:75T memory.bandwidth:7700GB/s"
                        : g_gpu[i].chip);
    const mp_work_matmul_t matmul = matmul_of(&g_gpu[i]);
    expect_near(&g_gpu[i], us_of(&chip, &matmul, 0));
  }
}

// A tile that is wider than the matrices loads and stores no more than these have. By hand, on an
// H100, in 32 tiles of 64 x 64: 2.53 us of work hide the load of 72 rows of k, 0.03 store, 5.155
// are the launch. With 64 rows the load, 4.37 us, is the longer one; it pays to split k, then.
static void few_rows_load_few_rows(void **state) {
  (void)state;
  const mp_chip_t chip = chip_of("h100");
  sample_t sample = {"h100", MP_DTYPE_BF16, 1, 8, 2048, 2048, 7.716};
  mp_work_matmul_t matmul = matmul_of(&sample);
  expect_near(&sample, us_of(&chip, &matmul, 0));
  matmul.m = 64;
  assert_true(us_of(&chip, &matmul, 0) > 1.05 * sample.us);
}

// A head's query by the keys that it has had, or one vector by a matrix: a sum over what is read,
// and no tile.
static void vectors_by_matrices_are_sums(void **state) {
  (void)state;
  const sample_t samples[] = {{"h100", MP_DTYPE_BF16, 128, 1, 2048, 128, 0},
                              {"h100", MP_DTYPE_F32, 1, 4096, 1, 4096, 0}};
  const mp_chip_t chip = chip_of("h100");
  for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); ++i) {
    const sample_t *s = &samples[i];
    const mp_work_matmul_t matmul = matmul_of(s);
    const double bytes = mp_dtype_bits(s->dtype) / 8.0 * s->batch * fmax(s->m, s->n) * s->k;
    assert_float_equal(us_of(&chip, &matmul, bytes),
                       1e6 * (chip.op_latency + bytes / chip.memory_bandwidth), 1e-3);
  }
}

// ---- TPUs: windows ----

static const sample_t g_tpu[] = {
    {"v4", MP_DTYPE_BF16, 1, 8192, 8192, 64, 860.5},
    {"v4", MP_DTYPE_BF16, 1, 128, 128, 128, 1.66},
    {"v4", MP_DTYPE_F32, 1, 4096, 4096, 4096, 1128.9},
    {"v4", MP_DTYPE_S8, 1, 4096, 4096, 4096, 1195.6},
    {"v4", MP_DTYPE_BF16, 64, 512, 512, 512, 305},
    {"v5e", MP_DTYPE_BF16, 1, 8192, 8192, 64, 612.2},
    {"v5e", MP_DTYPE_BF16, 1, 128, 128, 128, 2.77},
    {"v5e", MP_DTYPE_F32, 1, 4096, 4096, 4096, 789.745},
    {"v5e", MP_DTYPE_S8, 1, 4096, 4096, 4096, 361.7},
    {"v5e", MP_DTYPE_BF16, 64, 512, 512, 512, 235.2},
    {"v5e", MP_DTYPE_BF16, 1, 8192, 8192, 8192, 6371},
    {"v5p", MP_DTYPE_BF16, 1, 8192, 8192, 64, 205.3},
    {"v5p", MP_DTYPE_BF16, 1, 128, 128, 128, 2.62},
    {"v5p", MP_DTYPE_S8, 1, 4096, 4096, 4096, 157.2},
    {"v5p", MP_DTYPE_BF16, 64, 512, 512, 512, 88.4},
    {"v6e", MP_DTYPE_BF16, 1, 8192, 8192, 64, 279.5},
    {"v6e", MP_DTYPE_BF16, 1, 128, 128, 128, 2.57},
    {"v6e", MP_DTYPE_F32, 1, 4096, 4096, 4096, 181.2},
    {"v6e", MP_DTYPE_S8, 1, 4096, 4096, 4096, 129.5},
    {"v6e", MP_DTYPE_BF16, 64, 512, 512, 512, 104.6},
    {"7x", MP_DTYPE_BF16, 1, 8192, 8192, 64, 121.5},
    {"7x", MP_DTYPE_F32, 1, 4096, 4096, 4096, 253.5},
    {"7x", MP_DTYPE_S8, 1, 4096, 4096, 4096, 146.7},
    {"7x", MP_DTYPE_BF16, 64, 512, 512, 512, 72.3},
    {"7x", MP_DTYPE_BF16, 1, 512, 512, 512, 3.26},
    {"7x", MP_DTYPE_BF16, 1, 1024, 1024, 1024, 6.37},
    {"7x", MP_DTYPE_BF16, 1, 8192, 512, 512, 11.46},
};

static void expect_about(const sample_t *sample, double us) {
  if (fabs(us / sample->us - 1) < 0.15) return;
  fail_msg("%s, %g of %g x %g x %g: %g us, not about %g", sample->chip, sample->batch, sample->m,
           sample->n, sample->k, us, sample->us);
}

static void products_on_tpus_go_by_windows(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof(g_tpu) / sizeof(g_tpu[0]); ++i) {
    const mp_chip_t chip = chip_of(g_tpu[i].chip);
    const mp_work_matmul_t matmul = matmul_of(&g_tpu[i]);
    expect_about(&g_tpu[i], us_of(&chip, &matmul, bytes_of(&matmul)));
  }
}

// ---- TPUs: what is fused ----

// Bytes an element that come from memory: in front of both factors, beside the result, and results
// of 2 and of 4 bytes.
typedef struct {
  sample_t sample;
  double lhs, rhs, beside, narrow, wide;
} fused_t;

static double fused_us(const mp_chip_t *chip, const fused_t *fused) {
  const mp_work_matmul_t p = matmul_of(&fused->sample);
  const mp_matmul_streams_t streams = {.factors = {p.m * p.k * fused->lhs, p.k * p.n * fused->rhs},
                                       .beside = p.m * p.n * fused->beside,
                                       .narrow = p.m * p.n * fused->narrow,
                                       .wide = p.m * p.n * fused->wide};
  const double bytes =
      streams.factors[0] + streams.factors[1] + streams.beside + streams.narrow + streams.wide;
  return 1e6 * mp_matmul_seconds(
                   chip, &(mp_matmul_kernel_t){
                             .matmul = &p, .bytes = bytes, .efficiency = 1, .streams = &streams});
}

#define BF16(m, k, n, us) \
  { "v5e", MP_DTYPE_BF16, 1, m, n, k, us }

// Pieces of training steps as libtpu compiles them for a v5e: the cycles of 1.5 GHz.
static void windows_have_the_bytes_of_what_is_fused(void **state) {
  (void)state;
  const mp_chip_t chip = chip_of("v5e");
  static const fused_t samples[] = {
      // Weights of f32 that are cast where they are read, beside both in bf16.
      {BF16(8192, 14336, 4096, 6719), 2, 4, 0, 2, 0},
      {BF16(4096, 28672, 8192, 13131), 2, 4, 0, 2, 0},
      {BF16(4096, 28672, 8192, 10362), 2, 2, 0, 2, 0},
      // An activation times a gate is made of two arrays.
      {BF16(4096, 28672, 8192, 12780), 4, 2, 0, 2, 0},
      // A residual, and one more factor, are in the result's windows.
      {BF16(4096, 28672, 8192, 11480), 2, 2, 2, 2, 0},
      {BF16(4096, 28672, 8192, 13318), 2, 2, 4, 2, 0},
      // One factor is in VMEM.
      {BF16(8192, 14336, 4096, 5011), 2, 0, 0, 2, 0},
      {BF16(16384, 3584, 8192, 4988), 0, 2, 2, 2, 0},
      // Adam with its state of f32 in the gradient of a weight.
      {BF16(4096, 2048, 4096, 709), 0, 2, 12, 0, 12},
      // Matmuls of the layers of 70b and 32b.
      {BF16(8192, 8192, 28672, 26682), 2, 4, 0, 2, 0},
      {BF16(16384, 8192, 28672, 49152), 2, 2, 2, 2, 0},
  };
  for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); ++i) {
    expect_about(&samples[i].sample, fused_us(&chip, &samples[i]));
  }
}

// A v6e whose compiler gives matmuls 96 MiB for their windows and not 32, as public recipes have
// it.
static void larger_windows_come_less_often(void **state) {
  (void)state;
  mp_chip_t chip = chip_of("v6e");
  static const fused_t samples[] = {
      {{"v6e", MP_DTYPE_BF16, 1, 16384, 28672, 8192, 9635}, 2, 2, 0, 2, 0},
      {{"v6e", MP_DTYPE_BF16, 1, 16384, 8192, 8192, 2747}, 2, 2, 0, 2, 0},
      {{"v6e", MP_DTYPE_BF16, 1, 8192, 4096, 14336, 1295}, 4, 2, 2, 2, 0},
  };
  for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); ++i) {
    chip.figures.matmul_window = 26.0 * (1 << 20);
    const double us = fused_us(&chip, &samples[i]);
    chip.figures.matmul_window = 78.0 * (1 << 20);
    expect_about(&samples[i].sample, fused_us(&chip, &samples[i]));
    assert_true(us > 1.15 * fused_us(&chip, &samples[i]));
  }
}

// Cycles of libtpu 0.0.52 for kernels of two matmuls, (m, k) x (k, h) x (h, n), whose inner one
// makes a factor in VMEM; of the three arrays the largest was fetched before.
static void an_inner_matmul_hands_its_result_over(void **state) {
  (void)state;
  static const struct {
    const char *chip;
    double m, k, h, n, us;
  } samples[] = {
      {"v5e", 4096, 256, 4096, 256, 110.6}, {"v5e", 1024, 512, 8192, 512, 111.5},
      {"v5e", 1024, 1024, 2048, 512, 46.3}, {"v6e", 4096, 256, 4096, 256, 36.6},
      {"v6e", 1024, 1024, 2048, 512, 17.5}, {"v6e", 1024, 512, 8192, 512, 37.3},
      {"v6e", 4096, 1024, 256, 4096, 82.8},
  };
  for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); ++i) {
    const double m = samples[i].m, k = samples[i].k, h = samples[i].h, n = samples[i].n;
    const mp_chip_t chip = chip_of(samples[i].chip);
    const sample_t inner = {samples[i].chip, MP_DTYPE_BF16, 1, m, h, k, 0};
    const sample_t outer = {samples[i].chip, MP_DTYPE_BF16, 1, m, n, h, 0};
    const mp_work_matmul_t inside = matmul_of(&inner), p = matmul_of(&outer);
    const mp_matmul_streams_t before = {.factors = {2 * m * k, 0}};
    const mp_matmul_streams_t streams = {.factors = {0, 2 * h * n}, .narrow = 2 * m * n};
    const double bytes = 2 * (m * k + h * n + m * n);
    const double seconds = mp_matmul_inner_seconds(&chip, &inside, &before);
    const double us =
        1e6 * mp_matmul_seconds(&chip, &(mp_matmul_kernel_t){.matmul = &p,
                                                             .bytes = bytes,
                                                             .efficiency = 1,
                                                             .streams = &streams,
                                                             .inner_seconds = seconds});
    assert_true(us > samples[i].us / 1.3 && us < samples[i].us * 1.3);
  }
}

// Cycles of libtpu 0.0.52 for chains of a batch, [m, k] x [k, h] x [h, n] of which the larger one
// of the first two was fetched before: both matmuls are done in each step.
static void chains_of_a_batch_go_matrix_by_matrix(void **state) {
  (void)state;
  static const struct {
    const char *chip;
    double batch, m, k, h, n, us;
  } samples[] = {
      {"v5e", 32, 256, 512, 512, 512, 101.8}, {"v6e", 32, 256, 512, 512, 512, 49.7},
      {"v6e", 64, 64, 128, 64, 128, 8.3},     {"v4", 24, 512, 192, 384, 192, 63.4},
      {"v5p", 24, 512, 192, 384, 192, 23.8},  {"7x", 24, 512, 192, 384, 192, 17.2},
      {"v6e", 24, 512, 192, 384, 192, 26.3},
  };
  for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); ++i) {
    const double m = samples[i].m, k = samples[i].k, h = samples[i].h, n = samples[i].n;
    const double batch = samples[i].batch;
    const mp_chip_t chip = chip_of(samples[i].chip);
    const sample_t inner = {samples[i].chip, MP_DTYPE_BF16, batch, m, h, k, 0};
    const sample_t outer = {samples[i].chip, MP_DTYPE_BF16, batch, m, n, h, 0};
    const mp_work_matmul_t inside = matmul_of(&inner), p = matmul_of(&outer);
    const bool is_wide = h > m;
    const mp_matmul_streams_t before = {
        .factors = {is_wide ? 2 * batch * m * k : 0, is_wide ? 0 : 2 * batch * k * h}};
    const mp_matmul_streams_t streams = {.factors = {0, 2 * batch * h * n},
                                         .narrow = 2 * batch * m * n};
    const mp_matmul_kernel_t kernel = {
        .matmul = &p,
        .bytes = 2 * batch * (m * k + k * h + h * n + m * n),
        .efficiency = 1,
        .streams = &streams,
        .inner_seconds = mp_matmul_inner_seconds(&chip, &inside, &before),
        .inner = &inside,
        .inner_streams = &before};
    const double us = 1e6 * mp_matmul_seconds(&chip, &kernel);
    assert_true(us > samples[i].us / 1.3 && us < samples[i].us * 1.3);
  }
}

// Cycles of libtpu 0.0.52 for matmuls of queries and keys with the softmax in their kernel.
static void rows_are_made_in_scratch_memory(void **state) {
  (void)state;
  static const struct {
    const char *chip;
    double batch, rows, columns, us;
  } samples[] = {
      {"v5e", 16, 1024, 1024, 43.6},
      {"v5e", 32, 512, 512, 23.3},
      {"v6e", 16, 1024, 1024, 30.8},
      {"v6e", 32, 512, 512, 16.8},
  };
  for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); ++i) {
    const mp_chip_t chip = chip_of(samples[i].chip);
    const sample_t sample = {samples[i].chip,
                             MP_DTYPE_BF16,
                             samples[i].batch,
                             samples[i].rows,
                             samples[i].columns,
                             64,
                             0};
    const mp_work_matmul_t p = matmul_of(&sample);
    const mp_matmul_streams_t streams = {.is_rows = true};
    // Whatever arithmetic the program has there.
    const double us = 1e6 * mp_matmul_seconds(&chip, &(mp_matmul_kernel_t){.matmul = &p,
                                                                           .bytes = 1,
                                                                           .vector_seconds = 1,
                                                                           .efficiency = 1,
                                                                           .streams = &streams});
    assert_true(us > samples[i].us / 1.15 && us < samples[i].us * 1.15);
  }
}

// What lies in VMEM is not read; with all of it there, the kernel is a small one.
static void scratch_memory_makes_matmuls_faster(void **state) {
  (void)state;
  const mp_chip_t chip = chip_of("v5e");
  const sample_t sample = {"v5e", MP_DTYPE_BF16, 1, 8, 128, 128, 0};
  const mp_work_matmul_t matmul = matmul_of(&sample);
  assert_true(us_of(&chip, &matmul, bytes_of(&matmul)) > 2.5);
  assert_true(near_us_of(&chip, &matmul) < 0.5);
}

// Results in VMEM are written at rates of their own, where a chip has them.
static void results_in_scratch_memory_have_their_rates(void **state) {
  (void)state;
  mp_chip_t chip = chip_of("v6e");
  assert_true(mp_matmul_near_write(&chip, true) > 4);
  assert_true(mp_matmul_near_write(&chip, false) < mp_matmul_near_write(&chip, true));
  chip.figures.matmul_near_write.count = 0;
  assert_float_equal(mp_matmul_near_write(&chip, true), MP_MATMUL_SCRATCH_WRITE, 1e-9);
}

// A row times a matrix is a sum over the matrix, at the memory's rate.
static void vectors_by_matrices_wait_for_memory(void **state) {
  (void)state;
  const mp_chip_t chip = chip_of("v5e");
  const sample_t sample = {"v5e", MP_DTYPE_BF16, 1, 1, 8192, 8192, 0};
  const mp_work_matmul_t matmul = matmul_of(&sample);
  const double bytes = 2.0 * 8192 * 8192;
  const double seconds =
      mp_chip_memory_latency(&chip, bytes) + bytes / chip.memory_bandwidth + chip.op_latency;
  assert_float_equal(us_of(&chip, &matmul, bytes), seconds * 1e6, 1e-6);
}

// libtpu's cycles for v5e. Batches with a side below 64 are reductions.
static void batches_of_vectors_are_matmuls(void **state) {
  (void)state;
  const mp_chip_t chip = chip_of("v5e");
  static const sample_t large[] = {{"v5e", MP_DTYPE_BF16, 256, 1, 128, 4096, 517.1},
                                   {"v5e", MP_DTYPE_BF16, 256, 1, 1024, 512, 568.1},
                                   {"v5e", MP_DTYPE_F32, 256, 1, 512, 1024, 989}};
  for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); ++i) {
    const mp_work_matmul_t matmul = matmul_of(&large[i]);
    const double ratio = us_of(&chip, &matmul, bytes_of(&matmul)) / large[i].us;
    if (ratio < 0.8 || ratio > 1.1) fail_msg("sample %zu: %.2f", i, ratio);
  }
  const sample_t small = {"v5e", MP_DTYPE_BF16, 8192, 1, 512, 32, 0};
  const mp_work_matmul_t matmul = matmul_of(&small);
  const double bytes = 2.0 * 8192 * 512 * 32;
  const double seconds =
      mp_chip_memory_latency(&chip, bytes) + bytes / chip.memory_bandwidth + chip.op_latency;
  assert_float_equal(us_of(&chip, &matmul, bytes), seconds * 1e6, 1e-6);
}

// Six matmuls of bf16 make one of f32 with the highest precision; on a GPU it is no TF32.
static void precision_costs(void **state) {
  (void)state;
  const sample_t sample = {"", MP_DTYPE_F32, 1, 4096, 4096, 4096, 0};
  mp_work_matmul_t matmul = matmul_of(&sample);
  const mp_chip_t tpu = chip_of("v5e"), gpu = chip_of("h100");
  const double by_tpu = us_of(&tpu, &matmul, 0), by_gpu = us_of(&gpu, &matmul, 0);
  matmul.bf16_passes = 6;
  assert_in_range(us_of(&tpu, &matmul, 0) / by_tpu * 100, 500, 610);
  assert_in_range(us_of(&gpu, &matmul, 0) / by_gpu * 100, 500, 900);
}

// What is described replaces figures: a latency of kernels, and rates of units and memory.
static void a_description_replaces_figures(void **state) {
  (void)state;
  const sample_t small = {"", MP_DTYPE_BF16, 1, 8, 128, 128, 0};
  const sample_t large = {"", MP_DTYPE_BF16, 1, 8192, 8192, 8192, 0};
  const mp_work_matmul_t tiny = matmul_of(&small), huge = matmul_of(&large);
  const mp_chip_t v5e = chip_of("v5e"), slow = chip_of("v5e op_latency:10us");
  assert_in_range(us_of(&slow, &tiny, bytes_of(&tiny)) * 100, 1000, 1200);
  const mp_chip_t fast = chip_of("v5e flops.bf16:394T memory.bandwidth:1638GB/s");
  const double ratio = near_us_of(&v5e, &huge) / near_us_of(&fast, &huge);
  assert_in_range(ratio * 100, 180, 200);
  const mp_chip_t gpu = chip_of("h100 op_latency:1us");
  assert_in_range(us_of(&gpu, &tiny, 0) * 100, 100, 200);
}

// ---- convolutions ----

typedef struct {
  const char *chip;
  mp_work_matmul_t matmul;
  double us;
} window_sample_t;

#define WINDOW(images_, in_, out_, row_, channels_, strided)                      \
  .dtype = MP_DTYPE_BF16, .result = MP_DTYPE_BF16, .passes = 1, .bf16_passes = 1, \
  .convolution = {.window = (row_) * (row_),                                      \
                  .row = row_,                                                    \
                  .images = images_,                                              \
                  .in = in_,                                                      \
                  .out = out_,                                                    \
                  .channels = channels_,                                          \
                  .is_strided = strided,                                          \
                  .holes = 1}

// Of bf16 arrays, as a TPU keeps them.
static double window_bytes(const mp_work_matmul_t *p) {
  const mp_work_convolution_t *c = &p->convolution;
  const double features = p->n * p->batch;
  return 2 * (padded(c->images, c->channels) * c->in + padded(c->images, features) * c->out +
              padded(c->channels / p->batch, features) * c->window);
}

static void convolutions_fill_the_unit_by_channels(void **state) {
  (void)state;
  const double image = 56 * 56, positions = 64 * image;
  const mp_work_matmul_t many = {1, positions, 64, 9 * 64, WINDOW(64, image, image, 3, 64, false)};
  const mp_work_matmul_t point = {1, 64 * 196, 256, 1024, WINDOW(64, 196, 196, 1, 1024, false)};
  const mp_work_matmul_t deep = {256, 32 * image, 1, 9, WINDOW(32, image, image, 3, 256, false)};
  const mp_work_matmul_t gradient = {1, 9 * 128, 128, 32 * 784, WINDOW(128, 784, 9, 28, 32, false)};
  const window_sample_t samples[] = {
      {"v4", many, 455.5},  {"v4", point, 59.34},  {"v4", deep, 455.5},  {"v4", gradient, 59.96},
      {"v5e", many, 320.7}, {"v5e", point, 43.37}, {"v5e", deep, 320.7}, {"v5e", gradient, 43.66},
      {"v5p", many, 140.1}, {"v5p", point, 19.85}, {"v5p", deep, 140.1}, {"v5p", gradient, 20.3},
      {"v6e", many, 146.8}, {"v6e", point, 19.89}, {"v6e", deep, 283.1}, {"v6e", gradient, 21.35},
      {"7x", many, 111.3},  {"7x", point, 9.823},  {"7x", deep, 216},    {"7x", gradient, 15.81},
  };
  for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); ++i) {
    const mp_chip_t chip = chip_of(samples[i].chip);
    const double us = us_of(&chip, &samples[i].matmul, window_bytes(&samples[i].matmul));
    if (fabs(us / samples[i].us - 1) > 0.05) {
      fail_msg("%zu, %s: %g us, not %g", i, samples[i].chip, us, samples[i].us);
    }
  }
}

// libtpu's times of gradients of convolutions with strides of two, for a v5e: of a dilated input
// one element in four is there, and no more is multiplied.
static void holes_are_not_multiplied(void **state) {
  (void)state;
  const mp_chip_t chip = chip_of("v5e");
  const mp_work_matmul_t small = {1, 64 * 784, 128, 9 * 256, WINDOW(64, 196, 784, 3, 256, false)};
  const mp_work_matmul_t point = {1, 64 * 784, 256, 512, WINDOW(64, 196, 784, 1, 512, false)};
  window_sample_t samples[] = {{"v5e", small, 68.2}, {"v5e", point, 124.2}};
  for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); ++i) {
    samples[i].matmul.convolution.holes = 4;
    const double us = us_of(&chip, &samples[i].matmul, window_bytes(&samples[i].matmul));
    if (us > 1.3 * samples[i].us || us < samples[i].us / 1.3) {
      fail_msg("%zu: %g us, not %g", i, us, samples[i].us);
    }
  }
}

// libtpu's times of kernels alone: images in the lanes, and groups in front of their copies.
static void few_features_have_images_in_the_lanes(void **state) {
  (void)state;
  const double image = 28 * 28;
  const mp_work_matmul_t few = {1, 128 * image, 64, 9 * 64,
                                WINDOW(128, image, image, 3, 64, false)};
  const mp_work_matmul_t first = {1, 512 * 1024, 16, 27, WINDOW(512, 1024, 1024, 3, 3, false)};
  const mp_work_matmul_t groups = {32, 128 * image, 8, 72,
                                   WINDOW(128, image, image, 3, 256, false)};
  const window_sample_t samples[] = {
      {"v5e", few, 68.18}, {"v5e", first, 94.96}, {"v6e", few, 35.06}, {"v6e", first, 43.67}};
  for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); ++i) {
    const mp_chip_t chip = chip_of(samples[i].chip);
    const double us = us_of(&chip, &samples[i].matmul, window_bytes(&samples[i].matmul));
    if (fabs(us / samples[i].us - 1) > 0.2) {
      fail_msg("%zu, %s: %g us, not %g", i, samples[i].chip, us, samples[i].us);
    }
  }
  const mp_chip_t chip = chip_of("v5e");
  assert_true(us_of(&chip, &groups, window_bytes(&groups)) > 437.5);
}

// Of a v5e, for 16 images of 32 x 32 and 128 features.
static double us_of_window(double row, double channels) {
  const double image = 32 * 32;
  const mp_chip_t chip = chip_of("v5e");
  const mp_work_matmul_t matmul = {1, 16 * image, 128, row * row * channels,
                                   WINDOW(16, image, image, row, channels, false)};
  return us_of(&chip, &matmul, window_bytes(&matmul));
}

// A kernel of few channels has a row of its window in k, as libtpu's cycles show: 53 thousand for
// 5 x 5 of 32 channels, 29 of 16; 53 for 3 x 3 of 96, 40 of 32, 23 of 16.
static void rows_of_few_channels_are_packed(void **state) {
  (void)state;
  assert_true(us_of_window(5, 32) < 0.7 * us_of_window(5, 64));
  assert_true(us_of_window(3, 16) < 0.9 * us_of_window(3, 32));
  assert_float_equal(us_of_window(3, 32), us_of_window(3, 96), 0.1 * us_of_window(3, 96));
}

// FSDP over 16 of a matmul with 4096 x 4096 weights, bf16: rows of each device, and the compiler's
// cycles of all parts of a ring.
static void rings_take_longer_than_matmuls(void **state) {
  (void)state;
  static const struct {
    const char *chip;
    mp_ring_matmul_kind_t kind;
    double rows, us;
  } samples[] = {{"v5e", MP_RING_OF_SUMS, 288, 96.3},      {"v5e", MP_RING_OF_SUMS, 512, 152.6},
                 {"v5e", MP_RING_OF_SUMS, 1024, 265.4},    {"v5e", MP_RING_OF_SUMS, 2048, 492.8},
                 {"v6e", MP_RING_OF_SUMS, 640, 39.9},      {"v6e", MP_RING_OF_SUMS, 1024, 55},
                 {"v6e", MP_RING_OF_SUMS, 2048, 117.6},    {"v5p", MP_RING_OF_SUMS, 1024, 199.3},
                 {"v5e", MP_RING_OF_SCATTERS, 1024, 455.4}};
  for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); ++i) {
    const mp_chip_t chip = chip_of(samples[i].chip);
    const bool is_scatter = samples[i].kind == MP_RING_OF_SCATTERS;
    const double side = 4096, rows = samples[i].rows, bytes = 2 * (2 * rows * side + side * side);
    const mp_work_t work = {.work_class = MP_WORK_MATMUL,
                            .matmul = {.batch = 1,
                                       .m = is_scatter ? side : rows,
                                       .n = side,
                                       .k = is_scatter ? rows : side,
                                       .dtype = MP_DTYPE_BF16,
                                       .result = MP_DTYPE_BF16,
                                       .passes = 1,
                                       .bf16_passes = 1}};
    const mp_chip_fusion_t fusion = {.work = work, .first_member = MP_CHIP_FUSION_NONE};
    const mp_chip_fusions_t none = {0};
    const mp_ring_matmul_t ring = {samples[i].kind, 16}, no_ring = {MP_RING_NONE, 16};
    const double whole = mp_kernel_time(&chip, &none, &fusion, bytes).seconds;
    const double ratio =
        mp_ring_time(&chip, &none, &fusion, bytes, &ring).seconds * 1e6 / samples[i].us;
    assert_true(mp_ring_time(&chip, &none, &fusion, bytes, &no_ring).seconds == whole);
    assert_true(mp_ring_time(&chip, &none, &fusion, bytes, &ring).seconds > whole);
    if (ratio < 0.75 || ratio > 1.2) fail_msg("%s, %g rows: %.2f", samples[i].chip, rows, ratio);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rings_take_longer_than_matmuls),
      cmocka_unit_test(products_on_gpus_run_in_waves),
      cmocka_unit_test(few_rows_load_few_rows),
      cmocka_unit_test(vectors_by_matrices_are_sums),
      cmocka_unit_test(products_on_tpus_go_by_windows),
      cmocka_unit_test(windows_have_the_bytes_of_what_is_fused),
      cmocka_unit_test(larger_windows_come_less_often),
      cmocka_unit_test(scratch_memory_makes_matmuls_faster),
      cmocka_unit_test(results_in_scratch_memory_have_their_rates),
      cmocka_unit_test(vectors_by_matrices_wait_for_memory),
      cmocka_unit_test(batches_of_vectors_are_matmuls),
      cmocka_unit_test(precision_costs),
      cmocka_unit_test(a_description_replaces_figures),
      cmocka_unit_test(an_inner_matmul_hands_its_result_over),
      cmocka_unit_test(chains_of_a_batch_go_matrix_by_matrix),
      cmocka_unit_test(rows_are_made_in_scratch_memory),
      cmocka_unit_test(convolutions_fill_the_unit_by_channels),
      cmocka_unit_test(holes_are_not_multiplied),
      cmocka_unit_test(few_features_have_images_in_the_lanes),
      cmocka_unit_test(rows_of_few_channels_are_packed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
