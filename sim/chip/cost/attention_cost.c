// The time of attention kernels: by blocks on TPUs, by the length of sequences on GPUs.
#include "sim/chip/cost/attention_cost.h"

#include <math.h>

#include "sim/chip/layout/tile_layout.h"

// Matmuls per block of scores: scores and result; in backward passes scores again, and gradients.
static const double g_products[MP_ATTENTION_PASS_COUNT] = {2, 4, 3, 5};

static double attention_cost_flops(const mp_attention_t *a, double scores) {
  return 2 * g_products[a->pass] * scores * a->width;
}

// ---- TPUs ----

static const mp_figure_list_t *attention_cost_splash(const mp_chip_t *chip,
                                                     mp_attention_pass_t pass) {
  const mp_chip_figures_t *figures = &chip->figures;
  const mp_figure_list_t *lists[] = {&figures->attention_splash_forward,
                                     &figures->attention_splash_dkv, &figures->attention_splash_dq,
                                     &figures->attention_splash_fused};
  return lists[pass]->count == MP_ATTENTION_TPU_COUNT ? lists[pass] : NULL;
}

// Blocks of a head that are not all masked.
static double attention_cost_blocks(const mp_attention_t *a, double all) {
  enum { MOST_ROWS = 65536 };  // of more only about a half is known
  if (!a->is_causal) return all;
  if (a->queries > MOST_ROWS * a->block_queries) return all / 2;
  double live = 0;
  for (double end = a->block_queries; end < a->queries + a->block_queries;
       end += a->block_queries) {
    live += ceil(fmin(end, a->keys) / a->block_keys);
  }
  return fmin(live, all);
}

// The seconds to fetch the keys and values (or queries and gradients) of the next block. The
// latency of memory is that of a read and a write.
static double attention_cost_fetch(const mp_chip_t *chip, double rows, double lanes) {
  enum { ARRAYS = 2, ELEMENT = 2 };
  return mp_figure_or(chip->figures.memory_latency, 0) / 2 +
         ARRAYS * ELEMENT * rows * lanes / chip->memory_bandwidth;
}

// The seconds that a mask adds to a block: splash kernels compare positions or segment ids per
// score.
static double attention_cost_mask(const mp_figure_list_t *figures, const mp_attention_t *a) {
  enum { SIDE = 512 };
  static const int at[MP_ATTENTION_PASS_COUNT] = {
      [MP_ATTENTION_FORWARD] = MP_ATTENTION_MASK_FORWARD,
      [MP_ATTENTION_DKV] = MP_ATTENTION_MASK_DKV,
      [MP_ATTENTION_DQ] = MP_ATTENTION_MASK_DQ,
      [MP_ATTENTION_BACKWARD] = MP_ATTENTION_MASK_FUSED,
  };
  if (figures->count != MP_ATTENTION_MASK_COUNT) return 0;
  const bool is_long = a->pass == MP_ATTENTION_FORWARD && a->block_keys > SIDE;
  const double of_scores = figures->each[is_long ? MP_ATTENTION_MASK_LONG : at[a->pass]];
  return a->block_queries * a->block_keys / (SIDE * SIDE) * of_scores * 1e-9;
}

// The cores of a device share the heads, but backward kernels of splash attention run on one core.
static double attention_cost_tpu(const mp_chip_t *chip, const mp_attention_t *a,
                                 const mp_figure_list_t *figures) {
  enum { ENDS = 512 };
  const double cores = mp_figure_or(chip->figures.attention_cores, 1);
  const double used = a->is_splash && a->pass != MP_ATTENTION_FORWARD ? 1 : cores;
  const bool is_by_keys = a->pass == MP_ATTENTION_DKV || a->pass == MP_ATTENTION_BACKWARD;
  const double square = ceil(a->queries / a->block_queries) * ceil(a->keys / a->block_keys);
  const double all = a->steps > 0 ? fmin(a->steps, square) : square;
  const double of_block = attention_cost_flops(a, a->block_queries * a->block_keys);
  const double live = a->flops > 0 ? fmin(a->flops / of_block, a->heads * all)
                                   : a->heads * attention_cost_blocks(a, all);
  const double lanes = ceil(a->width / MP_TILE_LANES) * MP_TILE_LANES;
  const double share =
      figures->each[a->width > MP_TILE_LANES ? MP_ATTENTION_TPU_WIDE : MP_ATTENTION_TPU_SHARE];
  const double masks =
      (a->is_masked ? attention_cost_mask(&chip->figures.attention_mask, a) : 0) +
      (a->is_segmented ? attention_cost_mask(&chip->figures.attention_segments, a) : 0);
  const double inside = of_block * lanes / a->width / (share * chip->flops[MP_FLOP_BF16]) * cores +
                        masks + figures->each[MP_ATTENTION_TPU_STEP] * 1e-9;
  const double fetch =
      attention_cost_fetch(chip, is_by_keys ? a->block_queries : a->block_keys, lanes);
  const double skip = figures->each[MP_ATTENTION_TPU_SKIP] * 1e-9;
  const double rows = a->heads * (is_by_keys ? a->keys : a->queries);
  const double ends = rows / ENDS * figures->each[MP_ATTENTION_TPU_ENDS] * 1e-9;
  return (live * fmax(inside, fetch) + (a->heads * all - live) * skip + ends) / used;
}

// ---- GPUs ----

static const mp_figure_list_t *attention_cost_curve(const mp_chip_t *chip, const mp_attention_t *a,
                                                    bool is_causal) {
  const mp_chip_figures_t *figures = &chip->figures;
  const bool is_forward = a->pass == MP_ATTENTION_FORWARD;
  const mp_figure_list_t *list =
      is_causal
          ? (is_forward ? &figures->attention_forward_causal : &figures->attention_backward_causal)
          : (is_forward ? &figures->attention_forward : &figures->attention_backward);
  return list->count == MP_ATTENTION_GPU_COUNT ? list : NULL;
}

static double attention_cost_share(const mp_figure_list_t *curve, double length) {
  const double at =
      fmin(fmax(log2(length / MP_ATTENTION_GPU_FIRST), 0), MP_ATTENTION_GPU_COUNT - 1);
  const int below = (int)fmin(floor(at), MP_ATTENTION_GPU_COUNT - 2);
  return curve->each[below] + (at - below) * (curve->each[below + 1] - curve->each[below]);
}

static double attention_cost_heads(const mp_chip_t *chip, const mp_attention_t *a) {
  const mp_figure_list_t *list = &chip->figures.attention_heads;
  if (list->count != MP_ATTENTION_HEADS_COUNT) return 1;
  const double *each = list->each;
  if (a->pass != MP_ATTENTION_FORWARD) each += MP_ATTENTION_HEADS_BACKWARD_64;
  const double at = fmin(fmax(log2(a->width / 128), -1), 1);
  return at < 0 ? 1 + at * (1 - each[MP_ATTENTION_HEADS_64])
                : 1 - at * (1 - each[MP_ATTENTION_HEADS_256]);
}

static double attention_cost_gpu(const mp_chip_t *chip, const mp_attention_t *a,
                                 const mp_figure_list_t *curve, double flops) {
  const double share = attention_cost_share(curve, a->keys) * attention_cost_heads(chip, a);
  return flops / (share * chip->flops[MP_FLOP_BF16]);
}

// The share of the scores that the mask leaves. Publications count half of the square for a causal
// mask.
static double attention_cost_seen(const mp_attention_t *a) {
  if (!a->is_causal) return 1;
  const double window = a->window > 0 ? fmin(a->window / a->keys, 1) : 1;
  return window * (1 - window / 2);
}

double mp_attention_flops(const mp_attention_t *a) {
  if (a->flops > 0) return a->flops;
  return attention_cost_flops(a, a->heads * a->queries * a->keys) * attention_cost_seen(a);
}

double mp_attention_seconds(const mp_chip_t *chip, const mp_attention_t *a) {
  const mp_figure_list_t *splash = attention_cost_splash(chip, a->pass);
  if (splash != NULL) return attention_cost_tpu(chip, a, splash);
  const double all = attention_cost_flops(a, a->heads * a->queries * a->keys);
  const double flops = mp_attention_flops(a);
  const mp_figure_list_t *curve = attention_cost_curve(chip, a, flops < 0.75 * all);
  if (curve != NULL) return attention_cost_gpu(chip, a, curve, flops);
  return flops / chip->flops[MP_FLOP_BF16];
}
