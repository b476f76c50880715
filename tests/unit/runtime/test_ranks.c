// Launches over several processes (worlds of threads): random collectives with random delays
// against what one process computes, bit for bit; and everything that may go wrong between them.
//
// MINIPOD_TEST_COLLECTIVES: how many random collectives (400).
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "sim/base/alloc.h"
#include "sim/numeric/box.h"
#include "sim/runtime/devices/ahead.h"
#include "sim/runtime/devices/device_impl.h"
#include "sim/runtime/launch/launch.h"
#include "sim/runtime/remote/router_impl.h"
#include "tests/unit/support/launches.h"
#include "tests/unit/support/processes/worlds.h"
#include "tests/unit/support/programs.h"
#include "tests/unit/support/random_collective.h"

// ---- Random collectives ----

enum { PER_PROGRAM = 4, LAUNCHES = 2, MAX_IO = PER_PROGRAM * RANDOM_MAX_OPERANDS };

typedef void *outputs_t[RANDOM_MAX_DEVICES][RANDOM_MAX_OPERANDS];

// One program of some collectives, the same in all processes, with what must come out.
typedef struct {
  uint64_t seed;
  uint32_t num_devices;
  uint32_t ids[RANDOM_MAX_DEVICES];  // the device of each logical number
  random_collective_t parts[PER_PROGRAM];
  outputs_t expected[PER_PROGRAM];
} scene_t;

static atomic_uint g_delay_seed;

// The call of `delay` that fails, counted down; below 0: none.
static atomic_int g_calls_until_failure = -1;

static mp_status_t delay(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  (void)kernel, (void)call;
  if (atomic_load(&g_calls_until_failure) >= 0 &&
      atomic_fetch_sub(&g_calls_until_failure, 1) == 0) {
    return mp_status_make(MP_DATA_LOSS, "this one fails");
  }
  const unsigned n = atomic_fetch_add(&g_delay_seed, 1) * 2654435761u >> 16;
  if (n % 4 == 0) nanosleep(&(struct timespec){.tv_nsec = (long)(n % 32) * 10000}, NULL);
  return NULL;
}

static void compute(random_collective_t *r, outputs_t outputs) {
  for (uint32_t d = 0; d < r->num_devices; ++d) {
    for (uint32_t i = 0; i < r->num_results; ++i) {
      outputs[d][i] = mp_arena_alloc(r->arena, r->output_bytes[i] + 1);
    }
  }
  const mp_groups_t *groups = r->collective.groups;
  for (uint32_t g = 0; g < groups->num_groups; ++g) {
    mp_contribution_t contributions[RANDOM_MAX_DEVICES];
    for (uint32_t i = groups->offsets[g]; i < groups->offsets[g + 1]; ++i) {
      const uint32_t member = groups->members[i];
      contributions[i - groups->offsets[g]] =
          (mp_contribution_t){(const void *const *)r->inputs[member], outputs[member]};
    }
    void *scratch =
        aligned_alloc(64, (mp_collective_scratch_bytes(&r->collective, g) + 64) & ~63ul);
    for (uint32_t c = mp_collective_num_chunks(&r->collective, g); c-- > 0;) {
      assert_ok(mp_collective_run(&r->collective, g, contributions, NULL, c, scratch));
    }
    free(scratch);
  }
}

static void make_scene(scene_t *scene, uint64_t seed, uint32_t num_devices) {
  scene->seed = seed;
  scene->num_devices = num_devices;
  for (uint32_t k = 0; k < PER_PROGRAM; ++k) {
    random_collective_t *r = &scene->parts[k];
    random_collective(r, seed * PER_PROGRAM + k, num_devices, seed % 5 == 0 ? 100 : 7);
    r->collective.ordinal = k;
    compute(r, scene->expected[k]);
  }
  for (uint32_t i = 0; i < num_devices; ++i) scene->ids[i] = i;
  for (uint32_t i = num_devices; i-- > 1 && seed % 3 != 0;) {
    const uint32_t j = random_below(&scene->parts[0], i + 1);
    const uint32_t id = scene->ids[i];
    scene->ids[i] = scene->ids[j];
    scene->ids[j] = id;
  }
}

static mp_program_io_t bytes_io(mp_arena_t *arena, size_t bytes) {
  mp_program_io_t io = {.memory = MP_MEMORY_DEVICE, .alias = -1, .bytes = bytes};
  assert_ok(mp_type_tensor(arena, MP_DTYPE_U8, &(int64_t){(int64_t)bytes}, 1, &io.type));
  return io;
}

static mp_program_t *scene_program(scene_t *scene) {
  test_program_t p;
  program_begin(&p, "scene", 1, scene->num_devices);
  mp_program_io_t *params = mp_arena_alloc(p.arena, MAX_IO * sizeof(*params));
  mp_program_io_t *results = mp_arena_alloc(p.arena, MAX_IO * sizeof(*results));
  uint32_t num_params = 0, num_results = 0;
  for (uint32_t k = 0; k < PER_PROGRAM; ++k) {
    const random_collective_t *r = &scene->parts[k];
    program_launch(&p, delay, 1, 0, NULL, 0, NULL);
    mp_slot_t in[RANDOM_MAX_OPERANDS], out[RANDOM_MAX_OPERANDS];
    for (uint32_t i = 0; i < r->collective.num_operands; ++i) {
      params[num_params] = bytes_io(p.arena, r->input_bytes[i]);
      in[i] = slot_param(num_params++);
    }
    for (uint32_t i = 0; i < r->num_results; ++i) {
      results[num_results] = bytes_io(p.arena, r->output_bytes[i]);
      out[i] = slot_result(num_results++);
    }
    mp_cmd_t *cmd = program_command(&p, MP_CMD_COLLECTIVE);
    cmd->collective = &r->collective;
    command_slots(&p, cmd, r->collective.num_operands, in, r->num_results, out);
  }
  mp_program_t *program = program_end(&p);
  program->params = params;
  program->results = results;
  program->num_params = num_params;
  program->num_results = num_results;
  return program;
}

static mp_buffer_t *make_bytes(mp_device_t *device, const void *data, size_t bytes) {
  mp_host_array_t array = {
      .dtype = MP_DTYPE_U8, .rank = 1, .dims = &(int64_t){(int64_t)bytes}, .data = data};
  mp_buffer_t *buffer = NULL;
  assert_ok(mp_buffer_from_host(mp_device_memory(device, MP_MEMORY_DEVICE), &array,
                                MP_HOST_ONLY_DURING_CALL, &buffer, NULL));
  return buffer;
}

// An exchange leaves what lies beyond the device's box as it is.
static void clear_beyond_box(const random_collective_t *r, uint32_t logical, char *data,
                             size_t bytes) {
  if (r->collective.kind != MP_COLLECTIVE_EXCHANGE) return;
  const mp_collective_operand_t *operand = &r->operands[0];
  const int64_t zero[2] = {0};
  char *box = calloc(1, bytes + 1);
  mp_box_copy(&(mp_box_copy_t){.rank = 2,
                               .size = r->collective.target.sizes + (size_t)logical * 2,
                               .element_size = mp_dtype_size(operand->dtype),
                               .src = data,
                               .src_dims = operand->result_dims,
                               .src_start = zero,
                               .dst = box,
                               .dst_dims = operand->result_dims,
                               .dst_start = zero});
  memcpy(data, box, bytes);
  free(box);
}

static bool same_bytes(const random_collective_t *r, uint32_t logical, mp_buffer_t *buffer,
                       const void *expected, size_t bytes) {
  char *data = malloc(bytes + 1);
  mp_event_t *done;
  mp_status_t status = mp_buffer_to_host(buffer, data, bytes, NULL, &done);
  if (status == NULL) {
    status = mp_event_await(done);
    mp_event_release(done);
  }
  // Where failures are made, any result may be one.
  const bool is_failure = mp_status_code(status) == MP_DATA_LOSS;
  if (status != NULL && !is_failure) print_error("%s\n", mp_status_message(status));
  if (status == NULL) clear_beyond_box(r, logical, data, bytes);
  const bool is_same = is_failure || (status == NULL && memcmp(data, expected, bytes) == 0);
  mp_status_release(status);
  free(data);
  return is_same;
}

typedef struct {
  mp_client_t *client;
  scene_t *scene;
  bool has_failed;
} player_t;

typedef struct {
  mp_buffer_t *results[RANDOM_MAX_DEVICES][MAX_IO];
} played_t;

static void play_once(player_t *player, mp_executable_t *executable,
                      mp_buffer_t *arguments[][MAX_IO], played_t *played) {
  uint32_t count;
  (void)mp_executable_local(executable, &count);
  mp_buffer_t *const *per_device[RANDOM_MAX_DEVICES];
  mp_buffer_t **outputs[RANDOM_MAX_DEVICES];
  for (uint32_t i = 0; i < count; ++i) {
    per_device[i] = arguments[i];
    outputs[i] = played->results[i];
  }
  const mp_launch_t launch = {.arguments = per_device};
  mp_status_t status = mp_executable_launch(executable, &launch, outputs, NULL);
  if (status != NULL) print_error("%s\n", mp_status_message(status));
  player->has_failed |= status != NULL;
  mp_status_release(status);
}

static void check_played(player_t *player, uint32_t logical, mp_buffer_t **results) {
  const scene_t *scene = player->scene;
  for (uint32_t k = 0, at = 0; k < PER_PROGRAM; ++k) {
    const random_collective_t *r = &scene->parts[k];
    for (uint32_t i = 0; i < r->num_results; ++i, ++at) {
      bool is_member = r->collective.groups->group_of[logical] >= 0;
      void *zeros = calloc(1, r->output_bytes[i] + 1);
      if (!same_bytes(r, logical, results[at], is_member ? scene->expected[k][logical][i] : zeros,
                      r->output_bytes[i])) {
        print_error("seed %u, collective %u, operand %u, device %u differs\n",
                    (unsigned)scene->seed, k, i, logical);
        player->has_failed = true;
      }
      free(zeros);
      mp_buffer_release(results[at]);
    }
  }
}

// One process: launches the program some times without waiting, then looks at what came out.
static void *play(void *context) {
  player_t *player = context;
  scene_t *scene = player->scene;
  mp_executable_t *executable = NULL;
  mp_buffer_t *arguments[RANDOM_MAX_DEVICES][MAX_IO];
  played_t played[LAUNCHES];
  assert_ok(mp_executable_create(player->client, scene_program(scene), scene->ids, &executable));
  uint32_t count;
  const uint32_t *local = mp_executable_local(executable, &count);
  uint32_t num_arguments = 0;
  for (uint32_t d = 0; d < count; ++d) {
    mp_device_t *device = mp_executable_device(executable, local[d]);
    num_arguments = 0;
    for (uint32_t k = 0; k < PER_PROGRAM; ++k) {
      const random_collective_t *r = &scene->parts[k];
      for (uint32_t i = 0; i < r->collective.num_operands; ++i) {
        arguments[d][num_arguments++] =
            make_bytes(device, r->inputs[local[d]][i], r->input_bytes[i]);
      }
    }
  }
  for (uint32_t n = 0; n < LAUNCHES; ++n) play_once(player, executable, arguments, &played[n]);
  for (uint32_t n = 0; n < LAUNCHES && !player->has_failed; ++n) {
    for (uint32_t d = 0; d < count; ++d) check_played(player, local[d], played[n].results[d]);
  }
  for (uint32_t d = 0; d < count; ++d) {
    for (uint32_t i = 0; i < num_arguments; ++i) mp_buffer_release(arguments[d][i]);
  }
  mp_executable_release(executable);
  return NULL;
}

static void play_scene(pods_t *pods, uint64_t seed, uint32_t num_devices) {
  scene_t scene;
  player_t players[MAX_WORLDS];
  pthread_t threads[MAX_WORLDS];
  make_scene(&scene, seed, num_devices);
  for (uint32_t rank = 0; rank < pods->count; ++rank) {
    players[rank] = (player_t){.client = pods->clients[rank], .scene = &scene};
    assert_int_equal(pthread_create(&threads[rank], NULL, play, &players[rank]), 0);
  }
  bool has_failed = false;
  for (uint32_t rank = 0; rank < pods->count; ++rank) {
    pthread_join(threads[rank], NULL);
    has_failed |= players[rank].has_failed;
  }
  for (uint32_t k = 0; k < PER_PROGRAM; ++k) random_collective_end(&scene.parts[k]);
  if (has_failed) fail_msg("seed %u", (unsigned)seed);
}

// Devices per rank; 0 ends the list.
typedef struct {
  uint32_t per_host, devices[MAX_WORLDS];
} layout_t;

static void start_layout(pods_t *pods, const layout_t *layout, uint32_t *out_num_devices) {
  static const char *const counts[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8"};
  pod_option_t options[MAX_WORLDS][3];
  const pod_option_t *all[MAX_WORLDS];
  uint32_t count = 0;
  *out_num_devices = 0;
  for (; layout->devices[count] != 0; ++count) {
    options[count][0] = (pod_option_t){"num_devices", counts[layout->devices[count]]};
    options[count][1] = (pod_option_t){"workers", "2"};
    options[count][2] = (pod_option_t){NULL, NULL};
    all[count] = options[count];
    *out_num_devices += layout->devices[count];
  }
  try_start_pods(pods, count, layout->per_host, all);
  for (uint32_t rank = 0; rank < count; ++rank) assert_ok(pods->statuses[rank]);
}

static void test_random(void **state) {
  (void)state;
  static const layout_t layouts[] = {
      {2, {4, 4}},    {2, {2, 2, 2, 2}}, {1, {1, 5}},
      {2, {1, 2, 3}}, {4, {3, 1, 2, 1}}, {2, {2, 1, 3, 1, 2, 2}},
  };
  enum { NUM_LAYOUTS = sizeof(layouts) / sizeof(layouts[0]) };
  const char *text = getenv("MINIPOD_TEST_COLLECTIVES");
  const long total = text == NULL ? 400 : atol(text);
  const long per_layout = total / (NUM_LAYOUTS * PER_PROGRAM);
  for (size_t i = 0; i < NUM_LAYOUTS; ++i) {
    pods_t pods;
    uint32_t num_devices;
    start_layout(&pods, &layouts[i], &num_devices);
    for (long n = 0; n < per_layout; ++n) {
      play_scene(&pods, (uint64_t)(i * 100000) + (uint64_t)n, num_devices);
    }
    stop_pods(&pods);
  }
}

// A failure anywhere, at any time, ends its launch everywhere and nothing else.
static void test_random_failures(void **state) {
  (void)state;
  static const layout_t layout = {2, {2, 1, 2, 2}};
  pods_t pods;
  uint32_t num_devices;
  start_layout(&pods, &layout, &num_devices);
  for (uint64_t n = 0; n < 150; ++n) {
    atomic_store(&g_calls_until_failure, (int)(n * 7 % 56));  // of 56 calls
    play_scene(&pods, 500000 + n, num_devices);
  }
  atomic_store(&g_calls_until_failure, -1);
  play_scene(&pods, 500000, num_devices);
  stop_pods(&pods);
}

// ---- Things that go wrong: two processes of two devices, one launch of each ----

static const pod_option_t k_two_devices[] = {{"num_devices", "2"}, {"workers", "2"}, {NULL, NULL}};
static const pod_option_t k_impatient[] = {{"num_devices", "2"},
                                           {"workers", "2"},
                                           {"collective_warn", "1"},
                                           {"collective_timeout", "2"},
                                           {NULL, NULL}};
// More than anything here takes on the busiest machine, less than a test may.
static const pod_option_t k_patient[] = {{"num_devices", "2"},
                                         {"workers", "2"},
                                         {"collective_warn", "0"},
                                         {"collective_timeout", "90"},
                                         {NULL, NULL}};

// y = all_reduce(x), or another collective of the same groups.
static mp_program_t *meeting_program(const char *name, mp_collective_kind_t kind, int64_t count) {
  test_program_t p;
  program_begin(&p, name, 1, 4);
  mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_F32, count));
  mp_slot_t y = slot_result(program_result(&p, MP_DTYPE_F32, count));
  program_collective(&p, kind, kind == MP_COLLECTIVE_ALL_REDUCE ? "stablehlo.all_reduce" : "other",
                     count, x, y);
  return program_end(&p);
}

// The collective stands there but is not reached.
static mp_program_t *absent_program(void) {
  test_program_t p;
  program_begin(&p, "absent", 1, 4);
  mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_F32, 4));
  mp_slot_t y = slot_result(program_result(&p, MP_DTYPE_F32, 4));
  program_jump(&p, MP_CMD_JUMP, x, 2);
  program_collective(&p, MP_COLLECTIVE_ALL_REDUCE, "stablehlo.all_reduce", 4, x, y);
  return program_end(&p);
}

static mp_status_t pick_kernel(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  (void)kernel;
  *(bool *)call->results[0] = *(const float *)call->operands[0] > 1.5f;
  return NULL;
}

// Two equal collectives; process 1, whose x is 2, jumps over the first one.
static mp_program_t *choosing_program(void) {
  test_program_t p;
  program_begin(&p, "choosing", 1, 4);
  mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_F32, 4));
  mp_slot_t y = slot_result(program_result(&p, MP_DTYPE_F32, 4));
  mp_slot_t flag = slot_arena(0);
  p.program->arena_bytes = 64;
  program_launch(&p, pick_kernel, 1, 1, &x, 1, &flag);
  program_jump(&p, MP_CMD_BRANCH_UNLESS, flag, 3);
  program_jump(&p, MP_CMD_JUMP, x, 4);
  program_collective(&p, MP_COLLECTIVE_ALL_REDUCE, "stablehlo.all_reduce", 4, x, y);
  program_collective(&p, MP_COLLECTIVE_ALL_REDUCE, "stablehlo.all_reduce", 4, x, y);
  return program_end(&p);
}

static mp_status_t fail_kernel(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  (void)kernel, (void)call;
  return mp_status_make(MP_DATA_LOSS, "the kernel broke");
}

static mp_program_t *failing_program(void) {
  test_program_t p;
  program_begin(&p, "failing", 1, 4);
  mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_F32, 4));
  mp_slot_t y = slot_result(program_result(&p, MP_DTYPE_F32, 4));
  program_launch(&p, fail_kernel, 1, 0, NULL, 0, NULL);
  program_collective(&p, MP_COLLECTIVE_ALL_REDUCE, "stablehlo.all_reduce", 4, x, y);
  return program_end(&p);
}

// Most probably; what is expected must not depend on it.
static void let_packets_come(void) {
  nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
}

static bool has_packet(const mp_packet_list_t *list, mp_packet_kind_t kind) {
  const mp_packet_t *packet = list->first;
  while (packet != NULL && mp_packet_kind(packet) != kind) packet = packet->next;
  return packet != NULL;
}

// Waits until a packet of this kind has come for a launch that this process has not come to.
static void await_early_packet(const pods_t *pods, uint32_t rank, mp_packet_kind_t kind) {
  mp_endpoint_t *endpoint = pods->clients[rank]->endpoint;
  for (bool is_there = false; !is_there;) {
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    mp_lock(&endpoint->router->lock);
    is_there = has_packet(&endpoint->early, kind);
    for (const mp_launch_queue_t *queue = endpoint->queues; queue != NULL; queue = queue->next) {
      is_there |= has_packet(&queue->early, kind);
    }
    mp_unlock(&endpoint->router->lock);
  }
}

// A launch on this process's two devices of the four.
static void launch_half(test_launch_t *l, const pods_t *pods, uint32_t rank,
                        mp_executable_t *executable, int64_t count) {
  launch_begin(l, executable, 1);
  l->num_devices = 2;
  for (uint32_t i = 0; i < 2; ++i) {
    l->logical[i] = 2 * rank + i;
    l->arguments[i][0] =
        make_f32(mp_client_device(pods->clients[rank], 2 * rank + i), count, (float)rank + 1);
  }
  launch_go(l);
}

static void run_half(test_launch_t *l, const pods_t *pods, uint32_t rank, mp_program_t *program,
                     int64_t count) {
  mp_executable_t *executable = make_executable(pods->clients[rank], program);
  launch_half(l, pods, rank, executable, count);
  mp_executable_release(executable);
}

static mp_program_t *sum_program(void) {
  return meeting_program("sum", MP_COLLECTIVE_ALL_REDUCE, 4);
}

// After whatever went wrong the next launch goes well.
static void expect_sum(const pods_t *pods) {
  test_launch_t l[2];
  for (uint32_t rank = 0; rank < 2; ++rank) run_half(&l[rank], pods, rank, sum_program(), 4);
  for (uint32_t rank = 0; rank < 2; ++rank) launch_expect(&l[rank], 6);
  for (uint32_t rank = 0; rank < 2; ++rank) launch_end(&l[rank]);
}

typedef struct {
  mp_program_t *(*programs[2])(void);
  mp_status_code_t code;
  const char *texts[2];
} failure_t;

static mp_program_t *longer_program(void) {
  return meeting_program("longer", MP_COLLECTIVE_ALL_REDUCE, 4);
}
static mp_program_t *gather_program(void) {
  return meeting_program("gather", MP_COLLECTIVE_BROADCAST, 4);
}

static void expect_failure(const failure_t *failure, uint32_t per_host) {
  pods_t pods;
  start_pods(&pods, 2, per_host, k_two_devices);
  for (uint32_t late = 0; late < 2; ++late) {  // the rank that comes second
    test_launch_t l[2];
    run_half(&l[1 - late], &pods, 1 - late, failure->programs[1 - late](), 4);
    let_packets_come();
    run_half(&l[late], &pods, late, failure->programs[late](), 4);
    for (uint32_t rank = 0; rank < 2; ++rank) {
      for (uint32_t i = 0; i < 2 && failure->texts[rank] != NULL; ++i) {
        launch_expect_error(&l[rank], i, failure->code, failure->texts[rank]);
      }
      launch_end(&l[rank]);
    }
    expect_sum(&pods);
  }
  stop_pods(&pods);
}

static void test_failures(void **state) {
  (void)state;
  static const failure_t failures[] = {
      {{sum_program, failing_program},
       MP_DATA_LOSS,
       {"the kernel broke (on process 1)", "the kernel broke"}},
      {{sum_program, gather_program},
       MP_INVALID_ARGUMENT,
       {"process 0: device 0 is at stablehlo.all_reduce (psum at train.py:12:7) of "
        "tensor<4xf32> while process 1: device ",
        "is at other (psum at train.py:12:7) of tensor<4xf32>: they are different operations"}},
      {{choosing_program, choosing_program},
       MP_INVALID_ARGUMENT,
       {"process 0: device 0 is at stablehlo.all_reduce",
        "they are at different places of the program"}},
      {{sum_program, absent_program},
       MP_ABORTED,
       {"devices 2, 3 finished without reaching stablehlo.all_reduce (psum at train.py:12:7) that "
        "devices 0, 1 wait at",
        NULL}},
  };
  for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); ++i) {
    for (uint32_t per_host = 1; per_host <= 2; ++per_host) expect_failure(&failures[i], per_host);
  }
}

// y = all_reduce(x), twice; in between a kernel may fail.
static mp_program_t *two_sums(mp_kernel_run_t between) {
  test_program_t p;
  program_begin(&p, "two_sums", 1, 4);
  mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_F32, 4));
  mp_slot_t y = slot_result(program_result(&p, MP_DTYPE_F32, 4));
  program_collective(&p, MP_COLLECTIVE_ALL_REDUCE, "stablehlo.all_reduce", 4, x, y);
  if (between != NULL) program_launch(&p, between, 1, 0, NULL, 0, NULL);
  program_collective(&p, MP_COLLECTIVE_ALL_REDUCE, "stablehlo.all_reduce", 4, x, y);
  return program_end(&p);
}

// The other process sends its payload for a meeting and fails directly afterwards: the failure
// comes while the meeting's holder is about to continue, and must reach the participants that wait
// with it.
static void test_failure_behind_a_meeting(void **state) {
  (void)state;
  static const pod_option_t one_worker[] = {{"num_devices", "2"}, {"workers", "1"}, {NULL, NULL}};
  pods_t pods;
  start_pods(&pods, 2, 2, one_worker);
  mp_executable_t *executables[2] = {make_executable(pods.clients[0], two_sums(NULL)),
                                     make_executable(pods.clients[1], two_sums(fail_kernel))};
  for (int round = 0; round < 500; ++round) {
    test_launch_t l[2];
    for (uint32_t rank = 0; rank < 2; ++rank) {
      launch_half(&l[rank], &pods, rank, executables[rank], 4);
    }
    for (uint32_t i = 0; i < 2; ++i) {
      launch_expect_error(&l[0], i, MP_DATA_LOSS, "the kernel broke (on process 1)");
      launch_expect_error(&l[1], i, MP_DATA_LOSS, "the kernel broke");
    }
    for (uint32_t rank = 0; rank < 2; ++rank) launch_end(&l[rank]);
  }
  for (uint32_t rank = 0; rank < 2; ++rank) mp_executable_release(executables[rank]);
  expect_sum(&pods);
  stop_pods(&pods);
}

// Programs that differ in nothing that meets may meet.
static void test_programs_may_differ(void **state) {
  (void)state;
  pods_t pods;
  start_pods(&pods, 2, 2, k_two_devices);
  test_launch_t l[2];
  run_half(&l[0], &pods, 0, sum_program(), 4);
  run_half(&l[1], &pods, 1, longer_program(), 4);
  for (uint32_t rank = 0; rank < 2; ++rank) launch_expect(&l[rank], 6);
  for (uint32_t rank = 0; rank < 2; ++rank) launch_end(&l[rank]);
  stop_pods(&pods);
}

// A launch that one process refuses fails on the others, and counts on all.
static void test_refused_launch(void **state) {
  (void)state;
  pods_t pods;
  start_pods(&pods, 2, 2, k_two_devices);
  test_launch_t l, refused;
  run_half(&l, &pods, 0, sum_program(), 4);
  mp_executable_t *executable = make_executable(pods.clients[1], sum_program());
  launch_begin(&refused, executable, 1);
  refused.num_devices = 2;
  mp_buffer_t *results[2];
  for (uint32_t i = 0; i < 2; ++i) {
    refused.logical[i] = 2 + i;
    refused.arguments[i][0] = make_f32(mp_client_device(pods.clients[1], 2 + i), 5, 1);
  }
  assert_status(launch_try(&refused, results), MP_INVALID_ARGUMENT, "expected tensor<4xf32>");
  launch_expect_error(&l, 0, MP_INVALID_ARGUMENT, "(on process 1)");
  launch_end(&l);
  for (uint32_t i = 0; i < 2; ++i) mp_buffer_release(refused.arguments[i][0]);
  mp_executable_release(executable);
  expect_sum(&pods);
  stop_pods(&pods);
}

static void test_lost_process(void **state) {
  (void)state;
  pods_t pods;
  start_pods(&pods, 2, 1, k_two_devices);
  test_launch_t l;
  run_half(&l, &pods, 0, sum_program(), 4);
  mp_client_release(pods.clients[1]);
  pods.clients[1] = NULL;
  mp_router_forget(pods.worlds[1]);
  pthread_t closing;
  assert_int_equal(pthread_create(&closing, NULL, close_pod_world, pods.worlds[1]), 0);
  launch_expect_error(&l, 0, MP_UNAVAILABLE, "has exited");
  launch_end(&l);
  run_half(&l, &pods, 0, sum_program(), 4);  // fails at once
  launch_expect_error(&l, 1, MP_UNAVAILABLE, "has exited");
  launch_end(&l);
  mp_client_release(pods.clients[0]);
  mp_router_forget(pods.worlds[0]);
  mp_world_close(pods.worlds[0]);
  pthread_join(closing, NULL);
}

// True when the answer was there in time, which a busy machine cannot promise.
static bool expect_timeout(const pods_t *pods, unsigned number) {
  static const char *const answers[] = {
      "process 1 reports: it has launched nothing on these devices yet",
      "process 1 reports: its last launch on these devices was launch "};
  char place[128];
  snprintf(place, sizeof(place),
           "launch %u: devices 0, 1 wait at stablehlo.all_reduce (psum at train.py:12:7); "
           "missing for ",
           number);
  test_launch_t l, late;
  run_half(&l, pods, 0, sum_program(), 4);
  launch_expect_error(&l, 0, MP_DEADLINE_EXCEEDED, place);
  mp_status_t status = mp_event_await(l.done[1]);
  assert_int_equal(mp_status_code(status), MP_DEADLINE_EXCEEDED);
  const bool is_answered = strstr(mp_status_message(status), answers[number != 0]) != NULL;
  mp_status_release(status);
  launch_end(&l);
  // The late process hears of it.
  await_early_packet(pods, 1, MP_PACKET_POISON);
  run_half(&late, pods, 1, sum_program(), 4);
  launch_expect_error(&late, 0, MP_DEADLINE_EXCEEDED, "(on process 0)");
  launch_end(&late);
  return is_answered;
}

static void test_timeout(void **state) {
  (void)state;
  pods_t pods;
  start_pods(&pods, 2, 2, k_impatient);
  bool is_answered = false;
  for (unsigned i = 0; i < 10 && !is_answered; ++i) is_answered = expect_timeout(&pods, i);
  assert_true(is_answered);
  expect_sum(&pods);
  stop_pods(&pods);
}

// A released client finishes launches that other processes take part in; its successor starts from
// the beginning.
static void test_clients_one_after_the_other(void **state) {
  (void)state;
  pods_t pods;
  start_pods(&pods, 2, 2, k_two_devices);
  test_launch_t l[2];
  run_half(&l[0], &pods, 0, sum_program(), 4);
  mp_client_release(pods.clients[0]);
  let_packets_come();
  run_half(&l[1], &pods, 1, sum_program(), 4);
  launch_expect(&l[1], 6);
  for (uint32_t i = 0; i < 2; ++i) assert_ok(mp_event_await(l[0].done[i]));
  for (uint32_t rank = 0; rank < 2; ++rank) launch_end_no_wait(&l[rank]);
  mp_client_release(pods.clients[1]);
  pthread_t threads[2];
  pod_start_t starts[2];
  for (uint32_t rank = 0; rank < 2; ++rank) {
    starts[rank] = (pod_start_t){&pods, rank, k_two_devices};
    assert_int_equal(pthread_create(&threads[rank], NULL, start_pod_client, &starts[rank]), 0);
  }
  for (uint32_t rank = 0; rank < 2; ++rank) pthread_join(threads[rank], NULL);
  expect_sum(&pods);
  stop_pods(&pods);
}

// A process that leaves with work in flight fails it, on all.
static void test_leaving_cancels(void **state) {
  (void)state;
  pods_t pods;
  start_pods(&pods, 2, 2, k_two_devices);
  test_launch_t l[2];
  run_half(&l[0], &pods, 0, sum_program(), 4);
  mp_client_release(pods.clients[0]);
  pods.clients[0] = NULL;
  mp_router_forget(pods.worlds[0]);
  launch_expect_error(&l[0], 0, MP_CANCELLED, "the client was closed");
  launch_end_no_wait(&l[0]);
  await_early_packet(&pods, 1, MP_PACKET_POISON);
  run_half(&l[1], &pods, 1, sum_program(), 4);
  launch_expect_error(&l[1], 1, MP_CANCELLED, "the client was closed (on process 0)");
  launch_end(&l[1]);
  stop_pods(&pods);
}

// Whatever allocation fails, in whichever process: launches end, well or badly, and nothing hangs.
static void test_failed_allocations(void **state) {
  (void)state;
  pods_t pods;
  start_pods(&pods, 2, 1, k_patient);
  mp_executable_t *executables[2] = {make_executable(pods.clients[0], sum_program()),
                                     make_executable(pods.clients[1], sum_program())};
  int failures = 0;
  for (int n = 1; n < 60; ++n) {
    test_launch_t l[2];
    mp_buffer_t *results[2][2] = {{NULL}};
    bool is_launched[2];
    for (uint32_t rank = 0; rank < 2; ++rank) {
      launch_begin(&l[rank], executables[rank], 1);
      l[rank].num_devices = 2;
      for (uint32_t i = 0; i < 2; ++i) {
        l[rank].logical[i] = 2 * rank + i;
        l[rank].arguments[i][0] =
            make_f32(mp_client_device(pods.clients[rank], 2 * rank + i), 4, 1);
      }
    }
    mp_alloc_fail_at(n, 0);
    for (uint32_t rank = 0; rank < 2; ++rank) {
      mp_status_t status = launch_try(&l[rank], results[rank]);
      is_launched[rank] = status == NULL;
      mp_status_release(status);
    }
    for (uint32_t i = 0; i < 4; ++i) {
      if (!is_launched[i / 2]) continue;
      mp_status_t status = mp_event_await(mp_buffer_definition(results[i / 2][i % 2]));
      failures += status != NULL;
      assert_int_not_equal(mp_status_code(status), MP_DEADLINE_EXCEEDED);
      mp_status_release(status);
    }
    mp_alloc_fail_at(0, 0);
    for (uint32_t i = 0; i < 4; ++i) {
      if (is_launched[i / 2]) mp_buffer_release(results[i / 2][i % 2]);
    }
    for (uint32_t rank = 0; rank < 2; ++rank) launch_end(&l[rank]);
  }
  assert_true(failures > 10);
  for (uint32_t rank = 0; rank < 2; ++rank) mp_executable_release(executables[rank]);
  stop_pods(&pods);
}

// A process without any memory for its launch: the others hear of it, and the launches that follow
// still belong together.
static void test_no_memory_to_refuse(void **state) {
  (void)state;
  int refusals = 0;
  for (int n = 1; n < 30; ++n) {
    pods_t pods;
    start_pods(&pods, 2, 2, k_two_devices);
    mp_executable_t *executable = make_executable(pods.clients[1], sum_program());
    test_launch_t l, refused;
    launch_begin(&refused, executable, 1);
    refused.num_devices = 2;
    for (uint32_t i = 0; i < 2; ++i) {
      refused.logical[i] = 2 + i;
      refused.arguments[i][0] = make_f32(mp_client_device(pods.clients[1], 2 + i), 4, 1);
    }
    mp_buffer_t *results[2];
    mp_alloc_fail_at(n, 1);
    mp_status_t status = launch_try(&refused, results);
    mp_alloc_fail_at(0, 0);
    const bool is_refused = status != NULL;
    refusals += is_refused;
    mp_status_release(status);
    run_half(&l, &pods, 0, sum_program(), 4);
    for (uint32_t i = 0; i < 2; ++i) {
      status = mp_event_await(mp_buffer_definition(l.results[i]));
      if (is_refused) assert_int_equal(mp_status_code(status), MP_RESOURCE_EXHAUSTED);
      mp_status_release(status);
      if (!is_refused) mp_buffer_release(results[i]);
    }
    launch_end(&l);
    launch_end(&refused);
    mp_executable_release(executable);
    expect_sum(&pods);
    stop_pods(&pods);
  }
  assert_true(refusals > 5);
}

// One process is many launches ahead, more than a stream takes without waiting (ahead.h); the other
// launches its devices one by one, the second first.
static void test_many_launches_ahead(void **state) {
  (void)state;
  enum { AHEAD = MP_AHEAD_RUNS + 8 };
  pods_t pods;
  start_pods(&pods, 2, 1, k_two_devices);
  mp_executable_t *executables[2] = {make_executable(pods.clients[0], sum_program()),
                                     make_executable(pods.clients[1], sum_program())};
  test_launch_t *ahead = calloc(AHEAD, sizeof(*ahead));
  for (int n = 0; n < AHEAD; ++n) launch_half(&ahead[n], &pods, 0, executables[0], 4);
  let_packets_come();
  for (int n = 0; n < AHEAD; ++n) {
    test_launch_t one[2];
    for (uint32_t i = 2; i-- > 0;) {
      launch_begin(&one[i], executables[1], 1);
      one[i].num_devices = 1;
      one[i].logical[0] = 2 + i;
      one[i].arguments[0][0] = make_f32(mp_client_device(pods.clients[1], 2 + i), 4, (float)n);
      launch_go(&one[i]);
    }
    for (uint32_t i = 0; i < 2; ++i) {
      launch_expect(&one[i], 2 + 2 * (float)n);
      launch_end(&one[i]);
    }
    launch_expect(&ahead[n], 2 + 2 * (float)n);
    launch_end(&ahead[n]);
  }
  free(ahead);
  for (uint32_t rank = 0; rank < 2; ++rank) mp_executable_release(executables[rank]);
  stop_pods(&pods);
}

// x = all_reduce(x) / 4 + 1, forty times.
static mp_status_t step_kernel(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  (void)kernel;
  const float *x = call->operands[0];
  for (int i = 0; i < 4; ++i) ((float *)call->results[0])[i] = x[i] / 4 + 1;
  return NULL;
}

static mp_status_t count_kernel(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  (void)kernel;
  int32_t *rounds = call->results[0];
  bool *goes_on = call->results[1];
  *goes_on = ++*rounds < 40;
  return NULL;
}

static mp_status_t begin_kernel(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  (void)kernel;
  memcpy(call->results[0], call->operands[0], 4 * sizeof(float));
  *(int32_t *)call->results[1] = 0;
  return NULL;
}

static mp_program_t *loop_program(void) {
  test_program_t p;
  program_begin(&p, "loop", 1, 4);
  mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_F32, 4));
  mp_slot_t y = slot_result(program_result(&p, MP_DTYPE_F32, 4));
  mp_slot_t begin[2] = {y, slot_arena(0)}, count[2] = {slot_arena(0), slot_arena(64)};
  p.program->arena_bytes = 192;
  program_launch(&p, begin_kernel, 1, 1, &x, 2, begin);
  program_collective(&p, MP_COLLECTIVE_ALL_REDUCE, "stablehlo.all_reduce", 4, y, slot_arena(128));
  program_launch(&p, step_kernel, 1, 1, &(mp_slot_t){MP_SLOT_ARENA, 0, 128}, 1, &y);
  program_launch(&p, count_kernel, 1, 0, NULL, 2, count);
  program_jump(&p, MP_CMD_BRANCH_UNLESS, slot_arena(64), 6);
  program_jump(&p, MP_CMD_JUMP, x, 1);
  return program_end(&p);
}

static void test_loops(void **state) {
  (void)state;
  pods_t pods;
  start_pods(&pods, 2, 2, k_two_devices);
  test_launch_t l[2];
  for (uint32_t rank = 0; rank < 2; ++rank) run_half(&l[rank], &pods, rank, loop_program(), 4);
  for (uint32_t rank = 0; rank < 2; ++rank) launch_expect(&l[rank], 41.5f);
  for (uint32_t rank = 0; rank < 2; ++rank) launch_end(&l[rank]);
  stop_pods(&pods);
}

// ---- Messages ----

// Every device sends x, twice, to the one three further on (of four).
static mp_program_t *send_program(void) {
  test_program_t p;
  program_begin(&p, "send", 1, 4);
  mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_F32, 4));
  mp_slot_t y[2] = {slot_result(program_result(&p, MP_DTYPE_F32, 4)), slot_arena(0)};
  p.program->arena_bytes = 64;
  mp_collective_t *c = program_collective(&p, MP_COLLECTIVE_SEND_RECV, "stablehlo.send", 4, x, x);
  c->channel_id = 7;
  c->num_pairs = 4;
  static const uint32_t pairs[] = {1, 0, 2, 1, 3, 2, 0, 3};
  c->pairs = pairs;
  mp_cmd_t *send = &p.commands[p.program->num_commands - 1];
  send->kind = MP_CMD_SEND;
  send->num_results = 0;
  *program_command(&p, MP_CMD_SEND) = *send;
  for (int i = 0; i < 2; ++i) {
    mp_cmd_t *recv = program_command(&p, MP_CMD_RECV);
    recv->collective = c;
    command_slots(&p, recv, 0, NULL, 1, &y[1 - i]);
  }
  return program_end(&p);
}

static void test_messages(void **state) {
  (void)state;
  for (uint32_t per_host = 1; per_host <= 2; ++per_host) {
    pods_t pods;
    start_pods(&pods, 2, per_host, k_two_devices);
    for (int round = 0; round < 20; ++round) {
      test_launch_t l[2];
      for (uint32_t rank = 0; rank < 2; ++rank) run_half(&l[rank], &pods, rank, send_program(), 4);
      for (uint32_t rank = 0; rank < 2; ++rank) {
        for (uint32_t i = 0; i < 2; ++i) {
          assert_ok(mp_event_await(l[rank].done[i]));
          expect_f32(l[rank].results[i], 4, (float)((2 * rank + i + 1) % 4 / 2 + 1));
        }
      }
      for (uint32_t rank = 0; rank < 2; ++rank) launch_end(&l[rank]);
    }
    stop_pods(&pods);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_failures),
      cmocka_unit_test(test_failure_behind_a_meeting),
      cmocka_unit_test(test_programs_may_differ),
      cmocka_unit_test(test_refused_launch),
      cmocka_unit_test(test_lost_process),
      cmocka_unit_test(test_timeout),
      cmocka_unit_test(test_clients_one_after_the_other),
      cmocka_unit_test(test_leaving_cancels),
      cmocka_unit_test(test_failed_allocations),
      cmocka_unit_test(test_no_memory_to_refuse),
      cmocka_unit_test(test_many_launches_ahead),
      cmocka_unit_test(test_loops),
      cmocka_unit_test(test_messages),
      cmocka_unit_test(test_random),
      cmocka_unit_test(test_random_failures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
