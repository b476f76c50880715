#include "sim/base/os/process.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sim/base/os/clock.h"
#include "sim/base/os/system.h"

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

// What the kernel tells of a process.
typedef struct {
  char state;        // 'Z': it has ended, and its parent has not asked for its exit status
  long num_threads;  // that have not ended, or 1
  uint64_t start;
} process_stat_t;

static bool process_read_stat(int64_t pid, process_stat_t *out_stat) {
  char path[48], line[1024];
  snprintf(path, sizeof(path), "/proc/%" PRId64 "/stat", pid);
  FILE *file = mp_fopen(path, "re");
  if (file == NULL) return false;
  const size_t size = fread(line, 1, sizeof(line) - 1, file);
  fclose(file);
  line[size] = '\0';
  // The name before it may hold blanks and brackets.
  const char *rest = strrchr(line, ')');
  return rest != NULL && sscanf(rest + 1,
                                " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                                "%*s %ld %*s %" SCNu64,
                                &out_stat->state, &out_stat->num_threads, &out_stat->start) == 3;
}

static void process_read_boot_id(char *text, size_t capacity) {
  FILE *file = mp_fopen("/proc/sys/kernel/random/boot_id", "re");
  if (file == NULL) return;
  size_t size = fread(text, 1, capacity - 1, file);
  fclose(file);
  while (size > 0 && text[size - 1] <= ' ') --size;
  memset(text + size, 0, capacity - size);
}

mp_process_id_t mp_process_self(void) {
  mp_process_id_t id;
  memset(&id, 0, sizeof(id));
  id.pid = getpid();
  process_read_boot_id(id.boot_id, sizeof(id.boot_id));
  process_stat_t own;
  struct stat numbers;
  if (process_read_stat(id.pid, &own) && stat("/proc/self/ns/pid", &numbers) == 0) {
    id.start = own.start;
    id.numbers = numbers.st_ino;
  }
  return id;
}

// Whether both see the same processes under the same numbers.
static bool process_is_near(const mp_process_id_t *a, const mp_process_id_t *b) {
  return a->numbers == b->numbers && strncmp(a->boot_id, b->boot_id, sizeof(a->boot_id)) == 0;
}

bool mp_process_is_same(const mp_process_id_t *a, const mp_process_id_t *b) {
  return a->pid == b->pid && a->start == b->start && process_is_near(a, b);
}

bool mp_process_is_gone(const mp_process_id_t *self, const mp_process_id_t *id) {
  if (id->numbers == 0 || !process_is_near(self, id)) return false;
  if (mp_process_has_ended(id->pid, -1)) return true;
  process_stat_t now;
  if (!process_read_stat(id->pid, &now)) return false;  // its user hides it
  const bool is_dead = (now.state == 'Z' || now.state == 'X') && now.num_threads <= 1;
  return is_dead || now.start != id->start;
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
