#include "topology/processes/pod_bounds.h"

#include <inttypes.h>

enum { MP_GRID_DIMS = MP_POD_BOUNDS_DIMS - 1, MP_CORES = MP_POD_BOUNDS_DIMS - 1 };

bool mp_pod_bounds_are_given(const mp_pod_bounds_t *bounds) {
  return bounds->processes[0] != 0;
}

// ---- As text ----

static void pod_bounds_write_sizes(const int32_t *sizes, int count, mp_strbuf_t *out_text) {
  for (int d = 0; d < count; ++d) {
    mp_strbuf_printf(out_text, "%s%" PRId32, d == 0 ? "" : ",", sizes[d]);
  }
}

void mp_pod_bounds_write(const mp_pod_bounds_t *bounds, mp_strbuf_t *out_text) {
  if (!mp_pod_bounds_are_given(bounds)) return;
  const int count = bounds->has_cores ? MP_POD_BOUNDS_DIMS : MP_GRID_DIMS;
  pod_bounds_write_sizes(bounds->processes, count, out_text);
  mp_strbuf_puts(out_text, " x ");
  pod_bounds_write_sizes(bounds->chips, count, out_text);
}

// The sizes of a text, and how many there are; 0: it is not a list of sizes.
static int pod_bounds_read_sizes(mp_str_t text, int32_t *sizes) {
  int count = 0;
  for (int d = 0; d < MP_POD_BOUNDS_DIMS; ++d) sizes[d] = 1;
  while (text.size != 0) {
    long long size;
    if (count == MP_POD_BOUNDS_DIMS || !mp_str_parse_i64(mp_str_cut(&text, ','), &size)) return 0;
    if (size < 1 || size > MP_POD_MAX_DEVICES) return 0;
    sizes[count++] = (int32_t)size;
  }
  return count;
}

bool mp_pod_bounds_read(mp_str_t text, mp_pod_bounds_t *out_bounds) {
  mp_pod_bounds_t bounds = {.has_cores = false};
  mp_str_t chips = text;
  const mp_str_t processes = mp_str_trim(mp_str_cut(&chips, 'x'));
  const int count = pod_bounds_read_sizes(processes, bounds.processes);
  if (count < MP_GRID_DIMS || pod_bounds_read_sizes(mp_str_trim(chips), bounds.chips) != count) {
    return false;
  }
  bounds.has_cores = count == MP_POD_BOUNDS_DIMS;
  *out_bounds = bounds;
  return true;
}

// ---- On a pod ----

int32_t mp_pod_bounds_devices(const mp_pod_bounds_t *bounds, int32_t cores_per_chip) {
  int64_t devices = bounds->has_cores ? bounds->chips[MP_CORES] : cores_per_chip;
  for (int d = 0; d < MP_GRID_DIMS && devices <= MP_POD_MAX_DEVICES; ++d) {
    devices *= bounds->chips[d];
  }
  return devices > MP_POD_MAX_DEVICES ? MP_POD_MAX_DEVICES : (int32_t)devices;
}

static int32_t pod_bounds_shape(const mp_pod_info_t *info, int d) {
  return d < info->num_dims ? info->shape[d] : 1;
}

static bool pod_bounds_fit(const mp_pod_bounds_t *bounds, const mp_pod_info_t *info,
                           int32_t count) {
  bool fits = info->num_dims <= MP_GRID_DIMS;
  int64_t processes = bounds->processes[MP_CORES];
  for (int d = 0; d < MP_GRID_DIMS && fits; ++d) {
    const int64_t size = (int64_t)bounds->processes[d] * bounds->chips[d];
    fits = size == pod_bounds_shape(info, d);
    processes *= bounds->processes[d];
  }
  const int64_t cores = (int64_t)bounds->processes[MP_CORES] * bounds->chips[MP_CORES];
  return fits && processes == count && cores == (bounds->has_cores ? info->cores_per_chip : 1);
}

// "2x2x1 chips", "2x2x1 chips of 2 cores"
static void pod_bounds_write_grid(const mp_pod_bounds_t *bounds, mp_strbuf_t *out_text) {
  for (int d = 0; d < MP_GRID_DIMS; ++d) {
    mp_strbuf_printf(out_text, "%s%" PRId64, d == 0 ? "" : "x",
                     (int64_t)bounds->processes[d] * bounds->chips[d]);
  }
  mp_strbuf_puts(out_text, " chips");
  if (!bounds->has_cores) return;
  mp_strbuf_printf(out_text, " of %" PRId64 " cores",
                   (int64_t)bounds->processes[MP_CORES] * bounds->chips[MP_CORES]);
}

static void pod_bounds_write_pod(const mp_pod_bounds_t *bounds, const mp_pod_info_t *info,
                                 mp_strbuf_t *out_text) {
  for (int32_t d = 0; d < info->num_dims || d < MP_GRID_DIMS; ++d) {
    mp_strbuf_printf(out_text, "%s%" PRId32, d == 0 ? "" : "x", pod_bounds_shape(info, d));
  }
  mp_strbuf_puts(out_text, " chips");
  if (bounds->has_cores) mp_strbuf_printf(out_text, " of %" PRId32 " cores", info->cores_per_chip);
}

mp_status_t mp_pod_bounds_check(const mp_pod_bounds_t *bounds, const mp_pod_info_t *info,
                                int32_t count) {
  if (pod_bounds_fit(bounds, info, count)) return NULL;
  mp_strbuf_t given, grid, pod;
  mp_strbuf_init(&given);
  mp_strbuf_init(&grid);
  mp_strbuf_init(&pod);
  mp_pod_bounds_write(bounds, &given);
  pod_bounds_write_grid(bounds, &grid);
  pod_bounds_write_pod(bounds, info, &pod);
  mp_status_t status = mp_status_make(
      MP_INVALID_ARGUMENT,
      "TPU_PROCESS_BOUNDS x TPU_CHIPS_PER_PROCESS_BOUNDS is %s, a grid of %s for %" PRId32
      " processes, but topology \"%s\" has %s: make them agree",
      mp_strbuf_text(&given), mp_strbuf_text(&grid), count, info->name, mp_strbuf_text(&pod));
  mp_strbuf_deinit(&pod);
  mp_strbuf_deinit(&grid);
  mp_strbuf_deinit(&given);
  return status;
}

// Whether each host consists of whole boxes, and how many these are.
static bool pod_bounds_divide_hosts(const mp_pod_bounds_t *bounds, const mp_pod_info_t *info,
                                    int32_t *out_per_host) {
  int32_t per_host = bounds->processes[MP_CORES];
  for (int d = 0; d < MP_GRID_DIMS; ++d) {
    const int32_t host = d < info->num_dims ? info->host_shape[d] : 1;
    if (host == 0 || host % bounds->chips[d] != 0) return false;
    if (pod_bounds_shape(info, d) % host != 0) return false;
    per_host *= host / bounds->chips[d];
  }
  *out_per_host = per_host;
  return true;
}

int32_t mp_pod_bounds_process_of(const mp_pod_bounds_t *bounds, const mp_pod_info_t *info,
                                 const mp_pod_device_t *device) {
  int32_t per_host = 0;
  const bool is_by_host = pod_bounds_divide_hosts(bounds, info, &per_host);
  int32_t process = 0;
  for (int d = MP_GRID_DIMS - 1; d >= 0; --d) {
    const int32_t coord = d < info->num_dims ? device->coords[d] : 0;
    const int32_t host = d < info->num_dims && is_by_host ? info->host_shape[d] : 1;
    const int32_t boxes = is_by_host ? host / bounds->chips[d] : bounds->processes[d];
    process = process * boxes + (is_by_host ? coord % host : coord) / bounds->chips[d];
  }
  const int32_t core = bounds->has_cores ? device->core_on_chip / bounds->chips[MP_CORES] : 0;
  process = process * bounds->processes[MP_CORES] + core;
  return is_by_host ? device->host_index * per_host + process : process;
}
