#include "pjrt/command/topo_json.h"

#include <inttypes.h>

static void topo_json_put_list(mp_strbuf_t *out, const int32_t *values, int32_t count) {
  mp_strbuf_putc(out, '[');
  for (int32_t i = 0; i < count; ++i) {
    mp_strbuf_printf(out, "%s%" PRId32, i == 0 ? "" : ", ", values[i]);
  }
  mp_strbuf_putc(out, ']');
}

// Per device and second: matmul operations by type, and bytes of its memory; 0: not described.
static void topo_json_put_rates(const mp_pod_info_t *info, mp_strbuf_t *out) {
  static const char *const names[] = {
#define MP_FLOP_NAME(name, text) text,
      MP_FLOP_KINDS(MP_FLOP_NAME)
#undef MP_FLOP_NAME
  };
  for (int kind = 0; kind < MP_FLOP_KIND_COUNT; ++kind) {
    mp_strbuf_printf(out, "%s\"%s\": ", kind == 0 ? ",\n \"flops\": {" : ", ", names[kind]);
    mp_strbuf_put_double(out, info->flops[kind]);
  }
  mp_strbuf_puts(out, "},\n \"memory_bandwidth\": ");
  mp_strbuf_put_double(out, info->memory_bandwidth);
}

static void topo_json_put_pod(const mp_pod_info_t *info, mp_strbuf_t *out) {
  const struct {
    const char *key, *text;
  } texts[] = {{"name", info->name},
               {"kind", info->kind},
               {"chip", info->chip},
               {"wiring", mp_wiring_name(info->wiring)},
               {"fabric", mp_fabric_name(info->dcn_fabric)}};
  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i) {
    mp_strbuf_printf(out, "%s\"%s\": ", i == 0 ? "" : ",\n ", texts[i].key);
    mp_strbuf_put_json(out, mp_str(texts[i].text));
  }
  mp_strbuf_puts(out, ",\n \"shape\": ");
  topo_json_put_list(out, info->shape, info->num_dims);
  mp_strbuf_printf(out,
                   ",\n \"num_devices\": %" PRId32 ",\n \"num_slices\": %" PRId32
                   ",\n \"num_hosts\": %" PRId32 ",\n \"cores_per_chip\": %" PRId32,
                   info->num_devices, info->num_slices, info->num_hosts, info->cores_per_chip);
  topo_json_put_rates(info, out);
}

static void topo_json_put_machine(const mp_pod_machine_t *machine, mp_strbuf_t *out) {
  mp_strbuf_printf(out,
                   ",\n \"machine\": {\"cores\": %" PRId32 ", \"core_groups\": %" PRId32
                   ", \"numa_nodes\": %" PRId32 ", \"workers\": %" PRId32 ", \"cpu_quota\": ",
                   machine->num_cores, machine->num_core_groups, machine->num_numa_nodes,
                   machine->num_workers);
  mp_strbuf_put_double(out, machine->cpu_quota);
  mp_strbuf_printf(out, ", \"memory\": %" PRIu64 "}", machine->memory);
}

static void topo_json_put_device(const mp_pod_info_t *info, const mp_pod_device_t *device,
                                 mp_strbuf_t *out) {
  mp_strbuf_printf(out,
                   "{\"id\": %" PRId32 ", \"process\": %" PRId32 ", \"host\": %" PRId32
                   ", \"slice\": %" PRId32 ", \"core_on_chip\": %" PRId32 ", \"coords\": ",
                   device->id, device->process_index, device->host_index, device->slice_index,
                   device->core_on_chip);
  topo_json_put_list(out, device->coords, info->num_dims);
  mp_strbuf_puts(out, ", \"memory\": ");
  if (device->capacity[MP_MEMORY_DEVICE] == UINT64_MAX) {
    mp_strbuf_puts(out, "null");
  } else {
    mp_strbuf_printf(out, "%" PRIu64, device->capacity[MP_MEMORY_DEVICE]);
  }
  mp_strbuf_printf(out, ", \"memory_is_shared\": %s}",
                   device->is_shared[MP_MEMORY_DEVICE] ? "true" : "false");
}

static void topo_json_put_link(const mp_network_link_t *link, mp_strbuf_t *out) {
  mp_strbuf_puts(out, "{\"name\": ");
  mp_strbuf_put_json(out, mp_str(link->name));
  mp_strbuf_printf(out, ", \"from\": %" PRIu32 ", \"to\": %" PRIu32 ", \"bandwidth\": ", link->from,
                   link->to);
  mp_strbuf_put_double(out, link->bandwidth);
  mp_strbuf_puts(out, ", \"latency\": ");
  mp_strbuf_put_double(out, link->latency);
  mp_strbuf_putc(out, '}');
}

void mp_topo_json_write(const mp_network_t *network, mp_strbuf_t *out) {
  const mp_pod_t *pod = mp_network_pod(network);
  const mp_pod_info_t *info = mp_pod_info(pod);
  mp_strbuf_putc(out, '{');
  topo_json_put_pod(info, out);
  topo_json_put_machine(mp_pod_machine(pod), out);
  mp_strbuf_puts(out, ",\n \"devices\": [");
  for (int32_t id = 0; id < info->num_devices; ++id) {
    if (id != 0) mp_strbuf_puts(out, ",\n  ");
    topo_json_put_device(info, mp_pod_device(pod, id), out);
  }
  mp_strbuf_puts(out, "],\n \"links\": [");
  for (uint32_t i = 0; i < mp_network_num_links(network); ++i) {
    if (i != 0) mp_strbuf_puts(out, ",\n  ");
    topo_json_put_link(mp_network_link(network, i), out);
  }
  mp_strbuf_puts(out, "]}\n");
}
