// What participants hear who come to the same meeting with different collectives, and how errors
// call devices: the same in one process and between two.
#include <string.h>

#include "tests/unit/support/launches.h"
#include "tests/unit/support/processes/worlds.h"
#include "tests/unit/support/programs.h"

// ---- Programs of one collective on two devices ----

typedef struct {
  mp_collective_kind_t kind;
  const char *name;
  int64_t count, result_count;         // elements of each device's array
  uint32_t num_pairs;                  // of {0, 1}, {1, 0}
  int64_t source[2][2], target[2][2];  // begin and size of each device's box
} side_t;

static mp_collective_boxes_t boxes_of(mp_arena_t *arena, const int64_t boxes[2][2]) {
  static const uint32_t owner[] = {0, 1};
  const int64_t starts[] = {boxes[0][0], boxes[1][0]}, sizes[] = {boxes[0][1], boxes[1][1]};
  return (mp_collective_boxes_t){.starts = mp_arena_copy(arena, starts, sizeof(starts)),
                                 .sizes = mp_arena_copy(arena, sizes, sizeof(sizes)),
                                 .owner = owner};
}

static mp_program_t *side_program(const side_t *side) {
  static const uint32_t pairs[] = {1, 0, 0, 1};
  test_program_t p;
  program_begin(&p, side->name, 1, 2);
  mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_F32, side->count));
  mp_slot_t y = slot_result(program_result(&p, MP_DTYPE_F32, side->result_count));
  mp_collective_t *c = program_collective(&p, side->kind, side->name, side->count, x, y);
  c->location = side->name;
  mp_collective_operand_t *operand = mp_arena_copy(p.arena, c->operands, sizeof(*operand));
  operand->result_dims = mp_arena_copy(p.arena, &side->result_count, sizeof(side->result_count));
  c->operands = operand;
  c->pairs = pairs;
  c->num_pairs = side->num_pairs;
  if (side->kind == MP_COLLECTIVE_EXCHANGE) {
    c->source = boxes_of(p.arena, side->source);
    c->target = boxes_of(p.arena, side->target);
  }
  return program_end(&p);
}

// ---- Sides that do not go together ----

typedef struct {
  side_t sides[2];
  const char *reason;
} mismatch_t;

static const mismatch_t k_mismatches[] = {
    {{{MP_COLLECTIVE_PERMUTE, "first", 4, 4, 2, {{0}}, {{0}}},
      {MP_COLLECTIVE_PERMUTE, "second", 4, 4, 1, {{0}}, {{0}}}},
     "of tensor<4xf32>: their source_target_pairs differ"},
    // Both halves are swapped, or stay.
    {{{MP_COLLECTIVE_EXCHANGE, "first", 4, 4, 0, {{0, 4}, {4, 4}}, {{4, 4}, {0, 4}}},
      {MP_COLLECTIVE_EXCHANGE, "second", 4, 4, 0, {{0, 4}, {4, 4}}, {{0, 4}, {4, 4}}}},
     "of tensor<4xf32>: the parts of the array that they exchange differ"},
    // By the first one's description the second one's result would be written beyond its end.
    {{{MP_COLLECTIVE_EXCHANGE, "first", 4, 8, 0, {{0, 4}, {4, 4}}, {{0, 8}, {0, 8}}},
      {MP_COLLECTIVE_EXCHANGE, "second", 4, 4, 0, {{0, 4}, {4, 4}}, {{4, 4}, {0, 4}}}},
     "the shapes of their results differ"},
    {{{MP_COLLECTIVE_ALL_GATHER, "first", 4, 8, 0, {{0}}, {{0}}},
      {MP_COLLECTIVE_ALL_GATHER, "second", 4, 4, 0, {{0}}, {{0}}}},
     "the shapes of their results differ"},
};
enum { NUM_MISMATCHES = sizeof(k_mismatches) / sizeof(k_mismatches[0]) };

// A launch of `program` on one device of the two.
static void launch_one(test_launch_t *l, mp_client_t *client, mp_program_t *program,
                       const uint32_t *ids, uint32_t logical, int64_t count) {
  mp_executable_t *executable = NULL;
  assert_ok(mp_executable_create(client, program, ids, &executable));
  launch_begin(l, executable, 1);
  l->num_devices = 1;
  l->logical[0] = logical;
  l->arguments[0][0] = make_f32(mp_client_device(client, ids[logical]), count, (float)logical + 1);
  launch_go(l);
  mp_executable_release(executable);
}

static void expect_both_sides(mp_event_t *done, const char *reason) {
  mp_status_t status = mp_event_await(done);
  const char *text = mp_status_message(status);
  assert_int_equal(mp_status_code(status), MP_INVALID_ARGUMENT);
  const char *wanted[] = {"collectives do not match: ", "device 0 is at first (first) of ",
                          " while ", "device 1 is at second (second) of ", reason};
  for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); ++i) {
    if (strstr(text, wanted[i]) == NULL) fail_msg("'%s' is not in: %s", wanted[i], text);
  }
  mp_status_release(status);
}

static const uint32_t k_ids[] = {0, 1};

static void different_sides_in_one_process(void **state) {
  (void)state;
  mp_client_t *client = make_client(2);
  for (size_t i = 0; i < NUM_MISMATCHES; ++i) {
    for (uint32_t late = 0; late < 2; ++late) {  // the device that comes second
      test_launch_t l[2];
      for (uint32_t turn = 0; turn < 2; ++turn) {
        const uint32_t d = turn == 0 ? 1 - late : late;
        const side_t *side = &k_mismatches[i].sides[d];
        launch_one(&l[d], client, side_program(side), k_ids, d, side->count);
      }
      for (uint32_t d = 0; d < 2; ++d) expect_both_sides(l[d].done[0], k_mismatches[i].reason);
      for (uint32_t d = 0; d < 2; ++d) launch_end(&l[d]);
    }
  }
  mp_client_release(client);
}

static const pod_option_t k_one_device[] = {{"num_devices", "1"}, {"workers", "1"}, {NULL, NULL}};

static void different_sides_in_two_processes(void **state) {
  (void)state;
  pods_t pods;
  start_pods(&pods, 2, 2, k_one_device);
  for (size_t i = 0; i < NUM_MISMATCHES; ++i) {
    test_launch_t l[2];
    for (uint32_t d = 0; d < 2; ++d) {
      const side_t *side = &k_mismatches[i].sides[d];
      launch_one(&l[d], pods.clients[d], side_program(side), k_ids, d, side->count);
    }
    for (uint32_t d = 0; d < 2; ++d) expect_both_sides(l[d].done[0], k_mismatches[i].reason);
    for (uint32_t d = 0; d < 2; ++d) launch_end(&l[d]);
  }
  stop_pods(&pods);
}

// Programs that differ in nothing that meets may meet, each device with an executable of its own.
static void equal_sides_meet(void **state) {
  (void)state;
  static const side_t permute = {MP_COLLECTIVE_PERMUTE, "same", 4, 4, 2, {{0}}, {{0}}};
  static const side_t exchange = {MP_COLLECTIVE_EXCHANGE, "same",          4, 4, 0,
                                  {{0, 4}, {4, 4}},       {{4, 4}, {0, 4}}};
  const side_t *sides[] = {&permute, &exchange};
  mp_client_t *client = make_client(2);
  for (size_t i = 0; i < 2; ++i) {
    test_launch_t l[2];
    for (uint32_t d = 0; d < 2; ++d) {
      launch_one(&l[d], client, side_program(sides[i]), k_ids, d, 4);
    }
    for (uint32_t d = 0; d < 2; ++d) launch_expect(&l[d], d == 0 ? 2 : 1);
    for (uint32_t d = 0; d < 2; ++d) launch_end(&l[d]);
  }
  mp_client_release(client);
}

// ---- Messages ----

// Device 0 sends x to device 1, which receives it as floats or as integers.
static mp_program_t *message_program(mp_dtype_t received) {
  static const uint32_t pairs[] = {0, 1};
  test_program_t p;
  program_begin(&p, "message", 1, 2);
  mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_F32, 4));
  mp_slot_t y = slot_result(program_result(&p, MP_DTYPE_F32, 4));
  mp_slot_t id = slot_arena(0);
  p.program->arena_bytes = 64;
  command_slots(&p, program_command(&p, MP_CMD_PARTITION_ID), 0, NULL, 1, &id);
  program_jump(&p, MP_CMD_BRANCH_UNLESS, id, 4);  // device 0 sends only
  for (int i = 0; i < 2; ++i) {
    mp_collective_t *c = program_collective(&p, MP_COLLECTIVE_SEND_RECV,
                                            i == 0 ? "stablehlo.recv" : "stablehlo.send", 4, x, y);
    mp_collective_operand_t *operand = mp_arena_copy(p.arena, c->operands, sizeof(*operand));
    if (i == 0) operand->dtype = received;
    c->operands = operand;
    c->pairs = pairs;
    c->num_pairs = 1;
    if (i == 0) program_jump(&p, MP_CMD_JUMP, x, 5);
  }
  mp_cmd_t *recv = &p.commands[2], *send = &p.commands[4];
  recv->kind = MP_CMD_RECV;
  recv->num_operands = 0;
  send->kind = MP_CMD_SEND;
  send->num_results = 0;
  return program_end(&p);
}

static void expect_message(mp_client_t *const *clients, mp_dtype_t received, const char *error) {
  test_launch_t l[2];
  for (uint32_t d = 0; d < 2; ++d) {
    launch_one(&l[d], clients[d], message_program(received), k_ids, d, 4);
  }
  if (error == NULL) {
    assert_ok(mp_event_await(l[1].done[0]));
    expect_f32(l[1].results[0], 4, 1);
  } else {
    launch_expect_error(&l[1], 0, MP_INVALID_ARGUMENT, error);
  }
  for (uint32_t d = 0; d < 2; ++d) launch_end(&l[d]);
}

static void messages_keep_their_types(void **state) {
  (void)state;
  static const char *const error =
      "device 0 sent 16 bytes in 1 operands, stablehlo.recv (psum at train.py:12:7) on device 1 "
      "expects 16 bytes in 1: their types differ";
  mp_client_t *client = make_client(2);
  expect_message((mp_client_t *const[]){client, client}, MP_DTYPE_F32, NULL);
  expect_message((mp_client_t *const[]){client, client}, MP_DTYPE_S32, error);
  mp_client_release(client);
  pods_t pods;
  start_pods(&pods, 2, 2, k_one_device);
  expect_message(pods.clients, MP_DTYPE_F32, NULL);
  expect_message(pods.clients, MP_DTYPE_S32, error);
  stop_pods(&pods);
}

// ---- Names ----

static mp_slot_t number_slot(test_program_t *p, int64_t count) {
  return slot_param(program_param(p, MP_DTYPE_S32, count));
}

// Two rows of one number each; every device sends what its arguments say.
static mp_program_t *ragged_program(void) {
  test_program_t p;
  program_begin(&p, "ragged", 1, 2);
  mp_slot_t rows = slot_param(program_param(&p, MP_DTYPE_F32, 2));
  mp_slot_t numbers = number_slot(&p, 2);
  mp_slot_t y = slot_result(program_result(&p, MP_DTYPE_F32, 2));
  mp_collective_t *c =
      program_collective(&p, MP_COLLECTIVE_RAGGED_ALL_TO_ALL, "ragged_all_to_all", 2, rows, y);
  mp_collective_operand_t *operands = mp_arena_alloc(p.arena, 6 * sizeof(*operands));
  for (int i = 0; i < 6; ++i) {
    operands[i] = c->operands[0];
    if (i >= 2) operands[i].dtype = operands[i].accumulation = MP_DTYPE_S32;
  }
  c->operands = operands;
  c->num_operands = 6;
  const mp_slot_t in[6] = {rows, rows, numbers, numbers, numbers, numbers};
  command_slots(&p, &p.commands[0], 6, in, 1, &y);
  return program_end(&p);
}

static mp_buffer_t *make_s32(mp_device_t *device, int32_t a, int32_t b) {
  mp_host_array_t array = {
      .dtype = MP_DTYPE_S32, .rank = 1, .dims = &(int64_t){2}, .data = (int32_t[]){a, b}};
  mp_buffer_t *buffer = NULL;
  assert_ok(mp_buffer_from_host(mp_device_memory(device, MP_MEMORY_DEVICE), &array,
                                MP_HOST_ONLY_DURING_CALL, &buffer, NULL));
  return buffer;
}

// On devices 1 and 0, in this order: logical number 0 is device 1. Its numbers (which rows it sends
// to either device, how many, to where, and how many it expects) are a and b, the other's are 0.
// It must hear one of the texts; the other device may be well.
static void expect_names(mp_client_t *const *clients, int32_t a, int32_t b,
                         const char *const texts[2]) {
  static const uint32_t ids[] = {1, 0};
  test_launch_t l[2];
  for (uint32_t logical = 0; logical < 2; ++logical) {
    mp_client_t *client = clients[ids[logical]];
    mp_device_t *device = mp_client_device(client, ids[logical]);
    mp_executable_t *executable = NULL;
    assert_ok(mp_executable_create(client, ragged_program(), ids, &executable));
    launch_begin(&l[logical], executable, 2);
    l[logical].num_devices = 1;
    l[logical].logical[0] = logical;
    l[logical].arguments[0][0] = make_f32(device, 2, 1);
    l[logical].arguments[0][1] = logical == 0 ? make_s32(device, a, b) : make_s32(device, 0, 0);
    launch_go(&l[logical]);
    mp_executable_release(executable);
  }
  mp_status_t status = mp_event_await(l[0].done[0]);
  const char *said = mp_status_message(status);
  assert_int_equal(mp_status_code(status), MP_INVALID_ARGUMENT);
  if (strstr(said, texts[0]) == NULL && strstr(said, texts[1]) == NULL) fail_msg("%s", said);
  mp_status_release(status);
  for (uint32_t logical = 0; logical < 2; ++logical) launch_end(&l[logical]);
}

static void expect_all_names(mp_client_t *const *clients) {
  // Rows of its own for itself; then rows for the other, and both are right to complain.
  static const char *const beyond[] = {"device 1 sends rows 5+5 of 2 to rows 5 of 2 of device 1",
                                       "device 1 sends rows 5+5"};
  static const char *const unexpected[] = {"device 1 sends 1 rows to device 0, which expects 0",
                                           "device 0 sends 0 rows to device 1, which expects 1"};
  expect_names(clients, 5, 0, beyond);
  expect_names(clients, 0, 1, unexpected);
}

static void ragged_errors_name_devices(void **state) {
  (void)state;
  mp_client_t *client = make_client(2);
  expect_all_names((mp_client_t *const[]){client, client});
  mp_client_release(client);
  pods_t pods;
  start_pods(&pods, 2, 2, k_one_device);
  expect_all_names(pods.clients);
  stop_pods(&pods);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(different_sides_in_one_process),
      cmocka_unit_test(different_sides_in_two_processes),
      cmocka_unit_test(equal_sides_meet),
      cmocka_unit_test(messages_keep_their_types),
      cmocka_unit_test(ragged_errors_name_devices),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
