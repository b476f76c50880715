#include <math.h>

#include "sim/base/assert.h"
#include "sim/chip/layout/tile_layout.h"

static double layout_tiles_growth(int64_t size, double tile) {
  return ceil((double)size / tile) * tile / (double)size;
}

double mp_tile_padding(const mp_type_t *type, mp_tile_layout_t layout) {
  double factor = 1;
  if (layout.lane >= 0 && type->dims[layout.lane] > 0) {
    const int64_t outer = layout.is_split ? type->dims[layout.lane - 1] : 1;
    factor *= layout_tiles_growth(type->dims[layout.lane] * outer, MP_TILE_LANES);
  }
  if (layout.sublane >= 0 && type->dims[layout.sublane] > 0) {
    const int64_t rows = type->dims[layout.sublane];
    const double tile = rows > 4 ? MP_TILE_SUBLANES : rows > 2 ? 4 : (double)rows;
    factor *= layout_tiles_growth(rows, tile);
  }
  MP_ASSERT(factor >= 1);
  return factor;
}

double mp_tile_padding_by_lane(const mp_type_t *type, int32_t lane) {
  double least =
      type->rank == 1 ? mp_tile_padding(type, (mp_tile_layout_t){lane, -1, false}) : INFINITY;
  for (int32_t row = 0; row < (int32_t)type->rank; ++row) {
    if (row == lane) continue;
    least = fmin(least, mp_tile_padding(type, (mp_tile_layout_t){lane, row, false}));
  }
  return least;
}

mp_tile_layout_t mp_tile_layout_compact(const mp_type_t *type) {
  mp_tile_layout_t best = {-1, -1, false};
  double least = INFINITY;
  if (!mp_type_is_tensor(type)) return best;
  for (int32_t lane = (int32_t)type->rank; lane-- > 0;) {
    if (type->dims[lane] == 1) continue;
    bool has_other = false;
    for (int32_t row = (int32_t)type->rank; row-- > 0;) {
      if (row == lane || type->dims[row] == 1) continue;
      has_other = true;
      const mp_tile_layout_t layout = {lane, row, false};
      const double padding = mp_tile_padding(type, layout);
      if (padding < least) best = layout;
      least = fmin(least, padding);
    }
    if (!has_other) return (mp_tile_layout_t){lane, -1, false};
  }
  return best;
}

int32_t mp_tile_layout_other(const mp_type_t *type, int32_t dim) {
  for (int32_t d = (int32_t)type->rank; d-- > 0;) {
    if (d != dim && type->dims[d] != 1) return d;
  }
  return -1;
}

mp_tile_layout_t mp_tile_layout_of(const mp_type_t *type, int32_t sublane, int32_t lane) {
  const mp_tile_layout_t as_is = {lane, sublane, false}, crossed = {sublane, lane, false};
  if (sublane < 0 || lane < 0) return lane < 0 ? crossed : as_is;
  return mp_tile_padding(type, crossed) < mp_tile_padding(type, as_is) ? crossed : as_is;
}

bool mp_tile_has_last_in_lanes(const mp_type_t *type) {
  int64_t count = 0;
  if (type->rank == 0 || !mp_type_num_elements(type, &count) || count == 0) return false;
  const double last = mp_tile_padding_by_lane(type, (int32_t)type->rank - 1);
  return last <= mp_tile_padding(type, mp_tile_layout_compact(type));
}

bool mp_tile_has_last_in_tiles(const mp_type_t *type) {
  if (mp_tile_has_last_in_lanes(type)) return true;
  const int32_t last = (int32_t)type->rank - 1;
  const double least = mp_tile_padding(type, mp_tile_layout_compact(type));
  for (int32_t lane = 0; lane < last; ++lane) {
    if (mp_tile_padding(type, (mp_tile_layout_t){lane, last, false}) <= least) return true;
  }
  return false;
}
