// The faults of a client (sim/model/faults): where launches and transfers ask about them.
#ifndef MINIPOD_SIM_RUNTIME_DEVICES_FAULTY_H_
#define MINIPOD_SIM_RUNTIME_DEVICES_FAULTY_H_

#include "sim/model/network/network.h"
#include "sim/runtime/devices/client_impl.h"

// Whether the client has any.
static inline bool mp_client_is_faulty(const mp_client_t *client) {
  return atomic_load_explicit(&client->is_faulty, memory_order_relaxed);
}

// Makes the client's faults, those that its options name. The pod and the time model are there.
MP_NODISCARD mp_status_t mp_client_make_faults(mp_client_t *client, const mp_options_t *options);

// Counts a launch and says what it meets (mp_faults_meet_launch). The caller holds the launch lock.
MP_NODISCARD mp_status_t mp_client_meet_faults(mp_client_t *client,
                                               const mp_faults_launch_t *launch,
                                               uint32_t *out_num_flips,
                                               mp_faults_flip_t **out_flips);

// Where the bytes of a memory are: on its device, or on the host of it.
mp_network_end_t mp_memory_end(const mp_memory_t *memory);
// The host of a memory's device.
mp_network_end_t mp_memory_host_end(const mp_memory_t *memory);
// UNAVAILABLE when bytes cannot come from one end to the other, because a device or link is dead.
MP_NODISCARD mp_status_t mp_client_check_transfer(mp_client_t *client, mp_network_end_t from,
                                                  mp_network_end_t to);

#endif  // MINIPOD_SIM_RUNTIME_DEVICES_FAULTY_H_
