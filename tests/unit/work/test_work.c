// What ops have to do: classes of all ops, and operations and bytes counted by hand.
#include "sim/kernels/table/custom_call.h"
#include "sim/work/work.h"
#include "tests/unit/support/op_samples.h"

// ---- the table ----

static void every_op_has_a_class(void **state) {
  (void)state;
  FOR_EACH_OP(code) {
    if (code == MP_OP_FUSION) continue;
    mp_module_t *module = sample_read(code);
    const mp_op_t *op = code == MP_OP_EXCHANGE ? NULL : first_op(module, code);
    mp_work_t work = {.work_class = MP_WORK_COLLECTIVE};
    if (op != NULL) mp_work_of_op(op, &work);
    mp_work_class_t free_of = MP_WORK_FREE;
    if (mp_opcode_has(code, MP_OP_TRAIT_COLLECTIVE)) free_of = MP_WORK_COLLECTIVE;
    if (mp_op_info(code)->role == MP_OP_ROLE_COMMAND) free_of = MP_WORK_SCALAR;
    const bool is_kernel = mp_op_info(code)->role == MP_OP_ROLE_KERNEL;
    const bool is_right =
        is_kernel ? work.work_class != MP_WORK_FREE && work.work_class != MP_WORK_COLLECTIVE
                  : work.work_class == free_of;
    if (!is_right) fail_msg("%s: class %s", op_name(code), mp_work_class_name(work.work_class));
    // What only moves elements computes nothing; all others do.
    const bool computes = work.flops + work.transcendentals > 0;
    const bool should = is_kernel && work.work_class != MP_WORK_COPY &&
                        work.work_class != MP_WORK_GATHER && work.work_class != MP_WORK_FOREIGN &&
                        work.work_class != MP_WORK_SCALAR;
    if (computes != should) fail_msg("%s: %g operations", op_name(code), work.flops);
    mp_module_release(module);
  }
}

static mp_op_t *read_op(const char *text, mp_opcode_t code, mp_module_t **out_module) {
  assert_ok(mp_read_text(text, strlen(text), out_module));
  return first_op(*out_module, code);
}

static void every_call_with_a_kernel_is_counted(void **state) {
  (void)state;
  for (size_t i = 0; mp_call_target(i) != NULL; ++i) {
    char text[512];
    snprintf(text, sizeof(text),
             "func.func @main(%%a: tensor<4x4xf32>, %%b: tensor<4xf32>) -> tensor<4x4xf32> {\n"
             "%%0 = stablehlo.custom_call @\"%s\"(%%a, %%b) : (tensor<4x4xf32>, tensor<4xf32>) -> "
             "tensor<4x4xf32>\nreturn %%0 : tensor<4x4xf32>\n}\n",
             mp_call_target(i));
    mp_module_t *module = NULL;
    mp_work_t work;
    mp_work_of_op(read_op(text, MP_OP_CUSTOM_CALL, &module), &work);
    if (work.work_class == MP_WORK_FOREIGN || work.flops <= 0) {
      fail_msg("%s has no formula", mp_call_target(i));
    }
    mp_module_release(module);
  }
}

// ---- by hand ----

// A program of one op whose arguments are %a, %b, ...; `arguments` are their types.
static mp_work_t work_of(const char *arguments, const char *line, mp_opcode_t code) {
  char text[2048], params[512] = "";
  size_t size = 0;
  char name = 'a';
  for (const char *at = arguments; *at != '\0'; ++name) {
    const size_t length = strcspn(at, " ");
    size += (size_t)snprintf(params + size, sizeof(params) - size, "%s%%%c: tensor<%.*s>",
                             size == 0 ? "" : ", ", name, (int)length, at);
    at += length + (at[length] == ' ');
  }
  snprintf(text, sizeof(text), "func.func @main(%s) {\n%s\nreturn\n}\n", params, line);
  mp_module_t *module = NULL;
  mp_work_t work;
  mp_work_of_op(read_op(text, code, &module), &work);
  mp_module_release(module);
  return work;
}

#define SUM                                                                \
  "({\n^bb0(%x: tensor<f32>, %y: tensor<f32>):\n%r = stablehlo.add %x, %y" \
  " : tensor<f32>\nstablehlo.return %r : tensor<f32>\n})"

static void products_are_counted(void **state) {
  (void)state;
  mp_work_t work = work_of("3x4x5xbf16 3x5x6xbf16",
                           "%0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], "
                           "contracting_dims = [2] x [1] : (tensor<3x4x5xbf16>, "
                           "tensor<3x5x6xbf16>) -> tensor<3x4x6xf32>",
                           MP_OP_DOT_GENERAL);
  assert_int_equal(work.work_class, MP_WORK_MATMUL);
  assert_true(work.flops == 2.0 * 3 * 4 * 5 * 6 && work.vector_flops == 0);
  assert_true(work.matmul.batch == 3 && work.matmul.m == 4 && work.matmul.n == 6);
  assert_true(work.matmul.k == 5 && work.matmul.passes == 1 && work.matmul.bf16_passes == 1);
  assert_int_equal(work.matmul.dtype, MP_DTYPE_BF16);
  // A vector times a matrix, in f32 with full precision.
  work = work_of("5xf32 5x6xf32",
                 "%0 = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0], precision = "
                 "[HIGHEST, DEFAULT] : (tensor<5xf32>, tensor<5x6xf32>) -> tensor<6xf32>",
                 MP_OP_DOT_GENERAL);
  assert_true(work.flops == 60 && work.matmul.m == 1 && work.matmul.n == 6);
  assert_true(work.matmul.bf16_passes == 6 && work.matmul.passes == 1);
  // Complex numbers are four matmuls.
  work = work_of("4x4xcomplex<f32> 4x4xcomplex<f32>",
                 "%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : "
                 "(tensor<4x4xcomplex<f32>>, tensor<4x4xcomplex<f32>>) -> "
                 "tensor<4x4xcomplex<f32>>",
                 MP_OP_DOT_GENERAL);
  assert_true(work.matmul.passes == 4 && work.matmul.dtype == MP_DTYPE_F32);
  // An algorithm says of what the matmul is made.
  work = work_of(
      "4x4xf32 4x4xf32",
      "%0 = \"stablehlo.dot_general\"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<"
      "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = "
      "[#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>], algorithm = "
      "#stablehlo.dot_algorithm<lhs_precision_type = bf16, rhs_precision_type = bf16, "
      "accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, "
      "num_primitive_operations = 3, allow_imprecise_accumulation = false>}> : (tensor<4x4xf32>, "
      "tensor<4x4xf32>) -> tensor<4x4xf32>",
      MP_OP_DOT_GENERAL);
  assert_true(work.matmul.passes == 3 && work.matmul.dtype == MP_DTYPE_BF16);
}

static void convolutions_are_counted(void **state) {
  (void)state;
  // 3x3 over 8x8 with one row of padding: along a side, 22 of the 24 taps lie inside.
  mp_work_t work = work_of("2x8x8x3xf32 3x3x3x16xf32",
                           "%0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, "
                           "i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} "
                           "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
                           "(tensor<2x8x8x3xf32>, tensor<3x3x3x16xf32>) -> tensor<2x8x8x16xf32>",
                           MP_OP_CONVOLUTION);
  assert_int_equal(work.work_class, MP_WORK_CONVOLUTION);
  assert_float_equal(work.flops, 2.0 * 2 * 16 * 3 * 22 * 22, 1e-6);
  assert_true(work.matmul.m == 2 * 8 * 8 && work.matmul.n == 16 && work.matmul.batch == 1);
  // Depthwise, every second position.
  work = work_of("1x9x9x8xf32 3x3x1x8xf32",
                 "%0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, "
                 "0, 1, f], window = {stride = [2, 2]} {batch_group_count = 1 : i64, "
                 "feature_group_count = 8 : i64} : (tensor<1x9x9x8xf32>, tensor<3x3x1x8xf32>) -> "
                 "tensor<1x4x4x8xf32>",
                 MP_OP_CONVOLUTION);
  assert_float_equal(work.flops, 2.0 * 4 * 4 * 8 * 9, 1e-6);
  assert_true(work.matmul.batch == 8 && work.matmul.n == 1 && work.matmul.m == 16);
  // Dilated by two, as in the gradient of a strided one: half of the taps meet holes.
  work = work_of("1x4x1xf32 2x1x1xf32",
                 "%0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, "
                 "f], window = {lhs_dilate = [2]} {batch_group_count = 1 : i64, "
                 "feature_group_count = 1 : i64} : (tensor<1x4x1xf32>, tensor<2x1x1xf32>) -> "
                 "tensor<1x6x1xf32>",
                 MP_OP_CONVOLUTION);
  assert_float_equal(work.flops, 2.0 * 6, 1e-6);
}

static void elements_are_counted(void **state) {
  (void)state;
  mp_work_t work =
      work_of("4x8xf32 4x8xf32", "%0 = stablehlo.add %a, %b : tensor<4x8xf32>", MP_OP_ADD);
  assert_true(work.flops == 32 && work.vector_flops == 32 && work.transcendentals == 0);
  work = work_of("4x8xf64", "%0 = stablehlo.tanh %a : tensor<4x8xf64>", MP_OP_TANH);
  assert_true(work.flops == 0 && work.transcendentals == 32 && work.vector_transcendentals == 64);
  work = work_of("8xcomplex<f32> 8xcomplex<f32>",
                 "%0 = stablehlo.multiply %a, %b : tensor<8xcomplex<f32>>", MP_OP_MULTIPLY);
  assert_true(work.flops == 8 && work.vector_flops == 32);
  work = work_of("i32 i32", "%0 = stablehlo.add %a, %b : tensor<i32>", MP_OP_ADD);
  assert_int_equal(work.work_class, MP_WORK_SCALAR);
}

static void reductions_are_counted(void **state) {
  (void)state;
  mp_work_t work = work_of("16x32xf32 f32",
                           "%0 = \"stablehlo.reduce\"(%a, %b) <{dimensions = array<i64: 1>}> " SUM
                           " : (tensor<16x32xf32>, tensor<f32>) -> tensor<16xf32>",
                           MP_OP_REDUCE);
  assert_true(work.work_class == MP_WORK_REDUCTION && work.flops == 512);
  // A window of 3, and a running sum of 64 elements by doubling: 12 steps in place of 64.
#define WINDOW(size, padding, n)                                                    \
  "%0 = \"stablehlo.reduce_window\"(%a, %b) <{window_dimensions = array<i64: " size \
  ">, padding = dense<[[" padding "]]> : tensor<1x2xi64>}> " SUM                    \
  " : (tensor<64xf32>, tensor<f32>"                                                 \
  ") -> tensor<" n "xf32>"
  work = work_of("64xf32 f32", WINDOW("3", "0, 0", "62"), MP_OP_REDUCE_WINDOW);
  assert_true(work.work_class == MP_WORK_WINDOW && work.flops == 62 * 3);
  work = work_of("64xf32 f32", WINDOW("64", "63, 0", "64"), MP_OP_REDUCE_WINDOW);
  assert_true(work.flops == 64 * 12);
}

static void sorts_and_transforms_are_counted(void **state) {
  (void)state;
  mp_work_t work =
      work_of("8x1000xf32",
              "%0 = \"stablehlo.sort\"(%a) <{dimension = 1 : i64}> ({\n^bb0(%x: tensor<f32>, %y: "
              "tensor<f32>):\n%r = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> "
              "tensor<i1>\nstablehlo.return %r : tensor<i1>\n}) : (tensor<8x1000xf32>) -> "
              "tensor<8x1000xf32>",
              MP_OP_SORT);
  assert_true(work.work_class == MP_WORK_SORT && work.flops == 8 * 1000 * 10);
  work = work_of("4x256xcomplex<f32>",
                 "%0 = stablehlo.fft %a, type = FFT, length = [256] : "
                 "(tensor<4x256xcomplex<f32>>) -> tensor<4x256xcomplex<f32>>",
                 MP_OP_FFT);
  assert_true(work.work_class == MP_WORK_FFT && work.flops == 5 * 4 * 256 * 8);
  work = work_of("4x256xf32",
                 "%0 = stablehlo.fft %a, type = RFFT, length = [256] : (tensor<4x256xf32>) -> "
                 "tensor<4x129xcomplex<f32>>",
                 MP_OP_FFT);
  assert_true(work.flops == 5 * 4 * 256 * 8 / 2);
}

static void decompositions_are_counted(void **state) {
  (void)state;
  mp_work_t work =
      work_of("2x6x6xf32", "%0 = stablehlo.cholesky %a : tensor<2x6x6xf32>", MP_OP_CHOLESKY);
  assert_true(work.work_class == MP_WORK_LINALG && work.flops == 2 * 216 / 3.0);
#define CALL(target) \
  "%0 = stablehlo.custom_call @" target "(%a) : (tensor<5x3xf32>) -> tensor<5x3xf32>"
  work = work_of("5x3xf32", CALL("Qr"), MP_OP_CUSTOM_CALL);
  assert_float_equal(work.flops, 2.0 * 5 * 9 - 2.0 * 27 / 3, 1e-9);
  work = work_of("5x3xf32", CALL("LuDecomposition"), MP_OP_CUSTOM_CALL);
  assert_float_equal(work.flops, 5.0 * 9 - 27 / 3.0, 1e-9);
  work = work_of("5x3xf32", CALL("lapack_sgeev_ffi"), MP_OP_CUSTOM_CALL);
  assert_true(work.work_class == MP_WORK_LINALG && work.flops == 25 * 27);
  work = work_of("5x3xf32", CALL("xla_ffi_python_cpu_callback"), MP_OP_CUSTOM_CALL);
  assert_true(work.work_class == MP_WORK_FOREIGN && work.flops == 0);
  work = work_of("6x6xf64 6x2xf64",
                 "%0 = \"stablehlo.triangular_solve\"(%a, %b) <{left_side = true, lower = true, "
                 "unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : "
                 "(tensor<6x6xf64>, tensor<6x2xf64>) -> tensor<6x2xf64>",
                 MP_OP_TRIANGULAR_SOLVE);
  assert_true(work.flops == 72 && work.vector_flops == 144);
}

// Matmuls of cuDNN's attention: two forward, five backward.
static void attention_is_counted(void **state) {
  (void)state;
#define ATTENTION(name)                                                                \
  "%0 = \"stablehlo.custom_call\"(%a, %b, %b) {call_target_name = \"__cudnn$" name     \
  "\", api_version = 2 : i32, backend_config = \"{\\22cudnn_fmha_backend_config\\22: " \
  "{\\22intermediate_tensor_shape\\22: {\\22dimensions\\22: [\\222\\22, \\224\\22, "   \
  "\\2216\\22, \\2224\\22]}}}\"} : (tensor<2x16x4x8xbf16>, tensor<2x24x2x8xbf16>, "    \
  "tensor<2x24x2x8xbf16>) -> tensor<2x4x16x8xbf16>"
  const double scores = 2 * 4 * 16 * 24;
  mp_work_t work =
      work_of("2x16x4x8xbf16 2x24x2x8xbf16", ATTENTION("fmhaSoftmax"), MP_OP_CUSTOM_CALL);
  assert_true(work.work_class == MP_WORK_FOREIGN && work.flops == scores * 2 * 2 * 8);
  assert_true(work.transcendentals == scores);
  work =
      work_of("2x16x4x8xbf16 2x24x2x8xbf16", ATTENTION("fmhaSoftmaxBackward"), MP_OP_CUSTOM_CALL);
  assert_true(work.flops == scores * 5 * 2 * 8);
}

// ---- bytes ----

static void bytes_are_those_that_are_touched(void **state) {
  (void)state;
  mp_module_t *module = NULL;
  const mp_op_t *op = read_op(
      "func.func @main(%a: tensor<64x16xf32>, %b: tensor<2x16xf32>, %i: tensor<i32>) {\n"
      "%0 = stablehlo.dynamic_update_slice %a, %b, %i, %i : (tensor<64x16xf32>, "
      "tensor<2x16xf32>, tensor<i32>, tensor<i32>) -> tensor<64x16xf32>\n"
      "%1 = stablehlo.dynamic_slice %0, %i, %i, sizes = [1, 16] : (tensor<64x16xf32>, "
      "tensor<i32>, tensor<i32>) -> tensor<1x16xf32>\nreturn\n}\n",
      MP_OP_DYNAMIC_UPDATE_SLICE, &module);
  assert_true(mp_work_bytes_read(op, 0) == 0 && mp_work_bytes_read(op, 1) == 128);
  assert_true(mp_work_bytes_written(op, 0) == 128);
  assert_true(mp_work_bytes_read(op->next, 0) == 64 && mp_work_bytes_read(op->next, 1) == 4);
  assert_true(mp_work_bytes_written(op->next, 0) == 64);
  mp_module_release(module);
  // Two numbers of 4 bits share a byte.
  op = read_op(
      "func.func @main(%a: tensor<64xi4>) {\n%0 = stablehlo.convert %a : "
      "(tensor<64xi4>) -> tensor<64xi1>\nreturn\n}\n",
      MP_OP_CONVERT, &module);
  assert_true(mp_work_bytes_read(op, 0) == 32 && mp_work_bytes_written(op, 0) == 64);
  mp_module_release(module);
}

int main(void) {
  samples_load();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_op_has_a_class),
      cmocka_unit_test(every_call_with_a_kernel_is_counted),
      cmocka_unit_test(products_are_counted),
      cmocka_unit_test(convolutions_are_counted),
      cmocka_unit_test(elements_are_counted),
      cmocka_unit_test(reductions_are_counted),
      cmocka_unit_test(sorts_and_transforms_are_counted),
      cmocka_unit_test(decompositions_are_counted),
      cmocka_unit_test(attention_is_counted),
      cmocka_unit_test(bytes_are_those_that_are_touched),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  samples_unload();
  return failed;
}
