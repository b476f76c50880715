// The variables of TPU hosts: the jobs that they describe, and the mistakes that are refused.

#include "collectives/transport/tpu/tpu_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/support/unit.h"

static const char *const k_known[] = {"TPU_PROCESS_ADDRESSES",
                                      "TPU_PROCESS_PORT",
                                      "CLOUD_TPU_TASK_ID",
                                      "TPU_WORKER_ID",
                                      "TPU_WORKER_HOSTNAMES",
                                      "TPU_PROCESS_BOUNDS",
                                      "TPU_CHIPS_PER_PROCESS_BOUNDS",
                                      "TPU_HOST_BOUNDS",
                                      "TPU_CHIPS_PER_HOST_BOUNDS",
                                      "TPU_VISIBLE_CHIPS",
                                      "TPU_VISIBLE_DEVICES",
                                      "MEGASCALE_NUM_SLICES",
                                      "MINIPOD_PLATFORM"};

// Reads the job of an environment ("A=1 B=2") that has no other of these variables.
static mp_status_t read_job(const char *environment, mp_tpu_job_t *job) {
  for (size_t i = 0; i < sizeof(k_known) / sizeof(k_known[0]); ++i) unsetenv(k_known[i]);
  char copy[600];
  snprintf(copy, sizeof(copy), "%s", environment);
  for (char *entry = strtok(copy, " "); entry != NULL; entry = strtok(NULL, " ")) {
    char *equals = strchr(entry, '=');
    *equals = '\0';
    setenv(entry, equals + 1, 1);
  }
  mp_options_t *options = NULL;
  assert_ok(mp_options_create(NULL, 0, &options));
  mp_status_t status = mp_tpu_job_read(options, job);
  mp_options_release(options);
  return status;
}

#define TWO "TPU_PROCESS_ADDRESSES=a:1,b:2 "

static void describes_jobs(void **state) {
  (void)state;
  static const struct {
    const char *environment;
    uint32_t size, rank;
  } rows[] = {
      {"", 0, 0},
      {"CLOUD_TPU_TASK_ID=0", 0, 0},
      {"TPU_PROCESS_ADDRESSES=a:1 CLOUD_TPU_TASK_ID=0", 0, 0},
      {TWO "CLOUD_TPU_TASK_ID=1", 2, 1},
      {TWO "TPU_WORKER_ID=1", 2, 1},
      {TWO "CLOUD_TPU_TASK_ID=0 TPU_WORKER_ID=1", 2, 0},
      {TWO "TPU_PROCESS_PORT=2", 2, 1},
      {TWO "CLOUD_TPU_TASK_ID=1 TPU_PROCESS_PORT=2", 2, 1},
      // Names without ports.
      {"TPU_PROCESS_ADDRESSES=a,b CLOUD_TPU_TASK_ID=1 TPU_PROCESS_PORT=7", 2, 1},
      // TPU hosts set these for all programs.
      {"TPU_WORKER_HOSTNAMES=a,b TPU_WORKER_ID=1", 0, 0},
      {"TPU_WORKER_HOSTNAMES=a,b TPU_WORKER_ID=1 MINIPOD_PLATFORM=tpu", 2, 1},
      {"TPU_WORKER_HOSTNAMES=a MINIPOD_PLATFORM=tpu", 0, 0},
      {TWO "CLOUD_TPU_TASK_ID=1 MEGASCALE_NUM_SLICES=2", 0, 0},
      {TWO "CLOUD_TPU_TASK_ID=1 MEGASCALE_NUM_SLICES=1", 2, 1},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    mp_tpu_job_t job;
    assert_ok(read_job(rows[i].environment, &job));
    if (job.size != rows[i].size || job.rank != rows[i].rank) fail_msg("'%s'", rows[i].environment);
    assert_null(job.processes.variable);
  }
}

static void has_bounds_and_chips(void **state) {
  (void)state;
  mp_tpu_job_t job;
  assert_ok(read_job(TWO "CLOUD_TPU_TASK_ID=1 TPU_PROCESS_BOUNDS=1,2,1 "
                         "TPU_CHIPS_PER_PROCESS_BOUNDS=2,1,1 TPU_VISIBLE_CHIPS=2,3",
                     &job));
  assert_int_equal(job.processes.num_dims, 3);
  assert_int_equal(job.processes.sizes[1], 2);
  assert_int_equal(job.processes.sizes[3], 1);
  assert_int_equal(job.chips.sizes[0], 2);
  assert_string_equal(job.visible, "2,3");
  // The older names, and the cores of a chip.
  assert_ok(read_job(TWO "CLOUD_TPU_TASK_ID=1 TPU_HOST_BOUNDS=1,1,1,2 "
                         "TPU_CHIPS_PER_HOST_BOUNDS=1,1,1,1 TPU_VISIBLE_DEVICES=1",
                     &job));
  assert_int_equal(job.processes.num_dims, MP_TPU_DIMS);
  assert_int_equal(job.processes.sizes[3], 2);
  // One of them alone says nothing.
  assert_ok(read_job(TWO "CLOUD_TPU_TASK_ID=1 TPU_CHIPS_PER_PROCESS_BOUNDS=2,2,1", &job));
  assert_null(job.processes.variable);
}

static void refuses_mistakes(void **state) {
  (void)state;
  static const struct {
    const char *environment, *text;
  } rows[] = {
      {TWO,
       "TPU_PROCESS_ADDRESSES lists 2 processes, but neither CLOUD_TPU_TASK_ID nor "
       "TPU_WORKER_ID has the number of this one"},
      {"TPU_PROCESS_ADDRESSES=a:1,b:1 TPU_PROCESS_PORT=1", "neither CLOUD_TPU_TASK_ID"},
      {TWO "CLOUD_TPU_TASK_ID=2",
       "CLOUD_TPU_TASK_ID is 2, but TPU_PROCESS_ADDRESSES lists 2 processes, 0 to 1"},
      {TWO "CLOUD_TPU_TASK_ID=one", "CLOUD_TPU_TASK_ID is 'one'"},
      {TWO "TPU_WORKER_ID=-1", "TPU_WORKER_ID is '-1'"},
      {"TPU_PROCESS_ADDRESSES=a:1,,b:2 CLOUD_TPU_TASK_ID=0",
       "TPU_PROCESS_ADDRESSES is 'a:1,,b:2': the address of process 1 is empty"},
      {TWO "CLOUD_TPU_TASK_ID=0 TPU_PROCESS_PORT=2",
       "TPU_PROCESS_PORT is 2, but TPU_PROCESS_ADDRESSES has the address a:1 for process 0 "
       "(CLOUD_TPU_TASK_ID)"},
      {TWO "CLOUD_TPU_TASK_ID=0 TPU_PROCESS_PORT=x", "TPU_PROCESS_PORT is 'x'"},
      {TWO "CLOUD_TPU_TASK_ID=0 TPU_PROCESS_PORT=70000", "TPU_PROCESS_PORT is '70000'"},
      {TWO "CLOUD_TPU_TASK_ID=0 TPU_PROCESS_BOUNDS=2,2,1 TPU_CHIPS_PER_PROCESS_BOUNDS=1,1,1",
       "TPU_PROCESS_BOUNDS is 2,2,1, a grid of 4 processes, but TPU_PROCESS_ADDRESSES lists 2"},
      {TWO "CLOUD_TPU_TASK_ID=0 TPU_PROCESS_BOUNDS=2,0,1", "TPU_PROCESS_BOUNDS is '2,0,1'"},
      {TWO "CLOUD_TPU_TASK_ID=0 TPU_PROCESS_BOUNDS=1,1,1,1,2", "TPU_PROCESS_BOUNDS is '1,1,1,1,2'"},
      {TWO "CLOUD_TPU_TASK_ID=0 TPU_HOST_BOUNDS=2x1", "TPU_HOST_BOUNDS is '2x1'"},
      {TWO "CLOUD_TPU_TASK_ID=0 TPU_VISIBLE_CHIPS=0,0", "TPU_VISIBLE_CHIPS is '0,0'"},
      {TWO "CLOUD_TPU_TASK_ID=0 TPU_VISIBLE_DEVICES=a", "TPU_VISIBLE_DEVICES is 'a'"},
      {TWO "CLOUD_TPU_TASK_ID=0 TPU_VISIBLE_CHIPS=0,1 TPU_PROCESS_BOUNDS=2,1,1 "
           "TPU_CHIPS_PER_PROCESS_BOUNDS=1,1,1",
       "TPU_VISIBLE_CHIPS is 0,1, which are 2 chips, but TPU_CHIPS_PER_PROCESS_BOUNDS has 1"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    mp_tpu_job_t job;
    assert_status(read_job(rows[i].environment, &job), MP_INVALID_ARGUMENT, rows[i].text);
    assert_int_equal(job.size, 0);
  }
}

static void divides_addresses(void **state) {
  (void)state;
  static const struct {
    const char *address, *host;
    int port;  // 0: none
  } rows[] = {
      {"localhost:8070", "localhost", 8070},
      {"10.0.0.1", "10.0.0.1", 0},
      {"[::1]:80", "::1", 80},
      {"[::1]", "::1", 0},
      {"fe80::1", "fe80::1", 0},
      {"a:", "a:", 0},
      {":7", ":7", 0},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    mp_str_t host;
    uint16_t port;
    const bool has_port = mp_tpu_split_address(mp_str(rows[i].address), &host, &port);
    if (!mp_str_is(host, rows[i].host) || has_port != (rows[i].port != 0) ||
        port != (has_port ? rows[i].port : MP_TPU_PORT)) {
      fail_msg("'%s': '%.*s', %d", rows[i].address, MP_STR_ARG(host), port);
    }
  }
  mp_tpu_job_t job;
  assert_ok(read_job("TPU_PROCESS_ADDRESSES=a:1,b:2,c:3 CLOUD_TPU_TASK_ID=0", &job));
  assert_true(mp_str_is(mp_tpu_job_address(&job, 2), "c:3"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(describes_jobs),
      cmocka_unit_test(has_bounds_and_chips),
      cmocka_unit_test(refuses_mistakes),
      cmocka_unit_test(divides_addresses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
