// Where bytes are in the pod, and whether they can be transferred to another place.
#ifndef MINIPOD_SIM_RUNTIME_DEVICES_REACH_H_
#define MINIPOD_SIM_RUNTIME_DEVICES_REACH_H_

#include "sim/model/network/network.h"
#include "sim/runtime/devices/client_impl.h"

// Whether the client has faults (order/faulty.h).
static inline bool mp_client_is_faulty(const mp_client_t *client) {
  // Relaxed: it changes under the launch lock, under which launches read it; a transfer at the same
  // time as a fault may or may not be hit by it. The faults themselves have their own lock.
  return atomic_load_explicit(&client->is_faulty, memory_order_relaxed);
}

// Where the bytes of a memory are: on its device, or on the host of it.
mp_network_end_t mp_memory_end(const mp_memory_t *memory);
// The host of a memory's device.
mp_network_end_t mp_memory_host_end(const mp_memory_t *memory);
// UNAVAILABLE when bytes cannot come from one end to the other, because a device or link is dead.
MP_NODISCARD mp_status_t mp_client_check_transfer(mp_client_t *client, mp_network_end_t from,
                                                  mp_network_end_t to);

#endif  // MINIPOD_SIM_RUNTIME_DEVICES_REACH_H_
