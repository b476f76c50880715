#include "sim/mosaic/run/mosaic_peers.h"

#include <string.h>

#include "sim/base/alloc.h"

// ---- coming and going ----

mp_status_t mp_mosaic_peers_create(const char *kernel, size_t part_bytes, uint32_t num_args,
                                   const mp_talk_link_t *link, mp_mosaic_peers_t **out_peers) {
  const size_t count = link->num_devices;
  mp_mosaic_peers_t *peers = mp_calloc(1, sizeof(*peers) + count * sizeof(mp_mosaic_peer_t) +
                                              count * num_args * sizeof(mp_mosaic_arg_t));
  MP_RETURN_IF_NULL(peers);
  peers->kernel = kernel;
  peers->link = *link;
  peers->part_bytes = part_bytes;
  peers->num_args = num_args;
  peers->peers = (mp_mosaic_peer_t *)(peers + 1);
  mp_mosaic_arg_t *args = (mp_mosaic_arg_t *)(peers->peers + count);
  mp_lock_init(&peers->lock, MP_LOCK_TALK);
  for (size_t i = 0; i < count; ++i) {
    mp_lock_init(&peers->peers[i].memory, MP_LOCK_TALK_MEMORY);
    peers->peers[i].args = args + i * num_args;
  }
  *out_peers = peers;
  return NULL;
}

void mp_mosaic_peers_release(mp_mosaic_peers_t *peers) {
  if (peers == NULL) return;
  for (uint32_t i = 0; i < peers->link.num_devices; ++i) {
    mp_lock_deinit(&peers->peers[i].memory);
    MP_ARRAY_FREE(&peers->peers[i].incoming);
  }
  mp_mosaic_clocks_destroy(peers->clocks);
  mp_status_release(peers->failure);
  mp_lock_deinit(&peers->lock);
  mp_free(peers);
}

static void mosaic_peers_wake(const mp_mosaic_peers_t *peers, uint32_t device) {
  peers->link.wake(peers->link.context, device);
}

mp_status_t mp_mosaic_peers_watch(mp_mosaic_peers_t *peers, const mp_mosaic_program_t *program) {
  peers->watched = program;
  for (uint32_t i = 0; i < peers->link.num_devices; ++i) {
    if (peers->link.is_far(peers->link.context, i)) return NULL;
  }
  return mp_mosaic_clocks_create(peers->link.num_devices, &peers->clocks);
}

void mp_mosaic_peers_enter(mp_mosaic_peers_t *peers, uint32_t device, char *part,
                           mp_mosaic_watcher_t *watcher) {
  mp_mosaic_peer_t *peer = &peers->peers[device];
  mp_lock(&peers->lock);
  MP_ASSERT(peer->presence == MP_MOSAIC_NOT_YET);
  peer->presence = MP_MOSAIC_INSIDE;
  peer->part = part;
  peer->watcher = watcher;
  const bool is_awaited = peers->num_waiting_for_peers != 0;
  mp_unlock(&peers->lock);
  // One that begins to wait later finds the device inside (mp_mosaic_peers_may_go_on).
  for (uint32_t i = 0; is_awaited && i < peers->link.num_devices; ++i) mosaic_peers_wake(peers, i);
}

void mp_mosaic_peers_move(mp_mosaic_peers_t *peers, uint32_t device, const mp_mosaic_arg_t *args) {
  mp_lock(&peers->lock);
  memcpy(peers->peers[device].args, args, peers->num_args * sizeof(*args));
  mp_unlock(&peers->lock);
}

void mp_mosaic_peers_leave(mp_mosaic_peers_t *peers, uint32_t device) {
  mp_mosaic_peer_t *peer = &peers->peers[device];
  mp_lock(&peer->memory);
  mp_lock(&peers->lock);
  if (peer->presence == MP_MOSAIC_INSIDE) peer->presence = MP_MOSAIC_GONE;
  mp_unlock(&peers->lock);
  mp_unlock(&peer->memory);
}

void mp_mosaic_peers_fail(mp_mosaic_peers_t *peers, uint32_t device, mp_status_t status) {
  mp_lock(&peers->lock);
  if (peers->failure == NULL) {
    peers->failure = mp_status_make(mp_status_code(status), "device %u has failed: %s",
                                    peers->link.names[device], mp_status_message(status));
  }
  mp_unlock(&peers->lock);
}

// ---- waiting ----

// Under the lock.
static bool mosaic_peers_is_met(const mp_mosaic_peers_t *peers, uint32_t device) {
  const mp_mosaic_wait_t *wait = &peers->peers[device].wait;
  switch (wait->kind) {
    case MP_MOSAIC_WAITS_FOR_SEMAPHORE:
      return *wait->semaphore >= wait->wanted;
    case MP_MOSAIC_WAITS_FOR_PEER:
      return peers->peers[wait->peer].presence != MP_MOSAIC_NOT_YET;
    case MP_MOSAIC_WAITS_FOR_CHANGE:
      return peers->peers[device].changes != wait->changes;
    default:
      return true;
  }
}

bool mp_mosaic_peers_may_go_on(mp_mosaic_peers_t *peers, uint32_t device) {
  mp_lock(&peers->lock);
  const bool may = mosaic_peers_is_met(peers, device);
  mp_unlock(&peers->lock);
  return may;
}

mp_mosaic_wait_t mp_mosaic_peers_wait(mp_mosaic_peers_t *peers, uint32_t device,
                                      int64_t *out_value) {
  mp_lock(&peers->lock);
  const mp_mosaic_wait_t wait = peers->peers[device].wait;
  *out_value = wait.semaphore == NULL ? 0 : *wait.semaphore;
  mp_unlock(&peers->lock);
  return wait;
}

uint64_t mp_mosaic_peers_changes(mp_mosaic_peers_t *peers, uint32_t device) {
  mp_lock(&peers->lock);
  const uint64_t changes = peers->peers[device].changes;
  mp_unlock(&peers->lock);
  return changes;
}

bool mp_mosaic_peers_await_change(mp_mosaic_peers_t *peers, uint32_t device,
                                  const int64_t *semaphore, uint64_t changes) {
  const mp_mosaic_wait_t wait = {
      .kind = MP_MOSAIC_WAITS_FOR_CHANGE, .semaphore = semaphore, .changes = changes};
  mp_lock(&peers->lock);
  const bool waits = peers->peers[device].changes == changes;
  if (waits) mp_mosaic_peers_set_wait(peers, device, wait);
  mp_unlock(&peers->lock);
  return waits;
}

// Under the lock.
void mp_mosaic_peers_set_wait(mp_mosaic_peers_t *peers, uint32_t device, mp_mosaic_wait_t wait) {
  mp_mosaic_wait_t *old = &peers->peers[device].wait;
  mp_lock_assert_held(&peers->lock);
  peers->num_waiting_for_peers -= old->kind == MP_MOSAIC_WAITS_FOR_PEER;
  peers->num_waiting_for_peers += wait.kind == MP_MOSAIC_WAITS_FOR_PEER;
  *old = wait;
}

bool mp_mosaic_peers_signal(mp_mosaic_peers_t *peers, uint32_t device, int64_t *semaphore,
                            int64_t count) {
  mp_mosaic_wait_t *wait = &peers->peers[device].wait;
  mp_lock_assert_held(&peers->lock);
  *semaphore = (int64_t)((uint64_t)*semaphore + (uint64_t)count);
  peers->peers[device].changes += 1;
  if (wait->kind == MP_MOSAIC_WAITS_FOR_CHANGE) {
    wait->kind = MP_MOSAIC_WAITS_NOT;
    return true;
  }
  return wait->kind == MP_MOSAIC_WAITS_FOR_SEMAPHORE && wait->semaphore == semaphore &&
         *semaphore >= wait->wanted;
}

// ---- for checks ----

mp_status_t mp_mosaic_peers_add_incoming(mp_mosaic_peers_t *peers, uint32_t device,
                                         const mp_mosaic_incoming_t *incoming) {
  mp_lock_assert_held(&peers->lock);
  if (peers->watched == NULL) return NULL;
  return MP_ARRAY_PUSH(NULL, &peers->peers[device].incoming, *incoming);
}

void mp_mosaic_peers_take_incoming(mp_mosaic_peers_t *peers, uint32_t device,
                                   mp_mosaic_incomings_t *out) {
  mp_lock(&peers->lock);
  *out = peers->peers[device].incoming;
  peers->peers[device].incoming = (mp_mosaic_incomings_t){0};
  mp_unlock(&peers->lock);
}

// ---- the same place on another device ----

static bool mosaic_peers_is_in_part(const mp_mosaic_peers_t *peers, const mp_mosaic_peer_t *peer,
                                    const char *address) {
  return address >= peer->part && address < peer->part + peers->part_bytes;
}

mp_status_t mp_mosaic_peers_spot(const mp_mosaic_peers_t *peers, uint32_t device,
                                 const mp_mosaic_view_t *view, mp_mosaic_spot_t *out_spot) {
  const mp_mosaic_peer_t *peer = &peers->peers[device];
  mp_lock_assert_held(&peers->lock);
  mp_mosaic_spot_t spot = {.root = view->root};
  if (view->root < peers->num_args) spot.block = peer->args[view->root].block;
  spot.is_in_part = mosaic_peers_is_in_part(peers, peer, view->base);
  if (spot.is_in_part) {
    spot.offset = view->base - peer->part;
  } else if (view->root < peers->num_args) {
    spot.offset = view->base - peer->args[view->root].base;
  } else if (view->root != MP_MOSAIC_BARRIER && view->root != MP_MOSAIC_ENDS) {
    return mp_status_make(MP_INTERNAL, "memory that other devices cannot reach");
  }
  *out_spot = spot;
  return NULL;
}

mp_status_t mp_mosaic_peers_find(const mp_mosaic_peers_t *peers, uint32_t device,
                                 const mp_mosaic_spot_t *spot, char **out_address) {
  mp_mosaic_peer_t *peer = &peers->peers[device];
  mp_lock_assert_held(&peers->lock);
  const mp_mosaic_arg_t *arg = spot->root < peers->num_args ? &peer->args[spot->root] : NULL;
  if (arg != NULL && arg->block != spot->block) {
    return mp_status_make(MP_UNIMPLEMENTED,
                          "argument %u of the kernel is another block of its array on device %u",
                          spot->root, peers->link.names[device]);
  }
  if (spot->root == MP_MOSAIC_BARRIER) {
    *out_address = (char *)&peer->barrier;
  } else if (spot->root == MP_MOSAIC_ENDS) {
    *out_address = (char *)&peer->ends;
  } else {
    *out_address = (spot->is_in_part ? peer->part : arg->base) + spot->offset;
  }
  return NULL;
}
