// The Profiler extension (type 1): which programs ran on which device, and when.
//
// While a profiler runs, each launch of this process leaves a record per device, from the Execute
// to the end of the program; those that have not ended when the profiler stops are left out. The
// client gets them as an XSpace message with a plane for each device. A device runs one program
// after the other, so a launch counts from the end of the one before it. Clients that keep virtual
// times add planes of these (sim/model/report/profile/pod_profile.h).

#include "pjrt/extensions/ext_profiler.h"

#include <stdio.h>
#include <time.h>

#include "pjrt/extensions/extensions.h"
#include "pjrt/package/pjrt_time.h"
#include "sim/base/alloc.h"
#include "sim/base/assert.h"
#include "sim/base/hash.h"
#include "sim/base/os/lock.h"
#include "sim/model/report/profile/pod_profile.h"
#include "sim/model/report/profile/program_names.h"
#include "sim/model/report/profile/xplane.h"

// A launch on a device. The list has one reference, the event's callback the other.
typedef struct record_s record_t;
struct record_s {
  atomic_int references;
  record_t *next;
  mp_event_t *done;  // a reference
  uint32_t device;
  int64_t begin;        // nanoseconds since 1970
  _Atomic int64_t end;  // 0 until the callback has run, on the thread that ended the launch
  char name[];
};

enum { EXT_PROFILER_PODS = 4 };

struct PLUGIN_Profiler {
  // The clients that keep virtual times. If a client ends before its profiler, its report is lost.
  uint32_t num_pods;
  mp_pod_profile_t *pods[EXT_PROFILER_PODS];
  mp_xplane_t programs;  // under g_lock: the ops of launched programs, by their names
  record_t *records;     // launches until the profiler was stopped, the first one first
  bool has_space;
  mp_strbuf_t space;
};

static mp_lock_t g_lock = MP_LOCK_INITIALIZER(MP_LOCK_PROFILER);
static PLUGIN_Profiler *g_running;  // under the lock
static record_t *g_records;         // under the lock: the last one first
static atomic_bool g_is_running;    // the same as g_running != NULL, for reading without the lock

// ---- recording ----

static int64_t ext_profiler_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void ext_profiler_release(record_t *record) {
  const int before = atomic_fetch_sub(&record->references, 1);
  MP_ASSERT(before > 0);
  if (before != 1) return;
  mp_event_release(record->done);
  mp_free(record);
}

static void ext_profiler_release_all(record_t *records) {
  while (records != NULL) {
    record_t *next = records->next;
    ext_profiler_release(records);
    records = next;
  }
}

int64_t mp_pjrt_profiler_begin(void) {
  // Relaxed, because each Execute checks it. A launch that begins at the same time as the profiler
  // may be recorded or not; the lock decides.
  return atomic_load_explicit(&g_is_running, memory_order_relaxed) ? ext_profiler_now() : 0;
}

static void ext_profiler_launch_ended(mp_status_t status, void *context) {
  (void)status;
  record_t *record = context;
  atomic_store(&record->end, ext_profiler_now());
  ext_profiler_release(record);
}

static void ext_profiler_note_program(const PJRT_Executable *executable) {
  const uint64_t number = mp_xplane_number(mp_hash_pointer(executable->program));
  mp_lock(&g_lock);
  if (g_running != NULL && !mp_xplane_is_named(&g_running->programs, number)) {
    mp_xplane_put_name(&g_running->programs, number, mp_str(executable->name), MP_STR(""), 0, NULL);
    mp_xplane_put_program(&g_running->programs, executable->program);
  }
  mp_unlock(&g_lock);
}

static void ext_profiler_note_device(int64_t begin, const char *name, uint32_t device,
                                     mp_event_t *done) {
  const size_t size = strlen(name) + 1;
  record_t *record = mp_malloc(sizeof(*record) + size);
  if (record == NULL) return;
  record->done = mp_event_retain(done);
  record->device = device;
  record->begin = begin;
  atomic_init(&record->references, 2);
  atomic_init(&record->end, 0);
  memcpy(record->name, name, size);
  mp_status_t status = mp_event_on_ready(done, ext_profiler_launch_ended, record);
  if (status != NULL) {
    mp_status_ignore(status);
    ext_profiler_release(record);
  }
  mp_lock(&g_lock);
  const bool is_wanted = status == NULL && g_running != NULL;
  if (is_wanted) {
    record->next = g_records;
    g_records = record;
  }
  mp_unlock(&g_lock);
  if (!is_wanted) ext_profiler_release(record);
}

void mp_pjrt_profiler_note(int64_t begin, const PJRT_Executable *executable,
                           const uint32_t *logical, mp_event_t *const *done, size_t num_devices) {
  ext_profiler_note_program(executable);
  for (size_t d = 0; d < num_devices; ++d) {
    const mp_device_t *device = mp_executable_device(executable->executable, logical[d]);
    ext_profiler_note_device(begin, executable->name, mp_device_id(device), done[d]);
  }
}

// ---- as a message ----

// The state of writing a device's plane of real times.
typedef struct {
  mp_xplane_t plane;
  int64_t start, end;  // of its first launch, and of the last one so far; 0: there is none
} launches_t;

static void ext_profiler_put_event(launches_t *launches, const record_t *record) {
  if (launches->start == 0) {
    launches->start = launches->end = record->begin;
    mp_xplane_init(&launches->plane, record->begin);
  }
  const mp_str_t name = mp_str(record->name);
  const uint64_t number = mp_xplane_number(mp_hash_bytes(MP_HASH_START, name.data, name.size));
  mp_xplane_put_name(&launches->plane, number, name, MP_STR(""), 0, NULL);
  const int64_t end = atomic_load(&record->end);
  const int64_t begin = record->begin > launches->end ? record->begin : launches->end;
  const int64_t length = end > begin ? end - begin : 0;  // a clock may have been set back
  launches->end = begin + length;
  const mp_xplane_event_t event = {.number = number,
                                   .begin = (uint64_t)(begin - launches->start) * 1000,
                                   .duration = (uint64_t)length * 1000};
  mp_xplane_put_event(&launches->plane, 0, "XLA Modules", &event);
}

static mp_status_t ext_profiler_put_launches(const record_t *records, mp_strbuf_t *out) {
  uint32_t num_devices = 0;
  for (const record_t *record = records; record != NULL; record = record->next) {
    if (record->device >= num_devices) num_devices = record->device + 1;
  }
  launches_t *devices = mp_calloc(num_devices + 1, sizeof(*devices));
  MP_RETURN_IF_NULL(devices);
  for (const record_t *record = records; record != NULL; record = record->next) {
    ext_profiler_put_event(&devices[record->device], record);
  }
  for (uint32_t i = 0; i < num_devices; ++i) {
    if (devices[i].start == 0) continue;
    char name[64];
    (void)snprintf(name, sizeof(name), "/device:CUSTOM:minipod:%u", i);
    mp_xplane_print(&devices[i].plane, i, name, out);
    mp_xplane_deinit(&devices[i].plane);
  }
  mp_free(devices);
  return mp_strbuf_status(out);
}

static mp_status_t ext_profiler_put_space(const PLUGIN_Profiler *profiler, mp_strbuf_t *out) {
  MP_RETURN_IF_ERROR(ext_profiler_put_launches(profiler->records, out));
  for (uint32_t i = 0; i < profiler->num_pods; ++i) mp_pod_profile_print(profiler->pods[i], out);
  if (profiler->programs.is_used) {
    mp_xplane_print(&profiler->programs, 0, "/host:minipod programs", out);
  }
  return mp_strbuf_status(out);
}

// ---- virtual times ----

// A pod is left out if there is no memory to record it.
static void ext_profiler_start_pod(mp_report_t *report, void *context) {
  PLUGIN_Profiler *profiler = context;
  if (profiler->num_pods == EXT_PROFILER_PODS) return;
  mp_status_t status =
      mp_pod_profile_start(report, ext_profiler_now(), &profiler->pods[profiler->num_pods]);
  profiler->num_pods += status == NULL;
  mp_status_ignore(status);
}

static void ext_profiler_stop_pod(mp_report_t *report, void *context) {
  PLUGIN_Profiler *profiler = context;
  for (uint32_t i = 0; i < profiler->num_pods; ++i) {
    mp_pod_profile_stop(profiler->pods[i], report);
  }
}

// ---- the table; its errors are those of the main interface under another name ----

static PLUGIN_Profiler_Error *ext_profiler_error(mp_status_t status) {
  return (PLUGIN_Profiler_Error *)mp_pjrt_error(status);
}

static void ext_profiler_error_destroy(PLUGIN_Profiler_Error_Destroy_Args *args) {
  PJRT_Error_Destroy_Args destroy = {.error = (PJRT_Error *)args->error};
  mp_status_ignore(mp_PJRT_Error_Destroy(&destroy));
}

static void ext_profiler_error_message(PLUGIN_Profiler_Error_Message_Args *args) {
  PJRT_Error_Message_Args message = {.error = (const PJRT_Error *)args->error};
  mp_status_ignore(mp_PJRT_Error_Message(&message));
  args->message = message.message;
  args->message_size = message.message_size;
}

static PLUGIN_Profiler_Error *ext_profiler_error_code(PLUGIN_Profiler_Error_GetCode_Args *args) {
  PJRT_Error_GetCode_Args code = {.error = (const PJRT_Error *)args->error};
  mp_status_ignore(mp_PJRT_Error_GetCode(&code));
  args->code = (int)code.code;
  return NULL;
}

// The options are ignored: minipod records none of what they choose (host, Python, levels of
// detail).
static PLUGIN_Profiler_Error *ext_profiler_create(PLUGIN_Profiler_Create_Args *args) {
  PLUGIN_Profiler *profiler = mp_calloc(1, sizeof(*profiler));
  if (profiler == NULL) return ext_profiler_error(mp_status_out_of_memory());
  mp_strbuf_init(&profiler->space);
  args->profiler = profiler;
  return NULL;
}

static PLUGIN_Profiler_Error *ext_profiler_start(PLUGIN_Profiler_Start_Args *args) {
  mp_lock(&g_lock);
  const bool is_free = g_running == NULL || g_running == args->profiler;
  if (is_free) {
    g_running = args->profiler;
    atomic_store(&g_is_running, true);
  }
  mp_unlock(&g_lock);
  if (is_free && args->profiler->num_pods == 0) {
    mp_pjrt_time_visit(ext_profiler_start_pod, args->profiler);
  }
  if (is_free) return NULL;
  return ext_profiler_error(
      mp_status_make(MP_FAILED_PRECONDITION, "another profiler is running in this process"));
}

static void ext_profiler_stop_it(PLUGIN_Profiler *profiler) {
  mp_pjrt_time_visit(ext_profiler_stop_pod, profiler);
  mp_lock(&g_lock);
  record_t *all = NULL;
  if (g_running == profiler) {
    atomic_store(&g_is_running, false);
    g_running = NULL;
    all = g_records;
    g_records = NULL;
  }
  mp_unlock(&g_lock);
  // This thread now owns the list. Pending callbacks have their own references.
  while (all != NULL) {
    record_t *record = all;
    all = record->next;
    // A thread that waited for an event may get here before the event's callbacks.
    const bool has_ended = atomic_load(&record->end) != 0 || mp_event_is_ready(record->done);
    if (!has_ended) {
      ext_profiler_release(record);
      continue;
    }
    record->next = profiler->records;
    profiler->records = record;
  }
}

static PLUGIN_Profiler_Error *ext_profiler_stop(PLUGIN_Profiler_Stop_Args *args) {
  ext_profiler_stop_it(args->profiler);
  return NULL;
}

static PLUGIN_Profiler_Error *ext_profiler_destroy(PLUGIN_Profiler_Destroy_Args *args) {
  PLUGIN_Profiler *profiler = args->profiler;
  if (profiler == NULL) return NULL;
  ext_profiler_stop_it(profiler);
  ext_profiler_release_all(profiler->records);
  mp_xplane_deinit(&profiler->programs);
  for (uint32_t i = 0; i < profiler->num_pods; ++i) mp_pod_profile_release(profiler->pods[i]);
  mp_strbuf_deinit(&profiler->space);
  mp_free(profiler);
  return NULL;
}

// Older callers pass a buffer in a second call, newer ones read the buffer of the first.
static PLUGIN_Profiler_Error *ext_profiler_collect_data(PLUGIN_Profiler_CollectData_Args *args) {
  PLUGIN_Profiler *profiler = args->profiler;
  if (!profiler->has_space) {
    mp_status_t status = ext_profiler_put_space(profiler, &profiler->space);
    if (status != NULL) return ext_profiler_error(status);
    profiler->has_space = true;
  }
  const char *bytes = mp_strbuf_text(&profiler->space);
  if (args->buffer == NULL) {
    args->buffer = (uint8_t *)bytes;
  } else if (args->buffer != (const uint8_t *)bytes) {
    memcpy(args->buffer, bytes, profiler->space.size);
  }
  args->buffer_size_in_bytes = profiler->space.size;
  return NULL;
}

static const PLUGIN_Profiler_Api profiler_api = {
    .struct_size = sizeof(PLUGIN_Profiler_Api),
    .error_destroy = ext_profiler_error_destroy,
    .error_message = ext_profiler_error_message,
    .error_get_code = ext_profiler_error_code,
    .create = ext_profiler_create,
    .destroy = ext_profiler_destroy,
    .start = ext_profiler_start,
    .stop = ext_profiler_stop,
    .collect_data = ext_profiler_collect_data,
};

MP_PJRT_EXTENSION(Profiler, profiler) = {
    MP_PJRT_EXTENSION_BASE(Profiler),
    .profiler_api = &profiler_api,
};
