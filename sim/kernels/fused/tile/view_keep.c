// Keeps views, and prepares faster reads.
#include <string.h>

#include "sim/base/assert.h"
#include "sim/base/vector.h"
#include "sim/kernels/fused/tile/view_shuffle.h"
#include "sim/kernels/shape.h"

enum {
  MAX_ROW = 64,       // elements; longer rows are copied or filled
  MIN_PERIOD = 256,   // lanes, about
  MAX_WHOLE = 1024,   // lanes of a view that is one period
  MAX_PERIOD = 8192,  // lanes
};

static bool view_keep_has_vectors(void) {
#ifdef __x86_64__
  return mp_has_avx512();
#else
  return false;
#endif
}

typedef struct {
  const mp_view_t *view;
  int64_t lanes_per_element;
  int64_t lanes;    // of a period
  int64_t highest;  // place so far
  int64_t last;     // place of the period, once it is known; before that 0
} making_t;

// The places in the base of the n lanes from `begin` on.
static void view_keep_places(making_t *m, int64_t begin, int64_t n, int64_t *out_places) {
  int64_t places[MP_SHUFFLE_LANES + 1];
  const int64_t per = m->lanes_per_element, first = begin / per;
  mp_view_count(m->view, MP_DTYPE_S64, first, (begin + n - 1) / per - first + 1, places);
  for (int64_t i = 0; i < n; ++i) {
    out_places[i] = places[(begin + i) / per - first] * per + (begin + i) % per;
    m->highest = mp_max_i64(m->highest, out_places[i]);
  }
}

// Finds the windows of the block that begins with lane `begin`, and the picks from them; returns
// the number of windows. They begin at whole vectors of the base if `is_aligned`.
static uint32_t view_keep_block(making_t *m, int64_t begin, bool is_aligned,
                                mp_view_window_t *windows, uint8_t *picks) {
  int64_t places[MP_SHUFFLE_LANES];
  const int64_t n = mp_min_i64(MP_SHUFFLE_LANES, m->lanes - begin);
  uint32_t left = (1u << n) - 1, count = 0;
  view_keep_places(m, begin, n, places);
  while (left != 0) {
    int64_t low = INT64_MAX;
    for (int64_t i = 0; i < n; ++i) {
      if ((left >> i & 1) != 0) low = mp_min_i64(low, places[i]);
    }
    if (is_aligned) low -= low % MP_SHUFFLE_LANES;
    if (m->last >= MP_SHUFFLE_LANES) low = mp_min_i64(low, m->last - (MP_SHUFFLE_LANES - 1));
    mp_view_window_t *window = &windows[count++];
    *window = (mp_view_window_t){.place = (int32_t)low};
    for (int64_t i = 0; i < n; ++i) {
      if ((left >> i & 1) == 0 || places[i] - low >= MP_SHUFFLE_LANES) continue;
      picks[i] = (uint8_t)(places[i] - low);
      window->from |= (uint16_t)(1u << picks[i]);
      window->to |= (uint16_t)(1u << i);
    }
    left &= ~(uint32_t)window->to;
  }
  return count;
}

// The most windows of a block.
static uint32_t view_keep_most_windows(making_t *m) {
  uint32_t most = 0;
  for (int64_t begin = 0; begin < m->lanes && most <= MP_SHUFFLE_MAX_WINDOWS;
       begin += MP_SHUFFLE_LANES) {
    mp_view_window_t windows[MP_SHUFFLE_LANES];
    uint8_t picks[MP_SHUFFLE_LANES];
    const uint32_t count = view_keep_block(m, begin, false, windows, picks);
    if (count > most) most = count;
  }
  return most;
}

// How many indices of the outermost dimension make a period: whole blocks, and not too few of them.
static int64_t view_keep_rows(const mp_view_t *view, int64_t lanes_of_row) {
  int64_t rows = MP_SHUFFLE_LANES;
  while (rows > 1 && lanes_of_row * (rows / 2) % MP_SHUFFLE_LANES == 0) rows /= 2;
  rows *= 1 + MIN_PERIOD / (rows * lanes_of_row);
  const int64_t all = view->dims[0].extent;
  return rows > all || all * lanes_of_row <= MAX_WHOLE ? all : rows;
}

static bool view_keep_suits(const mp_view_t *view, size_t size) {
  if (!view_keep_has_vectors() || size % MP_SHUFFLE_LANE != 0) return false;
  if (view->rank == 0 || mp_view_is_one(view)) return false;
  return view->dims[view->rank - 1].extent < MAX_ROW || view->dims[view->rank - 1].stride > 1;
}

// Whether all whole blocks are alike, because elements are at equal distances. The shuffle of one
// block is then enough.
static bool view_keep_is_alike(const mp_view_t *view, size_t size) {
  return view->rank == 1 && view->dims[0].stride > 0 &&
         view->dims[0].extent * (int64_t)size >= 2 * MP_SHUFFLE_LANES * MP_SHUFFLE_LANE;
}

static mp_status_t view_keep_make(mp_arena_t *arena, making_t *m, uint32_t num_windows,
                                  mp_view_shuffle_t *shuffle) {
  const int64_t count = (m->lanes + MP_SHUFFLE_LANES - 1) / MP_SHUFFLE_LANES;
  mp_view_window_t *windows = MP_ARENA_ARRAY(arena, mp_view_window_t, (size_t)count * num_windows);
  uint8_t(*picks)[MP_SHUFFLE_LANES] = mp_arena_alloc(arena, (size_t)count * sizeof(*picks));
  if (windows == NULL || picks == NULL) return mp_status_out_of_memory();
  for (int64_t b = 0; b < count; ++b) {
    mp_view_window_t found[MP_SHUFFLE_LANES];
    memset(picks[b], 0, sizeof(picks[b]));
    // Aligned windows are read in the same pieces as they were just written, so reads need not
    // wait.
    uint32_t n = view_keep_block(m, b * MP_SHUFFLE_LANES, true, found, picks[b]);
    if (n > num_windows) n = view_keep_block(m, b * MP_SHUFFLE_LANES, false, found, picks[b]);
    MP_ASSERT(n <= num_windows);
    for (uint32_t w = 0; w < num_windows; ++w) {
      windows[b * num_windows + w] = w < n ? found[w] : (mp_view_window_t){0};
    }
  }
  shuffle->num_windows = num_windows;
  shuffle->windows = windows;
  shuffle->picks = (const uint8_t(*)[MP_SHUFFLE_LANES])picks;
  return NULL;
}

// Makes the shuffle that reads the elements of a view; NULL if there is none, or other ways to read
// the view are faster.
static mp_status_t view_keep_shuffle(mp_arena_t *arena, const mp_view_t *view, size_t size,
                                     const mp_view_shuffle_t **out_shuffle) {
  *out_shuffle = NULL;
  if (!view_keep_suits(view, size)) return NULL;
  making_t m = {.view = view, .lanes_per_element = (int64_t)(size / MP_SHUFFLE_LANE)};
  int64_t row = m.lanes_per_element;
  for (uint32_t d = 1; d < view->rank && row <= MAX_PERIOD; ++d) row *= view->dims[d].extent;
  if (row > MAX_PERIOD) return NULL;
  const bool is_alike = view_keep_is_alike(view, size);
  const int64_t rows = is_alike ? MP_SHUFFLE_LANES / row : view_keep_rows(view, row);
  m.lanes = rows * row;
  if (m.lanes > MAX_PERIOD) return NULL;
  const uint32_t num_windows = view_keep_most_windows(&m);
  if (num_windows > MP_SHUFFLE_MAX_WINDOWS || m.highest > INT32_MAX - MP_SHUFFLE_LANES) return NULL;
  const int64_t extent = view->dims[0].extent, stride = view->dims[0].stride;
  m.last = is_alike ? 0 : m.highest;
  mp_view_shuffle_t *shuffle = MP_ARENA_NEW(arena, mp_view_shuffle_t);
  MP_RETURN_IF_NULL(shuffle);
  // Memory from the lowest place of a view to the highest one of a period may be read.
  *shuffle =
      (mp_view_shuffle_t){.period = (m.lanes + MP_SHUFFLE_LANES - 1) / MP_SHUFFLE_LANES,
                          .step = rows * stride * m.lanes_per_element,
                          .is_alike = is_alike,
                          .is_cut = extent % rows != 0,
                          .has_whole = m.last >= MP_SHUFFLE_LANES &&
                                       (extent == rows || (stride >= 0 && extent % rows == 0))};
  MP_RETURN_IF_ERROR(view_keep_make(arena, &m, num_windows, shuffle));
  *out_shuffle = shuffle;
  return NULL;
}

mp_status_t mp_view_keep(mp_arena_t *arena, const mp_view_t *view, size_t size,
                         const mp_view_t **out_view) {
  mp_view_t *kept =
      mp_arena_copy(arena, view, offsetof(mp_view_t, dims) + view->rank * sizeof(view->dims[0]));
  MP_RETURN_IF_NULL(kept);
  kept->shuffle = NULL;
  if (size != 0) MP_RETURN_IF_ERROR(view_keep_shuffle(arena, view, size, &kept->shuffle));
  *out_view = kept;
  return NULL;
}
