// Kernels as JAX writes them: the bytecode of a backend_config and MLIR's text of it give the same
// module, which the verifier accepts; and what is left of a module after bytes of it were changed,
// cut off, or an allocation failed, does no harm.
#include "tests/unit/support/fixtures.h"
#include "tests/unit/support/unit.h"

#include "sim/base/alloc.h"
#include "sim/mosaic/read/mosaic_call.h"
#include "sim/mosaic/read/mosaic_reader.h"

static const char *const g_kernels[] = {"add",     "branches", "copies",   "masks",  "matmul",
                                        "moves",   "narrow",   "prefetch", "random", "remote",
                                        "softmax", "windows",  "maps"};
enum { NUM_KERNELS = sizeof(g_kernels) / sizeof(g_kernels[0]) };

static fixture_t read_kernel(const char *name, const char *ending) {
  char path[100];
  snprintf(path, sizeof(path), "mosaic/%s.%s", name, ending);
  return fixture_read(path);
}

static mp_mosaic_call_t read_call(const char *name) {
  fixture_t file = read_kernel(name, "json");
  mp_mosaic_call_t call = {0};
  assert_ok(mp_mosaic_read_call((mp_str_t){file.data, file.size}, &call));
  free(file.data);
  return call;
}

static void expect_same_text(const mp_mosaic_module_t *a, const mp_mosaic_module_t *b) {
  mp_strbuf_t first, second;
  mp_strbuf_init(&first);
  mp_strbuf_init(&second);
  mp_mosaic_print(a, &first);
  mp_mosaic_print(b, &second);
  assert_string_equal(mp_strbuf_text(&first), mp_strbuf_text(&second));
  mp_strbuf_deinit(&first);
  mp_strbuf_deinit(&second);
}

static void bytecode_and_text_are_one_module(void **state) {
  (void)state;
  for (int i = 0; i < NUM_KERNELS; ++i) {
    fixture_t file = read_kernel(g_kernels[i], "txt");
    mp_mosaic_call_t call = read_call(g_kernels[i]);
    mp_mosaic_module_t *module = NULL;
    assert_ok(mp_mosaic_read(file.data, file.size, &module));
    assert_ok(mp_mosaic_verify(module));
    assert_ok(mp_mosaic_verify(call.module));
    assert_non_null(mp_mosaic_find_func(module, mp_str(g_kernels[i])));
    expect_same_text(module, call.module);
    mp_mosaic_module_release(module);
    mp_mosaic_module_release(call.module);
    free(file.data);
  }
}

static void fields_of_calls(void **state) {
  (void)state;
  mp_mosaic_call_t call = read_call("matmul");
  assert_true(call.has_cost && call.flops == 1000 && call.transcendentals == 7 &&
              call.bytes_accessed == 300 && call.remote_bytes == 0);
  assert_int_equal(call.vmem_limit_bytes, 8 << 20);
  assert_true(!call.has_communication && call.collective_id == -1 && call.num_cores == 1);
  mp_mosaic_module_release(call.module);
  call = read_call("remote");
  assert_true(call.has_communication && call.collective_id == 3 && !call.has_cost);
  // The locations of ops come with the bytecode.
  const mp_mosaic_op_t *op = call.module->funcs.first->body->first;
  assert_status(mp_mosaic_op_error(op, MP_UNIMPLEMENTED, "no"), MP_UNIMPLEMENTED,
                "no [tpu.device_id, axis_index");
  mp_mosaic_module_release(call.module);
}

// The first op of this kind in a block or its regions.
static const mp_mosaic_op_t *find_op(const mp_mosaic_block_t *block, mp_mosaic_opcode_t code) {
  for (const mp_mosaic_op_t *op = block->first; op != NULL; op = op->next) {
    if (op->code == code) return op;
    for (uint32_t i = 0; i < op->num_regions; ++i) {
      const mp_mosaic_op_t *found = find_op(op->regions[i], code);
      if (found != NULL) return found;
    }
  }
  return NULL;
}

// JAX 0.12 stores them beside the module.
static void locations_beside_the_module(void **state) {
  (void)state;
  static const struct {
    mp_mosaic_opcode_t code;
    const char *message;
  } expected[] = {{MP_MOSAIC_SIN, "no [math.sin, sin: at locations.py:19:13 (body)]"},
                  {MP_MOSAIC_FOR, "locations.py:21:"},
                  {MP_MOSAIC_TPU_VECTOR_STORE, "locations.py:19:4 (body)]"}};
  mp_mosaic_call_t call = read_call("locations");
  const mp_mosaic_func_t *func = mp_mosaic_find_kernel(call.module);
  for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); ++i) {
    const mp_mosaic_op_t *op = find_op(func->body, expected[i].code);
    assert_non_null(op);
    assert_status(mp_mosaic_op_error(op, MP_UNIMPLEMENTED, "no"), MP_UNIMPLEMENTED,
                  expected[i].message);
  }
  mp_mosaic_module_release(call.module);
}

static void calls_that_are_wrong(void **state) {
  (void)state;
  mp_mosaic_call_t call = {0};
  static const struct {
    const char *text, *message;
    mp_status_code_t code;
  } cases[] = {
      {"{", "JSON: 1:2", MP_INVALID_ARGUMENT},
      {"{}", "no custom_call_config", MP_INVALID_ARGUMENT},
      {"{\"custom_call_config\": {}}", "no body", MP_INVALID_ARGUMENT},
      {"{\"custom_call_config\": {\"body\": \"abc\"}}", "not base64", MP_INVALID_ARGUMENT},
      {"{\"custom_call_config\": {\"body\": \"ab_=\"}}", "not base64", MP_INVALID_ARGUMENT},
      {"{\"custom_call_config\": {\"body\": \"\"}}", "expected a module", MP_INVALID_ARGUMENT},
      {"{\"custom_call_config\": {\"body\": \"\", \"collective_id\": \"x\"}}",
       "collective_id is not a number", MP_INVALID_ARGUMENT},
      {"{\"custom_call_config\": {\"body\": \"\"}, \"device_type\": \"DEVICE_TYPE_SPARSECORE\"}",
       "a kernel for DEVICE_TYPE_SPARSECORE", MP_UNIMPLEMENTED},
      // "module { }", with the commas that TorchTPU writes after last items, reads.
      {"{\"custom_call_config\": {\"body\": \"bW9kdWxlIHsgfQ==\",},}", NULL, MP_OK},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    mp_status_t status = mp_mosaic_read_call(mp_str(cases[i].text), &call);
    if (cases[i].message == NULL) {
      assert_ok(status);
      mp_mosaic_module_release(call.module);
    } else {
      assert_status(status, cases[i].code, cases[i].message);
    }
  }
}

// ---- the verifier ----

// Replaces `from`, which must be in the text, by `to`, and expects the verifier's error.
static void expect_refused(const char *kernel, const char *from, const char *to,
                           const char *message) {
  fixture_t file = read_kernel(kernel, "txt");
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  const char *at = strstr(file.data, from);
  if (at == NULL) fail_msg("'%s' is not in %s", from, kernel);
  mp_strbuf_printf(&text, "%.*s%s%s", (int)(at - file.data), file.data, to, at + strlen(from));
  mp_mosaic_module_t *module = NULL;
  assert_ok(mp_mosaic_read(text.data, text.size, &module));
  assert_status(mp_mosaic_verify(module), MP_INVALID_ARGUMENT, message);
  mp_mosaic_module_release(module);
  mp_strbuf_deinit(&text);
  free(file.data);
}

static void modules_that_are_wrong(void **state) {
  (void)state;
  static const struct {
    const char *kernel, *from, *to, *message;
  } cases[] = {
      {"add", "arith.addf", "arith.addi", "not of one integer type [arith.addi"},
      {"add", "arith.addf", "arith.negf", "it has 2 operands, not 1 [arith.negf"},
      {"add", "\"stable_mosaic.func.return\"() : () -> ()", "", "does not return"},
      {"add", "Sizes = array<i32: 1, 1, 2, 0>", "Sizes = array<i32: 1, 1, 1, 0>", "add up to 3"},
      {"add", "izes = array<i32: 1, 1, 2, 0>", "izes = array<i32: 2, 1, 1, 0>", "Sizes[0] is 2"},
      {"softmax", "reduction_dims = array<i64: 1>", "reduction_dims = array<i64: 2>",
       "dimension 2"},
      {"softmax", "#vector.kind<maximumf>", "#vector.kind<maxui>", "'maxui' is not one for f32"},
      {"softmax", "dimensions = array<i32: 1>", "dimensions = array<i32: 2>", "no dimension 2"},
      {"softmax", "iteration_bounds = array<i64: 4>", "iteration_bounds = array<i64: -4>",
       "iteration_bounds[0] is -4"},
      {"softmax", "semantics = [#tpu.dimension_semantics<arbitrary>]", "semantics = []",
       "does not have a word for each dimension"},
      {"softmax", "window_bounds = array<i64: 8, 256>", "window_bounds = array<i64: 8, 128>",
       "window_bounds[1] of window 0 is 128"},
      {"softmax", "@transform_0", "@transform_9",
       "index function transform_9, which does not exist"},
      {"softmax", "scratch_operands = 0", "scratch_operands = 1", "window_params do not fit"},
      {"windows", "element_window<[0, 0], [0, 0]>", "element_window<[0], [0, 0]>", "padding"},
      {"matmul", "dot_dimension_numbers<[1], [0], [0], [1]",
       "dot_dimension_numbers<[1], [0], [1], [1]", "dimension 1 twice"},
      {"matmul", "predicate = 0 : i64", "predicate = 10 : i64", "there is no predicate 10"},
      {"moves", "dimension = 1 : si32", "dimension = 2 : si32", "dimension is 2, the rank 2"},
      {"moves", "offsets = [0, 0], sizes = [8, 64]", "offsets = [1, 0], sizes = [8, 64]",
       "the slice is outside of dimension 0"},
      {"moves", "strides = array<i32: 2, 1>", "strides = array<i32: 2>",
       "strides does not have 2 numbers"},
      {"narrow", "permutation = array<i64: 1, 0>", "permutation = array<i64: 0, 1>",
       "dimension 0 of the result has another size [tpu.transpose"},
      {"narrow", "stable_mosaic.arith.extsi", "stable_mosaic.arith.trunci",
       "it converts i8 to i32"},
      {"masks", "static_position = array<i64: 0, 0, 0>", "static_position = array<i64: 0, 0, 1>",
       "the position 1 is outside of dimension 2"},
      {"copies", "operandSegmentSizes = array<i32: 1, 1, 0>",
       "operandSegmentSizes = array<i32: 1, 0, 1>", "0 offsets for rank 1 [tpu.memref_slice"},
      {"copies", "array<i32: 1, 0, 1, 1, 0, 0>", "array<i32: 1, 1, 0, 1, 0, 0>",
       "operandSegmentSizes[2] is 0 [tpu.enqueue_dma"},
      {"remote", "array<i32: 1, 1, 1, 1, 1, 0>", "array<i32: 1, 0, 1, 1, 1, 1>",
       "source and target are not memrefs of numbers"},
      {"branches", "\"stable_mosaic.scf.yield\"(%46) : (vector<8x128xf32>) -> ()",
       "\"stable_mosaic.scf.yield\"() : () -> ()", "does not have the requested values"},
      {"branches", "\"stable_mosaic.scf.condition\"(%36, %arg6, %arg7) : (i1, i32,",
       "\"stable_mosaic.scf.condition\"(%arg6, %arg6, %arg7) : (i32, i32,",
       "its condition is not i1 [scf.while"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
    expect_refused(cases[i].kernel, cases[i].from, cases[i].to, cases[i].message);
}

// ---- hostile input ----

static int g_num_attribute_errors;

// Reads bytes as whatever they are; what is accepted must print to a text that reads back.
static bool try_bytes(const char *data, size_t size, bool is_call) {
  mp_mosaic_module_t *module = NULL;
  mp_mosaic_call_t call = {0};
  mp_status_t status;
  if (is_call) {
    status = mp_mosaic_read_call((mp_str_t){data, size}, &call);
    module = call.module;
  } else {
    status = mp_mosaic_read(data, size, &module);
  }
  if (status == NULL) status = mp_mosaic_verify(module);
  const bool accepted = status == NULL;
  if (!accepted) assert_true(strlen(mp_status_message(status)) > 0);
  // Attributes of bytecode are read for an op, which the message names; those of types are not.
  const char *offset = accepted ? NULL : strstr(mp_status_message(status), "]: bytecode: offset");
  g_num_attribute_errors += offset != NULL && strstr(offset, "the attribute '") != NULL;
  mp_status_release(status);
  if (accepted) {
    mp_strbuf_t text;
    mp_mosaic_module_t *again = NULL;
    mp_strbuf_init(&text);
    mp_mosaic_print(module, &text);
    assert_ok(mp_mosaic_read(text.data, text.size, &again));
    expect_same_text(module, again);
    mp_mosaic_module_release(again);
    mp_strbuf_deinit(&text);
  }
  mp_mosaic_module_release(module);
  return accepted;
}

static void changed_bytes_do_no_harm(void **state) {
  (void)state;
  static const char others[] = {'A', '0', ' ', '>', 'x', '9', '/', '-'};
  int accepted = 0, tried = 0;
  for (int i = 0; i < NUM_KERNELS; ++i) {
    for (int form = 0; form < 2; ++form) {
      fixture_t file = read_kernel(g_kernels[i], form == 0 ? "txt" : "json");
      // A step without common factor with the number of other characters.
      for (size_t at = (size_t)i; at < file.size; at += 13, ++tried) {
        const char before = file.data[at];
        file.data[at] = others[at % sizeof(others)];
        accepted += try_bytes(file.data, file.size, form == 1);
        file.data[at] = before;
      }
      free(file.data);
    }
  }
  assert_true(accepted > tried / 50 && accepted < tried / 2);
  assert_true(g_num_attribute_errors > 10);
}

static void every_truncation_is_an_error(void **state) {
  (void)state;
  fixture_t file = read_kernel("add", "txt");
  for (size_t size = 0; size + 2 < file.size; size += 3)
    assert_false(try_bytes(file.data, size, false));
  free(file.data);
}

static void every_failed_allocation_is_survived(void **state) {
  (void)state;
  for (int form = 0; form < 2; ++form) {
    fixture_t file = read_kernel("remote", form == 0 ? "txt" : "json");
    bool failed = true;
    int failures = -1;
    for (int n = 1; failed; ++n, ++failures) {
      mp_mosaic_module_t *module = NULL;
      mp_mosaic_call_t call = {0};
      mp_alloc_fail_at(n, 1);
      mp_status_t status = form == 0 ? mp_mosaic_read(file.data, file.size, &module)
                                     : mp_mosaic_read_call((mp_str_t){file.data, file.size}, &call);
      mp_alloc_fail_at(0, 0);
      failed = status != NULL;
      if (failed) assert_int_equal(mp_status_code(status), MP_RESOURCE_EXHAUSTED);
      mp_status_release(status);
      mp_mosaic_module_release(module);
      mp_mosaic_module_release(call.module);
    }
    assert_true(failures > 3);
    free(file.data);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bytecode_and_text_are_one_module),
      cmocka_unit_test(fields_of_calls),
      cmocka_unit_test(locations_beside_the_module),
      cmocka_unit_test(calls_that_are_wrong),
      cmocka_unit_test(modules_that_are_wrong),
      cmocka_unit_test(changed_bytes_do_no_harm),
      cmocka_unit_test(every_truncation_is_an_error),
      cmocka_unit_test(every_failed_allocation_is_survived),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
