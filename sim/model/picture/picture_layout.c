#include "sim/model/picture/picture_layout.h"

enum {
  PICTURE_GAP = 56,  // between neighbours in the first two dimensions
  PICTURE_DEPTH_X =
      30,  // from a chip to the next in the third dimension, seen from above and aside
  PICTURE_DEPTH_Y = 22,
  PICTURE_MARGIN = 48,  // around the chips of a slice: room for what goes around them
  PICTURE_TITLE = 28,   // above a slice, and above the picture
  PICTURE_HOST = 56,    // from host to host
  PICTURE_DROP = 15,    // from a slice down to its hosts
  PICTURE_HEAD = 520,   // as wide as the lines above the picture
  PICTURE_PAGE = 1200,  // what is to fit on a page
  PICTURE_FABRIC = 56,  // from hosts to leaves and from leaves to the core
};

// How far it is from a chip to its neighbour in each dimension, and how much room a slice takes.
typedef struct {
  mp_point_t step[MP_POD_MAX_DIMS];
  int width, height;  // from the first chip to the last
  int rise;           // how far chips are above the first one
} grid_t;

static int32_t picture_layout_size(const mp_pod_info_t *info, int32_t dim) {
  return dim < info->num_dims ? info->shape[dim] : 1;
}

// The first two dimensions go to the right and down, the third into the picture; the others repeat
// the whole side by side and below, in turn.
static grid_t picture_layout_grid(const mp_pod_info_t *info) {
  const int depth = picture_layout_size(info, 2);
  const int x = PICTURE_GAP + PICTURE_DEPTH_X * (depth - 1);
  const int y = PICTURE_GAP + PICTURE_DEPTH_Y * (depth - 1);
  grid_t grid = {.step = {{x, 0}, {0, y}, {PICTURE_DEPTH_X, -PICTURE_DEPTH_Y}}};
  grid.rise = PICTURE_DEPTH_Y * (depth - 1);
  grid.width = x * (picture_layout_size(info, 0) - 1) + PICTURE_DEPTH_X * (depth - 1);
  grid.height = y * (picture_layout_size(info, 1) - 1) + grid.rise;
  for (int32_t dim = 3; dim < info->num_dims; ++dim) {
    if (dim % 2 == 1) {
      grid.step[dim].x = grid.width + 2 * PICTURE_GAP;
      grid.width += grid.step[dim].x * (info->shape[dim] - 1);
    } else {
      grid.step[dim].y = grid.height + 2 * PICTURE_GAP;
      grid.height += grid.step[dim].y * (info->shape[dim] - 1);
    }
  }
  return grid;
}

static void picture_layout_place_slices(const mp_pod_info_t *info, const grid_t *grid,
                                        mp_picture_layout_t *layout) {
  int columns = 1;
  while (columns * columns < info->num_slices) ++columns;
  const int32_t hosts = info->num_hosts / info->num_slices;
  int width = grid->width + 2 * PICTURE_MARGIN;
  if (layout->has_hosts && width < hosts * PICTURE_HOST) width = hosts * PICTURE_HOST;
  // Few stand side by side, where there is room.
  const bool has_room = info->num_slices * (width + PICTURE_TITLE) + PICTURE_TITLE <= PICTURE_PAGE;
  if (info->num_slices <= 4 && has_room) columns = info->num_slices;
  const int height = grid->height + 2 * PICTURE_MARGIN;
  const int row = height + PICTURE_TITLE + (layout->has_hosts ? PICTURE_FABRIC : 0);
  for (int32_t s = 0; s < info->num_slices; ++s) {
    layout->slices[s] = (mp_area_t){PICTURE_TITLE + s % columns * (width + PICTURE_TITLE),
                                    2 * PICTURE_TITLE + s / columns * row, width, height};
  }
  const int rows = (info->num_slices + columns - 1) / columns;
  layout->width = PICTURE_TITLE + columns * (width + PICTURE_TITLE);
  if (layout->width < PICTURE_HEAD) layout->width = PICTURE_HEAD;
  layout->height = 2 * PICTURE_TITLE + rows * row;
}

static void picture_layout_place_chips(const mp_pod_info_t *info, const grid_t *grid,
                                       mp_picture_layout_t *layout) {
  for (uint32_t chip = 0; chip < layout->num_chips; ++chip) {
    const mp_area_t *slice = &layout->slices[chip / (uint32_t)info->chips_per_slice];
    mp_point_t at = {slice->x + (slice->width - grid->width) / 2,
                     slice->y + PICTURE_MARGIN + grid->rise};
    int32_t rest = (int32_t)(chip % (uint32_t)info->chips_per_slice);
    for (int32_t dim = 0; dim < info->num_dims; ++dim) {
      at.x += grid->step[dim].x * (rest % info->shape[dim]);
      at.y += grid->step[dim].y * (rest % info->shape[dim]);
      rest /= info->shape[dim];
    }
    layout->vertices[chip] = at;
  }
}

static void picture_layout_extend(mp_area_t *area, mp_point_t point) {
  enum { BORDER = MP_PICTURE_CHIP + 5 };
  const int right = area->width == 0 || point.x + BORDER > area->x + area->width
                        ? point.x + BORDER
                        : area->x + area->width;
  const int bottom = area->width == 0 || point.y + BORDER > area->y + area->height
                         ? point.y + BORDER
                         : area->y + area->height;
  if (area->width == 0 || point.x - BORDER < area->x) area->x = point.x - BORDER;
  if (area->width == 0 || point.y - BORDER < area->y) area->y = point.y - BORDER;
  area->width = right - area->x;
  area->height = bottom - area->y;
}

// Areas of hosts, where those are rectangles that do not overlap.
static mp_status_t picture_layout_surround_hosts(const mp_network_t *network, mp_arena_t *arena,
                                                 mp_picture_layout_t *layout) {
  const mp_pod_t *pod = mp_network_pod(network);
  const mp_pod_info_t *info = mp_pod_info(pod);
  bool is_flat_box = info->host_shape[0] != 0;
  for (int32_t dim = 2; dim < info->num_dims; ++dim) is_flat_box &= info->host_shape[dim] == 1;
  if (!layout->has_hosts || (!is_flat_box && info->num_hosts != info->num_slices)) return NULL;
  layout->hosts = MP_ARENA_ARRAY(arena, mp_area_t, (size_t)info->num_hosts);
  MP_RETURN_IF_NULL(layout->hosts);
  for (int32_t id = 0; id < info->num_devices; ++id) {
    const mp_pod_device_t *device = mp_pod_device(pod, id);
    const int32_t chip = device->slice_index * info->chips_per_slice + device->chip_index;
    picture_layout_extend(&layout->hosts[device->host_index], layout->vertices[chip]);
  }
  return NULL;
}

// Hosts in a row below their slice, and what joins them below all slices.
static void picture_layout_place_hosts(const mp_pod_info_t *info, mp_picture_layout_t *layout) {
  const int32_t per_slice = info->num_hosts / info->num_slices;
  for (int32_t host = 0; host < info->num_hosts; ++host) {
    const mp_area_t *slice = &layout->slices[host / per_slice];
    layout->vertices[layout->first_host + (uint32_t)host] =
        (mp_point_t){slice->x + slice->width * (2 * (host % per_slice) + 1) / (2 * per_slice),
                     slice->y + slice->height + PICTURE_DROP};
  }
}

// Other switches are near the middle of what is at them: those of chips beside, leaves below.
static mp_status_t picture_layout_place_switches(const mp_network_t *network, mp_arena_t *scratch,
                                                 mp_picture_layout_t *layout) {
  typedef struct {
    int64_t x, y;
    int32_t count;
    int32_t top;
    bool has_hosts;
  } middle_t;
  const uint32_t num_vertices = mp_network_num_vertices(network);
  middle_t *middles = MP_ARENA_ARRAY(scratch, middle_t, num_vertices);
  MP_RETURN_IF_NULL(middles);
  for (uint32_t i = 0; i < mp_network_num_links(network); ++i) {
    const mp_network_link_t *link = mp_network_link(network, i);
    if (link->to <= layout->core || link->from >= layout->core) continue;
    middle_t *middle = &middles[link->to];
    const mp_point_t at = layout->vertices[link->from];
    if (middle->count == 0 || at.y < middle->top) middle->top = at.y;
    middle->x += at.x;
    middle->y += at.y;
    ++middle->count;
    middle->has_hosts = link->from >= layout->first_host;
  }
  bool has_leaves = false;
  const bool is_flat = mp_pod_info(mp_network_pod(network))->wiring == MP_WIRING_SWITCH;
  for (uint32_t v = layout->core + 1; v < num_vertices; ++v) {
    const middle_t *middle = &middles[v];
    if (middle->count == 0) continue;
    mp_point_t at = {(int)(middle->x / middle->count), (int)(middle->y / middle->count)};
    if (middle->has_hosts) {
      at.y = layout->height - PICTURE_TITLE + PICTURE_FABRIC / 2;
      has_leaves = true;
    } else if (is_flat) {
      at.y = middle->top - PICTURE_MARGIN * 3 / 5;
    } else {
      at.x += PICTURE_GAP / 3;
      at.y += PICTURE_GAP / 3;
    }
    layout->vertices[v] = at;
  }
  if (has_leaves) layout->height += PICTURE_FABRIC;
  return NULL;
}

mp_status_t mp_picture_layout_make(const mp_network_t *network, bool with_hosts, mp_arena_t *arena,
                                   mp_picture_layout_t *out_layout) {
  const mp_pod_info_t *info = mp_pod_info(mp_network_pod(network));
  mp_picture_layout_t layout = {
      .num_chips = (uint32_t)(info->num_slices * info->chips_per_slice),
      .has_hosts = with_hosts || info->num_hosts > 1,
      .vertices = MP_ARENA_ARRAY(arena, mp_point_t, mp_network_num_vertices(network)),
      .slices = MP_ARENA_ARRAY(arena, mp_area_t, (size_t)info->num_slices),
  };
  MP_RETURN_IF_NULL(layout.vertices);
  MP_RETURN_IF_NULL(layout.slices);
  layout.first_host = layout.num_chips;
  layout.core = layout.first_host + (uint32_t)info->num_hosts;
  const grid_t grid = picture_layout_grid(info);
  picture_layout_place_slices(info, &grid, &layout);
  picture_layout_place_chips(info, &grid, &layout);
  MP_RETURN_IF_ERROR(picture_layout_surround_hosts(network, arena, &layout));
  picture_layout_place_hosts(info, &layout);
  MP_RETURN_IF_ERROR(picture_layout_place_switches(network, arena, &layout));
  if (layout.has_hosts) layout.height += PICTURE_FABRIC;
  layout.vertices[layout.core] = (mp_point_t){layout.width / 2, layout.height - PICTURE_FABRIC / 2};
  *out_layout = layout;
  return NULL;
}
