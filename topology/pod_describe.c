// The pod as readable text.
#include <stdio.h>

#include "topology/pod_impl.h"

enum { MP_DESCRIBE_MAX_DEVICES = 64 };

// The largest unit that leaves at most two decimals: "16GiB", "1.5GiB".
static void pod_describe_write_bytes(uint64_t bytes, mp_strbuf_t *out_text) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  if (bytes == UINT64_MAX) {
    mp_strbuf_puts(out_text, "no limit");
    return;
  }
  size_t unit = 0;
  double value = (double)bytes;
  while (value >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
    value /= 1024;
    ++unit;
  }
  mp_strbuf_printf(out_text, "%.*f%s", value == (double)(uint64_t)value ? 0 : 2, value,
                   units[unit]);
}

// "0-7,64-71" of a list whose runs are ascending.
static void pod_describe_write_ranges(const int32_t *values, int32_t count, mp_strbuf_t *out_text) {
  for (int32_t i = 0; i < count;) {
    int32_t last = i;
    while (last + 1 < count && values[last + 1] == values[last] + 1) ++last;
    mp_strbuf_printf(out_text, "%s%d", i == 0 ? "" : ",", values[i]);
    if (last > i) mp_strbuf_printf(out_text, "-%d", values[last]);
    i = last + 1;
  }
}

static const char *pod_describe_plural(int32_t count) {
  return count == 1 ? "" : "s";
}

static void pod_describe_write_machine(const mp_pod_t *pod, mp_strbuf_t *out_text) {
  const mp_pod_machine_t *machine = &pod->machine;
  if (machine->num_core_groups == 0) {
    mp_strbuf_puts(out_text, "machine  none (a description only)\n");
    return;
  }
  mp_strbuf_printf(out_text,
                   "machine  %d package%s, %d NUMA node%s, %d core group%s, %d core%s, %d cpu%s, ",
                   pod->machine_packages, pod_describe_plural(pod->machine_packages),
                   machine->num_numa_nodes, pod_describe_plural(machine->num_numa_nodes),
                   pod->machine_groups, pod_describe_plural(pod->machine_groups),
                   machine->num_cores, pod_describe_plural(machine->num_cores), pod->machine_cpus,
                   pod_describe_plural(pod->machine_cpus));
  pod_describe_write_bytes(machine->memory, out_text);
  mp_strbuf_puts(out_text, machine->is_real ? " (found by hwloc)\n" : " (not this one)\n");
  if (machine->cpu_quota > 0) {
    mp_strbuf_printf(out_text, "quota    %.2f cores of CPU time (cgroup)\n", machine->cpu_quota);
  }
  mp_strbuf_printf(out_text, "workers  %d, %s\n", machine->num_workers,
                   machine->worker_per_core ? "one for each core" : "bound to core groups");
}

static void pod_describe_write_shape(const int32_t *dims, int32_t count, mp_strbuf_t *out_text) {
  mp_shape_t shape = {.num_dims = count};
  memcpy(shape.dims, dims, sizeof(*dims) * (size_t)count);
  mp_shape_write(&shape, out_text);
}

static void pod_describe_write_pod(const mp_pod_t *pod, mp_strbuf_t *out_text) {
  const mp_pod_info_t *info = &pod->info;
  mp_strbuf_printf(out_text, "pod      %s: %d device%s of kind '%s': %d slice%s of ", info->name,
                   info->num_devices, pod_describe_plural(info->num_devices), info->kind,
                   info->num_slices, pod_describe_plural(info->num_slices));
  pod_describe_write_shape(info->shape, info->num_dims, out_text);
  mp_strbuf_printf(out_text, " chip%s (%s) with %d core%s, on %d host%s",
                   pod_describe_plural(info->chips_per_slice), mp_wiring_name(info->wiring),
                   info->cores_per_chip, pod_describe_plural(info->cores_per_chip), info->num_hosts,
                   pod_describe_plural(info->num_hosts));
  if (info->num_processes > 1) {
    mp_strbuf_printf(out_text, ", process %d of %d: devices %d to %d", info->process_index,
                     info->num_processes, info->first_local_device,
                     info->first_local_device + info->num_local_devices - 1);
  }
  mp_strbuf_putc(out_text, '\n');
  mp_strbuf_puts(out_text, "memory  ");
  const mp_pod_device_t *device = &pod->devices[info->first_local_device];
  for (int space = 0; space < MP_MEMORY_SPACE_COUNT; ++space) {
    mp_strbuf_printf(out_text, "%s %s ", space == 0 ? "" : ",",
                     mp_memory_space_name((mp_memory_space_t)space));
    pod_describe_write_bytes(device->capacity[space], out_text);
    if (device->capacity[space] == UINT64_MAX) continue;
    mp_strbuf_puts(out_text, !device->is_shared[space]         ? " for each device"
                             : pod->machine.num_numa_nodes > 1 ? " for the devices of a NUMA node"
                                                               : " for all devices together");
  }
  mp_strbuf_putc(out_text, '\n');
}

// "50GB/s, 1us"; omits what is not described.
static void pod_describe_write_link(const mp_link_t *link, mp_strbuf_t *out_text) {
  const bool has_latency = link->latency >= 0;
  if (link->bandwidth == 0 && !has_latency) mp_strbuf_puts(out_text, "no figures");
  if (link->bandwidth != 0) mp_strbuf_printf(out_text, "%.10gGB/s", link->bandwidth / 1e9);
  if (link->bandwidth != 0 && has_latency) mp_strbuf_puts(out_text, ", ");
  if (has_latency) mp_strbuf_printf(out_text, "%.10gus", link->latency * 1e6);
}

// The wirings with their links; for a mixed grid one for each dimension that has links.
static void pod_describe_write_links(const mp_pod_t *pod, mp_strbuf_t *out_text) {
  const mp_pod_info_t *info = &pod->info;
  bool alike = info->wiring != MP_WIRING_MIXED;
  for (int32_t i = 1; i < info->num_dims; ++i) {
    alike &= memcmp(&info->dims[i].link, &info->ici, sizeof(info->ici)) == 0;
  }
  const char *before = "links    ";
  for (int32_t i = 0; i < (alike ? 1 : info->num_dims); ++i) {
    if (!alike && info->shape[i] == 1) continue;
    mp_wiring_t wiring = alike ? info->wiring : info->dims[i].wiring;
    mp_strbuf_printf(out_text, "%s%s ", before, mp_wiring_name(wiring));
    pod_describe_write_link(&info->dims[i].link, out_text);
    before = "; ";
  }
  mp_strbuf_puts(out_text, "\nnetwork  ");
  mp_strbuf_printf(out_text, "%d network card%s per host, %s", info->dcn_links,
                   pod_describe_plural(info->dcn_links), info->dcn_links > 1 ? "each " : "");
  pod_describe_write_link(&info->dcn, out_text);
  if (info->dcn_fabric == MP_FABRIC_FAT_TREE) {
    mp_strbuf_printf(out_text, "; fat tree with %d host%s per leaf switch, oversubscription %.10g",
                     info->dcn_leaf_hosts, pod_describe_plural(info->dcn_leaf_hosts),
                     info->dcn_oversubscription);
  }
  mp_strbuf_putc(out_text, '\n');
}

static void pod_describe_write_groups(const mp_pod_t *pod, mp_strbuf_t *out_text) {
  if (pod->machine.num_core_groups == 0) return;
  mp_strbuf_printf(out_text, "\n%-6s %-10s %-6s %-8s %-20s %s\n", "group", "numa", "cores",
                   "workers", "cpus", "devices");
  for (int32_t index = 0; index < pod->machine.num_core_groups; ++index) {
    const mp_core_group_t *group = &pod->groups[index];
    mp_strbuf_t nodes;
    mp_strbuf_t cpus;
    mp_strbuf_init(&nodes);
    mp_strbuf_init(&cpus);
    pod_describe_write_ranges(group->numa_nodes, group->num_numa_nodes, &nodes);
    pod_describe_write_ranges(group->cpus, group->num_cpus, &cpus);
    mp_strbuf_printf(out_text, "%-6d %-10s %-6d %-8d %-20s ", index, mp_strbuf_text(&nodes),
                     group->num_cores, group->num_workers, mp_strbuf_text(&cpus));
    pod_describe_write_ranges(group->device_ids, group->num_devices, out_text);
    mp_strbuf_putc(out_text, '\n');
    out_text->failed = out_text->failed || nodes.failed || cpus.failed;
    mp_strbuf_deinit(&nodes);
    mp_strbuf_deinit(&cpus);
  }
}

static void pod_describe_write_devices(const mp_pod_t *pod, mp_strbuf_t *out_text) {
  mp_strbuf_printf(out_text, "\n%-7s %-14s %-5s %-6s %-5s %-6s %s\n", "device", "coords", "core",
                   "slice", "host", "group", "numa");
  int32_t count = pod->info.num_devices;
  int32_t shown = count > MP_DESCRIBE_MAX_DEVICES ? MP_DESCRIBE_MAX_DEVICES : count;
  for (int32_t id = 0; id < shown; ++id) {
    const mp_pod_device_t *device = &pod->devices[id];
    char coords[80];
    size_t size = 0;
    for (int32_t i = 0; i < pod->info.num_dims; ++i) {
      size += (size_t)snprintf(coords + size, sizeof(coords) - size, "%s%d", i == 0 ? "(" : ",",
                               device->coords[i]);
    }
    mp_strbuf_printf(out_text, "%-7d %s)%-*s %-5d %-6d %-5d ", id, coords,
                     size < 13 ? (int)(13 - size) : 0, "", device->core_on_chip,
                     device->slice_index, device->host_index);
    if (device->core_group < 0) {
      mp_strbuf_puts(out_text, "-      -\n");
    } else if (device->numa_node < 0) {
      mp_strbuf_printf(out_text, "%-6d several\n", device->core_group);
    } else {
      mp_strbuf_printf(out_text, "%-6d %d\n", device->core_group, device->numa_node);
    }
  }
  if (shown < count) mp_strbuf_printf(out_text, "... and %d more\n", count - shown);
}

void mp_pod_describe(const mp_pod_t *pod, mp_strbuf_t *out_text) {
  pod_describe_write_machine(pod, out_text);
  pod_describe_write_pod(pod, out_text);
  pod_describe_write_links(pod, out_text);
  pod_describe_write_groups(pod, out_text);
  pod_describe_write_devices(pod, out_text);
}
