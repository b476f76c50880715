// The reports of a model of time: rows of programs that go and come, the table, files of timelines
// and traces, observers that come and go.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/base/alloc.h"
#include "sim/model/report/events/watching.h"
#include "sim/model/report/report.h"
#include "sim/model/report/report_rows.h"
#include "sim/model/report/report_text.h"
#include "tests/unit/support/timed.h"

// Round numbers: 1 us per launch and op, 1 GB/s and 1 us per link, 1 TB/s of memory.
#define POD                                                                                    \
  "ring:4 hbm:1GiB launch_latency:1us op_latency:1us links.latency:1us links.bandwidth:1GB/s " \
  "memory.bandwidth:1TB/s host_link.latency:2us host_link.bandwidth:1GB/s flops.f32:1T"

// An addition of a megabyte, and its sum over all devices.
static const char k_program[] =
    "module @sum attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 4 : i32} {\n"
    "func.func @main(%x: tensor<250000xf32>) -> tensor<250000xf32> {\n"
    "  %d = stablehlo.add %x, %x : tensor<250000xf32>\n"
    "  %r = \"stablehlo.all_reduce\"(%d) <{replica_groups = dense<[[0,1,2,3]]> : "
    "tensor<1x4xi64>}> ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
    "  %s = stablehlo.add %a, %b : tensor<f32>\n  stablehlo.return %s : tensor<f32>\n})"
    " : (tensor<250000xf32>) -> tensor<250000xf32>\n"
    "  return %r : tensor<250000xf32>\n}\n}\n";

typedef struct {
  mp_pod_t *pod;
  mp_model_t *model;
  mp_report_t *report;
} reported_t;

static reported_t report_begin(uint32_t num_values, const mp_named_value_t *values) {
  reported_t r = {0};
  mp_options_t *options = NULL;
  assert_ok(mp_options_create(values, num_values, &options));
  assert_ok(mp_pod_create_from_name(mp_str(POD), "test", &r.pod));
  assert_ok(mp_model_create(r.pod, options, &r.model));
  assert_ok(mp_report_create(r.model, options, &r.report));
  mp_options_release(options);
  return r;
}

static void report_end(reported_t *r) {
  mp_report_release(r->report);
  mp_model_release(r->model);
  mp_pod_release(r->pod);
}

// A program that is compiled, launched so often, and released.
static void run_text(reported_t *r, const char *text, uint32_t launches) {
  mp_program_t *device_program = compile_text(text);
  mp_model_program_t *program = NULL;
  const uint32_t ids[] = {0, 1, 2, 3};
  assert_ok(mp_model_program_create(r->model, device_program, 4, ids, &program));
  for (uint32_t i = 0; i < launches; ++i) {
    const mp_stamp_t none[4] = {0};
    mp_model_share_t *shares[4];
    (void)mp_model_launch(program, &(mp_model_call_t){.number = i + 1, .traced = 700}, 4, ids, none,
                          shares);
  }
  mp_model_program_release(program, device_program);
}

static void run_program(reported_t *r, uint32_t launches) {
  run_text(r, k_program, launches);
}

static void expect_text(reported_t *r, const char *text, bool is_wanted) {
  mp_strbuf_t out;
  mp_strbuf_init(&out);
  assert_ok(mp_report_print(r->report, &out));
  if ((strstr(mp_strbuf_text(&out), text) != NULL) != is_wanted) {
    fail_msg("'%s' is%s in:\n%s", text, is_wanted ? " not" : "", mp_strbuf_text(&out));
  }
  mp_strbuf_deinit(&out);
}

static void numbers_are_readable(void **state) {
  (void)state;
  char out[MP_REPORT_NUMBER];
  assert_string_equal(mp_report_time(0, out), "0 ps");
  assert_string_equal(mp_report_time(999, out), "999 ps");
  assert_string_equal(mp_report_time(1234567, out), "1.23 us");
  assert_string_equal(mp_report_time(12345678900000, out), "12.3 s");
  assert_string_equal(mp_report_time(UINT64_MAX, out), "18446744 s");
  assert_string_equal(mp_report_scaled(262144, "B", out), "262 kB");
  assert_string_equal(mp_report_scaled(0, "flop", out), "0 flop");
  assert_string_equal(mp_report_share(1, 8, out), "12.5 %");
  assert_string_equal(mp_report_share(1, 0, out), "-");
}

static void programs_that_go_stay_in_the_table(void **state) {
  (void)state;
  reported_t r = report_begin(0, NULL);
  expect_text(&r, "launches 0", true);
  run_program(&r, 3);
  expect_text(&r, "launches 3, transfers 0", true);
  run_program(&r, 2);  // the same again is the same row
  expect_text(&r, "sum                            4        5  ", true);
  // Each way round go half of 2 * 3/4 MB: 750 us, and six latencies.
  expect_text(&r, "all_reduce                5   1.00 MB sync         756 us   756 us", true);
  expect_text(&r, "add                       20   2.00 MB", true);
  expect_text(&r, "memory", true);
  assert_true(mp_report_now(r.report) > 5 * (mp_moment_t)756000000);
  report_end(&r);
}

#define PRODUCT(result, left, right, place)                                         \
  "  %" result " = stablehlo.dot_general %" left ", %" right                        \
  ", contracting_dims = [1] x [0] : (tensor<512x512xf32>, tensor<512x512xf32>) -> " \
  "tensor<512x512xf32> loc(#" place ")\n"

// Two equal products of one line, as of two layers, and one of another line.
static const char k_lines[] =
    "module @lines {\n"
    "func.func @main(%x: tensor<512x512xf32>, %y: tensor<512x512xf32>) -> tensor<512x512xf32> {\n"
    PRODUCT("a", "x", "y", "one") PRODUCT("b", "a", "y", "again") PRODUCT("c", "b", "y", "other")
    "  return %c : tensor<512x512xf32>\n}\n}\n"
    "#file = loc(\"/opt/lib/python3.12/site-packages/flax/linear.py\":7:3)\n"
    "#one = loc(\"jit(f)/a/dot_general\"(#file))\n#again = loc(\"jit(f)/b/dot_general\"(#file))\n"
    "#train = loc(\"/home/me/train.py\":7:3)\n#other = loc(\"dot_general\"(#train))\n";

static void a_line_is_one_row(void **state) {
  (void)state;
  reported_t r = report_begin(0, NULL);
  run_text(&r, k_lines, 1);
  expect_text(&r, "dot_general                8   3.15 MB", true);  // of four devices
  expect_text(&r, "compute  flax/linear.py:7:3", true);
  expect_text(&r, "dot_general                4   3.15 MB", true);
  expect_text(&r, "compute  /home/me/train.py:7:3", true);
  expect_text(&r, "site-packages", false);
  report_end(&r);
}

// So many products, one after another.
static void run_products(reported_t *r, const char *name, uint32_t count, uint32_t launches) {
  static char text[8192];
  int size = snprintf(text, sizeof(text),
                      "module @%s {\nfunc.func @main(%%v0: tensor<512x512xf32>) -> "
                      "tensor<512x512xf32> {\n",
                      name);
  for (uint32_t i = 0; i < count; ++i) {
    size += snprintf(text + size, sizeof(text) - (size_t)size,
                     "  %%v%u = stablehlo.dot_general %%v%u, %%v%u, contracting_dims = [1] x [0] : "
                     "(tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>\n",
                     i + 1, i, i);
  }
  (void)snprintf(text + size, sizeof(text) - (size_t)size,
                 "  return %%v%u : tensor<512x512xf32>\n}\n}\n", count);
  run_text(r, text, launches);
}

static void short_programs_are_one_line(void **state) {
  (void)state;
  reported_t r = report_begin(0, NULL);
  run_products(&r, "step", 20, 20);
  run_products(&r, "cast", 1, 2);
  expect_text(&r, "\ncast   ", true);
  expect_text(&r, "other program", false);  // one alone has its own line
  run_products(&r, "init", 2, 1);
  expect_text(&r, "\nstep   ", true);
  expect_text(&r, "\n(2 other programs)                      3  1.08 ms", true);
  expect_text(&r, "\ncast", false);
  expect_text(&r, "\ninit", false);
  run_products(&r, "init", 2, 3);  // now more than one part in a hundred
  expect_text(&r, "\ninit   ", true);
  expect_text(&r, "\ncast   ", true);
  expect_text(&r, "other program", false);
  report_end(&r);
}

static const char k_choice[] =
    "module @choose {\n"
    "func.func @main(%i: tensor<i32>, %x: tensor<1000xf32>) -> tensor<1000xf32> {\n"
    "  %r = \"stablehlo.case\"(%i) ({\n    stablehlo.return %x : tensor<1000xf32>\n  }, {\n"
    "    %y = stablehlo.add %x, %x : tensor<1000xf32>\n"
    "    stablehlo.return %y : tensor<1000xf32>\n  }) : (tensor<i32>) -> tensor<1000xf32> "
    "loc(#loc)\n  return %r : tensor<1000xf32>\n}\n}\n"
    "#file = loc(\"train.py\":7:3)\n#loc = loc(\"cond\"(#file))\n";

// A program whose run guesses its branch, compiled, launched and released.
static void run_choice(reported_t *r, uint64_t choice) {
  mp_program_t *device_program = compile_text(k_choice);
  mp_model_program_t *program = NULL;
  mp_model_share_t *share = NULL;
  const uint32_t ids[] = {0};
  const mp_stamp_t none[] = {0};
  assert_ok(mp_model_program_create(r->model, device_program, 1, ids, &program));
  (void)mp_model_launch(program, &(mp_model_call_t){.number = 1}, 1, ids, none, &share);
  assert_non_null(share);
  mp_path_add(mp_model_share_path(share), 1, choice, 1);
  mp_model_share_end(share);
  mp_model_program_release(program, device_program);
}

static void guesses_are_reported(void **state) {
  (void)state;
  reported_t r = report_begin(0, NULL);
  run_choice(&r, 0);
  expect_text(&r, "guess", false);
  run_choice(&r, MP_PATH_GUESSED);
  run_choice(&r, MP_PATH_GUESSED);
  expect_text(&r, "guessed: 2 times, because the condition of a branch or loop was not computed",
              true);
  expect_text(&r, "branch 0 of 0 to 1, the largest         2  cond at train.py:7:3", true);
  report_end(&r);
}

static void too_many_programs_are_others(void **state) {
  (void)state;
  mp_arena_t *arena = NULL;
  mp_report_rows_t rows;
  assert_ok(mp_arena_create(&arena));
  assert_ok(mp_report_rows_init(arena, 4, &rows));
  for (uint64_t i = 0; i < 2 * MP_REPORT_PROGRAMS; ++i) {
    const mp_report_program_t row = {
        .name = "f", .key = i % 1500, .launches = 1, .link = MP_REPORT_NO_LINK};
    assert_ok(mp_report_rows_merge_one(&rows, &row));
  }
  assert_int_equal(rows.programs.count, MP_REPORT_PROGRAMS + 1);
  assert_int_equal(rows.programs.items[0].launches, 2);
  assert_int_equal(rows.programs.items[MP_REPORT_PROGRAMS].launches, 500);
  mp_arena_release(arena);
}

static void expect_json(reported_t *r, const char *text) {
  mp_strbuf_t out;
  mp_strbuf_init(&out);
  assert_ok(mp_report_print_json(r->report, &out));
  if (strstr(mp_strbuf_text(&out), text) == NULL) {
    fail_msg("'%s' is not in:\n%s", text, mp_strbuf_text(&out));
  }
  mp_strbuf_deinit(&out);
}

// Compiles a program, launches it from `count` places in turn, twice, and releases it. `places`
// NULL: from places that are all different.
static void run_from(reported_t *r, uint32_t count, const char *const *places) {
  mp_program_t *device_program = compile_text(k_program);
  mp_model_program_t *program = NULL;
  const uint32_t ids[] = {0, 1, 2, 3};
  assert_ok(mp_model_program_create(r->model, device_program, 4, ids, &program));
  for (uint32_t i = 0; i < 2 * count; ++i) {
    char text[32];
    (void)snprintf(text, sizeof(text), "layer%u", i % count);
    const mp_model_call_t call = {.number = i + 1,
                                  .caller = places == NULL ? text : places[i % count]};
    const mp_stamp_t none[4] = {0};
    mp_model_share_t *shares[4];
    (void)mp_model_launch(program, &call, 4, ids, none, shares);
  }
  mp_model_program_release(program, device_program);
}

static void launches_are_counted_by_place(void **state) {
  (void)state;
  static const char *const places[] = {"up at train.py:3", "down\x1b at train.py:4", "", NULL};
  static const char *const more[] = {"down\x1b at train.py:4", "head at train.py:9"};
  reported_t r = report_begin(0, NULL);
  run_from(&r, 4, places);
  expect_json(&r,
              "\"at\": \"up at train.py:3\", \"launches\": 2, \"runs\": 8, \"seconds\": 0.0015");
  run_from(&r, 2, more);  // the same program again
  expect_json(&r, "\"launches\": 12, \"runs\": 48, ");
  expect_json(&r, "\"at\": \"up at train.py:3\", \"launches\": 2, \"runs\": 8, ");
  expect_json(&r, "\"at\": \"down\\\\x1b at train.py:4\", \"launches\": 4, \"runs\": 16, ");
  expect_json(&r, "\"at\": \"head at train.py:9\", \"launches\": 2, \"runs\": 8, ");
  expect_text(&r, "  launched by                      launches     each   share  at\n", true);
  expect_text(&r, "  down\\x1b                                4   759 us  33.3 %  train.py:4\n",
              true);
  expect_text(&r, "  head                                    2   759 us  16.7 %  train.py:9\n",
              true);
  expect_text(&r, "  (no label)                              4   759 us  33.3 %\n", true);
  report_end(&r);
}

static void too_many_places_are_others(void **state) {
  (void)state;
  reported_t r = report_begin(0, NULL);
  run_from(&r, 1100, NULL);
  expect_json(&r, "\"at\": \"layer1022\", \"launches\": 2, ");
  expect_json(&r, "\"at\": \"(others)\", \"launches\": 154, ");
  expect_text(&r, "  (others)                             2184   759 us  99.3 %\n", true);
  report_end(&r);
}

static uint32_t g_launches;

static void count_launch(void *context, const mp_model_program_t *program, uint32_t device,
                         int64_t traced, mp_moment_t begin, mp_moment_t end) {
  (void)context, (void)program;
  assert_int_equal(traced, 700);
  assert_true(device < 4 && end > begin);
  g_launches += 1;
}

static void observers_come_and_go(void **state) {
  (void)state;
  reported_t r = report_begin(0, NULL);
  mp_model_observer_t observer = mp_watching_silent_observer();
  observer.on_launch = count_launch;
  g_launches = 0;
  run_program(&r, 1);
  assert_ok(mp_report_watch(r.report, &observer));
  assert_ok(mp_report_watch(r.report, &observer));
  run_program(&r, 2);
  assert_int_equal(g_launches, 2 * 2 * 4);
  mp_report_unwatch(r.report, &observer);
  run_program(&r, 1);
  assert_int_equal(g_launches, 2 * 2 * 4);
  for (int i = 0; i < 8; ++i) assert_ok(mp_report_watch(r.report, &observer));
  assert_status(mp_report_watch(r.report, &observer), MP_RESOURCE_EXHAUSTED, "8 observers");
  report_end(&r);
}

static char *read_bytes(const char *path, size_t *out_size) {
  static char text[1 << 20];
  FILE *file = fopen(path, "rb");
  if (file == NULL) fail_msg("%s is not there", path);
  *out_size = fread(text, 1, sizeof(text) - 1, file);
  text[*out_size] = '\0';
  fclose(file);
  return text;
}

static char *read_all(const char *path) {
  size_t size;
  return read_bytes(path, &size);
}

#define MESSAGE                                                                \
  "<{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, "       \
  "is_host_transfer = false, source_target_pairs = dense<[[0, 1], [2, 3]]> : " \
  "tensor<2x2xi64>}> : "

#define SEND(result, token)                                     \
  "  %" result " = \"stablehlo.send\"(%x, %" token ") " MESSAGE \
  "(tensor<1000xf32>, !stablehlo.token) -> !stablehlo.token\n"
#define RECEIVE(result, token)                                \
  "  %" result ":2 = \"stablehlo.recv\"(%" token ") " MESSAGE \
  "(!stablehlo.token) -> (tensor<1000xf32>, !stablehlo.token)\n"

// Device 0 sends two messages to device 1 and goes on, and 2 does to 3.
static const char k_messages[] =
    "module @talk attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {\n"
    "func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {\n"
    "  %t = stablehlo.create_token : !stablehlo.token\n" SEND("a", "t") SEND("b", "a")
        RECEIVE("c", "b") RECEIVE("d", "c#1")
    "  %r = stablehlo.add %c#0, %d#0 : tensor<1000xf32>\n"
    "  return %r : tensor<1000xf32>\n}\n}\n";

typedef struct {
  uint32_t sends[4], receives[4];
  mp_moment_t last[4];
} messages_t;

static void count_message(void *context, const mp_model_program_t *program,
                          const mp_model_message_t *message) {
  messages_t *messages = context;
  const uint32_t device = message->device;
  (void)program;
  assert_int_equal(message->other, message->is_send ? device + 1 : device - 1);
  assert_true(message->begin <= message->end && messages->last[device] <= message->begin);
  messages->last[device] = message->end;
  (message->is_send ? messages->sends : messages->receives)[device] += 1;
}

static uint32_t count_text(const char *text, size_t size, const char *word) {
  uint32_t count = 0;
  const size_t length = strlen(word);
  for (size_t i = 0; i + length <= size; ++i) count += memcmp(text + i, word, length) == 0;
  return count;
}

static void messages_are_delivered_in_order(void **state) {
  (void)state;
  char folder[] = "/tmp/minipod-report-XXXXXX", path[96];
  assert_non_null(mkdtemp(folder));
  const mp_named_value_t value = {
      .name = MP_STR("chakra"), .type = MP_VALUE_STRING, .string_value = mp_str(folder)};
  messages_t messages = {0};
  reported_t r = report_begin(1, &value);
  mp_model_observer_t observer = mp_watching_silent_observer();
  observer.on_message = count_message;
  observer.context = &messages;
  assert_ok(mp_report_watch(r.report, &observer));
  run_text(&r, k_messages, 3);
  (void)mp_report_now(r.report);  // computes what the log says
  mp_report_unwatch(r.report, &observer);
  report_end(&r);
  for (int i = 0; i < 4; ++i) {
    assert_int_equal(messages.sends[i], i % 2 == 0 ? 6 : 0);
    assert_int_equal(messages.receives[i], i % 2 == 0 ? 0 : 6);
    snprintf(path, sizeof(path), "%s/minipod.%d.et", folder, i);
    size_t size;
    const char *text = read_bytes(path, &size);
    assert_int_equal(count_text(text, size, "comm_tag"), 6);
    unlink(path);
  }
  snprintf(path, sizeof(path), "%s/comm_groups.json", folder);
  unlink(path);
  rmdir(folder);
}

static void files_are_whole(void **state) {
  (void)state;
  char folder[] = "/tmp/minipod-report-XXXXXX", trace[64], chakra[64], path[96];
  assert_non_null(mkdtemp(folder));
  snprintf(trace, sizeof(trace), "%s/t.json", folder);
  snprintf(chakra, sizeof(chakra), "%s/et", folder);
  const mp_named_value_t values[] = {
      {.name = MP_STR("trace"), .type = MP_VALUE_STRING, .string_value = mp_str(trace)},
      {.name = MP_STR("chakra"), .type = MP_VALUE_STRING, .string_value = mp_str(chakra)}};
  reported_t r = report_begin(2, values);
  run_program(&r, 2);
  report_end(&r);
  const char *text = read_all(trace);
  assert_non_null(strstr(text, "\"name\":\"all_reduce\""));
  assert_true(strncmp(text, "[\n{", 3) == 0 && strstr(text, "}}\n]\n") != NULL);
  snprintf(path, sizeof(path), "%s/comm_groups.json", chakra);
  assert_string_equal(read_all(path), "{\n  \"1\": [0, 1, 2, 3]\n}\n");
  unlink(path);
  for (int i = 0; i < 4; ++i) {
    snprintf(path, sizeof(path), "%s/minipod.%d.et", chakra, i);
    assert_true(strncmp(read_all(path),
                        "\x07\x0a\x05"
                        "0.0.4",
                        8) == 0);
    unlink(path);
  }
  unlink(trace);
  rmdir(chakra);
  rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_are_readable),
      cmocka_unit_test(programs_that_go_stay_in_the_table),
      cmocka_unit_test(a_line_is_one_row),
      cmocka_unit_test(short_programs_are_one_line),
      cmocka_unit_test(guesses_are_reported),
      cmocka_unit_test(launches_are_counted_by_place),
      cmocka_unit_test(too_many_places_are_others),
      cmocka_unit_test(too_many_programs_are_others),
      cmocka_unit_test(observers_come_and_go),
      cmocka_unit_test(messages_are_delivered_in_order),
      cmocka_unit_test(files_are_whole),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
