// Loaded executables: an executable on its devices.

#include "pjrt/pjrt_executable.h"
#include "sim/base/alloc.h"
#include "sim/base/assert.h"
#include "sim/base/proto.h"

static void pjrt_loaded_executable_free_loaded(PJRT_LoadedExecutable *loaded) {
  mp_pjrt_executable_release(loaded->executable);
  mp_free(loaded->addressable_list);
  mp_free(loaded->logical_ids);
  mp_free(loaded->logical);
  mp_free(loaded);
}

static mp_status_t pjrt_loaded_executable_list_devices(PJRT_LoadedExecutable *loaded) {
  PJRT_Client *client = loaded->executable->client;
  const mp_program_t *program = loaded->executable->program;
  uint32_t count = mp_executable_num_devices(loaded->executable->executable);
  loaded->addressable_list = mp_calloc(count + 1, sizeof(loaded->addressable_list[0]));
  loaded->logical_ids = mp_calloc(count + 1, sizeof(loaded->logical_ids[0]));
  loaded->logical = mp_calloc(count + 1, sizeof(loaded->logical[0]));
  MP_RETURN_IF_NULL(loaded->addressable_list);
  MP_RETURN_IF_NULL(loaded->logical_ids);
  MP_RETURN_IF_NULL(loaded->logical);
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t id = mp_device_id(mp_executable_device(loaded->executable->executable, i));
    PJRT_Device *device = &client->devices[id];
    if (!device->is_addressable) continue;
    size_t at = loaded->num_addressable++;
    MP_ASSERT(at < count && at <= i);
    loaded->addressable_list[at] = device;
    loaded->logical[at] = i;
    loaded->logical_ids[at].replica = (int)(i / program->num_partitions);
    loaded->logical_ids[at].partition = (int)(i % program->num_partitions);
  }
  return NULL;
}

mp_status_t mp_pjrt_loaded_executable_compile(PJRT_Client *client, const mp_pjrt_source_t *source,
                                              PJRT_LoadedExecutable **out_loaded) {
  PJRT_LoadedExecutable *loaded = mp_calloc(1, sizeof(*loaded));
  MP_RETURN_IF_NULL(loaded);
  atomic_init(&loaded->is_deleted, false);
  mp_status_t status =
      mp_pjrt_executable_compile(client, client->topology, source, &loaded->executable);
  if (status == NULL) status = pjrt_loaded_executable_list_devices(loaded);
  if (status != NULL) {
    pjrt_loaded_executable_free_loaded(loaded);
    return status;
  }
  *out_loaded = loaded;
  return NULL;
}

mp_status_t mp_PJRT_Client_Compile(PJRT_Client_Compile_Args *args) {
  MP_REQUIRE(args, client);
  mp_pjrt_source_t source;
  MP_RETURN_IF_ERROR(mp_pjrt_read_program(args->program, args->compile_options,
                                          args->compile_options_size, &source));
  return mp_pjrt_loaded_executable_compile(args->client, &source, &args->executable);
}

mp_status_t mp_PJRT_LoadedExecutable_Destroy(PJRT_LoadedExecutable_Destroy_Args *args) {
  if (args->executable != NULL) pjrt_loaded_executable_free_loaded(args->executable);
  return NULL;
}

MP_GETTER(PJRT_LoadedExecutable_GetExecutable, loaded_executable, executable,
          mp_pjrt_executable_retain(it->executable))
MP_LIST_GETTER(PJRT_LoadedExecutable_AddressableDevices, executable, addressable_devices,
               it->addressable_list, num_addressable_devices, it->num_addressable)
MP_LIST_GETTER(PJRT_LoadedExecutable_AddressableDeviceLogicalIds, executable,
               addressable_device_logical_ids, it->logical_ids, num_addressable_device_logical_ids,
               it->num_addressable)

// Refuses further launches; what is in flight ends as usual.
mp_status_t mp_PJRT_LoadedExecutable_Delete(PJRT_LoadedExecutable_Delete_Args *args) {
  MP_REQUIRE(args, executable);
  atomic_store(&args->executable->is_deleted, true);
  return NULL;
}

MP_GETTER(PJRT_LoadedExecutable_IsDeleted, executable, is_deleted, atomic_load(&it->is_deleted))
MP_TEXT_GETTER(PJRT_LoadedExecutable_Fingerprint, executable, executable_fingerprint,
               it->executable->fingerprint)

// DeviceAssignmentProto: 1 replica_count, 2 computation_count, 3 computation_devices (one per
// partition: 1 replica_device_ids, packed).
static mp_status_t pjrt_loaded_executable_write_assignment(const PJRT_Executable *executable,
                                                           mp_strbuf_t *out) {
  uint32_t replicas = executable->program->num_replicas;
  uint32_t partitions = executable->program->num_partitions;
  int64_t *ids = mp_calloc(replicas, sizeof(*ids));
  MP_RETURN_IF_NULL(ids);
  mp_proto_put_varint(out, 1, replicas);
  mp_proto_put_varint(out, 2, partitions);
  for (uint32_t p = 0; p < partitions; ++p) {
    for (uint32_t r = 0; r < replicas; ++r) {
      ids[r] = mp_device_id(mp_executable_device(executable->executable, r * partitions + p));
    }
    mp_strbuf_t devices;
    mp_strbuf_init(&devices);
    mp_proto_put_packed(&devices, 1, ids, replicas);
    mp_proto_put_message(out, 3, &devices);
    mp_strbuf_deinit(&devices);
  }
  mp_free(ids);
  return NULL;
}

mp_status_t mp_PJRT_LoadedExecutable_GetDeviceAssignment(
    PJRT_LoadedExecutable_GetDeviceAssignment_Args *args) {
  MP_REQUIRE(args, executable);
  mp_strbuf_t bytes;
  mp_strbuf_init(&bytes);
  mp_status_t status =
      pjrt_loaded_executable_write_assignment(args->executable->executable, &bytes);
  return mp_pjrt_lend_bytes(status, &bytes, &args->serialized_bytes, &args->serialized_bytes_size,
                            &args->serialized_device_assignment,
                            &args->serialized_device_assignment_deleter);
}
