#include "topology/pod.h"

#include <stdio.h>

#include "sim/base/alloc.h"
#include "sim/base/assert.h"
#include "sim/base/hash.h"
#include "topology/pod_impl.h"

static double pod_quantity_of(const mp_quantities_t *values, int32_t dim, double otherwise) {
  return values->count == 0 ? otherwise : values->each[values->count == 1 ? 0 : dim];
}

static double pod_latency_of(const mp_pod_spec_t *spec, const char *key, double latency) {
  const bool is_given = spec->given[mp_spec_key_id(mp_str(key))].layer != MP_LAYER_NONE;
  return is_given ? latency : MP_NO_LATENCY;
}

static void pod_fill_links(mp_pod_t *pod) {
  const mp_pod_spec_t *spec = &pod->spec;
  mp_pod_info_t *info = &pod->info;
  info->wiring = spec->wirings.count == 1 ? spec->wirings.each[0] : MP_WIRING_MIXED;
  for (int32_t i = 0; i < info->num_dims; ++i) {
    mp_pod_dim_t *dim = &info->dims[i];
    dim->wiring = spec->wirings.each[spec->wirings.count == 1 ? 0 : i];
    if (dim->wiring == MP_WIRING_TORUS) dim->wiring = MP_WIRING_RING;
    dim->link.latency = pod_quantity_of(&spec->link_latency, i, MP_NO_LATENCY);
    dim->link.bandwidth = pod_quantity_of(&spec->link_bandwidth, i, 0) * spec->links;
  }
  info->ici = info->dims[0].link;
  info->dcn = spec->dcn;
  info->dcn.latency = pod_latency_of(spec, "dcn.latency", spec->dcn.latency);
  info->dcn_links = spec->dcn_links;
  info->dcn_fabric = spec->dcn_fabric;
  info->dcn_leaf_hosts = spec->dcn_leaf_hosts;
  info->dcn_oversubscription = spec->dcn_oversubscription;
  info->host_link = spec->host_link;
  info->host_link.latency = pod_latency_of(spec, "host_link.latency", spec->host_link.latency);
}

static void pod_fill_info(mp_pod_t *pod) {
  const mp_pod_spec_t *spec = &pod->spec;
  mp_pod_info_t *info = &pod->info;
  *info = (mp_pod_info_t){
      .name = pod->name,
      .chip = spec->chip,
      .flags = spec->flags,
      .kind = spec->kind,
      .capability = spec->capability,
      .num_slices = spec->slices,
      .num_hosts = spec->hosts,
      .num_dims = spec->shape.num_dims,
      .chips_per_slice = spec->chips,
      .cores_per_chip = spec->cores_per_chip,
      .cores_per_device = spec->cores_per_device,
      .num_devices = spec->slices * spec->chips * spec->cores_per_chip,
      .num_processes = 1,
      .vmem = spec->vmem,
      .smem = spec->smem,
      .scoped_vmem = spec->scoped_vmem,
      .memory_bandwidth = spec->memory_bandwidth,
      .launch_latency = pod_latency_of(spec, "launch_latency", spec->launch_latency),
      .op_latency = pod_latency_of(spec, "op_latency", spec->op_latency),
      .matrix_unit = {spec->matrix_unit.dims[0], spec->matrix_unit.dims[1]},
      .vector_flops = spec->vector_flops,
  };
  info->num_local_devices = info->num_devices;
  for (int32_t i = 0; i < info->num_dims; ++i) {
    info->shape[i] = spec->shape.dims[i];
    if (spec->host_shape.num_dims != 0) info->host_shape[i] = spec->host_shape.dims[i];
  }
  memcpy(info->flops, spec->flops, sizeof(info->flops));
  pod_fill_links(pod);
}

// The host of a chip: the box of the grid that it is in, first dimension fastest, or its part of
// the list of all chips.
static int32_t pod_host_of(const mp_pod_info_t *info, const mp_pod_device_t *device) {
  if (info->host_shape[0] == 0) {
    int32_t chips_per_host = info->num_slices * info->chips_per_slice / info->num_hosts;
    return (device->slice_index * info->chips_per_slice + device->chip_index) / chips_per_host;
  }
  int32_t box = 0;
  for (int32_t i = info->num_dims - 1; i >= 0; --i) {
    int32_t boxes = (info->shape[i] + info->host_shape[i] - 1) / info->host_shape[i];
    box = box * boxes + device->coords[i] / info->host_shape[i];
  }
  return device->slice_index * (info->num_hosts / info->num_slices) + box;
}

static void pod_fill_device(const mp_pod_t *pod, int32_t id, mp_pod_device_t *device) {
  const mp_pod_info_t *info = &pod->info;
  int32_t chip = id / info->cores_per_chip;
  *device = (mp_pod_device_t){
      .id = id,
      .local_hardware_id = id,
      .slice_index = chip / info->chips_per_slice,
      .chip_index = chip % info->chips_per_slice,
      .core_on_chip = id % info->cores_per_chip,
      .core_group = -1,
      .numa_node = -1,
  };
  int32_t rest = device->chip_index;
  for (int32_t i = 0; i < info->num_dims; ++i) {
    device->coords[i] = rest % info->shape[i];
    rest /= info->shape[i];
  }
  device->host_index = pod_host_of(info, device);
  for (int space = 0; space < MP_MEMORY_SPACE_COUNT; ++space) {
    uint64_t described = pod->spec.memory[space];
    device->capacity[space] = described == 0 ? UINT64_MAX : described;
  }
}

// Names are shown in messages and written between quotes: anything unusual becomes '?'.
static void pod_set_name(mp_pod_t *pod, mp_str_t name) {
  if (pod->spec.name[0] != '\0') name = mp_str(pod->spec.name);
  size_t size = name.size > MP_SPEC_MAX_TEXT ? MP_SPEC_MAX_TEXT : name.size;
  for (size_t i = 0; i < size; ++i) {
    char c = name.data[i];
    if (c == '"') c = '\'';
    pod->name[i] = c < ' ' || c > '~' || c == '\\' ? '?' : c;
  }
  pod->name[size] = '\0';
}

// A hash of the description alone, which is the same on every machine.
static mp_status_t pod_take_fingerprint(mp_pod_t *pod) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_spec_write(&pod->spec, &text);
  mp_status_t status = mp_strbuf_status(&text);
  if (status == NULL) pod->fingerprint = mp_hash_fnv1a(text.data, text.size);
  mp_strbuf_deinit(&text);
  return status;
}

mp_status_t mp_pod_build(const mp_pod_spec_t *spec, mp_str_t name, mp_pod_t **out_pod) {
  mp_pod_t *pod = mp_calloc(1, sizeof(*pod));
  MP_RETURN_IF_NULL(pod);
  atomic_init(&pod->references, 1);
  pod->spec = *spec;
  pod_set_name(pod, name);
  pod_fill_info(pod);
  mp_status_t status = mp_arena_create(&pod->arena);
  if (status == NULL) status = pod_take_fingerprint(pod);
  if (status == NULL) {
    pod->devices = MP_ARENA_ARRAY(pod->arena, mp_pod_device_t, (size_t)pod->info.num_devices);
    if (pod->devices == NULL) status = mp_status_out_of_memory();
  }
  if (status != NULL) {
    mp_pod_release(pod);
    return status;
  }
  for (int32_t id = 0; id < pod->info.num_devices; ++id)
    pod_fill_device(pod, id, &pod->devices[id]);
  *out_pod = pod;
  return NULL;
}

mp_pod_t *mp_pod_retain(mp_pod_t *pod) {
  // Relaxed: the caller has a reference already.
  atomic_fetch_add_explicit(&pod->references, 1, memory_order_relaxed);
  return pod;
}

void mp_pod_release(mp_pod_t *pod) {
  if (pod == NULL) return;
  // Only the count ever changes. Acquire and release: freeing the pod comes after all reads by
  // others.
  const int before = atomic_fetch_sub_explicit(&pod->references, 1, memory_order_acq_rel);
  MP_ASSERT(before > 0);
  if (before != 1) return;
  mp_arena_release(pod->arena);
  mp_free(pod);
}

const mp_pod_info_t *mp_pod_info(const mp_pod_t *pod) {
  return &pod->info;
}

const mp_pod_machine_t *mp_pod_machine(const mp_pod_t *pod) {
  return &pod->machine;
}

uint64_t mp_pod_fingerprint(const mp_pod_t *pod) {
  return pod->fingerprint;
}

const mp_pod_device_t *mp_pod_device(const mp_pod_t *pod, int32_t id) {
  MP_ASSERT(id >= 0 && id < pod->info.num_devices);
  return &pod->devices[id];
}

const mp_core_group_t *mp_pod_core_group(const mp_pod_t *pod, int32_t index) {
  MP_ASSERT(index >= 0 && index < pod->machine.num_core_groups);
  return &pod->groups[index];
}

mp_status_t mp_pod_read_description(mp_str_t text, const char *where, mp_pod_spec_t *out_spec) {
  char origin[320];
  snprintf(origin, sizeof(origin), "%s \"%.*s\"", where, MP_STR_SHOWN(text, 200));
  MP_RETURN_IF_ERROR(mp_spec_read_line(out_spec, origin, text));
  return mp_spec_finish(out_spec, origin);
}

mp_status_t mp_pod_create_from_name(mp_str_t description, const char *where, mp_pod_t **out_pod) {
  mp_pod_spec_t spec = {0};
  MP_RETURN_IF_ERROR(mp_pod_read_description(description, where, &spec));
  return mp_pod_build(&spec, description, out_pod);
}

// The spec of the found machine: one chip with one core per device, all at the same distance.
static mp_status_t pod_describe_machine(const mp_options_t *options, const mp_machine_t *machine,
                                        int32_t workers, mp_pod_spec_t *spec) {
  int32_t devices = machine->num_groups < workers ? machine->num_groups : workers;
  if (devices < MP_POD_LEAST_DEVICES) devices = MP_POD_LEAST_DEVICES;
  if (options->num_devices != MP_OPTION_UNSET) devices = (int32_t)options->num_devices;
  spec->wirings = (mp_wirings_t){1, {MP_WIRING_SWITCH}};
  spec->shape = (mp_shape_t){1, {devices}};
  return mp_spec_finish(spec, "the machine");
}

static mp_status_t pod_check_count(const mp_options_t *options, const mp_pod_spec_t *spec) {
  int32_t described = spec->slices * spec->chips * spec->cores_per_chip;
  if (options->num_devices == MP_OPTION_UNSET || options->num_devices == described) return NULL;
  mp_strbuf_t shape;
  mp_strbuf_init(&shape);
  mp_shape_write(&spec->shape, &shape);
  mp_status_t status = mp_status_make(
      MP_INVALID_ARGUMENT,
      "num_devices is %lld (%s), but topology \"%s\" (%s) has %d devices (%d slice(s) of %s chips "
      "with %d core(s) each); give one of the two, or make them agree",
      (long long)options->num_devices,
      mp_option_source_name(options->source[MP_OPTION_ID_num_devices]), options->topology,
      mp_option_source_name(options->source[MP_OPTION_ID_topology]), described, spec->slices,
      mp_strbuf_text(&shape), spec->cores_per_chip);
  mp_strbuf_deinit(&shape);
  return status;
}

static mp_status_t pod_create_on(const mp_options_t *options, const mp_machine_t *machine,
                                 mp_pod_t **out_pod) {
  mp_pod_spec_t spec = {0};
  int32_t workers = options->workers != MP_OPTION_UNSET ? (int32_t)options->workers
                                                        : mp_machine_default_workers(machine);
  bool described = options->topology[0] != '\0';
  if (described) {
    MP_RETURN_IF_ERROR(mp_pod_read_description(mp_str(options->topology), "topology", &spec));
    MP_RETURN_IF_ERROR(pod_check_count(options, &spec));
  } else {
    MP_RETURN_IF_ERROR(pod_describe_machine(options, machine, workers, &spec));
  }
  if (options->device_memory != MP_OPTION_UNSET) {
    spec.memory[MP_MEMORY_DEVICE] = (uint64_t)options->device_memory;
  }
  mp_pod_t *pod = NULL;
  MP_RETURN_IF_ERROR(
      mp_pod_build(&spec, described ? mp_str(options->topology) : MP_STR("machine"), &pod));
  mp_status_t status = mp_pod_place(pod, machine, workers);
  if (status != NULL) {
    mp_pod_release(pod);
    return status;
  }
  mp_pod_share_memory(pod, 0, pod->info.num_devices, machine->memory, pod->info.num_devices);
  *out_pod = pod;
  return NULL;
}

mp_status_t mp_pod_create(const mp_options_t *options, mp_pod_t **out_pod) {
  mp_machine_t *machine = NULL;
  MP_RETURN_IF_ERROR(mp_machine_create(options->machine, &machine));
  mp_status_t status = pod_create_on(options, machine, out_pod);
  mp_machine_release(machine);
  return status;
}
