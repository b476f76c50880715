// The Profiler extension (type 1): which programs ran on which device, and when.
//
// While a profiler runs, each launch of this process leaves a record per device, from the Execute
// to the end of the program; those that have not ended when the profiler stops are left out. The
// client gets them as an XSpace message with a plane for each device. A device runs one program
// after the other, so a launch counts from the end of the one before it.

#include <time.h>

#include "pjrt/pjrt_executable.h"
#include "sim/base/alloc.h"
#include "sim/base/hash.h"
#include "sim/base/os/lock.h"
#include "sim/base/proto.h"

// A launch on a device. The list has one reference, the event's callback the other.
typedef struct record_s record_t;
struct record_s {
  atomic_int references;
  record_t *next;
  mp_event_t *done;  // a reference
  uint32_t device;
  int64_t begin;        // nanoseconds since 1970
  _Atomic int64_t end;  // 0 until the callback has run
  char name[];
};

struct PLUGIN_Profiler {
  record_t *records;  // of what ran until it was stopped, the first one first
  bool has_space;
  mp_strbuf_t space;
};

static mp_lock_t g_lock = MP_LOCK_INITIALIZER(MP_LOCK_PROFILER);
static PLUGIN_Profiler *g_running;  // under the lock
static record_t *g_records;         // under the lock: the last one first
static atomic_bool g_is_running;

// ---- recording ----

static int64_t ext_profiler_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void ext_profiler_release(record_t *record) {
  if (atomic_fetch_sub(&record->references, 1) != 1) return;
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
  return atomic_load_explicit(&g_is_running, memory_order_relaxed) ? ext_profiler_now() : 0;
}

static void ext_profiler_launch_ended(mp_status_t status, void *context) {
  (void)status;
  record_t *record = context;
  atomic_store(&record->end, ext_profiler_now());
  ext_profiler_release(record);
}

void mp_pjrt_profiler_note(int64_t begin, const char *name, uint32_t device, mp_event_t *done) {
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

// ---- as a message ----

// The fields of tsl's xplane.proto that are written here.
enum { SPACE_PLANES = 1 };
enum { PLANE_ID = 1, PLANE_NAME = 2, PLANE_LINES = 3, PLANE_EVENT_METADATA = 4 };
enum { LINE_ID = 1, LINE_NAME = 2, LINE_TIMESTAMP_NS = 3, LINE_EVENTS = 4 };
enum { EVENT_METADATA_ID = 1, EVENT_OFFSET_PS = 2, EVENT_DURATION_PS = 3 };
enum { METADATA_ID = 1, METADATA_NAME = 2 };
enum { MAP_KEY = 1, MAP_VALUE = 2 };

// A device's plane in the making.
typedef struct {
  bool is_used;
  int64_t start, end;     // of its first launch, and of the last one so far
  uint64_t last_name;     // the number of the last launch's name
  mp_strbuf_t line, map;  // events; names
} plane_t;

// An entry of the plane's map from numbers to names. A map may say the same more than once.
static void ext_profiler_put_name(plane_t *plane, uint64_t number, const char *name) {
  mp_strbuf_t metadata, entry;
  mp_strbuf_init(&metadata);
  mp_strbuf_init(&entry);
  mp_proto_put_varint(&metadata, METADATA_ID, number);
  mp_proto_put_bytes(&metadata, METADATA_NAME, mp_str(name));
  mp_proto_put_varint(&entry, MAP_KEY, number);
  mp_proto_put_message(&entry, MAP_VALUE, &metadata);
  mp_proto_put_message(&plane->map, PLANE_EVENT_METADATA, &entry);
  mp_strbuf_deinit(&metadata);
  mp_strbuf_deinit(&entry);
}

static void ext_profiler_put_event(plane_t *plane, const record_t *record) {
  if (!plane->is_used) {
    plane->is_used = true;
    plane->start = plane->end = record->begin;
    mp_strbuf_init(&plane->line);
    mp_strbuf_init(&plane->map);
    mp_proto_put_varint(&plane->line, LINE_ID, 1);
    mp_proto_put_bytes(&plane->line, LINE_NAME, MP_STR("XLA Modules"));
    mp_proto_put_varint(&plane->line, LINE_TIMESTAMP_NS, (uint64_t)plane->start);
  }
  const uint64_t number = mp_hash_bytes(MP_HASH_START, record->name, strlen(record->name)) >> 1 | 1;
  if (number != plane->last_name) ext_profiler_put_name(plane, number, record->name);
  plane->last_name = number;
  const int64_t end = atomic_load(&record->end);
  const int64_t begin = record->begin > plane->end ? record->begin : plane->end;
  const int64_t length = end > begin ? end - begin : 0;  // a clock may have been set back
  plane->end = begin + length;
  mp_strbuf_t event;
  mp_strbuf_init(&event);
  mp_proto_put_varint(&event, EVENT_METADATA_ID, number);
  mp_proto_put_varint(&event, EVENT_OFFSET_PS, (uint64_t)(begin - plane->start) * 1000);
  mp_proto_put_varint(&event, EVENT_DURATION_PS, (uint64_t)length * 1000);
  mp_proto_put_message(&plane->line, LINE_EVENTS, &event);
  mp_strbuf_deinit(&event);
}

// Appends the plane of a device and frees what it was made of.
static void ext_profiler_put_plane(plane_t *plane, uint32_t device, mp_strbuf_t *out) {
  mp_strbuf_t message, name;
  mp_strbuf_init(&message);
  mp_strbuf_init(&name);
  mp_strbuf_printf(&name, "/device:CUSTOM:minipod:%u", device);
  mp_proto_put_varint(&message, PLANE_ID, device);
  mp_proto_put_bytes(&message, PLANE_NAME, (mp_str_t){mp_strbuf_text(&name), name.size});
  mp_proto_put_message(&message, PLANE_LINES, &plane->line);
  mp_strbuf_append(&message, mp_strbuf_text(&plane->map), plane->map.size);
  if (plane->map.failed || name.failed) message.failed = true;
  mp_proto_put_message(out, SPACE_PLANES, &message);
  mp_strbuf_deinit(&message);
  mp_strbuf_deinit(&name);
  mp_strbuf_deinit(&plane->line);
  mp_strbuf_deinit(&plane->map);
}

static mp_status_t ext_profiler_put_space(const record_t *records, mp_strbuf_t *out) {
  uint32_t num_devices = 0;
  for (const record_t *record = records; record != NULL; record = record->next) {
    if (record->device >= num_devices) num_devices = record->device + 1;
  }
  plane_t *planes = mp_calloc(num_devices + 1, sizeof(*planes));
  MP_RETURN_IF_NULL(planes);
  for (const record_t *record = records; record != NULL; record = record->next) {
    ext_profiler_put_event(&planes[record->device], record);
  }
  for (uint32_t i = 0; i < num_devices; ++i) {
    if (planes[i].is_used) ext_profiler_put_plane(&planes[i], i, out);
  }
  mp_free(planes);
  return mp_strbuf_status(out);
}

// ---- the table; errors are those of the main interface under another name ----

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

// Nothing that the options choose (host, Python, how much of each) is recorded here.
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
  if (is_free) return NULL;
  return ext_profiler_error(
      mp_status_make(MP_FAILED_PRECONDITION, "another profiler is running in this process"));
}

static void ext_profiler_stop_it(PLUGIN_Profiler *profiler) {
  mp_lock(&g_lock);
  record_t *all = NULL;
  if (g_running == profiler) {
    atomic_store(&g_is_running, false);
    g_running = NULL;
    all = g_records;
    g_records = NULL;
  }
  mp_unlock(&g_lock);
  while (all != NULL) {
    record_t *record = all;
    all = record->next;
    // Who waited for an event may be here before its callbacks.
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
  mp_strbuf_deinit(&profiler->space);
  mp_free(profiler);
  return NULL;
}

// Callers of an older version bring a buffer in a second call, newer ones read that of the first.
static PLUGIN_Profiler_Error *ext_profiler_collect_data(PLUGIN_Profiler_CollectData_Args *args) {
  PLUGIN_Profiler *profiler = args->profiler;
  if (!profiler->has_space) {
    mp_status_t status = ext_profiler_put_space(profiler->records, &profiler->space);
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

PJRT_Profiler_Extension mp_pjrt_profiler_extension = {
    .base = {.struct_size = sizeof(PJRT_Profiler_Extension),
             .type = PJRT_Extension_Type_Profiler,
             .next = &mp_pjrt_custom_partitioner_extension.base},
    .profiler_api = &profiler_api,
};
