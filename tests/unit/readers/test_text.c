// The text reader: every form of every operation, defaults, aliases, errors with their places, and
// what malicious programs try. The printer is held to what the reader makes of its text.
#include "tests/unit/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/alloc.h"
#include "sim/ir/compare/module_equal.h"
#include "sim/ir/print/print_module.h"
#include "sim/readers/text/text.h"

static mp_module_t *read_text(const char *text) {
  mp_module_t *module = NULL;
  assert_ok(mp_read_text(text, strlen(text), &module));
  return module;
}

static void expect_error(const char *text, const char *message) {
  mp_module_t *module = NULL;
  mp_status_t status = mp_read_text(text, strlen(text), &module);
  if (status == NULL) fail_msg("accepted: %s", text);
  if (strstr(mp_status_message(status), message) == NULL)
    fail_msg("'%s' is not in: %s", message, mp_status_message(status));
  mp_status_release(status);
}

// The op of this kind that comes first in main.
static mp_op_t *find_op(mp_module_t *module, mp_opcode_t code) {
  for (mp_op_t *op = module->main->body->first; op != NULL; op = op->next)
    if (op->code == code) return op;
  fail_msg("no %s", mp_op_info(code)->name);
  return NULL;
}

static void check_prints(const mp_module_t *module, const char *name) {
  for (int i = 0; i < 4; ++i) {
    const mp_print_options_t options = {.generic = (i & 1) != 0, .locations = (i & 2) != 0};
    mp_strbuf_t text;
    mp_strbuf_init(&text);
    assert_ok(mp_module_print(module, &options, &text));
    mp_module_t *again = NULL;
    mp_status_t status = mp_read_text(mp_strbuf_text(&text), text.size, &again);
    if (status == NULL) status = mp_module_compare(module, again);
    if (status != NULL)
      print_error("%s: %s\n%s", name, mp_status_message(status), mp_strbuf_text(&text));
    assert_null(status);
    mp_module_release(again);
    mp_strbuf_deinit(&text);
  }
}

// ---- every operation in both forms ----

static char *read_fixture(const char *name) {
  char path[512];
  snprintf(path, sizeof(path), "%s/tests/fixtures/%s", MINIPOD_SOURCE_DIR, name);
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  size_t size = (size_t)ftell(file);
  rewind(file);
  char *text = malloc(size + 1);
  assert_non_null(text);
  assert_int_equal(fread(text, 1, size, file), size);
  text[size] = '\0';
  fclose(file);
  return text;
}

// `text` is "name\n<pretty>\n---\n<generic>"; it is cut in place.
static void check_forms(char *text) {
  char *pretty = strchr(text, '\n'), *generic = strstr(text, "\n---\n");
  assert_non_null(pretty);
  assert_non_null(generic);
  *pretty++ = *generic = '\0';
  generic += 5;
  mp_module_t *a = NULL, *b = NULL;
  mp_status_t status = mp_read_text(pretty, strlen(pretty), &a);
  if (status == NULL) status = mp_read_text(generic, strlen(generic), &b);
  if (status == NULL) status = mp_module_compare(a, b);
  if (status != NULL) print_error("%s: %s\n", text, mp_status_message(status));
  assert_null(status);
  check_prints(a, text);
  mp_module_release(a);
  mp_module_release(b);
}

static void test_forms(void **state) {
  (void)state;
  char *text = read_fixture("stablehlo_forms.txt");
  int count = 0;
  for (char *at = text, *next; at != NULL && *at != '\0'; at = next, count++) {
    assert_memory_equal(at, "=== ", 4);
    next = strstr(at + 4, "\n=== ");
    if (next != NULL) *next++ = '\0';
    check_forms(at + 4);
  }
  assert_true(count > 100);
  free(text);
}

// ---- what clients write by hand ----

static void test_bare_function(void **state) {
  (void)state;
  mp_module_t *module = read_text(
      "// a comment\n"
      "func.func public @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {\n"
      "  %0 = stablehlo.add %a, %b : tensor<4xf32>  return %0 : tensor<4xf32> }");
  assert_int_equal(module->num_replicas, 1);
  assert_true(mp_str_is(module->main->visibility, "public"));
  mp_op_t *add = find_op(module, MP_OP_ADD);
  assert_ptr_equal(add->operands[1], &module->main->body->args[1]);
  // An op that does not say where it is from is where it stands.
  assert_int_equal(add->loc->line, 3);
  assert_int_equal(add->loc->column, 8);
  mp_module_release(module);
}

// Other arrays than those of i64 and i1 are constants, as they are printed.
static void test_arrays(void **state) {
  (void)state;
  mp_module_t *module = read_text(
      "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
      "  %0 = \"stablehlo.negate\"(%a) <{a = array<i8: 1, 1>, b = array<f32: 1.0, 2.0>,\n"
      "    c = array<i32>, d = array<i16: 3>}> : (tensor<2xf32>) -> tensor<2xf32>\n"
      "  return %0 : tensor<2xf32> }");
  check_prints(module, "arrays");
  mp_module_release(module);
}

static void test_mhlo(void **state) {
  (void)state;
  mp_module_t *module = read_text(
      "module {\n"
      "func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
      "  %0 = \"mhlo.copy\"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>\n"
      "  %1 = mhlo.constant dense<2.0> : tensor<4xf32>\n"
      "  %2 = mhlo.add %0, %1 : tensor<4xf32>\n"
      "  %3 = mhlo.copy %2 : tensor<4xf32>\n"
      "  func.return %3 : tensor<4xf32>\n"
      "}}");
  mp_op_t *add = find_op(module, MP_OP_ADD);
  assert_ptr_equal(add->operands[0], &module->main->body->args[0]);
  assert_ptr_equal(find_op(module, MP_OP_RETURN)->operands[0], &add->results[0]);
  mp_module_release(module);
}

// Old attribute places, a return of another dialect, several names for results, named blocks.
static void test_old_generic(void **state) {
  (void)state;
  mp_module_t *module = read_text(
      "module @m attributes {stablehlo.num_replicas = 1, stablehlo.num_partitions = 8} {\n"
      "sdy.mesh @mesh = <[\"x\"=4, \"y\"=2], device_ids=[0, 1, 2, 3, 4, 5, 6, 7]>\n"
      "func.func @main(%a: tensor<8x4xf32> { sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {}]> "
      "},\n"
      "    %i: tensor<8xi32>) -> (tensor<8xf32> {jax.result_info = \"r\"}) {\n"
      "  %z = \"stablehlo.constant\"() { value = dense<0.0> : tensor<f32> } : () -> tensor<f32>\n"
      "  %r = \"stablehlo.reduce\"(%a, %z) ({\n"
      "    ^sum(%x: tensor<f32>, %y: tensor<f32>) :\n"
      "      %s = \"stablehlo.add\"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n"
      "      \"stablehlo.return\"(%s) : (tensor<f32>) -> ()\n"
      "  }) { dimensions = dense<[1]> : tensor<1xi64> } : (tensor<8x4xf32>, tensor<f32>) "
      "-> tensor<8xf32>\n"
      "  %k, %v = \"stablehlo.sort\"(%i, %r) ({\n"
      "    ^less(%p: tensor<i32>, %q: tensor<i32>, %m: tensor<f32>, %n: tensor<f32>):\n"
      "      %l = stablehlo.compare LT, %p, %q : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
      "      stablehlo.return %l : tensor<i1>\n"
      "  }) : (tensor<8xi32>, tensor<8xf32>) -> (tensor<8xi32>, tensor<8xf32>)\n"
      "  \"stablehlo.return\"(%v) : (tensor<8xf32>) -> ()\n"
      "}}");
  assert_int_equal(module->num_partitions, 8);
  assert_true(mp_str_is(module->name, "m"));
  mp_index_list_t dims = mp_op_ints(find_op(module, MP_OP_REDUCE), MP_ATTR_DIMENSIONS);
  assert_int_equal(dims.count, 1);
  assert_int_equal(dims.values[0], 1);
  mp_op_t *sort = find_op(module, MP_OP_SORT);
  assert_int_equal(mp_op_int(sort, MP_ATTR_DIMENSION, 7), -1);
  assert_non_null(mp_op_attr(sort, MP_ATTR_IS_STABLE));
  const mp_op_t *compare = sort->regions[0]->first;
  assert_int_equal(mp_op_enum(compare, MP_ATTR_COMPARE_TYPE, 77), MP_CMP_NOTYPE);
  const mp_attr_t *sharding = mp_attr_dict_get(module->main->arg_attrs[0], MP_ATTR_SDY_SHARDING);
  assert_non_null(sharding);
  assert_ptr_equal(sharding->u.sharding->mesh, module->meshes.items[0]);
  assert_int_equal(module->meshes.items[0]->num_device_ids, 8);
  check_prints(module, "old generic");
  mp_module_release(module);
}

static void test_structs(void **state) {
  (void)state;
  mp_module_t *module = read_text(
      "func.func @main(%a: tensor<8x4xf32>, %i: tensor<2x1xi32>) -> tensor<2x4xf32> {\n"
      "  %0 = \"stablehlo.gather\"(%a, %i) {dimension_numbers = #stablehlo.gather<"
      "index_vector_dim = 1, offset_dims = [1], collapsed_slice_dims = [0], "
      "start_index_map = [0],>, slice_sizes = dense<[1, 4]> : tensor<2xi64>} "
      ": (tensor<8x4xf32>, tensor<2x1xi32>) -> tensor<2x4xf32>\n"
      "  %1 = \"stablehlo.all_reduce\"(%0) ({\n"
      "    ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
      "      %s = stablehlo.add %x, %y : tensor<f32>\n"
      "      stablehlo.return %s : tensor<f32>\n"
      "  }) {channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, "
      "replica_groups = dense<0> : tensor<1x1xi64>, use_global_device_ids} "
      ": (tensor<2x4xf32>) -> tensor<2x4xf32>\n"
      "  return %1 : tensor<2x4xf32>\n"
      "}");
  mp_op_t *gather = find_op(module, MP_OP_GATHER);
  assert_int_equal(gather->num_attrs, 8);
  assert_int_equal(mp_op_int(gather, MP_ATTR_INDEX_VECTOR_DIM, 0), 1);
  assert_int_equal(mp_op_ints(gather, MP_ATTR_SLICE_SIZES).values[1], 4);
  assert_int_equal(mp_op_ints(gather, MP_ATTR_OPERAND_BATCHING_DIMS).count, 0);
  assert_false(mp_op_bool(gather, MP_ATTR_INDICES_ARE_SORTED, true));
  mp_op_t *reduce = find_op(module, MP_OP_ALL_REDUCE);
  assert_int_equal(mp_op_int(reduce, MP_ATTR_CHANNEL_ID, 0), 3);
  assert_null(mp_op_attr(reduce, MP_ATTR_CHANNEL_TYPE));
  assert_true(mp_op_bool(reduce, MP_ATTR_USE_GLOBAL_DEVICE_IDS, false));
  const mp_attr_t *groups = mp_op_attr(reduce, MP_ATTR_REPLICA_GROUPS);
  assert_int_equal(groups->kind, MP_KIND_INTS);
  assert_int_equal(groups->u.ints.rank, 2);
  mp_module_release(module);
}

static void test_aliases(void **state) {
  (void)state;
  mp_module_t *module = read_text(
      "!t = tensor<4xf32>\n"
      "#loc3 = loc(\"psum\"(#loc2))\n"
      "#v = dense<[1.0, 2.0, 3.0, 4.0]> : !t\n"
      "module {\n"
      "func.func @main(%a: !t loc(\"a\")) -> !t {\n"
      "  %0 = stablehlo.constant #v\n"
      "  %1 = stablehlo.add %a, %0 : !t loc(#loc3)\n"
      "  %2 = stablehlo.add %1, %0 : !t loc(callsite(\"f\"(\"x.py\":3:4 to :9) at unknown))\n"
      "  return %2 : !t loc(fused<\"m\">[\"b.py\":1:1, #loc2])\n"
      "} loc(#loc2)\n"
      "} loc(#loc2)\n"
      "#loc2 = loc(\"train.py\":12:7)\n");
  mp_op_t *add = find_op(module, MP_OP_ADD);
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_loc_describe(add->loc, &text);
  assert_string_equal(mp_strbuf_text(&text), "psum at train.py:12:7");
  assert_int_equal(add->next->loc->kind, MP_LOC_CALL_SITE);
  assert_int_equal(add->next->loc->children[0]->children[0]->end_column, 9);
  mp_strbuf_deinit(&text);
  mp_module_release(module);
}

// ---- constants ----

static const mp_attr_t *constant_of(mp_module_t **out_module, const char *text) {
  char program[1024];
  snprintf(program, sizeof(program), "func.func @main() { %%0 = stablehlo.constant %s return }",
           text);
  *out_module = read_text(program);
  return mp_op_attr((*out_module)->main->body->first, MP_ATTR_VALUE);
}

static void check_constant(const char *text, bool splat, size_t size, const void *bytes) {
  mp_module_t *module;
  const mp_attr_t *value = constant_of(&module, text);
  assert_int_equal(value->kind, MP_KIND_DENSE);
  assert_int_equal(value->u.dense.splat, splat);
  assert_int_equal(value->u.dense.size, size);
  if (size > 0) assert_memory_equal(value->u.dense.data, bytes, size);
  check_prints(module, text);
  mp_module_release(module);
}

static void test_constants(void **state) {
  (void)state;
  check_constant("dense<1.5> : tensor<1000000x1000000xf32>", true, 4, "\0\0\xC0\x3F");
  check_constant("dense<[1, 1]> : tensor<2xi8>", true, 1, "\1");
  check_constant("dense<[1, -1]> : tensor<2xi4>", false, 2, "\1\x0F");
  check_constant("dense<[true, false]> : tensor<2xi1>", false, 2, "\1\0");
  check_constant("dense<> : tensor<0x7xf32>", false, 0, NULL);
  check_constant("dense<[[], []]> : tensor<2x0xf32>", false, 0, NULL);
  check_constant("dense<0> : tensor<0x2xi64>", false, 0, NULL);
  check_constant("dense<\"0x0102\"> : tensor<2xui8>", false, 2, "\1\2");
  check_constant("dense<\"0x05\"> : tensor<200xui8>", true, 1, "\5");
  check_constant("dense<0x7FC00000> : tensor<f32>", false, 4, "\0\0\xC0\x7F");
  check_constant("dense<(1.0, -0.0)> : tensor<complex<f32>>", false, 8, "\0\0\x80\x3F\0\0\0\x80");
  check_constant("dense<[[1, 2], [3, 4]]> : tensor<2x2xui16>", false, 8, "\1\0\2\0\3\0\4\0");
  check_constant("dense<-9223372036854775808> : tensor<i64>", false, 8, "\0\0\0\0\0\0\0\x80");
  check_constant("dense<18446744073709551615> : tensor<ui64>", false, 8,
                 "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF");
  // Eight booleans to a byte, as older writers do.
  check_constant("dense<\"0x0502\"> : tensor<10xi1>", false, 10, "\1\0\1\0\0\0\0\0\0\1");
}

static void test_bad_constants(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"dense<[1, 2]> : tensor<3xi32>", "expected ','"},
      {"dense<[1, 2, 3, 4]> : tensor<3xi32>", "expected ']'"},
      {"dense<[[1], [2]]> : tensor<2xi32>", "expected an integer"},
      {"dense<300> : tensor<2xi8>", "does not fit into i8"},
      {"dense<-1> : tensor<2xui8>", "does not fit into ui8"},
      {"dense<\"0x01\"> : tensor<2xi32>", "1 bytes for 2 elements"},
      {"dense<\"0xZZ\"> : tensor<2xi8>", "not hexadecimal"},
      {"dense<\"01\"> : tensor<2xi8>", "expected \"0x...\""},
      {"dense<[1, 2]> : tensor<99999999999xi32>", "expected more elements"},
      {"dense<1> : tensor<?xi32>", "without fixed size"},
      {"dense<1> : tensor<4294967296x4294967296xi32>", "without fixed size"},
      {"dense<1", "expected '>'"},
      {"dense_resource<a> : tensor<2xf32>", "dense_resource<...> is not supported"},
      {"3 : i32", "expected a constant"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    char program[512];
    snprintf(program, sizeof(program), "func.func @main() { %%0 = stablehlo.constant %s return }",
             cases[i][0]);
    expect_error(program, cases[i][1]);
  }
}

// ---- errors ----

static void test_errors(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"", "no function 'main'"},
      {"module", "1:7: expected '{', found the end of the text"},
      {"func.func @main() {\n  %0 = stablehlo.nothing\n}",
       "2:8: the operation 'stablehlo.nothing'"},
      {"func.func @main(%a: tensor<f32>) {\n  %0 = stablehlo.add %a %a : tensor<f32>\n}",
       "2:25: expected ':', found '%a'"},
      {"func.func @main(%a: tensor<f32>) {\n %0 = stablehlo.abs %b : tensor<f32>\n}",
       "2:21: %b is not defined here"},
      {"func.func @main(%a: tensor<f32>) {\n %a = stablehlo.abs %a : tensor<f32>\n}",
       "2:2: %a is defined twice"},
      {"func.func @main(%a: tensor<f32>) {\n %0 = stablehlo.abs %a : tensor<f64>\n}",
       "operand 0 of stablehlo.abs was defined as tensor<f32>, here tensor<f64>"},
      {"func.func @main(%a: tensor<f32>) {\n %0:2 = stablehlo.abs %a : tensor<f32>\n}",
       "2:2: 2 results are named"},
      {"func.func @main(%a: tensor<f32>) {\n return %a#1 : tensor<f32>\n}", "%a has 1 values"},
      {"func.func @main() {\n stablehlo.gather\n}", "generic form only"},
      {"func.func @main() { return } func.func @main() { return }", "@main is defined twice"},
      {"func.func @main() { return loc(#loc1) }", "'#loc1' is not defined"},
      {"#a = #b\n#b = #a\nmodule attributes {x.a = #a} {}", "is defined by itself"},
      {"#a = 1\n#a = 2\n", "is defined twice"},
      {"module attributes {x.a = 1, x.a = 2} { func.func @main() { return } }",
       "'x.a' is given twice"},
      {"module attributes {mhlo.num_replicas = 0 : i32} {}", "not a positive integer"},
      {"func.func @main(%a: tensor<f32> {s.x = #sdy.sharding<@m, []>}) { return }",
       "1:54: the mesh @m is not defined"},
      {"sdy.mesh @m = <[]>\nsdy.mesh @m = <[]>\nfunc.func @main() { return }", "defined twice"},
      {"func.func @main() { \"unterminated", "a string without end"},
      {"func.func @main() { ^bb1: return }", "more than one block"},
      {"func.func @main(%a: tensor<0xxf32>) { return }", "expected an element type"},
      {"func.func @main(%a: tensor<99999999999999999999xf32>) { return }", "too large"},
      {"func.func @main(%a: !other.type) { return }", "'!other.type' is not known"},
      {"module attributes {x.a = #other.attr<1>} {}", "'#other.attr' is not known"},
      {"module attributes {x.a = \"\\q\"} {}", "unknown escape"},
      {"module attributes {x.a = 300 : i8} {}", "does not fit into i8"},
      {"func.func @main() {\n stablehlo.custom_call @f() {api_version = 4294967300 : i64} : () -> "
       "()\n}",
       "2:2: api_version has no value 4294967300"},
      {"func.func @main() {\n stablehlo.custom_call @f() {api_version = 9 : i32} : () -> ()\n}",
       "2:2: api_version has no value 9"},
      {"func.func @main() {\n stablehlo.custom_call @f() {api_version = -1 : i32} : () -> ()\n}",
       "2:2: api_version has no value -1"},
      {"func.func @f() { return }\nfunc.func @main() {\n stablehlo.composite \"a.b\" "
       "{decomposition = "
       "@f, version = 4294967297 : i64} : () -> ()\n}",
       "3:2: version is 4294967297, which does not fit into i32"},
      {"module {} module {}", "more than one module"},
      {"func.func @main() { }\n$", "2:1: expected a module or a function, found '$'"},
      {"func.func @f() { return }\nfunc.func @g() { return }", "no function 'main'"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
    expect_error(cases[i][0], cases[i][1]);
}

// ---- what malicious programs try ----

static char *repeat(const char *head, const char *part, int count, const char *tail) {
  size_t size = strlen(head) + strlen(part) * (size_t)count + strlen(tail) + 1;
  char *text = malloc(size);
  assert_non_null(text);
  strcpy(text, head);
  char *at = text + strlen(head);
  for (int i = 0; i < count; ++i, at += strlen(part)) memcpy(at, part, strlen(part));
  strcpy(at, tail);
  return text;
}

static void test_depth(void **state) {
  (void)state;
  static const char *const parts[][2] = {
      {"module attributes {x.a = ", "["},
      {"module attributes {x.a = ", "{a = "},
      {"module attributes {x.a = ", "(tuple<"},
      {"func.func @main() { return loc(", "\"a\"("},
      {"func.func @main(%p: tensor<i1>) {", "\"stablehlo.case\"(%p) ({"},
      {"func.func @main() { %0 = stablehlo.constant dense<[", "["},
  };
  for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); ++i) {
    char *text = repeat(parts[i][0], parts[i][1], 100000, "");
    mp_module_t *module = NULL;
    mp_status_t status = mp_read_text(text, strlen(text), &module);
    assert_non_null(status);
    mp_status_release(status);
    free(text);
  }
}

// Forty lines that would expand to 2^40 nodes, a list that would expand to 2^40 numbers.
static void test_expansion(void **state) {
  (void)state;
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_puts(&text, "#a0 = [1, 2]\n");
  for (int i = 1; i < 40; ++i) mp_strbuf_printf(&text, "#a%d = [#a%d, #a%d]\n", i, i - 1, i - 1);
  mp_strbuf_puts(&text, "module attributes {x.a = #a39} { func.func @main() { return } }");
  expect_error(mp_strbuf_text(&text), "the aliases expand to more");
  mp_strbuf_deinit(&text);
  expect_error(
      "func.func @main(%a: tensor<8xf32>) {\n"
      "  %0 = \"stablehlo.collective_permute\"(%a) {source_target_pairs = dense<0> : "
      "tensor<549755813888x2xi64>} : (tensor<8xf32>) -> tensor<8xf32>\n}",
      "too large for the program");
}

// Meshes are found by going through all of them, so that their number is limited.
static void test_many_meshes(void **state) {
  (void)state;
  for (int count = 1024; count <= 1025; ++count) {
    mp_strbuf_t text;
    mp_strbuf_init(&text);
    for (int i = 0; i < count; ++i) mp_strbuf_printf(&text, "sdy.mesh @m%d = <[\"x\"=2]>\n", i);
    mp_strbuf_puts(&text, "func.func @main() { return }");
    if (count == 1024)
      mp_module_release(read_text(mp_strbuf_text(&text)));
    else
      expect_error(mp_strbuf_text(&text), "1025:10: more than 1024 meshes");
    mp_strbuf_deinit(&text);
  }
}

static void test_cut_off(void **state) {
  (void)state;
  char *text = read_fixture("stablehlo_forms.txt");
  // Every prefix of a program of many forms; the reader must neither crash nor leak.
  char *start = strstr(text, "=== sdy.ops\n"), *end = strstr(start, "\n---\n");
  start = strchr(start, '\n') + 1;
  for (const char *cut = start; cut < end; cut += 3) {
    mp_module_t *module = NULL;
    mp_status_t status = mp_read_text(start, (size_t)(cut - start), &module);
    mp_status_release(status);
    mp_module_release(module);
  }
  free(text);
}

// Each allocation fails once; what was made until then is released (the sanitizers look).
static void test_out_of_memory(void **state) {
  (void)state;
  char *text = read_fixture("stablehlo_forms.txt");
  char *start = strchr(strstr(text, "=== sdy.ops\n"), '\n') + 1;
  size_t size = (size_t)(strstr(start, "\n---\n") - start);
  mp_status_t status;
  int failures = -1;
  do {
    mp_module_t *module = NULL;
    mp_strbuf_t printed;
    mp_strbuf_init(&printed);
    mp_alloc_fail_at(++failures + 1, 0);
    status = mp_read_text(start, size, &module);
    if (status == NULL) status = mp_module_print(module, NULL, &printed);
    mp_alloc_fail_at(0, 0);
    if (status != NULL) assert_int_equal(mp_status_code(status), MP_RESOURCE_EXHAUSTED);
    mp_strbuf_deinit(&printed);
    mp_module_release(module);
    mp_status_release(status);
  } while (status != NULL);
  assert_true(failures > 5);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_forms),     cmocka_unit_test(test_bare_function),
      cmocka_unit_test(test_mhlo),      cmocka_unit_test(test_old_generic),
      cmocka_unit_test(test_structs),   cmocka_unit_test(test_aliases),
      cmocka_unit_test(test_constants), cmocka_unit_test(test_bad_constants),
      cmocka_unit_test(test_errors),    cmocka_unit_test(test_depth),
      cmocka_unit_test(test_expansion), cmocka_unit_test(test_many_meshes),
      cmocka_unit_test(test_cut_off),   cmocka_unit_test(test_out_of_memory),
      cmocka_unit_test(test_arrays),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
