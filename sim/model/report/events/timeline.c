#include "sim/model/report/events/timeline.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "collectives/mailbox.h"
#include "sim/base/alloc.h"
#include "sim/base/log.h"
#include "sim/base/os/gzip.h"
#include "sim/base/os/system.h"
#include "sim/model/report/events/timeline_scope.h"
#include "sim/model/report/events/watching.h"

enum { TIMELINE_BUFFER = 1 << 16, TIMELINE_LATE = 1 << 22 };

// The processes of the file.
enum { TIMELINE_HOST = 1, TIMELINE_DEVICES = 2, TIMELINE_LINKS = 3, TIMELINE_STREAMS = 4 };

// A stretch of time in which a link carries bytes, not written yet.
typedef struct {
  mp_moment_t begin, end;
  mp_moment_t floor;  // the end of the one before
  double bytes;       // 0: there is none
  const char *name;   // of what used it first; static text
  bool is_named;      // the link's row
} stretch_t;

struct mp_timeline_s {
  const mp_model_t *model;
  mp_timeline_scope_t scope;
  FILE *file;
  mp_strbuf_t buffer;
  // Events of devices in a launch come before the launch itself, and viewers want outer slices
  // first: it waits here, unless it is much.
  mp_strbuf_t late;
  mp_strbuf_t *out;  // of the two, where events go now
  uint64_t events, most_events;
  bool has_failed;        // a write: nothing more is tried
  mp_moment_t *written;   // [num_devices] up to when the device's row is full
  mp_moment_t *streamed;  // [num_devices] the same of the row of what it has started
  uint8_t *is_named;  // [num_devices] bits: the device's row, those of its transfers, and that one
  stretch_t *links;   // [links]
  mp_model_observer_t observer;
};

static const char *const k_transfers[] = {"put", "copy", "get"};

// The kind of row of what a device has started; 0 is its own, and those between are of transfers.
enum { TIMELINE_STREAM_ROW = 4 };

// The row of a kind of transfers of a device: those of one row never overlap. Row 0 is the host's.
static uint32_t timeline_transfer_row(uint32_t device, uint32_t kind) {
  return 1 + device * 3 + kind;
}

// ---- Writing ----

static void timeline_write(mp_timeline_t *timeline) {
  mp_strbuf_t *buffer = &timeline->buffer;
  if (buffer->size != 0 && !timeline->has_failed) {
    timeline->has_failed = buffer->failed ||
                           fwrite(buffer->data, 1, buffer->size, timeline->file) != buffer->size ||
                           fflush(timeline->file) != 0;
    if (timeline->has_failed) {
      mp_log_notice("the timeline is not complete: %s",
                    buffer->failed ? "out of memory" : strerror(errno));
    }
  }
  buffer->size = 0;
}

static void timeline_catch_up(mp_timeline_t *timeline) {
  mp_strbuf_append(&timeline->buffer, mp_strbuf_text(&timeline->late), timeline->late.size);
  timeline->buffer.failed |= timeline->late.failed;
  timeline->late.size = 0;
}

// Writes events to the file, after all late events, or lets them wait.
static void timeline_go_on(mp_timeline_t *timeline, bool is_late) {
  if (!is_late || timeline->late.size >= TIMELINE_LATE) timeline_catch_up(timeline);
  timeline->out = is_late ? &timeline->late : &timeline->buffer;
}

// Writes what is in the buffers.
static void timeline_flush(mp_timeline_t *timeline) {
  timeline_go_on(timeline, false);
  timeline_write(timeline);
}

// Makes room for one more event. False: there is none any more.
static bool timeline_begin(mp_timeline_t *timeline) {
  if (timeline->has_failed || timeline->events > timeline->most_events) return false;
  timeline->events += 1;
  if (timeline->buffer.size >= TIMELINE_BUFFER) timeline_write(timeline);
  if (timeline->events <= timeline->most_events) return true;
  mp_strbuf_puts(timeline->out,
                 "{\"ph\":\"i\",\"s\":\"g\",\"pid\":1,\"tid\":1,\"ts\":0,\"name\":\"events are "
                 "missing: the limit is MINIPOD_TRACE_EVENTS\"},\n");
  mp_log_notice("the timeline ends early: the limit is %" PRIu64 " events (MINIPOD_TRACE_EVENTS)",
                timeline->most_events);
  return false;
}

static void timeline_put_field(mp_timeline_t *timeline, const char *name, mp_str_t text) {
  mp_strbuf_printf(timeline->out, ",\"%s\":", name);
  mp_strbuf_put_json(timeline->out, text);
}

typedef struct {
  int process;
  uint32_t thread;
} row_t;

// The beginning of a complete event. The caller writes its arguments and its end.
// Times are rounded before they are subtracted, so that neighbours stay neighbours. Rows are
// counted from 1 in the file: Perfetto takes thread 0 for the one that has the number of its
// process.
static void timeline_put_slice(mp_timeline_t *timeline, row_t row, mp_moment_t begin,
                               mp_moment_t end, const char *category, mp_str_t name) {
  const uint64_t from = begin / 1000, to = end / 1000;
  mp_strbuf_printf(timeline->out,
                   "{\"ph\":\"X\",\"pid\":%d,\"tid\":%" PRIu32 ",\"ts\":%" PRIu64
                   ".%03u,\"dur\":%" PRIu64 ".%03u,\"cat\":\"%s\",\"name\":",
                   row.process, row.thread + 1, from / 1000, (unsigned)(from % 1000),
                   (to - from) / 1000, (unsigned)((to - from) % 1000), category);
  mp_strbuf_put_json(timeline->out, name);
}

// An argument that is a number, and the ends of arguments and event.
static void timeline_put_number(mp_timeline_t *timeline, const char *name, double value) {
  mp_strbuf_printf(timeline->out, ",\"%s\":", name);
  mp_strbuf_put_double(timeline->out, value);
}

static void timeline_end(mp_timeline_t *timeline) {
  mp_strbuf_puts(timeline->out, "}},\n");
}

static void timeline_name(mp_timeline_t *timeline, int process, int64_t thread, const char *name) {
  mp_strbuf_t *out = timeline->out;
  mp_strbuf_printf(out, "{\"ph\":\"M\",\"pid\":%d,", process);
  if (thread >= 0) mp_strbuf_printf(out, "\"tid\":%" PRId64 ",", thread + 1);
  mp_strbuf_printf(
      out, "\"name\":\"%s\",\"args\":{\"name\":", thread >= 0 ? "thread_name" : "process_name");
  mp_strbuf_put_json(timeline->out, mp_str(name));
  timeline_end(timeline);
}

// Names the row of a device, or of one kind of its transfers, when it is new.
static void timeline_name_row(mp_timeline_t *timeline, uint32_t device, uint32_t kind) {
  const uint8_t bit = (uint8_t)(1u << kind);
  if ((timeline->is_named[device] & bit) != 0) return;
  timeline->is_named[device] |= bit;
  char name[48];
  if (kind == 0) {
    (void)snprintf(name, sizeof(name), "device %" PRIu32, device);
    timeline_name(timeline, TIMELINE_DEVICES, device, name);
  } else if (kind == TIMELINE_STREAM_ROW) {
    (void)snprintf(name, sizeof(name), "overlapped: device %" PRIu32, device);
    timeline_name(timeline, TIMELINE_STREAMS, -1, "overlapped collectives");
    timeline_name(timeline, TIMELINE_STREAMS, device, name);
  } else {
    (void)snprintf(name, sizeof(name), "%s: device %" PRIu32, k_transfers[kind - 1], device);
    timeline_name(timeline, TIMELINE_HOST, timeline_transfer_row(device, kind - 1), name);
  }
}

static void timeline_put_place(mp_timeline_t *timeline, const mp_loc_t *loc) {
  mp_str_t file;
  uint32_t line;
  const mp_str_t path = mp_op_path(loc);
  if (path.size != 0) timeline_put_field(timeline, "op", path);
  if (!mp_op_source(loc, &file, &line)) return;
  timeline_put_field(timeline, "file", file);
  mp_strbuf_printf(timeline->out, ",\"line\":%" PRIu32, line);
}

// ---- Devices ----

static void timeline_on_launch(void *context, const mp_model_program_t *program, uint32_t device,
                               int64_t traced, mp_moment_t begin, mp_moment_t end) {
  mp_timeline_t *timeline = context;
  (void)traced;
  if (!timeline->scope.devices[device]) return;
  timeline->out = &timeline->buffer;  // before what is late
  timeline_name_row(timeline, device, 0);
  if (!timeline_begin(timeline)) return;
  timeline_put_slice(timeline, (row_t){TIMELINE_DEVICES, device}, begin, end, "launch",
                     mp_model_program_name(program));
  mp_strbuf_printf(timeline->out, ",\"args\":{\"device\":%" PRIu32, device);
  timeline_end(timeline);
}

// What people know work by: the name that their framework gave it, without the names of the
// functions that were compiled, "jit(step)/", which all have; else what kind of op it is.
static mp_str_t timeline_work_name(const mp_step_part_t *part) {
  mp_str_t path = mp_op_path(part->kernel->op->loc);
  while (path.size > 4 && memcmp(path.data, "jit(", 4) == 0) {
    const char *slash = memchr(path.data, '/', path.size);
    if (slash == NULL) break;
    path = (mp_str_t){slash + 1, path.size - (size_t)(slash + 1 - path.data)};
  }
  return path.size != 0 ? path : mp_str(part->kernel->name);
}

static void timeline_put_work(void *context, const mp_step_part_t *part) {
  mp_timeline_t *timeline = context;
  if (!timeline_begin(timeline)) return;
  timeline_put_slice(timeline, (row_t){TIMELINE_DEVICES, part->device}, part->begin, part->end,
                     "work", timeline_work_name(part));
  mp_strbuf_puts(timeline->out, ",\"args\":{\"kind\":");
  mp_strbuf_put_json(timeline->out, mp_str(part->kernel->name));
  mp_strbuf_puts(timeline->out, ",\"class\":");
  mp_strbuf_put_json(timeline->out, mp_str(mp_work_class_name(part->kernel->work_class)));
  timeline_put_number(timeline, "flops", part->kernel->flops);
  timeline_put_number(timeline, "bytes", part->kernel->bytes);
  timeline_put_place(timeline, part->kernel->op->loc);
  timeline_end(timeline);
}

static void timeline_on_work(void *context, const mp_model_program_t *program, uint32_t device,
                             uint32_t step, mp_moment_t begin, mp_moment_t end) {
  mp_timeline_t *timeline = context;
  if (!timeline->scope.devices[device]) return;
  timeline_go_on(timeline, true);
  mp_step_parts(mp_model_program_chip(program), &(mp_step_span_t){step, device, begin, end},
                timeline_put_work, timeline);
  timeline->written[device] = end;
}

// A collective on a row of a process, or the wait for it.
typedef struct {
  row_t row;
  uint32_t collective;
  bool is_waiting;
  mp_moment_t begin, end;
} bar_t;

// Until `written` the row is full.
static void timeline_put_collective(mp_timeline_t *timeline, const mp_model_program_t *program,
                                    const bar_t *bar, mp_moment_t *written) {
  const mp_moment_t begin = bar->begin < *written ? *written : bar->begin;
  if (begin >= bar->end || !timeline_begin(timeline)) return;
  const mp_chip_collective_t *one = &mp_model_program_chip(program)->collectives[bar->collective];
  const mp_collective_t *collective = one->collective;
  timeline_put_slice(
      timeline, bar->row, begin, bar->end, bar->is_waiting ? "waiting" : "collective",
      bar->is_waiting ? MP_STR("waiting") : mp_str(mp_collective_kind_name(collective->kind)));
  mp_strbuf_puts(timeline->out, ",\"args\":{\"collective\":");
  mp_strbuf_put_json(timeline->out, mp_str(mp_collective_kind_name(collective->kind)));
  timeline_put_number(timeline, "bytes", (double)mp_message_bytes(collective));
  timeline_put_field(timeline, "how", mp_str(mp_overlap_name(one->overlap)));
  const mp_algorithm_t algorithm = mp_model_program_algorithm(program, bar->collective);
  if (algorithm != MP_ALGORITHM_AUTO) {
    timeline_put_field(timeline, "algorithm", mp_str(mp_algorithm_name(algorithm)));
  }
  timeline_put_place(timeline, one->op->loc);
  timeline_end(timeline);
  *written = bar->end;
}

static void timeline_on_stream(void *context, const mp_model_program_t *program, uint32_t device,
                               uint32_t collective, mp_moment_t begin, mp_moment_t end) {
  mp_timeline_t *timeline = context;
  if (!timeline->scope.devices[device]) return;
  timeline_go_on(timeline, true);
  timeline_name_row(timeline, device, TIMELINE_STREAM_ROW);
  const bar_t bar = {
      .row = {TIMELINE_STREAMS, device}, .collective = collective, .begin = begin, .end = end};
  timeline_put_collective(timeline, program, &bar, &timeline->streamed[device]);
}

// A device may have several messages of one permutation at a time: each is shown from the end of
// the one before.
static void timeline_on_meeting(void *context, const mp_model_program_t *program,
                                const mp_model_meeting_t *meeting) {
  mp_timeline_t *timeline = context;
  if (!timeline->scope.devices[meeting->device]) return;
  timeline_go_on(timeline, true);
  mp_moment_t *written = &timeline->written[meeting->device];
  bar_t bar = {.row = {TIMELINE_DEVICES, meeting->device},
               .collective = meeting->collective,
               .is_waiting = true,
               .begin = meeting->arrival,
               .end = meeting->begin};
  timeline_put_collective(timeline, program, &bar, written);
  bar.is_waiting = false;
  bar.begin = meeting->begin;
  bar.end = meeting->end;
  timeline_put_collective(timeline, program, &bar, written);
}

// ---- Links ----

static void timeline_put_stretch(mp_timeline_t *timeline, uint32_t number) {
  stretch_t *stretch = &timeline->links[number];
  if (stretch->bytes == 0) return;
  const mp_network_link_t *link = mp_network_link(mp_model_network(timeline->model), number);
  if (!stretch->is_named) timeline_name(timeline, TIMELINE_LINKS, number, link->name);
  stretch->is_named = true;
  if (timeline_begin(timeline)) {
    timeline_put_slice(timeline, (row_t){TIMELINE_LINKS, number}, stretch->begin, stretch->end,
                       "link", mp_str(stretch->name));
    mp_strbuf_puts(timeline->out, ",\"args\":{\"link\":");
    mp_strbuf_put_json(timeline->out, mp_str(link->name));
    timeline_put_number(timeline, "bytes", stretch->bytes);
    const double seconds = mp_moment_seconds(stretch->end - stretch->begin);
    if (seconds > 0) {
      const double load = mp_network_link_seconds(link, stretch->bytes / seconds);
      timeline_put_number(timeline, "load", load);
    }
    timeline_end(timeline);
  }
  stretch->bytes = 0;
}

// Writes what links have carried that are summed up.
static void timeline_put_sums(mp_timeline_t *timeline) {
  const uint32_t links = mp_network_num_links(mp_model_network(timeline->model));
  for (uint32_t i = 0; i < links && timeline->scope.has_sums; ++i) {
    if (timeline->scope.links[i] == MP_TIMELINE_LINK_SUM) timeline_put_stretch(timeline, i);
  }
}

// What uses a link at the same time is one stretch.
static void timeline_carry(mp_timeline_t *timeline, uint32_t link, const char *name, double bytes,
                           mp_moment_t begin, mp_moment_t end) {
  stretch_t *stretch = &timeline->links[link];
  const uint8_t how = timeline->scope.links[link];
  if (bytes <= 0 || how == MP_TIMELINE_LINK_NOT) return;
  if (stretch->bytes != 0 && (begin < stretch->end || how == MP_TIMELINE_LINK_SUM)) {
    if (begin < stretch->begin) stretch->begin = begin > stretch->floor ? begin : stretch->floor;
    if (end > stretch->end) stretch->end = end;
    stretch->bytes += bytes;
    return;
  }
  const mp_moment_t floor = stretch->end;
  timeline_put_stretch(timeline, link);
  stretch->floor = floor;
  stretch->begin = begin > floor ? begin : floor;
  stretch->end = end > stretch->begin ? end : stretch->begin;
  stretch->bytes = bytes;
  stretch->name = how == MP_TIMELINE_LINK_SUM ? "carried" : name;
}

static void timeline_on_link(void *context, const mp_model_program_t *program,
                             const mp_model_carried_t *carried) {
  const mp_chip_collective_t *one =
      &mp_model_program_chip(program)->collectives[carried->collective];
  timeline_carry(context, carried->link, mp_collective_kind_name(one->collective->kind),
                 carried->bytes, carried->begin, carried->end);
}

// ---- The host ----

static void timeline_on_enqueue(void *context, const mp_model_program_t *program,
                                mp_moment_t moment) {
  mp_timeline_t *timeline = context;
  timeline_go_on(timeline, false);
  timeline_put_sums(timeline);
  if (!timeline_begin(timeline)) return;
  timeline_put_slice(timeline, (row_t){TIMELINE_HOST, 0}, moment, moment, "enqueue",
                     mp_model_program_name(program));
  mp_strbuf_puts(timeline->out, ",\"args\":{");
  timeline_end(timeline);
}

static void timeline_on_transfer(void *context, const mp_model_transfer_t *transfer,
                                 mp_moment_t begin, mp_moment_t end) {
  mp_timeline_t *timeline = context;
  const uint32_t kind = (uint32_t)transfer->kind;
  timeline_go_on(timeline, false);
  for (uint32_t u = 0; u < transfer->num_uses; ++u) {
    timeline_carry(timeline, transfer->uses[u].link, k_transfers[kind],
                   (double)transfer->bytes * transfer->uses[u].times, begin, end);
  }
  if (!timeline->scope.devices[transfer->device]) return;
  timeline_name_row(timeline, transfer->device, kind + 1);
  if (!timeline_begin(timeline)) return;
  timeline_put_slice(timeline,
                     (row_t){TIMELINE_HOST, timeline_transfer_row(transfer->device, kind)}, begin,
                     end, "transfer", mp_str(k_transfers[kind]));
  mp_strbuf_printf(timeline->out, ",\"args\":{\"device\":%" PRIu32 ",\"bytes\":%" PRIu64,
                   transfer->device, transfer->bytes);
  timeline_end(timeline);
}

// ---- Making ----

static mp_status_t timeline_open(mp_timeline_t *timeline, const char *path) {
  FILE *file = mp_fopen_out(path, "wb");
  if (file == NULL) {
    return mp_status_make(MP_INVALID_ARGUMENT, "option trace: cannot write %s: %s", path,
                          mp_system_text(errno));
  }
  if (!mp_gzip_is_named(path)) {
    timeline->file = file;
    return NULL;
  }
  return mp_status_annotate(mp_gzip_open(file, &timeline->file), "option trace: %s", path);
}

// The pod, and which of its devices are shown if these are not all.
static void timeline_name_pod(mp_timeline_t *timeline) {
  const mp_timeline_scope_t *scope = &timeline->scope;
  const char *pod = mp_pod_info(mp_model_pod(timeline->model))->name;
  mp_strbuf_t name;
  mp_strbuf_init(&name);
  mp_strbuf_puts(&name, pod);
  if (scope->num_traced != scope->num_devices) {
    mp_strbuf_puts(&name, ": ");
    mp_timeline_scope_print(scope, &name);
    if (scope->is_by_default) {
      mp_log_notice("the timeline of %s (MINIPOD_TRACE_DEVICES=all: of all)",
                    mp_strbuf_text(&name));
    }
  }
  timeline_name(timeline, TIMELINE_DEVICES, -1, mp_strbuf_text(&name));
  mp_strbuf_deinit(&name);
}

static mp_status_t timeline_make(mp_timeline_t *timeline, const char *path, const char *devices) {
  MP_RETURN_IF_ERROR(mp_timeline_scope_init(timeline->model, devices, &timeline->scope));
  const size_t num_devices = (size_t)mp_pod_info(mp_model_pod(timeline->model))->num_devices;
  timeline->written = mp_calloc(num_devices, sizeof(*timeline->written));
  timeline->streamed = mp_calloc(num_devices, sizeof(*timeline->streamed));
  timeline->is_named = mp_calloc(num_devices, sizeof(*timeline->is_named));
  timeline->links = mp_calloc((size_t)mp_network_num_links(mp_model_network(timeline->model)) + 1,
                              sizeof(*timeline->links));
  MP_RETURN_IF_NULL(timeline->written);
  MP_RETURN_IF_NULL(timeline->streamed);
  MP_RETURN_IF_NULL(timeline->is_named);
  MP_RETURN_IF_NULL(timeline->links);
  MP_RETURN_IF_ERROR(timeline_open(timeline, path));
  setvbuf(timeline->file, NULL, _IONBF, 0);  // lines are written whole
  mp_strbuf_puts(timeline->out, "[\n");
  timeline_name(timeline, TIMELINE_HOST, -1, "host");
  timeline_name_pod(timeline);
  timeline_name(timeline, TIMELINE_LINKS, -1, "links");
  timeline_name(timeline, TIMELINE_HOST, 0, "launches");
  timeline_flush(timeline);
  return NULL;
}

mp_status_t mp_timeline_create(const mp_model_t *model, const char *path, const char *devices,
                               uint64_t most_events, mp_timeline_t **out_timeline) {
  mp_timeline_t *timeline = mp_calloc(1, sizeof(*timeline));
  MP_RETURN_IF_NULL(timeline);
  timeline->model = model;
  timeline->most_events = most_events;
  timeline->observer = mp_watching_silent_observer();
  timeline->observer.on_enqueue = timeline_on_enqueue;
  timeline->observer.on_launch = timeline_on_launch;
  timeline->observer.on_work = timeline_on_work;
  timeline->observer.on_meeting = timeline_on_meeting;
  timeline->observer.on_stream = timeline_on_stream;
  timeline->observer.on_link = timeline_on_link;
  timeline->observer.on_transfer = timeline_on_transfer;
  timeline->observer.context = timeline;
  mp_strbuf_init(&timeline->buffer);
  mp_strbuf_init(&timeline->late);
  timeline->out = &timeline->buffer;
  mp_status_t status = timeline_make(timeline, path, devices);
  if (status != NULL) {
    mp_timeline_release(timeline);
    return status;
  }
  *out_timeline = timeline;
  return NULL;
}

const mp_model_observer_t *mp_timeline_observer(const mp_timeline_t *timeline) {
  return &timeline->observer;
}

void mp_timeline_release(mp_timeline_t *timeline) {
  if (timeline == NULL) return;
  if (timeline->file != NULL) {
    timeline_go_on(timeline, false);
    const uint32_t links = mp_network_num_links(mp_model_network(timeline->model));
    for (uint32_t i = 0; i < links; ++i) timeline_put_stretch(timeline, i);
    // The last event has no comma behind it.
    mp_strbuf_puts(timeline->out,
                   "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_labels\",\"args\":{\"labels\":"
                   "\"virtual time\"}}\n]\n");
    timeline_flush(timeline);
    (void)fclose(timeline->file);
  }
  mp_strbuf_deinit(&timeline->buffer);
  mp_strbuf_deinit(&timeline->late);
  mp_timeline_scope_deinit(&timeline->scope);
  mp_free(timeline->written);
  mp_free(timeline->streamed);
  mp_free(timeline->is_named);
  mp_free(timeline->links);
  mp_free(timeline);
}
