#include "sim/base/os/process.h"

#include <pthread.h>
#include <stdatomic.h>

static atomic_uint g_generation;
static pthread_once_t g_once = PTHREAD_ONCE_INIT;

static void process_on_fork_in_child(void) {
  atomic_fetch_add_explicit(&g_generation, 1, memory_order_relaxed);
}

static void process_install(void) {
  // If there is no memory for the handler, forks are not noticed; nothing else depends on it.
  (void)pthread_atfork(NULL, NULL, process_on_fork_in_child);
}

void mp_process_watch_forks(void) {
  pthread_once(&g_once, process_install);
}

uint32_t mp_process_generation(void) {
  return atomic_load_explicit(&g_generation, memory_order_relaxed);
}
