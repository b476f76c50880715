#include "sim/readers/hlo/hlo_window.h"

typedef struct {
  mp_hlo_texts_t dims;
} window_t;

MP_HLO_MESSAGE(g_window, "Window", MP_HLO_FIELD(1, TEXTS, window_t, dims));

typedef struct {
  int64_t size, stride, low, high, window_dilation, base_dilation;
  bool reversal;
} window_dim_t;

MP_HLO_MESSAGE(g_window_dim, "WindowDimension", MP_HLO_FIELD(1, INT, window_dim_t, size),
               MP_HLO_FIELD(2, INT, window_dim_t, stride), MP_HLO_FIELD(3, INT, window_dim_t, low),
               MP_HLO_FIELD(4, INT, window_dim_t, high),
               MP_HLO_FIELD(5, INT, window_dim_t, window_dilation),
               MP_HLO_FIELD(6, INT, window_dim_t, base_dilation),
               MP_HLO_FIELD(7, FLAG, window_dim_t, reversal));

static int64_t hlo_window_or_one(int64_t value) {
  return value == 0 ? 1 : value;
}

static mp_status_t hlo_window_add(mp_arena_t *arena, const window_dim_t *dim,
                                  mp_hlo_window_t *window) {
  const int64_t window_dilation = hlo_window_or_one(dim->window_dilation);
  const int64_t base_dilation = hlo_window_or_one(dim->base_dilation);
  window->is_dilated |= window_dilation != 1 || base_dilation != 1;
  window->is_reversed |= dim->reversal;
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(arena, &window->sizes, dim->size));
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(arena, &window->strides, hlo_window_or_one(dim->stride)));
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(arena, &window->padding, dim->low));
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(arena, &window->padding, dim->high));
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(arena, &window->window_dilations, window_dilation));
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(arena, &window->base_dilations, base_dilation));
  return MP_ARRAY_PUSH(arena, &window->reversal, dim->reversal);
}

mp_status_t mp_hlo_read_window(mp_hlo_t *h, const mp_hlo_inst_t *inst,
                               mp_hlo_window_t *out_window) {
  window_t proto = {0};
  mp_hlo_window_t window = {0};
  MP_RETURN_IF_ERROR(mp_hlo_error_at(
      inst, mp_status_annotate(mp_hlo_decode(&h->source, &g_window, inst->window_bytes, &proto),
                               "window")));
  window.rank = proto.dims.count;
  for (uint32_t i = 0; i < window.rank; ++i) {
    window_dim_t dim = {0};
    MP_RETURN_IF_ERROR(mp_hlo_error_at(
        inst,
        mp_status_annotate(mp_hlo_decode(&h->source, &g_window_dim, proto.dims.items[i], &dim),
                           "window.dimensions[%u]", i)));
    MP_RETURN_IF_ERROR(hlo_window_add(h->source.arena, &dim, &window));
  }
  *out_window = window;
  return NULL;
}
