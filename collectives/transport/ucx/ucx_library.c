#include "collectives/transport/ucx/ucx_library.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static const char *const k_library = "libucp.so.0";
static const char *const k_needed =
    "processes on several hosts, without an MPI launcher, need UCX 1.11 or later (Debian: apt "
    "install libucx0)";

// Set before the library is opened, because it reads some of them then. What the user has set
// stays. setenv adds only, so threads that read the environment meanwhile see what was there.
//   - UCX would take over SIGSEGV and its like, which are Python's (faulthandler), and print on the
//     standard output what becomes an error here.
//   - Connections are made without waiting for them: a host that does not answer would hold this
//     process for minutes, and UCX 1.13 aborts when one that it has waited for is reset at once.
//   - Over TCP what is large goes in fragments of 64 KiB, and what is small in ones of 8 KiB, each
//     with system calls of its own at both ends: larger ones take a third off a sum of 16 MiB. What
//     is read at a time is no more than a fragment, with room for UCX's header: the next one is on
//     its way while it is worked on, in a core's cache (an eighth off a sum of 1 MiB). And messages
//     of up to 2 MiB go at once, where the receiver would be asked first: two turns over the
//     network cost more than the copy that they save.
static void ucx_library_set_environment(void) {
  static const char *const settings[][2] = {
      {"UCX_HANDLE_ERRORS", "none"},     {"UCX_LOG_LEVEL", "fatal"},
      {"UCX_WARN_UNUSED_ENV_VARS", "n"}, {"UCX_TCP_CONN_NB", "y"},
      {"UCX_TCP_RX_SEG_SIZE", "132k"},   {"UCX_TCP_TX_SEG_SIZE", "128k"},
      {"UCX_RNDV_THRESH", "2m"}};
  for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); ++i) {
    (void)setenv(settings[i][0], settings[i][1], 0);
  }
}

static mp_status_t ucx_library_load(mp_ucx_library_t *library) {
  ucx_library_set_environment();
  void *handle = dlopen(k_library, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    const char *error = dlerror();
    return mp_status_make(MP_UNAVAILABLE, "%s: %s", k_needed, error == NULL ? k_library : error);
  }
#define MP_UCX_LOAD(result, name, parameters)                                                     \
  {                                                                                               \
    void *symbol = dlsym(handle, #name);                                                          \
    if (symbol == NULL) {                                                                         \
      return mp_status_make(MP_UNAVAILABLE, "%s: %s here has no %s", k_needed, k_library, #name); \
    }                                                                                             \
    memcpy(&library->name, &symbol, sizeof(symbol));                                              \
  }
  MP_UCX_FUNCTIONS(MP_UCX_LOAD)
#undef MP_UCX_LOAD
  library->ucp_get_version(&library->major, &library->minor, &library->release);
  if (library->major != MP_UCP_API_MAJOR || library->minor < MP_UCP_API_MINOR) {
    return mp_status_make(MP_UNAVAILABLE, "%s: %s here is UCX %u.%u.%u", k_needed, k_library,
                          library->major, library->minor, library->release);
  }
  return NULL;
}

mp_status_t mp_ucx_library_open(const mp_ucx_library_t **out_library) {
  static mp_ucx_library_t g_library;
  static bool g_is_open;
  if (!g_is_open) MP_RETURN_IF_ERROR(ucx_library_load(&g_library));
  g_is_open = true;
  *out_library = &g_library;
  return NULL;
}
