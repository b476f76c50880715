// Every process runs this over the same bytes and gets the same devices; only the placement on the
// machine, at the end, is each process's own.
#include "topology/processes/pod_merge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "topology/pod_impl.h"
#include "topology/processes/announcement.h"
#include "topology/processes/pod_bounds.h"

typedef struct {
  mp_arena_t *arena;
  int32_t count;
  int32_t rank;
  mp_announcement_t *announcements;
  int32_t *num_devices;  // by rank
  int32_t num_hosts;     // hosts that run processes
  mp_pod_spec_t spec;
  mp_pod_bounds_t bounds;  // of all processes, if they are given
} union_t;

// ---- Names ----

enum { MP_PROCESS_NAME_SIZE = 128 };

// "process 1 (pid 4711 on a)"
static const char *pod_merge_name_process(const union_t *u, int32_t rank,
                                          char text[MP_PROCESS_NAME_SIZE]) {
  const mp_announcement_t *announcement = &u->announcements[rank];
  snprintf(text, MP_PROCESS_NAME_SIZE, "process %d (pid %" PRId64 " on %.*s)", rank,
           announcement->pid, MP_STR_SHOWN(announcement->hostname, 64));
  return text;
}

static mp_status_t pod_merge_disagree(const union_t *u, int32_t rank, const char *what,
                                      const char *theirs, const char *ours) {
  char first[MP_PROCESS_NAME_SIZE], second[MP_PROCESS_NAME_SIZE];
  return mp_status_make(
      MP_FAILED_PRECONDITION,
      "the processes disagree on the %s: %s has %s, %s has %s; all processes of a "
      "pod must have the same %s",
      what, pod_merge_name_process(u, 0, first), ours, pod_merge_name_process(u, rank, second),
      theirs, what);
}

// ---- Reading and comparing ----

static mp_status_t pod_merge_read_announcements(union_t *u, const mp_str_t *announcements) {
  u->announcements = MP_ARENA_ARRAY(u->arena, mp_announcement_t, (size_t)u->count);
  u->num_devices = MP_ARENA_ARRAY(u->arena, int32_t, (size_t)u->count);
  MP_RETURN_IF_NULL(u->announcements);
  MP_RETURN_IF_NULL(u->num_devices);
  for (int32_t r = 0; r < u->count; ++r) {
    MP_RETURN_IF_ERROR(
        mp_status_annotate(mp_announcement_read(announcements[r], u->arena, &u->announcements[r]),
                           "the announcement of process %d cannot be read", r));
    const mp_announcement_t *announcement = &u->announcements[r];
    if (announcement->host < 0 || announcement->host >= u->count || announcement->num_devices < 0 ||
        announcement->num_devices > MP_POD_MAX_DEVICES || announcement->workers < 0 ||
        announcement->workers > INT32_MAX) {
      return mp_status_make(MP_INTERNAL, "the announcement of process %d has impossible values", r);
    }
    if (announcement->host >= u->num_hosts) u->num_hosts = announcement->host + 1;
  }
  return NULL;
}

// If this process itself has failed, its own error is reported rather than another one's.
static mp_status_t pod_merge_check_failures(const union_t *u) {
  const mp_announcement_t *own = &u->announcements[u->rank];
  if (own->code != MP_OK) {
    return mp_status_make(own->code, "%.*s", MP_STR_ARG(own->error));
  }
  for (int32_t r = 0; r < u->count; ++r) {
    char name[MP_PROCESS_NAME_SIZE];
    const mp_announcement_t *announcement = &u->announcements[r];
    if (announcement->code == MP_OK) continue;
    return mp_status_make(announcement->code, "%s cannot start: %.*s",
                          pod_merge_name_process(u, r, name), MP_STR_ARG(announcement->error));
  }
  return NULL;
}

// The first line of `text` in which it differs from `other`.
static mp_str_t pod_merge_differing_line(mp_str_t text, mp_str_t other) {
  if (text.size == 0) return MP_STR("");
  size_t line = 0;
  for (size_t i = 0; i < text.size && i < other.size && text.data[i] == other.data[i]; ++i) {
    if (text.data[i] == '\n') line = i + 1;
  }
  size_t end = line;
  while (end < text.size && text.data[end] != '\n') ++end;
  return (mp_str_t){text.data + line, end - line};
}

// `"v5e:4x4" ('shape: 4x4')`
static void pod_merge_write_topology(const mp_announcement_t *announcement,
                                     const mp_announcement_t *other, mp_strbuf_t *out) {
  if (announcement->topology.size == 0) {
    mp_strbuf_puts(out, "none (what the machine has)");
    return;
  }
  mp_strbuf_printf(out, "\"%.*s\"", MP_STR_SHOWN(announcement->topology, 200));
  mp_str_t line = pod_merge_differing_line(announcement->spec, other->spec);
  if (line.size != 0 && other->spec.size != 0) {
    mp_strbuf_printf(out, " ('%.*s')", MP_STR_ARG(line));
  }
}

static mp_status_t pod_merge_refuse_topology(const union_t *u, int32_t rank) {
  mp_strbuf_t ours, theirs;
  mp_strbuf_init(&ours);
  mp_strbuf_init(&theirs);
  pod_merge_write_topology(&u->announcements[0], &u->announcements[rank], &ours);
  pod_merge_write_topology(&u->announcements[rank], &u->announcements[0], &theirs);
  mp_status_t status =
      pod_merge_disagree(u, rank, "topology", mp_strbuf_text(&theirs), mp_strbuf_text(&ours));
  mp_strbuf_deinit(&ours);
  mp_strbuf_deinit(&theirs);
  return status;
}

static mp_status_t pod_merge_refuse_number(const union_t *u, int32_t rank, const char *what,
                                           int64_t ours, int64_t theirs) {
  char texts[2][32];
  snprintf(texts[0], sizeof(texts[0]), "%" PRId64, ours);
  snprintf(texts[1], sizeof(texts[1]), "%" PRId64, theirs);
  return pod_merge_disagree(u, rank, what, theirs == 0 ? "none" : texts[1],
                            ours == 0 ? "none" : texts[0]);
}

// Compares the settings line by line. In processes of one build corresponding lines have the same
// subject, as long as the lines before are equal.
static mp_status_t pod_merge_check_settings(const union_t *u, int32_t rank) {
  mp_str_t ours = u->announcements[0].settings, theirs = u->announcements[rank].settings;
  while (ours.size != 0 && theirs.size != 0) {
    mp_str_t our_value = mp_str_cut(&ours, '\n'), their_value = mp_str_cut(&theirs, '\n');
    const mp_str_t what = mp_str_cut(&our_value, '\t');
    (void)mp_str_cut(&their_value, '\t');
    if (mp_str_is(our_value, "?") || mp_str_is(their_value, "?")) continue;
    if (mp_str_equal(our_value, their_value)) continue;
    char texts[3][200];
    snprintf(texts[0], sizeof(texts[0]), "%.*s", MP_STR_ARG(what));
    snprintf(texts[1], sizeof(texts[1]), "%.*s", MP_STR_ARG(our_value));
    snprintf(texts[2], sizeof(texts[2]), "%.*s", MP_STR_ARG(their_value));
    return pod_merge_disagree(u, rank, texts[0], texts[2], texts[1]);
  }
  return NULL;
}

static mp_status_t pod_merge_read_bounds(union_t *u) {
  const mp_str_t ours = u->announcements[0].bounds;
  for (int32_t r = 1; r < u->count; ++r) {
    const mp_str_t theirs = u->announcements[r].bounds;
    if (mp_str_equal(ours, theirs)) continue;
    char texts[2][100];
    snprintf(texts[0], sizeof(texts[0]), "%.*s", MP_STR_SHOWN(ours, 99));
    snprintf(texts[1], sizeof(texts[1]), "%.*s", MP_STR_SHOWN(theirs, 99));
    return pod_merge_disagree(u, r, "TPU_PROCESS_BOUNDS x TPU_CHIPS_PER_PROCESS_BOUNDS",
                              theirs.size == 0 ? "none" : texts[1],
                              ours.size == 0 ? "none" : texts[0]);
  }
  if (ours.size == 0 || mp_pod_bounds_read(ours, &u->bounds)) return NULL;
  return mp_status_make(MP_INTERNAL, "the announcement of process 0 has impossible bounds");
}

static mp_status_t pod_merge_check_agreement(const union_t *u) {
  const mp_announcement_t *first = &u->announcements[0];
  for (int32_t r = 1; r < u->count; ++r) {
    const mp_announcement_t *announcement = &u->announcements[r];
    if (!mp_str_equal(announcement->version, first->version)) {
      char ours[80], theirs[80];
      snprintf(ours, sizeof(ours), "%.*s", MP_STR_ARG(first->version));
      snprintf(theirs, sizeof(theirs), "%.*s", MP_STR_ARG(announcement->version));
      return pod_merge_disagree(u, r, "version of minipod", theirs, ours);
    }
    if (announcement->protocol != first->protocol ||
        announcement->protocol != MP_ANNOUNCEMENT_PROTOCOL) {
      return pod_merge_refuse_number(u, r, "protocol", first->protocol, announcement->protocol);
    }
    if ((announcement->topology.size == 0) != (first->topology.size == 0) ||
        !mp_str_equal(announcement->spec, first->spec)) {
      return pod_merge_refuse_topology(u, r);
    }
    if (announcement->device_memory != first->device_memory) {
      return pod_merge_refuse_number(u, r, "option device_memory", first->device_memory,
                                     announcement->device_memory);
    }
    MP_RETURN_IF_ERROR(pod_merge_check_settings(u, r));
  }
  return NULL;
}

// ---- The cores of each process ----

static bool pod_merge_uses_the_same_cpus(const mp_machine_t *a, const mp_machine_t *b) {
  return a->is_real == b->is_real && a->num_cpus == b->num_cpus &&
         memcmp(a->cpus, b->cpus, sizeof(*a->cpus) * (size_t)a->num_cpus) == 0;
}

// The number of processes of the host that may use the same cpus as this one, and the index of this
// one among them. They divide these cpus; the launcher has bound the others to other cpus.
static int32_t pod_merge_count_sharers(const union_t *u, int32_t rank, int32_t *out_index) {
  const mp_announcement_t *announcement = &u->announcements[rank];
  int32_t sharers = 0;
  for (int32_t r = 0; r < u->count; ++r) {
    if (u->announcements[r].host != announcement->host) continue;
    if (!pod_merge_uses_the_same_cpus(&u->announcements[r].machine, &announcement->machine))
      continue;
    if (r == rank) *out_index = sharers;
    ++sharers;
  }
  return sharers;
}

static int32_t pod_merge_ranks_on_host_of(const union_t *u, int32_t rank) {
  int32_t ranks = 0;
  for (int32_t r = 0; r < u->count; ++r)
    ranks += u->announcements[r].host == u->announcements[rank].host;
  return ranks;
}

static int32_t pod_merge_default_workers(const mp_announcement_t *announcement,
                                         const mp_machine_t *machine) {
  return announcement->workers != 0 ? (int32_t)announcement->workers
                                    : mp_machine_default_workers(machine);
}

static int32_t pod_merge_max(int32_t a, int32_t b) {
  return a > b ? a : b;
}

static int32_t pod_merge_min(int32_t a, int32_t b) {
  return a < b ? a : b;
}

// The number of devices of a process: the configured number, otherwise the number of its own core
// groups. Processes that share cpus get equal numbers, even if groups are left over, because
// programs written for several processes rely on it.
static int32_t pod_merge_devices_of_machine(const union_t *u, int32_t rank) {
  const mp_announcement_t *announcement = &u->announcements[rank];
  if (announcement->num_devices != 0) return (int32_t)announcement->num_devices;
  if (mp_pod_bounds_are_given(&u->bounds)) return mp_pod_bounds_devices(&u->bounds, 1);
  int32_t index = 0;
  int32_t sharers = pod_merge_count_sharers(u, rank, &index);
  mp_machine_t part = {.num_cores = pod_merge_max(announcement->machine.num_cores / sharers, 1),
                       .cpu_quota = announcement->machine.cpu_quota / sharers};
  int32_t own = pod_merge_min(announcement->machine.num_groups / sharers,
                              pod_merge_default_workers(announcement, &part));
  return pod_merge_max(
      pod_merge_max(own, MP_POD_LEAST_DEVICES / pod_merge_ranks_on_host_of(u, rank)), 1);
}

// ---- Dividing ----

static bool pod_merge_share_hosts(const union_t *u, const int32_t *devices_of, int32_t hosts,
                                  int32_t *out_devices) {
  if (u->count % hosts != 0 && hosts % u->count != 0) return false;
  int32_t per_host = pod_merge_max(u->count / hosts, 1);
  int32_t hosts_each = pod_merge_max(hosts / u->count, 1);
  for (int32_t r = 0; r < u->count; ++r) {
    int32_t devices = 0;
    int32_t host = r / per_host * hosts_each;
    for (int32_t i = 0; i < hosts_each; ++i) devices += devices_of[host + i];
    if (devices % per_host != 0) return false;
    out_devices[r] = devices / per_host;
  }
  return true;
}

static mp_status_t pod_merge_check_count(const union_t *u, const mp_pod_t *pod) {
  for (int32_t r = 0; r < u->count; ++r) {
    const mp_announcement_t *announcement = &u->announcements[r];
    if (announcement->num_devices == 0 || announcement->num_devices == u->num_devices[r]) continue;
    char name[MP_PROCESS_NAME_SIZE];
    return mp_status_make(
        MP_INVALID_ARGUMENT,
        "num_devices is %" PRId64
        " (%.*s) for %s, but topology \"%.*s\" (%.*s) has %d devices, %d of them for this one of "
        "%d processes; num_devices counts the devices of one process: give one of the two, or make "
        "them agree",
        announcement->num_devices, MP_STR_ARG(announcement->num_devices_source),
        pod_merge_name_process(u, r, name), MP_STR_ARG(announcement->topology),
        MP_STR_ARG(announcement->topology_source), pod->info.num_devices, u->num_devices[r],
        u->count);
  }
  return NULL;
}

// Whether the processes have bounds. These describe a single slice.
static bool pod_merge_is_bounded(const union_t *u, const mp_pod_t *pod) {
  return mp_pod_bounds_are_given(&u->bounds) && pod->info.num_slices == 1;
}

static mp_status_t pod_merge_divide_by_bounds(union_t *u, const mp_pod_t *pod) {
  MP_RETURN_IF_ERROR(mp_pod_bounds_check(&u->bounds, &pod->info, u->count));
  const int32_t devices = mp_pod_bounds_devices(&u->bounds, pod->info.cores_per_chip);
  for (int32_t r = 0; r < u->count; ++r) u->num_devices[r] = devices;
  return pod_merge_check_count(u, pod);
}

// Sets the number of devices of each process in a described pod: as its bounds say, or whole hosts
// or equal parts of hosts if the numbers allow it, else equal parts.
static mp_status_t pod_merge_divide_described(union_t *u, const mp_pod_t *pod) {
  if (pod_merge_is_bounded(u, pod)) return pod_merge_divide_by_bounds(u, pod);
  int32_t hosts = pod->info.num_hosts;
  int32_t devices = pod->info.num_devices;
  int32_t *devices_of = MP_ARENA_ARRAY(u->arena, int32_t, (size_t)hosts);
  MP_RETURN_IF_NULL(devices_of);
  for (int32_t id = 0; id < devices; ++id) ++devices_of[pod->devices[id].host_index];
  if (!pod_merge_share_hosts(u, devices_of, hosts, u->num_devices)) {
    if (devices % u->count != 0) {
      return mp_status_make(
          MP_INVALID_ARGUMENT,
          "topology \"%.*s\" (%.*s) has %d devices on %d host%s, which cannot be divided among %d "
          "processes; start a number of processes that divides it",
          MP_STR_ARG(u->announcements[0].topology), MP_STR_ARG(u->announcements[0].topology_source),
          devices, hosts, hosts == 1 ? "" : "s", u->count);
    }
    for (int32_t r = 0; r < u->count; ++r) u->num_devices[r] = devices / u->count;
  }
  return pod_merge_check_count(u, pod);
}

// By process, where bounds have set them; else all processes are still 0.
static int pod_merge_compare_hosts(const void *a, const void *b) {
  const mp_pod_device_t *x = a;
  const mp_pod_device_t *y = b;
  if (x->process_index != y->process_index) return x->process_index < y->process_index ? -1 : 1;
  if (x->host_index != y->host_index) return x->host_index < y->host_index ? -1 : 1;
  return (x->id > y->id) - (x->id < y->id);
}

// Numbers the devices host by host, or in the boxes of processes, and gives each process its part
// of them.
static void pod_merge_assign_devices(const union_t *u, bool is_bounded, mp_pod_t *pod) {
  mp_pod_info_t *info = &pod->info;
  for (int32_t i = 0; i < info->num_devices; ++i) {
    mp_pod_device_t *device = &pod->devices[i];
    device->process_index = is_bounded ? mp_pod_bounds_process_of(&u->bounds, info, device) : 0;
  }
  qsort(pod->devices, (size_t)info->num_devices, sizeof(pod->devices[0]), pod_merge_compare_hosts);
  info->process_index = u->rank;
  info->num_processes = u->count;
  int32_t id = 0;
  for (int32_t r = 0; r < u->count; ++r) {
    if (r == u->rank) info->first_local_device = id;
    for (int32_t i = 0; i < u->num_devices[r]; ++i, ++id) {
      mp_pod_device_t *device = &pod->devices[id];
      device->id = id;
      device->process_index = r;
      device->local_hardware_id = i;
    }
  }
  info->num_local_devices = u->num_devices[u->rank];
}

static mp_status_t pod_merge_build_described(union_t *u, mp_pod_t **out_pod) {
  const mp_announcement_t *announcement = &u->announcements[0];
  MP_RETURN_IF_ERROR(mp_spec_read_yaml(&u->spec, "topology", announcement->spec));
  if (announcement->name.size <= MP_SPEC_MAX_TEXT && announcement->name.size > 0) {
    memcpy(u->spec.name, announcement->name.data, announcement->name.size);
  }
  MP_RETURN_IF_ERROR(mp_spec_finish(&u->spec, "topology"));
  if (announcement->device_memory != 0)
    u->spec.memory[MP_MEMORY_DEVICE] = (uint64_t)announcement->device_memory;
  mp_pod_t *pod = NULL;
  MP_RETURN_IF_ERROR(mp_pod_build(&u->spec, announcement->topology, &pod));
  mp_status_t status = pod_merge_divide_described(u, pod);
  if (status != NULL) {
    mp_pod_release(pod);
    return status;
  }
  pod_merge_assign_devices(u, pod_merge_is_bounded(u, pod), pod);
  *out_pod = pod;
  return NULL;
}

// Makes the pod from the found machines: chips in a row, and the real hosts as hosts.
static mp_status_t pod_merge_build_found(union_t *u, mp_pod_t **out_pod) {
  int64_t devices = 0;
  for (int32_t r = 0; r < u->count; ++r) {
    u->num_devices[r] = pod_merge_devices_of_machine(u, r);
    devices += u->num_devices[r];
  }
  if (devices > MP_POD_MAX_DEVICES) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "%d processes with %" PRId64 " devices in total; a pod has at most %d",
                          u->count, devices, MP_POD_MAX_DEVICES);
  }
  u->spec.wirings = (mp_wirings_t){1, {MP_WIRING_SWITCH}};
  u->spec.shape = (mp_shape_t){1, {(int32_t)devices}};
  if (u->announcements[0].device_memory != 0) {
    u->spec.memory[MP_MEMORY_DEVICE] = (uint64_t)u->announcements[0].device_memory;
  }
  MP_RETURN_IF_ERROR(mp_spec_finish(&u->spec, "the machine"));
  if (devices % u->num_hosts == 0) u->spec.hosts = u->num_hosts;
  mp_pod_t *pod = NULL;
  MP_RETURN_IF_ERROR(mp_pod_build(&u->spec, MP_STR("machine"), &pod));
  // Devices are numbered in the order of ranks, even where ranks alternate between hosts: as long
  // as all have the same host index here, they are not sorted by host.
  for (int32_t id = 0; id < pod->info.num_devices; ++id) pod->devices[id].host_index = 0;
  pod_merge_assign_devices(u, false, pod);
  pod->info.num_hosts = u->num_hosts;
  for (int32_t id = 0; id < pod->info.num_devices; ++id) {
    mp_pod_device_t *device = &pod->devices[id];
    device->host_index = u->announcements[device->process_index].host;
  }
  *out_pod = pod;
  return NULL;
}

// ---- Placing ----

static mp_status_t pod_merge_place(const union_t *u, mp_pod_t *pod) {
  mp_announcement_t *own = &u->announcements[u->rank];
  int32_t index = 0;
  int32_t sharers = pod_merge_count_sharers(u, u->rank, &index);
  // The copy has the same arrays, so the announcement's machine must not be used afterwards.
  mp_machine_t machine = own->machine;
  mp_machine_keep_part(&machine, index, sharers);
  MP_RETURN_IF_ERROR(mp_pod_place(pod, &machine, pod_merge_default_workers(own, &machine)));
  int32_t first = 0;
  for (int32_t r = 0; r < u->count; first += u->num_devices[r++]) {
    int32_t devices_on_host = 0;
    for (int32_t other = 0; other < u->count; ++other) {
      if (u->announcements[other].host != u->announcements[r].host) continue;
      devices_on_host += u->num_devices[other];
    }
    mp_pod_share_memory(pod, first, u->num_devices[r], u->announcements[r].machine.memory,
                        devices_on_host);
  }
  return NULL;
}

// ---- Notes ----

static void pod_merge_note_unequal(const union_t *u, mp_strbuf_t *out) {
  int32_t r = 1;
  while (r < u->count && u->num_devices[r] == u->num_devices[0]) ++r;
  if (r == u->count) return;
  mp_strbuf_printf(
      out,
      "the processes have unequal numbers of devices (process 0 has %d, process %d "
      "has %d); code that requires equal numbers, such as JAX's multihost_utils, will fail\n",
      u->num_devices[0], r, u->num_devices[r]);
}

// Adds a note about processes that the launcher has bound to too few cores. More processes than
// cores are the user's choice and cause no note.
static void pod_merge_note_starved(const union_t *u, mp_strbuf_t *out) {
  for (int32_t r = 0; r < u->count; ++r) {
    const mp_machine_t *machine = &u->announcements[r].machine;
    if (!machine->is_real || machine->num_cores >= machine->num_cores_all) continue;
    if (machine->num_cores >= u->num_devices[r]) continue;
    mp_strbuf_printf(out,
                     "process %d is bound to %d of %d cores and has %d devices; "
                     "'mpirun --bind-to none' lets the processes share all cores\n",
                     r, machine->num_cores, machine->num_cores_all, u->num_devices[r]);
    return;
  }
}

// Flags on which predicted times depend are compared before.
static void pod_merge_note_libtpu_args(const union_t *u, mp_strbuf_t *out) {
  const mp_str_t ours = u->announcements[0].libtpu_args;
  int32_t r = 1;
  while (r < u->count && mp_str_equal(u->announcements[r].libtpu_args, ours)) ++r;
  if (r == u->count) return;
  mp_strbuf_printf(out,
                   "process 0 and process %d have different LIBTPU_INIT_ARGS ('%.*s' and '%.*s'), "
                   "which does not change predicted times\n",
                   r, MP_STR_SHOWN(ours, 200), MP_STR_SHOWN(u->announcements[r].libtpu_args, 200));
}

static mp_status_t pod_merge_merge(union_t *u, const mp_str_t *announcements, mp_pod_t **out_pod,
                                   mp_strbuf_t *out_notes) {
  MP_RETURN_IF_ERROR(pod_merge_read_announcements(u, announcements));
  MP_RETURN_IF_ERROR(pod_merge_check_failures(u));
  MP_RETURN_IF_ERROR(pod_merge_check_agreement(u));
  MP_RETURN_IF_ERROR(pod_merge_read_bounds(u));
  mp_pod_t *pod = NULL;
  MP_RETURN_IF_ERROR(u->announcements[0].topology.size != 0 ? pod_merge_build_described(u, &pod)
                                                            : pod_merge_build_found(u, &pod));
  pod_merge_note_unequal(u, out_notes);
  pod_merge_note_starved(u, out_notes);
  pod_merge_note_libtpu_args(u, out_notes);
  mp_status_t status = pod_merge_place(u, pod);
  if (status == NULL) status = mp_strbuf_status(out_notes);
  if (status != NULL) {
    mp_pod_release(pod);
    return status;
  }
  *out_pod = pod;
  return NULL;
}

mp_status_t mp_pod_merge(const mp_str_t *announcements, int32_t count, int32_t rank,
                         mp_pod_t **out_pod, mp_strbuf_t *out_notes) {
  union_t u = {.count = count, .rank = rank};
  MP_RETURN_IF_ERROR(mp_arena_create(&u.arena));
  mp_status_t status = pod_merge_merge(&u, announcements, out_pod, out_notes);
  mp_arena_release(u.arena);
  return status;
}
