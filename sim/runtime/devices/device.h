// Devices, and the client that they belong to, for code that already has a client
// (sim/runtime/client.h makes one).
//
// In a job of several processes the pod is that of all of them. Devices of other processes exist
// only to be named in device assignments: they have no memories, and functions that would use them
// fail with INVALID_ARGUMENT "device 5 belongs to process 1, …". All functions are thread-safe.
// Devices and memories live as long as the client.
#ifndef MINIPOD_SIM_RUNTIME_DEVICES_DEVICE_H_
#define MINIPOD_SIM_RUNTIME_DEVICES_DEVICE_H_

#include <stdbool.h>
#include <stdint.h>

#include "collectives/transport/world.h"
#include "sim/base/status.h"
#include "sim/model/clock/model.h"
#include "sim/runtime/memory/memory_stats.h"
#include "topology/pod.h"

typedef struct mp_client_s mp_client_t;
typedef struct mp_device_s mp_device_t;

// The pod (borrowed), and the number of all its devices, including those of other processes.
const mp_pod_t *mp_client_pod(const mp_client_t *client);
uint32_t mp_client_num_devices(const mp_client_t *client);
// The model of time, borrowed; NULL when no virtual times are kept.
mp_model_t *mp_client_model(const mp_client_t *client);
// Whether programs run for their shapes alone (runs/shapes.h).
bool mp_client_has_shapes_only(const mp_client_t *client);
// The device with this index in the pod's order, which is its global device id. The index exists.
mp_device_t *mp_client_device(const mp_client_t *client, uint32_t index);
// FAILED_PRECONDITION in a forked child and when the client was closed.
MP_NODISCARD mp_status_t mp_client_check(const mp_client_t *client);

// Attributes of a device: its client and description (both borrowed), its global id, and whether it
// belongs to this process.
mp_client_t *mp_device_client(const mp_device_t *device);
uint32_t mp_device_id(const mp_device_t *device);
const mp_pod_device_t *mp_device_info(const mp_device_t *device);
bool mp_device_is_local(const mp_device_t *device);
// INVALID_ARGUMENT for a device of another process: "<what> device 5: it belongs to process 1, …".
MP_NODISCARD mp_status_t mp_device_check_local(const mp_device_t *device, const char *what);
// One per space; every device of this process has all three, others have none (NULL).
mp_memory_t *mp_device_memory(const mp_device_t *device, mp_memory_space_t space);

// The device that a memory belongs to, and which of its spaces the memory is.
mp_device_t *mp_memory_device(const mp_memory_t *memory);
mp_memory_space_t mp_memory_space(const mp_memory_t *memory);
// Unique in the client: device id * MP_MEMORY_SPACE_COUNT + space.
uint32_t mp_memory_id(const mp_memory_t *memory);

#endif  // MINIPOD_SIM_RUNTIME_DEVICES_DEVICE_H_
