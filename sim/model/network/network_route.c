// The ways of messages.
#include "sim/base/assert.h"
#include "sim/model/network/network_impl.h"

// A way under construction.
typedef struct {
  const mp_network_t *network;
  uint32_t source, target;  // chips
  mp_network_route_t *links;
  double latency;
} way_t;

static mp_status_t network_route_take(way_t *way, uint32_t link) {
  MP_ASSERT(link < way->network->links.count);
  way->latency += way->network->links.items[link].latency;
  return MP_ARRAY_PUSH(NULL, way->links, link);
}

// Which of two equally long ways round a ring a message takes. One message takes one of them; when
// all send to all, or all by the same distance, half of the messages take either.
static bool network_route_ties_down(const way_t *way, uint32_t axis) {
  uint32_t sum = mp_network_at(way->network, way->source, axis);
  for (uint32_t d = 0; d < way->network->num_axes; ++d) {
    if (d == axis) continue;
    sum +=
        mp_network_at(way->network, way->source, d) + mp_network_at(way->network, way->target, d);
  }
  return sum % 2 != 0;
}

uint32_t mp_network_hops(const mp_network_axis_t *axis, uint32_t from, uint32_t to,
                         bool *out_is_down, bool *out_is_tie) {
  const bool is_down = to < from;
  const uint32_t hops = is_down ? from - to : to - from;
  const uint32_t other = mp_network_wraps(axis) ? axis->size - hops : UINT32_MAX;
  *out_is_tie = other == hops;
  *out_is_down = other < hops ? !is_down : is_down;
  return other < hops ? other : hops;
}

// From chip to chip along a line of neighbours.
static mp_status_t network_route_line(way_t *way, uint32_t from, uint32_t to, uint32_t axis) {
  const mp_network_t *network = way->network;
  bool is_down, is_tie;
  uint32_t hops = mp_network_hops(&network->axes[axis], mp_network_at(network, from, axis),
                                  mp_network_at(network, to, axis), &is_down, &is_tie);
  if (is_tie) is_down = network_route_ties_down(way, axis);
  const uint32_t *ways = network->ways + network->axes[axis].first_way + is_down;
  for (uint32_t chip = from; hops > 0; --hops) {
    const uint32_t link = ways[(size_t)chip * network->ways_per_chip];
    MP_RETURN_IF_ERROR(network_route_take(way, link));
    chip = network->links.items[link].to;
  }
  return NULL;
}

static mp_status_t network_route_switch(way_t *way, uint32_t from, uint32_t to, uint32_t axis) {
  const mp_network_t *network = way->network;
  const uint32_t *ways = network->ways + network->axes[axis].first_way;
  MP_RETURN_IF_ERROR(network_route_take(way, ways[(size_t)from * network->ways_per_chip]));
  return network_route_take(way, ways[(size_t)to * network->ways_per_chip + 1]);
}

// From chip to chip of a line along an axis.
static mp_status_t network_route_axis(way_t *way, uint32_t from, uint32_t to, uint32_t axis) {
  const mp_network_t *network = way->network;
  const mp_network_axis_t *along = &network->axes[axis];
  switch (along->wiring) {
    case MP_WIRING_SWITCH:
      return network_route_switch(way, from, to, axis);
    case MP_WIRING_FULLY_CONNECTED:
      return network_route_take(
          way, network->ways[(size_t)from * network->ways_per_chip + along->first_way +
                             mp_network_way_to(mp_network_at(network, from, axis),
                                               mp_network_at(network, to, axis))]);
    default:
      return network_route_line(way, from, to, axis);
  }
}

// Axis by axis, the first one first.
static mp_status_t network_route_in_slice(way_t *way) {
  const mp_network_t *network = way->network;
  if (way->source == way->target) {
    return network_route_take(way, network->first_chip_link + way->source);
  }
  for (uint32_t d = 0, chip = way->source; d < network->num_axes; ++d) {
    const mp_network_axis_t *axis = &network->axes[d];
    const uint32_t a = mp_network_at(network, chip, d), b = mp_network_at(network, way->target, d);
    if (a == b) continue;
    const uint32_t turn = chip - a * axis->stride + b * axis->stride;
    MP_RETURN_IF_ERROR(network_route_axis(way, chip, turn, d));
    chip = turn;
  }
  return NULL;
}

static mp_status_t network_route_between_hosts(way_t *way, uint32_t from, uint32_t to) {
  const mp_network_t *network = way->network;
  if (from == to) return NULL;
  const uint32_t from_leaf = from / network->hosts_per_leaf, to_leaf = to / network->hosts_per_leaf;
  MP_RETURN_IF_ERROR(network_route_take(way, network->first_nic_link + 2 * from));
  if (from_leaf != to_leaf) {
    MP_RETURN_IF_ERROR(network_route_take(way, network->first_leaf_link + 2 * from_leaf));
    MP_RETURN_IF_ERROR(network_route_take(way, network->first_leaf_link + 2 * to_leaf + 1));
  }
  return network_route_take(way, network->first_nic_link + 2 * to + 1);
}

// From an end to its host, to the other end's host, and to that end. NULL: the end is the host.
static mp_status_t network_route_by_hosts(way_t *way, const mp_pod_device_t *source,
                                          uint32_t from_host, const mp_pod_device_t *target,
                                          uint32_t to_host) {
  const uint32_t host_link = way->network->first_host_link;
  if (source != NULL) {
    MP_RETURN_IF_ERROR(network_route_take(way, host_link + 2 * (uint32_t)source->id));
  }
  MP_RETURN_IF_ERROR(network_route_between_hosts(way, from_host, to_host));
  return target == NULL ? NULL : network_route_take(way, host_link + 2 * (uint32_t)target->id + 1);
}

mp_status_t mp_network_route(const mp_network_t *network, mp_network_end_t from,
                             mp_network_end_t to, mp_network_route_t *route, double *out_latency) {
  way_t way = {.network = network, .links = route};
  const mp_pod_device_t *source = from.is_host ? NULL : mp_pod_device(network->pod, from.index);
  const mp_pod_device_t *target = to.is_host ? NULL : mp_pod_device(network->pod, to.index);
  if (from.is_host == to.is_host && from.index == to.index) {
    // Nothing to do.
  } else if (source != NULL && target != NULL && source->slice_index == target->slice_index) {
    way.source = mp_network_chip_of(network, source);
    way.target = mp_network_chip_of(network, target);
    MP_RETURN_IF_ERROR(network_route_in_slice(&way));
  } else {
    const int32_t from_host = source != NULL ? source->host_index : from.index;
    const int32_t to_host = target != NULL ? target->host_index : to.index;
    MP_RETURN_IF_ERROR(
        network_route_by_hosts(&way, source, (uint32_t)from_host, target, (uint32_t)to_host));
  }
  *out_latency = way.latency;
  return NULL;
}

uint32_t mp_network_diameter(const mp_network_t *network) {
  uint32_t hops = 0;
  for (uint32_t d = 0; d < network->num_axes; ++d) {
    const mp_network_axis_t *axis = &network->axes[d];
    switch (axis->wiring) {
      case MP_WIRING_SWITCH:
        hops += 2;
        break;
      case MP_WIRING_FULLY_CONNECTED:
        hops += 1;
        break;
      default:
        hops += mp_network_wraps(axis) ? axis->size / 2 : axis->size - 1;
    }
  }
  return hops > 6 ? hops : 6;  // between slices: links of two devices, two hosts and two leaves
}
