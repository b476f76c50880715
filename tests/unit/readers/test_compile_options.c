// The compile options reader.
#include "sim/base/proto.h"
#include "sim/readers/options/compile_options.h"
#include "sim/readers/options/libtpu_options.h"
#include "tests/unit/support/fixtures.h"

typedef struct {
  mp_arena_t *arena;
  mp_compile_options_t options;
} read_t;
static bool g_is_tpu;  // for the next reads

static mp_status_t read_bytes(read_t *r, const void *data, size_t size) {
  assert_ok(mp_arena_create(&r->arena));
  return mp_compile_options_read(data, size, g_is_tpu, r->arena, &r->options);
}

static mp_status_t read_buffer(read_t *r, mp_strbuf_t *message) {
  assert_ok(mp_strbuf_status(message));
  mp_status_t status = read_bytes(r, mp_strbuf_text(message), message->size);
  mp_strbuf_deinit(message);
  return status;
}

// Options with these build options, which are released.
static mp_status_t read_build(read_t *r, mp_strbuf_t *build) {
  mp_strbuf_t message;
  mp_strbuf_init(&message);
  mp_proto_put_message(&message, 3, build);
  mp_strbuf_deinit(build);
  return read_buffer(r, &message);
}

static void put_assignment(mp_strbuf_t *build, int64_t replicas, int64_t partitions, int64_t rows,
                           const int64_t *ids) {
  mp_strbuf_t assignment;
  mp_strbuf_init(&assignment);
  mp_proto_put_varint(&assignment, 1, (uint64_t)replicas);
  mp_proto_put_varint(&assignment, 2, (uint64_t)partitions);
  for (int64_t row = 0; row < rows; ++row) {
    mp_strbuf_t devices;
    mp_strbuf_init(&devices);
    mp_proto_put_packed(&devices, 1, ids + row * replicas, (size_t)replicas);
    mp_proto_put_message(&assignment, 3, &devices);
    mp_strbuf_deinit(&devices);
  }
  mp_proto_put_message(build, 9, &assignment);
  mp_strbuf_deinit(&assignment);
}

static void nothing_is_all_defaults(void **state) {
  (void)state;
  read_t r;
  assert_ok(read_bytes(&r, NULL, 0));
  assert_int_equal(r.options.num_replicas, 0);
  assert_int_equal(r.options.device_ordinal, -1);
  assert_null(r.options.assignment);
  assert_false(mp_flag_list_at(r.options.propagate_to_output, 0));
  mp_arena_release(r.arena);
}

// What JAX sends for a program on four devices.
static void captured_message(void **state) {
  (void)state;
  fixture_t file = fixture_read("compile_options/four_devices.pb");
  read_t r;
  assert_ok(read_bytes(&r, file.data, file.size));
  free(file.data);
  assert_int_equal(r.options.num_replicas, 1);
  assert_int_equal(r.options.num_partitions, 4);
  for (uint32_t i = 0; i < 4; ++i) assert_int_equal(r.options.assignment[i], i);
  assert_true(r.options.use_spmd_partitioning && r.options.use_shardy_partitioner);
  assert_int_equal(r.options.profile_version, -1);
  mp_arena_release(r.arena);
}

static void assignment_is_by_replica_then_partition(void **state) {
  (void)state;
  static const int64_t ids[] = {10, 11, 20, 21, 30, 31};  // three partitions of two replicas
  mp_strbuf_t build;
  mp_strbuf_init(&build);
  mp_proto_put_varint(&build, 1, (uint64_t)-1);
  mp_proto_put_varint(&build, 4, 2);
  mp_proto_put_varint(&build, 5, 3);
  mp_proto_put_varint(&build, 6, 1);
  mp_proto_put_varint(&build, 19, 1);
  put_assignment(&build, 2, 3, 3, ids);
  static const int64_t flags[] = {1, 0, 1};
  mp_proto_put_packed(&build, 18, flags, 3);
  mp_proto_put_varint(&build, 12, 1);
  read_t r;
  assert_ok(read_build(&r, &build));
  static const uint32_t expected[] = {10, 20, 30, 11, 21, 31};
  for (size_t i = 0; i < 6; ++i) assert_int_equal(r.options.assignment[i], expected[i]);
  assert_int_equal(r.options.device_ordinal, -1);
  assert_true(r.options.use_spmd_partitioning && r.options.use_shardy_partitioner);
  assert_true(mp_flag_list_at(r.options.propagate_to_output, 17));  // one for all
  assert_int_equal(r.options.propagate_to_parameters.count, 3);
  assert_false(mp_flag_list_at(r.options.propagate_to_parameters, 1));
  assert_true(mp_flag_list_at(r.options.propagate_to_parameters, 2));
  mp_arena_release(r.arena);
}

static void unpacked_flags_in_two_messages_are_joined(void **state) {
  (void)state;
  mp_strbuf_t message, build;
  mp_strbuf_init(&message);
  for (int i = 0; i < 2; ++i) {
    mp_strbuf_init(&build);
    for (int j = 0; j < 5; ++j) mp_proto_put_varint(&build, 12, (uint64_t)(j & 1));
    mp_proto_put_message(&message, 3, &build);
    mp_strbuf_deinit(&build);
  }
  read_t r;
  assert_ok(read_buffer(&r, &message));
  assert_int_equal(r.options.propagate_to_output.count, 10);
  for (uint32_t i = 0; i < 10; ++i) {
    assert_int_equal(r.options.propagate_to_output.items[i], i % 5 & 1);
  }
  mp_arena_release(r.arena);
}

static void bad_assignments_are_refused(void **state) {
  (void)state;
  static const struct {
    int64_t replicas, partitions, rows, num_replicas, num_partitions;
    const char *text;
  } cases[] = {
      {1, 2, 2, 1, 3, "requested are 1 replicas of 3 partitions"},
      {1, 2, 1, 1, 2, "has 1 rows for 2 computations"},
      {1, 2, 3, 1, 2, "more rows than its 2 computations"},
      {1 << 20, 1 << 20, 0, 1, 1, "computations in"},
      {0, 0, 0, 1, 1, "has 0 replicas"},
  };
  static const int64_t ids[16] = {0};
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    mp_strbuf_t build;
    mp_strbuf_init(&build);
    mp_proto_put_varint(&build, 4, (uint64_t)cases[i].num_replicas);
    mp_proto_put_varint(&build, 5, (uint64_t)cases[i].num_partitions);
    put_assignment(&build, cases[i].replicas, cases[i].partitions, cases[i].rows, ids);
    read_t r;
    assert_status(read_build(&r, &build), MP_INVALID_ARGUMENT, cases[i].text);
    mp_arena_release(r.arena);
  }
}

// ---- named options ----

static mp_status_t read_named(const char *name, uint32_t field, uint64_t number, const char *text) {
  mp_strbuf_t message, entry, value;
  mp_strbuf_init(&message);
  mp_strbuf_init(&entry);
  mp_strbuf_init(&value);
  if (text != NULL) {
    mp_proto_put_bytes(&value, 1, mp_str(text));
  } else if (field == 4) {
    mp_proto_put_double(&value, 4, (double)number / 2);
  } else {
    mp_proto_put_varint(&value, field, number);
  }
  mp_proto_put_bytes(&entry, 1, mp_str(name));
  mp_proto_put_message(&entry, 2, &value);
  mp_proto_put_message(&message, 7, &entry);
  mp_strbuf_deinit(&entry);
  mp_strbuf_deinit(&value);
  read_t r;
  mp_status_t status = read_buffer(&r, &message);
  mp_arena_release(r.arena);
  return status;
}

static void libtpus_options_are_known_on_tpus(void **state) {
  (void)state;
  enum { BOOL = 2, INT = 3 };
  assert_status(read_named("xla_tpu_scoped_vmem_limit_kib", INT, 1, NULL), MP_INVALID_ARGUMENT,
                "No such compile option: 'xla_tpu_scoped_vmem_limit_kib'");
  g_is_tpu = true;
  assert_ok(read_named("xla_tpu_scoped_vmem_limit_kib", INT, 98304, NULL));
  assert_ok(read_named("xla_tpu_enable_async_collective_fusion", 0, 0, "true"));
  assert_ok(read_named("xla_jf_conv_output_fusion", BOOL, 1, NULL));
  assert_status(read_named("xla_tpus", BOOL, 1, NULL), MP_INVALID_ARGUMENT,
                "No such compile option: 'xla_tpus'");
  assert_status(read_named("xla_embed_ir_in_executable", 0, 0, "never"), MP_INVALID_ARGUMENT,
                "not a valid bool value");
  g_is_tpu = false;
}

static void named_options_are_known_or_refused_by_name(void **state) {
  (void)state;
  enum { BOOL = 2, INT = 3, DOUBLE = 4 };
  assert_ok(read_named("xla_embed_ir_in_executable", BOOL, 1, NULL));
  assert_ok(read_named("xla_embed_ir_in_executable", 0, 0, "True"));
  assert_ok(read_named("xla_dump_max_hlo_modules", INT, 200, NULL));
  assert_ok(read_named("xla_gpu_auto_spmd_partitioning_memory_budget_ratio", DOUBLE, 1, NULL));
  assert_ok(read_named("xla_disable_hlo_passes", 0, 0, "algsimp"));
  assert_status(read_named("invalid_key", 0, 0, "invalid_value"), MP_INVALID_ARGUMENT,
                "No such compile option: 'invalid_key'");
  assert_status(read_named("xla_embed_ir_in_executable", 0, 0, "invalid_value"),
                MP_INVALID_ARGUMENT,
                "While setting option xla_embed_ir_in_executable, 'invalid_value' is not a valid "
                "bool value.");
  assert_status(read_named("xla_dump_max_hlo_modules", DOUBLE, 3, NULL), MP_INVALID_ARGUMENT,
                "'1.5' is not a valid int value.");
}

// ---- layouts and what cannot be honoured ----

static mp_status_t read_layout(const int64_t *minor_to_major, size_t rank, bool tuple) {
  mp_strbuf_t message, shape, layout, outer;
  mp_strbuf_init(&message);
  mp_strbuf_init(&shape);
  mp_strbuf_init(&layout);
  mp_strbuf_init(&outer);
  mp_proto_put_packed(&layout, 1, minor_to_major, rank);
  mp_proto_put_message(&shape, 5, &layout);
  mp_proto_put_message(&outer, 4, &shape);
  mp_proto_put_message(&message, 1, tuple ? &outer : &shape);
  mp_strbuf_deinit(&outer);
  mp_strbuf_deinit(&layout);
  mp_strbuf_deinit(&shape);
  read_t r;
  mp_status_t status = read_buffer(&r, &message);
  mp_arena_release(r.arena);
  return status;
}

static void layouts_must_be_row_major(void **state) {
  (void)state;
  static const int64_t row_major[] = {2, 1, 0}, column_major[] = {0, 1, 2};
  assert_ok(read_layout(row_major, 3, false));
  assert_ok(read_layout(row_major, 3, true));
  assert_status(read_layout(column_major, 3, false), MP_UNIMPLEMENTED,
                "argument_layouts has a layout that is not row-major");
  assert_status(read_layout(column_major, 3, true), MP_UNIMPLEMENTED, "not row-major");
}

static void what_cannot_be_honoured_is_refused(void **state) {
  (void)state;
  mp_strbuf_t message;
  read_t r;
  mp_strbuf_init(&message);
  mp_proto_put_varint(&message, 2, 1);
  assert_ok(read_buffer(&r, &message));  // the compiler decides, not the reader
  assert_true(r.options.is_tupled);
  mp_arena_release(r.arena);
  mp_strbuf_t build;
  mp_strbuf_init(&build);
  mp_proto_put_varint(&build, 7, 1);
  assert_status(read_build(&r, &build), MP_UNIMPLEMENTED, "use_auto_spmd_partitioning");
  mp_arena_release(r.arena);
}

static void damaged_messages_name_the_offset(void **state) {
  (void)state;
  read_t r;
  static const char cut[] = "\x1a\x05\x20";
  assert_status(read_bytes(&r, cut, 3), MP_INVALID_ARGUMENT,
                "CompileOptionsProto: field 3 at byte 0");
  mp_arena_release(r.arena);
  static const char inner[] = "\x1a\x02\x20\x80";
  assert_status(read_bytes(&r, inner, 4), MP_INVALID_ARGUMENT,
                "ExecutableBuildOptionsProto: field 4 at byte 2");
  mp_arena_release(r.arena);
}

static void a_flag_gives_kernels_vmem(void **state) {
  (void)state;
  const char *flag = "xla_tpu_scoped_vmem_limit_kib";
  char text[256];
  snprintf(text, sizeof(text), " --a=1 --%s=32 -%s=48 --b", flag, flag);
  assert_int_equal(mp_libtpu_scoped_vmem(mp_str(text)), 48 << 10);
  static const char *const wrong[] = {"", "=", "=-1", "=0", "=1MiB", "=99999999999"};
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
    snprintf(text, sizeof(text), "--%s%s", flag, wrong[i]);
    assert_int_equal(mp_libtpu_scoped_vmem(mp_str(text)), 0);
  }
  assert_int_equal(mp_libtpu_scoped_vmem(MP_STR("--xla_tpu_scoped_vmem_limit=32")), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_flag_gives_kernels_vmem),
      cmocka_unit_test(nothing_is_all_defaults),
      cmocka_unit_test(captured_message),
      cmocka_unit_test(assignment_is_by_replica_then_partition),
      cmocka_unit_test(unpacked_flags_in_two_messages_are_joined),
      cmocka_unit_test(bad_assignments_are_refused),
      cmocka_unit_test(named_options_are_known_or_refused_by_name),
      cmocka_unit_test(libtpus_options_are_known_on_tpus),
      cmocka_unit_test(layouts_must_be_row_major),
      cmocka_unit_test(what_cannot_be_honoured_is_refused),
      cmocka_unit_test(damaged_messages_name_the_offset),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
