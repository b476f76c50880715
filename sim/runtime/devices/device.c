#include "sim/runtime/devices/device.h"

#include "sim/base/os/process.h"
#include "sim/runtime/devices/device_impl.h"

bool mp_client_is_forked(const mp_client_t *client) {
  return client->generation != mp_process_generation();
}

void mp_client_hold(mp_client_t *client) {
  // Relaxed: the caller has a hold, or a reference, which comes with one.
  atomic_fetch_add_explicit(&client->holds, 1, memory_order_relaxed);
}

void mp_client_unhold(mp_client_t *client) {
  // Acquire and release: the thread that destroys the client sees all that the others did with it
  // before they released it.
  const int before = atomic_fetch_sub_explicit(&client->holds, 1, memory_order_acq_rel);
  MP_ASSERT(before > 0);
  if (before != 1) return;
  // A forked child has only a copy, which is freed when the process exits.
  if (!mp_client_is_forked(client)) client->runner->destroy(client);
}

mp_status_t mp_client_check(const mp_client_t *client) {
  if (mp_client_is_forked(client)) {
    return mp_status_make(MP_FAILED_PRECONDITION,
                          "this process was forked from the one that started the minipod client; "
                          "devices cannot be used here: fork before using them, or start a new "
                          "process (multiprocessing: method \"spawn\")");
  }
  if (mp_client_is_stopping(client)) {
    return mp_status_make(MP_FAILED_PRECONDITION, "the client was closed");
  }
  return NULL;
}

int32_t mp_client_numa_node(const mp_client_t *client, const mp_device_t *device) {
  const mp_pod_machine_t *machine = mp_pod_machine(client->pod);
  return machine->is_real && machine->num_numa_nodes > 1 ? device->info->numa_node : -1;
}

const mp_pod_t *mp_client_pod(const mp_client_t *client) {
  return client->pod;
}

mp_model_t *mp_client_model(const mp_client_t *client) {
  return client->model;
}

bool mp_client_has_shapes_only(const mp_client_t *client) {
  return client->shapes_only;
}

uint32_t mp_client_num_devices(const mp_client_t *client) {
  return client->num_devices;
}

mp_device_t *mp_client_device(const mp_client_t *client, uint32_t index) {
  MP_ASSERT(index < client->num_devices);
  return &client->devices[index];
}

mp_client_t *mp_device_client(const mp_device_t *device) {
  return device->client;
}

uint32_t mp_device_id(const mp_device_t *device) {
  return device->id;
}

const mp_pod_device_t *mp_device_info(const mp_device_t *device) {
  return device->info;
}

bool mp_device_is_local(const mp_device_t *device) {
  return device->is_local;
}

mp_status_t mp_device_check_local(const mp_device_t *device, const char *what) {
  if (device->is_local) return NULL;
  return mp_status_make(
      MP_INVALID_ARGUMENT, "%s device %u: it belongs to process %d, this is process %d", what,
      device->id, device->info->process_index, mp_pod_info(device->client->pod)->process_index);
}

mp_memory_t *mp_device_memory(const mp_device_t *device, mp_memory_space_t space) {
  MP_ASSERT((unsigned)space < MP_MEMORY_SPACE_COUNT);
  return device->memories == NULL ? NULL : &device->memories[space];
}

mp_device_t *mp_memory_device(const mp_memory_t *memory) {
  return memory->device;
}

mp_memory_space_t mp_memory_space(const mp_memory_t *memory) {
  return memory->space;
}

uint32_t mp_memory_id(const mp_memory_t *memory) {
  return memory->device->id * MP_MEMORY_SPACE_COUNT + (uint32_t)memory->space;
}
