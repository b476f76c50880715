// Convolutions on a TPU: a matmul for each element of the window, with channels or images in the
// lanes.
#include <math.h>

#include "sim/base/assert.h"
#include "sim/chip/cost/matmul_tpu_impl.h"

// The approximate length of a step, in seconds.
#define MATMUL_CONVOLUTION_STEP 8e-6
// Up to so many channels, a row of the window is packed into k: if the convolution has strides, and
// for any.
#define MATMUL_CONVOLUTION_FEW_CHANNELS    8
#define MATMUL_CONVOLUTION_PACKED_CHANNELS 16
// Up to so many channels, if the packed row is longer than the lanes.
#define MATMUL_CONVOLUTION_LONG_ROW_CHANNELS 48

// The share of a window's elements that is multiplied: not the holes of a dilated input, as in the
// gradient of a convolution with strides.
static double matmul_convolution_met(const mp_matmul_tpu_t *p) {
  return 1 / p->matmul->convolution.holes;
}

// ---- results that fill few lanes ----

// Tiles of the result, for each position and group.
static double matmul_convolution_tiles(const mp_matmul_tpu_t *p, double rows, double lanes) {
  return p->matmul->convolution.out * p->matmul->batch * ceil(rows / MP_MATMUL_TPU_SUBLANES) *
         ceil(lanes / MP_MATMUL_TPU_LANES);
}

// Channels of one group.
static double matmul_convolution_channels(const mp_matmul_tpu_t *p) {
  return p->matmul->convolution.channels / p->matmul->batch;
}

// The seconds with images in the lanes and the whole window in k. Infinite if features fill the
// lanes, if the chip has no parameter for it, or if images do not fill the lanes and there are no
// groups.
static double matmul_convolution_by_images(const mp_matmul_tpu_t *p) {
  const mp_work_convolution_t *c = &p->matmul->convolution;
  const double n = p->matmul->n;
  if (isnan(p->images) || n >= MP_MATMUL_TPU_LANES) return INFINITY;
  if (p->matmul->batch == 1 && fmod(c->images, MP_MATMUL_TPU_LANES) != 0) return INFINITY;
  const double tiles = matmul_convolution_tiles(p, n, c->images);
  const double met = matmul_convolution_met(p);
  const double k = fmax(1, c->window * met) * matmul_convolution_channels(p);
  const double passes = mp_matmul_tpu_up(k, p->tile_k) * p->tile_columns * p->multiply;
  return tiles * fmax(p->images, MP_MATMUL_TPU_SUBLANES * passes);
}

// ---- groups ----

// One channel per group: a tile of the unit for each block of channels and element of the window.
static double matmul_convolution_depthwise(const mp_matmul_tpu_t *p) {
  const mp_work_matmul_t *matmul = p->matmul;
  const double side = p->tile_columns, groups = matmul->batch;
  const double channels = fmax(matmul->n, matmul->k / matmul->convolution.window);
  const double at_once = fmax(1, floor(MP_MATMUL_TPU_LANES / channels));
  const double window = matmul->convolution.window;
  return matmul->m * window * ceil(groups / at_once) * side * side * p->multiply;
}

// Groups of several channels are an outer dimension. The operand and the result change layout.
static double matmul_convolution_groups(const mp_matmul_tpu_t *p) {
  const mp_work_matmul_t *matmul = p->matmul;
  const mp_work_convolution_t *c = &matmul->convolution;
  const double channels = matmul_convolution_channels(p), groups = matmul->batch;
  const double k = c->window * channels, rows = matmul->m * groups;
  const double units = mp_matmul_tpu_pass(p, rows, k, matmul->n);
  const double padded = mp_matmul_tpu_up(c->images, MP_MATMUL_TPU_LANES) / c->images;
  const double elements = c->images * (c->in * c->channels + c->out * matmul->n * groups);
  const double relaid = fmin(padded, MP_MATMUL_TPU_LANES / channels) * elements * p->relaid;
  return fmin(units, matmul_convolution_by_images(p)) +
         (channels < MP_MATMUL_TPU_LANES ? relaid : 0);
}

// ---- gradients ----

// A gradient of weights, whose window exceeds its result, contracts over the whole window.
static double matmul_convolution_gradient(const mp_matmul_tpu_t *p) {
  const mp_work_matmul_t *matmul = p->matmul;
  const mp_work_convolution_t *c = &matmul->convolution;
  const double k = c->window * matmul_convolution_met(p) * c->channels;
  double best = INFINITY;
  for (int i = 0; i < 2; ++i) {
    const double rows = i == 0 ? c->images : matmul->n, columns = i == 0 ? matmul->n : c->images;
    const double padded = mp_matmul_tpu_up(rows, rows <= 4 ? 4 : MP_MATMUL_TPU_SUBLANES);
    best = fmin(best, mp_matmul_tpu_pass(p, c->out * padded, k, columns));
  }
  return best;
}

// ---- windows ----

static bool matmul_convolution_is_packed(double row, double channels) {
  if (channels <= MATMUL_CONVOLUTION_PACKED_CHANNELS) return true;
  return channels <= MATMUL_CONVOLUTION_LONG_ROW_CHANNELS && row * channels > MP_MATMUL_TPU_LANES;
}

// How many elements of a row of the window are in k at once.
static double matmul_convolution_packed(const mp_matmul_tpu_t *p) {
  const mp_work_convolution_t *c = &p->matmul->convolution;
  const double k = matmul_convolution_channels(p);
  const bool is_few = k <= MATMUL_CONVOLUTION_FEW_CHANNELS && c->is_strided;
  return is_few || matmul_convolution_is_packed(c->row, k) ? c->row : 1;
}

static double matmul_convolution_window(const mp_matmul_tpu_t *p, double packed) {
  const double k = matmul_convolution_channels(p) * packed;
  const double positions = mp_matmul_tpu_up(p->matmul->m, MP_MATMUL_TPU_SUBLANES);
  const double passes = p->matmul->convolution.window / packed * matmul_convolution_met(p);
  return passes * mp_matmul_tpu_pass(p, positions, k, p->matmul->n);
}

// In the layout that the compiler chooses. Without the rule channels are in the lanes, one element
// of the window after the other.
static double matmul_convolution_units(const mp_matmul_tpu_t *p) {
  const mp_work_convolution_t *c = &p->matmul->convolution;
  const bool has_layouts = mp_chip_rule(p->figures, MP_CHIP_RULE_conv_layouts);
  if (p->matmul->batch > 1) {
    const bool is_depthwise = matmul_convolution_channels(p) <= 1 || isnan(p->images);
    return is_depthwise || !has_layouts ? matmul_convolution_depthwise(p)
                                        : matmul_convolution_groups(p);
  }
  if (!has_layouts) return matmul_convolution_window(p, 1);
  if (c->window > c->out) return matmul_convolution_gradient(p);
  return fmin(matmul_convolution_window(p, matmul_convolution_packed(p)),
              matmul_convolution_by_images(p));
}

// ---- all ----

double mp_matmul_convolution_seconds(const mp_matmul_tpu_t *p) {
  const double units = matmul_convolution_units(p);
  MP_ASSERT(units > 0 && units < INFINITY);
  const mp_matmul_streams_t *s = &p->streams;
  double all = 0;
  for (int i = 0; i < MP_MATMUL_TPU_ARRAYS; ++i) all += p->bytes[i];
  const double transfer =
      (s->factors[0] + s->factors[1] + s->beside) / p->read + mp_matmul_tpu_store(p);
  const double steps = fmax(1, ceil(fmax(units / MATMUL_CONVOLUTION_STEP, all / (p->window / 2))));
  return p->fetch + steps * p->step + fmax(units + transfer / steps, transfer + units / steps);
}
