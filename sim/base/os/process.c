#include "sim/base/os/process.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sim/base/os/clock.h"

// Relaxed everywhere: it changes while a fork's child has but the one thread that forked, and
// threads made later come after that.
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

int mp_process_open(int64_t pid) {
  return (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
}

bool mp_process_has_ended(int64_t pid, int file) {
  if (file < 0) return kill((pid_t)pid, 0) != 0 && errno == ESRCH;
  struct pollfd watched = {.fd = file, .events = POLLIN};
  return poll(&watched, 1, 0) > 0;
}

bool mp_process_await_end(int64_t pid, double seconds) {
  const double deadline = mp_clock_seconds() + seconds;
  const int file = mp_process_open(pid);
  bool has_ended = mp_process_has_ended(pid, file);
  while (!has_ended && mp_clock_seconds() < deadline) {
    usleep(5000);
    has_ended = mp_process_has_ended(pid, file);
  }
  if (file >= 0) close(file);
  return has_ended;
}
