// The end of a process whose MPI_Finalize does not return: it is left alone once all have said
// goodbye, and not before. MPI is a table of functions here, and the job a world within each child.
#include "collectives/transport/bootstrap/leave.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collectives/transport/world_impl.h"
#include "collectives/transport/world_local.h"
#include "sim/base/os/clock.h"
#include "tests/unit/support/unit.h"

// leave.c gives MPI_Finalize five seconds.
enum { HANGS_S = 5, STILL_THERE_S = 8, LIMIT_S = 100 };

static bool g_hangs;

static mp_mpi_state_t state_of_mpi(void) {
  return MP_MPI_RUNNING;
}

static int on_finalize(void (*stop)(void *context), void *context, mp_mpi_error_t error) {
  (void)stop, (void)context, (void)error;
  return 0;
}

static void finalize(void) {
  while (g_hangs) pause();
}

static const mp_mpi_module_t k_module = {.version = MP_MPI_MODULE_VERSION,
                                         .state = state_of_mpi,
                                         .on_finalize = on_finalize,
                                         .finalize = finalize};

typedef struct {
  pid_t pid;
  int out, err;  // what it writes
  double begin;
} process_t;

// A process of a job of two that has printed something, which its stream still holds, and ends.
static void end_of_process(bool hangs, bool has_goodbye) {
  static mp_world_t *worlds[2];
  g_hangs = hangs;
  if (mp_worlds_create_local(2, 1, worlds) != NULL) _exit(2);
  if (mp_leave_prepare(&k_module, true, 0, 1) != NULL) _exit(3);
  mp_leave_set_world(worlds[0], NULL);
  if (has_goodbye) mp_world_say_goodbye(worlds[1], 0);
  fputs("the last word", stdout);
  exit(0);
}

static process_t start(bool hangs, bool has_goodbye) {
  int out[2], err[2];
  assert_int_equal(pipe(out), 0);
  assert_int_equal(pipe(err), 0);
  fflush(NULL);  // the child's streams begin empty
  process_t process = {.out = out[0], .err = err[0], .begin = mp_clock_seconds()};
  process.pid = fork();
  assert_true(process.pid >= 0);
  if (process.pid == 0) {
    if (dup2(out[1], STDOUT_FILENO) < 0 || dup2(err[1], STDERR_FILENO) < 0) _exit(1);
    close(out[1]);
    close(err[1]);
    end_of_process(hangs, has_goodbye);
  }
  close(out[1]);
  close(err[1]);
  return process;
}

// How it has ended, as waitpid says it; -1: not by then.
static int await_end(const process_t *process, double seconds) {
  int status = 0;
  while (waitpid(process->pid, &status, WNOHANG) == 0) {
    if (mp_clock_seconds() > process->begin + seconds) return -1;
    usleep(10000);
  }
  return status;
}

// What an ended process has written there.
static const char *text_of(int file) {
  static char text[4096];
  size_t size = 0;
  for (ssize_t n = 1; n > 0 && size < sizeof(text) - 1; size += (size_t)n) {
    n = read(file, text + size, sizeof(text) - 1 - size);
    assert_true(n >= 0);
  }
  text[size] = '\0';
  close(file);
  return text;
}

static void a_finalize_that_hangs_is_left(void **state) {
  (void)state;
  process_t process = start(true, true);
  assert_int_equal(await_end(&process, LIMIT_S), 0);
  assert_true(mp_clock_seconds() - process.begin > HANGS_S - 1);
  assert_string_equal(text_of(process.out), "the last word");
  assert_non_null(strstr(text_of(process.err), "MPI_Finalize does not return"));
}

static void a_finalize_that_ends_is_not(void **state) {
  (void)state;
  process_t process = start(false, true);
  assert_int_equal(await_end(&process, LIMIT_S), 0);
  assert_string_equal(text_of(process.out), "the last word");
  assert_string_equal(text_of(process.err), "");
}

// One that still works will come to MPI_Finalize, whenever that is.
static void working_processes_are_waited_for(void **state) {
  (void)state;
  process_t process = start(true, false);
  assert_int_equal(await_end(&process, STILL_THERE_S), -1);
  assert_int_equal(kill(process.pid, SIGKILL), 0);
  assert_int_equal(waitpid(process.pid, NULL, 0), process.pid);
  assert_string_equal(text_of(process.err), "");
  close(process.out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_finalize_that_hangs_is_left),
      cmocka_unit_test(a_finalize_that_ends_is_not),
      cmocka_unit_test(working_processes_are_waited_for),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
