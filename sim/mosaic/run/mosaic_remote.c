// DMAs and semaphores of kernels that communicate: all semaphores are changed under the lock of the
// peers, since other devices may signal any of them.
#include "sim/mosaic/run/mosaic_peers.h"
#include "sim/mosaic/run/mosaic_step.h"
#include "sim/mosaic/run/mosaic_view.h"

// ---- devices ----

static mp_status_t mosaic_remote_device(const mp_mosaic_instruction_t *in,
                                        const mp_mosaic_state_t *state, uint32_t *out_device) {
  const int64_t device = state->registers[in->target];
  const uint32_t num_devices = state->peers->link.num_devices;
  if (in->value >= 0 && state->registers[in->value] != 0) {
    return mp_status_make(MP_UNIMPLEMENTED, "core %lld: devices have one core",
                          (long long)state->registers[in->value]);
  }
  if (device < 0 || device >= (int64_t)num_devices) {
    return mp_status_make(MP_OUT_OF_RANGE, "device %lld: the program runs on %u devices",
                          (long long)device, num_devices);
  }
  *out_device = (uint32_t)device;
  return NULL;
}

// Under the lock. Whether the device can be reached; if not yet, the run waits for it.
static mp_status_t mosaic_remote_is_inside(mp_mosaic_state_t *state, uint32_t device,
                                           bool *out_blocks) {
  mp_mosaic_peers_t *peers = state->peers;
  const mp_mosaic_presence_t presence = peers->peers[device].presence;
  *out_blocks = presence == MP_MOSAIC_NOT_YET;
  const mp_mosaic_wait_t wait = {
      .kind = *out_blocks ? MP_MOSAIC_WAITS_FOR_PEER : MP_MOSAIC_WAITS_NOT, .peer = device};
  mp_mosaic_peers_set_wait(peers, state->device, wait);
  if (presence != MP_MOSAIC_GONE) return NULL;
  if (peers->failure != NULL) {  // which is why it has gone
    return mp_status_make(mp_status_code(peers->failure), "%s", mp_status_message(peers->failure));
  }
  return mp_status_make(MP_FAILED_PRECONDITION,
                        "device %u has ended the kernel '%s' before device %u did this",
                        peers->link.names[device], peers->kernel, peers->link.names[state->device]);
}

static void mosaic_remote_wake(const mp_mosaic_peers_t *peers, uint32_t device) {
  peers->link.wake(peers->link.context, device);
}

// Under the lock: what is `view` here, on a device that can be reached.
static mp_status_t mosaic_remote_reach(const mp_mosaic_state_t *state, uint32_t device,
                                       const mp_mosaic_view_t *view, mp_mosaic_view_t *out_view) {
  mp_mosaic_spot_t spot;
  mp_mosaic_view_t there = *view;
  MP_RETURN_IF_ERROR(mp_mosaic_peers_spot(state->peers, state->device, view, &spot));
  MP_RETURN_IF_ERROR(mp_mosaic_peers_find(state->peers, device, &spot, &there.base));
  *out_view = there;
  return NULL;
}

static bool mosaic_remote_is_far(const mp_mosaic_state_t *state, uint32_t device) {
  return state->peers->link.is_far(state->peers->link.context, device);
}

// ---- signals ----

// Under the lock: adds to the device's semaphore that is `semaphore` here.
static mp_status_t mosaic_remote_add(mp_mosaic_state_t *state, uint32_t device,
                                     const mp_mosaic_view_t *semaphore, int64_t count,
                                     bool *out_wakes) {
  mp_mosaic_view_t there;
  MP_RETURN_IF_ERROR(mosaic_remote_reach(state, device, semaphore, &there));
  if (state->peers->clocks != NULL) {
    MP_RETURN_IF_ERROR(
        mp_mosaic_clocks_release(state->peers->clocks, state->device, (const int64_t *)there.base));
  }
  *out_wakes = mp_mosaic_peers_signal(state->peers, device, (int64_t *)there.base, count);
  return NULL;
}

static mp_status_t mosaic_remote_signal(const mp_mosaic_instruction_t *in, mp_mosaic_state_t *state,
                                        bool *out_blocks) {
  const mp_mosaic_view_t *semaphore = &state->views[in->c];
  mp_status_t status = NULL;
  bool wakes = false;
  uint32_t device = 0;
  MP_RETURN_IF_ERROR(mosaic_remote_device(in, state, &device));
  if (mosaic_remote_is_far(state, device)) {
    return mp_mosaic_message_signal(state, device, semaphore, state->registers[in->a]);
  }
  mp_lock(&state->peers->lock);
  if (semaphore->root != MP_MOSAIC_BARRIER) {
    status = mosaic_remote_is_inside(state, device, out_blocks);
  }
  if (status == NULL && !*out_blocks) {
    status = mosaic_remote_add(state, device, semaphore, state->registers[in->a], &wakes);
  }
  mp_unlock(&state->peers->lock);
  if (wakes) mosaic_remote_wake(state->peers, device);
  return status;
}

// ---- DMAs ----

// Under the lock: tells the device's check of the DMA.
static mp_status_t mosaic_remote_tell(const mp_mosaic_instruction_t *in,
                                      const mp_mosaic_state_t *state, uint32_t device,
                                      const mp_mosaic_view_t *target) {
  mp_mosaic_view_t semaphore;
  const mp_mosaic_peers_t *peers = state->peers;
  if (peers->watched == NULL) return NULL;
  mp_mosaic_watcher_t *watcher = peers->peers[device].watcher;
  if (peers->clocks != NULL && watcher != NULL) {
    mp_status_t status = watcher->comes(
        watcher, target, mp_mosaic_clocks_known(peers->clocks, state->device, device));
    if (status != NULL) {
      return mp_status_annotate(status, "on device %u", peers->link.names[device]);
    }
  }
  MP_RETURN_IF_ERROR(mosaic_remote_reach(state, device, &state->views[in->c], &semaphore));
  const mp_mosaic_incoming_t incoming = {
      .from = state->device,
      .in = in,
      .target = *target,
      .semaphore = (const int64_t *)semaphore.base,
      .amount = mp_mosaic_async_amount(in, state, MP_MOSAIC_COUNTS_TARGET)};
  return mp_mosaic_peers_add_incoming(state->peers, device, &incoming);
}

// Copies to the device's memory, which stays there meanwhile.
static mp_status_t mosaic_remote_copy(const mp_mosaic_instruction_t *in, mp_mosaic_state_t *state,
                                      uint32_t device, bool *out_blocks) {
  mp_mosaic_peers_t *peers = state->peers;
  mp_mosaic_view_t there;
  mp_lock(&peers->peers[device].memory);
  mp_lock(&peers->lock);
  mp_status_t status = mosaic_remote_is_inside(state, device, out_blocks);
  if (status == NULL && !*out_blocks) {
    status = mosaic_remote_reach(state, device, &state->views[in->b], &there);
    if (status == NULL) status = mosaic_remote_tell(in, state, device, &there);
  }
  mp_unlock(&peers->lock);
  if (status == NULL && !*out_blocks) {
    status = mp_mosaic_view_dma(&there, &state->views[in->a], (mp_dtype_t)in->dtype);
  }
  mp_unlock(&peers->peers[device].memory);
  return status;
}

static mp_status_t mosaic_remote_arrive(const mp_mosaic_instruction_t *in, mp_mosaic_state_t *state,
                                        uint32_t device) {
  mp_mosaic_peers_t *peers = state->peers;
  bool blocks = false, wakes = false;
  mp_lock(&peers->lock);
  mp_status_t status = mosaic_remote_is_inside(state, device, &blocks);
  if (status == NULL) {
    const int64_t amount = mp_mosaic_async_amount(in, state, MP_MOSAIC_COUNTS_TARGET);
    status = mosaic_remote_add(state, device, &state->views[in->c], amount, &wakes);
  }
  mp_unlock(&peers->lock);
  if (wakes) mosaic_remote_wake(peers, device);
  return status;
}

static mp_status_t mosaic_remote_dma(const mp_mosaic_instruction_t *in, mp_mosaic_state_t *state,
                                     bool *out_blocks) {
  const mp_mosaic_view_t *views = state->views;
  uint32_t device = 0;
  int64_t *sent = NULL;
  MP_RETURN_IF_ERROR(mosaic_remote_device(in, state, &device));
  if (in->out != MP_MOSAIC_NONE) {
    MP_RETURN_IF_ERROR(mp_mosaic_async_semaphore(&views[in->out], &sent));
  }
  if (mosaic_remote_is_far(state, device)) {
    MP_RETURN_IF_ERROR(mp_mosaic_message_copy(state, device, in));
  } else {
    MP_RETURN_IF_ERROR(mosaic_remote_copy(in, state, device, out_blocks));
    if (*out_blocks) return NULL;
    MP_RETURN_IF_ERROR(mosaic_remote_arrive(in, state, device));
  }
  if (sent == NULL) return NULL;
  mp_lock(&state->peers->lock);
  *sent += mp_mosaic_async_amount(in, state, MP_MOSAIC_COUNTS_SOURCE);
  mp_unlock(&state->peers->lock);
  return NULL;
}

// ---- this device ----

// Under the lock: the device has seen what its semaphore tells.
static void mosaic_remote_acquire(const mp_mosaic_state_t *state, const int64_t *semaphore) {
  const mp_mosaic_clocks_t *clocks = state->peers->clocks;
  if (clocks != NULL) mp_mosaic_clocks_acquire(clocks, state->device, semaphore);
}

// Under the lock.
static void mosaic_remote_take(mp_mosaic_state_t *state, int64_t *semaphore, int64_t count,
                               bool *out_blocks) {
  mp_mosaic_wait_t wait = {.kind = MP_MOSAIC_WAITS_NOT};
  *out_blocks = *semaphore < count;
  if (*out_blocks) {
    wait = (mp_mosaic_wait_t){
        .kind = MP_MOSAIC_WAITS_FOR_SEMAPHORE, .semaphore = semaphore, .wanted = count};
  } else {
    *semaphore -= count;
    state->left = *semaphore;
    mosaic_remote_acquire(state, semaphore);
  }
  mp_mosaic_peers_set_wait(state->peers, state->device, wait);
}

static mp_status_t mosaic_remote_own(const mp_mosaic_instruction_t *in, mp_mosaic_state_t *state,
                                     bool *out_blocks) {
  const mp_mosaic_view_t *views = state->views;
  int64_t *semaphore = NULL;
  MP_RETURN_IF_ERROR(mp_mosaic_async_semaphore(&views[in->c], &semaphore));
  if (in->kind == MP_MOSAIC_DO_DMA) {
    MP_RETURN_IF_ERROR(mp_mosaic_view_dma(&views[in->b], &views[in->a], (mp_dtype_t)in->dtype));
  }
  mp_lock(&state->peers->lock);
  switch (in->kind) {
    case MP_MOSAIC_DO_DMA:
      *semaphore += mp_mosaic_async_amount(in, state, MP_MOSAIC_COUNTS_TARGET);
      break;
    case MP_MOSAIC_DO_WAIT_DMA:
      mosaic_remote_take(state, semaphore, mp_mosaic_async_bytes(in, &views[in->a]), out_blocks);
      break;
    case MP_MOSAIC_DO_SEM_READ:
      state->registers[in->out] = *semaphore;
      mosaic_remote_acquire(state, semaphore);
      break;
    case MP_MOSAIC_DO_SEM_SIGNAL:
      *semaphore += state->registers[in->a];
      break;
    default:
      mosaic_remote_take(state, semaphore, state->registers[in->a], out_blocks);
      break;
  }
  mp_unlock(&state->peers->lock);
  return NULL;
}

// ---- the end ----

mp_status_t mp_mosaic_peers_end(mp_mosaic_state_t *state) {
  mp_mosaic_peers_t *peers = state->peers;
  const mp_mosaic_view_t ends = {.root = MP_MOSAIC_ENDS};
  for (uint32_t device = 0; device < peers->link.num_devices; ++device) {
    if (device == state->device) continue;
    if (mosaic_remote_is_far(state, device)) {
      MP_RETURN_IF_ERROR(mp_mosaic_message_signal(state, device, &ends, 1));
      continue;
    }
    mp_lock(&peers->lock);
    const bool wakes = mp_mosaic_peers_signal(peers, device, &peers->peers[device].ends, 1);
    mp_unlock(&peers->lock);
    if (wakes) mosaic_remote_wake(peers, device);
  }
  return NULL;
}

bool mp_mosaic_peers_await_ends(mp_mosaic_peers_t *peers, uint32_t device) {
  const int64_t *ends = &peers->peers[device].ends;
  const mp_mosaic_wait_t wait = {.kind = MP_MOSAIC_WAITS_FOR_SEMAPHORE,
                                 .semaphore = ends,
                                 .wanted = (int64_t)peers->link.num_devices - 1};
  mp_lock(&peers->lock);
  const bool waits = *ends < wait.wanted;
  mp_mosaic_peers_set_wait(peers, device, wait);
  mp_unlock(&peers->lock);
  return waits;
}

mp_status_t mp_mosaic_peers_step(const mp_mosaic_instruction_t *in, mp_mosaic_state_t *state,
                                 bool *out_blocks) {
  switch (in->kind) {
    case MP_MOSAIC_DO_REMOTE_DMA:
      return mosaic_remote_dma(in, state, out_blocks);
    case MP_MOSAIC_DO_REMOTE_SIGNAL:
      return mosaic_remote_signal(in, state, out_blocks);
    case MP_MOSAIC_DO_BARRIER:
      mp_mosaic_view_dense(in->u.type, (char *)&state->peers->peers[state->device].barrier,
                           MP_MOSAIC_BARRIER, &state->views[in->out]);
      return NULL;
    default:
      return mosaic_remote_own(in, state, out_blocks);
  }
}
