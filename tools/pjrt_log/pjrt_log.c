// A PJRT plugin that passes every call on to another plugin, and logs it: build/pjrt_log.so.
//
//     PJRT_LOG_PLUGIN=/path/to/plugin.so PJRT_LOG_FILE=calls.txt   (the environment of a client)
//
// A line per call: seconds since the start, thread, duration, the size of the caller's struct, the
// function with its sizes, and the error. At the end of the process: calls, time and errors by
// function. The table that clients get is the plugin's with other functions in the slots that this
// file knows; newer slots and unknown extensions are passed on unchanged.

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pjrt/c_api/c_api.h"
#include "pjrt/c_api/c_api_ext.h"
#include "tools/pjrt_log/extension_slots.h"

// ---- what is counted ----

typedef struct {
  const char *extension, *name;  // extension NULL: the main table
  atomic_ulong calls, errors;
  atomic_ullong nanoseconds;
} counter_t;

#define MAIN_ENUM(result, name, required) MAIN_##name,
enum { PJRT_FUNCTIONS(MAIN_ENUM) NUM_MAIN };
#define MAIN_COUNTER(result, function, required) {.name = #function},
static counter_t g_main[] = {PJRT_FUNCTIONS(MAIN_COUNTER)};

static const PJRT_Api *g_plugin;  // the other plugin's table
static FILE *g_file;
static struct timespec g_start;
static atomic_uint g_num_threads;

static double pjrt_log_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)(now.tv_sec - g_start.tv_sec) + 1e-9 * (double)(now.tv_nsec - g_start.tv_nsec);
}

// A small number for each thread, by its first call.
static unsigned pjrt_log_thread(void) {
  static _Thread_local unsigned number;
  if (number == 0) number = atomic_fetch_add(&g_num_threads, 1) + 1;
  return number;
}

// ---- sizes ----

// What a line says of a call's arguments.
typedef struct {
  char text[256];
  size_t size;
} note_t;

__attribute__((format(printf, 2, 3))) static void pjrt_log_add(note_t *note, const char *format,
                                                               ...) {
  va_list args;
  va_start(args, format);
  const size_t room = sizeof(note->text) - note->size;
  const int added = vsnprintf(note->text + note->size, room, format, args);
  va_end(args);
  if (added > 0) note->size += (size_t)added < room ? (size_t)added : room - 1;
}

static void pjrt_log_add_dims(note_t *note, PJRT_Buffer_Type type, const int64_t *dims,
                              size_t count) {
  pjrt_log_add(note, " type %d [", (int)type);
  for (size_t i = 0; i < count && dims != NULL; ++i) {
    pjrt_log_add(note, i == 0 ? "%lld" : ",%lld", (long long)dims[i]);
  }
  pjrt_log_add(note, "]");
}

static void pjrt_log_add_options(note_t *note, const PJRT_NamedValue *options, size_t count) {
  for (size_t i = 0; i < count && options != NULL; ++i) {
    pjrt_log_add(note, "%s%.*s", i == 0 ? " options " : ",", (int)options[i].name_size,
                 options[i].name);
  }
}

// Fields that all callers have (PJRT_FUNCTIONS), except where the size is compared.
static void pjrt_log_note(int function, const void *arguments, note_t *note) {
  switch (function) {
    case MAIN_PJRT_Client_Create: {
      const PJRT_Client_Create_Args *args = arguments;
      pjrt_log_add_options(note, args->create_options, args->num_options);
      return;
    }
    case MAIN_PJRT_TopologyDescription_Create: {
      const PJRT_TopologyDescription_Create_Args *args = arguments;
      pjrt_log_add(note, " '%.*s'", (int)args->topology_name_size,
                   args->topology_name == NULL ? "" : args->topology_name);
      pjrt_log_add_options(note, args->create_options, args->num_options);
      return;
    }
    case MAIN_PJRT_Client_Compile: {
      const PJRT_Client_Compile_Args *args = arguments;
      if (args->program == NULL) return;
      pjrt_log_add(note, " %.*s of %zu bytes, options of %zu bytes",
                   (int)args->program->format_size, args->program->format, args->program->code_size,
                   args->compile_options_size);
      return;
    }
    case MAIN_PJRT_Executable_DeserializeAndLoad: {
      const PJRT_Executable_DeserializeAndLoad_Args *args = arguments;
      pjrt_log_add(note, " %zu bytes", args->serialized_executable_size);
      return;
    }
    case MAIN_PJRT_Client_BufferFromHostBuffer: {
      const PJRT_Client_BufferFromHostBuffer_Args *args = arguments;
      pjrt_log_add_dims(note, args->type, args->dims, args->num_dims);
      return;
    }
    case MAIN_PJRT_Client_CreateUninitializedBuffer: {
      const PJRT_Client_CreateUninitializedBuffer_Args *args = arguments;
      pjrt_log_add_dims(note, args->shape_element_type, args->shape_dims, args->shape_num_dims);
      return;
    }
    case MAIN_PJRT_Client_CreateBuffersForAsyncHostToDevice: {
      const PJRT_Client_CreateBuffersForAsyncHostToDevice_Args *args = arguments;
      pjrt_log_add(note, " %zu buffers", args->num_shape_specs);
      return;
    }
    case MAIN_PJRT_Buffer_ToHostBuffer: {
      const PJRT_Buffer_ToHostBuffer_Args *args = arguments;
      pjrt_log_add(note, " %zu bytes%s", args->dst_size, args->dst == NULL ? " (asks)" : "");
      return;
    }
    case MAIN_PJRT_LoadedExecutable_Execute: {
      const PJRT_LoadedExecutable_Execute_Args *args = arguments;
      pjrt_log_add(note, " %zu devices, %zu arguments%s", args->num_devices, args->num_args,
                   args->device_complete_events == NULL ? "" : ", events");
      return;
    }
    default:
      return;
  }
}

// ---- lines ----

static const char *pjrt_log_message(PJRT_Error *error, size_t *out_size) {
  PJRT_Error_Message_Args args = {
      .struct_size = PJRT_STRUCT_SIZE(PJRT_Error_Message_Args, message_size), .error = error};
  g_plugin->PJRT_Error_Message(&args);
  *out_size = args.message == NULL ? 0 : args.message_size;
  return args.message;
}

static int pjrt_log_code(PJRT_Error *error) {
  PJRT_Error_GetCode_Args args = {.struct_size = PJRT_STRUCT_SIZE(PJRT_Error_GetCode_Args, code),
                                  .error = error};
  return g_plugin->PJRT_Error_GetCode(&args) == NULL ? (int)args.code : -1;
}

// `note` was made before the call, because the call may end what the arguments point to.
static void pjrt_log_record(counter_t *counter, const note_t *note, size_t struct_size,
                            double begin, PJRT_Error *error) {
  const double seconds = pjrt_log_seconds() - begin;
  atomic_fetch_add(&counter->calls, 1);
  atomic_fetch_add(&counter->nanoseconds, (unsigned long long)(seconds * 1e9));
  char outcome[512] = "";
  if (error != NULL) {
    size_t size = 0;
    const char *message = pjrt_log_message(error, &size);
    atomic_fetch_add(&counter->errors, 1);
    snprintf(outcome, sizeof(outcome), "  ERROR %d: %.*s", pjrt_log_code(error), (int)size,
             message == NULL ? "" : message);
    for (char *at = outcome; *at != '\0'; ++at) {
      if (*at == '\n') *at = ' ';
    }
  }
  fprintf(g_file, "%11.6f  t%-3u %10.1f us  %4zu  %s%s%s%s%s\n", begin, pjrt_log_thread(),
          seconds * 1e6, struct_size, counter->extension == NULL ? "" : counter->extension,
          counter->extension == NULL ? "" : ".", counter->name, note->text, outcome);
}

// ---- the main table ----

static size_t pjrt_log_size(const void *args) {
  size_t size = 0;
  if (args != NULL) memcpy(&size, args, sizeof(size));
  return size;
}

#define WRAP_error(name)                                              \
  static PJRT_Error *pjrt_log_##name(name##_Args *args) {             \
    note_t note = {"", 0};                                            \
    if (args != NULL) pjrt_log_note(MAIN_##name, args, &note);        \
    const size_t size = pjrt_log_size(args);                          \
    const double begin = pjrt_log_seconds();                          \
    PJRT_Error *error = g_plugin->name(args);                         \
    pjrt_log_record(&g_main[MAIN_##name], &note, size, begin, error); \
    return error;                                                     \
  }
#define WRAP_void(name)                                              \
  static void pjrt_log_##name(name##_Args *args) {                   \
    const note_t note = {"", 0};                                     \
    const size_t size = pjrt_log_size(args);                         \
    const double begin = pjrt_log_seconds();                         \
    g_plugin->name(args);                                            \
    pjrt_log_record(&g_main[MAIN_##name], &note, size, begin, NULL); \
  }
#define WRAP(result, name, required) WRAP_##result(name)
PJRT_FUNCTIONS(WRAP)

static void pjrt_log_wrap_main(PJRT_Api *api) {
#define PUT(result, name, required)                                                \
  if (api->struct_size >= PJRT_STRUCT_SIZE(PJRT_Api, name) && api->name != NULL) { \
    api->name = pjrt_log_##name;                                                   \
  }
  PJRT_FUNCTIONS(PUT)
#undef PUT
}

// ---- extensions ----

typedef PJRT_Error *extension_function_t(void *args);
typedef void extension_procedure_t(void *args);
typedef void any_function_t(void);

// The functions of all extensions, one after the other.
typedef struct {
  bool returns_error;
  any_function_t *function;  // the plugin's, with or without a result
  counter_t counter;
} slot_t;

#define SLOT_error true
#define SLOT_none  false
// Filled from the table of extensions when the library is first asked for its table.
enum { MAX_SLOTS = 128 };
static slot_t g_slots[MAX_SLOTS];
static size_t g_num_slots;

typedef struct {
  const char *name;
  bool returns_error;
} slot_form_t;
typedef struct {
  PJRT_Extension_Type type;
  const char *name;
  const slot_form_t *slots;
  size_t num_slots;
} extension_form_t;

#define SLOT_FORM(function, result)    {#function, SLOT_##result},
#define TPU_SLOT_FORM(function, field) SLOT_FORM(function, error)
#define EXTENSION_SLOTS(type, ...)     static const slot_form_t g_slots_of_##type[] = {__VA_ARGS__};
PJRT_LOG_EXTENSIONS(EXTENSION_SLOTS, SLOT_FORM, TPU_SLOT_FORM)
#define EXTENSION_FORM(type, ...)                        \
  {PJRT_Extension_Type_##type, #type, g_slots_of_##type, \
   sizeof(g_slots_of_##type) / sizeof(g_slots_of_##type[0])},
static const extension_form_t g_extensions[] = {
    PJRT_LOG_EXTENSIONS(EXTENSION_FORM, SLOT_FORM, TPU_SLOT_FORM)};

static PJRT_Error *pjrt_log_call_slot(size_t number, void *args) {
  slot_t *slot = &g_slots[number];
  const note_t note = {"", 0};
  const size_t size = pjrt_log_size(args);
  const double begin = pjrt_log_seconds();
  PJRT_Error *error = NULL;
  if (slot->returns_error) {
    error = ((extension_function_t *)slot->function)(args);
  } else {
    ((extension_procedure_t *)slot->function)(args);
  }
  pjrt_log_record(&slot->counter, &note, size, begin, error);
  return error;
}

// A C function for each number, because the slots of a table have no other argument than theirs.
// clang-format off
#define EIGHT(X, n) X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7)
#define ALL(X) \
  EIGHT(X, 00) EIGHT(X, 01) EIGHT(X, 02) EIGHT(X, 03) EIGHT(X, 04) EIGHT(X, 05) EIGHT(X, 06) \
  EIGHT(X, 07) EIGHT(X, 010) EIGHT(X, 011) EIGHT(X, 012) EIGHT(X, 013) EIGHT(X, 014) \
  EIGHT(X, 015) EIGHT(X, 016) EIGHT(X, 017)
// clang-format on
#define SLOT_FUNCTION(octal)                             \
  static PJRT_Error *pjrt_log_slot_##octal(void *args) { \
    return pjrt_log_call_slot(octal, args);              \
  }
ALL(SLOT_FUNCTION)
#define SLOT_ADDRESS(octal) pjrt_log_slot_##octal,
static extension_function_t *const g_slot_functions[MAX_SLOTS] = {ALL(SLOT_ADDRESS)};

static const extension_form_t *pjrt_log_find_form(PJRT_Extension_Type type) {
  for (size_t i = 0; i < sizeof(g_extensions) / sizeof(g_extensions[0]); ++i) {
    if (g_extensions[i].type == type) return &g_extensions[i];
  }
  return NULL;
}

// Replaces the functions of a copied table.
static void pjrt_log_wrap_slots(PJRT_Extension_Base *extension, const extension_form_t *form) {
  any_function_t **functions = (any_function_t **)(void *)(extension + 1);
  const size_t count = (extension->struct_size - sizeof(*extension)) / sizeof(void *);
  for (size_t i = 0; i < count && i < form->num_slots; ++i) {
    if (functions[i] == NULL || g_num_slots == MAX_SLOTS) continue;
    slot_t *slot = &g_slots[g_num_slots];
    slot->returns_error = form->slots[i].returns_error;
    slot->function = functions[i];
    slot->counter.extension = form->name;
    slot->counter.name = form->slots[i].name;
    functions[i] = (any_function_t *)g_slot_functions[g_num_slots++];
  }
}

// A chain like the plugin's. The tables of known extensions are copied; others are the plugin's,
// copied too, because their place in the chain is in them.
static PJRT_Extension_Base *pjrt_log_copy_chain(const PJRT_Extension_Base *extension) {
  PJRT_Extension_Base *first = NULL, **link = &first;
  for (; extension != NULL; extension = extension->next) {
    const size_t size =
        extension->struct_size < sizeof(*extension) ? sizeof(*extension) : extension->struct_size;
    PJRT_Extension_Base *copy = malloc(size);
    if (copy == NULL) break;
    memcpy(copy, extension, size);
    copy->next = NULL;
    const extension_form_t *form = pjrt_log_find_form(extension->type);
    if (form != NULL) pjrt_log_wrap_slots(copy, form);
    fprintf(g_file, "# extension %d%s%s\n", (int)extension->type, form == NULL ? "" : " ",
            form == NULL ? " (its calls are not logged)" : form->name);
    *link = copy;
    link = &copy->next;
  }
  return first;
}

// ---- the end ----

static void pjrt_log_print_counter(const counter_t *counter) {
  const unsigned long calls = atomic_load(&counter->calls);
  if (calls == 0) return;
  fprintf(g_file, "# %8lu calls  %12.3f ms  %6lu errors  %s%s%s\n", calls,
          1e-6 * (double)atomic_load(&counter->nanoseconds), atomic_load(&counter->errors),
          counter->extension == NULL ? "" : counter->extension,
          counter->extension == NULL ? "" : ".", counter->name);
}

static int pjrt_log_compare(const void *a, const void *b) {
  const unsigned long long left = atomic_load(&(*(counter_t *const *)a)->nanoseconds);
  const unsigned long long right = atomic_load(&(*(counter_t *const *)b)->nanoseconds);
  return (left < right) - (left > right);
}

// The functions that take most time come first.
static void pjrt_log_end(void) {
  counter_t *all[NUM_MAIN + MAX_SLOTS];
  size_t count = 0;
  for (size_t i = 0; i < NUM_MAIN; ++i) all[count++] = &g_main[i];
  for (size_t i = 0; i < g_num_slots; ++i) all[count++] = &g_slots[i].counter;
  qsort(all, count, sizeof(all[0]), pjrt_log_compare);
  for (size_t i = 0; i < count; ++i) pjrt_log_print_counter(all[i]);
  fflush(g_file);
}

// ---- the beginning ----

// "%p" in the name becomes the process id.
static FILE *pjrt_log_open(const char *name) {
  if (name == NULL || name[0] == '\0' || strcmp(name, "-") == 0) return stderr;
  char path[4096];
  const char *mark = strstr(name, "%p");
  if (mark == NULL) {
    snprintf(path, sizeof(path), "%s", name);
  } else {
    snprintf(path, sizeof(path), "%.*s%ld%s", (int)(mark - name), name, (long)getpid(), mark + 2);
  }
  FILE *file = fopen(path, "w");
  if (file == NULL) {
    fprintf(stderr, "pjrt_log: cannot write %s; the log goes to stderr\n", path);
    return stderr;
  }
  setvbuf(file, NULL, _IOLBF, 0);  // a process that is killed has its lines
  return file;
}

static const PJRT_Api *pjrt_log_load(const char *path) {
  if (path == NULL) {
    fprintf(stderr, "pjrt_log: PJRT_LOG_PLUGIN does not name a plugin\n");
    return NULL;
  }
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const PJRT_Api *(*get)(void) = NULL;
  if (library != NULL) *(void **)&get = dlsym(library, "GetPjrtApi");
  if (get == NULL) {
    fprintf(stderr, "pjrt_log: %s\n", dlerror());
    return NULL;
  }
  return get();
}

static PJRT_Api *g_api;

static void pjrt_log_begin(void) {
  clock_gettime(CLOCK_MONOTONIC, &g_start);
  const char *path = getenv("PJRT_LOG_PLUGIN");
  g_plugin = pjrt_log_load(path);
  if (g_plugin == NULL) return;
  g_file = pjrt_log_open(getenv("PJRT_LOG_FILE"));
  // The table may be larger or smaller than the one that this file knows.
  const size_t size = g_plugin->struct_size;
  PJRT_Api *api = malloc(size);
  if (api == NULL) return;
  memcpy(api, g_plugin, size);
  fprintf(g_file, "# %s: API %d.%d, a table of %zu bytes, %zu known\n", path,
          g_plugin->pjrt_api_version.major_version, g_plugin->pjrt_api_version.minor_version, size,
          sizeof(PJRT_Api));
  fprintf(g_file, "# seconds, thread, duration, struct_size, function and sizes, error\n");
  pjrt_log_wrap_main(api);
  api->extension_start = pjrt_log_copy_chain(g_plugin->extension_start);
  atexit(pjrt_log_end);
  g_api = api;
}

__attribute__((visibility("default"))) const PJRT_Api *GetPjrtApi(void);
// The functions that the log lends keep this library in memory: it is linked with nodelete.
const PJRT_Api *GetPjrtApi(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, pjrt_log_begin);
  return g_api;
}
