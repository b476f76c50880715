#include "pjrt/extensions/tpu_places.h"

static const mp_pod_info_t *tpu_places_info(const PJRT_TopologyDescription *topology) {
  return mp_pod_info(topology->pod);
}

mp_status_t mp_tpu_check(const PJRT_TopologyDescription *topology) {
  if (topology == NULL) return mp_status_make(MP_INVALID_ARGUMENT, "topology is NULL");
  const mp_pod_info_t *info = tpu_places_info(topology);
  if (mp_pod_is_tpu(topology->pod) && info->num_dims <= MP_TPU_DIMS) return NULL;
  return mp_status_make(MP_FAILED_PRECONDITION,
                        "the pod '%s' has devices of the kind '%s', which are not TPUs", info->name,
                        info->kind);
}

int32_t mp_tpu_num_chips(const PJRT_TopologyDescription *topology) {
  const mp_pod_info_t *info = tpu_places_info(topology);
  return info->num_slices * info->chips_per_slice;
}

int32_t mp_tpu_process_of_device(const PJRT_TopologyDescription *topology, int32_t device) {
  return topology->descriptions[device].process_index;
}

int32_t mp_tpu_num_processes(const PJRT_TopologyDescription *topology) {
  const mp_pod_info_t *info = tpu_places_info(topology);
  return topology->is_detached ? info->num_hosts : info->num_processes;
}

static int32_t tpu_places_size(const mp_pod_info_t *info, int32_t dim) {
  return dim < info->num_dims ? info->shape[dim] : 1;
}

void mp_tpu_chip_coords(const PJRT_TopologyDescription *topology, int32_t chip,
                        int32_t coords[MP_TPU_DIMS]) {
  const mp_pod_info_t *info = tpu_places_info(topology);
  chip %= info->chips_per_slice;
  for (int32_t d = 0; d < MP_TPU_DIMS; ++d) {
    coords[d] = chip % tpu_places_size(info, d);
    chip /= tpu_places_size(info, d);
  }
}

int32_t mp_tpu_chip_at(const PJRT_TopologyDescription *topology, const int32_t *coords) {
  const mp_pod_info_t *info = tpu_places_info(topology);
  int32_t chip = 0;
  for (int32_t d = MP_TPU_DIMS - 1; d >= 0; --d) {
    const int32_t size = tpu_places_size(info, d);
    if (coords[d] < 0 || coords[d] >= size) return -1;
    chip = chip * size + coords[d];
  }
  return chip;
}

int32_t mp_tpu_chip_of_device(const PJRT_TopologyDescription *topology, int32_t device) {
  const mp_pod_device_t *info = topology->descriptions[device].info;
  return info->slice_index * tpu_places_info(topology)->chips_per_slice + info->chip_index;
}

int32_t mp_tpu_device_of_chip(const PJRT_TopologyDescription *topology, int32_t chip,
                              int32_t index) {
  for (int32_t id = 0; id < (int32_t)topology->num_devices; ++id) {
    if (topology->descriptions[id].info->core_on_chip == index &&
        mp_tpu_chip_of_device(topology, id) == chip) {
      return id;
    }
  }
  return -1;
}

// The box around the chips of a process in its slice.
typedef struct {
  int32_t least[MP_TPU_DIMS], most[MP_TPU_DIMS];
  int32_t num_devices;
} extent_t;

static extent_t tpu_places_extent(const PJRT_TopologyDescription *topology, int32_t process) {
  extent_t extent = {{INT32_MAX, INT32_MAX, INT32_MAX}, {-1, -1, -1}, 0};
  for (int32_t id = 0; id < (int32_t)topology->num_devices; ++id) {
    if (mp_tpu_process_of_device(topology, id) != process) continue;
    int32_t coords[MP_TPU_DIMS];
    mp_tpu_chip_coords(topology, mp_tpu_chip_of_device(topology, id), coords);
    ++extent.num_devices;
    for (int32_t d = 0; d < MP_TPU_DIMS; ++d) {
      if (coords[d] < extent.least[d]) extent.least[d] = coords[d];
      if (coords[d] > extent.most[d]) extent.most[d] = coords[d];
    }
  }
  return extent;
}

// Whether the process has all devices of its box, in `slices` slices.
static bool tpu_places_is_full(const mp_pod_info_t *info, const extent_t *extent, int32_t slices) {
  int64_t count = info->cores_per_chip;
  for (int32_t d = 0; d < MP_TPU_DIMS; ++d) {
    if (extent->most[d] < extent->least[d]) return false;
    count *= extent->most[d] - extent->least[d] + 1;
  }
  return count * slices == extent->num_devices;
}

mp_status_t mp_tpu_process_box(const PJRT_TopologyDescription *topology, int32_t box[MP_TPU_DIMS],
                               int32_t grid[MP_TPU_DIMS]) {
  const mp_pod_info_t *info = tpu_places_info(topology);
  const int32_t num_processes = mp_tpu_num_processes(topology);
  const extent_t first = tpu_places_extent(topology, 0);
  // A process that simulates all hosts may have several slices.
  const int32_t slices = num_processes == 1 ? info->num_slices : 1;
  bool is_regular = tpu_places_is_full(info, &first, slices);
  for (int32_t d = 0; d < MP_TPU_DIMS && is_regular; ++d) {
    box[d] = first.most[d] - first.least[d] + 1;
    is_regular = tpu_places_size(info, d) % box[d] == 0;
    grid[d] = is_regular ? tpu_places_size(info, d) / box[d] : 0;
  }
  for (int32_t p = 1; p < num_processes && is_regular; ++p) {
    const extent_t other = tpu_places_extent(topology, p);
    is_regular = tpu_places_is_full(info, &other, 1);
    for (int32_t d = 0; d < MP_TPU_DIMS && is_regular; ++d) {
      is_regular = other.most[d] - other.least[d] + 1 == box[d] && other.least[d] % box[d] == 0;
    }
  }
  if (is_regular) return NULL;
  return mp_status_make(MP_FAILED_PRECONDITION,
                        "the processes of the pod '%s' do not have chips that are boxes of equal "
                        "shape",
                        info->name);
}

bool mp_tpu_has_limited_ici(const PJRT_TopologyDescription *topology) {
  enum { FULL_SIDE = 16 };
  const mp_pod_info_t *info = tpu_places_info(topology);
  bool has_full_side = false;
  for (int32_t d = 0; d < info->num_dims; ++d) has_full_side |= info->shape[d] == FULL_SIDE;
  return has_full_side && strcmp(info->chip, "v5e") == 0;
}
