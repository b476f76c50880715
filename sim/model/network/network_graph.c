// The vertices and links of a pod.
#include "sim/base/assert.h"
#include "sim/model/network/network_defaults.h"
#include "sim/model/network/network_impl.h"

static const char g_axis_names[] = "xyzuvw";
_Static_assert(sizeof(g_axis_names) == MP_POD_MAX_DIMS + 1, "a letter for each dimension");

// A graph under construction.
typedef struct {
  mp_network_t *network;
  mp_strbuf_t name;  // of the link that is added next
} graph_t;

// A described link, with the defaults for what is not described.
static mp_link_t network_graph_link(mp_link_t described, double latency, double bandwidth) {
  return (mp_link_t){
      .latency = described.latency >= 0 ? described.latency : latency,
      .bandwidth = described.bandwidth > 0 ? described.bandwidth : bandwidth,
  };
}

// Adds a link and takes its name out of graph->name.
static mp_status_t network_graph_add(graph_t *graph, uint32_t from, uint32_t to, mp_link_t link) {
  mp_network_t *network = graph->network;
  MP_RETURN_IF_ERROR(mp_strbuf_status(&graph->name));
  const char *name =
      mp_arena_strndup(network->arena, mp_strbuf_text(&graph->name), graph->name.size);
  MP_RETURN_IF_NULL(name);
  graph->name.size = 0;
  return MP_ARRAY_PUSH(NULL, &network->links,
                       (mp_network_link_t){name, from, to, link.latency, link.bandwidth});
}

// ---- Between the chips of a slice ----

// The axes of the grid, or the one axis of all chips.
static void network_graph_make_axes(mp_network_t *network) {
  const mp_pod_info_t *info = network->info;
  const bool is_grid =
      info->wiring != MP_WIRING_SWITCH && info->wiring != MP_WIRING_FULLY_CONNECTED;
  network->num_axes = is_grid ? (uint32_t)info->num_dims : 1;
  uint32_t stride = 1;
  for (uint32_t d = 0; d < network->num_axes; ++d) {
    mp_network_axis_t *axis = &network->axes[d];
    const mp_pod_dim_t *dim = &info->dims[d];
    *axis = (mp_network_axis_t){
        .wiring = dim->wiring,
        .size = (uint32_t)(is_grid ? info->shape[d] : info->chips_per_slice),
        .stride = stride,
        .link = network_graph_link(dim->link, MP_DEFAULT_ICI_LATENCY, MP_DEFAULT_ICI_BANDWIDTH),
        .first_way = network->ways_per_chip,
        .num_ways = 2,
    };
    if (network->figures.network_share > 0) {
      axis->link.bandwidth *= network->figures.network_share;
    }
    if (axis->wiring == MP_WIRING_FULLY_CONNECTED) axis->num_ways = axis->size - 1;
    stride *= axis->size;
    network->ways_per_chip += axis->num_ways;
  }
}

// Links between all pairs of thousands of chips fill the memory of any machine.
static mp_status_t network_graph_check_size(const mp_network_t *network) {
  enum { MAX_WAYS = 1 << 22 };
  const uint64_t ways = (uint64_t)mp_network_num_chips(network->info) * network->ways_per_chip;
  if (ways <= MAX_WAYS) return NULL;
  return mp_status_make(
      MP_RESOURCE_EXHAUSTED,
      "topology \"%s\": its chips have %llu links, and the model of times takes at "
      "most %d",
      network->info->name, (unsigned long long)ways, MAX_WAYS);
}

// "(1,2,0)"
static void network_graph_name_coords(graph_t *graph, uint32_t chip) {
  const mp_pod_info_t *info = graph->network->info;
  uint32_t rest = chip % (uint32_t)info->chips_per_slice;
  for (int32_t d = 0; d < info->num_dims; ++d) {
    mp_strbuf_printf(&graph->name, "%c%u", d == 0 ? '(' : ',', rest % (uint32_t)info->shape[d]);
    rest /= (uint32_t)info->shape[d];
  }
  mp_strbuf_putc(&graph->name, ')');
}

// "slice 0 (1,2,0)"
static void network_graph_name_chip(graph_t *graph, uint32_t chip) {
  mp_strbuf_printf(&graph->name, "slice %u ",
                   chip / (uint32_t)graph->network->info->chips_per_slice);
  network_graph_name_coords(graph, chip);
}

// The links of a chip to its neighbours on an axis.
static mp_status_t network_graph_add_neighbours(graph_t *graph, uint32_t chip, uint32_t d) {
  mp_network_t *network = graph->network;
  const mp_network_axis_t *axis = &network->axes[d];
  const uint32_t at = mp_network_at(network, chip, d);
  for (uint32_t way = 0; way < 2; ++way) {
    const bool is_down = way == 1;
    const bool is_edge = is_down ? at == 0 : at + 1 == axis->size;
    if (is_edge && !mp_network_wraps(axis)) continue;
    const uint32_t to = (is_down ? at + axis->size - 1 : at + 1) % axis->size;
    network->ways[(size_t)chip * network->ways_per_chip + axis->first_way + way] =
        network->links.count;
    network_graph_name_chip(graph, chip);
    mp_strbuf_printf(&graph->name, " %c%c", is_down ? '-' : '+', g_axis_names[d]);
    MP_RETURN_IF_ERROR(
        network_graph_add(graph, chip, chip - at * axis->stride + to * axis->stride, axis->link));
  }
  return NULL;
}

// The links from a chip to all others of its line.
static mp_status_t network_graph_add_pairs(graph_t *graph, uint32_t chip, uint32_t d) {
  mp_network_t *network = graph->network;
  const mp_network_axis_t *axis = &network->axes[d];
  const uint32_t at = mp_network_at(network, chip, d);
  uint32_t *ways = &network->ways[(size_t)chip * network->ways_per_chip + axis->first_way];
  for (uint32_t place = 0; place < axis->size; ++place) {
    if (place == at) continue;
    const uint32_t to = chip - at * axis->stride + place * axis->stride;
    ways[mp_network_way_to(at, place)] = network->links.count;
    network_graph_name_chip(graph, chip);
    mp_strbuf_puts(&graph->name, " to ");
    network_graph_name_coords(graph, to);
    MP_RETURN_IF_ERROR(network_graph_add(graph, chip, to, axis->link));
  }
  return NULL;
}

// The links between a chip and the switch of its line; the line's first chip makes the switch.
static mp_status_t network_graph_add_switch(graph_t *graph, uint32_t chip, uint32_t d,
                                            uint32_t *switches) {
  mp_network_t *network = graph->network;
  const mp_network_axis_t *axis = &network->axes[d];
  const uint32_t at = mp_network_at(network, chip, d);
  const uint32_t first = chip - at * axis->stride;
  if (at == 0) switches[first] = network->num_vertices++;
  uint32_t *ways = &network->ways[(size_t)chip * network->ways_per_chip + axis->first_way];
  for (uint32_t way = 0; way < 2; ++way) {
    ways[way] = network->links.count;
    network_graph_name_chip(graph, chip);
    mp_strbuf_puts(&graph->name, way == 0 ? " to switch" : " from switch");
    if (network->num_axes > 1) mp_strbuf_printf(&graph->name, " %c", g_axis_names[d]);
    const uint32_t middle = switches[first];
    MP_RETURN_IF_ERROR(
        network_graph_add(graph, way == 0 ? chip : middle, way == 0 ? middle : chip, axis->link));
  }
  return NULL;
}

static mp_status_t network_graph_add_ways(graph_t *graph, uint32_t chip, uint32_t d,
                                          uint32_t *switches) {
  switch (graph->network->axes[d].wiring) {
    case MP_WIRING_SWITCH:
      return network_graph_add_switch(graph, chip, d, switches);
    case MP_WIRING_FULLY_CONNECTED:
      return network_graph_add_pairs(graph, chip, d);
    default:
      return network_graph_add_neighbours(graph, chip, d);
  }
}

static mp_status_t network_graph_add_slices(graph_t *graph) {
  mp_network_t *network = graph->network;
  const uint32_t chips = mp_network_num_chips(network->info);
  const size_t count = (size_t)chips * network->ways_per_chip;
  network->ways = MP_ARENA_ARRAY(network->arena, uint32_t, count);
  MP_RETURN_IF_NULL(network->ways);
  for (size_t i = 0; i < count; ++i) network->ways[i] = MP_NO_LINK;
  uint32_t *switches = MP_ARENA_ARRAY(network->scratch, uint32_t, chips);
  MP_RETURN_IF_NULL(switches);
  for (uint32_t d = 0; d < network->num_axes; ++d) {
    if (network->axes[d].size == 1) continue;
    for (uint32_t chip = 0; chip < chips; ++chip) {
      MP_RETURN_IF_ERROR(network_graph_add_ways(graph, chip, d, switches));
    }
  }
  return NULL;
}

// ---- Inside chips, and around hosts ----

static mp_status_t network_graph_add_chips(graph_t *graph) {
  mp_network_t *network = graph->network;
  const mp_pod_info_t *info = network->info;
  network->first_chip_link = network->links.count;
  if (info->cores_per_chip == 1) return NULL;
  const double described = info->memory_bandwidth * info->cores_per_chip / 2;
  const mp_link_t link = {.bandwidth = described > 0 ? described : MP_DEFAULT_CHIP_BANDWIDTH};
  for (uint32_t chip = 0; chip < mp_network_num_chips(info); ++chip) {
    network_graph_name_chip(graph, chip);
    mp_strbuf_puts(&graph->name, " inside");
    MP_RETURN_IF_ERROR(network_graph_add(graph, chip, chip, link));
  }
  return NULL;
}

static mp_status_t network_graph_add_host_links(graph_t *graph, uint32_t first_host) {
  mp_network_t *network = graph->network;
  const mp_link_t link = network_graph_link(network->info->host_link, MP_DEFAULT_HOST_LATENCY,
                                            MP_DEFAULT_HOST_BANDWIDTH);
  network->first_host_link = network->links.count;
  for (int32_t id = 0; id < network->info->num_devices; ++id) {
    const mp_pod_device_t *device = mp_pod_device(network->pod, id);
    const uint32_t chip = mp_network_chip_of(network, device);
    const uint32_t host = first_host + (uint32_t)device->host_index;
    mp_strbuf_printf(&graph->name, "device %d to host", id);
    MP_RETURN_IF_ERROR(network_graph_add(graph, chip, host, link));
    mp_strbuf_printf(&graph->name, "device %d from host", id);
    MP_RETURN_IF_ERROR(network_graph_add(graph, host, chip, link));
  }
  return NULL;
}

// Links up and down between hosts, or leaves, and what joins them.
static mp_status_t network_graph_add_pair(graph_t *graph, const char *what, uint32_t number,
                                          uint32_t below, uint32_t above, mp_link_t link) {
  mp_strbuf_printf(&graph->name, "%s %u up", what, number);
  MP_RETURN_IF_ERROR(network_graph_add(graph, below, above, link));
  mp_strbuf_printf(&graph->name, "%s %u down", what, number);
  return network_graph_add(graph, above, below, link);
}

// The network between hosts. A host's cards are one link, and so are the links of a leaf: what goes
// over several is spread evenly.
static mp_status_t network_graph_add_fabric(graph_t *graph, uint32_t first_host, uint32_t core) {
  mp_network_t *network = graph->network;
  const mp_pod_info_t *info = network->info;
  const uint32_t hosts = (uint32_t)info->num_hosts;
  mp_link_t link = network_graph_link(info->dcn, MP_DEFAULT_DCN_LATENCY, MP_DEFAULT_DCN_BANDWIDTH);
  link.latency /= 2;  // the description's is that of the whole way from host to host
  link.bandwidth *= info->dcn_links;
  if (network->figures.network_cards > 0) link.bandwidth *= network->figures.network_cards;
  network->hosts_per_leaf =
      info->dcn_fabric == MP_FABRIC_FAT_TREE ? (uint32_t)info->dcn_leaf_hosts : hosts;
  const uint32_t leaves = (hosts + network->hosts_per_leaf - 1) / network->hosts_per_leaf;
  const uint32_t first_leaf = leaves > 1 ? network->num_vertices : core;
  if (leaves > 1) network->num_vertices += leaves;
  network->first_nic_link = network->links.count;
  for (uint32_t host = 0; host < hosts && hosts > 1; ++host) {
    MP_RETURN_IF_ERROR(network_graph_add_pair(graph, "host", host, first_host + host,
                                              first_leaf + host / network->hosts_per_leaf, link));
  }
  network->first_leaf_link = network->links.count;
  const mp_link_t up = {
      .latency = MP_DEFAULT_LEAF_LATENCY,
      .bandwidth = link.bandwidth * network->hosts_per_leaf / info->dcn_oversubscription};
  for (uint32_t leaf = 0; leaf < leaves && leaves > 1; ++leaf) {
    MP_RETURN_IF_ERROR(network_graph_add_pair(graph, "leaf", leaf, first_leaf + leaf, core, up));
  }
  return NULL;
}

mp_status_t mp_network_graph_build(mp_network_t *network) {
  const uint32_t first_host = mp_network_num_chips(network->info);
  const uint32_t core = first_host + (uint32_t)network->info->num_hosts;
  network->num_vertices = core + 1;
  network_graph_make_axes(network);
  MP_RETURN_IF_ERROR(network_graph_check_size(network));
  graph_t graph = {.network = network};
  mp_strbuf_init(&graph.name);
  mp_status_t status = network_graph_add_slices(&graph);
  if (status == NULL) status = network_graph_add_chips(&graph);
  if (status == NULL) status = network_graph_add_host_links(&graph, first_host);
  if (status == NULL) status = network_graph_add_fabric(&graph, first_host, core);
  mp_strbuf_deinit(&graph.name);
  mp_arena_reset(network->scratch);
  return status;
}
