#include "sim/base/os/process.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sim/base/os/clock.h"

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

// Without a pidfd, which kernels before 5.3 do not have: until the parent has asked for the status.
static bool process_await_reaped(pid_t pid, double deadline) {
  while (kill(pid, 0) == 0 || errno != ESRCH) {
    if (mp_clock_seconds() >= deadline) return false;
    usleep(10000);
  }
  return true;
}

bool mp_process_await_end(int64_t pid, double seconds) {
  const double deadline = mp_clock_seconds() + seconds;
  const int file = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
  if (file < 0) return errno == ESRCH || process_await_reaped((pid_t)pid, deadline);
  struct pollfd watched = {.fd = file, .events = POLLIN};
  int got = 0;
  for (double left = seconds; left > 0; left = deadline - mp_clock_seconds()) {
    got = poll(&watched, 1, (int)(left * 1e3) + 1);
    if (got != -1 || errno != EINTR) break;
  }
  close(file);
  return got > 0;
}
