// The table of functions with their shells, and the chain of extensions.

#include "pjrt/plugin/pjrt_api.h"

#include <pthread.h>

#include "pjrt/extensions/extensions.h"
#include "pjrt/pjrt_objects.h"
#include "pjrt/plugin/plugin_observer.h"
#include "sim/base/os/host_clock.h"

// The check of all shells: `args` must be there and cover the fields that every caller has.
static mp_status_t pjrt_api_check_args(const char *function, const void *args, size_t struct_size,
                                       size_t required) {
  if (args == NULL) return mp_pjrt_null_argument(function, "args");
  if (struct_size >= required) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT,
                        "%s: the arguments' struct_size is %zu, at least %zu is needed", function,
                        struct_size, required);
}

// What passes in here is no time of a host that sees the pod (clock: virtual).
static bool pjrt_api_stop_clock(void) {
  const bool is_used = mp_host_clock_is_used();
  if (is_used) mp_host_clock_stop();
  return is_used;
}

static void pjrt_api_restart_clock(bool was_stopped) {
  if (was_stopped) mp_host_clock_go();
}

#define STATUS_TO_void(status)  mp_status_ignore(status)
#define STATUS_TO_error(status) return mp_pjrt_error(status)
#define DEFINE_SHELL(result, name, required)                                                    \
  static PJRT_RESULT_##result shell_##name(name##_Args *args) {                                 \
    mp_status_t status = pjrt_api_check_args(#name, args, args == NULL ? 0 : args->struct_size, \
                                             PJRT_STRUCT_SIZE(name##_Args, required));          \
    const bool is_stopped = pjrt_api_stop_clock();                                              \
    if (status == NULL) status = mp_##name(args);                                               \
    pjrt_api_restart_clock(is_stopped);                                                         \
    STATUS_TO_##result(status);                                                                 \
  }
PJRT_FUNCTIONS(DEFINE_SHELL)

#define FILL_SLOT(result, name, required) .name = shell_##name,
static PJRT_Api api = {.struct_size = sizeof(PJRT_Api),
                       .extension_start = NULL,  // written once, by pjrt_api_start
                       .pjrt_api_version =
                           {
                               .struct_size = PJRT_STRUCT_SIZE(PJRT_Api_Version, minor_version),
                               .major_version = PJRT_API_MAJOR,
                               .minor_version = PJRT_API_MINOR,
                           },
                       PJRT_FUNCTIONS(FILL_SLOT)};

#define EXTENSION_ROW(type, name) &mp_pjrt_##name##_extension.base,
static PJRT_Extension_Base *const extensions[] = {MP_PJRT_EXTENSIONS(EXTENSION_ROW)};
_Static_assert(sizeof(extensions) / sizeof(extensions[0]) == MP_PJRT_EXTENSION_COUNT,
               "each extension is in the chain once");

static pthread_once_t g_once = PTHREAD_ONCE_INIT;

// An extension's table is where its functions are, so that the links between them, and the first
// one, can only be written here when the library has been loaded.
static void pjrt_api_start(void) {
  PJRT_Extension_Base **link = &api.extension_start;
  for (int i = 0; i < MP_PJRT_EXTENSION_COUNT; ++i) {
    *link = extensions[i];
    link = &extensions[i]->next;
  }
  mp_plugin_observe();
}

__attribute__((visibility("default"))) const PJRT_Api *GetPjrtApi(void) {
  pthread_once(&g_once, pjrt_api_start);
  return &api;
}
