// A forked child whose parent was in the middle of something: what it can do without the threads
// and locks of its parent.
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pjrt/package/pjrt_faults.h"
#include "pjrt/package/pjrt_time.h"
#include "tests/unit/support/pjrt_test.h"

static sem_t g_is_inside, g_may_leave;

static void visit(mp_report_t *report, void *context) {
  (void)report, (void)context;
  sem_post(&g_is_inside);
  sem_wait(&g_may_leave);
}

// Reads the reports for as long as the test wants, with the lock that keeps them.
static void *reader(void *context) {
  mp_pjrt_time_visit(visit, context);
  return NULL;
}

static PJRT_Client *make_timed_client(void) {
  const PJRT_NamedValue option = {.struct_size = PJRT_STRUCT_SIZE(PJRT_NamedValue, value_size),
                                  .name = "time",
                                  .name_size = strlen("time"),
                                  .type = PJRT_NamedValue_kString,
                                  .string_value = "model",
                                  .value_size = strlen("model")};
  PJRT_Client_Create_Args args = ARGS(PJRT_Client_Create, kv_try_get_user_arg);
  args.create_options = &option;
  args.num_options = 1;
  expect_ok(api()->PJRT_Client_Create(&args));
  return args.client;
}

// What the child does; its exit status is the number of things that are wrong.
static int run_child(PJRT_Client *client) {
  alarm(20);  // it waits for a lock for ever
  int wrong = minipod_virtual_time() >= 0;
  const char *error = minipod_inject("{device: 0, slow: 2}");
  wrong += error == NULL || strstr(error, "there is no pod yet") == NULL;
  destroy_client(client);
  return wrong;
}

static void child_waits_for_no_lock(void **state) {
  (void)state;
  pthread_t thread;
  PJRT_Client *client = make_timed_client();
  sem_init(&g_is_inside, 0, 0);
  sem_init(&g_may_leave, 0, 0);
  assert_int_equal(pthread_create(&thread, NULL, reader, NULL), 0);
  sem_wait(&g_is_inside);
  const pid_t child = fork();
  if (child == 0) _exit(run_child(client));
  int end = -1;
  assert_int_equal(waitpid(child, &end, 0), child);
  sem_post(&g_may_leave);
  pthread_join(thread, NULL);
  assert_false(WIFSIGNALED(end));
  assert_int_equal(WEXITSTATUS(end), 0);
  assert_true(minipod_virtual_time() >= 0);  // the parent's is still there
  destroy_client(client);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(child_waits_for_no_lock),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
