// The client: creation from options, its lists of devices and memories, default assignments.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pjrt/pjrt_objects.h"
#include "pjrt/pjrt_observer.h"
#include "sim/base/alloc.h"
#include "sim/base/assert.h"
#include "sim/native/native.h"
#include "sim/readers/options/libtpu_options.h"
#include "sim/runtime/parcels/parcel.h"

static void pjrt_client_free_client(PJRT_Client *client) {
  mp_pjrt_observe_client_end(client);
  if (client->memories != NULL) {
    for (size_t i = 0; i < client->num_addressable_memories; ++i) {
      mp_pjrt_memory_deinit(&client->memories[i]);
    }
  }
  mp_client_release(client->client);
  mp_pjrt_topology_release(client->topology);
  mp_arena_release(client->arena);
  mp_free(client);
}

PJRT_Client *mp_pjrt_client_retain(PJRT_Client *client) {
  // Relaxed: the caller has a reference already.
  atomic_fetch_add_explicit(&client->references, 1, memory_order_relaxed);
  return client;
}

void mp_pjrt_client_release(PJRT_Client *client) {
  if (client == NULL) return;
  // The last reference may be a buffer's, on a thread that never used the client. Acquire: it comes
  // after the others.
  const int before = atomic_fetch_sub(&client->references, 1);
  MP_ASSERT(before > 0);
  if (before == 1) pjrt_client_free_client(client);
}

static mp_status_t pjrt_client_describe_memory(PJRT_Client *client, PJRT_Device *device,
                                               mp_memory_space_t space) {
  int id = (int)mp_memory_id(mp_device_memory(device->device, space));
  mp_pjrt_memory_t *memory = &client->memories[client->num_addressable_memories];
  memory->base.vtable = &mp_pjrt_memory_functions;
  memory->memory = mp_device_memory(device->device, space);
  memory->device = device;
  memory->device_list[0] = device;
  memory->space = space;
  memory->id = id;
  char text[96];
  int size = snprintf(text, sizeof(text), "MinipodMemory(id=%d, kind=%s, device=%d)", id,
                      mp_memory_space_name(space), device->description->info->id);
  memory->to_string = mp_arena_strndup(client->arena, text, (size_t)size);
  size = snprintf(text, sizeof(text), "MINIPOD_%d:%s", device->description->info->id,
                  mp_memory_space_name(space));
  memory->debug_string = mp_arena_strndup(client->arena, text, (size_t)size);
  MP_RETURN_IF_NULL(memory->to_string);
  MP_RETURN_IF_NULL(memory->debug_string);
  device->memories[space] = &memory->base;
  client->addressable_memory_list[client->num_addressable_memories++] = &memory->base;
  return NULL;
}

static mp_status_t pjrt_client_describe_device(PJRT_Client *client, uint32_t id) {
  PJRT_Device *device = &client->devices[id];
  device->device = mp_client_device(client->client, id);
  device->client = client;
  device->description = &client->topology->descriptions[id];
  device->is_addressable = mp_device_is_local(device->device);
  client->device_list[id] = device;
  if (!device->is_addressable) return NULL;
  device->memories = MP_ARENA_ARRAY(client->arena, PJRT_Memory *, MP_MEMORY_SPACE_COUNT);
  MP_RETURN_IF_NULL(device->memories);
  MP_ASSERT(client->num_addressable <= id);
  client->addressable_list[client->num_addressable++] = device;
  for (int space = 0; space < MP_MEMORY_SPACE_COUNT; ++space) {
    MP_RETURN_IF_ERROR(pjrt_client_describe_memory(client, device, (mp_memory_space_t)space));
  }
  return NULL;
}

static mp_status_t pjrt_client_describe_client(PJRT_Client *client, const mp_options_t *options) {
  const mp_pod_info_t *info = mp_pod_info(mp_client_pod(client->client));
  size_t n = (size_t)info->num_devices;
  size_t num_local = (size_t)info->num_local_devices;
  size_t num_memories = num_local * MP_MEMORY_SPACE_COUNT;
  client->num_devices = n;
  client->devices = MP_ARENA_ARRAY(client->arena, PJRT_Device, n);
  client->device_list = MP_ARENA_ARRAY(client->arena, PJRT_Device *, n);
  client->addressable_list = MP_ARENA_ARRAY(client->arena, PJRT_Device *, num_local);
  client->memories = MP_ARENA_ARRAY(client->arena, mp_pjrt_memory_t, num_memories);
  client->addressable_memory_list = MP_ARENA_ARRAY(client->arena, PJRT_Memory *, num_memories);
  MP_RETURN_IF_NULL(client->devices);
  MP_RETURN_IF_NULL(client->device_list);
  MP_RETURN_IF_NULL(client->addressable_list);
  MP_RETURN_IF_NULL(client->memories);
  MP_RETURN_IF_NULL(client->addressable_memory_list);
  mp_platform_t platform = MP_PLATFORM_MINIPOD;
  MP_RETURN_IF_ERROR(mp_pod_read_platform(mp_client_pod(client->client), options, &platform));
  mp_pod_t *pod = mp_pod_retain((mp_pod_t *)mp_client_pod(client->client));
  MP_RETURN_IF_ERROR(mp_pjrt_topology_create(pod, platform, false, &client->topology));
  client->topology->is_borrowed = true;
  client->topology->is_timed = mp_client_model(client->client) != NULL;
  for (uint32_t id = 0; id < n; ++id) MP_RETURN_IF_ERROR(pjrt_client_describe_device(client, id));
  return NULL;
}

// For wrapping a client of the runtime in one of the interface.
typedef struct {
  const mp_options_t *options;
  mp_libtpu_options_t libtpu;
  PJRT_Client *client;  // made by pjrt_client_wrap_client
} pjrt_client_wrap_t;

static mp_status_t pjrt_client_wrap_client(void *context, mp_client_t *runtime) {
  pjrt_client_wrap_t *wrap = context;
  PJRT_Client *client = mp_calloc(1, sizeof(*client));
  MP_RETURN_IF_NULL(client);
  wrap->client = client;
  atomic_init(&client->references, 1);
  client->client = runtime;
  MP_RETURN_IF_ERROR(mp_arena_create(&client->arena));
  MP_RETURN_IF_ERROR(pjrt_client_describe_client(client, wrap->options));
  const mp_pod_info_t *info = mp_pod_info(client->topology->pod);
  MP_RETURN_IF_ERROR(mp_libtpu_options_check(
      wrap->libtpu, mp_pjrt_takes_libtpu_options(client->topology), info->name, info->kind));
  client->dump = mp_arena_strndup(client->arena, wrap->options->dump, strlen(wrap->options->dump));
  MP_RETURN_IF_NULL(client->dump);
  client->op_by_op = wrap->options->fuse == 0;
  client->as_written = wrap->options->rewrites == 0;
  client->checks_kernels = strcmp(wrap->options->kernels, "check") == 0;
  mp_native_set_policy((mp_native_policy_t)wrap->options->native);
  return NULL;
}

// An option that others make ineffective is probably a mistake.
static void pjrt_client_warn_of_idle(const mp_pod_time_t *time, const mp_options_t *options) {
  const bool is_timed = time->mode != MP_TIME_OFF;
  const bool is_shapes = time->values == MP_VALUES_MODE_SHAPES;
  const struct {
    mp_option_id_t id;
    bool has_effect;
    const char *needs;
  } rows[] = {
      {MP_OPTION_ID_algorithms, is_timed, "time: model"},
      {MP_OPTION_ID_calibration, is_timed, "time: model"},
      {MP_OPTION_ID_chip_without, is_timed, "time: model"},
      {MP_OPTION_ID_chakra, is_timed, "time: model"},
      {MP_OPTION_ID_trace, is_timed, "time: model"},
      {MP_OPTION_ID_pace, time->mode == MP_TIME_PACED, "time: paced"},
      {MP_OPTION_ID_absent, is_shapes, "values: shapes"},
      {MP_OPTION_ID_unknown_branch, is_shapes, "values: shapes"},
      {MP_OPTION_ID_unknown_trip_count, is_shapes, "values: shapes"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    if (rows[i].has_effect || options->source[rows[i].id] == MP_SOURCE_DEFAULT) continue;
    mp_log(MP_LOG_WARNING, "option %s (%s) has no effect without %s",
           mp_option_info(rows[i].id)->name, mp_option_source_name(options->source[rows[i].id]),
           rows[i].needs);
  }
}

// Scripts for the CPU backend request devices in these ways, which have no effect on a plugin. A
// user who has set minipod's number of devices knows that.
static void pjrt_client_warn_of_forced(const mp_pod_info_t *info, const mp_options_t *options) {
  static const struct {
    const char *variable, *flag;
  } rows[] = {{"XLA_FLAGS", "xla_force_host_platform_device_count="}, {"JAX_NUM_CPU_DEVICES", ""}};
  if (options->source[MP_OPTION_ID_num_devices] != MP_SOURCE_DEFAULT) return;
  if (options->source[MP_OPTION_ID_topology] != MP_SOURCE_DEFAULT) return;
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    const char *text = getenv(rows[i].variable);
    const char *at = text == NULL ? NULL : strstr(text, rows[i].flag);
    const long count = at == NULL ? 0 : strtol(at + strlen(rows[i].flag), NULL, 10);
    if (count <= 0 || count == info->num_devices) continue;
    mp_log(MP_LOG_WARNING,
           "%s sets %ld devices, but for JAX's CPU backend: minipod has %d, and %ld with "
           "MINIPOD_DEVICES=%ld",
           rows[i].variable, count, info->num_devices, count, count);
  }
}

// Logs one line about the started pod; at level debug everything, line by line.
static void pjrt_client_log(const PJRT_Client *client, const mp_options_t *options) {
  const mp_pod_t *pod = mp_client_pod(client->client);
  const mp_pod_info_t *info = mp_pod_info(pod);
  mp_pod_time_t time;
  mp_status_t status = mp_pod_read_time(pod, options, &time);
  if (status != NULL) {  // there would be no client
    mp_status_release(status);
    return;
  }
  if (info->process_index == 0) {
    pjrt_client_warn_of_idle(&time, options);
    if (time.mode == MP_TIME_OFF && getenv("LIBTPU_INIT_ARGS") != NULL && mp_pod_is_tpu(pod)) {
      mp_log(MP_LOG_INFO, "LIBTPU_INIT_ARGS changes no times without time: model");
    }
    pjrt_client_warn_of_forced(info, options);
  }
  mp_log(MP_LOG_INFO,
         "minipod %s: %s, %d devices of kind '%s' (%d of them in process %d of %d), %d workers, "
         "machine code %s, time %s, values %s",
         MINIPOD_VERSION, info->name, info->num_devices, info->kind, info->num_local_devices,
         info->process_index, info->num_processes, mp_pod_machine(pod)->num_workers,
         options->native == 0 ? "off" : "on", mp_time_mode_name(time.mode),
         mp_values_mode_name(time.values));
  if (!mp_log_enabled(MP_LOG_DEBUG)) return;
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_pod_describe(pod, &text);
  mp_log(MP_LOG_DEBUG, "client made: %d of %d devices, process %d of %d", info->num_local_devices,
         info->num_devices, info->process_index, info->num_processes);
  mp_log_lines(MP_LOG_DEBUG, mp_strbuf_text(&text));
  mp_strbuf_deinit(&text);
}

// Makes a client in the given world, or joins the world of this process first, with the help of the
// store (may be NULL).
static mp_status_t pjrt_client_create(const mp_options_t *options, mp_libtpu_options_t libtpu,
                                      bool must_join, const mp_key_value_store_t *store,
                                      mp_world_t *world, PJRT_Client **out_client) {
  mp_client_t *runtime = NULL;
  pjrt_client_wrap_t wrap = {.options = options, .libtpu = libtpu};
  const mp_client_addition_t addition = {.add = pjrt_client_wrap_client, .context = &wrap};
  mp_status_t status = must_join ? mp_client_create(options, store, &addition, &runtime)
                                 : mp_client_create_with(options, world, &addition, &runtime);
  if (status != NULL && wrap.client != NULL) {
    wrap.client->client = NULL;  // the runtime's client is gone already
    pjrt_client_free_client(wrap.client);
  }
  if (status == NULL) {
    status = mp_pjrt_observe_client(wrap.client, options);
    if (status != NULL) pjrt_client_free_client(wrap.client);
  }
  if (status != NULL) return status;
  pjrt_client_log(wrap.client, options);
  *out_client = wrap.client;
  return NULL;
}

mp_status_t mp_pjrt_client_create_in(const mp_options_t *options, mp_world_t *world,
                                     PJRT_Client **out_client) {
  return pjrt_client_create(options, 0, false, NULL, world, out_client);
}

// The key-value callbacks are called during this call alone, on this thread: by processes that no
// MPI launcher has started, to find each other.
mp_status_t mp_PJRT_Client_Create(PJRT_Client_Create_Args *args) {
  mp_named_value_t *values = NULL;
  mp_options_t *options = NULL;
  MP_RETURN_IF_ERROR(mp_pjrt_read_named_values(args->create_options, args->num_options, &values));
  size_t count = args->num_options;
  mp_libtpu_options_t libtpu = 0;
  mp_status_t status = mp_libtpu_options_take(values, &count, &libtpu);
  if (status == NULL) status = mp_options_create(values, count, &options);
  mp_free(values);
  MP_RETURN_IF_ERROR(status);
  mp_key_value_store_t store;
  const bool has_store = mp_pjrt_key_value_store(args, options, &store);
  status =
      pjrt_client_create(options, libtpu, true, has_store ? &store : NULL, NULL, &args->client);
  mp_options_release(options);
  return status;
}

// Stops the runtime; objects that buffers and executables point to live until the last of them is
// freed.
mp_status_t mp_PJRT_Client_Destroy(PJRT_Client_Destroy_Args *args) {
  if (args->client == NULL) return NULL;
  mp_client_t *client = args->client->client;
  mp_parcels_finish();  // other processes await the sent parcels
  mp_pjrt_observe_client_end(args->client);
  args->client->client = NULL;
  mp_client_release(client);
  mp_pjrt_log_unread();
  mp_pjrt_client_release(args->client);
  return NULL;
}

mp_status_t mp_PJRT_Client_PlatformName(PJRT_Client_PlatformName_Args *args) {
  args->platform_name = MP_PLATFORM_NAME;
  args->platform_name_size = sizeof(MP_PLATFORM_NAME) - 1;
  return NULL;
}

MP_GETTER(PJRT_Client_ProcessIndex, client, process_index,
          mp_pod_info(it->topology->pod)->process_index)
MP_TEXT_GETTER(PJRT_Client_PlatformVersion, client, platform_version,
               it->topology->platform_version)
MP_GETTER(PJRT_Client_TopologyDescription, client, topology, it->topology)
MP_LIST_GETTER(PJRT_Client_Devices, client, devices, it->device_list, num_devices, it->num_devices)
MP_LIST_GETTER(PJRT_Client_AddressableDevices, client, addressable_devices, it->addressable_list,
               num_addressable_devices, it->num_addressable)

mp_status_t mp_PJRT_Client_LookupDevice(PJRT_Client_LookupDevice_Args *args) {
  MP_REQUIRE(args, client);
  if (args->id < 0 || (size_t)args->id >= args->client->num_devices) {
    return mp_status_make(MP_NOT_FOUND, "no device has the id %d: there are %zu", args->id,
                          args->client->num_devices);
  }
  args->device = &args->client->devices[args->id];
  return NULL;
}

mp_status_t mp_PJRT_Client_LookupAddressableDevice(PJRT_Client_LookupAddressableDevice_Args *args) {
  MP_REQUIRE(args, client);
  for (size_t i = 0; i < args->client->num_addressable; ++i) {
    PJRT_Device *device = args->client->addressable_list[i];
    if (device->description->info->local_hardware_id != args->local_hardware_id) continue;
    args->addressable_device = device;
    return NULL;
  }
  return mp_status_make(MP_NOT_FOUND, "no device of this process has the local hardware id %d",
                        args->local_hardware_id);
}

MP_LIST_GETTER(PJRT_Client_AddressableMemories, client, addressable_memories,
               it->addressable_memory_list, num_addressable_memories, it->num_addressable_memories)

// Devices in the order of their ids, partitions of one replica next to each other.
mp_status_t mp_PJRT_Client_DefaultDeviceAssignment(PJRT_Client_DefaultDeviceAssignment_Args *args) {
  MP_REQUIRE(args, client);
  MP_REQUIRE(args, default_assignment);
  int replicas = args->num_replicas, partitions = args->num_partitions;
  size_t count = (size_t)replicas * (size_t)partitions;
  if (replicas <= 0 || partitions <= 0 || count > args->client->num_devices) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "%d replicas of %d partitions have no place on %zu devices", replicas,
                          partitions, args->client->num_devices);
  }
  if (args->default_assignment_size < count) {
    return mp_status_make(MP_INVALID_ARGUMENT, "room for %zu device ids, but %zu are needed",
                          args->default_assignment_size, count);
  }
  for (size_t i = 0; i < count; ++i) args->default_assignment[i] = (int)i;
  return NULL;
}

// jax.distributed reports about other processes here. The world notices deaths itself, and sooner;
// but these reports determine which processes a launch is meant for. An error would end the
// caller's process, so there is none: without memory launches wait for newcomers up to the time
// limit.
mp_status_t mp_PJRT_Client_UpdateGlobalProcessInfo(PJRT_Client_UpdateGlobalProcessInfo_Args *args) {
  const size_t count = args->num_process_infos;
  if (args->client == NULL || args->process_infos == NULL || count == 0) return NULL;
  uint64_t *incarnations = mp_calloc(count, sizeof(*incarnations));
  if (incarnations == NULL) return NULL;
  // Elements may be longer than in this version.
  const char *at = (const char *)args->process_infos;
  const size_t step = args->process_infos[0].struct_size;
  const bool is_sound = step >= sizeof(PJRT_ProcessInfo) && step % _Alignof(PJRT_ProcessInfo) == 0;
  for (size_t i = 0; i < count && is_sound; ++i, at += step) {
    const PJRT_ProcessInfo *info = (const PJRT_ProcessInfo *)(const void *)at;
    const bool is_there = info->task_id >= 0 && (size_t)info->task_id < count;
    if (is_there && info->state == PJRT_ProcessState_kConnected)
      incarnations[info->task_id] = info->incarnation_id;
  }
  mp_client_note_incarnations(args->client->client, count, incarnations);
  mp_free(incarnations);
  return NULL;
}

// Host memory needs no registration: copies read it directly.
mp_status_t mp_PJRT_Client_DmaMap(PJRT_Client_DmaMap_Args *args) {
  MP_REQUIRE(args, data);
  return NULL;
}

mp_status_t mp_PJRT_Client_DmaUnmap(PJRT_Client_DmaUnmap_Args *args) {
  MP_REQUIRE(args, data);
  return NULL;
}
