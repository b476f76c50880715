// Matmuls on a TPU by windows: the compiler cuts a matmul into windows, two per array in VMEM, and
// goes through them step by step. Transfers of the next window overlap with the units. A window of
// the result is written with the last part of k.
#include "sim/base/assert.h"
#include "sim/chip/cost/matmul_tpu_impl.h"

// The smallest windows, except for the last ones of a dimension.
#define MATMUL_WINDOWS_LEAST_SIDE 128
#define MATMUL_WINDOWS_LEAST_K    256
// The longest parts of k: shorter for a long k if both operands are in HBM, any for small results.
#define MATMUL_WINDOWS_MOST_K  2048
#define MATMUL_WINDOWS_LONG_K  4096
#define MATMUL_WINDOWS_SHORT_K 1024
#define MATMUL_WINDOWS_SMALL   (512.0 * 512.0)
// With more room for windows than this, parts may be longer in proportion.
#define MATMUL_WINDOWS_LARGE (26.0 * 1024 * 1024)
// Sums are f32.
#define MATMUL_WINDOWS_SUM_BYTES 4

// The numbers of parts of m, n and k.
static const double g_cuts[] = {1,  2,  3,  4,  5,  6,  7,  8,   10,  12,  14,  16,  20,  24, 28,
                                32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 256, 384, 512};
enum { NUM_CUTS = sizeof(g_cuts) / sizeof(g_cuts[0]) };

typedef struct {
  double m, n, k;  // parts
} matmul_windows_cut_t;

static bool matmul_windows_may_cut(double size, double least, double parts) {
  return parts == 1 || parts <= floor(size / least);
}

// Whether no cut has more parts than this one.
static bool matmul_windows_is_finest(double size, double least, double parts) {
  for (int i = 0; i < NUM_CUTS; ++i) {
    if (g_cuts[i] > parts) return !matmul_windows_may_cut(size, least, g_cuts[i]);
  }
  return true;
}

// The windows of a cut: bytes, and seconds.
typedef struct {
  double scratch;
  double work;        // of the units in a step, with the overhead of a step
  double factors[2];  // to fetch a window of an operand
  double result;      // to read and write the arrays of a window of the result
} matmul_windows_t;

static matmul_windows_t matmul_windows_of(const mp_matmul_tpu_t *p,
                                          const matmul_windows_cut_t *cut) {
  const mp_work_matmul_t *matmul = p->matmul;
  const mp_matmul_streams_t *s = &p->streams;
  const double m = ceil(matmul->m / cut->m), n = ceil(matmul->n / cut->n);
  const double k = ceil(matmul->k / cut->k);
  const double sides[2][2] = {{m, k}, {k, n}};
  const double wholes[2][2] = {{matmul->m, matmul->k}, {matmul->k, matmul->n}};
  const double elements = mp_matmul_tpu_tiled(m, n);
  const double part = elements / (mp_matmul_tpu_tiled(matmul->m, matmul->n) * matmul->batch);
  matmul_windows_t w = {.scratch = 2 * part * (s->beside + s->narrow + s->wide),
                        .work = mp_matmul_tpu_units(p, m, k, n) + p->step,
                        .result = part * (s->beside / p->read + mp_matmul_tpu_store(p))};
  for (int i = 0; i < 2; ++i) {
    const double share = mp_matmul_tpu_padded(sides[i][0], sides[i][1]) /
                         (mp_matmul_tpu_padded(wholes[i][0], wholes[i][1]) * matmul->batch);
    w.scratch += 2 * s->factors[i] * share;
    if (s->factors[i] > 0) w.factors[i] = p->fetch + s->factors[i] * share / p->read;
  }
  if (cut->k > 1) {
    // A result in f32 without an epilogue is accumulated in its own window.
    const bool is_sum =
        p->out_width == MATMUL_WINDOWS_SUM_BYTES && s->beside == 0 && s->narrow == 0;
    if (!is_sum) w.scratch += elements * MATMUL_WINDOWS_SUM_BYTES;
    w.work += elements / MP_TILE_ELEMENTS * p->accumulate;
  }
  return w;
}

// The steps go through k first, then m, then n. An operand's window is fetched if it is not that of
// the step before.
static double matmul_windows_steps(const matmul_windows_cut_t *cut, const matmul_windows_t *w) {
  const double lhs = w->factors[0], rhs = w->factors[1], work = w->work;
  if (cut->k > 1) {
    const double each = fmax(work, lhs + rhs), last = fmax(work, lhs + rhs + w->result);
    return cut->m * cut->n * ((cut->k - 1) * each + last) + fmin(work, lhs + rhs);
  }
  const double first = fmin(work, lhs + rhs + w->result);
  if (cut->m == 1) return cut->n * fmax(work, rhs + w->result) + first + lhs;
  return cut->n * ((cut->m - 1) * fmax(work, lhs + w->result) + fmax(work, lhs + rhs + w->result)) +
         first;
}

// Whether a cut's parts of k may be so long.
static bool matmul_windows_may_keep(const mp_matmul_tpu_t *p, double parts) {
  const bool both = p->streams.factors[0] > 0 && p->streams.factors[1] > 0;
  const double k = p->matmul->k;
  const bool is_long = both && k >= MATMUL_WINDOWS_LONG_K;
  if (p->matmul->m * p->matmul->n <= MATMUL_WINDOWS_SMALL) return true;
  const double most = is_long ? MATMUL_WINDOWS_SHORT_K : MATMUL_WINDOWS_MOST_K;
  return ceil(k / parts) <= most * fmax(1, p->window / MATMUL_WINDOWS_LARGE) ||
         matmul_windows_is_finest(k, MATMUL_WINDOWS_LEAST_K, parts) ||
         !mp_chip_rule(p->figures, MP_CHIP_RULE_matmul_k_limit);
}

static bool matmul_windows_is_least(const mp_work_matmul_t *matmul,
                                    const matmul_windows_cut_t *cut) {
  return matmul_windows_is_finest(matmul->m, MATMUL_WINDOWS_LEAST_SIDE, cut->m) &&
         matmul_windows_is_finest(matmul->n, MATMUL_WINDOWS_LEAST_SIDE, cut->n) &&
         matmul_windows_is_finest(matmul->k, MATMUL_WINDOWS_LEAST_K, cut->k);
}

// The seconds with a cut; infinite if its windows are too large.
static double matmul_windows_seconds(const mp_matmul_tpu_t *p, const matmul_windows_cut_t *cut) {
  matmul_windows_t w = matmul_windows_of(p, cut);
  if (w.scratch > p->window && !matmul_windows_is_least(p->matmul, cut)) return INFINITY;
  const double batch = p->matmul->batch;
  if (cut->m * cut->n * cut->k > 1) return batch * matmul_windows_steps(cut, &w);
  // Small matmuls of a batch share a step, as a window with more rows.
  const double together = fmax(1, fmin(batch, floor(p->window / 2 / w.scratch)));
  const double steps = ceil(batch / together);
  for (int i = 0; i < 2; ++i) {
    if (w.factors[i] > 0) w.factors[i] += (together - 1) * (w.factors[i] - p->fetch);
  }
  w.result *= together;
  const double work = (w.work - p->step) * together + p->step;
  const double transfer = w.factors[0] + w.factors[1] + w.result;
  return steps * fmax(work, transfer) + fmin(work, transfer);
}

double mp_matmul_windows_pair_seconds(const mp_matmul_tpu_t *p, const mp_matmul_tpu_t *inner,
                                      double handing) {
  const matmul_windows_cut_t whole = {1, 1, 1};
  const matmul_windows_t both[] = {matmul_windows_of(p, &whole), matmul_windows_of(inner, &whole)};
  const double batch = p->matmul->batch, scratch = both[0].scratch + both[1].scratch;
  if (scratch > p->window) return INFINITY;
  const double together = fmax(1, fmin(batch, floor(p->window / 2 / scratch)));
  const double work = together * (both[0].work + both[1].work - 2 * p->step + handing) + p->step;
  double transfer = together * both[0].result;
  for (int i = 0; i < 4; ++i) {
    const double factor = both[i / 2].factors[i % 2];
    if (factor > 0) transfer += p->fetch + together * (factor - p->fetch);
  }
  return ceil(batch / together) * fmax(work, transfer) + fmin(work, transfer);
}

// Tries only the largest windows along k, because smaller ones take more steps.
static double matmul_windows_best_along_k(const mp_matmul_tpu_t *p, matmul_windows_cut_t *cut) {
  enum { TRIED = 4 };
  double best = INFINITY;
  int tried = 0;
  for (int i = 0; i < NUM_CUTS && tried < TRIED; ++i) {
    cut->k = g_cuts[i];
    if (!matmul_windows_may_cut(p->matmul->k, MATMUL_WINDOWS_LEAST_K, cut->k)) break;
    if (!matmul_windows_may_keep(p, cut->k)) continue;
    const double seconds = matmul_windows_seconds(p, cut);
    tried += seconds < INFINITY;
    best = fmin(best, seconds);
  }
  return best;
}

double mp_matmul_windows_seconds(const mp_matmul_tpu_t *p) {
  double best = INFINITY;
  matmul_windows_cut_t cut;
  for (int i = 0; i < NUM_CUTS; ++i) {
    cut.m = g_cuts[i];
    if (!matmul_windows_may_cut(p->matmul->m, MATMUL_WINDOWS_LEAST_SIDE, cut.m)) break;
    for (int j = 0; j < NUM_CUTS; ++j) {
      cut.n = g_cuts[j];
      if (!matmul_windows_may_cut(p->matmul->n, MATMUL_WINDOWS_LEAST_SIDE, cut.n)) break;
      best = fmin(best, matmul_windows_best_along_k(p, &cut));
    }
  }
  MP_ASSERT(best < INFINITY);  // the finest cut is always taken
  return best;
}
