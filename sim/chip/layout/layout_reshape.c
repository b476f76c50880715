// Reshapes that move nothing: XLA's bitcasts.
#include "sim/chip/layout/tile_layout.h"

enum { RESHAPE_RANK = MP_MAX_RANK };

// Dimensions [first_from, end_from) of one type and [first_to, end_to) of the other one that have
// the same elements; those of one element are among them and do not count.
typedef struct {
  uint32_t first_from, end_from, first_to, end_to;
} layout_reshape_group_t;

static uint32_t layout_reshape_groups(const mp_type_t *from, const mp_type_t *to,
                                      layout_reshape_group_t *groups) {
  uint32_t count = 0, i = 0, j = 0;
  while (i < from->rank || j < to->rank) {
    layout_reshape_group_t group = {i, i, j, j};
    int64_t left = 1, right = 1;
    do {
      if (i < from->rank && (left <= right || j == to->rank)) {
        left *= from->dims[i++];
      } else if (j < to->rank) {
        right *= to->dims[j++];
      }
    } while (left != right && (i < from->rank || j < to->rank));
    group.end_from = i;
    group.end_to = j;
    groups[count++] = group;
  }
  return count;
}

// The last of some dimensions that has more than one element, and how many there are; -1: none.
static int32_t layout_reshape_last(const mp_type_t *type, uint32_t first, uint32_t end,
                                   uint32_t *out_count) {
  int32_t last = -1;
  *out_count = 0;
  for (uint32_t d = first; d < end; ++d) {
    if (type->dims[d] == 1) continue;
    last = (int32_t)d;
    ++*out_count;
  }
  return last;
}

// Where the dimension `dim`, which fills tiles of `tile` elements, is afterwards; -1: other
// elements are in its tiles then.
static int32_t layout_reshape_dim(const mp_type_t *from, const mp_type_t *to,
                                  const layout_reshape_group_t *group, int32_t dim, int64_t tile) {
  uint32_t num_from, num_to;
  const int32_t last_from =
      layout_reshape_last(from, group->first_from, group->end_from, &num_from);
  const int32_t last_to = layout_reshape_last(to, group->first_to, group->end_to, &num_to);
  if (num_from == 1 && num_to == 1) return last_to;
  const bool is_whole = dim == last_from && last_to >= 0 && from->dims[last_from] % tile == 0 &&
                        to->dims[last_to] % tile == 0;
  return is_whole ? last_to : -1;
}

static int32_t layout_reshape_find(const mp_type_t *from, const mp_type_t *to,
                                   const layout_reshape_group_t *groups, uint32_t count,
                                   int32_t dim, int64_t tile) {
  for (uint32_t g = 0; g < count; ++g) {
    if ((uint32_t)dim < groups[g].first_from || (uint32_t)dim >= groups[g].end_from) continue;
    return layout_reshape_dim(from, to, &groups[g], dim, tile);
  }
  return -1;
}

// The lanes: a dimension that becomes two, or two that become one again, may stay where it is.
static void layout_reshape_lanes(const mp_type_t *from, const mp_type_t *to,
                                 const layout_reshape_group_t *groups, uint32_t count,
                                 mp_tile_layout_t layout, mp_tile_layout_t *out) {
  if (!layout.is_split) {
    out->lane = layout_reshape_find(from, to, groups, count, layout.lane, MP_TILE_LANES);
    if (out->lane >= 0) return;
  }
  for (uint32_t g = 0; g < count; ++g) {
    const layout_reshape_group_t *group = &groups[g];
    if ((uint32_t)layout.lane < group->first_from || (uint32_t)layout.lane >= group->end_from) {
      continue;
    }
    const uint32_t num_from = group->end_from - group->first_from;
    const uint32_t num_to = group->end_to - group->first_to;
    const uint32_t split = layout.is_split ? 2 : 1;
    if (num_from != split || num_to == 0 || num_to > 2) return;
    out->lane = (int32_t)group->end_to - 1;
    out->is_split = num_to == 2;
  }
}

bool mp_tile_layout_reshape(const mp_type_t *from, const mp_type_t *to, mp_tile_layout_t layout,
                            mp_tile_layout_t *out) {
  layout_reshape_group_t groups[2 * RESHAPE_RANK];
  int64_t elements;
  if (!mp_type_num_elements(from, &elements) || elements == 0) return false;
  const uint32_t count = layout_reshape_groups(from, to, groups);
  *out = (mp_tile_layout_t){-1, -1, false};
  if (layout.lane >= 0) {
    layout_reshape_lanes(from, to, groups, count, layout, out);
    if (out->lane < 0) return false;
  }
  if (layout.sublane >= 0) {
    out->sublane = layout_reshape_find(from, to, groups, count, layout.sublane, MP_TILE_SUBLANES);
    return out->sublane >= 0 && out->sublane != out->lane;
  }
  // Lanes alone: what is outside of them comes into the sublanes.
  for (uint32_t d = to->rank; d-- > 0;) {
    if (to->dims[d] == 1 || (int32_t)d == out->lane) continue;
    return false;
  }
  return true;
}
