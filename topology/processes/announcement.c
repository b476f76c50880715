#include "topology/processes/announcement.h"

#include "sim/base/proto.h"
#include "topology/pod_impl.h"
#include "topology/processes/pod_bounds.h"
#include "topology/processes/pod_merge.h"

// Field numbers, which are never reused. Protocol, version, host, host name and pid must be the
// same in all protocols.
#define MP_ANNOUNCEMENT_INTS(X)     \
  X(1, protocol, int64_t)           \
  X(3, host, int32_t)               \
  X(5, pid, int64_t)                \
  X(6, code, mp_status_code_t)      \
  X(11, num_devices, int64_t)       \
  X(13, device_memory, int64_t)     \
  X(14, workers, int64_t)           \
  X(16, machine.is_real, bool)      \
  X(17, machine.num_packages, int)  \
  X(18, machine.num_cores_all, int) \
  X(19, machine.memory, uint64_t)
#define MP_ANNOUNCEMENT_TEXTS(X) \
  X(2, version)                  \
  X(4, hostname)                 \
  X(7, error)                    \
  X(8, topology)                 \
  X(9, topology_source)          \
  X(10, spec)                    \
  X(12, num_devices_source)      \
  X(15, name)                    \
  X(22, settings)                \
  X(23, bounds)                  \
  X(24, libtpu_args)
enum { MP_ANNOUNCEMENT_QUOTA = 20, MP_ANNOUNCEMENT_GROUP = 21 };
enum {
  MP_GROUP_NODE = 1,
  MP_GROUP_CPUS = 2,
  MP_GROUP_CPU_CORES = 3,
  MP_GROUP_CORE_CPUS = 4,
  MP_GROUP_NODE_MEMORY = 5,
};

// ---- Writing ----

static void announcement_put_ints(mp_strbuf_t *out, uint32_t number, const int32_t *values,
                                  int32_t count, int32_t base) {
  for (int32_t i = 0; i < count; ++i) {
    mp_proto_put_varint(out, number, (uint64_t)(int64_t)(values[i] - base));
  }
}

static void announcement_put_group(mp_strbuf_t *out, const mp_machine_t *machine,
                                   const mp_machine_group_t *group) {
  mp_strbuf_t inner;
  mp_strbuf_init(&inner);
  mp_proto_put_varint(&inner, MP_GROUP_NODE, (uint64_t)(int64_t)group->numa_node);
  mp_proto_put_varint(&inner, MP_GROUP_NODE_MEMORY, group->node_memory);
  announcement_put_ints(&inner, MP_GROUP_CPUS, machine->cpus + group->first_cpu, group->num_cpus,
                        0);
  announcement_put_ints(&inner, MP_GROUP_CPU_CORES, machine->cpu_cores + group->first_cpu,
                        group->num_cpus, group->first_core);
  announcement_put_ints(&inner, MP_GROUP_CORE_CPUS, machine->core_cpus + group->first_core,
                        group->num_cores, 0);
  mp_proto_put_message(out, MP_ANNOUNCEMENT_GROUP, &inner);
  mp_strbuf_deinit(&inner);
}

mp_status_t mp_announcement_write(const mp_announcement_t *announcement, mp_strbuf_t *out_bytes) {
#define MP_ANNOUNCEMENT_PUT(number, member, type) \
  mp_proto_put_varint(out_bytes, number, (uint64_t)announcement->member);
  MP_ANNOUNCEMENT_INTS(MP_ANNOUNCEMENT_PUT)
#undef MP_ANNOUNCEMENT_PUT
#define MP_ANNOUNCEMENT_PUT(number, member) \
  mp_proto_put_bytes(out_bytes, number, announcement->member);
  MP_ANNOUNCEMENT_TEXTS(MP_ANNOUNCEMENT_PUT)
#undef MP_ANNOUNCEMENT_PUT
  mp_proto_put_double(out_bytes, MP_ANNOUNCEMENT_QUOTA, announcement->machine.cpu_quota);
  for (int32_t i = 0; i < announcement->machine.num_groups; ++i) {
    announcement_put_group(out_bytes, &announcement->machine, &announcement->machine.groups[i]);
  }
  return mp_strbuf_status(out_bytes);
}

// ---- Reading ----

static const char k_does_not_fit[] = "the number does not fit";

// The first pass over a group only counts what is in it.
static void announcement_count_group(mp_proto_reader_t reader, mp_machine_t *counts) {
  mp_proto_field_t field;
  ++counts->num_groups;
  while (mp_proto_next(&reader, &field)) {
    counts->num_cpus += field.number == MP_GROUP_CPUS;
    counts->num_cores += field.number == MP_GROUP_CORE_CPUS;
  }
}

// Reads a signed number of 32 bits; a larger one is refused, not truncated.
static int32_t announcement_read_i32(mp_proto_reader_t *reader, const mp_proto_field_t *field) {
  const int64_t value = (int64_t)mp_proto_varint(reader, field);
  if (value >= INT32_MIN && value <= INT32_MAX) return (int32_t)value;
  mp_proto_fault(reader, field, k_does_not_fit);
  return 0;
}

static mp_status_t announcement_read_group(mp_proto_reader_t *reader, const mp_machine_t *room,
                                           mp_machine_t *machine) {
  mp_machine_group_t *group = &machine->groups[machine->num_groups++];
  *group = (mp_machine_group_t){.first_cpu = machine->num_cpus, .first_core = machine->num_cores};
  int32_t num_cpu_cores = 0;
  mp_proto_field_t field;
  while (mp_proto_next(reader, &field)) {
    if (field.number == MP_GROUP_NODE_MEMORY) {
      group->node_memory = mp_proto_varint(reader, &field);
      continue;
    }
    const int32_t value = announcement_read_i32(reader, &field);
    if (field.number == MP_GROUP_NODE) group->numa_node = value;
    if (field.number == MP_GROUP_CPUS) machine->cpus[machine->num_cpus++] = value;
    if (field.number == MP_GROUP_CORE_CPUS) machine->core_cpus[machine->num_cores++] = value;
    if (field.number != MP_GROUP_CPU_CORES) continue;
    int32_t at = group->first_cpu + num_cpu_cores++;
    // An invalid core position becomes INT32_MAX, which is larger than those of all cores.
    const bool is_core = value >= 0 && value < room->num_cores;
    if (at < room->num_cpus) {
      machine->cpu_cores[at] = is_core ? group->first_core + value : INT32_MAX;
    }
  }
  MP_RETURN_IF_ERROR(mp_proto_reader_status(reader));
  group->num_cpus = machine->num_cpus - group->first_cpu;
  group->num_cores = machine->num_cores - group->first_core;
  bool is_valid = group->num_cpus > 0 && group->num_cores > 0 && num_cpu_cores == group->num_cpus;
  for (int32_t i = group->first_cpu; i < machine->num_cpus && is_valid; ++i) {
    is_valid = machine->cpus[i] >= 0 && machine->cpu_cores[i] >= group->first_core &&
               machine->cpu_cores[i] < machine->num_cores;
  }
  for (int32_t i = group->first_core; i < machine->num_cores; ++i) {
    is_valid &= machine->core_cpus[i] >= 0;
  }
  if (is_valid) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT, "its core group %d is invalid",
                        machine->num_groups - 1);
}

static mp_status_t announcement_read_groups(mp_str_t bytes, mp_arena_t *arena,
                                            mp_machine_t *machine) {
  mp_machine_t room = {0};
  mp_proto_field_t field;
  mp_proto_reader_t reader = mp_proto_reader(bytes, "announcement");
  while (mp_proto_next(&reader, &field)) {
    if (field.number != MP_ANNOUNCEMENT_GROUP) continue;
    announcement_count_group(mp_proto_message(&reader, &field, "core group"), &room);
  }
  machine->groups = MP_ARENA_ARRAY(arena, mp_machine_group_t, (size_t)room.num_groups + 1);
  machine->cpus = MP_ARENA_ARRAY(arena, int32_t, (size_t)room.num_cpus + 1);
  machine->cpu_cores = MP_ARENA_ARRAY(arena, int32_t, (size_t)room.num_cpus + 1);
  machine->core_cpus = MP_ARENA_ARRAY(arena, int32_t, (size_t)room.num_cores + 1);
  if (machine->groups == NULL || machine->cpus == NULL || machine->cpu_cores == NULL ||
      machine->core_cpus == NULL) {
    return mp_status_out_of_memory();
  }
  reader = mp_proto_reader(bytes, "announcement");
  while (mp_proto_next(&reader, &field)) {
    if (field.number != MP_ANNOUNCEMENT_GROUP) continue;
    mp_proto_reader_t inner = mp_proto_message(&reader, &field, "core group");
    MP_RETURN_IF_ERROR(announcement_read_group(&inner, &room, machine));
    const mp_machine_group_t *group = &machine->groups[machine->num_groups - 1];
    machine->num_numa_nodes += machine->num_groups == 1 || group[-1].numa_node != group->numa_node;
  }
  return NULL;
}

mp_status_t mp_announcement_read(mp_str_t bytes, mp_arena_t *arena,
                                 mp_announcement_t *out_announcement) {
  mp_announcement_t announcement = {0};
  uint64_t value = 0;
  mp_proto_field_t field;
  mp_proto_reader_t reader = mp_proto_reader(bytes, "announcement");
  while (mp_proto_next(&reader, &field)) {
    switch (field.number) {
#define MP_ANNOUNCEMENT_GET(number, member, type)        \
  case number:                                           \
    value = mp_proto_varint(&reader, &field);            \
    announcement.member = (type)value;                   \
    if ((uint64_t)(int64_t)announcement.member != value) \
      mp_proto_fault(&reader, &field, k_does_not_fit);   \
    break;
      MP_ANNOUNCEMENT_INTS(MP_ANNOUNCEMENT_GET)
#undef MP_ANNOUNCEMENT_GET
#define MP_ANNOUNCEMENT_GET(number, member)                \
  case number:                                             \
    announcement.member = mp_proto_bytes(&reader, &field); \
    break;
      MP_ANNOUNCEMENT_TEXTS(MP_ANNOUNCEMENT_GET)
#undef MP_ANNOUNCEMENT_GET
      case MP_ANNOUNCEMENT_QUOTA:
        announcement.machine.cpu_quota = mp_proto_double(&reader, &field);
        break;
      default:
        break;
    }
  }
  MP_RETURN_IF_ERROR(mp_proto_reader_status(&reader));
  announcement.code = mp_status_code_of_number((uint32_t)announcement.code);
  // The machine is read only in this version's protocol: in others its fields may have other
  // meanings.
  if (announcement.protocol == MP_ANNOUNCEMENT_PROTOCOL && announcement.code == MP_OK) {
    MP_RETURN_IF_ERROR(announcement_read_groups(bytes, arena, &announcement.machine));
    if (announcement.machine.num_groups == 0) {
      return mp_status_make(MP_INVALID_ARGUMENT, "it has no core groups");
    }
  }
  *out_announcement = announcement;
  return NULL;
}

// ---- The announcement of this process ----

static mp_status_t announcement_describe(const mp_options_t *options, mp_pod_spec_t *spec,
                                         mp_announcement_t *announcement, mp_strbuf_t *spec_text) {
  if (options->topology[0] == '\0') return NULL;
  MP_RETURN_IF_ERROR(mp_pod_read_description(mp_str(options->topology), "topology", spec));
  mp_spec_write(spec, spec_text);
  MP_RETURN_IF_ERROR(mp_strbuf_status(spec_text));
  announcement->topology = mp_str(options->topology);
  announcement->topology_source =
      mp_str(mp_option_source_name(options->source[MP_OPTION_ID_topology]));
  announcement->spec = (mp_str_t){mp_strbuf_text(spec_text), spec_text->size};
  announcement->name = mp_str(spec->name);
  return NULL;
}

static int64_t announcement_given(int64_t value) {
  return value == MP_OPTION_UNSET ? 0 : value;
}

mp_status_t mp_pod_announce(const mp_options_t *options, const mp_pod_process_t *process,
                            mp_strbuf_t *out_bytes) {
  mp_announcement_t announcement = {
      .protocol = MP_ANNOUNCEMENT_PROTOCOL,
      .version = MP_STR(MINIPOD_VERSION),
      .host = process->host,
      .hostname = mp_str(process->hostname),
      .pid = process->pid,
      .num_devices = announcement_given(options->num_devices),
      .num_devices_source =
          mp_str(mp_option_source_name(options->source[MP_OPTION_ID_num_devices])),
      .device_memory = announcement_given(options->device_memory),
      .workers = announcement_given(options->workers),
      .libtpu_args = mp_str(process->libtpu_args == NULL ? "" : process->libtpu_args),
  };
  mp_pod_spec_t spec = {0};
  mp_strbuf_t spec_text, settings, bounds;
  mp_strbuf_init(&bounds);
  mp_strbuf_init(&spec_text);
  mp_strbuf_init(&settings);
  mp_machine_t *machine = NULL;
  mp_status_t status = mp_machine_create(options->machine, &machine);
  if (status == NULL) {
    announcement.machine = *machine;
    status = announcement_describe(options, &spec, &announcement, &spec_text);
  }
  if (status == NULL) {
    status =
        mp_pod_write_settings(&spec, options, process->faults, process->libtpu_flags, &settings);
  }
  announcement.settings = (mp_str_t){mp_strbuf_text(&settings), settings.size};
  mp_pod_bounds_write(&process->bounds, &bounds);
  announcement.bounds = (mp_str_t){mp_strbuf_text(&bounds), bounds.size};
  if (status == NULL) status = mp_strbuf_status(&bounds);
  if (status != NULL) {
    announcement.code = mp_status_code(status);
    announcement.error = mp_str(mp_status_message(status));
  }
  mp_status_t written = mp_announcement_write(&announcement, out_bytes);
  mp_status_release(status);
  mp_machine_release(machine);
  mp_strbuf_deinit(&settings);
  mp_strbuf_deinit(&spec_text);
  mp_strbuf_deinit(&bounds);
  return written;
}
