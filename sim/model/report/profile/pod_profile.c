#include "sim/model/report/profile/pod_profile.h"

#include <inttypes.h>
#include <stdio.h>

#include "collectives/mailbox.h"
#include "sim/base/alloc.h"
#include "sim/base/hash.h"
#include "sim/base/log.h"
#include "sim/base/proto.h"
#include "sim/model/report/events/watching.h"
#include "sim/model/report/profile/chip_use.h"
#include "sim/model/report/profile/memory_plan.h"
#include "sim/model/report/profile/xplane.h"
#include "sim/model/report/report_links.h"

// The lines of a plane, as TPUs' profilers call them.
static const char *const k_lines[] = {"Steps", "XLA Modules", "XLA Ops", "Async XLA Ops"};
enum { LINE_STEPS, LINE_MODULES, LINE_OPS, LINE_STREAMS };

// Of all planes: an event takes about 20 bytes.
enum { POD_PROFILE_MOST_BYTES = 256 << 20 };

struct mp_pod_profile_s {
  mp_report_t *report;  // NULL: stopped
  uint32_t num_devices;
  mp_xplane_t *planes;   // [num_devices]
  mp_xplane_t programs;  // names alone: programs, with their memory
  mp_moment_t *written;  // [num_devices] up to when the line of ops is full
  uint64_t *launches;    // [num_devices] that are over
  bool is_tpu;
  const mp_chip_figures_t *figures;  // the model's
  mp_chip_use_t use;
  mp_moment_t begin;                  // virtual
  size_t bytes;                       // of all planes
  const mp_model_program_t *program;  // that events are about
  mp_model_observer_t observer;
};

// ---- Names ----

// What a name's number is made from.
enum { NAME_STEP, NAME_PROGRAM, NAME_OP, NAME_MEETING, NAME_WAITING };

static uint64_t pod_profile_hash(const mp_model_program_t *program) {
  const mp_str_t name = mp_model_program_name(program);
  return mp_hash_u64(mp_hash_bytes(MP_HASH_START, name.data, name.size), mp_hash_pointer(program));
}

static uint64_t pod_profile_number(uint64_t hash, uint64_t kind, uint64_t index) {
  return mp_xplane_number(mp_hash_u64(mp_hash_u64(hash, kind), index));
}

// XProf's pages hold it in a double.
static uint64_t pod_profile_program_id(uint64_t hash) {
  return hash >> 33;
}

// MemoryAccessBreakdown of XProf's op_metrics.proto: all of a kernel's bytes go through the memory
// of the device. The chip program does not tell those that are written from those that are read,
// and XProf adds up what is called one or the other: they are all called read.
static void pod_profile_print_accesses(uint64_t bytes, mp_strbuf_t *out) {
  enum { BREAKDOWN_ACCESSED = 1, ACCESSED_TYPE = 1, ACCESSED_SPACE = 2, ACCESSED_BYTES = 3 };
  enum { TYPE_READ = 1, SPACE_HBM = 1 };
  mp_strbuf_t accessed;
  mp_strbuf_init(&accessed);
  mp_proto_put_varint(&accessed, ACCESSED_TYPE, TYPE_READ);
  mp_proto_put_varint(&accessed, ACCESSED_SPACE, SPACE_HBM);
  mp_proto_put_varint(&accessed, ACCESSED_BYTES, bytes);
  mp_proto_put_message(out, BREAKDOWN_ACCESSED, &accessed);
  mp_strbuf_deinit(&accessed);
}

// What XProf knows of a kernel or a collective.
typedef struct {
  const char *what;  // "dot_general"
  char category[32];
  const mp_op_t *op;
  const mp_chip_kernel_t *kernel;  // NULL: of a collective
  uint64_t bytes;
  const char *algorithm;  // NULL: of a kernel
} pod_profile_name_t;

static uint32_t pod_profile_put_counts(const pod_profile_name_t *name, mp_strbuf_t *accesses,
                                       mp_xplane_stat_t *stats) {
  uint32_t count = 0;
  stats[count++] = (mp_xplane_stat_t){
      .id = MP_XPLANE_BYTES_ACCESSED, .kind = MP_XPLANE_NUMBER, .number = name->bytes};
  if (name->kernel != NULL) {
    pod_profile_print_accesses(name->bytes, accesses);
    stats[count++] = (mp_xplane_stat_t){.id = MP_XPLANE_MEMORY_ACCESSES,
                                        .kind = MP_XPLANE_BYTES,
                                        .text = {mp_strbuf_text(accesses), accesses->size}};
    stats[count++] = (mp_xplane_stat_t){
        .id = MP_XPLANE_FLOPS, .kind = MP_XPLANE_NUMBER, .number = (uint64_t)name->kernel->flops};
  }
  if (name->algorithm != NULL) {
    stats[count++] = (mp_xplane_stat_t){
        .id = MP_XPLANE_ALGORITHM, .kind = MP_XPLANE_TEXT, .text = mp_str(name->algorithm)};
  }
  return count;
}

// Names a kernel or collective as XProf shows HLO instructions.
static void pod_profile_name(mp_xplane_t *plane, uint64_t hash, uint64_t number, uint32_t index,
                             const pod_profile_name_t *name) {
  if (mp_xplane_is_named(plane, number)) return;
  mp_strbuf_t text, source, accesses;
  mp_strbuf_init(&text);
  mp_strbuf_init(&source);
  mp_strbuf_init(&accesses);
  mp_strbuf_printf(&text, "%s.%" PRIu32, name->what, index);
  mp_str_t file;
  uint32_t line;
  if (mp_op_source(name->op->loc, &file, &line)) {
    mp_strbuf_printf(&source, "%.*s:%" PRIu32, MP_STR_ARG(file), line);
  }
  mp_xplane_stat_t stats[9] = {
      {.id = MP_XPLANE_PROGRAM_ID,
       .kind = MP_XPLANE_NUMBER,
       .number = pod_profile_program_id(hash)},
      {.id = MP_XPLANE_SYMBOL_ID, .kind = MP_XPLANE_NUMBER, .number = number},
      {.id = MP_XPLANE_TF_OP, .text = mp_op_path(name->op->loc)},
      {.id = MP_XPLANE_SOURCE, .text = {mp_strbuf_text(&source), source.size}},
      {.id = MP_XPLANE_HLO_CATEGORY, .text = mp_str(name->category)}};
  const uint32_t count = 5 + pod_profile_put_counts(name, &accesses, &stats[5]);
  const mp_str_t whole = {mp_strbuf_text(&text), text.size};
  mp_xplane_put_name(plane, number, whole, whole, count, stats);
  mp_strbuf_deinit(&text);
  mp_strbuf_deinit(&source);
  mp_strbuf_deinit(&accesses);
}

static void pod_profile_put_said(mp_pod_profile_t *profile, uint32_t device, uint32_t line,
                                 mp_xplane_event_t event, mp_moment_t begin, mp_moment_t end) {
  if (begin < profile->begin) begin = profile->begin;  // it had begun before the profile
  if (end <= begin || profile->bytes >= POD_PROFILE_MOST_BYTES) return;
  event.begin = begin - profile->begin;
  event.duration = end - begin;
  mp_xplane_t *plane = &profile->planes[device];
  const size_t before = mp_xplane_bytes(plane);
  mp_xplane_put_event(plane, line, k_lines[line], &event);
  profile->bytes += mp_xplane_bytes(plane) - before;
  if (profile->bytes >= POD_PROFILE_MOST_BYTES) {
    mp_log_notice("the profile of the pod ends early: it has %d MiB", POD_PROFILE_MOST_BYTES >> 20);
  }
}

static void pod_profile_put(mp_pod_profile_t *profile, uint32_t device, uint32_t line,
                            uint64_t number, mp_moment_t begin, mp_moment_t end) {
  pod_profile_put_said(profile, device, line, (mp_xplane_event_t){.number = number}, begin, end);
}

// ---- Observing ----

// What XProf's memory viewer shows: once for a program, under the number of its ops.
static void pod_profile_put_memory(mp_pod_profile_t *profile, const mp_model_program_t *program,
                                   uint64_t hash, mp_str_t name) {
  const uint64_t id = pod_profile_program_id(hash);
  if (!profile->is_tpu || mp_xplane_is_named(&profile->programs, id)) return;
  mp_strbuf_t proto;
  mp_strbuf_init(&proto);
  mp_memory_plan_print(mp_model_program_chip(program), profile->figures,
                       mp_model_program_name(program), &proto);
  const mp_xplane_stat_t stat = {.id = MP_XPLANE_HLO_PROTO,
                                 .kind = MP_XPLANE_BYTES,
                                 .text = {mp_strbuf_text(&proto), proto.size}};
  if (!proto.failed) mp_xplane_put_name(&profile->programs, id, name, MP_STR(""), 1, &stat);
  mp_strbuf_deinit(&proto);
}

// A launch is a step of its own to XProf. It is reported after its contents.
static void pod_profile_on_launch(void *context, const mp_model_program_t *program, uint32_t device,
                                  int64_t traced, mp_moment_t begin, mp_moment_t end) {
  mp_pod_profile_t *profile = context;
  mp_xplane_t *plane = &profile->planes[device];
  const uint64_t hash = pod_profile_hash(program), launch = profile->launches[device];
  const uint64_t number = pod_profile_number(hash, NAME_PROGRAM, 0);
  const uint64_t step = pod_profile_number(MP_HASH_START, NAME_STEP, launch);
  const mp_str_t name = mp_model_program_name(program);
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_printf(&text, "%.*s(%" PRIu64 ")", MP_STR_ARG(name), pod_profile_program_id(hash));
  mp_xplane_put_name(plane, number, (mp_str_t){mp_strbuf_text(&text), text.size}, name, 0, NULL);
  pod_profile_put_memory(profile, program, hash, (mp_str_t){mp_strbuf_text(&text), text.size});
  mp_strbuf_deinit(&text);
  // The context of what JAX notes of the call: its type is that of calls of a PJRT library.
  enum { CONTEXT_PJRT_CALL = 14 };
  const mp_xplane_stat_t call[] = {
      {.id = MP_XPLANE_CONSUMER_TYPE, .kind = MP_XPLANE_SIGNED, .number = CONTEXT_PJRT_CALL},
      {.id = MP_XPLANE_CONSUMER_ID, .kind = MP_XPLANE_SIGNED, .number = (uint64_t)traced}};
  pod_profile_put_said(
      profile, device, LINE_MODULES,
      (mp_xplane_event_t){.number = number, .num_stats = traced == 0 ? 0 : 2, .stats = call}, begin,
      end);
  char count[24];
  (void)snprintf(count, sizeof(count), "%" PRIu64, launch);
  mp_xplane_put_name(plane, step, mp_str(count), mp_str(count), 0, NULL);
  pod_profile_put(profile, device, LINE_STEPS, step, begin, end);
  ++profile->launches[device];
  mp_chip_use_add_launch(&profile->use, begin, end);
}

static void pod_profile_put_work(void *context, const mp_step_part_t *part) {
  mp_pod_profile_t *profile = context;
  const mp_chip_kernel_t *kernel = part->kernel;
  const uint64_t hash = pod_profile_hash(profile->program);
  const uint64_t number = pod_profile_number(hash, NAME_OP, part->number);
  pod_profile_name_t name = {
      .what = kernel->name, .op = kernel->op, .kernel = kernel, .bytes = (uint64_t)kernel->bytes};
  (void)snprintf(name.category, sizeof(name.category), "%s",
                 mp_work_class_name(kernel->work_class));
  pod_profile_name(&profile->planes[part->device], hash, number, part->number, &name);
  pod_profile_put(profile, part->device, LINE_OPS, number, part->begin, part->end);
  mp_chip_use_add_work(&profile->use, part);
}

static void pod_profile_on_work(void *context, const mp_model_program_t *program, uint32_t device,
                                uint32_t step, mp_moment_t begin, mp_moment_t end) {
  mp_pod_profile_t *profile = context;
  profile->program = program;
  mp_step_parts(mp_model_program_chip(program), &(mp_step_span_t){step, device, begin, end},
                pod_profile_put_work, profile);
  profile->written[device] = end;
}

// Names a collective, or the waiting for it, and gives its number back.
static uint64_t pod_profile_name_collective(mp_pod_profile_t *profile,
                                            const mp_model_program_t *program, uint32_t device,
                                            uint32_t collective, bool is_waiting) {
  const mp_chip_collective_t *one = &mp_model_program_chip(program)->collectives[collective];
  const uint64_t hash = pod_profile_hash(program);
  const uint64_t number =
      pod_profile_number(hash, is_waiting ? NAME_WAITING : NAME_MEETING, collective);
  char what[48];
  const char *kind = mp_collective_kind_name(one->collective->kind);
  (void)snprintf(what, sizeof(what), "%s%s", is_waiting ? "waiting." : "", kind);
  pod_profile_name_t name = {
      .what = what,
      .op = one->op,
      .bytes = mp_message_bytes(one->collective),
      .algorithm = mp_algorithm_name(mp_model_program_algorithm(program, collective))};
  (void)snprintf(name.category, sizeof(name.category), "%s", is_waiting ? "waiting" : kind);
  // XProf adds collectives up by XLA's words for them, "all-reduce".
  for (char *c = name.category; *c != '\0'; ++c) {
    if (*c == '_') *c = '-';
  }
  pod_profile_name(&profile->planes[device], hash, number, collective, &name);
  return number;
}

// The collective, or the wait for it.
static void pod_profile_put_meeting(mp_pod_profile_t *profile, const mp_model_program_t *program,
                                    const mp_model_meeting_t *meeting, bool is_waiting) {
  const uint32_t device = meeting->device;
  const mp_moment_t end = is_waiting ? meeting->begin : meeting->end;
  mp_moment_t begin = is_waiting ? meeting->arrival : meeting->begin;
  if (begin < profile->written[device]) begin = profile->written[device];
  if (begin >= end) return;
  const uint64_t number =
      pod_profile_name_collective(profile, program, device, meeting->collective, is_waiting);
  pod_profile_put(profile, device, LINE_OPS, number, begin, end);
  profile->written[device] = end;
}

static void pod_profile_on_meeting(void *context, const mp_model_program_t *program,
                                   const mp_model_meeting_t *meeting) {
  pod_profile_put_meeting(context, program, meeting, true);
  pod_profile_put_meeting(context, program, meeting, false);
}

static void pod_profile_on_stream(void *context, const mp_model_program_t *program, uint32_t device,
                                  uint32_t collective, mp_moment_t begin, mp_moment_t end) {
  const uint64_t number = pod_profile_name_collective(context, program, device, collective, false);
  pod_profile_put(context, device, LINE_STREAMS, number, begin, end);
}

// ---- Life ----

mp_status_t mp_pod_profile_start(mp_report_t *report, int64_t now, mp_pod_profile_t **out_profile) {
  mp_pod_profile_t *profile = mp_calloc(1, sizeof(*profile));
  MP_RETURN_IF_NULL(profile);
  profile->num_devices = mp_report_num_devices(report);
  profile->planes = mp_calloc(profile->num_devices, sizeof(*profile->planes));
  profile->written = mp_calloc(profile->num_devices, sizeof(*profile->written));
  profile->launches = mp_calloc(profile->num_devices, sizeof(*profile->launches));
  const bool has_memory =
      profile->planes != NULL && profile->written != NULL && profile->launches != NULL;
  const mp_model_t *model = mp_report_model(report);
  profile->is_tpu = mp_pod_is_tpu(mp_model_pod(model));
  profile->figures = &mp_model_chip(model)->figures;
  profile->begin = mp_report_now(report);
  mp_xplane_init(&profile->programs, now);
  profile->use = mp_chip_use_make(model, profile->begin);
  for (uint32_t i = 0; i < profile->num_devices && has_memory; ++i) {
    mp_xplane_init(&profile->planes[i], now);
    mp_chip_use_describe(&profile->use, i, &profile->planes[i]);
  }
  profile->observer = mp_watching_silent_observer();
  profile->observer.on_launch = pod_profile_on_launch;
  profile->observer.on_work = pod_profile_on_work;
  profile->observer.on_meeting = pod_profile_on_meeting;
  profile->observer.on_stream = pod_profile_on_stream;
  profile->observer.context = profile;
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
    (void)snprintf(name, sizeof(name), "/device:%s:%" PRIu32,
                   profile->is_tpu ? "TPU" : "CUSTOM:MINIPOD", i);
    // XProf takes planes of one number for one; the devices' real times have 0, 1, ...
    mp_xplane_print(&profile->planes[i], profile->num_devices + i, name, space);
  }
  if (profile->programs.is_used) {
    mp_xplane_print(&profile->programs, 2 * (uint64_t)profile->num_devices, "/host:metadata",
                    space);
  }
  if (!profile->is_tpu) return;
  mp_chip_use_print(&profile->use, profile->programs.start, 2 * (uint64_t)profile->num_devices + 1,
                    space);
}

void mp_pod_profile_release(mp_pod_profile_t *profile) {
  if (profile == NULL) return;
  for (uint32_t i = 0; i < profile->num_devices && profile->planes != NULL; ++i) {
    mp_xplane_deinit(&profile->planes[i]);
  }
  mp_xplane_deinit(&profile->programs);
  mp_free(profile->planes);
  mp_free(profile->written);
  mp_free(profile->launches);
  mp_free(profile);
}
