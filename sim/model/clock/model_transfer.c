// From the log to virtual times: transfers between hosts and devices, and between devices.
#include <math.h>

#include "sim/base/alloc.h"
#include "sim/model/clock/model_impl.h"
#include "sim/model/network/traffic/flows.h"

// What is no longer than this goes in between the packets of others: it is as fast as it is alone.
enum { TRANSFER_SMALL = 4096 };

// The memory of a host of which nothing is known: eight channels of DDR4-3200, of which copies
// reach four fifths, as STREAM does on such machines.
static const double k_host_memory = 0.8 * 204.8e9;

// How often the bytes of an array of the process go through that memory: they are read, written to
// a pinned buffer, and read from there. Those that are pinned already are read once.
enum { TRANSFER_UNPINNED_PASSES = 3 };

// What a transfer takes by itself.
typedef struct {
  mp_transfer_t way;
  double latency;                 // seconds before its bytes flow
  double seconds;                 // for its bytes
  bool is_with_host, is_to_host;  // one of its ends is the memory of a host, or that of the host
  double passes;                  // of its bytes through what the devices of a host share
} cost_t;

// ---- Hosts ----

// How many devices a host has, and how many of these are of this process.
typedef struct {
  uint32_t all, local;
} members_t;

static void model_transfer_count_members(const mp_model_t *model, members_t *members) {
  const mp_pod_info_t *info = mp_pod_info(model->pod);
  for (int32_t id = 0; id < info->num_devices; ++id) {
    members_t *host = &members[mp_pod_device(model->pod, id)->host_index];
    const int32_t local = id - info->first_local_device;
    host->all += 1;
    host->local += local >= 0 && local < info->num_local_devices;
  }
}

static int32_t model_transfer_host_of(const mp_model_t *model, uint32_t device) {
  return mp_pod_device(model->pod, (int32_t)device)->host_index;
}

// The rate of the link between a host and a device, for large transfers, and the seconds before
// bytes flow.
static double model_transfer_link_rate(const mp_model_t *model, double *out_latency) {
  mp_transfer_t way;
  *out_latency = 0;
  const mp_status_t status =
      mp_network_message(model->network, mp_network_host(mp_pod_device(model->pod, 0)->host_index),
                         mp_network_device(0), 1, &way);
  if (status != NULL) {
    mp_status_ignore(status);
    return 0;
  }
  *out_latency = way.latency + mp_figure_or(model->chip.figures.host_latency, 0);
  way.latency = 0;
  return mp_figure_or(model->chip.figures.host_share, 1) /
         mp_flows_transfer_alone(model->network, &way);
}

// What all devices of a host share: what is described, or else a usual memory, unless the link of
// one device is faster than that.
static double model_transfer_shared(const mp_model_t *model, double link_rate) {
  const double described = mp_figure_or(model->chip.figures.host_bandwidth, 0);
  if (described > 0) return described;
  return link_rate < k_host_memory ? k_host_memory : 0;
}

// What is described is of transfers, whatever they go through.
static double model_transfer_passes(const mp_model_t *model, mp_memory_space_t space) {
  const bool is_described = mp_figure_or(model->chip.figures.host_bandwidth, 0) > 0;
  return space == MP_MEMORY_UNPINNED_HOST && !is_described ? TRANSFER_UNPINNED_PASSES : 1;
}

mp_status_t mp_model_make_hosts(mp_model_t *model) {
  double latency;
  const double link_rate = model_transfer_link_rate(model, &latency);
  const double needed = link_rate * model_transfer_passes(model, MP_MEMORY_UNPINNED_HOST);
  const double bandwidth = model_transfer_shared(model, link_rate);
  const uint32_t count = (uint32_t)mp_pod_info(model->pod)->num_hosts;
  if (!(bandwidth > 0)) return NULL;
  model->to_devices = mp_calloc(count, sizeof(*model->to_devices));
  model->from_devices = mp_calloc(count, sizeof(*model->from_devices));
  members_t *members = mp_calloc(count, sizeof(*members));
  mp_status_t status = NULL;
  if (members == NULL || model->to_devices == NULL || model->from_devices == NULL) {
    status = mp_status_out_of_memory();
  } else {
    model_transfer_count_members(model, members);
  }
  for (uint32_t h = 0; h < count && status == NULL; ++h) {
    // Processes that have some of its devices each are taken to do alike: each has its part.
    if (members[h].local == 0 || bandwidth >= needed * members[h].all) continue;
    const double part = bandwidth * members[h].local / members[h].all;
    status = mp_host_flows_create(part, &model->to_devices[h]);
    if (status == NULL) status = mp_host_flows_create(part, &model->from_devices[h]);
  }
  mp_free(members);
  return status;
}

mp_status_t mp_model_host_link(const mp_model_program_t *program, mp_chip_links_t *links) {
  const mp_model_t *model = program->model;
  uint32_t most = 0;
  uint32_t *members = mp_calloc((size_t)mp_pod_info(model->pod)->num_hosts, sizeof(*members));
  MP_RETURN_IF_NULL(members);
  for (uint32_t i = 0; i < program->num_devices; ++i) {
    const uint32_t count = ++members[model_transfer_host_of(model, (uint32_t)program->ids[i])];
    if (count > most) most = count;
  }
  mp_free(members);
  links->host_bandwidth = model_transfer_link_rate(model, &links->host_latency);
  const double bandwidth = model_transfer_shared(model, links->host_bandwidth);
  if (bandwidth > 0) links->host_bandwidth = fmin(links->host_bandwidth, bandwidth / most);
  return NULL;
}

static void model_transfer_free_flows(mp_host_flows_t **flows, uint32_t count) {
  for (uint32_t h = 0; flows != NULL && h < count; ++h) mp_host_flows_release(flows[h]);
  mp_free(flows);
}

void mp_model_free_hosts(mp_model_t *model) {
  const uint32_t count = (uint32_t)mp_pod_info(model->pod)->num_hosts;
  model_transfer_free_flows(model->to_devices, count);
  model_transfer_free_flows(model->from_devices, count);
}

// ---- Alone ----

static mp_network_end_t model_transfer_end(const mp_model_t *model, mp_model_place_t place) {
  if (place.space == MP_MEMORY_DEVICE) return mp_network_device((int32_t)place.device);
  return mp_network_host(model_transfer_host_of(model, place.device));
}

// What is peculiar to transfers of which one end is a device and the other one host memory.
static void model_transfer_add_host(const mp_model_t *model, const mp_entry_t *entry,
                                    cost_t *cost) {
  const mp_chip_figures_t *figures = &model->chip.figures;
  cost->is_to_host = entry->to.space != MP_MEMORY_DEVICE;
  const mp_memory_space_t space = cost->is_to_host ? entry->to.space : entry->from.space;
  const double rate = cost->is_to_host ? figures->host_get : figures->host_put;
  cost->passes = model_transfer_passes(model, space);
  cost->latency += mp_figure_or(figures->host_latency, 0);
  cost->seconds /= mp_figure_or(figures->host_share, 1);
  // A copy through buffers that are pinned: as slow as the slower one of its two parts.
  if (space == MP_MEMORY_UNPINNED_HOST && rate > 0) {
    cost->seconds = fmax(cost->seconds, (double)entry->bytes / rate);
  }
}

static cost_t model_transfer_cost(mp_model_t *model, const mp_entry_t *entry) {
  cost_t cost = {.is_with_host = (entry->from.space == MP_MEMORY_DEVICE) !=
                                 (entry->to.space == MP_MEMORY_DEVICE)};
  mp_network_t *network = NULL;
  mp_status_t status = mp_model_network_now(model, &network);
  if (status == NULL) {
    status =
        mp_network_message(network, model_transfer_end(model, entry->from),
                           model_transfer_end(model, entry->to), (double)entry->bytes, &cost.way);
  }
  if (status != NULL) {
    mp_status_release(status);
    model->lost += 1;
    return (cost_t){0};
  }
  mp_transfer_t flowing = cost.way;
  flowing.latency = 0;
  cost.latency = cost.way.latency;
  cost.seconds = mp_flows_transfer_alone(network, &flowing);
  if (cost.is_with_host) model_transfer_add_host(model, entry, &cost);
  return cost;
}

// ---- With others ----

// Everything that is under way at the host has new ends.
static mp_moment_t model_transfer_take_ends(mp_model_t *model, const mp_host_flows_t *flows,
                                            mp_moment_t *lanes, uint64_t number) {
  mp_moment_t end = 0;
  uint32_t count;
  const mp_host_flow_t *flow = mp_host_flows_list(flows, &count);
  for (uint32_t i = 0; i < count; ++i, ++flow) {
    mp_model_end_entry(model, flow->number, flow->end);
    lanes[flow->device] = mp_moment_later(lanes[flow->device], flow->end);
    if (flow->is_awaited) model->host = mp_moment_later(model->host, flow->end);
    if (flow->number == number) end = flow->end;
  }
  return end;
}

static bool model_transfer_is_under_way(const mp_host_flows_t *flows, uint32_t device) {
  uint32_t count;
  const mp_host_flow_t *flow = mp_host_flows_list(flows, &count);
  for (uint32_t i = 0; i < count; ++i) {
    if (flow[i].device == device) return true;
  }
  return false;
}

// Transfers to a device come one after the other, and so do those from it: when the last one ends.
static mp_moment_t *model_transfer_lane(const mp_model_t *model, const mp_entry_t *entry,
                                        const cost_t *cost) {
  return cost->is_to_host ? &model->outgoing[entry->from.device]
                          : &model->incoming[entry->to.device];
}

// What the transfer shares with others; NULL: nothing.
static mp_host_flows_t *model_transfer_flows(const mp_model_t *model, const mp_entry_t *entry,
                                             const cost_t *cost) {
  mp_host_flows_t **hosts = cost->is_to_host ? model->from_devices : model->to_devices;
  if (hosts == NULL || !cost->is_with_host || entry->bytes <= TRANSFER_SMALL) return NULL;
  const mp_model_place_t place = cost->is_to_host ? entry->from : entry->to;
  return hosts[model_transfer_host_of(model, place.device)];
}

static mp_status_t model_transfer_share(mp_model_t *model, const mp_entry_t *entry,
                                        const cost_t *cost, mp_host_flows_t *flows,
                                        mp_moment_t ready) {
  const bool is_read = entry->kind == MP_ENTRY_GET;
  const uint32_t device = cost->is_to_host ? entry->from.device : entry->to.device;
  mp_host_flows_advance(flows, is_read ? model->reading_since : model->host);
  const bool is_behind = model_transfer_is_under_way(flows, device);
  const mp_moment_t last = *model_transfer_lane(model, entry, cost);
  const mp_host_flow_t flow = {.device = device,
                               .is_awaited = is_read,
                               .number = entry->number,
                               .begin = is_behind ? ready : mp_moment_later(ready, last),
                               .latency = cost->latency,
                               .bytes = cost->passes * (double)entry->bytes,
                               .rate = cost->passes * (double)entry->bytes / cost->seconds};
  return mp_host_flows_add(flows, &flow);
}

// Puts the transfer behind others. `ready`: not earlier. The result is when it is over.
static mp_moment_t model_transfer_queue(mp_model_t *model, const mp_entry_t *entry,
                                        const cost_t *cost, mp_moment_t ready,
                                        mp_moment_t *out_begin) {
  mp_moment_t *lane = model_transfer_lane(model, entry, cost);
  *out_begin = mp_moment_later(ready, *lane);
  mp_host_flows_t *flows = model_transfer_flows(model, entry, cost);
  if (flows != NULL) {
    mp_status_t status = model_transfer_share(model, entry, cost, flows, ready);
    if (status == NULL) {
      mp_moment_t *lanes = cost->is_to_host ? model->outgoing : model->incoming;
      return model_transfer_take_ends(model, flows, lanes, entry->number);
    }
    mp_status_release(status);
    model->lost += 1;
  }
  *lane = *out_begin + mp_moment_of(cost->latency + cost->seconds);
  return *lane;
}

// ---- Entries ----

static void model_transfer_tell(const mp_model_t *model, const mp_entry_t *entry,
                                const cost_t *cost, mp_moment_t begin, mp_moment_t end) {
  const bool is_at_device = cost->is_with_host || entry->to.space == MP_MEMORY_DEVICE;
  if (!model->is_observed || entry->bytes == 0 || !is_at_device) return;
  mp_model_transfer_t told = {.kind = MP_TRANSFER_COPY,
                              .device = entry->to.device,
                              .bytes = entry->bytes,
                              .num_uses = cost->way.num_uses,
                              .uses = cost->way.uses};
  if (cost->is_with_host) told.kind = cost->is_to_host ? MP_TRANSFER_GET : MP_TRANSFER_PUT;
  if (cost->is_to_host) told.device = entry->from.device;
  model->observer.on_transfer(model->observer.context, &told, begin, end);
}

// There are no waiters for it.
static mp_moment_t model_transfer_copy(mp_model_t *model, const mp_entry_t *entry) {
  const cost_t cost = model_transfer_cost(model, entry);
  mp_moment_t begin = mp_moment_later(model->host, mp_model_end_of(model, entry->source)), end;
  if (cost.is_with_host || entry->to.space == MP_MEMORY_DEVICE) {
    end = model_transfer_queue(model, entry, &cost, begin, &begin);
  } else {
    end = begin + mp_moment_of(cost.latency + cost.seconds);
  }
  mp_model_begin_entry(model, entry, begin);
  model_transfer_tell(model, entry, &cost, begin, end);
  return end;
}

// The host reads from a device. Reads that come after each other go on at the same time: all of
// them begin when the first could.
static mp_moment_t model_transfer_get(mp_model_t *model, const mp_entry_t *entry) {
  const mp_moment_t host = model->host;
  mp_moment_t begin = mp_moment_later(model->reading_since, mp_model_end_of(model, entry->source));
  mp_moment_t end = begin;
  cost_t cost = {0};
  if (entry->bytes != 0) {
    cost = model_transfer_cost(model, entry);
    end = model_transfer_queue(model, entry, &cost, begin, &begin);
  }
  model->host = mp_moment_later(model->host, end);
  mp_model_begin_entry(model, entry, mp_moment_later(begin, host));
  model_transfer_tell(model, entry, &cost, begin, end);
  return end;
}

mp_moment_t mp_model_transfer(mp_model_t *model, const mp_entry_t *entry) {
  return entry->kind == MP_ENTRY_GET ? model_transfer_get(model, entry)
                                     : model_transfer_copy(model, entry);
}
