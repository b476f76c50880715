#include "sim/runtime/devices/reach.h"
#include "sim/runtime/devices/device_impl.h"

mp_network_end_t mp_memory_host_end(const mp_memory_t *memory) {
  return mp_network_host(memory->device->info->host_index);
}

mp_network_end_t mp_memory_end(const mp_memory_t *memory) {
  if (memory->space != MP_MEMORY_DEVICE) return mp_memory_host_end(memory);
  return mp_network_device((int32_t)memory->device->id);
}

mp_status_t mp_client_check_transfer(mp_client_t *client, mp_network_end_t from,
                                     mp_network_end_t to) {
  return mp_client_is_faulty(client) ? mp_faults_meet_transfer(client->faults, from, to) : NULL;
}
