// The pod of several processes: what each announces, how the whole is divided, and disagreements.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/alloc.h"
#include "sim/base/proto.h"
#include "tests/unit/support/options_test.h"
#include "tests/unit/support/unit.h"
#include "topology/pod.h"
#include "topology/processes/announcement.h"
#include "topology/processes/pod_bounds.h"
#include "topology/processes/pod_merge.h"

#define BIG_MACHINE "machine=pack:2 numa:4 l3:2 core:8 pu:1"
#define BOX         "machine=numa:1 l3:1 core:2 pu:2"

enum { MAX_RANKS = 16 };

typedef struct {
  int32_t count;
  mp_strbuf_t bytes[MAX_RANKS];
  mp_str_t announcements[MAX_RANKS];
  mp_strbuf_t notes;
} job_t;

static void set_announcement(job_t *job, int32_t rank, mp_strbuf_t bytes) {
  if (rank < job->count) mp_strbuf_deinit(&job->bytes[rank]);
  job->bytes[rank] = bytes;
  job->announcements[rank] = (mp_str_t){mp_strbuf_text(&bytes), bytes.size};
}

static mp_pod_bounds_t g_bounds;  // of the processes that are added

// LIBTPU_INIT_ARGS of the processes that follow, and its flags that count.
static const char *g_libtpu_args, *g_libtpu_flags;

// One more process on host `host`, with options as "name=value;name=value".
static void add_rank(job_t *job, int32_t host, const char *text) {
  mp_options_t *options = NULL;
  assert_ok(options_from(text, &options));
  mp_pod_process_t process = {.host = host,
                              .hostname = host == 0 ? "alpha" : "beta",
                              .pid = 100 + job->count,
                              .libtpu_args = g_libtpu_args,
                              .libtpu_flags = g_libtpu_flags,
                              .bounds = g_bounds};
  mp_strbuf_t bytes;
  mp_strbuf_init(&bytes);
  assert_ok(mp_pod_announce(options, &process, &bytes));
  mp_options_release(options);
  set_announcement(job, job->count, bytes);
  ++job->count;
}

// `per_host` equal processes on each of `hosts` hosts.
static job_t job_of(int32_t hosts, int32_t per_host, const char *options) {
  job_t job = {0};
  for (int32_t i = 0; i < hosts * per_host; ++i) add_rank(&job, i / per_host, options);
  return job;
}

// Rewrites one announcement.
static void change_announcement(job_t *job, int32_t rank,
                                void (*change)(mp_announcement_t *announcement, int32_t argument),
                                int32_t argument) {
  mp_arena_t *arena = NULL;
  mp_announcement_t announcement;
  mp_strbuf_t bytes;
  mp_strbuf_init(&bytes);
  assert_ok(mp_arena_create(&arena));
  assert_ok(mp_announcement_read(job->announcements[rank], arena, &announcement));
  change(&announcement, argument);
  assert_ok(mp_announcement_write(&announcement, &bytes));
  mp_arena_release(arena);
  set_announcement(job, rank, bytes);
}

static mp_status_t try_merge(job_t *job, int32_t rank, mp_pod_t **out_pod) {
  mp_strbuf_deinit(&job->notes);
  return mp_pod_merge(job->announcements, job->count, rank, out_pod, &job->notes);
}

// The pod as a rank sees it; checks what holds for all pods.
static mp_pod_t *merge(job_t *job, int32_t rank) {
  mp_pod_t *pod = NULL;
  assert_ok(try_merge(job, rank, &pod));
  const mp_pod_info_t *info = mp_pod_info(pod);
  assert_int_equal(info->num_processes, job->count);
  assert_int_equal(info->process_index, rank);
  int32_t process = 0, local = 0;
  for (int32_t id = 0; id < info->num_devices; ++id) {
    const mp_pod_device_t *device = mp_pod_device(pod, id);
    if (device->process_index != process) {
      assert_int_equal(device->process_index, ++process);
      local = 0;
    }
    bool is_local = device->process_index == rank;
    assert_int_equal(device->id, id);
    assert_int_equal(device->local_hardware_id, local++);
    assert_in_range(device->host_index, 0, info->num_hosts - 1);
    assert_int_equal(device->core_group >= 0, is_local);
    assert_int_equal(is_local, id >= info->first_local_device &&
                                   id < info->first_local_device + info->num_local_devices);
  }
  assert_int_equal(process, job->count - 1);
  return pod;
}

static void end_job(job_t *job) {
  for (int32_t r = 0; r < job->count; ++r) mp_strbuf_deinit(&job->bytes[r]);
  mp_strbuf_deinit(&job->notes);
}

// Every rank must fail alike.
static void expect_failure(job_t *job, mp_status_code_t code, const char *const *texts) {
  for (int32_t rank = 0; rank < job->count; ++rank) {
    mp_pod_t *pod = NULL;
    mp_status_t status = try_merge(job, rank, &pod);
    assert_null(pod);
    for (const char *const *text = texts; *text != NULL; ++text) {
      mp_status_t again = mp_status_retain(status);
      assert_status(again, code, *text);
    }
    mp_status_release(status);
  }
  end_job(job);
}
#define TEXTS(...) ((const char *const[]){__VA_ARGS__, NULL})

// "0 0 1 1": a number of each device.
static void expect_numbers(const mp_pod_t *pod, int32_t (*number)(const mp_pod_device_t *),
                           const char *expected) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  for (int32_t id = 0; id < mp_pod_info(pod)->num_devices; ++id) {
    mp_strbuf_printf(&text, "%s%d", id == 0 ? "" : " ", number(mp_pod_device(pod, id)));
  }
  assert_string_equal(mp_strbuf_text(&text), expected);
  mp_strbuf_deinit(&text);
}
static int32_t process_of(const mp_pod_device_t *device) {
  return device->process_index;
}
static int32_t host_of(const mp_pod_device_t *device) {
  return device->host_index;
}
static int32_t chip_of(const mp_pod_device_t *device) {
  return device->chip_index;
}
static int32_t slice_of(const mp_pod_device_t *device) {
  return device->slice_index;
}

// ---- What hwloc finds ----

static void test_found_on_one_host(void **state) {
  (void)state;
  job_t job = job_of(1, 2, BOX);
  mp_pod_t *pod = merge(&job, 1);
  expect_numbers(pod, process_of, "0 0 1 1");  // four devices on a small machine, as alone
  expect_numbers(pod, host_of, "0 0 0 0");
  assert_int_equal(mp_pod_info(pod)->num_hosts, 1);
  assert_int_equal(mp_pod_machine(pod)->num_workers, 1);
  // The second core, with both its threads.
  const mp_core_group_t *group = mp_pod_core_group(pod, 0);
  assert_int_equal(group->num_cores, 1);
  assert_int_equal(group->num_cpus, 2);
  assert_int_equal(group->cpus[0], 2);
  assert_int_equal(group->core_cpus[0], 2);
  assert_int_equal(job.notes.size, 0);
  mp_pod_release(pod);
  end_job(&job);
}

static void test_groups_are_divided(void **state) {
  (void)state;
  // 16 core groups on 8 nodes.
  job_t job = job_of(2, 2, BIG_MACHINE);
  mp_pod_t *pod = merge(&job, 3);
  assert_int_equal(mp_pod_info(pod)->num_devices, 32);
  assert_int_equal(mp_pod_info(pod)->num_local_devices, 8);
  assert_int_equal(mp_pod_info(pod)->num_hosts, 2);
  assert_int_equal(mp_pod_machine(pod)->num_core_groups, 8);
  assert_int_equal(mp_pod_machine(pod)->num_workers, 64);
  assert_int_equal(mp_pod_machine(pod)->num_numa_nodes, 4);
  assert_int_equal(mp_pod_core_group(pod, 0)->numa_nodes[0], 4);
  assert_int_equal(mp_pod_device(pod, 24)->numa_node, 4);
  assert_int_equal(mp_pod_device(pod, 23)->numa_node, -1);
  mp_pod_release(pod);
  end_job(&job);
}

static void test_sharers_get_equal_numbers(void **state) {
  (void)state;
  job_t job = job_of(1, 3, BIG_MACHINE);
  for (int32_t rank = 0; rank < 3; ++rank) {
    mp_pod_t *pod = merge(&job, rank);
    assert_int_equal(mp_pod_info(pod)->num_local_devices, 5);
    assert_int_equal(mp_pod_machine(pod)->num_cores, rank == 2 ? 48 : 40);
    mp_pod_release(pod);
  }
  assert_int_equal(job.notes.size, 0);
  end_job(&job);
}

static void test_more_ranks_than_cores(void **state) {
  (void)state;
  job_t job = job_of(1, 8, BOX);
  for (int32_t rank = 0; rank < 8; ++rank) {
    mp_pod_t *pod = merge(&job, rank);
    assert_int_equal(mp_pod_info(pod)->num_local_devices, 1);
    assert_int_equal(mp_pod_machine(pod)->num_workers, 1);
    assert_int_equal(mp_pod_core_group(pod, 0)->core_cpus[0], rank / 4 * 2);
    mp_pod_release(pod);
  }
  end_job(&job);
}

static void keep_part_of_four(mp_announcement_t *announcement, int32_t index) {
  announcement->machine.is_real = true;
  mp_machine_keep_part(&announcement->machine, index, 4);
}

static void test_bound_ranks_keep_their_cores(void **state) {
  (void)state;
  job_t job = job_of(1, 4, BIG_MACHINE);
  // Two ranks on each half: as the launcher bound them, each half is shared by two.
  for (int32_t rank = 0; rank < 4; ++rank)
    change_announcement(&job, rank, keep_part_of_four, rank / 2);
  mp_pod_t *pod = merge(&job, 3);
  assert_int_equal(mp_pod_info(pod)->num_local_devices, 2);
  assert_int_equal(mp_pod_machine(pod)->num_cores, 16);
  assert_int_equal(mp_pod_core_group(pod, 0)->cpus[0], 32 + 16);
  assert_int_equal(job.notes.size, 0);
  mp_pod_release(pod);
  end_job(&job);
}

static void test_binding_that_starves(void **state) {
  (void)state;
  job_t job = job_of(1, 2, "num_devices=64;" BIG_MACHINE);
  for (int32_t rank = 0; rank < 2; ++rank) change_announcement(&job, rank, keep_part_of_four, rank);
  mp_pod_t *pod = merge(&job, 1);
  assert_string_equal(mp_strbuf_text(&job.notes),
                      "process 0 is bound to 32 of 128 cores and has 64 devices; 'mpirun --bind-to "
                      "none' lets the processes share all cores\n");
  mp_pod_release(pod);
  end_job(&job);
}

static void test_num_devices_of_each(void **state) {
  (void)state;
  job_t job = job_of(2, 1, "num_devices=3;" BOX);
  mp_pod_t *pod = merge(&job, 0);
  expect_numbers(pod, process_of, "0 0 0 1 1 1");
  expect_numbers(pod, host_of, "0 0 0 1 1 1");
  assert_int_equal(mp_pod_machine(pod)->num_cores, 2);
  mp_pod_release(pod);
  end_job(&job);
}

static void test_unequal_numbers(void **state) {
  (void)state;
  job_t job = {0};
  add_rank(&job, 0, "num_devices=1;" BOX);
  add_rank(&job, 1, "num_devices=2;" BOX);
  add_rank(&job, 0, "num_devices=1;" BOX);
  mp_pod_t *pod = merge(&job, 1);
  expect_numbers(pod, process_of, "0 1 1 2");
  expect_numbers(pod, host_of, "0 1 1 0");
  assert_non_null(strstr(mp_strbuf_text(&job.notes), "process 0 has 1, process 1 has 2"));
  mp_pod_release(pod);
  end_job(&job);
}

static void test_memory_is_divided_by_host(void **state) {
  (void)state;
  job_t job = {0};
  add_rank(&job, 0, "num_devices=2;" BOX);
  add_rank(&job, 0, "num_devices=2;" BOX);
  add_rank(&job, 1, "num_devices=2;" BOX);
  mp_pod_t *pod = merge(&job, 0);
  uint64_t shared = mp_pod_device(pod, 3)->capacity[MP_MEMORY_DEVICE];
  uint64_t own = mp_pod_device(pod, 4)->capacity[MP_MEMORY_DEVICE];
  assert_in_range(own, 2 * shared - (2 << 20), 2 * shared + (2 << 20));
  mp_pod_release(pod);
  end_job(&job);
  job = job_of(2, 1, "device_memory=64MiB;" BOX);
  pod = merge(&job, 0);
  assert_int_equal(mp_pod_device(pod, 7)->capacity[MP_MEMORY_DEVICE], 64 << 20);
  mp_pod_release(pod);
  end_job(&job);
}

// ---- Described pods ----

static void test_described_by_hosts(void **state) {
  (void)state;
  // Hosts are 2x2 boxes of a 4x4 grid: ids follow the hosts, coordinates stay.
  job_t job = job_of(1, 4, "topology=v5e:4x4;" BOX);
  mp_pod_t *pod = merge(&job, 2);
  expect_numbers(pod, process_of, "0 0 0 0 1 1 1 1 2 2 2 2 3 3 3 3");
  expect_numbers(pod, host_of, "0 0 0 0 1 1 1 1 2 2 2 2 3 3 3 3");
  expect_numbers(pod, chip_of, "0 1 4 5 2 3 6 7 8 9 12 13 10 11 14 15");
  assert_int_equal(mp_pod_device(pod, 3)->coords[0], 1);
  assert_int_equal(mp_pod_device(pod, 3)->coords[1], 1);
  assert_string_equal(mp_pod_info(pod)->kind, "TPU v5 lite");
  assert_string_equal(mp_pod_info(pod)->name, "v5e:4x4");
  mp_pod_release(pod);
  end_job(&job);
}

static void test_described_parts_of_hosts(void **state) {
  (void)state;
  job_t job = job_of(2, 2, "topology=torus:4x2 hosts:2;" BOX);
  mp_pod_t *pod = merge(&job, 0);
  expect_numbers(pod, process_of, "0 0 1 1 2 2 3 3");
  expect_numbers(pod, host_of, "0 0 0 0 1 1 1 1");
  mp_pod_release(pod);
  end_job(&job);
  job = job_of(1, 2, "topology=torus:4x2 hosts:8;" BOX);
  pod = merge(&job, 1);
  expect_numbers(pod, process_of, "0 0 0 0 1 1 1 1");
  mp_pod_release(pod);
  end_job(&job);
}

static void test_described_across_hosts(void **state) {
  (void)state;
  // Two processes of three hosts: equal parts, through the middle of one.
  job_t job = job_of(1, 2, "topology=ring:12 hosts:3;" BOX);
  mp_pod_t *pod = merge(&job, 1);
  expect_numbers(pod, process_of, "0 0 0 0 0 0 1 1 1 1 1 1");
  expect_numbers(pod, host_of, "0 0 0 0 1 1 1 1 2 2 2 2");
  mp_pod_release(pod);
  end_job(&job);
}

static void test_described_slices(void **state) {
  (void)state;
  job_t job = job_of(2, 1, "topology=torus:2x2 slices:2;" BOX);
  mp_pod_t *pod = merge(&job, 1);
  expect_numbers(pod, process_of, "0 0 0 0 1 1 1 1");
  expect_numbers(pod, slice_of, "0 0 0 0 1 1 1 1");
  mp_pod_release(pod);
  end_job(&job);
}

// Hosts cut off at the edge of the grid are smaller.
static void test_described_uneven_hosts(void **state) {
  (void)state;
  job_t job = job_of(1, 2, "topology=mesh:3x1 host_shape:2x1;" BOX);
  mp_pod_t *pod = merge(&job, 1);
  expect_numbers(pod, process_of, "0 0 1");
  assert_non_null(strstr(mp_strbuf_text(&job.notes), "unequal"));
  mp_pod_release(pod);
  end_job(&job);
}

static void test_described_and_counted(void **state) {
  (void)state;
  job_t job = job_of(1, 2, "topology=v5e:4x2;num_devices=4;" BOX);
  mp_pod_release(merge(&job, 0));
  end_job(&job);
  job = job_of(1, 2, "topology=v5e:4x2;num_devices=8;" BOX);
  expect_failure(&job, MP_INVALID_ARGUMENT,
                 TEXTS("num_devices is 8 (create option)", "process 0 (pid 100 on alpha)",
                       "topology \"v5e:4x2\"", "has 8 devices, 4 of them"));
}

static void test_described_that_does_not_divide(void **state) {
  (void)state;
  job_t job = job_of(1, 3, "topology=torus:4x4;" BOX);
  expect_failure(&job, MP_INVALID_ARGUMENT,
                 TEXTS("topology \"torus:4x4\" (create option) has 16 devices on 1 host",
                       "cannot be divided among 3 processes"));
}

// ---- Disagreements ----

static void test_other_topologies(void **state) {
  (void)state;
  job_t job = {0};
  add_rank(&job, 0, "topology=v5e:4x4;" BOX);
  add_rank(&job, 1, "topology=v5e:4x2;" BOX);
  expect_failure(&job, MP_FAILED_PRECONDITION,
                 TEXTS("disagree on the topology", "process 0 (pid 100 on alpha) has \"v5e:4x4\"",
                       "process 1 (pid 101 on beta) has \"v5e:4x2\"", "4x4", "4x2"));
  job = (job_t){0};
  add_rank(&job, 0, BOX);
  add_rank(&job, 0, "topology=v5e:4x2;" BOX);
  expect_failure(&job, MP_FAILED_PRECONDITION, TEXTS("has none (what the machine has)"));
  // Other words for the same pod are no disagreement.
  job = (job_t){0};
  add_rank(&job, 0, "topology=torus:4x2 cores_per_chip:1;" BOX);
  add_rank(&job, 0, "topology=torus:4x2;" BOX);
  mp_pod_release(merge(&job, 1));
  end_job(&job);
}

// Two processes with these options fail so.
static void expect_two_fail(const char *first, const char *second, mp_status_code_t code,
                            const char *const *texts) {
  job_t job = {0};
  add_rank(&job, 0, first);
  add_rank(&job, 0, second);
  expect_failure(&job, code, texts);
}

static void test_other_settings(void **state) {
  (void)state;
  expect_two_fail("time=model;values=shapes;" BOX, "time=model;" BOX, MP_FAILED_PRECONDITION,
                  TEXTS("disagree on the option values: process 0 (pid 100 on alpha) has shapes, "
                        "process 1 (pid 101 on alpha) has real;"));
  expect_two_fail("time=model;" BOX, BOX, MP_FAILED_PRECONDITION,
                  TEXTS("disagree on the option time: ", "has model", "has off"));
  expect_two_fail("time=model;values=shapes;absent=nan;" BOX, "time=model;values=shapes;" BOX,
                  MP_FAILED_PRECONDITION,
                  TEXTS("disagree on the option absent: ", "has nan,", "has error;"));
  expect_two_fail("time=paced;pace=2;" BOX, "time=paced;" BOX, MP_FAILED_PRECONDITION,
                  TEXTS("disagree on the option pace: ", "has 2,", "has 1;"));
  expect_two_fail(
      "time=model;algorithms=all_reduce:ring;" BOX, "time=model;" BOX, MP_FAILED_PRECONDITION,
      TEXTS("disagree on the option algorithms: ", "has all_reduce:ring,", "has none;"));
  expect_two_fail("time=model;fuse=0;" BOX, "time=model;" BOX, MP_FAILED_PRECONDITION,
                  TEXTS("disagree on the option fuse: ", "has 0,", "has 1;"));
  expect_two_fail("platform=tpu;" BOX, BOX, MP_FAILED_PRECONDITION,
                  TEXTS("disagree on the option platform: ", "has tpu,", "has minipod;"));
  expect_two_fail("time=fast;" BOX, "time=fast;" BOX, MP_INVALID_ARGUMENT,
                  TEXTS("option time (create option): expected off, model or paced, got 'fast'"));
  // Other words for the same, and what does not matter.
  job_t job = {0};
  add_rank(&job, 0, "time=paced;pace=1.0;native=0;topology=v5e:2x2;" BOX);
  add_rank(&job, 0, "time=paced;topology=v5e:2x2;" BOX);
  mp_pod_release(merge(&job, 1));
  end_job(&job);
  job = (job_t){0};
  add_rank(&job, 0, "fuse=0;" BOX);
  add_rank(&job, 0, BOX);
  mp_pod_release(merge(&job, 1));
  end_job(&job);
}

// Two processes, of which only the first one has these variables.
static job_t job_with_libtpu(const char *args, const char *flags, const char *options) {
  job_t job = {0};
  g_libtpu_args = args;
  g_libtpu_flags = flags;
  add_rank(&job, 0, options);
  g_libtpu_args = g_libtpu_flags = NULL;
  add_rank(&job, 0, options);
  return job;
}

static void test_other_libtpu_flags(void **state) {
  (void)state;
  mp_pod_t *pod = NULL;
  job_t job = job_with_libtpu("--a=true", "a=true", "time=model;topology=v5e:2x2;" BOX);
  assert_status(try_merge(&job, 1, &pod), MP_FAILED_PRECONDITION,
                "disagree on the LIBTPU_INIT_ARGS: process 0 (pid 100 on alpha) has a=true, "
                "process 1 (pid 101 on alpha) has no flag with an effect");
  end_job(&job);
  // They count for times of TPUs alone; flags without an effect do not count.
  static const char *const others[] = {"topology=v5e:2x2;" BOX, "time=model;topology=h100:2;" BOX};
  for (int i = 0; i < 2; ++i) {
    job = job_with_libtpu("", "a=true", others[i]);
    mp_pod_release(merge(&job, 1));
    assert_string_equal(mp_strbuf_text(&job.notes), "");
    end_job(&job);
  }
  job = job_with_libtpu("--b=1", "", "time=model;topology=v5e:2x2;" BOX);
  mp_pod_release(merge(&job, 1));
  assert_string_equal(mp_strbuf_text(&job.notes),
                      "process 0 and process 1 have different LIBTPU_INIT_ARGS ('--b=1' and ''), "
                      "which does not change predicted times\n");
  end_job(&job);
}

static void write_file(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

// What counts is what is in the files.
static void test_other_calibrations(void **state) {
  (void)state;
  char a[] = "/tmp/minipod_calibration_XXXXXX", b[] = "/tmp/minipod_calibration_XXXXXX";
  char first[256], second[256];
  close(mkstemp(a));
  close(mkstemp(b));
  snprintf(first, sizeof(first), "time=model;calibration=%s;%s", a, BOX);
  snprintf(second, sizeof(second), "time=model;calibration=%s;%s", b, BOX);
  write_file(a, "matmul: 0.6\n");
  write_file(b, "matmul: 0.6\n");
  job_t job = {0};
  add_rank(&job, 0, first);
  add_rank(&job, 0, second);
  mp_pod_release(merge(&job, 1));
  end_job(&job);
  write_file(b, "matmul: 0.7\n");
  expect_two_fail(first, second, MP_FAILED_PRECONDITION,
                  TEXTS("disagree on the option calibration: ", "has a file of fingerprint "));
  unlink(a);
  unlink(b);
}

static void test_other_memory(void **state) {
  (void)state;
  job_t job = {0};
  add_rank(&job, 0, "device_memory=64MiB;" BOX);
  add_rank(&job, 0, BOX);
  expect_failure(&job, MP_FAILED_PRECONDITION,
                 TEXTS("option device_memory", "has 67108864", "has none"));
}

static void change_version(mp_announcement_t *announcement, int32_t argument) {
  (void)argument;
  announcement->version = MP_STR("0.0.9");
}

static void change_protocol(mp_announcement_t *announcement, int32_t protocol) {
  announcement->protocol = protocol;
}

static void test_other_versions(void **state) {
  (void)state;
  job_t job = job_of(1, 3, BOX);
  change_announcement(&job, 2, change_version, 0);
  expect_failure(&job, MP_FAILED_PRECONDITION,
                 TEXTS("disagree on the version", "process 2 (pid 102 on alpha) has 0.0.9;"));
  job = job_of(1, 2, BOX);
  change_announcement(&job, 0, change_protocol, 7);
  expect_failure(&job, MP_FAILED_PRECONDITION, TEXTS("protocol", "has 7", "has 1"));
}

static void test_one_cannot_start(void **state) {
  (void)state;
  job_t job = {0};
  add_rank(&job, 0, BOX);
  add_rank(&job, 0, "topology=torus:4x;" BOX);
  mp_pod_t *pod = NULL;
  assert_status(try_merge(&job, 0, &pod), MP_INVALID_ARGUMENT,
                "process 1 (pid 101 on alpha) cannot start: topology \"torus:4x\"");
  mp_status_t own = try_merge(&job, 1, &pod);
  assert_null(strstr(mp_status_message(own), "process 1"));
  assert_status(own, MP_INVALID_ARGUMENT, "topology \"torus:4x\"");
  end_job(&job);
}

// Any bytes give a pod or an error.
static void test_damaged_announcements(void **state) {
  (void)state;
  job_t job = job_of(1, 2, "topology=torus:4x2;" BOX);
  size_t size = job.bytes[1].size;
  unsigned seed = 1;
  int merged = 0, refused = 0;
  for (int i = 0; i < 3000; ++i) {
    char *copy = malloc(size);
    memcpy(copy, job.bytes[1].data, size);
    for (int k = 0; k < 1 + i % 3; ++k) {
      seed = seed * 1103515245 + 12345;
      copy[seed / 65536 % size] = (char)(seed >> 8);
    }
    job.announcements[1] = (mp_str_t){copy, i % 4 == 0 ? seed / 65536 % size : size};
    for (int32_t rank = 0; rank < 2; ++rank) {
      mp_pod_t *pod = NULL;
      mp_status_t status = try_merge(&job, rank, &pod);
      assert_int_equal(status == NULL, pod != NULL);
      *(status == NULL ? &merged : &refused) += 1;
      mp_status_release(status);
      mp_pod_release(pod);
    }
    free(copy);
  }
  assert_true(merged > 100 && refused > 100);
  job.announcements[1] = (mp_str_t){"", 0};
  mp_pod_t *pod = NULL;
  mp_status_t status = try_merge(&job, 0, &pod);
  assert_non_null(status);
  mp_status_release(status);
  end_job(&job);
}

// A group's core numbers count from its first core on; this number of a core goes beyond all.
static void change_core(mp_announcement_t *announcement, int32_t core) {
  mp_machine_t *machine = &announcement->machine;
  machine->cpu_cores[machine->groups[1].first_cpu] = core;
}

static void change_numa_node(mp_announcement_t *announcement, int32_t node) {
  announcement->machine.groups[0].numa_node = node;
}

// Numbers of 64 bits that would be good ones if they were cut to 32: the last field of a kind
// counts.
static void test_numbers_that_do_not_fit(void **state) {
  (void)state;
  enum { HOST = 3, CODE = 6, IS_REAL = 16, PACKAGES = 17, GROUP = 21, GROUP_NODE = 1 };
  static const uint32_t fields[] = {HOST, CODE, IS_REAL, PACKAGES};
  for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); ++i) {
    job_t job = job_of(1, 2, BIG_MACHINE);
    mp_proto_put_varint(&job.bytes[1], fields[i], UINT64_C(1) << 32);
    job.announcements[1] = (mp_str_t){job.bytes[1].data, job.bytes[1].size};
    expect_failure(&job, MP_INVALID_ARGUMENT,
                   TEXTS("the announcement of process 1 cannot be read", "does not fit"));
  }
  job_t job = job_of(1, 2, BIG_MACHINE);
  mp_strbuf_t group;
  mp_strbuf_init(&group);
  mp_proto_put_varint(&group, GROUP_NODE, UINT64_C(1) << 32);
  mp_proto_put_message(&job.bytes[1], GROUP, &group);
  mp_strbuf_deinit(&group);
  job.announcements[1] = (mp_str_t){job.bytes[1].data, job.bytes[1].size};
  expect_failure(&job, MP_INVALID_ARGUMENT, TEXTS("does not fit"));
  job = job_of(1, 2, BIG_MACHINE);
  change_announcement(&job, 0, change_core, INT32_MAX);
  expect_failure(&job, MP_INVALID_ARGUMENT, TEXTS("core group 1 is invalid"));
  job = job_of(1, 2, BIG_MACHINE);  // a node without number is nothing bad
  change_announcement(&job, 0, change_numa_node, -1);
  mp_pod_release(merge(&job, 1));
  end_job(&job);
}

// What went wrong elsewhere may have a code that only a later version knows.
static void change_code(mp_announcement_t *announcement, int32_t code) {
  announcement->code = (mp_status_code_t)code;
}

static void test_unknown_code(void **state) {
  (void)state;
  job_t job = job_of(1, 2, BOX);
  change_announcement(&job, 1, change_code, 99);
  mp_pod_t *pod = NULL;
  assert_status(try_merge(&job, 0, &pod), MP_UNKNOWN, "process 1");
  end_job(&job);
}

static void test_every_allocation_may_fail(void **state) {
  (void)state;
  static const char *const k_options[] = {"topology=v5e:4x4;" BOX, BIG_MACHINE};
  for (int i = 0; i < 2; ++i) {
    job_t job = job_of(2, 2, k_options[i]);
    mp_pod_t *pod = NULL;
    int64_t n = 0;
    for (bool done = false; !done;) {
      mp_alloc_fail_at(++n, 0);
      mp_status_t status = try_merge(&job, 1, &pod);
      mp_alloc_fail_at(0, 0);
      done = status == NULL;
      if (!done) assert_status(status, MP_RESOURCE_EXHAUSTED, "");
    }
    assert_true(n > 5);
    mp_pod_release(pod);
    end_job(&job);
  }
}

static void test_the_table_for_people(void **state) {
  (void)state;
  job_t job = job_of(2, 1, "topology=ring:4 hosts:2;" BOX);
  mp_pod_t *pod = merge(&job, 1);
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_pod_describe(pod, &text);
  assert_non_null(strstr(mp_strbuf_text(&text), "on 2 hosts, process 1 of 2: devices 2 to 3"));
  assert_non_null(strstr(mp_strbuf_text(&text), "1       (1)"));
  mp_strbuf_deinit(&text);
  mp_pod_release(pod);
  end_job(&job);
}

// ---- Bounds ----

// Sets the bounds of all processes that are added from now on, "2,2,1 x 1,1,1"; "": none.
static void set_bounds(const char *text) {
  g_bounds = (mp_pod_bounds_t){.has_cores = false};
  if (text[0] != '\0') assert_true(mp_pod_bounds_read(mp_str(text), &g_bounds));
}

static void test_bounds_place_processes(void **state) {
  (void)state;
  // The chips of each process, and its cores, in the order of devices.
  static const struct {
    const char *topology, *bounds;
    int32_t count;
    const char *places;
  } rows[] = {
      {"topology=v6e:2x2", "2,2,1 x 1,1,1", 4, "00|10|01|11"},
      {"topology=v6e:2x2", "1,2,1 x 2,1,1", 2, "00 10|01 11"},
      {"topology=v6e:2x2", "2,1,1 x 1,2,1", 2, "00 01|10 11"},
      // Hosts of 2x2: host by host.
      {"topology=v5e:4x2 host_shape:2x2 shapes:any", "4,2,1 x 1,1,1", 8, "00|10|01|11|20|30|21|31"},
      {"topology=v5e:4x2 host_shape:2x2 shapes:any", "2,1,1 x 2,2,1", 2, "00 10 01 11|20 30 21 31"},
      // Boxes that are no parts of hosts: over the whole grid.
      {"topology=v5e:4x2 host_shape:2x2 shapes:any", "1,2,1 x 4,1,1", 2, "00 10 20 30|01 11 21 31"},
      // Two cores per chip: of one process, or one each.
      {"topology=7x:1x2x1", "1,2,1 x 1,1,1", 2, "00 00|01 01"},
      {"topology=7x:1x2x1", "1,2,1,2 x 1,1,1,1", 4, "00|00|01|01"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    set_bounds(rows[i].bounds);
    job_t job = job_of(1, rows[i].count, rows[i].topology);
    mp_pod_t *pod = merge(&job, 1);
    const mp_pod_info_t *info = mp_pod_info(pod);
    mp_strbuf_t text;
    mp_strbuf_init(&text);
    for (int32_t id = 0; id < info->num_devices; ++id) {
      const mp_pod_device_t *device = mp_pod_device(pod, id);
      const char *separator = device->local_hardware_id == 0 ? "|" : " ";
      mp_strbuf_puts(&text, id == 0 ? "" : separator);
      for (int32_t d = 0; d < 2; ++d) {
        mp_strbuf_printf(&text, "%d", device->coords[d]);
      }
    }
    assert_string_equal(mp_strbuf_text(&text), rows[i].places);
    mp_strbuf_deinit(&text);
    mp_pod_release(pod);
    end_job(&job);
  }
  set_bounds("");
}

static void test_bounds_of_a_found_machine(void **state) {
  (void)state;
  set_bounds("2,1,1 x 3,1,1");
  job_t job = job_of(1, 2, BOX);
  mp_pod_t *pod = merge(&job, 0);
  assert_int_equal(mp_pod_info(pod)->num_local_devices, 3);
  mp_pod_release(pod);
  end_job(&job);
  set_bounds("");
}

static void test_bounds_that_do_not_fit(void **state) {
  (void)state;
  static const struct {
    const char *topology, *bounds, *text;
    int32_t count;
  } rows[] = {
      {"topology=v6e:4x4", "2,2,1 x 1,1,1",
       "is 2,2,1 x 1,1,1, a grid of 2x2x1 chips for 4 processes, but topology \"v6e:4x4\" has "
       "4x4x1 chips: make them agree",
       4},
      {"topology=v6e:4x1 shapes:any", "2,2,1 x 1,1,1", "4x1x1 chips", 4},
      {"topology=7x:1x2x1", "1,2,1,1 x 1,1,1,1",
       "1x2x1 chips of 1 cores for 2 processes, but topology \"7x:1x2x1\" has 1x2x1 chips of 2 "
       "cores",
       2},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    set_bounds(rows[i].bounds);
    job_t job = job_of(1, rows[i].count, rows[i].topology);
    expect_failure(&job, MP_INVALID_ARGUMENT, (const char *const[]){rows[i].text, NULL});
    end_job(&job);
  }
  set_bounds("");
}

static void test_other_bounds(void **state) {
  (void)state;
  job_t job = {0};
  set_bounds("2,1,1 x 1,1,1");
  add_rank(&job, 0, "topology=v6e:2x1 shapes:any");
  set_bounds("");
  add_rank(&job, 0, "topology=v6e:2x1 shapes:any");
  expect_failure(&job, MP_FAILED_PRECONDITION,
                 (const char *const[]){"TPU_PROCESS_BOUNDS x TPU_CHIPS_PER_PROCESS_BOUNDS",
                                       "has 2,1,1 x 1,1,1", "has none", NULL});
  end_job(&job);
}

static void test_bounds_as_text(void **state) {
  (void)state;
  static const char *const wrong[] = {"",
                                      "2,2,1",
                                      "2,2 x 1,1",
                                      "2,2,1 x 1,1",
                                      "2,0,1 x 1,1,1",
                                      "2,2,1,1 x 1,1,1",
                                      "1,1,1,1,1 x 1,1,1,1,1",
                                      "a,1,1 x 1,1,1"};
  mp_pod_bounds_t bounds;
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
    if (mp_pod_bounds_read(mp_str(wrong[i]), &bounds)) fail_msg("'%s'", wrong[i]);
  }
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  assert_true(mp_pod_bounds_read(MP_STR("2,2,1,2 x 1,1,1,1"), &bounds));
  mp_pod_bounds_write(&bounds, &text);
  assert_string_equal(mp_strbuf_text(&text), "2,2,1,2 x 1,1,1,1");
  mp_strbuf_deinit(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bounds_place_processes),
      cmocka_unit_test(test_bounds_of_a_found_machine),
      cmocka_unit_test(test_bounds_that_do_not_fit),
      cmocka_unit_test(test_other_bounds),
      cmocka_unit_test(test_bounds_as_text),
      cmocka_unit_test(test_found_on_one_host),
      cmocka_unit_test(test_groups_are_divided),
      cmocka_unit_test(test_sharers_get_equal_numbers),
      cmocka_unit_test(test_more_ranks_than_cores),
      cmocka_unit_test(test_bound_ranks_keep_their_cores),
      cmocka_unit_test(test_binding_that_starves),
      cmocka_unit_test(test_num_devices_of_each),
      cmocka_unit_test(test_unequal_numbers),
      cmocka_unit_test(test_memory_is_divided_by_host),
      cmocka_unit_test(test_described_by_hosts),
      cmocka_unit_test(test_described_parts_of_hosts),
      cmocka_unit_test(test_described_across_hosts),
      cmocka_unit_test(test_described_slices),
      cmocka_unit_test(test_described_uneven_hosts),
      cmocka_unit_test(test_described_and_counted),
      cmocka_unit_test(test_described_that_does_not_divide),
      cmocka_unit_test(test_other_topologies),
      cmocka_unit_test(test_other_memory),
      cmocka_unit_test(test_other_settings),
      cmocka_unit_test(test_other_libtpu_flags),
      cmocka_unit_test(test_other_calibrations),
      cmocka_unit_test(test_other_versions),
      cmocka_unit_test(test_one_cannot_start),
      cmocka_unit_test(test_damaged_announcements),
      cmocka_unit_test(test_numbers_that_do_not_fit),
      cmocka_unit_test(test_unknown_code),
      cmocka_unit_test(test_every_allocation_may_fail),
      cmocka_unit_test(test_the_table_for_people),
  };
  return cmocka_run_group_tests(tests, clear_environment, NULL);
}
