// Failure torture: scenarios in which each request to the system fails once.
//
// A row is a scenario: an attempt to do something with the library. The runner lets the n-th
// request of each kind (sim/base/fault.h) fail, for n = 1, 2, 3 ... until forty attempts in a row
// go well (in debug and sanitizer builds every few n, and each n behind the last request), and
// after each failed attempt it looks whether
//   - every error had a right code, and words for what was wanted,
//   - as many blocks, mappings and files are held as before, and the books of device memory say so,
//   - the same attempt now goes well, with right results.
// Each row runs in a child process, and the parent looks after it: a crash or a hang is a failure
// of that row, kind and n, and the child is started again behind it.
//
// An attempt reports each status: torture_survived(status) is false for an error. It continues as
// far as it can, gives everything back and checks the results of successful calls with the usual
// assertions (which end the child).
//
//   test_torture_x                       everything; beyond the first 300 requests a sample
//   test_torture_x scenario              one row
//   test_torture_x scenario kind n       one failure, in this process: for the debugger
//
// Builds with assertions or sanitizers, which are slow, try every few n up to the last request,
// from there on each, and end after ten. MINIPOD_TEST_FULL=1 leaves nothing out, in all builds.
#ifndef MINIPOD_TESTS_UNIT_TORTURE_TORTURE_H_
#define MINIPOD_TESTS_UNIT_TORTURE_TORTURE_H_

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim/base/alloc.h"
#include "sim/base/fault.h"
#include "sim/base/os/clock.h"
#include "sim/base/os/system.h"
#include "tests/unit/support/unit.h"

typedef struct {
  const char *name;
  void (*open)(const void *subject);  // what all attempts share; NULL: nothing
  void (*attempt)(const void *subject);
  void (*close)(void);
  const void *subject;     // of rows that do the same to different things
  int64_t (*books)(void);  // bytes of device memory in use; 0 when closed; NULL: no books
  uint32_t codes;          // 1 << code: what an error may also be, besides RESOURCE_EXHAUSTED
  bool needs_memory_back;  // no attempt ends while all memory is refused: it waits for others
} torture_row_t;

enum {
  TORTURE_ENOUGH = 40,      // attempts in a row that must go well,
  TORTURE_ENOUGH_FEW = 10,  // or so many where only every few n are tried
  TORTURE_ALL_BELOW = 300,  // every n up to here is tried, or of these one in TORTURE_STRIDE
  TORTURE_SAMPLE = 60,      // about as many of the rest, every day
  TORTURE_MAX_FAULTS = 10,  // of a row, until the runner gives up on it
  TORTURE_BURST = 12,       // refusals one after the other, where memory must come back
  TORTURE_REPEATS = 6,      // until what is held and grows counts as a leak
  TORTURE_SETTLE_SECONDS = 20,
#if defined(UNIT_SANITIZED)
  TORTURE_STRIDE = 89,
  TORTURE_HANG_SECONDS = 180,
#elif defined(MINIPOD_ASSERTS)
  TORTURE_STRIDE = 4,  // every launch looks through the whole client
  TORTURE_HANG_SECONDS = 60,
#else
  TORTURE_STRIDE = 1,
  TORTURE_HANG_SECONDS = 60,
#endif
};

// How requests fail: one of a kind, or all allocations from one on.
typedef struct {
  const char *name;
  mp_fault_t kind;
  bool is_lasting;
  const char *words;  // one of these is in the message, separated by '|'
} torture_way_t;

static const torture_way_t k_torture_ways[] = {
    {"allocation", MP_FAULT_ALLOCATION, false, "memory"},
    {"allocations", MP_FAULT_ALLOCATION, true, "memory"},
    {"arena", MP_FAULT_ARENA, false, "memory"},
    {"mmap", MP_FAULT_MMAP, false, "memory"},
    {"memfd", MP_FAULT_MEMFD, false, "memory"},
    {"thread", MP_FAULT_THREAD, false, "thread"},
    {"open", MP_FAULT_OPEN, false, "open|file"},
};
enum { TORTURE_NUM_WAYS = sizeof(k_torture_ways) / sizeof(k_torture_ways[0]) };

// What parent and child share.
typedef struct {
  volatile int way;
  volatile int64_t n, progress;
  volatile int num_faults;
  struct {
    volatile int64_t sites, refusals, failures;
  } ways[TORTURE_NUM_WAYS];
} torture_progress_t;

static struct {
  const torture_row_t *row;
  torture_progress_t *progress;
  bool is_full;
  pthread_mutex_t lock;  // of all below: attempts may use threads
  int num_errors;        // that the attempt got
  char message[600];     // of the first
} g_torture = {.lock = PTHREAD_MUTEX_INITIALIZER};

__attribute__((format(printf, 1, 2))) static inline void torture_complain(const char *format, ...) {
  const torture_progress_t *progress = g_torture.progress;
  const torture_way_t *way = &k_torture_ways[progress->way];
  char text[1000];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  printf("FAILED %s, %s %lld: %s\n", g_torture.row->name, way->name, (long long)progress->n, text);
  fflush(stdout);
  g_torture.progress->num_faults += 1;
}

static inline bool torture_has_words(const char *message, const char *words) {
  char list[100];
  snprintf(list, sizeof(list), "%s", words);
  char *rest = NULL;
  for (char *word = strtok_r(list, "|", &rest); word != NULL; word = strtok_r(NULL, "|", &rest)) {
    if (strstr(message, word) != NULL) return true;
  }
  return false;
}

// True when there was no error. Any thread.
static inline bool torture_survived_code(mp_status_code_t code, const char *message) {
  if (code == MP_OK) return true;
  const torture_way_t *way = &k_torture_ways[g_torture.progress->way];
  pthread_mutex_lock(&g_torture.lock);
  if (g_torture.num_errors++ == 0) {
    snprintf(g_torture.message, sizeof(g_torture.message), "%s: %s", mp_status_code_name(code),
             message);
  }
  const uint32_t allowed = g_torture.row->codes | 1u << MP_RESOURCE_EXHAUSTED;
  if ((allowed >> code & 1) == 0 || !torture_has_words(message, way->words)) {
    torture_complain("a wrong error, %s: %s", mp_status_code_name(code), message);
  }
  pthread_mutex_unlock(&g_torture.lock);
  return false;
}

// The same of a status, which it releases.
static inline bool torture_survived(mp_status_t status) {
  const bool has_survived =
      torture_survived_code(mp_status_code(status), mp_status_message(status));
  mp_status_release(status);
  return has_survived;
}

// Whether all of this attempt has gone well so far.
static inline bool torture_is_well(void) {
  pthread_mutex_lock(&g_torture.lock);
  const bool is_well = g_torture.num_errors == 0;
  pthread_mutex_unlock(&g_torture.lock);
  return is_well;
}

// ---- In the child ----

typedef struct {
  int64_t blocks, mapped, files, books;
} torture_held_t;

static inline int64_t torture_count_files(void) {
  int64_t count = 0;
  DIR *folder = opendir("/proc/self/fd");
  if (folder == NULL) return -1;
  while (readdir(folder) != NULL) ++count;
  closedir(folder);
  return count;
}

static inline torture_held_t torture_held(void) {
  const torture_row_t *row = g_torture.row;
  return (torture_held_t){mp_alloc_live(), mp_mmap_live(), torture_count_files(),
                          row->books == NULL ? 0 : row->books()};
}

static inline void torture_pause(long *nanoseconds) {
  nanosleep(&(struct timespec){.tv_nsec = *nanoseconds}, NULL);
  if (*nanoseconds < 100000000) *nanoseconds *= 2;
}

// True when no more is held than before, at the latest after so long: threads give back the last
// things after they have told that they are done.
static inline bool torture_settles(const torture_held_t *before, double seconds) {
  const double deadline = mp_clock_seconds() + seconds;
  for (long pause = 1000; mp_clock_seconds() < deadline; torture_pause(&pause)) {
    const torture_held_t now = torture_held();
    if (now.blocks <= before->blocks && now.mapped <= before->mapped &&
        now.files <= before->files && now.books == before->books) {
      return true;
    }
  }
  return false;
}

static inline void torture_complain_of(const torture_held_t *before, const char *when) {
  const torture_held_t now = torture_held();
  torture_complain("%s: %+lld blocks, %+lld mapped bytes, %+lld files, %+lld bytes in the books",
                   when, (long long)(now.blocks - before->blocks),
                   (long long)(now.mapped - before->mapped), (long long)(now.files - before->files),
                   (long long)(now.books - before->books));
}

// One attempt, with the n-th request refused (0: none). False when it got an error.
static inline bool torture_attempt(const torture_way_t *way, int64_t n) {
  const torture_row_t *row = g_torture.row;
  const int64_t lasting = row->needs_memory_back ? TORTURE_BURST : INT64_MAX;
  g_torture.num_errors = 0;
  g_torture.progress->progress += 1;
  if (n != 0) mp_fault_at(way->kind, n, way->is_lasting ? lasting : 1);
  row->attempt(row->subject);
  if (n != 0) {
    g_torture.progress->ways[way - k_torture_ways].refusals += mp_fault_refusals(way->kind);
    mp_fault_at(way->kind, 0, 0);
  }
  return torture_is_well();
}

static inline void torture_expect_well(const char *when) {
  if (torture_attempt(&k_torture_ways[g_torture.progress->way], 0)) return;
  torture_complain("%s: %s", when, g_torture.message);
}

static inline void torture_open(void) {
  if (g_torture.row->open != NULL) g_torture.row->open(g_torture.row->subject);
}

static inline void torture_close(void) {
  if (g_torture.row->close != NULL) g_torture.row->close();
}

// The n after `n`: the first ones in even steps, then as many as make a sample of `sites`, then
// all.
static inline int64_t torture_next(int64_t n, int64_t sites) {
  if (g_torture.is_full || n >= sites) return n + 1;
  const int64_t sample = (sites - TORTURE_ALL_BELOW) / TORTURE_SAMPLE + 1;
  const int64_t step = TORTURE_STRIDE * (n < TORTURE_ALL_BELOW ? 1 : sample);
  return n + step < sites ? n + step : sites;
}

// How many attempts in a row must go well.
static inline int torture_enough(void) {
  return g_torture.is_full || TORTURE_STRIDE == 1 ? TORTURE_ENOUGH : TORTURE_ENOUGH_FEW;
}

// The first n: another one for each row and way, so that rows that do the same things together
// refuse every request even in strides.
static inline int64_t torture_first(int way, int64_t sites) {
  if (g_torture.is_full) return 1;
  int64_t sum = way;
  for (const char *at = g_torture.row->name; *at != '\0'; ++at) sum += *at;
  const int64_t first = 1 + sum % TORTURE_STRIDE;
  return first <= sites ? first : 1;
}

// The n-th request refused, and after a failure another attempt without. True when both went as
// they should.
static inline bool torture_pair(const torture_way_t *way, int64_t n) {
  if (torture_attempt(way, n)) return true;
  char message[sizeof(g_torture.message)];
  memcpy(message, g_torture.message, sizeof(message));
  torture_expect_well("not usable after the failure");
  memcpy(g_torture.message, message, sizeof(message));
  return false;
}

// More is held than before. What grows each time that the same is done is a leak; what stays once
// it is there is kept for later (a worker's scratch memory) and belongs to what is held.
static inline void torture_tell_leak(const torture_way_t *way, int64_t n, torture_held_t *held) {
  double patience = 0.1;
  torture_held_t last = *held;
  for (int i = 0; i < TORTURE_REPEATS; i++, patience *= 2) {
    last = torture_held();
    (void)torture_pair(way, n);
    if (torture_settles(&last, patience)) {
      last = torture_held();
      // Less, where a busy machine's workers had not given back all of it before.
      if (last.books <= held->books && last.files <= held->files) {
        *held = last;
        return;
      }
    }
  }
  torture_complain_of(held, "more is held each time");
  *held = torture_held();
}

static inline void torture_one(const torture_way_t *way, int64_t n, torture_held_t *held,
                               int *in_a_row) {
  torture_progress_t *progress = g_torture.progress;
  progress->n = n;
  const int faults = progress->num_faults;
  if (torture_pair(way, n)) {
    *in_a_row += 1;
  } else {
    *in_a_row = 0;
    progress->ways[way - k_torture_ways].failures += 1;
  }
  if (!torture_settles(held, 0.05)) torture_tell_leak(way, n, held);
  if (progress->num_faults != faults) printf("    (%s)\n", g_torture.message);
}

// Goes through a row from the given way and n (0: its first) on.
static inline void torture_run(int first_way, int64_t first_n) {
  torture_progress_t *progress = g_torture.progress;
  mp_fault_watch();
  // What is made once and for ever is made here.
  torture_open();
  for (int i = 0; i < 2; i++) torture_expect_well("without a failure");
  torture_close();
  const torture_held_t before = torture_held();
  torture_open();
  torture_expect_well("without a failure");
  torture_held_t held = torture_held();
  for (int way = first_way; way < TORTURE_NUM_WAYS; way++, first_n = 0) {
    progress->way = way;
    const mp_fault_t kind = k_torture_ways[way].kind;
    mp_fault_at(kind, 0, 0);
    torture_expect_well("without a failure");
    const int64_t sites = mp_fault_requests(kind);
    progress->ways[way].sites = sites;
    int in_a_row = 0;
    int64_t n = first_n == 0 ? torture_first(way, sites) : first_n;
    for (; sites != 0 && in_a_row < torture_enough(); n = torture_next(n, sites)) {
      torture_one(&k_torture_ways[way], n, &held, &in_a_row);
      if (progress->num_faults >= TORTURE_MAX_FAULTS) return;
    }
  }
  torture_close();
  progress->n = 0;
  if (!torture_settles(&before, TORTURE_SETTLE_SECONDS)) torture_complain_of(&before, "at the end");
}

// ---- In the parent ----

// Waits for the child; false when it had to be killed because nothing moved.
static inline bool torture_await(pid_t child, int *out_status) {
  int64_t seen = -1;
  double since = mp_clock_seconds();
  while (waitpid(child, out_status, WNOHANG) == 0) {
    if (g_torture.progress->progress != seen) {
      seen = g_torture.progress->progress;
      since = mp_clock_seconds();
    } else if (mp_clock_seconds() - since > TORTURE_HANG_SECONDS) {
      kill(child, SIGKILL);
      waitpid(child, out_status, 0);
      return false;
    }
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
  }
  return true;
}

// Runs a child from this place on; true when it came to its end.
static inline bool torture_spawn(int way, int64_t n) {
  torture_progress_t *progress = g_torture.progress;
  const int faults = progress->num_faults;
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    setenv("CMOCKA_TEST_ABORT", "1", 1);  // an assertion ends the child
    torture_run(way, n);
    fflush(stdout);
    exit(progress->num_faults == faults ? 0 : 1);  // the leak checker looks now
  }
  int status = 0;
  const bool has_ended = torture_await(child, &status);
  if (!has_ended) {
    torture_complain("nothing moved for %d s", (int)TORTURE_HANG_SECONDS);
    return false;
  }
  if (WIFSIGNALED(status)) {
    torture_complain("the process was ended by signal %d (%s)", WTERMSIG(status),
                     strsignal(WTERMSIG(status)));
    return false;
  }
  if (WEXITSTATUS(status) != 0 && progress->num_faults == faults) {
    torture_complain("the process ended with status %d", WEXITSTATUS(status));
  }
  return progress->n == 0 || progress->num_faults >= TORTURE_MAX_FAULTS || WEXITSTATUS(status) == 0;
}

static inline void torture_print(const torture_row_t *row, double seconds) {
  const torture_progress_t *progress = g_torture.progress;
  printf("%-7s%s:", progress->num_faults == 0 ? "ok" : "FAILED", row->name);
  const char *separator = " ";
  for (int way = 0; way < TORTURE_NUM_WAYS; way++) {
    if (progress->ways[way].sites == 0) continue;
    printf("%s%s %lld/%lld/%lld", separator, k_torture_ways[way].name,
           (long long)progress->ways[way].sites, (long long)progress->ways[way].refusals,
           (long long)progress->ways[way].failures);
    separator = ", ";
  }
  printf(" (%.1f s)\n", seconds);
  fflush(stdout);
}

// Returns how many refusals there were; *faults grows by what is wrong.
static inline int64_t torture_row(const torture_row_t *row, int *faults) {
  torture_progress_t *progress = g_torture.progress;
  memset(progress, 0, sizeof(*progress));
  g_torture.row = row;
  const double begin = mp_clock_seconds();
  int way = 0;
  int64_t n = 0;
  while (!torture_spawn(way, n) && progress->num_faults < TORTURE_MAX_FAULTS) {
    way = progress->way;
    n = progress->n + 1;
  }
  torture_print(row, mp_clock_seconds() - begin);
  *faults += progress->num_faults;
  int64_t refusals = 0;
  for (int i = 0; i < TORTURE_NUM_WAYS; i++) refusals += progress->ways[i].refusals;
  return refusals;
}

// One failure in this process.
static inline int torture_debug(const torture_row_t *row, const char *way_name, int64_t n) {
  g_torture.row = row;
  mp_fault_watch();
  for (int way = 0; way < TORTURE_NUM_WAYS; way++) {
    if (strcmp(k_torture_ways[way].name, way_name) != 0) continue;
    g_torture.progress->way = way;
    torture_open();
    for (int i = 0; i < 3; i++) torture_expect_well("without a failure");
    torture_held_t held = torture_held();
    int in_a_row = 0;
    torture_one(&k_torture_ways[way], n, &held, &in_a_row);
    printf("%s\n", in_a_row != 0 ? "went well" : g_torture.message);
    torture_close();
  }
  return g_torture.progress->num_faults;
}

// Whether nothing shall be left out.
static inline bool torture_is_full(void) {
  const char *full = getenv("MINIPOD_TEST_FULL");
  return full != NULL && strcmp(full, "1") == 0;
}

static inline int torture_main(const torture_row_t *rows, size_t count, int argc, char **argv) {
  g_torture.progress = mmap(NULL, sizeof(*g_torture.progress), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (g_torture.progress == MAP_FAILED) return 2;
  // hwloc would load and unload its plugins, which are not ours, for each machine that it looks at:
  // nine tenths of the time.
  setenv("HWLOC_PLUGINS_PATH", "/nowhere", 1);
  g_torture.is_full = torture_is_full();
  int faults = 0;
  size_t num_rows = 0;
  int64_t refusals = 0;
  printf("scenario: kind requests/refused/failed attempts\n");
  for (size_t i = 0; i < count; i++) {
    if (argc > 1 && strcmp(argv[1], rows[i].name) != 0) continue;
    if (argc > 3) return torture_debug(&rows[i], argv[2], atoll(argv[3]));
    refusals += torture_row(&rows[i], &faults);
    ++num_rows;
  }
  printf("%zu scenarios, %lld refusals: %s\n", num_rows, (long long)refusals,
         faults == 0 ? "all passed" : "FAILED");
  return faults != 0 || num_rows == 0;
}

#endif  // MINIPOD_TESTS_UNIT_TORTURE_TORTURE_H_
