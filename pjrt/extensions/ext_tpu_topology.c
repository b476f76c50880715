// The TpuTopology extension (type 16): TPUs as libtpu describes them. JAX's tools for ahead-of-time
// compilation and TorchTPU's Pallas ask it.
//
// The answers are libtpu's (tests/fixtures/tpu/topology_slots.json), also about what only a real
// TPU does. A topology of other chips is refused.

#include "pjrt/extensions/extensions.h"
#include "pjrt/extensions/tpu_places.h"
#include "pjrt/extensions/tpu_slices.h"

// A function of the table. `check` comes first, with `args`.
#define CHECKED_FUNCTION(name, check)                                                           \
  static mp_status_t ext_tpu_topology_##name(PJRT_TpuTopology_##name##_Args *args);             \
  static PJRT_Error *ext_tpu_topology_call_##name(PJRT_TpuTopology_##name##_Args *args) {       \
    mp_status_t status =                                                                        \
        args == NULL ? mp_status_make(MP_INVALID_ARGUMENT, "the arguments are NULL") : (check); \
    if (status == NULL) status = ext_tpu_topology_##name(args);                                 \
    return mp_pjrt_error(mp_status_annotate(status, "PJRT_TpuTopology_" #name));                \
  }                                                                                             \
  static mp_status_t ext_tpu_topology_##name(PJRT_TpuTopology_##name##_Args *args)
// One with a topology, and one without.
#define TOPOLOGY_FUNCTION(name) CHECKED_FUNCTION(name, mp_tpu_check(args->topology))
#define PLAIN_FUNCTION(name)    CHECKED_FUNCTION(name, NULL)
// One that returns a property of the topology `it`.
#define TOPOLOGY_GETTER(name, field, value)              \
  TOPOLOGY_FUNCTION(name) {                              \
    const PJRT_TopologyDescription *it = args->topology; \
    args->field = value;                                 \
    return NULL;                                         \
  }

// ---- counts ----

static int32_t ext_tpu_topology_per_process(const PJRT_TopologyDescription *topology,
                                            int32_t count) {
  return count / mp_tpu_num_processes(topology);
}

static int32_t ext_tpu_topology_num_devices(const PJRT_TopologyDescription *topology) {
  return (int32_t)topology->num_devices;
}

// libtpu counts the cores of a chip that work as one device.
static int32_t ext_tpu_topology_num_cores(const PJRT_TopologyDescription *topology) {
  return ext_tpu_topology_num_devices(topology) * mp_pod_info(topology->pod)->cores_per_device;
}

TOPOLOGY_GETTER(IsSubsliceTopology, is_subslice_topology, it->is_subslice)
TOPOLOGY_GETTER(IsEnhancedBarrierEnabled, is_enhanced_barrier_enabled, it != NULL)
TOPOLOGY_GETTER(HasLimitedIciConnectivity, has_limited_ici_connectivity, mp_tpu_has_limited_ici(it))
TOPOLOGY_GETTER(ProcessCount, process_count, mp_tpu_num_processes(it))
TOPOLOGY_GETTER(ChipsPerProcess, chips_per_process,
                ext_tpu_topology_per_process(it, mp_tpu_num_chips(it)))
TOPOLOGY_GETTER(CoreCountPerChip, core_count_of_default_type_per_chip,
                ext_tpu_topology_num_cores(it) / mp_tpu_num_chips(it))
TOPOLOGY_GETTER(ChipCount, chip_count, mp_tpu_num_chips(it))
TOPOLOGY_GETTER(CoreCount, core_count_of_default_type, ext_tpu_topology_num_cores(it))
TOPOLOGY_GETTER(LogiDeviceCount, logical_device_count_of_default_type,
                ext_tpu_topology_num_devices(it))
TOPOLOGY_GETTER(LogiDeviceCountPerProcess, logical_device_count_of_default_type_per_process,
                ext_tpu_topology_per_process(it, ext_tpu_topology_num_devices(it)))
TOPOLOGY_GETTER(LogiDeviceCountPerChip, logical_device_count_of_default_type_per_chip,
                ext_tpu_topology_num_devices(it) / mp_tpu_num_chips(it))
TOPOLOGY_GETTER(CoreCountPerProcess, core_count_of_default_type_per_process,
                ext_tpu_topology_per_process(it, ext_tpu_topology_num_cores(it)))

// ---- checks ----

static mp_status_t ext_tpu_topology_check_id(const char *what, int32_t id, int32_t count) {
  if (id >= 0 && id < count) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT, "Invalid %s id: %d, there are %d", what, id, count);
}

static mp_status_t ext_tpu_topology_check_chip(const PJRT_TopologyDescription *topology,
                                               int32_t chip) {
  return ext_tpu_topology_check_id("chip", chip, mp_tpu_num_chips(topology));
}

static mp_status_t ext_tpu_topology_check_device(const PJRT_TopologyDescription *topology,
                                                 int32_t device) {
  return ext_tpu_topology_check_id("device", device, ext_tpu_topology_num_devices(topology));
}

static mp_status_t ext_tpu_topology_check_process(const PJRT_TopologyDescription *topology,
                                                  int32_t process) {
  return ext_tpu_topology_check_id("process", process, mp_tpu_num_processes(topology));
}

static mp_status_t ext_tpu_topology_check_room(const char *field, int64_t capacity, int64_t needed,
                                               const int32_t *memory) {
  if (capacity >= needed && (memory != NULL || needed == 0)) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT, "`%s` must be >= %lld, got %lld.", field,
                        (long long)needed, memory == NULL ? 0 : (long long)capacity);
}

// Coordinates from a caller. A fourth one, of chips in other directions, must be `last`.
static mp_status_t ext_tpu_topology_read_coords(const int32_t *coords, size_t count, int32_t last,
                                                int32_t out_coords[MP_TPU_DIMS]) {
  if (coords == NULL || (count != MP_TPU_DIMS && count != MP_TPU_DIMS + 1)) {
    return mp_status_make(MP_INVALID_ARGUMENT, "Expected 3 or 4 dimensions, got %zu",
                          coords == NULL ? 0 : count);
  }
  if (count > MP_TPU_DIMS && coords[MP_TPU_DIMS] != last) {
    return mp_status_make(MP_INVALID_ARGUMENT, "the fourth coordinate is %d, expected %d",
                          coords[MP_TPU_DIMS], last);
  }
  for (int32_t d = 0; d < MP_TPU_DIMS; ++d) out_coords[d] = coords[d];
  return NULL;
}

static mp_status_t ext_tpu_topology_find_chip(const PJRT_TopologyDescription *topology,
                                              const int32_t *coords, size_t count,
                                              int32_t *out_chip) {
  int32_t place[MP_TPU_DIMS];
  MP_RETURN_IF_ERROR(ext_tpu_topology_read_coords(coords, count, 0, place));
  *out_chip = mp_tpu_chip_at(topology, place);
  if (*out_chip >= 0) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT, "Invalid chip: %d,%d,%d", place[0], place[1],
                        place[2]);
}

static mp_status_t ext_tpu_topology_put_coords(const char *field, const int32_t coords[MP_TPU_DIMS],
                                               size_t capacity, int32_t *out_coords,
                                               size_t *out_count) {
  MP_RETURN_IF_ERROR(
      ext_tpu_topology_check_room(field, (int64_t)capacity, MP_TPU_DIMS, out_coords));
  memcpy(out_coords, coords, MP_TPU_DIMS * sizeof(coords[0]));
  *out_count = MP_TPU_DIMS;
  return NULL;
}

// ---- processes ----

TOPOLOGY_FUNCTION(ProcessIds) {
  const int32_t count = mp_tpu_num_processes(args->topology);
  MP_RETURN_IF_ERROR(ext_tpu_topology_check_room("max_process_ids", args->max_process_ids, count,
                                                 args->process_ids));
  for (int32_t i = 0; i < count; ++i) args->process_ids[i] = i;
  args->num_process_ids = (size_t)count;
  return NULL;
}

TOPOLOGY_FUNCTION(LogiDeviceIdsOnProcess) {
  MP_RETURN_IF_ERROR(ext_tpu_topology_check_process(args->topology, args->process_id));
  int32_t count = 0;
  for (int32_t id = 0; id < ext_tpu_topology_num_devices(args->topology); ++id) {
    if (mp_tpu_process_of_device(args->topology, id) != args->process_id) continue;
    if (count < args->max_logical_device_ids && args->logical_device_of_default_type_ids != NULL) {
      args->logical_device_of_default_type_ids[count] = id;
    }
    ++count;
  }
  MP_RETURN_IF_ERROR(ext_tpu_topology_check_room("max_logical_device_ids",
                                                 args->max_logical_device_ids, count,
                                                 args->logical_device_of_default_type_ids));
  args->num_logical_device_ids = (size_t)count;
  return NULL;
}

TOPOLOGY_FUNCTION(ProcIdAndIdxOnProcForChip) {
  const PJRT_TopologyDescription *topology = args->topology;
  MP_RETURN_IF_ERROR(ext_tpu_topology_check_chip(topology, args->chip_id));
  const int32_t device = mp_tpu_device_of_chip(topology, args->chip_id, 0);
  args->process_id = mp_tpu_process_of_device(topology, device);
  args->index_on_process = 0;
  for (int32_t id = 0; id < ext_tpu_topology_num_devices(topology); ++id) {
    args->index_on_process += mp_tpu_process_of_device(topology, id) == args->process_id &&
                              topology->descriptions[id].info->core_on_chip == 0 &&
                              mp_tpu_chip_of_device(topology, id) < args->chip_id;
  }
  return NULL;
}

TOPOLOGY_FUNCTION(ProcIdAndIdxOnProcForLogiDevice) {
  const PJRT_TopologyDescription *topology = args->topology;
  MP_RETURN_IF_ERROR(ext_tpu_topology_check_device(topology, args->device_id));
  args->process_id = mp_tpu_process_of_device(topology, args->device_id);
  args->index_on_process = 0;
  for (int32_t id = 0; id < args->device_id; ++id) {
    args->index_on_process += mp_tpu_process_of_device(topology, id) == args->process_id;
  }
  return NULL;
}

TOPOLOGY_FUNCTION(ProcessCoordFromId) {
  const PJRT_TopologyDescription *topology = args->topology;
  int32_t box[MP_TPU_DIMS], grid[MP_TPU_DIMS], coords[MP_TPU_DIMS];
  MP_RETURN_IF_ERROR(ext_tpu_topology_check_process(topology, args->process_id));
  MP_RETURN_IF_ERROR(mp_tpu_process_box(topology, box, grid));
  int32_t device = 0;
  while (mp_tpu_process_of_device(topology, device) != args->process_id) ++device;
  mp_tpu_chip_coords(topology, mp_tpu_chip_of_device(topology, device), coords);
  for (int32_t d = 0; d < MP_TPU_DIMS; ++d) coords[d] /= box[d];
  return ext_tpu_topology_put_coords("coords_max_dims", coords, args->coords_max_dims, args->coords,
                                     &args->coords_num_dims);
}

TOPOLOGY_FUNCTION(ChipsPerProcessBounds) {
  int32_t box[MP_TPU_DIMS], grid[MP_TPU_DIMS];
  MP_RETURN_IF_ERROR(mp_tpu_process_box(args->topology, box, grid));
  return ext_tpu_topology_put_coords(
      "chip_per_process_bounds_max_dims", box, args->chip_per_process_bounds_max_dims,
      args->chip_per_process_bounds, &args->chip_per_process_bounds_num_dims);
}

TOPOLOGY_FUNCTION(ProcessBounds) {
  int32_t box[MP_TPU_DIMS], grid[MP_TPU_DIMS];
  MP_RETURN_IF_ERROR(mp_tpu_process_box(args->topology, box, grid));
  return ext_tpu_topology_put_coords("process_bounds_max_dims", grid, args->process_bounds_max_dims,
                                     args->process_bounds, &args->process_bounds_num_dims);
}

// ---- chips and devices ----

TOPOLOGY_FUNCTION(ChipBounds) {
  int32_t bounds[MP_TPU_DIMS];
  const int32_t last = mp_pod_info(args->topology->pod)->chips_per_slice - 1;
  mp_tpu_chip_coords(args->topology, last, bounds);
  for (int32_t d = 0; d < MP_TPU_DIMS; ++d) ++bounds[d];
  return ext_tpu_topology_put_coords("chip_bounds_max_dims", bounds, args->chip_bounds_max_dims,
                                     args->chip_bounds, &args->chip_bounds_num_dims);
}

TOPOLOGY_FUNCTION(ChipIdFromCoord) {
  return ext_tpu_topology_find_chip(args->topology, args->coords, args->coords_num_dims,
                                    &args->chip_id);
}

TOPOLOGY_FUNCTION(LogiDeviceIdFromChipCoordAndIdx) {
  int32_t chip = 0;
  MP_RETURN_IF_ERROR(ext_tpu_topology_find_chip(args->topology, args->chip_coords,
                                                args->chip_coords_num_dims, &chip));
  args->logical_device_of_default_type_id =
      mp_tpu_device_of_chip(args->topology, chip, args->logical_device_index_on_chip);
  if (args->logical_device_of_default_type_id >= 0) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT, "Invalid core index: %d",
                        args->logical_device_index_on_chip);
}

TOPOLOGY_FUNCTION(ChipCoordAndIdxForLogiDevice) {
  int32_t coords[MP_TPU_DIMS];
  MP_RETURN_IF_ERROR(ext_tpu_topology_check_device(args->topology, args->device_id));
  mp_tpu_chip_coords(args->topology, mp_tpu_chip_of_device(args->topology, args->device_id),
                     coords);
  args->device_index_on_chip = args->topology->descriptions[args->device_id].info->core_on_chip;
  return ext_tpu_topology_put_coords("chip_coords_max_dims", coords, args->chip_coords_max_dims,
                                     args->chip_coords, &args->chip_coords_num_dims);
}

// ---- routes ----

// Writes the text and a NUL, like libtpu.
TOPOLOGY_FUNCTION(GetRoutingStrategy) {
  const char *name = mp_tpu_has_limited_ici(args->topology) ? "nhop" : "mesh";
  const size_t size = strlen(name);
  if (args->routing_strategy == NULL || args->routing_strategy_len <= size) {
    return mp_status_make(MP_INVALID_ARGUMENT, "`routing_strategy_len` must be > %zu, got %zu.",
                          size, args->routing_strategy_len);
  }
  memcpy(args->routing_strategy, name, size + 1);
  args->routing_strategy_len = size;
  return NULL;
}

// Over limited ICI, a chip reaches those that are 1, 2, 4 or 8 chips away in one direction.
TOPOLOGY_FUNCTION(IsReachableOverLimitedIci) {
  const PJRT_TopologyDescription *topology = args->topology;
  int32_t from[MP_TPU_DIMS], to[MP_TPU_DIMS], directions = 0, distance = 0;
  MP_RETURN_IF_ERROR(ext_tpu_topology_check_chip(topology, args->source_chip_id));
  MP_RETURN_IF_ERROR(ext_tpu_topology_check_chip(topology, args->dest_chip_id));
  const mp_pod_info_t *info = mp_pod_info(topology->pod);
  if (info->num_dims > 2 && info->shape[2] > 1) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "the topology must be 2d for limited ICI routing, z: %d", info->shape[2]);
  }
  mp_tpu_chip_coords(topology, args->source_chip_id, from);
  mp_tpu_chip_coords(topology, args->dest_chip_id, to);
  for (int32_t d = 0; d < MP_TPU_DIMS; ++d) {
    if (from[d] == to[d]) continue;
    ++directions;
    distance = from[d] < to[d] ? to[d] - from[d] : from[d] - to[d];
  }
  args->is_reachable_over_limited_ici =
      directions == 1 && (distance == 1 || distance == 2 || distance == 4 || distance == 8);
  return NULL;
}

// ---- parts ----

// Bounds from a caller: as coordinates, at least 1 each.
static mp_status_t ext_tpu_topology_read_bounds(const int32_t *bounds, size_t count,
                                                int32_t out_bounds[MP_TPU_DIMS]) {
  MP_RETURN_IF_ERROR(ext_tpu_topology_read_coords(bounds, count, 1, out_bounds));
  for (int32_t d = 0; d < MP_TPU_DIMS; ++d) {
    if (out_bounds[d] >= 1 && out_bounds[d] <= MP_POD_MAX_DEVICES) continue;
    return mp_status_make(MP_INVALID_ARGUMENT, "Invalid bounds: %d,%d,%d", out_bounds[0],
                          out_bounds[1], out_bounds[2]);
  }
  return NULL;
}

// Hosts of fewer chips than the whole slice's can only be alone.
static mp_status_t ext_tpu_topology_check_part(const PJRT_TopologyDescription *topology,
                                               const int32_t box[MP_TPU_DIMS],
                                               const int32_t hosts[MP_TPU_DIMS]) {
  int32_t full[MP_TPU_DIMS], grid[MP_TPU_DIMS];
  MP_RETURN_IF_ERROR(mp_tpu_process_box(topology, full, grid));
  const bool is_alone = hosts[0] * hosts[1] * hosts[2] == 1;
  bool is_full = true;
  for (int32_t d = 0; d < MP_TPU_DIMS; ++d) {
    is_full = is_full && box[d] == full[d];
    if (box[d] > full[d]) {
      return mp_status_make(MP_INVALID_ARGUMENT,
                            "Subslice chips_per_host_bounds %d,%d,%d exceed the full slice "
                            "chips_per_host_bounds %d,%d,%d.",
                            box[0], box[1], box[2], full[0], full[1], full[2]);
    }
    if (box[d] * hosts[d] > full[d] * grid[d]) {
      return mp_status_make(MP_INVALID_ARGUMENT,
                            "Subslice chip bounds %d,%d,%d exceed the full slice chip bounds "
                            "%d,%d,%d.",
                            box[0] * hosts[0], box[1] * hosts[1], box[2] * hosts[2],
                            full[0] * grid[0], full[1] * grid[1], full[2] * grid[2]);
    }
  }
  if (is_alone || is_full) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT,
                        "Subslice with chips_per_host_bounds %d,%d,%d and host_bounds %d,%d,%d is "
                        "not a supported slice topology: a subslice spanning multiple hosts must "
                        "use the full slice chips_per_host_bounds %d,%d,%d",
                        box[0], box[1], box[2], hosts[0], hosts[1], hosts[2], full[0], full[1],
                        full[2]);
}

TOPOLOGY_FUNCTION(Subslice) {
  int32_t box[MP_TPU_DIMS], hosts[MP_TPU_DIMS];
  MP_RETURN_IF_ERROR(ext_tpu_topology_read_bounds(args->chips_per_host_bounds,
                                                  args->chips_per_host_bounds_num_dims, box));
  MP_RETURN_IF_ERROR(
      ext_tpu_topology_read_bounds(args->host_bounds, args->host_bounds_num_dims, hosts));
  MP_RETURN_IF_ERROR(ext_tpu_topology_check_part(args->topology, box, hosts));
  MP_RETURN_IF_ERROR(mp_tpu_make_topology(args->topology, box, hosts, &args->subslice_topology));
  args->subslice_topology->is_subslice = true;
  return NULL;
}

TOPOLOGY_FUNCTION(ReplaceHostBounds) {
  int32_t box[MP_TPU_DIMS], grid[MP_TPU_DIMS], hosts[MP_TPU_DIMS];
  MP_RETURN_IF_ERROR(
      ext_tpu_topology_read_bounds(args->host_bounds, args->host_bounds_dim_num, hosts));
  MP_RETURN_IF_ERROR(mp_tpu_process_box(args->topology, box, grid));
  MP_RETURN_IF_ERROR(mp_tpu_make_topology(args->topology, box, hosts, &args->new_topology));
  args->new_topology->is_subslice = args->topology->is_subslice;
  return NULL;
}

// The same place in the part, which begins at `subslice_origin`.
PLAIN_FUNCTION(SubsliceDeviceIdFromFullDeviceId) {
  const PJRT_TopologyDescription *full = args->client_topology, *part = args->subslice_topology;
  int32_t origin[MP_TPU_DIMS], coords[MP_TPU_DIMS];
  MP_RETURN_IF_ERROR(mp_tpu_check(full));
  MP_RETURN_IF_ERROR(mp_tpu_check(part));
  MP_RETURN_IF_ERROR(ext_tpu_topology_read_coords(args->subslice_origin,
                                                  args->subslice_origin_dim_num, 0, origin));
  MP_RETURN_IF_ERROR(ext_tpu_topology_check_device(full, args->full_device_id));
  mp_tpu_chip_coords(full, mp_tpu_chip_of_device(full, args->full_device_id), coords);
  for (int32_t d = 0; d < MP_TPU_DIMS; ++d) coords[d] -= origin[d];
  const int32_t chip = mp_tpu_chip_at(part, coords);
  const int32_t index = full->descriptions[args->full_device_id].info->core_on_chip;
  args->subslice_device_id = chip < 0 ? -1 : mp_tpu_device_of_chip(part, chip, index);
  if (args->subslice_device_id >= 0) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT, "device %d is not in the subslice at %d,%d,%d",
                        args->full_device_id, origin[0], origin[1], origin[2]);
}

// ---- platforms ----

PLAIN_FUNCTION(GetSliceConfig) {
  if (args->slice_config == NULL) return mp_pjrt_null_argument(__func__, "slice_config");
  return mp_tpu_find_slice(mp_pjrt_str(args->platform_type_name, args->platform_type_name_len),
                           mp_pjrt_str(args->slice_name, args->slice_name_len), args->slice_config);
}

PLAIN_FUNCTION(GetSliceConfigs) {
  const size_t capacity = args->slice_configs == NULL ? 0 : args->max_slice_configs;
  return mp_tpu_list_slices(mp_pjrt_str(args->platform_type_name, args->platform_type_name_len),
                            args->slice_configs, capacity, &args->num_slice_configs);
}

PLAIN_FUNCTION(GetDefaultPlatformConfig) {
  MP_RETURN_IF_ERROR(
      mp_tpu_check_platform(mp_pjrt_str(args->platform_type_name, args->platform_type_name_len)));
  args->num_chips_per_tray = 4;
  args->num_trays = 1;
  return NULL;
}

#define FILL_SLOT(name, slot) .slot = ext_tpu_topology_call_##name,
MP_PJRT_EXTENSION(TpuTopology, tpu_topology) = {MP_PJRT_EXTENSION_BASE(TpuTopology),
                                                PJRT_TPU_TOPOLOGY_FUNCTIONS(FILL_SLOT)};
