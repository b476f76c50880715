// Joining by the variables of TPU hosts: real processes, forked from the test, that find each other
// at a port of this host.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collectives/transport/bootstrap/bootstrap.h"
#include "collectives/transport/tpu/tpu_store.h"
#include "sim/base/alloc.h"
#include "sim/base/os/clock.h"
#include "tests/unit/support/unit.h"

enum { MOST_PROCESSES = 8, LIMIT_SECONDS = 60 };

typedef struct {
  mp_status_code_t code;
  char message[600];
  double seconds;
} outcome_t;

static outcome_t *g_outcomes;  // shared with the processes

// A process of a test.
typedef struct {
  int32_t rank;     // -1: there is no such process
  double delay;     // before it joins
  bool dies;        // once it is connected to process 0
  const char *set;  // "A=1", of this process alone
  void (*afterwards)(mp_world_t *world, uint32_t rank);
} process_t;

static int setup(void **state) {
  (void)state;
  g_outcomes = mmap(NULL, MOST_PROCESSES * sizeof(*g_outcomes), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return g_outcomes == MAP_FAILED;
}

// Listens at a free port of this host; the file, and the port.
static int listen_somewhere(uint16_t *out_port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof(address);
  const int file = socket(AF_INET, SOCK_STREAM, 0);
  assert_true(file >= 0);
  assert_int_equal(bind(file, (struct sockaddr *)&address, sizeof(address)), 0);
  assert_int_equal(listen(file, 1), 0);
  assert_int_equal(getsockname(file, (struct sockaddr *)&address, &size), 0);
  *out_port = ntohs(address.sin_port);
  return file;
}

static void set_job(uint16_t port, uint32_t count) {
  char list[MOST_PROCESSES * 32];
  int length = 0;
  for (uint32_t i = 0; i < count; ++i) {
    length += snprintf(list + length, sizeof(list) - (size_t)length, "%s127.0.0.1:%u",
                       i == 0 ? "" : ",", port + i);
  }
  setenv("TPU_PROCESS_ADDRESSES", list, 1);
}

static void set_rank(int32_t rank) {
  char text[16];
  snprintf(text, sizeof(text), "%d", rank);
  setenv("CLOUD_TPU_TASK_ID", text, 1);
}

static void check(bool is_right, const char *what) {
  if (is_right) return;
  fprintf(stderr, "%s\n", what);
  _exit(9);
}

// Dies as a process of the job that process 0 knows.
static void connect_and_die(const mp_options_t *options) {
  mp_tpu_job_t job;
  mp_tpu_store_t *store = NULL;
  check(mp_tpu_job_read(options, &job) == NULL, "no job");
  check(mp_tpu_store_open(&job, "minipod/failed", 30, &store) == NULL, "no store");
  raise(SIGKILL);
}

static int run_process(const process_t *process, outcome_t *outcome) {
  alarm(LIMIT_SECONDS);
  set_rank(process->rank);
  if (process->set != NULL) putenv((char *)(uintptr_t)process->set);
  usleep((useconds_t)(process->delay * 1e6));
  mp_options_t *options = NULL;
  check(mp_options_create(NULL, 0, &options) == NULL, "no options");
  if (process->dies) connect_and_die(options);
  mp_world_t *world = NULL;
  const double begin = mp_clock_seconds();
  mp_status_t status = mp_world_join(options, NULL, &world);
  outcome->seconds = mp_clock_seconds() - begin;
  outcome->code = mp_status_code(status);
  snprintf(outcome->message, sizeof(outcome->message), "%s", mp_status_message(status));
  mp_status_release(status);
  mp_options_release(options);
  if (world != NULL && process->afterwards != NULL) {
    process->afterwards(world, (uint32_t)process->rank);
  }
  return 0;
}

// Runs the processes of a job of `count`, each to its end.
static void run_at(uint16_t port, uint32_t count, const process_t *processes, uint32_t started) {
  pid_t children[MOST_PROCESSES];
  memset(g_outcomes, 0xff, MOST_PROCESSES * sizeof(*g_outcomes));
  set_job(port, count);
  for (uint32_t i = 0; i < started; ++i) {
    children[i] = fork();
    if (children[i] == 0) exit(run_process(&processes[i], &g_outcomes[i]));
  }
  for (uint32_t i = 0; i < started; ++i) {
    int end = -1;
    assert_int_equal(waitpid(children[i], &end, 0), children[i]);
    if (!processes[i].dies) assert_int_equal(end, 0);
  }
}

static uint16_t free_port(void) {
  uint16_t port;
  close(listen_somewhere(&port));
  return port;
}

static void expect(uint32_t index, mp_status_code_t code, const char *text) {
  const outcome_t *outcome = &g_outcomes[index];
  if (outcome->code == code && strstr(outcome->message, text) != NULL) return;
  fail_msg("process %u: %s: %s", index, mp_status_code_name(outcome->code), outcome->message);
}

// ---- What goes well ----

static void talk(mp_world_t *world, uint32_t rank) {
  check(mp_world_rank(world) == rank, "another rank");
  void **all = NULL;
  size_t *sizes = NULL;
  check(mp_world_exchange(world, &rank, sizeof(rank), 30, &all, &sizes) == NULL, "no exchange");
  for (uint32_t i = 0; i < mp_world_size(world); ++i) {
    check(sizes[i] == sizeof(rank) && memcmp(all[i], &i, sizeof(i)) == 0, "other bytes");
  }
  mp_free(all);
}

// In any order, and some of them later.
static void processes_join_and_talk(void **state) {
  (void)state;
  for (uint32_t count = 2; count <= MOST_PROCESSES; count += 3) {
    process_t processes[MOST_PROCESSES];
    for (uint32_t i = 0; i < count; ++i) {
      processes[i] = (process_t){
          .rank = (int32_t)(count - 1 - i), .delay = i == count - 1 ? 0.3 : 0, .afterwards = talk};
    }
    run_at(free_port(), count, processes, count);
    for (uint32_t i = 0; i < count; ++i) expect(i, MP_OK, "");
  }
}

// Sends what no process of a job sends.
static void *disturb(void *context) {
  const uint16_t port = *(const uint16_t *)context;
  const struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  static const char text[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n0123456789012345678901234";
  for (int i = 0; i < 40; ++i) {
    const int file = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(file, (const struct sockaddr *)&address, sizeof(address)) == 0) {
      (void)send(file, text, i % 2 == 0 ? sizeof(text) : 3, MSG_NOSIGNAL);
    }
    close(file);
    usleep(20000);
  }
  return NULL;
}

static void strangers_are_dropped(void **state) {
  (void)state;
  uint16_t port = free_port();
  const pid_t stranger = fork();
  if (stranger == 0) {
    disturb(&port);
    _exit(0);
  }
  const process_t processes[] = {{.rank = 0, .afterwards = talk},
                                 {.rank = 1, .delay = 0.4, .afterwards = talk}};
  run_at(port, 2, processes, 2);
  for (uint32_t i = 0; i < 2; ++i) expect(i, MP_OK, "");
  waitpid(stranger, NULL, 0);
}

// ---- What goes wrong ----

static void the_missing_are_named_with_their_addresses(void **state) {
  (void)state;
  setenv("MINIPOD_INIT_TIMEOUT_S", "2", 1);
  const process_t processes[] = {{.rank = 0}, {.rank = 2}};
  const uint16_t port = free_port();
  char text[100];
  run_at(port, 4, processes, 2);
  snprintf(text, sizeof(text), "process 1 (127.0.0.1:%u), process 3 (127.0.0.1:%u)", port + 1,
           port + 3);
  expect(0, MP_DEADLINE_EXCEEDED, text);
  expect(0, MP_DEADLINE_EXCEEDED, "of the 4 processes that TPU_PROCESS_ADDRESSES counts");
  expect(1, MP_DEADLINE_EXCEEDED, "process 1");
  unsetenv("MINIPOD_INIT_TIMEOUT_S");
}

static void a_missing_first_one_is_named(void **state) {
  (void)state;
  setenv("MINIPOD_INIT_TIMEOUT_S", "1", 1);
  const process_t processes[] = {{.rank = 1}};
  const uint16_t port = free_port();
  char text[200];
  run_at(port, 2, processes, 1);
  snprintf(text, sizeof(text),
           "process 0 (127.0.0.1:%u, the first address in TPU_PROCESS_ADDRESSES) does not answer "
           "process 1 within 1 s",
           port);
  expect(0, MP_DEADLINE_EXCEEDED, text);
  unsetenv("MINIPOD_INIT_TIMEOUT_S");
}

static void a_death_is_heard_of(void **state) {
  (void)state;
  const process_t processes[] = {{.rank = 0}, {.rank = 1}, {.rank = 2, .delay = 0.2, .dies = true}};
  run_at(free_port(), 3, processes, 3);
  for (uint32_t i = 0; i < 2; ++i) {
    expect(i, MP_UNAVAILABLE, "process 2");
    expect(i, MP_UNAVAILABLE, "ended before all processes had joined");
    assert_true(g_outcomes[i].seconds < 5);
  }
}

static void the_death_of_the_first_is_heard_of(void **state) {
  (void)state;
  const process_t processes[] = {{.rank = 1}, {.rank = 0, .delay = 0.2, .dies = true}};
  setenv("MINIPOD_INIT_TIMEOUT_S", "2", 1);
  run_at(free_port(), 2, processes, 2);
  // It has greeted process 0, or has come too late for that.
  if (g_outcomes[0].code != MP_DEADLINE_EXCEEDED) {
    expect(0, MP_UNAVAILABLE, "has ended before all processes had joined");
  }
  unsetenv("MINIPOD_INIT_TIMEOUT_S");
}

static void two_with_one_number_are_refused(void **state) {
  (void)state;
  setenv("MINIPOD_INIT_TIMEOUT_S", "5", 1);
  const process_t processes[] = {{.rank = 0}, {.rank = 1}, {.rank = 1, .delay = 0.5}};
  run_at(free_port(), 3, processes, 3);
  expect(2, MP_ALREADY_EXISTS, "another process has joined as process 1 already");
  unsetenv("MINIPOD_INIT_TIMEOUT_S");
}

static void another_list_is_refused(void **state) {
  (void)state;
  setenv("MINIPOD_INIT_TIMEOUT_S", "5", 1);
  const uint16_t port = free_port();
  char other[100];
  snprintf(other, sizeof(other), "TPU_PROCESS_ADDRESSES=127.0.0.1:%u,b:1,c:1", port);
  const process_t processes[] = {{.rank = 0}, {.rank = 1, .set = other}};
  run_at(port, 2, processes, 2);
  expect(1, MP_FAILED_PRECONDITION, "is of another job, which lists 2 processes");
  expect(0, MP_DEADLINE_EXCEEDED, "process 1");
  unsetenv("MINIPOD_INIT_TIMEOUT_S");
}

static void a_port_in_use_is_named(void **state) {
  (void)state;
  setenv("MINIPOD_INIT_TIMEOUT_S", "4", 1);
  uint16_t port;
  const int file = listen_somewhere(&port);
  const process_t processes[] = {{.rank = 0}, {.rank = 1}};
  run_at(port, 2, processes, 2);
  close(file);
  char text[100];
  snprintf(text, sizeof(text), "process 0 cannot listen at 127.0.0.1:%u", port);
  expect(0, MP_UNAVAILABLE, text);
  expect(1, MP_DEADLINE_EXCEEDED, "does not answer process 1");
  unsetenv("MINIPOD_INIT_TIMEOUT_S");
}

static void mistakes_are_refused(void **state) {
  (void)state;
  const process_t processes[] = {{.rank = 7}};
  run_at(free_port(), 2, processes, 1);
  expect(0, MP_INVALID_ARGUMENT, "CLOUD_TPU_TASK_ID is 7, but TPU_PROCESS_ADDRESSES lists 2");
}

static void alone(mp_world_t *world, uint32_t rank) {
  (void)rank;
  check(world == NULL, "not alone");
}

static void bootstrap_none_is_alone(void **state) {
  (void)state;
  const process_t processes[] = {{.rank = 1, .set = "MINIPOD_BOOTSTRAP=none", .afterwards = alone}};
  run_at(free_port(), 2, processes, 1);
  expect(0, MP_OK, "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(processes_join_and_talk),
      cmocka_unit_test(strangers_are_dropped),
      cmocka_unit_test(the_missing_are_named_with_their_addresses),
      cmocka_unit_test(a_missing_first_one_is_named),
      cmocka_unit_test(a_death_is_heard_of),
      cmocka_unit_test(the_death_of_the_first_is_heard_of),
      cmocka_unit_test(two_with_one_number_are_refused),
      cmocka_unit_test(another_list_is_refused),
      cmocka_unit_test(a_port_in_use_is_named),
      cmocka_unit_test(mistakes_are_refused),
      cmocka_unit_test(bootstrap_none_is_alone),
  };
  return cmocka_run_group_tests(tests, setup, NULL);
}
