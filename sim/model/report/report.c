#include "sim/model/report/report.h"

#include "sim/base/alloc.h"
#include "sim/base/os/clock.h"
#include "sim/base/os/lock.h"
#include "sim/model/report/events/chakra.h"
#include "sim/model/report/events/timeline.h"
#include "sim/model/report/report_rows.h"
#include "sim/model/report/report_table.h"

enum { REPORT_WATCHERS = 8 };

struct mp_report_s {
  mp_model_t *model;
  double since;          // of the real clock
  mp_lock_t watch_lock;  // for changing the watchers; taken outside of the model's lock
  mp_lock_t lock;        // all below, and what watchers keep; taken inside the model's lock
  uint32_t num_watchers;
  const mp_model_observer_t *watchers[REPORT_WATCHERS];
  mp_timeline_t *timeline;  // NULL: not wanted
  mp_chakra_t *chakra;      // likewise
  mp_arena_t *arena;        // of `gone`
  mp_report_rows_t gone;    // of programs that are released
  uint64_t num_lost;        // of them, because memory was short
};

// ---- Observers ----

#define REPORT_TELL(context, call, ...)                                         \
  do {                                                                          \
    mp_report_t *report_ = (context);                                           \
    mp_lock(&report_->lock);                                                    \
    for (uint32_t i_ = 0; i_ < report_->num_watchers; ++i_) {                   \
      report_->watchers[i_]->call(report_->watchers[i_]->context, __VA_ARGS__); \
    }                                                                           \
    mp_unlock(&report_->lock);                                                  \
  } while (0)

static void report_on_enqueue(void *context, const mp_model_program_t *program,
                              mp_moment_t moment) {
  REPORT_TELL(context, on_enqueue, program, moment);
}

static void report_on_launch(void *context, const mp_model_program_t *program, uint32_t device,
                             int64_t traced, mp_moment_t begin, mp_moment_t end) {
  REPORT_TELL(context, on_launch, program, device, traced, begin, end);
}

static void report_on_work(void *context, const mp_model_program_t *program, uint32_t device,
                           uint32_t step, mp_moment_t begin, mp_moment_t end) {
  REPORT_TELL(context, on_work, program, device, step, begin, end);
}

static void report_on_meeting(void *context, const mp_model_program_t *program,
                              const mp_model_meeting_t *meeting) {
  REPORT_TELL(context, on_meeting, program, meeting);
}

static void report_on_stream(void *context, const mp_model_program_t *program, uint32_t device,
                             uint32_t collective, mp_moment_t begin, mp_moment_t end) {
  REPORT_TELL(context, on_stream, program, device, collective, begin, end);
}

static void report_on_message(void *context, const mp_model_program_t *program,
                              const mp_model_message_t *message) {
  REPORT_TELL(context, on_message, program, message);
}

static void report_on_link(void *context, const mp_model_program_t *program,
                           const mp_model_carried_t *carried) {
  REPORT_TELL(context, on_link, program, carried);
}

static void report_on_transfer(void *context, const mp_model_transfer_t *transfer,
                               mp_moment_t begin, mp_moment_t end) {
  REPORT_TELL(context, on_transfer, transfer, begin, end);
}

// Makes the model call the report at each event, or stops it.
static void report_observe(mp_report_t *report, bool is_wanted) {
  const mp_model_observer_t observer = {.on_enqueue = report_on_enqueue,
                                        .on_launch = report_on_launch,
                                        .on_work = report_on_work,
                                        .on_meeting = report_on_meeting,
                                        .on_stream = report_on_stream,
                                        .on_message = report_on_message,
                                        .on_link = report_on_link,
                                        .on_transfer = report_on_transfer,
                                        .context = report};
  mp_model_observe(report->model, is_wanted ? &observer : NULL);
}

mp_status_t mp_report_watch(mp_report_t *report, const mp_model_observer_t *observer) {
  mp_lock(&report->watch_lock);
  (void)mp_report_now(report);  // what was before is not told
  mp_lock(&report->lock);
  const bool has_room = report->num_watchers < REPORT_WATCHERS;
  if (has_room) report->watchers[report->num_watchers++] = observer;
  const bool is_first = report->num_watchers == 1;
  mp_unlock(&report->lock);
  // Without the report's lock, because the model takes its own, which comes before it; the
  // watchers' lock keeps another thread from deciding otherwise meanwhile.
  if (has_room && is_first) report_observe(report, true);
  mp_unlock(&report->watch_lock);
  if (has_room) return NULL;
  return mp_status_make(MP_RESOURCE_EXHAUSTED, "%d observers watch the model of time already",
                        REPORT_WATCHERS);
}

void mp_report_unwatch(mp_report_t *report, const mp_model_observer_t *observer) {
  mp_lock(&report->watch_lock);
  (void)mp_report_now(report);  // reports what was before
  mp_lock(&report->lock);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < report->num_watchers; ++i) {
    if (report->watchers[i] != observer) report->watchers[kept++] = report->watchers[i];
  }
  report->num_watchers = kept;
  mp_unlock(&report->lock);
  if (kept == 0) report_observe(report, false);
  mp_unlock(&report->watch_lock);
}

// ---- Programs that are gone ----

static void report_on_retire(const mp_model_program_books_t *books, void *context) {
  mp_report_t *report = context;
  mp_lock(&report->lock);
  mp_status_t status = mp_report_rows_add(&report->gone, report->model, books);
  report->num_lost += status != NULL;
  mp_unlock(&report->lock);
  mp_status_release(status);
}

// ---- Making ----

// Each process of a job has files of its own: those of the first are named as the option says.
static mp_status_t report_path(const mp_report_t *report, const char *path, mp_strbuf_t *out) {
  const int32_t process = mp_pod_info(mp_model_pod(report->model))->process_index;
  mp_strbuf_init(out);
  mp_strbuf_puts(out, path);
  if (process > 0) mp_strbuf_printf(out, ".%d", process);
  return mp_strbuf_status(out);
}

static mp_status_t report_make_timeline(mp_report_t *report, const mp_options_t *options) {
  mp_strbuf_t path;
  mp_status_t status = report_path(report, options->trace, &path);
  if (status == NULL) {
    status = mp_timeline_create(report->model, mp_strbuf_text(&path), options->trace_devices,
                                (uint64_t)options->trace_events, &report->timeline);
  }
  mp_strbuf_deinit(&path);
  MP_RETURN_IF_ERROR(status);
  return mp_report_watch(report, mp_timeline_observer(report->timeline));
}

static mp_status_t report_make_chakra(mp_report_t *report, const mp_options_t *options) {
  mp_strbuf_t folder;
  mp_status_t status = report_path(report, options->chakra, &folder);
  if (status == NULL) {
    status = mp_chakra_create(report->model, mp_strbuf_text(&folder), &report->chakra);
  }
  mp_strbuf_deinit(&folder);
  MP_RETURN_IF_ERROR(status);
  return mp_report_watch(report, mp_chakra_observer(report->chakra));
}

static mp_status_t report_make(mp_report_t *report, const mp_options_t *options) {
  const mp_pod_info_t *info = mp_pod_info(mp_model_pod(report->model));
  MP_RETURN_IF_ERROR(mp_arena_create(&report->arena));
  MP_RETURN_IF_ERROR(
      mp_report_rows_init(report->arena, (uint32_t)info->num_devices, &report->gone));
  mp_model_on_retire(report->model, report_on_retire, report);
  if (options->trace[0] != '\0') MP_RETURN_IF_ERROR(report_make_timeline(report, options));
  if (options->chakra[0] != '\0') MP_RETURN_IF_ERROR(report_make_chakra(report, options));
  return NULL;
}

mp_status_t mp_report_create(mp_model_t *model, const mp_options_t *options,
                             mp_report_t **out_report) {
  mp_report_t *report = mp_calloc(1, sizeof(*report));
  MP_RETURN_IF_NULL(report);
  report->model = model;
  report->since = mp_clock_seconds();
  mp_lock_init(&report->watch_lock, MP_LOCK_WATCHERS);
  mp_lock_init(&report->lock, MP_LOCK_REPORT);
  mp_status_t status = report_make(report, options);
  if (status != NULL) {
    mp_report_release(report);
    return status;
  }
  *out_report = report;
  return NULL;
}

void mp_report_release(mp_report_t *report) {
  if (report == NULL) return;
  (void)mp_report_now(report);  // reports what is left
  mp_model_observe(report->model, NULL);
  mp_model_on_retire(report->model, NULL, NULL);
  mp_timeline_release(report->timeline);
  mp_chakra_release(report->chakra);
  mp_arena_release(report->arena);
  mp_lock_deinit(&report->lock);
  mp_lock_deinit(&report->watch_lock);
  mp_free(report);
}

const mp_model_t *mp_report_model(const mp_report_t *report) {
  return report->model;
}

uint32_t mp_report_num_devices(const mp_report_t *report) {
  return report->gone.num_devices;
}

// ---- Reading ----

typedef mp_status_t report_printer_t(mp_report_table_t *table, mp_strbuf_t *out);

// The rows of a table in the making.
typedef struct {
  mp_report_t *report;
  mp_report_rows_t rows;
  mp_status_t status;
  bool has_gone;
} collected_t;

// Those that are gone come along with the first that is not, under the model's lock: none goes in
// between.
static void report_collect_gone(collected_t *collected) {
  if (collected->has_gone || collected->status != NULL) return;
  collected->has_gone = true;
  mp_lock(&collected->report->lock);
  collected->status = mp_report_rows_merge(&collected->rows, &collected->report->gone);
  mp_unlock(&collected->report->lock);
}

static void report_collect(const mp_model_program_books_t *books, void *context) {
  collected_t *collected = context;
  report_collect_gone(collected);
  if (collected->status != NULL) return;
  collected->status = mp_report_rows_add(&collected->rows, collected->report->model, books);
}

static mp_status_t report_print_into(mp_report_t *report, mp_arena_t *arena,
                                     report_printer_t *print, mp_strbuf_t *out) {
  const mp_pod_t *pod = mp_model_pod(report->model);
  collected_t collected = {.report = report};
  MP_RETURN_IF_ERROR(
      mp_report_rows_init(arena, (uint32_t)mp_pod_info(pod)->num_devices, &collected.rows));
  mp_model_books_t books;
  mp_model_read(report->model, &books, report_collect, &collected);
  report_collect_gone(&collected);
  MP_RETURN_IF_ERROR(collected.status);
  mp_report_table_t table = {
      .pod = pod,
      .network = mp_model_network(report->model),
      .figures = &mp_model_chip(report->model)->figures,
      .now = books.now,
      .host = books.host,
      .launches = books.launches,
      .transfers = books.transfers,
      .pending = books.pending,
      .lost = books.lost + report->num_lost,
      .late = books.late,
      .pace = books.pace,
      .real_seconds = mp_clock_seconds() - report->since,
      .rows = &collected.rows,
  };
  MP_RETURN_IF_ERROR(print(&table, out));
  return mp_strbuf_status(out);
}

static mp_status_t report_print_by(mp_report_t *report, report_printer_t *print, mp_strbuf_t *out) {
  mp_arena_t *arena = NULL;
  MP_RETURN_IF_ERROR(mp_arena_create(&arena));
  mp_status_t status = report_print_into(report, arena, print, out);
  mp_arena_release(arena);
  return status;
}

mp_status_t mp_report_print(mp_report_t *report, mp_strbuf_t *out) {
  return report_print_by(report, mp_report_table_print, out);
}

mp_status_t mp_report_print_json(mp_report_t *report, mp_strbuf_t *out) {
  return report_print_by(report, mp_report_json_print, out);
}

mp_moment_t mp_report_now(mp_report_t *report) {
  mp_model_books_t books;
  mp_model_read(report->model, &books, NULL, NULL);
  return books.now;
}
