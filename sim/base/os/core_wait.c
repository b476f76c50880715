#include "sim/base/os/core_wait.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "sim/base/os/process.h"
#include "sim/base/os/system.h"

// Of the first thread, open as long as the process lives; -1: there is none. The generation of
// processes in which it was opened stands beside it: in a child it tells of the parent.
static atomic_int g_file = -1;
static atomic_uint g_generation;
static atomic_llong g_wait;  // the last answer

// When this thread asked last. Each asks for itself: an answer that came to another thread while
// the first one was waiting does not tell of that wait, however new it is.
static _Thread_local int64_t t_asked;

void mp_core_wait_start(void) {
  mp_process_watch_forks();
  const uint32_t generation = mp_process_generation();
  if (atomic_load(&g_file) >= 0 && atomic_load(&g_generation) == generation) return;
  const int file = mp_open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
  const int before = atomic_exchange(&g_file, file);
  atomic_store(&g_wait, 0);
  atomic_store(&g_generation, generation);
  if (before >= 0) close(before);
}

// "<nanoseconds on a core> <nanoseconds of waiting for one> <how often it got one>"
static int64_t core_wait_ask(int file) {
  char text[96];
  const ssize_t size = pread(file, text, sizeof(text) - 1, 0);
  if (size <= 0) return 0;
  text[size] = '\0';
  unsigned long long ran, waited;
  return sscanf(text, "%llu %llu", &ran, &waited) == 2 ? (int64_t)waited : 0;
}

int64_t mp_core_wait_ns(int64_t real) {
  const int file = atomic_load(&g_file);
  long long wait = atomic_load(&g_wait);
  if (file < 0 || real - t_asked < MP_CORE_WAIT_STALE_NS ||
      atomic_load(&g_generation) != mp_process_generation()) {
    return wait;
  }
  const int64_t answer = core_wait_ask(file);
  t_asked = real;
  while (wait < answer && !atomic_compare_exchange_weak(&g_wait, &wait, answer)) {
  }
  return wait < answer ? answer : wait;
}
