// Where bytes are in the pod, and whether they get from there to somewhere else.
#ifndef MINIPOD_SIM_RUNTIME_DEVICES_REACH_H_
#define MINIPOD_SIM_RUNTIME_DEVICES_REACH_H_

#include "sim/model/network/network.h"
#include "sim/runtime/devices/client_impl.h"

// Whether the client has faults (order/faulty.h).
static inline bool mp_client_is_faulty(const mp_client_t *client) {
  // Relaxed: launches ask under the launch lock, under which it changes, and a transfer that comes
  // together with a fault may meet it or not. What the faults are is under a lock of their own.
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
