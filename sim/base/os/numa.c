#include "sim/base/os/numa.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "sim/base/os/system.h"

static const char k_library[] = "libnuma.so.1";
static const char k_absent[] = "system calls (no libnuma.so.1: apt install libnuma1)";
static const char k_unfit[] = "system calls (libnuma.so.1 here lacks functions)";
static const char k_unavailable[] = "system calls (libnuma finds no NUMA policy in this system)";

static pthread_once_t g_once = PTHREAD_ONCE_INIT;
static mp_numa_library_t g_library;
static const char *g_name = k_absent;

static bool numa_load(void *handle) {
#define MP_NUMA_LOAD(result, name, parameters)        \
  {                                                   \
    void *symbol = dlsym(handle, #name);              \
    if (symbol == NULL) return false;                 \
    memcpy(&g_library.name, &symbol, sizeof(symbol)); \
  }
  MP_NUMA_FUNCTIONS(MP_NUMA_LOAD)
#undef MP_NUMA_LOAD
  return true;
}

// The library stays open: the process may end while threads are in it.
static void numa_open(void) {
  void *handle = mp_dlopen(k_library);
  if (handle == NULL) return;
  if (!numa_load(handle)) {
    g_name = k_unfit;
  } else {
    g_name = g_library.numa_available() < 0 ? k_unavailable : k_library;
  }
}

const mp_numa_library_t *mp_numa_library(void) {
  (void)pthread_once(&g_once, numa_open);
  return g_name == k_library ? &g_library : NULL;
}

const char *mp_numa_name(void) {
  (void)mp_numa_library();
  return g_name;
}
