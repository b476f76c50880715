// Topology descriptions: a pod without its runtime.

#include <inttypes.h>

#include "pjrt/pjrt_objects.h"
#include "sim/base/alloc.h"

// Names, attributes and lists live in the topology's arena. A failed allocation is reported once,
// when everything is built.
static const char *pjrt_topology_print(mp_arena_t *arena, mp_strbuf_t *text) {
  const char *copy = NULL;
  if (!text->failed) copy = mp_arena_strndup(arena, mp_strbuf_text(text), text->size);
  mp_strbuf_deinit(text);
  return copy;
}

static void pjrt_topology_print_coords(mp_strbuf_t *text, const mp_pod_info_t *pod,
                                       const mp_pod_device_t *info) {
  for (int32_t i = 0; i < pod->num_dims; ++i) {
    mp_strbuf_printf(text, "%s%d", i == 0 ? "" : ",", info->coords[i]);
  }
}

static const char *pjrt_topology_make_to_string(mp_arena_t *arena, const mp_pod_info_t *pod,
                                                const PJRT_DeviceDescription *description) {
  const mp_pod_device_t *info = description->info;
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_printf(&text, "MinipodDevice(id=%d, process_index=%d, coords=(", info->id,
                   description->process_index);
  pjrt_topology_print_coords(&text, pod, info);
  mp_strbuf_printf(&text, "), core_on_chip=%d)", info->core_on_chip);
  return pjrt_topology_print(arena, &text);
}

static const char *pjrt_topology_make_debug_string(mp_arena_t *arena, const mp_pod_info_t *pod,
                                                   const PJRT_DeviceDescription *description) {
  const mp_pod_device_t *info = description->info;
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_printf(&text, "MINIPOD_%d(process=%d,host=%d,(", info->id, description->process_index,
                   info->host_index);
  pjrt_topology_print_coords(&text, pod, info);
  mp_strbuf_printf(&text, ",%d))", info->core_on_chip);
  return pjrt_topology_print(arena, &text);
}

// Callers understand strings, integers and lists of integers here, and nothing else.
static mp_status_t pjrt_topology_make_attributes(const PJRT_TopologyDescription *topology,
                                                 PJRT_DeviceDescription *out) {
  enum { MAX_ATTRIBUTES = 10 };
  mp_arena_t *arena = topology->arena;
  const mp_pod_info_t *pod = mp_pod_info(topology->pod);
  const mp_pod_device_t *info = out->info;
  PJRT_NamedValue *attributes = MP_ARENA_ARRAY(arena, PJRT_NamedValue, MAX_ATTRIBUTES);
  int64_t *coords = MP_ARENA_ARRAY(arena, int64_t, MP_POD_MAX_DIMS);
  MP_RETURN_IF_NULL(attributes);
  MP_RETURN_IF_NULL(coords);
  for (int32_t i = 0; i < pod->num_dims; ++i) coords[i] = info->coords[i];
  size_t n = 0;
  attributes[n++] = mp_pjrt_named_ints("coords", coords, (size_t)pod->num_dims);
  attributes[n++] = mp_pjrt_named_int("core_on_chip", info->core_on_chip);
  attributes[n++] = mp_pjrt_named_int("num_cores", pod->cores_per_device);
  attributes[n++] = mp_pjrt_named_int("slice_index", info->slice_index);
  attributes[n++] = mp_pjrt_named_int("host_index", info->host_index);
  if (info->numa_node >= 0) {
    attributes[n++] = mp_pjrt_named_int("numa_node", info->numa_node);
  }
  if (info->core_group >= 0) {
    attributes[n++] = mp_pjrt_named_int("core_group", info->core_group);
  }
  if (pod->capability[0] != 0) {
    attributes[n++] = mp_pjrt_named_string("compute_capability", pod->capability);
  }
  // For the Python package, which has JAX say it.
  if (topology->platform != MP_PLATFORM_MINIPOD) {
    attributes[n++] = mp_pjrt_named_string("shown_platform", mp_platform_name(topology->platform));
  }
  out->attributes = attributes;
  out->num_attributes = n;
  return NULL;
}

static mp_status_t pjrt_topology_describe_device(PJRT_TopologyDescription *topology, int32_t id) {
  const mp_pod_info_t *pod = mp_pod_info(topology->pod);
  PJRT_DeviceDescription *description = &topology->descriptions[id];
  description->info = mp_pod_device(topology->pod, id);
  description->kind = pod->kind;
  // Where nothing runs yet, each host will be a process, as for TPUs.
  description->process_index =
      topology->is_detached ? description->info->host_index : description->info->process_index;
  description->to_string = pjrt_topology_make_to_string(topology->arena, pod, description);
  description->debug_string = pjrt_topology_make_debug_string(topology->arena, pod, description);
  MP_RETURN_IF_NULL(description->to_string);
  MP_RETURN_IF_NULL(description->debug_string);
  return pjrt_topology_make_attributes(topology, description);
}

// The order of the list is that of the ids; where nothing runs yet, as with TPUs, that of
// processes.
static mp_status_t pjrt_topology_list_devices(PJRT_TopologyDescription *topology) {
  const size_t count = topology->num_devices;
  int32_t *ids = MP_ARENA_ARRAY(topology->arena, int32_t, count);
  MP_RETURN_IF_NULL(ids);
  for (size_t i = 0; i < count; ++i) ids[i] = (int32_t)i;
  if (topology->is_detached) MP_RETURN_IF_ERROR(mp_pod_list_by_host(topology->pod, ids));
  for (size_t i = 0; i < count; ++i) {
    topology->description_list[i] = &topology->descriptions[ids[i]];
  }
  return NULL;
}

static mp_status_t pjrt_topology_describe_pod(PJRT_TopologyDescription *topology) {
  enum { MAX_ATTRIBUTES = 6 };
  const mp_pod_info_t *pod = mp_pod_info(topology->pod);
  PJRT_NamedValue *attributes = MP_ARENA_ARRAY(topology->arena, PJRT_NamedValue, MAX_ATTRIBUTES);
  int64_t *shape = MP_ARENA_ARRAY(topology->arena, int64_t, MP_POD_MAX_DIMS);
  MP_RETURN_IF_NULL(attributes);
  MP_RETURN_IF_NULL(shape);
  for (int32_t i = 0; i < pod->num_dims; ++i) shape[i] = pod->shape[i];
  size_t n = 0;
  attributes[n++] = mp_pjrt_named_string("topology", pod->name);
  attributes[n++] = mp_pjrt_named_ints("shape", shape, (size_t)pod->num_dims);
  attributes[n++] = mp_pjrt_named_string("wiring", mp_wiring_name(pod->wiring));
  attributes[n++] = mp_pjrt_named_int("num_slices", pod->num_slices);
  attributes[n++] = mp_pjrt_named_int("num_hosts", pod->num_hosts);
  attributes[n++] = mp_pjrt_named_int("cores_per_chip", pod->cores_per_chip);
  topology->attributes = attributes;
  topology->num_attributes = n;
  // This text becomes part of the keys of compilation caches: it must change with the plugin and
  // with the pod.
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_printf(&text, "minipod %s, pod %s (%d devices, %016" PRIx64 ")", MINIPOD_VERSION,
                   pod->name, pod->num_devices, mp_pod_fingerprint(topology->pod));
  topology->platform_version = pjrt_topology_print(topology->arena, &text);
  MP_RETURN_IF_NULL(topology->platform_version);
  return NULL;
}

mp_status_t mp_pjrt_topology_create(mp_pod_t *pod, mp_platform_t platform, bool is_detached,
                                    PJRT_TopologyDescription **out_topology) {
  mp_arena_t *arena = NULL;
  mp_status_t status = mp_arena_create(&arena);
  if (status != NULL) {
    mp_pod_release(pod);
    return status;
  }
  PJRT_TopologyDescription *topology = MP_ARENA_NEW(arena, PJRT_TopologyDescription);
  if (topology == NULL) {
    mp_pod_release(pod);
    mp_arena_release(arena);
    return mp_status_out_of_memory();
  }
  int32_t num_devices = mp_pod_info(pod)->num_devices;
  topology->arena = arena;
  topology->pod = pod;
  topology->platform = platform;
  topology->is_detached = is_detached;
  topology->num_devices = (size_t)num_devices;
  topology->descriptions = MP_ARENA_ARRAY(arena, PJRT_DeviceDescription, topology->num_devices);
  topology->description_list =
      MP_ARENA_ARRAY(arena, PJRT_DeviceDescription *, topology->num_devices);
  if (topology->descriptions == NULL || topology->description_list == NULL) {
    status = mp_status_out_of_memory();
  }
  if (status == NULL) status = pjrt_topology_describe_pod(topology);
  for (int32_t id = 0; id < num_devices && status == NULL; ++id) {
    status = pjrt_topology_describe_device(topology, id);
  }
  if (status == NULL) status = pjrt_topology_list_devices(topology);
  if (status != NULL) {
    mp_pjrt_topology_release(topology);
    return status;
  }
  *out_topology = topology;
  return NULL;
}

void mp_pjrt_topology_release(PJRT_TopologyDescription *topology) {
  if (topology == NULL) return;
  mp_pod_release(topology->pod);
  mp_arena_release(topology->arena);  // the topology itself lives in it
}

// ---- Creating one by its name ----

// The options by which users of TPUs complete the name of a topology. Each becomes a word of its
// description, but for the configuration of the chips, which is part of a preset's name.
static bool pjrt_topology_take_word(const mp_named_value_t *value, mp_strbuf_t *out_words) {
  if (mp_str_is(value->name, "num_slices") && value->type == MP_VALUE_INT64) {
    mp_strbuf_printf(out_words, " slices:%lld", (long long)value->int64_value);
    return true;
  }
  const bool is_box = mp_str_is(value->name, "chips_per_host_bounds");
  if (!is_box && !mp_str_is(value->name, "wrap")) return false;
  if (value->type != MP_VALUE_INT64_LIST) return false;
  mp_strbuf_puts(out_words, is_box ? " host_shape:" : " topology:");
  for (size_t i = 0; i < value->int64_list_count; ++i) {
    if (i != 0) mp_strbuf_putc(out_words, ',');
    const int64_t item = value->int64_list_data[i];
    if (is_box) mp_strbuf_printf(out_words, "%lld", (long long)item);
    if (!is_box) mp_strbuf_puts(out_words, item != 0 ? "ring" : "mesh");
  }
  return true;
}

// Takes those options out of the values. `out_config` is the configuration of the chips, or empty.
static void pjrt_topology_take_words(mp_named_value_t *values, size_t *num_values,
                                     mp_strbuf_t *out_words, mp_str_t *out_config) {
  for (size_t i = 0; i < *num_values;) {
    const bool is_config =
        mp_str_is(values[i].name, "chip_config_name") && values[i].type == MP_VALUE_STRING;
    if (is_config && !mp_str_is(values[i].string_value, "default")) {
      *out_config = values[i].string_value;
    }
    if (is_config || pjrt_topology_take_word(&values[i], out_words)) {
      values[i] = values[--*num_values];
    } else {
      ++i;
    }
  }
}

// "v4:2x2x1" with the configuration "megacore" is "v4-megacore:2x2x1".
static mp_status_t pjrt_topology_from_name(mp_str_t name, mp_str_t config, mp_str_t words,
                                           mp_pod_t **out_pod) {
  size_t colon = 0;
  while (colon < name.size && name.data[colon] != ':' && name.data[colon] != ' ') ++colon;
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_append(&text, name.data, colon);
  if (config.size != 0) mp_strbuf_printf(&text, "-%.*s", MP_STR_ARG(config));
  mp_strbuf_append(&text, name.data + colon, name.size - colon);
  mp_strbuf_append(&text, words.data, words.size);
  mp_status_t status = mp_strbuf_status(&text);
  if (status == NULL) {
    status = mp_pod_create_from_name((mp_str_t){mp_strbuf_text(&text), text.size}, "topology name",
                                     out_pod);
  }
  mp_strbuf_deinit(&text);
  return status;
}

// What options say beside the pod.
typedef struct {
  bool is_timed;
  mp_platform_t platform;
} settings_t;

// Options that are left are those of a client; they are checked, and count where there is no name.
static mp_status_t pjrt_topology_make_pod(mp_str_t name, mp_named_value_t *values,
                                          size_t num_values, mp_pod_t **out_pod,
                                          settings_t *out_settings) {
  mp_str_t config = {"", 0};
  mp_strbuf_t words;
  mp_strbuf_init(&words);
  pjrt_topology_take_words(values, &num_values, &words, &config);
  mp_options_t *options = NULL;
  mp_status_t status = mp_strbuf_status(&words);
  if (status == NULL) status = mp_options_create(values, num_values, &options);
  if (status == NULL && name.size > 0) {
    status = pjrt_topology_from_name(name, config, (mp_str_t){mp_strbuf_text(&words), words.size},
                                     out_pod);
  } else if (status == NULL && words.size + config.size > 0) {
    status = mp_status_make(MP_INVALID_ARGUMENT,
                            "num_slices, chips_per_host_bounds, wrap and chip_config_name need the "
                            "name of a topology, such as \"v5e:4x4\"");
  } else if (status == NULL) {
    status = mp_pod_create(options, out_pod);
  }
  mp_pod_time_t time = {0};
  if (status == NULL) status = mp_pod_read_time(*out_pod, options, &time);
  if (status == NULL) status = mp_pod_read_platform(*out_pod, options, &out_settings->platform);
  out_settings->is_timed = time.mode != MP_TIME_OFF;
  mp_options_release(options);
  mp_strbuf_deinit(&words);
  return status;
}

// With a name ("v5e:4x4", a YAML file) the pod is made without a machine; without a name it is what
// the options and this machine give.
mp_status_t mp_PJRT_TopologyDescription_Create(PJRT_TopologyDescription_Create_Args *args) {
  mp_named_value_t *values = NULL;
  mp_str_t name = {"", 0};
  if (args->topology_name != NULL) name = (mp_str_t){args->topology_name, args->topology_name_size};
  mp_pod_t *pod = NULL;
  MP_RETURN_IF_ERROR(mp_pjrt_read_named_values(args->create_options, args->num_options, &values));
  settings_t settings = {0};
  mp_status_t status = pjrt_topology_make_pod(name, values, args->num_options, &pod, &settings);
  mp_free(values);
  if (status != NULL) {
    mp_pod_release(pod);
    return status;
  }
  MP_RETURN_IF_ERROR(
      mp_pjrt_topology_create(pod, settings.platform, name.size > 0, &args->topology));
  args->topology->is_timed = settings.is_timed;
  return NULL;
}

mp_status_t mp_PJRT_TopologyDescription_Destroy(PJRT_TopologyDescription_Destroy_Args *args) {
  if (args->topology != NULL && !args->topology->is_borrowed) {
    mp_pjrt_topology_release(args->topology);
  }
  return NULL;
}

mp_status_t mp_PJRT_TopologyDescription_PlatformName(
    PJRT_TopologyDescription_PlatformName_Args *args) {
  args->platform_name = MP_PLATFORM_NAME;
  args->platform_name_size = sizeof(MP_PLATFORM_NAME) - 1;
  return NULL;
}

MP_TEXT_GETTER(PJRT_TopologyDescription_PlatformVersion, topology, platform_version,
               it->platform_version)
MP_LIST_GETTER(PJRT_TopologyDescription_GetDeviceDescriptions, topology, descriptions,
               it->description_list, num_descriptions, it->num_devices)
MP_LIST_GETTER(PJRT_TopologyDescription_Attributes, topology, attributes, it->attributes,
               num_attributes, it->num_attributes)
MP_GETTER(PJRT_TopologyDescription_Fingerprint, topology, fingerprint, mp_pod_fingerprint(it->pod))

mp_status_t mp_PJRT_TopologyDescription_Serialize(PJRT_TopologyDescription_Serialize_Args *args) {
  MP_REQUIRE(args, topology);
  mp_strbuf_t bytes;
  mp_strbuf_init(&bytes);
  mp_status_t status = mp_pod_serialize(args->topology->pod, &bytes);
  return mp_pjrt_lend_bytes(status, &bytes, &args->serialized_bytes, &args->serialized_bytes_size,
                            &args->serialized_topology, &args->serialized_topology_deleter);
}

mp_status_t mp_PJRT_TopologyDescription_Deserialize(
    PJRT_TopologyDescription_Deserialize_Args *args) {
  MP_REQUIRE(args, serialized_topology);
  mp_pod_t *pod = NULL;
  MP_RETURN_IF_ERROR(mp_pod_deserialize(
      (mp_str_t){args->serialized_topology, args->serialized_topology_size}, &pod));
  mp_platform_t platform = MP_PLATFORM_MINIPOD;
  mp_status_t status = mp_pod_read_platform(pod, NULL, &platform);
  if (status != NULL) {
    mp_pod_release(pod);
    return status;
  }
  return mp_pjrt_topology_create(pod, platform, true, &args->topology);
}

mp_status_t mp_PJRT_TopologyDescription_GetMemorySpaceKindIds(
    PJRT_TopologyDescription_GetMemorySpaceKindIds_Args *args) {
#define KIND_ID(name, text) MP_MEMORY_##name,
  static const int kind_ids[] = {MP_MEMORY_SPACES(KIND_ID)};
#undef KIND_ID
  args->memory_space_kind_ids = kind_ids;
  args->num_memory_space_kind_ids = MP_MEMORY_SPACE_COUNT;
  return NULL;
}
