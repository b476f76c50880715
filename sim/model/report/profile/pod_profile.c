#include "sim/model/report/profile/pod_profile.h"

#include <inttypes.h>
#include <stdio.h>

#include "collectives/mailbox.h"
#include "sim/base/alloc.h"
#include "sim/base/hash.h"
#include "sim/base/log.h"
#include "sim/model/report/profile/xplane.h"
#include "sim/model/report/report_links.h"
#include "sim/model/report/watching.h"

enum { LINE_MODULES, LINE_OPS };

// Of all planes: an event takes about 20 bytes.
enum { POD_PROFILE_MOST_BYTES = 256 << 20 };

struct mp_pod_profile_s {
  mp_report_t *report;  // NULL: stopped
  uint32_t num_devices;
  mp_xplane_t *planes;                // [num_devices]
  mp_moment_t *written;               // [num_devices] up to when the line of ops is full
  mp_moment_t begin;                  // virtual
  size_t bytes;                       // of all planes
  const mp_model_program_t *program;  // that events are about
  mp_model_observer_t observer;
};

// What a name's number is made from.
enum { NAME_PROGRAM, NAME_OP, NAME_MEETING, NAME_WAITING };

static uint64_t pod_profile_number(const mp_model_program_t *program, uint64_t kind,
                                   uint64_t index) {
  const mp_str_t name = mp_model_program_name(program);
  uint64_t hash = mp_hash_bytes(MP_HASH_START, name.data, name.size);
  if (kind != NAME_PROGRAM) hash = mp_hash_u64(hash, mp_hash_pointer(program));
  return mp_xplane_number(mp_hash_u64(mp_hash_u64(hash, kind), index));
}

static void pod_profile_put(mp_pod_profile_t *profile, uint32_t device, uint32_t line,
                            uint64_t number, mp_moment_t begin, mp_moment_t end) {
  static const char *const lines[] = {"XLA Modules", "XLA Ops"};
  if (begin < profile->begin) begin = profile->begin;  // it had begun before the profile
  if (end <= begin || profile->bytes >= POD_PROFILE_MOST_BYTES) return;
  mp_xplane_t *plane = &profile->planes[device];
  const size_t before = mp_xplane_bytes(plane);
  mp_xplane_put_event(plane, line, lines[line], number, begin - profile->begin, end - begin);
  profile->bytes += mp_xplane_bytes(plane) - before;
  if (profile->bytes >= POD_PROFILE_MOST_BYTES) {
    mp_log_notice("the profile of the pod ends early: it has %d MiB", POD_PROFILE_MOST_BYTES >> 20);
  }
}

// ---- Names ----

// Names a kernel or collective: as XProf shows HLO instructions, with what it knows of them.
static void pod_profile_name(mp_xplane_t *plane, uint64_t number, uint32_t index, const mp_op_t *op,
                             const char *what, const char *category, const mp_twin_kernel_t *kernel,
                             const mp_collective_t *collective, const char *algorithm) {
  if (mp_xplane_is_named(plane, number)) return;
  mp_strbuf_t name, source;
  mp_strbuf_init(&name);
  mp_strbuf_init(&source);
  mp_strbuf_printf(&name, "%s.%" PRIu32, what, index);
  mp_str_t file;
  uint32_t line;
  if (mp_op_source(op->loc, &file, &line)) {
    mp_strbuf_printf(&source, "%.*s:%" PRIu32, MP_STR_ARG(file), line);
  }
  const mp_str_t text = {mp_strbuf_text(&name), name.size};
  mp_xplane_stat_t stats[6] = {
      {MP_XPLANE_TF_OP, MP_XPLANE_TEXT, mp_op_path(op->loc), 0},
      {MP_XPLANE_SOURCE, MP_XPLANE_TEXT, {mp_strbuf_text(&source), source.size}, 0},
      {MP_XPLANE_HLO_CATEGORY, MP_XPLANE_TEXT, mp_str(category), 0}};
  uint32_t count = 3;
  if (kernel != NULL) {
    stats[count++] = (mp_xplane_stat_t){
        .id = MP_XPLANE_FLOPS, .kind = MP_XPLANE_NUMBER, .number = (uint64_t)kernel->flops};
  }
  stats[count++] = (mp_xplane_stat_t){
      .id = MP_XPLANE_BYTES_ACCESSED,
      .kind = MP_XPLANE_NUMBER,
      .number = kernel != NULL ? (uint64_t)kernel->bytes : mp_message_bytes(collective)};
  if (algorithm != NULL) {
    stats[count++] = (mp_xplane_stat_t){
        .id = MP_XPLANE_ALGORITHM, .kind = MP_XPLANE_TEXT, .text = mp_str(algorithm)};
  }
  mp_xplane_put_name(plane, number, text, text, count, stats);
  mp_strbuf_deinit(&name);
  mp_strbuf_deinit(&source);
}

// ---- Observing ----

static void pod_profile_on_launch(void *context, const mp_model_program_t *program, uint32_t device,
                                  mp_moment_t begin, mp_moment_t end) {
  mp_pod_profile_t *profile = context;
  const uint64_t number = pod_profile_number(program, NAME_PROGRAM, 0);
  const mp_str_t name = mp_model_program_name(program);
  mp_xplane_put_name(&profile->planes[device], number, name, name, 0, NULL);
  pod_profile_put(profile, device, LINE_MODULES, number, begin, end);
}

static void pod_profile_put_work(void *context, const mp_step_part_t *part) {
  mp_pod_profile_t *profile = context;
  const mp_twin_kernel_t *kernel = part->kernel;
  const uint64_t number = pod_profile_number(profile->program, NAME_OP, part->number);
  pod_profile_name(&profile->planes[part->device], number, part->number, kernel->op, kernel->name,
                   mp_work_class_name(kernel->work_class), kernel, NULL, NULL);
  pod_profile_put(profile, part->device, LINE_OPS, number, part->begin, part->end);
}

static void pod_profile_on_work(void *context, const mp_model_program_t *program, uint32_t device,
                                uint32_t step, mp_moment_t begin, mp_moment_t end) {
  mp_pod_profile_t *profile = context;
  profile->program = program;
  mp_step_parts(mp_model_program_twin(program), step, device, begin, end, pod_profile_put_work,
                profile);
  profile->written[device] = end;
}

static void pod_profile_put_meeting(mp_pod_profile_t *profile, const mp_model_program_t *program,
                                    uint32_t device, uint32_t collective, bool is_waiting,
                                    mp_moment_t begin, mp_moment_t end) {
  const mp_twin_t *twin = mp_model_program_twin(program);
  const mp_twin_collective_t *one = &twin->collectives[collective];
  const uint64_t number =
      pod_profile_number(program, is_waiting ? NAME_WAITING : NAME_MEETING, collective);
  if (begin < profile->written[device]) begin = profile->written[device];
  if (begin >= end) return;
  char what[48];
  (void)snprintf(what, sizeof(what), "%s%s", is_waiting ? "waiting." : "",
                 mp_collective_kind_name(one->collective->kind));
  pod_profile_name(&profile->planes[device], number, collective, one->op, what,
                   is_waiting ? "waiting" : mp_collective_kind_name(one->collective->kind), NULL,
                   one->collective,
                   mp_algorithm_name(mp_model_program_algorithm(program, collective)));
  pod_profile_put(profile, device, LINE_OPS, number, begin, end);
  profile->written[device] = end;
}

static void pod_profile_on_meeting(void *context, const mp_model_program_t *program,
                                   uint32_t device, uint32_t collective, mp_moment_t arrival,
                                   mp_moment_t begin, mp_moment_t end) {
  pod_profile_put_meeting(context, program, device, collective, true, arrival, begin);
  pod_profile_put_meeting(context, program, device, collective, false, begin, end);
}

// ---- Life ----

mp_status_t mp_pod_profile_start(mp_report_t *report, int64_t now, mp_pod_profile_t **out_profile) {
  mp_pod_profile_t *profile = mp_calloc(1, sizeof(*profile));
  MP_RETURN_IF_NULL(profile);
  profile->num_devices = mp_report_num_devices(report);
  profile->planes = mp_calloc(profile->num_devices, sizeof(*profile->planes));
  profile->written = mp_calloc(profile->num_devices, sizeof(*profile->written));
  const bool has_memory = profile->planes != NULL && profile->written != NULL;
  for (uint32_t i = 0; i < profile->num_devices && has_memory; ++i) {
    mp_xplane_init(&profile->planes[i], now);
  }
  profile->observer = mp_report_silent_observer();
  profile->observer.on_launch = pod_profile_on_launch;
  profile->observer.on_work = pod_profile_on_work;
  profile->observer.on_meeting = pod_profile_on_meeting;
  profile->observer.context = profile;
  profile->begin = mp_report_now(report);
  mp_status_t status =
      has_memory ? mp_report_watch(report, &profile->observer) : mp_status_out_of_memory();
  if (status != NULL) {
    mp_pod_profile_release(profile);
    return status;
  }
  profile->report = report;
  *out_profile = profile;
  return NULL;
}

void mp_pod_profile_stop(mp_pod_profile_t *profile, mp_report_t *report) {
  if (profile->report != report) return;
  mp_report_unwatch(report, &profile->observer);
  profile->report = NULL;
}

void mp_pod_profile_print(const mp_pod_profile_t *profile, mp_strbuf_t *space) {
  for (uint32_t i = 0; i < profile->num_devices; ++i) {
    if (!profile->planes[i].is_used) continue;
    char name[48];
    (void)snprintf(name, sizeof(name), "/device:CUSTOM:MINIPOD:%" PRIu32, i);
    // XProf takes planes of one number for one; the devices' real times have 0, 1, ...
    mp_xplane_print(&profile->planes[i], profile->num_devices + i, name, space);
  }
}

void mp_pod_profile_release(mp_pod_profile_t *profile) {
  if (profile == NULL) return;
  for (uint32_t i = 0; i < profile->num_devices && profile->planes != NULL; ++i) {
    mp_xplane_deinit(&profile->planes[i]);
  }
  mp_free(profile->planes);
  mp_free(profile->written);
  mp_free(profile);
}
