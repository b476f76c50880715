// The verifier: for each rule a program that breaks it, and the message.
#include "sim/ir/verify/verify.h"
#include "sim/readers/text/text.h"
#include "tests/unit/support/fixtures.h"

typedef struct {
  const char *args;      // of main
  const char *body;      // its operations
  const char *expected;  // in the error; NULL: the program is accepted
} case_t;

static mp_status_t verify_text(const char *text) {
  mp_module_t *module = NULL;
  mp_status_t status = mp_read_text(text, strlen(text), &module);
  if (status != NULL) fail_msg("not read: %s\n%s", mp_status_message(status), text);
  status = mp_module_verify(module);
  mp_module_release(module);
  return status;
}

static void check(const case_t *c) {
  static char text[8192];
  snprintf(text, sizeof(text),
           "sdy.mesh @mesh = <[\"x\"=2, \"y\"=4]>\n"
           "func.func @main(%s) {\n  %s\n  return\n}\n"
           "func.func private @f(%%a: tensor<2xf32>) -> tensor<2xf32> {\n"
           "  return %%a : tensor<2xf32>\n}\n",
           c->args, c->body);
  mp_status_t status = verify_text(text);
  const char *message = mp_status_message(status);
  if (c->expected == NULL && status != NULL) fail_msg("refused: %s\n%s", message, text);
  if (c->expected != NULL && strstr(message, c->expected) == NULL) {
    fail_msg("'%s' is not in: %s\n%s", c->expected, message, text);
  }
  mp_status_release(status);
}

#define CHECK_ALL(cases) \
  for (size_t i = 0; i < sizeof(cases) / sizeof((cases)[0]); ++i) check(&(cases)[i])

#define F2   "%a: tensor<2xf32>"
#define F2F2 "%a: tensor<2xf32>, %b: tensor<2xf32>"
#define F34  "%a: tensor<3x4xf32>"
#define ADDER                                                                           \
  "({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): %s = stablehlo.add %x, %y : tensor<f32> " \
  "stablehlo.return %s : tensor<f32> })"

static void structure(void **state) {
  (void)state;
  static const case_t cases[] = {
      {F2F2, "%0 = stablehlo.add %a, %b : tensor<2xf32>", NULL},
      {F2, "%0 = \"stablehlo.add\"(%a) : (tensor<2xf32>) -> tensor<2xf32>",
       "1 operands instead of 2"},
      {F2, "\"stablehlo.abs\"(%a) : (tensor<2xf32>) -> ()", "0 results instead of 1"},
      {"%a: tensor<?xf32>", "", "dynamic shapes are not supported"},
      {"%a: tensor<*xf32>", "", "tensors without a rank"},
      {"%a: tensor<2x!quant.uniform<i8:f32, 1.0>>", "", "quantised types are not supported"},
      {"%a: tensor<4294967296x4294967296xf32>", "", "does not fit 64 bits"},
      {"%a: tensor<0x4294967296x4294967296xf32>", "", "does not fit 64 bits"},
      {"%a: tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1xf32>", "",
       "so many dimensions"},
      {"%a: tensor<2xindex>", "", "element type are not supported"},
      {"%t: !stablehlo.token",
       "%0 = \"stablehlo.abs\"(%t) : (!stablehlo.token) -> !stablehlo.token",
       "operand 0 is not a tensor"},
      {F2, "%0 = \"stablehlo.reverse\"(%a) : (tensor<2xf32>) -> tensor<2xf32>",
       "attribute 'dimensions' is missing"},
      {F2, "%0 = \"stablehlo.reverse\"(%a) {dimensions = true} : (tensor<2xf32>) -> tensor<2xf32>",
       "attribute 'dimensions' cannot be a boolean"},
      {F2, "%0 = stablehlo.abs %a {mhlo.sharding = 3 : i32} : tensor<2xf32>",
       "attribute 'mhlo.sharding' cannot be an integer"},
  };
  CHECK_ALL(cases);
}

static void elementwise(void **state) {
  (void)state;
  static const case_t cases[] = {
      {"%a: tensor<2xf32>, %b: tensor<3xf32>",
       "%0 = \"stablehlo.add\"(%a, %b) : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>",
       "the operands have different types: tensor<3xf32> and tensor<2xf32>"},
      {"%a: tensor<2xf32>, %b: tensor<2xi32>",
       "%0 = \"stablehlo.multiply\"(%a, %b) : (tensor<2xf32>, tensor<2xi32>) -> tensor<2xf32>",
       "the operands have different types"},
      {F2F2, "%0 = \"stablehlo.and\"(%a, %b) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>",
       "cannot have elements of type f32"},
      {F2, "%0 = \"stablehlo.sqrt\"(%a) : (tensor<2xf32>) -> tensor<2xf64>",
       "the result cannot be of type f64"},
      {"%a: tensor<2xcomplex<f32>>",
       "%0 = \"stablehlo.abs\"(%a) : (tensor<2xcomplex<f32>>) -> tensor<2xf32>", NULL},
      {F2F2,
       "%0 = \"stablehlo.complex\"(%a, %b) : (tensor<2xf32>, tensor<2xf32>) -> "
       "tensor<2xcomplex<f64>>",
       "the result cannot be of type complex<f64>"},
      {F2F2,
       "%0 = stablehlo.compare LT, %a, %b, SIGNED : (tensor<2xf32>, tensor<2xf32>) -> "
       "tensor<2xi1>",
       "compare_type SIGNED does not fit type f32"},
      {"%a: tensor<2xcomplex<f32>>",
       "%0 = stablehlo.compare LT, %a, %a : (tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>) -> "
       "tensor<2xi1>",
       "complex numbers have no order"},
      {"%p: tensor<3xi1>, " F2,
       "%0 = \"stablehlo.select\"(%p, %a, %a) : (tensor<3xi1>, tensor<2xf32>, tensor<2xf32>) -> "
       "tensor<2xf32>",
       "the predicate and the values have different shapes"},
      {"%m: tensor<i32>, " F2,
       "%0 = \"stablehlo.clamp\"(%m, %a, %m) : (tensor<i32>, tensor<2xf32>, tensor<i32>) -> "
       "tensor<2xf32>",
       "a bound has type i32, the operand f32"},
      {F2, "%0 = stablehlo.reduce_precision %a, format = e0m3 : tensor<2xf32>",
       "exponent_bits is 0"},
      {"%a: tensor<2xi32>", "%0 = \"stablehlo.is_finite\"(%a) : (tensor<2xi32>) -> tensor<2xi1>",
       "cannot have elements of type i32"},
  };
  CHECK_ALL(cases);
}

static void shapes(void **state) {
  (void)state;
  static const case_t cases[] = {
      {F34, "%0 = stablehlo.reshape %a : (tensor<3x4xf32>) -> tensor<13xf32>",
       "12 elements cannot become 13"},
      {F34, "%0 = stablehlo.transpose %a, dims = [0, 0] : (tensor<3x4xf32>) -> tensor<3x3xf32>",
       "dimension 0 in permutation is used twice"},
      {F34, "%0 = stablehlo.transpose %a, dims = [0, 2] : (tensor<3x4xf32>) -> tensor<3x3xf32>",
       "permutation has entry 2; there are 2 dimensions"},
      {F34, "%0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<3x4xf32>) -> tensor<3x4xf32>",
       "tensor<3x4xf32> and tensor<4x3xf32>"},
      {F34,
       "%0 = stablehlo.broadcast_in_dim %a, dims = [1, 2] : (tensor<3x4xf32>) -> "
       "tensor<2x3x5xf32>",
       "dimension 1 of size 4 cannot become 5"},
      {F34,
       "%0 = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<3x4xf32>) -> "
       "tensor<2x3x5xf32>",
       "broadcast_dimensions has 1 entries for 2 dimensions"},
      {F34,
       "%0 = \"stablehlo.slice\"(%a) {start_indices = array<i64: 0, 2>, limit_indices = "
       "array<i64: 3, 5>, strides = array<i64: 1, 1>} : (tensor<3x4xf32>) -> tensor<3x3xf32>",
       "[2, 5) is not a part of dimension 1 of size 4"},
      {F34,
       "%0 = \"stablehlo.slice\"(%a) {start_indices = array<i64: 0, 3>, limit_indices = "
       "array<i64: 3, 2>, strides = array<i64: 1, 1>} : (tensor<3x4xf32>) -> tensor<3x3xf32>",
       "[3, 2) is not a part"},
      {F34,
       "%0 = \"stablehlo.slice\"(%a) {start_indices = array<i64: -1, 0>, limit_indices = "
       "array<i64: 3, 2>, strides = array<i64: 1, 1>} : (tensor<3x4xf32>) -> tensor<3x2xf32>",
       "start_indices has entry -1, less than 0"},
      {F34,
       "%0 = \"stablehlo.slice\"(%a) {start_indices = array<i64: 0, 0>, limit_indices = "
       "array<i64: 3, 2>, strides = array<i64: 1, 0>} : (tensor<3x4xf32>) -> tensor<3x2xf32>",
       "strides has entry 0, less than 1"},
      {"%a: tensor<3xf32>, %v: tensor<f32>",
       "%0 = stablehlo.pad %a, %v, low = [-2], high = [-2], interior = [0] : (tensor<3xf32>, "
       "tensor<f32>) -> tensor<0xf32>",
       "dimension 0 has no size after padding"},
      {"%a: tensor<3xf32>, %v: tensor<f32>",
       "%0 = stablehlo.pad %a, %v, low = [0], high = [0], interior = [-1] : (tensor<3xf32>, "
       "tensor<f32>) -> tensor<1xf32>",
       "interior_padding has entry -1"},
      {"%a: tensor<3xf32>, %v: tensor<f32>",
       "%0 = stablehlo.pad %a, %v, low = [9223372036854775807], high = [9], interior = [0] : "
       "(tensor<3xf32>, tensor<f32>) -> tensor<1xf32>",
       "dimension 0 has no size after padding"},
      {F34, "%0 = \"stablehlo.concatenate\"() {dimension = 0 : i64} : () -> tensor<3xf32>",
       "there are no operands"},
      {F34,
       "%0 = \"stablehlo.concatenate\"(%a, %a) {dimension = 2 : i64} : (tensor<3x4xf32>, "
       "tensor<3x4xf32>) -> tensor<3x8xf32>",
       "dimension is 2; there are 2 dimensions"},
      {"", "%0 = \"stablehlo.iota\"() {iota_dimension = 1 : i64} : () -> tensor<3xf32>",
       "iota_dimension is 1"},
      {"",
       "%0 = \"stablehlo.constant\"() {value = dense<1.0> : tensor<3xf32>} : () -> "
       "tensor<2xf32>",
       "the result and the value have different types"},
      {F34, "%0 = stablehlo.bitcast_convert %a : (tensor<3x4xf32>) -> tensor<3x4x3xi8>",
       "the last dimension of the narrower type is not 4"},
      {F34, "%0 = stablehlo.bitcast_convert %a : (tensor<3x4xf32>) -> tensor<3x4x4xi8>", NULL},
  };
  CHECK_ALL(cases);
}

#define GATHER(numbers, sizes, types)                                                 \
  "%0 = \"stablehlo.gather\"(%a, %i) {dimension_numbers = #stablehlo.gather<" numbers \
  ">, "                                                                               \
  "slice_sizes = array<i64: " sizes ">} : " types

static void indexing(void **state) {
  (void)state;
#define GATHER_ARGS  F34 ", %i: tensor<5x1xi32>"
#define GATHER_TYPES "(tensor<3x4xf32>, tensor<5x1xi32>) -> tensor<5x4xf32>"
#define SCATTER_ARGS F34 ", %i: tensor<5x1xi32>, %u: tensor<5x4xf32>"
#define SCATTER(numbers)                                      \
  "%0 = \"stablehlo.scatter\"(%a, %i, %u) " ADDER             \
  " {scatter_dimension_numbers = #stablehlo.scatter<" numbers \
  "> } : (tensor<3x4xf32>, "                                  \
  "tensor<5x1xi32>, tensor<5x4xf32>) -> tensor<3x4xf32>"
  static const case_t cases[] = {
      {GATHER_ARGS,
       GATHER("offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
              "index_vector_dim = 1",
              "1, 4", GATHER_TYPES),
       NULL},
      {GATHER_ARGS,
       GATHER("offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
              "index_vector_dim = 3",
              "1, 4", GATHER_TYPES),
       "index_vector_dim is 3"},
      {GATHER_ARGS,
       GATHER("offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
              "index_vector_dim = 1",
              "1, 5", GATHER_TYPES),
       "slice size 5 of dimension 1 of size 4"},
      {GATHER_ARGS,
       GATHER("offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
              "index_vector_dim = 1",
              "2, 4", GATHER_TYPES),
       "is left out of the result, but its slice size is 2"},
      {GATHER_ARGS,
       GATHER("offset_dims = [1], collapsed_slice_dims = [0, 1], start_index_map = [0], "
              "index_vector_dim = 1",
              "1, 1", GATHER_TYPES),
       "1 window, 2 inserted and 0 batching dimensions"},
      {GATHER_ARGS,
       GATHER("offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0, 1], "
              "index_vector_dim = 1",
              "1, 4", GATHER_TYPES),
       "index vectors have 1 entries, start_index_map has 2"},
      {GATHER_ARGS,
       GATHER("offset_dims = [1], collapsed_slice_dims = [2], start_index_map = [0], "
              "index_vector_dim = 1",
              "1, 4", GATHER_TYPES),
       "collapsed_slice_dims has entry 2"},
      {SCATTER_ARGS,
       SCATTER("update_window_dims = [1], inserted_window_dims = [0], "
               "scatter_dims_to_operand_dims = [0], index_vector_dim = 1"),
       NULL},
      {SCATTER_ARGS,
       SCATTER("update_window_dims = [0], inserted_window_dims = [0], "
               "scatter_dims_to_operand_dims = [0], index_vector_dim = 1"),
       "dimension 0 of the updates has size 5; the operands give 4"},
      {SCATTER_ARGS,
       SCATTER("update_window_dims = [1], inserted_window_dims = [0], "
               "scatter_dims_to_operand_dims = [7], index_vector_dim = 1"),
       "scatter_dims_to_operand_dims has entry 7"},
      {F34 ", %i: tensor<i32>",
       "%0 = \"stablehlo.dynamic_slice\"(%a, %i) {slice_sizes = array<i64: 1, 1>} : "
       "(tensor<3x4xf32>, tensor<i32>) -> tensor<1x1xf32>",
       "there are 1 start indices for 2 dimensions"},
      {F34 ", %i: tensor<i32>",
       "%0 = \"stablehlo.dynamic_slice\"(%a, %i, %i) {slice_sizes = array<i64: 1, 5>} : "
       "(tensor<3x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x5xf32>",
       "slice size 5 of dimension 1"},
      {F34 ", %i: tensor<i32>, %u: tensor<4x4xf32>",
       "%0 = \"stablehlo.dynamic_update_slice\"(%a, %u, %i, %i) : (tensor<3x4xf32>, "
       "tensor<4x4xf32>, tensor<i32>, tensor<i32>) -> tensor<3x4xf32>",
       "the update's dimension 0 of size 4 passes the operand's of size 3"},
  };
  CHECK_ALL(cases);
}

static void reductions(void **state) {
  (void)state;
#define REDUCE(dims, result)                                                   \
  "%0 = \"stablehlo.reduce\"(%a, %v) " ADDER " {dimensions = array<i64: " dims \
  "> } : "                                                                     \
  "(tensor<3x4xf32>, tensor<f32>) -> " result
#define WINDOW(attrs, result)                                  \
  "%0 = \"stablehlo.reduce_window\"(%a, %v) " ADDER " {" attrs \
  "} : (tensor<3x4xf32>, "                                     \
  "tensor<f32>) -> " result
#define ARGS F34 ", %v: tensor<f32>"
  static const case_t cases[] = {
      {ARGS, REDUCE("1", "tensor<3xf32>"), NULL},
      {ARGS, REDUCE("2", "tensor<3xf32>"), "dimensions has entry 2"},
      {ARGS, REDUCE("1, 1", "tensor<3xf32>"), "dimension 1 in dimensions is used twice"},
      {ARGS, REDUCE("1", "tensor<4xf32>"), "tensor<4xf32> and tensor<3xf32>"},
      {F34 ", %v: tensor<2xf32>",
       "%0 = \"stablehlo.reduce\"(%a, %v) " ADDER " {dimensions = array<i64: 1>} : "
       "(tensor<3x4xf32>, tensor<2xf32>) -> tensor<3xf32>",
       "initial value 0 is not a scalar"},
      {ARGS,
       "%0 = \"stablehlo.reduce\"(%a, %v) ({ ^bb0(%x: tensor<f32>): stablehlo.return %x : "
       "tensor<f32> }) {dimensions = array<i64: 1>} : (tensor<3x4xf32>, tensor<f32>) -> "
       "tensor<3xf32>",
       "region 0 has 1 arguments, not 2"},
      {ARGS, WINDOW("window_dimensions = array<i64: 2, 2>", "tensor<2x3xf32>"), NULL},
      {ARGS, WINDOW("window_dimensions = array<i64: 0, 2>", "tensor<2x3xf32>"),
       "window_dimensions has entry 0"},
      {ARGS, WINDOW("window_dimensions = array<i64: 2>", "tensor<2x3xf32>"),
       "window_dimensions has 1 entries, not 2"},
      {ARGS,
       WINDOW("window_dimensions = array<i64: 3, 2>, window_dilations = array<i64: "
              "9223372036854775807, 1>",
              "tensor<2x3xf32>"),
       "the window of dimension 0 overflows"},
      {F34,
       "%0 = \"stablehlo.sort\"(%a) ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): %c = "
       "stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return "
       "%c : tensor<i1> }) {dimension = 2 : i64} : (tensor<3x4xf32>) -> tensor<3x4xf32>",
       "dimension is 2; there are 2 dimensions"},
      {F34,
       "%0 = \"stablehlo.sort\"(%a) ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): stablehlo.return "
       "%x : tensor<f32> }) {dimension = 1 : i64} : (tensor<3x4xf32>) -> tensor<3x4xf32>",
       "the comparator does not return a boolean scalar"},
  };
  CHECK_ALL(cases);
#undef ARGS
}

static void linear_algebra(void **state) {
  (void)state;
#define CONV(dims, window, groups, result)                                            \
  "%0 = \"stablehlo.convolution\"(%a, %b) {dimension_numbers = #stablehlo.conv<" dims \
  ">, "                                                                               \
  "batch_group_count = 1 : i64, feature_group_count = " groups " : i64" window        \
  "} : "                                                                              \
  "(tensor<1x5x5x4xf32>, tensor<3x3x4x8xf32>) -> " result
#define CONV_ARGS "%a: tensor<1x5x5x4xf32>, %b: tensor<3x3x4x8xf32>"
#define NHWC      "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
  static const case_t cases[] = {
      {F34 ", %b: tensor<4x5xf32>",
       "%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<3x4xf32>, "
       "tensor<4x5xf32>) -> tensor<3x5xf32>",
       NULL},
      {F34 ", %b: tensor<4x5xf32>",
       "%0 = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0] : (tensor<3x4xf32>, "
       "tensor<4x5xf32>) -> tensor<4x5xf32>",
       "contracting dimensions have sizes 3 and 4"},
      {F34 ", %b: tensor<4x5xf32>",
       "%0 = stablehlo.dot_general %a, %b, batching_dims = [1] x [0], contracting_dims = [1] x "
       "[0] : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<4x3x5xf32>",
       "is used twice"},
      {F34 ", %b: tensor<4x5xi32>",
       "%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<3x4xf32>, "
       "tensor<4x5xi32>) -> tensor<3x5xf32>",
       NULL},
      {F34 ", %b: tensor<4x5xcomplex<f32>>",
       "%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<3x4xf32>, "
       "tensor<4x5xcomplex<f32>>) -> tensor<3x5xf32>",
       "a product of f32 and complex<f32> cannot be of type f32"},
      {CONV_ARGS, CONV(NHWC, "", "1", "tensor<1x3x3x8xf32>"), NULL},
      {CONV_ARGS, CONV(NHWC, "", "3", "tensor<1x3x3x8xf32>"),
       "4 input and 8 output features are not divided by 3 groups"},
      {CONV_ARGS, CONV(NHWC, "", "2", "tensor<1x3x3x8xf32>"),
       "the kernel has 4 input features, not 2"},
      {CONV_ARGS, CONV(NHWC, "", "0", "tensor<1x3x3x8xf32>"), "feature_group_count is 0"},
      {CONV_ARGS, CONV(NHWC, ", window_strides = array<i64: 1, 0>", "1", "tensor<1x3x3x8xf32>"),
       "window_strides has entry 0"},
      {CONV_ARGS, CONV(NHWC, ", padding = dense<-3> : tensor<2x2xi64>", "1", "tensor<1x3x3x8xf32>"),
       "dimension 0 has size -1 after padding"},
      {CONV_ARGS, CONV(NHWC, "", "1", "tensor<1x3x4x8xf32>"),
       "tensor<1x3x4x8xf32> and tensor<1x3x3x8xf32>"},
      {"%a: tensor<3x4xf32>", "%0 = stablehlo.cholesky %a, lower = true : tensor<3x4xf32>",
       "not a square matrix"},
      {"%a: tensor<8xf32>",
       "%0 = stablehlo.fft %a, type = RFFT, length = [8] : (tensor<8xf32>) -> "
       "tensor<8xcomplex<f32>>",
       "tensor<8xcomplex<f32>> and tensor<5xcomplex<f32>>"},
      {"%a: tensor<8xf32>",
       "%0 = stablehlo.fft %a, type = FFT, length = [8] : (tensor<8xf32>) -> "
       "tensor<8xcomplex<f32>>",
       "the operand cannot have elements of type f32"},
      {"%s: tensor<4xui64>",
       "%0, %1 = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<4xui64>) -> "
       "(tensor<4xui64>, tensor<2xui32>)",
       "a state of 4 elements does not fit"},
  };
  CHECK_ALL(cases);
}

static void control_flow(void **state) {
  (void)state;
  static const case_t cases[] = {
      {F2, "%0 = func.call @f(%a) : (tensor<2xf32>) -> tensor<2xf32>", NULL},
      {F2, "%0 = func.call @g(%a) : (tensor<2xf32>) -> tensor<2xf32>", "there is no function 'g'"},
      {"%a: tensor<3xf32>", "%0 = func.call @f(%a) : (tensor<3xf32>) -> tensor<2xf32>",
       "an operand and the function's parameter have different types"},
      {F2 ", %p: tensor<i1>",
       "%0 = \"stablehlo.if\"(%p) ({ stablehlo.return %a : tensor<2xf32> }, { %c = "
       "stablehlo.constant dense<1.0> : tensor<f32> stablehlo.return %c : tensor<f32> }) : "
       "(tensor<i1>) -> tensor<2xf32>",
       "a branch's value and the result have different types"},
      {F2 ", %p: tensor<f32>",
       "%0 = \"stablehlo.case\"(%p) ({ stablehlo.return %a : tensor<2xf32> }) : (tensor<f32>) -> "
       "tensor<2xf32>",
       "the operand is not a scalar of i32"},
      {F2,
       "%0 = \"stablehlo.while\"(%a) ({ ^bb0(%x: tensor<2xf32>): stablehlo.return %x : "
       "tensor<2xf32> }, { ^bb0(%y: tensor<2xf32>): stablehlo.return %y : tensor<2xf32> }) : "
       "(tensor<2xf32>) -> tensor<2xf32>",
       "the condition does not return a boolean scalar"},
      {F2, "%0 = \"stablehlo.tuple\"(%a) : (tensor<2xf32>) -> tuple<tensor<2xf32>, tensor<2xf32>>",
       "the result is not a tuple of 1 elements"},
      {F2,
       "%0 = stablehlo.custom_call @x(%a) {operand_layouts = [dense<[1]> : tensor<1xindex>], "
       "result_layouts = [dense<[0]> : tensor<1xindex>]} : (tensor<2xf32>) -> tensor<2xf32>",
       "operand_layouts is not an order of dimensions"},
  };
  CHECK_ALL(cases);
}

static void calls_must_end(void **state) {
  (void)state;
  static const char recursive[] =
      "func.func @main(%a: tensor<f32>) -> tensor<f32> {\n"
      "  %0 = call @g(%a) : (tensor<f32>) -> tensor<f32>\n  return %0 : tensor<f32>\n}\n"
      "func.func private @g(%a: tensor<f32>) -> tensor<f32> {\n"
      "  %0 = call @main(%a) : (tensor<f32>) -> tensor<f32>\n  return %0 : tensor<f32>\n}\n";
  assert_status(verify_text(recursive), MP_INVALID_ARGUMENT, "calls itself");
  static const char twice[] =
      "func.func @main() {\n  return\n}\nfunc.func private @main() {\n  return\n}\n";
  mp_module_t *module = NULL;
  mp_status_t status = mp_read_text(twice, strlen(twice), &module);
  if (status == NULL) status = mp_module_verify(module);
  assert_int_equal(mp_status_code(status), MP_INVALID_ARGUMENT);
  mp_status_release(status);
  mp_module_release(module);
  // Thirty functions that each call the next twice.
  static char doubling[8192];
  size_t size = 0;
  for (int i = 0; i < 30; ++i) {
    char name[32];
    if (i == 0) {
      snprintf(name, sizeof(name), "@main");
    } else {
      snprintf(name, sizeof(name), "private @f%d", i);
    }
    size += (size_t)snprintf(doubling + size, sizeof(doubling) - size,
                             "func.func %s() {\n  call @f%d() : () -> ()\n  call @f%d() : () -> "
                             "()\n  return\n}\n",
                             name, i + 1, i + 1);
  }
  snprintf(doubling + size, sizeof(doubling) - size, "func.func private @f30() {\n  return\n}\n");
  assert_status(verify_text(doubling), MP_RESOURCE_EXHAUSTED, "with all calls inlined");
}

static void collectives(void **state) {
  (void)state;
#define ALL_REDUCE(groups, more)                                               \
  "%0 = \"stablehlo.all_reduce\"(%a) " ADDER " {replica_groups = " groups more \
  "} : "                                                                       \
  "(tensor<2xf32>) -> tensor<2xf32>"
#define GATHERED(groups, result)                                                          \
  "%0 = \"stablehlo.all_gather\"(%a) {all_gather_dim = 0 : i64, replica_groups = " groups \
  "} : (tensor<2xf32>) -> " result
  static const case_t cases[] = {
      {F2, ALL_REDUCE("dense<[[0, 1], [2, -1]]> : tensor<2x2xi64>", ""), NULL},
      {F2, ALL_REDUCE("dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>", ""),
       "process 1 is twice in replica_groups"},
      {F2, ALL_REDUCE("dense<[[0, -2]]> : tensor<1x2xi64>", ""), "replica_groups names process -2"},
      {F2, ALL_REDUCE("dense<[[-1, 0]]> : tensor<1x2xi64>", ""), "a group without members"},
      {F2, ALL_REDUCE("dense<[[0, 1]]> : tensor<1x2xi64>", ", use_global_device_ids"),
       "use_global_device_ids without a channel"},
      {F2, GATHERED("dense<[[0, 1]]> : tensor<1x2xi64>", "tensor<4xf32>"), NULL},
      {F2, GATHERED("dense<[[0, 1]]> : tensor<1x2xi64>", "tensor<6xf32>"),
       "tensor<6xf32> and tensor<4xf32>"},
      {F2, GATHERED("dense<[[0, 1], [2, -1]]> : tensor<2x2xi64>", "tensor<4xf32>"),
       "groups of different sizes"},
      {F2,
       "%0 = \"stablehlo.collective_permute\"(%a) {source_target_pairs = dense<[[0, 1], [0, 2]]> "
       ": tensor<2x2xi64>} : (tensor<2xf32>) -> tensor<2xf32>",
       "process 0 is twice in the sources"},
      {F2,
       "%0 = \"stablehlo.collective_permute\"(%a) {source_target_pairs = dense<[[0, 1], [2, 1]]> "
       ": tensor<2x2xi64>} : (tensor<2xf32>) -> tensor<2xf32>",
       "process 1 is twice in the targets"},
      {F2,
       "%0 = \"stablehlo.all_to_all\"(%a) {split_dimension = 0 : i64, concat_dimension = 0 : i64, "
       "split_count = 3 : i64, replica_groups = dense<[[0, 1, 2]]> : tensor<1x3xi64>} : "
       "(tensor<2xf32>) -> tensor<2xf32>",
       "dimension 0 of size 2 is not split into 3 parts"},
  };
  CHECK_ALL(cases);
}

static void shardings(void **state) {
  (void)state;
#define CONSTRAINT(sharding) "%0 = sdy.sharding_constraint %a " sharding " : tensor<8x8xf32>"
#define MANUAL(in, out, axes, inner)                                          \
  "%0 = sdy.manual_computation(%a) in_shardings=[" in "] out_shardings=[" out \
  "] manual_axes={" axes "} (%x: " inner ") { sdy.return %x : " inner         \
  " } : "                                                                     \
  "(tensor<8x8xf32>) -> tensor<8x8xf32>"
#define F88 "%a: tensor<8x8xf32>"
  static const case_t cases[] = {
      {F88, CONSTRAINT("<@mesh, [{\"x\"}, {\"y\"}]>"), NULL},
      {F88, CONSTRAINT("<@mesh, [{\"x\"}]>"), "a sharding of rank 1 for a value of rank 2"},
      {F88, CONSTRAINT("<@mesh, [{\"z\"}, {}]>"), "mesh 'mesh' has no axis 'z'"},
      {F88, CONSTRAINT("<@mesh, [{\"x\"}, {\"x\"}]>"), "axis 'x' is used twice"},
      {F88, CONSTRAINT("<@mesh, [{\"y\":(1)2}, {\"y\":(2)2}]>"), NULL},
      {F88, CONSTRAINT("<@mesh, [{\"y\":(1)2}, {\"y\"}]>"), "axis 'y' is used twice"},
      {F88, CONSTRAINT("<@mesh, [{\"y\":(1)3}, {}]>"), "is not a part of an axis of size 4"},
      {F88, MANUAL("<@mesh, [{\"x\"}, {}]>", "<@mesh, [{\"x\"}, {}]>", "\"x\"", "tensor<4x8xf32>"),
       NULL},
      {F88, MANUAL("<@mesh, [{\"x\"}, {}]>", "<@mesh, [{\"x\"}, {}]>", "\"x\"", "tensor<8x8xf32>"),
       "a value inside as stated and as it must be"},
      {F88, MANUAL("<@mesh, [{\"x\"}, {}]>", "<@mesh, [{\"x\"}, {}]>", "\"z\"", "tensor<4x8xf32>"),
       "mesh 'mesh' has no axis 'z'"},
      {F88,
       MANUAL("<@mesh, [{\"y\", \"x\"}, {}]>", "<@mesh, [{\"x\"}, {}]>", "\"x\"",
              "tensor<4x8xf32>"),
       "manual axis 'x' follows a free one"},
      {F88, "sdy.sharding_group %a group_id=-1 : tensor<8x8xf32>", "group_id is -1"},
  };
  CHECK_ALL(cases);
}

static void errors_name_operation_and_place(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%a: tensor<2xf32>) -> tensor<3xf32> {\n"
      "  %0 = \"stablehlo.reshape\"(%a) : (tensor<2xf32>) -> tensor<3xf32> "
      "loc(\"train\"(\"step.py\":12:7))\n"
      "  return %0 : tensor<3xf32>\n}\n";
  mp_module_t *module = NULL;
  assert_ok(mp_read_text(text, strlen(text), &module));
  mp_status_t status = mp_module_verify(module);
  assert_non_null(strstr(mp_status_message(status), "[stablehlo.reshape, train at step.py:12:7]"));
  mp_status_release(status);
  mp_module_release(module);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(structure),
      cmocka_unit_test(elementwise),
      cmocka_unit_test(shapes),
      cmocka_unit_test(indexing),
      cmocka_unit_test(reductions),
      cmocka_unit_test(linear_algebra),
      cmocka_unit_test(control_flow),
      cmocka_unit_test(calls_must_end),
      cmocka_unit_test(collectives),
      cmocka_unit_test(shardings),
      cmocka_unit_test(errors_name_operation_and_place),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
