#include "sim/model/network/network.h"

#include <string.h>

#include "sim/base/assert.h"
#include "sim/base/hash.h"
#include "sim/model/network/network_impl.h"

const char *mp_algorithm_name(mp_algorithm_t algorithm) {
  static const char *const names[] = {
#define ALGORITHM_TEXT(name, text) text,
      MP_ALGORITHMS(ALGORITHM_TEXT)
#undef ALGORITHM_TEXT
  };
  return names[algorithm];
}

static mp_status_t network_place_devices(mp_network_t *network) {
  const mp_pod_info_t *info = network->info;
  network->devices = MP_ARENA_ARRAY(network->arena, int32_t, (size_t)info->num_devices);
  MP_RETURN_IF_NULL(network->devices);
  for (int32_t id = 0; id < info->num_devices; ++id) {
    const mp_pod_device_t *device = mp_pod_device(network->pod, id);
    const size_t chip = mp_network_chip_of(network, device);
    network->devices[chip * (size_t)info->cores_per_chip + (size_t)device->core_on_chip] = id;
  }
  return NULL;
}

static mp_status_t network_init(mp_network_t *network) {
  MP_RETURN_IF_ERROR(mp_arena_create(&network->arena));
  MP_RETURN_IF_ERROR(mp_arena_create(&network->scratch));
  MP_RETURN_IF_ERROR(mp_chip_figures_find(mp_str(network->info->chip), &network->figures));
  MP_RETURN_IF_ERROR(network_place_devices(network));
  MP_RETURN_IF_ERROR(mp_network_graph_build(network));
  network->loads = mp_calloc(network->links.count, sizeof(*network->loads));
  MP_RETURN_IF_NULL(network->loads);
  network->stage_seconds = mp_calloc(network->links.count, sizeof(*network->stage_seconds));
  MP_RETURN_IF_NULL(network->stage_seconds);
  return NULL;
}

mp_status_t mp_network_create(mp_pod_t *pod, const mp_network_options_t *options,
                              mp_network_t **out_network) {
  mp_network_t *network = mp_calloc(1, sizeof(*network));
  MP_RETURN_IF_NULL(network);
  network->pod = mp_pod_retain(pod);
  network->info = mp_pod_info(pod);
  if (options != NULL) network->options = *options;
  mp_status_t status = network_init(network);
  if (status != NULL) {
    mp_network_release(network);
    return status;
  }
  *out_network = network;
  return NULL;
}

mp_status_t mp_network_create_changed(mp_network_t *network, uint32_t num_changes,
                                      const mp_network_change_t *changes,
                                      mp_network_t **out_network) {
  mp_network_t *changed = NULL;
  MP_RETURN_IF_ERROR(mp_network_create(network->pod, &network->options, &changed));
  changed->unchanged = network;
  for (uint32_t i = 0; i < num_changes; ++i) {
    mp_network_link_apply(&changed->links.items[changes[i].link], &changes[i]);
  }
  *out_network = changed;
  return NULL;
}

void mp_network_release(mp_network_t *network) {
  if (network == NULL) return;
  MP_HASH_MAP_FREE(&network->traffics);
  MP_HASH_MAP_FREE(&network->messages);
  MP_HASH_MAP_FREE(&network->choices);
  MP_HASH_MAP_FREE(&network->pairs);
  MP_ARRAY_FREE(&network->links);
  mp_free(network->loads);
  mp_free(network->stage_seconds);
  mp_arena_release(network->scratch);
  mp_arena_release(network->arena);
  mp_pod_release(network->pod);
  mp_free(network);
}

const mp_pod_t *mp_network_pod(const mp_network_t *network) {
  return network->pod;
}

uint32_t mp_network_num_links(const mp_network_t *network) {
  return network->links.count;
}

const mp_network_link_t *mp_network_link(const mp_network_t *network, uint32_t link) {
  MP_ASSERT(link < network->links.count);
  return &network->links.items[link];
}

bool mp_network_find_link(const mp_network_t *network, const char *name, uint32_t *out_link) {
  for (uint32_t i = 0; i < network->links.count; ++i) {
    if (strcmp(network->links.items[i].name, name) != 0) continue;
    *out_link = i;
    return true;
  }
  return false;
}

uint32_t mp_network_num_vertices(const mp_network_t *network) {
  return network->num_vertices;
}

// ---- What is kept ----

const void *mp_network_cache_find(const mp_network_cache_t *cache, const void *key, size_t size) {
  const mp_network_known_t *known;
  MP_HASH_MAP_EACH(cache, mp_hash_bytes(MP_HASH_START, key, size), known) {
    if (known->key_size == size && memcmp(known->key, key, size) == 0) return known->value;
  }
  return NULL;
}

mp_status_t mp_network_cache_add(mp_network_t *network, mp_network_cache_t *cache, const void *key,
                                 size_t size, const void *value) {
  const void *kept = mp_arena_copy(network->arena, key, size);
  MP_RETURN_IF_NULL(kept);
  return MP_HASH_MAP_ADD(
      NULL, cache,
      &(mp_network_known_t){mp_hash_bytes(MP_HASH_START, key, size), size, kept, value});
}

// ---- Messages ----

static mp_status_t network_make_message(mp_network_t *network, mp_network_end_t from,
                                        mp_network_end_t to, mp_network_route_t *route,
                                        const mp_transfer_t **out_transfer) {
  double latency;
  MP_RETURN_IF_ERROR(mp_network_route(network, from, to, route, &latency));
  mp_transfer_t *transfer = MP_ARENA_NEW(network->arena, mp_transfer_t);
  mp_network_use_t *uses = MP_ARENA_ARRAY(network->arena, mp_network_use_t, route->count);
  if (transfer == NULL || uses == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < route->count; ++i) uses[i] = (mp_network_use_t){route->items[i], 1};
  *transfer = (mp_transfer_t){
      .source = from.is_host ? -1 : from.index,
      .target = to.is_host ? -1 : to.index,
      .latency = latency,
      .num_uses = route->count,
      .uses = uses,
  };
  *out_transfer = transfer;
  return NULL;
}

// What the links of a message let through.
static double network_rate(const mp_network_t *network, const mp_transfer_t *message) {
  double rate = INFINITY;
  for (uint32_t i = 0; i < message->num_uses; ++i) {
    const double bandwidth = network->links.items[message->uses[i].link].bandwidth;
    if (bandwidth < rate) rate = bandwidth;
  }
  return rate;
}

mp_status_t mp_network_message(mp_network_t *network, mp_network_end_t from, mp_network_end_t to,
                               double bytes, mp_transfer_t *out_transfer) {
  const int32_t key[] = {from.is_host, from.index, to.is_host, to.index};
  const mp_transfer_t *known = mp_network_cache_find(&network->messages, key, sizeof(key));
  if (known == NULL) {
    mp_network_route_t route = {0};
    mp_status_t status = network_make_message(network, from, to, &route, &known);
    MP_ARRAY_FREE(&route);
    if (status != NULL) return status;
    MP_RETURN_IF_ERROR(mp_network_cache_add(network, &network->messages, key, sizeof(key), known));
  }
  *out_transfer = *known;
  out_transfer->bytes = bytes;
  if (!from.is_host && !to.is_host && known->num_uses != 0) {
    out_transfer->latency +=
        mp_network_message_overhead(network, network_rate(network, known), bytes);
  }
  return NULL;
}
