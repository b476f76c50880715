// The bytecode reader on captured programs, whole and damaged.
#include <sys/mman.h>

#include "sim/base/alloc.h"
#include "sim/ir/print/print_module.h"
#include "sim/ir/verify/verify.h"
#include "sim/readers/bytecode/bytecode.h"
#include "sim/readers/bytecode/bytecode_reader.h"
#include "tests/unit/support/fixtures.h"

static mp_module_t *read_fixture(const char *name) {
  fixture_t file = fixture_read(name);
  mp_module_t *module = NULL;
  assert_ok(mp_read_bytecode(file.data, file.size, &module));
  // The reader must not keep pointers into the caller's bytes.
  memset(file.data, 0xAA, file.size);
  free(file.data);
  return module;
}

// ---- the format's numbers ----

static mp_bc_cursor_t cursor(const uint8_t *data, size_t size) {
  return (mp_bc_cursor_t){data, data, data + size};
}

static void numbers_have_one_to_nine_bytes(void **state) {
  (void)state;
  static const struct {
    uint8_t bytes[9];
    size_t size;
    uint64_t value;
  } cases[] = {
      {{0x0D}, 1, 6},
      {{0x31}, 1, 24},
      {{0xFF}, 1, 127},
      {{0x02, 0x02}, 2, 128},
      {{0x04, 0x00, 0x02}, 3, 16384},
      {{0x80, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, 8, (UINT64_C(1) << 56) - 1},
      {{0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, 9, UINT64_MAX},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    mp_bc_cursor_t c = cursor(cases[i].bytes, cases[i].size);
    uint64_t value = 0;
    assert_ok(mp_bc_varint(&c, &value));
    assert_true(value == cases[i].value);
    assert_ok(mp_bc_finish(&c, "the test"));
    for (size_t cut = 0; cut < cases[i].size; ++cut) {
      c = cursor(cases[i].bytes, cut);
      assert_status(mp_bc_varint(&c, &value), MP_INVALID_ARGUMENT, "bytecode: offset 0: ");
    }
  }
}

static void signed_numbers_are_zigzag(void **state) {
  (void)state;
  static const uint8_t bytes[] = {0x01, 0x03, 0x05, 0x07};
  static const int64_t values[] = {0, -1, 1, -2};
  mp_bc_cursor_t c = cursor(bytes, sizeof(bytes));
  for (size_t i = 0; i < 4; ++i) {
    int64_t value = 0;
    assert_ok(mp_bc_svarint(&c, &value));
    assert_int_equal(value, values[i]);
  }
}

static void narrow_bits_are_a_byte_and_masked(void **state) {
  (void)state;
  static const uint8_t bytes[] = {0xFF, 0xFF, 0x03};
  mp_bc_cursor_t c = cursor(bytes, sizeof(bytes));
  uint64_t bits = 0;
  assert_ok(mp_bc_bits(&c, 4, &bits));
  assert_int_equal(bits, 0xF);
  assert_ok(mp_bc_bits(&c, 8, &bits));
  assert_int_equal(bits, 0xFF);
  assert_ok(mp_bc_bits(&c, 32, &bits));  // -1, cut to the type's bits
  assert_int_equal(bits, 0xFFFFFFFF);
}

// The module counts in 32 bits. A file that is larger than that could hold more.
static void counts_have_a_limit(void **state) {
  (void)state;
  const size_t size = (size_t)5 << 30;
  uint8_t *data = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  assert_true(data != MAP_FAILED);
  const mp_bc_cursor_t c = cursor(data, size);
  assert_ok(mp_bc_check_count(&c, INT32_MAX, "operations"));
  assert_status(mp_bc_check_count(&c, (uint64_t)INT32_MAX + 1, "operations"), MP_INVALID_ARGUMENT,
                "bytecode: offset 0: 2147483648 operations are more than the 2147483647 that");
  assert_status(mp_bc_check_count(&c, (UINT64_C(1) << 32) + 1, "operations"), MP_INVALID_ARGUMENT,
                "4294967297 operations");
  assert_status(mp_bc_check_count(&c, UINT64_MAX, "operations"), MP_INVALID_ARGUMENT, "do not fit");
  munmap(data, size);
}

// ---- the table of operations ----

static mp_attr_name_t attr_named(const char *text) {
  return mp_attr_name_from_text(mp_str(text));
}

static void check_row(char *line) {
  char *rest = NULL;
  const char *spelling = strtok_r(line, " ", &rest);
  strtok_r(NULL, " ", &rest);  // versions
  strtok_r(NULL, " ", &rest);
  const char *op = strtok_r(NULL, " ", &rest);
  const mp_bc_op_row_t *row = mp_bc_op_find(MP_BC_VHLO, mp_str(spelling));
  if (strcmp(spelling, "func_v1") == 0) {
    assert_null(row);
    return;
  }
  mp_opcode_t code = MP_OP_COUNT;
  assert_non_null(row);
  assert_true(mp_opcode_from_name(mp_str(op), &code));
  assert_int_equal(row->fields[0], code);
  const uint16_t *field = row->fields + 1;
  for (const char *attr; (attr = strtok_r(NULL, " ", &rest)) != NULL; ++field) {
    assert_int_equal(*field, attr_named(attr));
  }
  assert_int_equal(*field, 0);
}

static void table_is_the_list_of_operations(void **state) {
  (void)state;
  fixture_t list = fixture_read("vhlo_ops.txt");
  int count = 0;
  char *rest = NULL;
  for (char *line = strtok_r(list.data, "\n", &rest); line != NULL;
       line = strtok_r(NULL, "\n", &rest)) {
    if (line[0] == '#') continue;
    check_row(line);
    ++count;
  }
  assert_int_equal(count, 145);
  assert_null(mp_bc_op_find(MP_BC_VHLO, MP_STR("add_v2")));
  assert_null(mp_bc_op_find(MP_BC_VHLO, MP_STR("")));
  free(list.data);
}

// ---- whole programs ----

static void check_program(const char *path) {
  fixture_t file = fixture_read_path(path);
  mp_module_t *module = NULL;
  mp_status_t status = mp_read_bytecode(file.data, file.size, &module);
  if (status == NULL) status = mp_module_verify(module);
  if (status != NULL) fail_msg("%s: %s", path, mp_status_message(status));
  mp_module_release(module);
  free(file.data);
}

static void captured_programs_are_read_and_verify(void **state) {
  (void)state;
  fixture_programs(check_program);
}

static const mp_op_t *find_op(const mp_block_t *block, mp_opcode_t code) {
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    if (op->code == code) return op;
    for (uint32_t i = 0; i < op->num_regions; ++i) {
      const mp_op_t *found = find_op(op->regions[i], code);
      if (found != NULL) return found;
    }
  }
  return NULL;
}

static void shard_map_program_in_detail(void **state) {
  (void)state;
  mp_module_t *module = read_fixture("programs/shardmap_collectives_001.mlirbc");
  assert_int_equal(module->num_replicas, 1);
  assert_true(module->num_partitions > 1);
  assert_int_equal(module->meshes.count, 1);
  assert_true(mp_str_is(module->meshes.items[0]->name, "mesh"));
  const mp_op_t *manual = find_op(module->main->body, MP_OP_SDY_MANUAL_COMPUTATION);
  assert_non_null(manual);
  const mp_attr_t *in = mp_op_attr(manual, MP_ATTR_IN_SHARDINGS);
  assert_int_equal(in->kind, MP_KIND_SHARDINGS);
  // Shardings refer to the very mesh of the module.
  assert_ptr_equal(in->u.shardings.shardings[0].mesh, module->meshes.items[0]);
  const mp_attr_t *sharding = mp_attr_dict_get(module->main->arg_attrs[0], MP_ATTR_SDY_SHARDING);
  assert_non_null(sharding);
  assert_int_equal(sharding->kind, MP_KIND_SHARDING);
  mp_strbuf_t where;
  mp_strbuf_init(&where);
  mp_loc_describe(manual->loc, &where);
  assert_non_null(strstr(mp_strbuf_text(&where), "tests/fixtures/programs.py:"));
  mp_strbuf_deinit(&where);
  mp_module_release(module);
}

static void print_module(const char *name, mp_strbuf_t *out) {
  mp_module_t *module = read_fixture(name);
  mp_strbuf_init(out);
  assert_ok(mp_module_print(module, NULL, out));
  mp_module_release(module);
}

// One program written for five versions of StableHLO: bytecode versions 0, 1, 3, 4 and 6.
static void old_versions_read_the_same(void **state) {
  (void)state;
  static const char *const older[] = {"0_9_0", "0_11_0", "0_13_0", "0_14_0"};
  mp_strbuf_t newest;
  print_module("programs/conv_001.mlirbc", &newest);
  for (size_t i = 0; i < sizeof(older) / sizeof(older[0]); ++i) {
    char name[128];
    snprintf(name, sizeof(name), "programs/conv_001_stablehlo_%s.mlirbc", older[i]);
    mp_strbuf_t text;
    print_module(name, &text);
    assert_string_equal(mp_strbuf_text(&text), mp_strbuf_text(&newest));
    mp_strbuf_deinit(&text);
  }
  mp_strbuf_deinit(&newest);
}

// ---- damaged programs ----

static mp_status_t read_bytes(const char *data, size_t size) {
  mp_module_t *module = NULL;
  mp_status_t status = mp_read_bytecode(data, size, &module);
  if (status == NULL) mp_module_release(module);
  return status;
}

static void every_truncation_is_an_error(void **state) {
  (void)state;
  fixture_t file = fixture_read("programs/shardmap_collectives_001.mlirbc");
  for (size_t size = 0; size < file.size; ++size) {
    // A copy of just this size, so that sanitizers see every read past it.
    char *copy = malloc(size + 1);
    assert_non_null(copy);
    memcpy(copy, file.data, size);
    copy = realloc(copy, size == 0 ? 1 : size);
    assert_status(read_bytes(copy, size), MP_INVALID_ARGUMENT, "bytecode: offset ");
    free(copy);
  }
  free(file.data);
}

// Whatever a changed byte does, it is an error with a text, or a program; there are many of either.
static void changed_bytes_do_no_harm(void **state) {
  (void)state;
  static const uint8_t values[] = {0x00, 0x01, 0x03, 0x7F, 0x80, 0xFF};
  fixture_t file = fixture_read("programs/control_002.mlirbc");
  size_t accepted = 0, refused = 0;
  for (size_t at = 0; at < file.size; ++at) {
    char before = file.data[at];
    for (size_t i = 0; i < sizeof(values); ++i) {
      file.data[at] = (char)values[i];
      mp_module_t *module = NULL;
      mp_status_t status = mp_read_bytecode(file.data, file.size, &module);
      assert_int_equal(status == NULL, module != NULL);
      if (status == NULL) status = mp_module_verify(module);
      *(status == NULL ? &accepted : &refused) += 1;
      if (status != NULL) assert_true(strlen(mp_status_message(status)) > 0);
      mp_status_release(status);
      mp_module_release(module);
    }
    file.data[at] = before;
  }
  assert_true(accepted > file.size / 10 && refused > file.size / 10);
  free(file.data);
}

static void container_faults_are_named(void **state) {
  (void)state;
  assert_status(read_bytes("", 0), MP_INVALID_ARGUMENT, "offset 0: not bytecode");
  assert_status(read_bytes("ML\xEFRx", 4), MP_INVALID_ARGUMENT, "offset 4: the data end");
  assert_status(read_bytes("ML\xEFR\x0Fx", 7), MP_UNIMPLEMENTED, "bytecode version 7 is newer");
  assert_status(read_bytes("ML\xEFR\x0Dx", 6), MP_INVALID_ARGUMENT, "offset 5: a text has no end");
  static const char empty[] = "ML\xEFR\x0Dx";
  assert_status(read_bytes(empty, 7), MP_INVALID_ARGUMENT, "section 0 is missing");
  static const char unknown[] = "ML\xEFR\x0Dx\0\x09\x01";
  assert_status(read_bytes(unknown, 9), MP_INVALID_ARGUMENT, "offset 7: there is no section 9");
  static const char twice[] = "ML\xEFR\x0Dx\0\x00\x01\x00\x01";
  assert_status(read_bytes(twice, 11), MP_INVALID_ARGUMENT, "offset 9: section 0 comes twice");
  static const char large[] = "ML\xEFR\x0Dx\0\x00\xFF";
  assert_status(read_bytes(large, 9), MP_INVALID_ARGUMENT, "127 bytes are announced, 0 are left");
}

// Reading and verifying with the n-th allocation failing, for every n.
static void every_failed_allocation_is_survived(void **state) {
  (void)state;
  fixture_t file = fixture_read("programs/shardmap_collectives_001.mlirbc");
  bool failed = true;
  int failures = -1;
  for (int n = 1; failed; ++n, ++failures) {
    mp_module_t *module = NULL;
    mp_alloc_fail_at(n, 1);
    mp_status_t status = mp_read_bytecode(file.data, file.size, &module);
    if (status == NULL) status = mp_module_verify(module);
    mp_alloc_fail_at(0, 0);
    failed = status != NULL;
    if (failed) assert_int_equal(mp_status_code(status), MP_RESOURCE_EXHAUSTED);
    mp_status_release(status);
    mp_module_release(module);
  }
  assert_true(failures > 5);
  free(file.data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_have_one_to_nine_bytes),
      cmocka_unit_test(signed_numbers_are_zigzag),
      cmocka_unit_test(narrow_bits_are_a_byte_and_masked),
      cmocka_unit_test(counts_have_a_limit),
      cmocka_unit_test(table_is_the_list_of_operations),
      cmocka_unit_test(captured_programs_are_read_and_verify),
      cmocka_unit_test(shard_map_program_in_detail),
      cmocka_unit_test(old_versions_read_the_same),
      cmocka_unit_test(every_truncation_is_an_error),
      cmocka_unit_test(changed_bytes_do_no_harm),
      cmocka_unit_test(container_faults_are_named),
      cmocka_unit_test(every_failed_allocation_is_survived),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
