// The HLO reader on small programs: what becomes of what.
#include "sim/base/alloc.h"
#include "sim/ir/print/print_module.h"
#include "sim/ir/verify/verify.h"
#include "sim/plan/compile.h"
#include "sim/readers/hlo/hlo.h"
#include "tests/unit/support/fixtures.h"
#include "tests/unit/support/hlo_text.h"

static mp_status_t read_module(const char *text, mp_module_t **out_module) {
  mp_strbuf_t proto;
  mp_strbuf_init(&proto);
  hlo_assemble(text, &proto);
  mp_status_t status = mp_read_hlo(mp_strbuf_text(&proto), proto.size, false, out_module);
  mp_strbuf_deinit(&proto);
  if (status != NULL) return status;
  status = mp_module_verify(*out_module);
  if (status != NULL) mp_module_release(*out_module);
  return status;
}

// The program is valid, and all lines of `wanted` are in what it prints as.
static void reads(const char *text, const char *wanted) {
  mp_module_t *module = NULL;
  mp_strbuf_t out;
  const mp_print_options_t options = {.locations = false};
  assert_ok(read_module(text, &module));
  mp_strbuf_init(&out);
  assert_ok(mp_module_print(module, &options, &out));
  for (const char *at = wanted; *at != '\0';) {
    const size_t size = strcspn(at, "\n");
    char line[512];
    snprintf(line, sizeof(line), "%.*s", (int)size, at);
    if (strstr(mp_strbuf_text(&out), line) == NULL) {
      fail_msg("'%s' is not in:\n%s", line, mp_strbuf_text(&out));
    }
    at += size + (at[size] == '\n');
  }
  mp_strbuf_deinit(&out);
  mp_module_release(module);
}

#define ADD                     \
  "add {\n"                     \
  "a = f32[] parameter() 9=0\n" \
  "b = f32[] parameter() 9=1\n" \
  "c = f32[] add(a b)\n"        \
  "}\n"
#define X  "main {\nx = f32[4,6] parameter() 9=0\n"
#define Z  "z = f32[] constant() 8={1={2=11} 8=f0.5}\n"
#define XZ X Z
#define Z0 "main {\n" Z

static void plain_operations(void **state) {
  (void)state;
  reads(X "y = f32[4,6] negate(x)\nr = f32[4,6] atan2(x y)\n}",
        "%0 = stablehlo.negate %arg0 : tensor<4x6xf32>\n"
        "%1 = stablehlo.atan2 %arg0, %0 : tensor<4x6xf32>\n"
        "return %1 : tensor<4x6xf32>");
  reads(X "r = pred[4,6] compare(x x) 63='LT'\n}", "stablehlo.compare LT, %arg0, %arg0, FLOAT");
  reads(X "r = pred[4,6] compare(x x) 63='GE' 72='TOTALORDER'\n}", "GE, %arg0, %arg0, TOTALORDER");
  reads(X "r = f32[6,4] transpose(x) 14=[1,0]\n}", "stablehlo.transpose %arg0, dims = [1, 0]");
  reads(X "r = f32[4,5,6] broadcast(x) 14=[0,2]\n}", "broadcast_in_dim %arg0, dims = [0, 2]");
  reads(X "r = s32[3,2] iota() 14=[1]\n}", "stablehlo.iota dim = 1 : tensor<3x2xi32>");
  reads(X "r = f32[8,6] concatenate(x x) 14=[0]\n}", "concatenate %arg0, %arg0, dim = 0");
  reads(X "r = f32[2,6] slice(x) 17={1=1 2=4 3=2} 17={2=6}\n}", "slice %arg0 [1:4:2, 0:6]");
  reads(XZ "r = f32[5,11] pad(x z) 21={1={1=2 2=-1} 1={3=1}}\n}",
        "low = [2, 0], high = [-1, 0], interior = [0, 1]");
  reads(X "r = f32[4,6] reduce-precision(x) 18=5 19=10\n}",
        "reduce_precision %arg0, format = e5m10");
  reads(X "s = s32[] get-dimension-size(x) 14=[1]\nr = (s32[],f32[4,6]) tuple(s x)\n}",
        "stablehlo.get_dimension_size %arg0, dim = 1");
}

static void old_forms(void **state) {
  (void)state;
  // One vector of start indices instead of scalars.
  reads(X "i = s32[2] parameter() 9=1\nr = f32[2,3] dynamic-slice(x i) 20=[2,3]\n}",
        "stablehlo.slice %arg1 [1:2] : (tensor<2xi32>) -> tensor<1xi32>\n"
        "stablehlo.dynamic_slice %arg0, %1, %3, sizes = [2, 3]");
  reads(X "v = f32[6] parameter() 9=1\nr = f32[4] dot(x v)\n}",
        "stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]");
  reads(ADD X "r = f32[4,6] map(x x) calls(add)\n}", "dimensions = array<i64: 0, 1>");
}

static void literals(void **state) {
  (void)state;
  // In column-major order.
  reads(
      "main {\nr = f32[2,3] constant() 8={1={2=11 3=[2,3] 5={1=[0,1]}} 8=f1 8=f4 8=f2 8=f5 8=f3 "
      "8=f6}\n}",
      "dense<[[1.000000e+00, 2.000000e+00, 3.000000e+00], [4.000000e+00, 5.000000e+00, "
      "6.000000e+00]]>");
  reads("main {\nr = pred[3] constant() 8={2=[1,0,5]}\n}", "dense<[true, false, true]>");
  reads("main {\nr = s16[2] constant() 8={17=x0100ffff}\n}", "dense<[1, -1]> : tensor<2xi16>");
  reads("main {\nr = s32[2] constant() 8={4=[-1,7]}\n}", "dense<[-1, 7]> : tensor<2xi32>");
  reads("main {\nr = u64[1] constant() 8={7=-1}\n}", "dense<18446744073709551615>");
  reads("main {\nr = c64[1] constant() 8={12=f1 12=f-2}\n}", "dense<(1.000000e+00,-2.000000e+00)>");
  reads("main {\nr = bf16[2] constant() 8={13=x803f0040}\n}",
        "dense<[1.000000e+00, 2.000000e+00]>");
  // Four bits, one element per byte and two.
  reads("main {\nr = s4[3] constant() 8={21=x01ff07}\n}", "dense<[1, -1, 7]> : tensor<3xi4>");
  reads("main {\nr = s4[3] constant() 8={21=xf107}\n}", "dense<[1, -1, 7]> : tensor<3xi4>");
  reads("main {\nr = u4[3] constant() 8={22=xf107}\n}", "dense<[1, 15, 7]> : tensor<3xui4>");
  reads("main {\nr = (s32[],(pred[1],f32[0])) constant() 8={10={4=3} 10={10={2=1} 10={}}}\n}",
        "stablehlo.constant dense<3> : tensor<i32>\n"
        "stablehlo.constant dense<true> : tensor<1xi1>\n"
        "return %0, %1, %2 : tensor<i32>, tensor<1xi1>, tensor<0xf32>");
}

static void products_and_windows(void **state) {
  (void)state;
  reads(
      "main {\nx = f32[3,4,5] parameter() 9=0\ny = f32[3,5,2] parameter() 9=1\n"
      "r = f32[3,4,2] dot(x y) 30={1=[2] 2=[1] 3=[0] 4=[0]} 51={1=[1,2] 2=11}\n}",
      "batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [HIGH, HIGHEST]\n"
      "lhs_precision_type = f32, rhs_precision_type = f32, accumulation_type = f32");
  reads(
      "main {\nx = f32[2,8,9,4] parameter() 9=0\nk = f32[3,2,2,6] parameter() 9=1\n"
      "r = f32[2,6,10,6] convolution(x k) 50=2 15={1={1=3} 1={1=2 3=1 4=1 7=1}} "
      "16={3=2 4=3 6=[0,1] 8=3 10=3 11=[1,2] 12=[1,2]}\n}",
      "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[0, 0], [1, 1]]\n"
      "reverse = [false, true]\nfeature_group_count = 2 : i64");
  reads(ADD XZ
        "r = f32[4,5] reduce-window(x z) calls(add) 15={1={1=1} 1={1=3 2=1 3=1 5=1 6=1 4=0}}\n}",
        "padding = dense<[[0, 0], [1, 0]]>\nwindow_dimensions = array<i64: 1, 3>");
  reads(
      "main {\na = f32[4,4] parameter() 9=0\nb = f32[4,2] parameter() 9=1\n"
      "c = f32[4,4] cholesky(a) 62={1=1}\n"
      "r = f32[4,2] triangular-solve(c b) 59={1=1 2=1 4=3}\n}",
      "stablehlo.cholesky %arg0, lower = true\ntranspose_a = #stablehlo<transpose ADJOINT>");
  reads("main {\nx = f32[8] parameter() 9=0\nr = c64[5] fft(x) 31=2 32=[8]\n}",
        "stablehlo.fft %arg0, type = RFFT, length = [8]");
}

static void computations_on_scalars(void **state) {
  (void)state;
  reads(ADD XZ "r = f32[4] reduce(x z) calls(add) 14=[1]\n}",
        "stablehlo.reduce(%arg0 init: %0) applies stablehlo.add across dimensions = [1]");
  // Several inputs: a tuple of results.
  reads(
      "two {\na = f32[] parameter() 9=0\nb = s32[] parameter() 9=1\n"
      "c = f32[] parameter() 9=2\nd = s32[] parameter() 9=3\nt = (f32[],s32[]) tuple(c b)\n}\n" XZ
      "i = s32[4,6] iota() 14=[0]\nn = s32[] constant() 8={4=9}\n"
      "q = (f32[6],s32[6]) reduce(x i z n) calls(two) 14=[0]\n"
      "g = s32[6] get-tuple-element(q) 13=1\n}",
      "return %3#1 : tensor<6xi32>");
  reads(
      "less {\na = f32[] parameter() 9=0\nb = f32[] parameter() 9=1\n"
      "c = s32[] parameter() 9=2\nd = s32[] parameter() 9=3\nt = pred[] compare(a b) 63='LT'\n}\n" X
      "i = s32[4,6] iota() 14=[1]\n"
      "q = (f32[4,6],s32[4,6]) sort(x i) calls(less) 14=[1] 60=1\n}",
      "stablehlo.sort\ndimension = 1 : i64, is_stable = true");
  reads(
      X
      "i = s32[2,1] parameter() 9=1\nr = f32[2,6] gather(x i) 33={1=[1] 2=[0] 3=[0] 4=1} "
      "34=[1,6]\n}",
      "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1\n"
      "slice_sizes = array<i64: 1, 6>");
  reads(ADD X
        "i = s32[2,1] parameter() 9=1\nu = f32[2,6] parameter() 9=2\n"
        "r = f32[4,6] scatter(x i u) calls(add) 48={1=[1] 2=[0] 3=[0] 4=1} 69=1\n}",
        "update_window_dims = [1], inserted_window_dims = [0]\nunique_indices = true");
  reads(X "r = (f32[4,2],s32[4,2]) topk(x) 81=2 85=1\n}",
        "custom_call @mhlo.topk(%arg0)\nmhlo.attributes = {largest = true}");
  reads(X "r = (f32[4,2],s32[4,2]) topk(x) 81=2\n}", "mhlo.attributes = {largest = false}");
  reads(Z0 "r = f32[3] rng(z z) 23=1\n}", "stablehlo.rng %0, %0, %1, distribution = UNIFORM");
  reads("main {\ns = u64[2] parameter() 9=0\nr = (u64[2],u32[5]) rng-bit-generator(s) 70=1\n}",
        "stablehlo.rng_bit_generator %arg0, algorithm = THREE_FRY");
  reads(
      "main {\nx = f32[3,5] parameter() 9=0\ns = f32[5] parameter() 9=1\n"
      "r = (f32[3,5],f32[5],f32[5]) batch-norm-training(x s s) 24=f0.5 25=1\n}",
      "epsilon = 5.000000e-01 : f32, feature_index = 1 : i64");
}

static void functions_are_calls(void **state) {
  (void)state;
  static const char *const opcodes[] = {"acos",  "acosh", "asin", "asinh",
                                        "atanh", "cosh",  "erf",  "sinh"};
  for (size_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); ++i) {
    char text[128], call[64];
    snprintf(text, sizeof(text), "main {\nx = f16[2] parameter() 9=0\nr = f16[2] %s(x)\n}",
             opcodes[i]);
    snprintf(call, sizeof(call), "custom_call @mhlo.%s(%%arg0)", opcodes[i]);
    reads(text, call);
  }
}

static void tuples_are_taken_apart(void **state) {
  (void)state;
  reads(
      "main {\np = (f32[2],(s32[],token[])) parameter() 9=1\nx = f32[2] parameter() 9=0\n"
      "q = (s32[],token[]) get-tuple-element(p) 13=1\ni = s32[] get-tuple-element(q) 13=0\n"
      "t = (s32[],(f32[2],(s32[],token[]))) tuple(i p)\n}",
      "@main(%arg0: tensor<2xf32>, %arg1: tensor<2xf32>, %arg2: tensor<i32>, "
      "%arg3: !stablehlo.token)\n"
      "return %arg2, %arg1, %arg2, %arg3");
  reads(X "t = (f32[4,6],f32[4,6]) tuple(x x)\nb = (f32[4,6],f32[4,6]) opt-barrier(t)\n}",
        "%0:2 = stablehlo.optimization_barrier %arg0, %arg0");
  reads(X
        "t = token[] after-all()\nu = token[] after-all(t t)\ny = f32[4,6] add-dependency(x u)\n"
        "r = f32[4,6] domain(y)\n}",
        "%1 = stablehlo.after_all %0, %0 : !stablehlo.token\nreturn %arg0");
  reads(X "s = (f32[4,6],f32[4,6],u32[]) copy-start(x)\nr = f32[4,6] copy-done(s)\n}",
        "return %arg0 : tensor<4x6xf32>");
}

#define BODY                                                                          \
  "body {\np = (s32[],f32[2]) parameter() 9=0\ni = s32[] get-tuple-element(p) 13=0\n" \
  "x = f32[2] get-tuple-element(p) 13=1\nj = s32[] add(i i)\ny = f32[2] negate(x)\n"  \
  "t = (s32[],f32[2]) tuple(j y)\n}\n"
#define COND                                                                          \
  "cond {\np = (s32[],f32[2]) parameter() 9=0\ni = s32[] get-tuple-element(p) 13=0\n" \
  "n = s32[] constant() 8={4=9}\nc = pred[] compare(i n) 63='LT'\n}\n"

static void loops_branches_and_calls(void **state) {
  (void)state;
  reads(BODY COND
        "main {\np = (s32[],f32[2]) parameter() 9=0\n"
        "w = (s32[],f32[2]) while(p) calls(body cond)\n}",
        "%0:2 = stablehlo.while(%arg2 = %arg0, %arg3 = %arg1)");
  static const char branches[] =
      "yes {\nx = f32[2] parameter() 9=0\nr = f32[2] negate(x)\n}\n"
      "no {\np = (f32[2],s32[]) parameter() 9=0\nx = f32[2] get-tuple-element(p) 13=0\n"
      "r = f32[2] abs(x)\n}\n";
  char text[1024];
  snprintf(text, sizeof(text),
           "%smain {\nc = pred[] parameter() 9=0\nx = f32[2] parameter() 9=1\n"
           "i = s32[] parameter() 9=2\nt = (f32[2],s32[]) tuple(x i)\n"
           "r = f32[2] conditional(c x t) calls(yes no)\n}",
           branches);
  reads(text, "\"stablehlo.if\"(%arg0)\nstablehlo.negate %arg1\nstablehlo.abs %arg1");
  snprintf(text, sizeof(text),
           "%smain {\nc = s32[] parameter() 9=0\nx = f32[2] parameter() 9=1\n"
           "t = (f32[2],s32[]) tuple(x c)\nr = f32[2] conditional(c x t) calls(yes no)\n}",
           branches);
  reads(text, "\"stablehlo.case\"(%arg0)");
  // A function that is called twice exists once.
  snprintf(text, sizeof(text),
           "%smain {\nx = f32[2] parameter() 9=0\n"
           "y = f32[2] call(x) calls(yes)\nr = f32[2] fusion(y) calls(yes)\n}",
           branches);
  reads(text, "%0 = call @yes.0(%arg0)\n%1 = call @yes.0(%0)\nfunc.func private @yes.0");
}

static void what_starts_is_done(void **state) {
  (void)state;
  reads(
      "f {\na = f32[2] parameter() 9=0\nb = s32[] parameter() 9=1\nr = f32[2] negate(a)\n}\n"
      "main {\nx = f32[2] parameter() 9=0\ni = s32[] parameter() 9=1\n"
      "s = ((f32[2],s32[]),f32[2],u32[]) async-start(x i) calls(f)\n"
      "u = ((f32[2],s32[]),f32[2],u32[]) async-update(s)\nr = f32[2] async-done(u)\n}",
      "%0 = call @f.0(%arg0, %arg1)\nreturn %0");
  reads(ADD X "s = f32[4,6] all-reduce-start(x) calls(add)\nr = f32[4,6] all-reduce-done(s)\n}",
        "stablehlo.all_reduce");
  reads(X
        "s = (f32[4,6],f32[8,6]) all-gather-start(x) 14=[0] 49={1=[0,1]}\n"
        "r = f32[8,6] all-gather-done(s)\n}",
        "all_gather_dim = 0 : i64\nreplica_groups = dense<[[0, 1]]>\nreturn %0 : tensor<8x6xf32>");
  reads(X
        "s = (f32[4,6],f32[4,6],u32[],u32[]) collective-permute-start(x) 52={2=1} 52={1=1}\n"
        "r = f32[4,6] collective-permute-done(s)\n}",
        "source_target_pairs = dense<[[0, 1], [1, 0]]>");
}

static void collectives(void **state) {
  (void)state;
  // Operands of two types become two operations.
  reads(ADD X
        "h = f16[4,6] convert(x)\n"
        "r = (f32[4,6],f16[4,6],f32[4,6]) all-reduce(x h x) calls(add) 26=3 71=1\n}",
        "\"stablehlo.all_reduce\"(%arg0, %arg0)\n\"stablehlo.all_reduce\"(%0)\n"
        "use_global_device_ids\nreturn %1#0, %3, %1#1");
  reads(ADD X "r = (f32[2,6],f32[2,6]) reduce-scatter(x x) calls(add) 14=[0] 49={1=[0,1]}\n}",
        "scatter_dimension = 0 : i64");
  // Groups: of different sizes, in the newer list, as iota, as axes of a mesh.
  reads(ADD X "r = f32[4,6] all-reduce(x) calls(add) 49={1=[0,2]} 49={1=[1]}\n}",
        "replica_groups = dense<[[0, 2], [1, -1]]>");
  reads(ADD X "r = f32[4,6] all-reduce(x) calls(add) 87={1={1=[1,0]}}\n}", "dense<[[1, 0]]>");
  reads(ADD X "r = f32[4,6] all-reduce(x) calls(add) 92={1=3 2=2 3=[2,3] 4=[1,0]}\n}",
        "dense<[[0, 3], [1, 4], [2, 5]]>");
  reads(ADD X "r = f32[4,6] all-reduce(x) calls(add) 87={2={1=1 2=4}}\n}", "dense<[[0, 1, 2, 3]]>");
  reads(ADD X
        "r = f32[4,6] all-reduce(x) calls(add) "
        "93={1={1={1='a' 2=2} 1={1='b' 2=4}} 2={1=1 2={1=2 2=2}} 2={}}\n}",
        "sdy.mesh @hlo_mesh_0 = <[\"a\"=2, \"b\"=4]>\nname = \"b\", sub_axis_info = (2)2");
  reads(X "r = f32[4,6] all-to-all(x) 14=[0] 49={1=[0,1]}\n}",
        "concat_dimension = 0 : i64\nsplit_count = 2 : i64, split_dimension = 0 : i64");
  reads(X "r = (f32[4,6],f32[4,6]) all-to-all(x x) 49={1=[0,1]}\n}",
        "stablehlo.concatenate %0, %1, dim = 0 : (tensor<1x4x6xf32>, tensor<1x4x6xf32>)\n"
        "stablehlo.slice %3 [1:2, 0:4, 0:6]");
  reads(X "r = f32[4,6] collective-broadcast(x) 49={1=[0,1]}\n}", "stablehlo.collective_broadcast");
  reads("main {\nr = u32[] replica-id()\np = u32[] partition-id()\nt = (u32[],u32[]) tuple(r p)\n}",
        "stablehlo.replica_id\nstablehlo.partition_id");
  reads(X
        "t = token[] after-all()\n"
        "s = (f32[4,6],u32[],token[]) send(x t) 26=7 "
        "68={1={1='_xla_send_recv_source_target_pairs' 2='{{0,1},{1,2}}'}}\n"
        "d = token[] send-done(s) 26=7\nv = (f32[4,6],u32[],token[]) recv(d) 26=8\n"
        "w = (f32[4,6],token[]) recv-done(v) 26=8\nr = f32[4,6] get-tuple-element(w) 13=0\n}",
        "\"stablehlo.send\"(%arg0, %0)\ndense<[[0, 1], [1, 2]]>\n\"stablehlo.recv\"(%1)");
}

static void bitcasts_follow_the_layouts(void **state) {
  (void)state;
  reads("main {\nx = f32[4,6]{0,1} parameter() 9=0\nr = s32[12,2] bitcast(x)\n}",
        "transpose %arg0, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>\n"
        "bitcast_convert %0 : (tensor<6x4xf32>) -> tensor<6x4xi32>\n"
        "reshape %1 : (tensor<6x4xi32>) -> tensor<12x2xi32>");
  reads("main {\nx = f32[4,6] parameter() 9=0\nr = f32[2,12]{0,1} bitcast(x)\n}",
        "reshape %arg0 : (tensor<4x6xf32>) -> tensor<12x2xf32>\n"
        "transpose %0, dims = [1, 0] : (tensor<12x2xf32>) -> tensor<2x12xf32>");
}

static void calls_by_name(void **state) {
  (void)state;
  reads(X "r = f32[4,6] custom-call(x) 28='Sharding' 40={1=3 3=[2,1] 9=[2]}\n}",
        "custom_call @Sharding(%arg0) {mhlo.sharding = \"{devices=[2,1]<=[2]}\"}");
  reads(X "r = (f32[4,6],f32[4]) custom-call(x) 28='Eigh' 43='0,1,100,0.1'\n}",
        "custom_call @Eigh(%arg0) {backend_config = \"0,1,100,0.1\"");
  reads(X
        "r = f32[4,6]{0,1} custom-call(x) 28='f' 43='{n = 3 : i32, s = \"t\"}' 77=4 65=1 56=1 "
        "57={2=11 3=[4,6] 5={1=[0,1]}} 74={2=0}\n}",
        "api_version = 4 : i32, backend_config = {n = 3 : i32, s = \"t\"}\nhas_side_effect = true\n"
        "operand_layouts = [dense<[0, 1]> : tensor<2xindex>]\n"
        "output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = []");
}

static void what_stands_beside(void **state) {
  (void)state;
  reads(
      "main {\nx = f32[4,6] parameter() 9=0 40={1=3 3=[1,2] 4=[1,0]}\n"
      "y = f32[4,6] parameter() 9=1\nz = f32[4,6] parameter() 9=2\n"
      "a = f32[4,6] negate(x) 40={1=4} 68={1={1='k' 2='v'}}\n"
      "t = (f32[4,6],f32[4,6]) tuple(a y) 40={1=2 5={} 5={1=1 4=[1]}}\n}\n"
      "module 8={1={1=[1] 2=1}} 18={1={1=2} 1={1=1}} 19={1={1='m' 2='n'}}",
      "%arg0: tensor<4x6xf32> {mhlo.sharding = \"{devices=[1,2]1,0}\"}\n"
      "%arg1: tensor<4x6xf32> {tf.aliasing_output = 1 : i32}\n"
      "%arg2: tensor<4x6xf32> {jax.buffer_donor = true}\n"
      "tensor<4x6xf32> {mhlo.sharding = \"{replicated}\"}\n"
      "tensor<4x6xf32> {mhlo.sharding = \"{maximal device=1}\"}\n"
      "mhlo.frontend_attributes = {k = \"v\"}, mhlo.sharding = \"{manual}\"\n"
      "mhlo.frontend_attributes = {m = \"n\"}");
  reads(X
        "r = f32[4,6] abs(x)\n}\nmodule 12={1=3 3=[2,1,2] 9=[2,2] 10=[1,0] 6=1} 14={1=3 3=[2,1,2] "
        "9=[4] 8=[4]}",
        "{devices=[2,1,2]<=[4] last_tile_dims={manual}}\n"
        "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}");
}

static void metadata_are_locations(void **state) {
  (void)state;
  mp_module_t *module = NULL;
  assert_ok(read_module(X "y = f32[4,6] abs(x) 7={2='jit(f)/abs' 3='train.py' 4=12 18=7}\n"
                          "z = f32[4,6] abs(y) 7={2='late' 15=2}\nw = f32[4,6] abs(z)\n"
                          "v = f32[4,6] abs(w) 7={3='c.py' 4=9 15=4}\n"
                          "u = f32[4,6] abs(v) 7={15=5}\n}\n"
                          "module 17={1='/site-packages/a.py' 1='b.py' 3={1=2 3=5 4=6} "
                          "3={1=1 3=7} 4={} 4={1=1} 4={} 4={1=2 2=2} 4={1=2 2=6} 4={1=2 2=5}}",
                        &module));
  // The library's frame is shown beside its caller's; frames that call each other in a circle end.
  static const char *const wanted[] = {"abs at train.py:12:7", "late at b.py:5:6", "w",
                                       "v at b.py:5:6, in a.py:7", "u at a.py:7"};
  const mp_op_t *op = module->main->body->first;
  for (size_t i = 0; i < 5; ++i, op = op->next) {
    mp_strbuf_t text;
    mp_strbuf_init(&text);
    mp_loc_describe(op->loc, &text);
    assert_string_equal(mp_strbuf_text(&text), wanted[i]);
    mp_strbuf_deinit(&text);
  }
  mp_module_release(module);
}

// The configuration's layouts and counts.
static void configured_programs(void **state) {
  (void)state;
  mp_strbuf_t module, config, outer;
  mp_strbuf_init(&module);
  mp_strbuf_init(&outer);
  mp_strbuf_init(&config);
  hlo_assemble(X "r = f32[4,6] abs(x)\n}", &module);
  hlo_text_t fields = {.at = "1={1={2=11 3=[4,6] 5={1=[0,1]}} 2={2=11 3=[4,6]}} 4=2 5=3"};
  hlo_fields(&fields, &config);
  mp_proto_put_message(&outer, 1, &module);
  mp_proto_put_message(&outer, 2, &config);
  mp_module_t *read = NULL;
  assert_ok(mp_read_hlo(mp_strbuf_text(&outer), outer.size, true, &read));
  assert_ok(mp_module_verify(read));
  assert_int_equal(read->num_replicas, 2);
  assert_int_equal(read->num_partitions, 3);
  const mp_attr_t *layout = mp_attr_dict_get(read->main->arg_attrs[0], MP_ATTR_MHLO_LAYOUT_MODE);
  assert_true(layout != NULL && mp_str_is(layout->u.str, "{0,1}"));
  assert_null(read->main->result_attrs[0]);
  mp_module_release(read);
  mp_strbuf_deinit(&config);
  mp_strbuf_deinit(&module);
  mp_strbuf_deinit(&outer);
}

// ---- refusals ----

static void refuses(const char *text, mp_status_code_t code, const char *message) {
  mp_module_t *module = NULL;
  mp_status_t status = read_module(text, &module);
  if (status == NULL) fail_msg("accepted, but it should say: %s", message);
  assert_status(status, code, message);
}

static void unsupported_instructions(void **state) {
  (void)state;
  static const char *const opcodes[] = {"infeed",
                                        "outfeed",
                                        "rng-get-and-update-state",
                                        "set-dimension-size",
                                        "stochastic-convert",
                                        "ragged-dot",
                                        "scan"};
  for (size_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); ++i) {
    char text[256], message[128];
    snprintf(text, sizeof(text), X "r = f32[4,6] %s(x) 7={2='a/step' 3='t.py' 4=9}\n}", opcodes[i]);
    snprintf(message, sizeof(message), "instruction 'r' (%s, step at t.py:9): ", opcodes[i]);
    refuses(text, MP_UNIMPLEMENTED, message);
  }
  refuses(X "r = f32[4,6] frobnicate(x)\n}", MP_UNIMPLEMENTED,
          "hlo: computation 'main': instruction 'r' (frobnicate): the opcode is not known");
  refuses(X "r = opaque[] abs(x)\n}", MP_UNIMPLEMENTED, "shape: element_type 14 is not supported");
  refuses("main {\nx = f32[4,6] parameter() 9=0 3={2=11 3=[4] 6=[1]}\n}", MP_UNIMPLEMENTED,
          "shape: is_dynamic_dimension[0]: dynamic dimensions are not supported");
  refuses(ADD XZ "r = f32[4,6] reduce-window(x z) calls(add) 15={1={1=1} 1={1=1 7=1}}\n}",
          MP_UNIMPLEMENTED, "window: a reversed window is not supported");
  refuses(X "r = f64[4,3] bitcast(x)\n}", MP_UNIMPLEMENTED, "a bitcast between tiled layouts");
  refuses(X "r = f32[4,6] all-to-all(x) 14=[0]\n}", MP_UNIMPLEMENTED, "a list of groups");
}

// Axes a=2, b=4 of a mesh.
#define NAMED(rest)    X "r = f32[4,6] abs(x) 40={14={2={1={1='a' 2=2} 1={1='b' 2=4}} " rest "}}\n}"
#define SHARDING(text) "mhlo.sharding = \"{" text "}\""

static void named_shardings(void **state) {
  (void)state;
  reads(X "r = f32[4,6] abs(x) 40={14={}}\n}", SHARDING("replicated"));
  reads(NAMED("3={1={1=1}} 3={1={1=0}}"), SHARDING("devices=[4,2]<=[2,4]T(1,0)"));
  reads(NAMED("3={} 3={2=1}"), SHARDING("replicated"));
  reads(NAMED("4={1=0} 3={1={1=1}} 3={}"),
        SHARDING("devices=[4,1,2]<=[2,4]T(1,0) last_tile_dims={replicated}"));
  reads(NAMED("3={1={1=0} 1={1=1}} 3={}"), SHARDING("devices=[8,1]<=[2,4]T(0,1)"));
  // The major and the minor half of b.
  reads(NAMED("3={1={1=1 2={1=2 2=2}}} 3={1={1=1 2={1=1 2=2}}}"),
        SHARDING("devices=[2,2,2]<=[2,2,2]T(2,1,0) last_tile_dims={replicated}"));
  reads(NAMED("3={} 3={} 5={1=0} 7={1=1}"),
        SHARDING("devices=[1,1,4,2]<=[2,4]T(1,0) last_tile_dims={manual,unreduced}"));
  // Devices in another order, by a list and by an iota, and one device.
  reads(X "r = f32[4,6] abs(x) 40={14={2={1={2=2} 1={2=2} 2=[3,2,1,0]} 3={1={1=1}} 3={}}}\n}",
        SHARDING("devices=[2,1,2]3,1,2,0 last_tile_dims={replicated}"));
  reads(X "r = f32[4,6] abs(x) 40={14={2={1={2=4} 3={1=[2,2] 2=[1,0]}} 3={1={}} 3={}}}\n}",
        SHARDING("devices=[4,1]0,2,1,3"));
  reads(X "r = f32[4,6] abs(x) 40={14={2={2=[3]}}}\n}", SHARDING("maximal device=3"));
  static const struct {
    const char *text, *what;
  } broken[] = {
      {NAMED("3={1={1=2}} 3={}"), "an axis that the mesh does not have"},
      {NAMED("3={1={1=1}} 3={1={1=1}}"), "an axis is used twice"},
      {NAMED("3={1={1=1}} 4={1=1 2={1=2 2=2}}"), "an axis is used twice"},
      {NAMED("3={1={1=1 2={1=1 2=3}}} 3={}"), "a part of an axis does not divide it"},
      {NAMED("3={1={1=1 2={1=2}}} 3={}"), "a part of an axis has no size"},
      {NAMED("2={1={2=1048576} 1={2=2}}"), "the size of the mesh is out of range"},
      {X "r = f32[4,6] abs(x) 40={14={2={1={2=0}}}}\n}", "the size of the mesh is out of range"},
      {X "r = f32[4,6] abs(x) 40={14={2={1={2=12}} 3={1={2={1=2 2=2}} 1={2={1=3 2=2}}}}}\n}",
       "parts of an axis overlap"},
      {X "r = f32[4,6] abs(x) 40={14={2={1={2=4} 2=[0,1]} 3={1={}} 3={}}}\n}",
       "the mesh has not as many devices as its axes say"},
      {X "r = f32[4,6] abs(x) 40={14={2={1={2=4} 3={1=[2,2] 2=[1,1]}} 3={1={}} 3={}}}\n}",
       "the mesh's iota does not fit its axes"},
  };
  for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); ++i) {
    refuses(broken[i].text, MP_INVALID_ARGUMENT, broken[i].what);
  }
}

static void groups_of_shardings(void **state) {
  (void)state;
#define MEMBER(rest) X "r = () custom-call(x) 28='xla.sdy.ShardingGroup'" rest "\n}"
  reads(MEMBER(" 68={1={1='xla.sdy.sharding_group_id' 2='7 : i64'}}"),
        "sdy.sharding_group %arg0 group_id=7");
  refuses(MEMBER(""), MP_INVALID_ARGUMENT, "'xla.sdy.sharding_group_id' is not a number");
  refuses(MEMBER(" 68={1={1='xla.sdy.sharding_group_id' 2='-1'}}"), MP_INVALID_ARGUMENT,
          "is not a number");
  refuses(X "r = () custom-call(x x) 28='xla.sdy.ShardingGroup'\n}", MP_INVALID_ARGUMENT,
          "2 operands where 1 is expected");
}

static void malformed_programs(void **state) {
  (void)state;
  refuses("", MP_INVALID_ARGUMENT, "the program has no computations");
  refuses(X "r = f32[4,6] abs(y)\n}", MP_INVALID_ARGUMENT,
          "instruction 'r' (abs): operand_ids[0]: the computation has no instruction with id 1000");
  refuses(X "r = f32[4,6] call(x) calls(f)\n}", MP_INVALID_ARGUMENT,
          "called_computation_ids[0]: there is no computation");
  refuses(X "y = f32[4,6] abs(z)\nz = f32[4,6] abs(y)\n}", MP_INVALID_ARGUMENT,
          "it needs its own result");
  refuses(X "r = f32[4,6] abs(x) 35=1\n}", MP_INVALID_ARGUMENT,
          "id: 1 is the id of two instructions");
  refuses(X "r = f32[4,6] abs(x x)\n}", MP_INVALID_ARGUMENT,
          "operand_ids: 2 operands instead of 1");
  refuses(X "y = f32[4] parameter() 9=0\nr = f32[4,6] abs(x)\n}", MP_INVALID_ARGUMENT,
          "parameter_number: 0 is twice a number");
  refuses("main {\nx = f32[4] parameter() 9=5\n}", MP_INVALID_ARGUMENT,
          "parameter_number: 5 is none");
  refuses(X "t = (f32[4,6]) tuple(x)\nr = f32[4,6] get-tuple-element(t) 13=1\n}",
          MP_INVALID_ARGUMENT, "tuple_index: operand 0 ('t') has no element 1");
  refuses(X "r = f32[4,6] get-tuple-element(x)\n}", MP_INVALID_ARGUMENT, "has no element 0");
  refuses(X "t = (f32[4,6],f32[4]) tuple(x x)\n}", MP_INVALID_ARGUMENT,
          "shape: value 1 is tensor<4x6xf32>, but stated as tensor<4xf32>");
  refuses(X "t = (f32[4,6]) tuple(x)\nr = f32[4,6] abs(t)\n}", MP_INVALID_ARGUMENT,
          "operand 0 ('t') is not an array");
  refuses(X "r = f32[-4] abs(x)\n}", MP_INVALID_ARGUMENT, "shape: dimensions[0] is -4");
  refuses("main {\nx = f32[4,6]{1,1} parameter() 9=0\n}", MP_INVALID_ARGUMENT,
          "shape: layout.minor_to_major: no order of 2 dimensions");
  refuses(X "r = f32[2] constant() 8={8=f1}\n}", MP_INVALID_ARGUMENT,
          "literal: 1 numbers for 2 elements");
  refuses(X "r = f32[2] constant() 8={8=f1 8=f1 8=f1}\n}", MP_INVALID_ARGUMENT,
          "literal: 3 numbers");
  refuses(X "r = f32[1000000000] constant() 8={8=f1}\n}", MP_INVALID_ARGUMENT, "are not in it");
  refuses(X "r = f32[2] constant()\n}", MP_INVALID_ARGUMENT, "literal is missing");
  refuses(X "r = pred[4,6] compare(x x) 63='LESS'\n}", MP_INVALID_ARGUMENT,
          "comparison_direction: 'LESS'");
  refuses(X "r = f32[4] reduce(x x) 14=[1]\n}", MP_INVALID_ARGUMENT,
          "called_computation_ids: there are 0");
  refuses(
      X "r = f32[4,6] slice(x) 17={1='a'}\n}", MP_INVALID_ARGUMENT,
      "instruction 'r' (slice): slice_dimensions[0]: HloInstructionProto.SliceDimensions: field 1");
  refuses(ADD X "r = f32[4,6] all-reduce(x) calls(add) 92={1=1000 2=1000 3=[7]}\n}",
          MP_INVALID_ARGUMENT, "iota");
  refuses(ADD X "r = f32[4,6] all-reduce(x) calls(add) 49={}\n}", MP_INVALID_ARGUMENT,
          "replica_groups[0] is empty");
  refuses(X "r = f32[4,6] abs(x)\n}\nmodule 8={1={1=[1]}}", MP_INVALID_ARGUMENT,
          "input_output_alias.entries[0]: output_shape_index");
  refuses(X "r = f32[4,6] abs(x)\n}\nmodule 18={1={1=7}}", MP_INVALID_ARGUMENT,
          "buffer_donor.entries[0]: parameter_number");
}

// main calls itself, and computations that call the next one twice as regions.
static void programs_that_grow(void **state) {
  (void)state;
  refuses("main {\nx = f32[] parameter() 9=0\nr = f32[] call(x) 38=[1]\n}", MP_INVALID_ARGUMENT,
          "computation 'main' calls itself");
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_puts(&text, "f0 {\nx = f32[] parameter() 9=0\nr = f32[] abs(x)\n}\n");
  for (int i = 1; i < 40; ++i) {
    mp_strbuf_printf(&text,
                     "f%d {\nx = f32[] parameter() 9=0\ny = f32[] map(x) calls(f%d)\n"
                     "r = f32[] map(y) calls(f%d)\n}\n",
                     i, i - 1, i - 1);
  }
  refuses(mp_strbuf_text(&text), MP_RESOURCE_EXHAUSTED, "");
  mp_strbuf_deinit(&text);
  // Functions exist once, however often they are called; here the verifier's limit holds.
  mp_strbuf_init(&text);
  mp_strbuf_puts(&text, "f0 {\nx = f32[] parameter() 9=0\nr = f32[] abs(x)\n}\n");
  for (int i = 1; i < 40; ++i) {
    mp_strbuf_printf(&text,
                     "f%d {\nx = f32[] parameter() 9=0\ny = f32[] call(x) calls(f%d)\n"
                     "r = f32[] call(y) calls(f%d)\n}\n",
                     i, i - 1, i - 1);
  }
  refuses(mp_strbuf_text(&text), MP_RESOURCE_EXHAUSTED, "operations with all calls inlined");
  mp_strbuf_deinit(&text);
  mp_strbuf_init(&text);
  mp_strbuf_puts(&text, "main {\nx = ");
  for (int i = 0; i < 100; ++i) mp_strbuf_putc(&text, '(');
  mp_strbuf_puts(&text, "f32[]");
  for (int i = 0; i < 100; ++i) mp_strbuf_putc(&text, ')');
  mp_strbuf_puts(&text, " parameter() 9=0\n}");
  refuses(mp_strbuf_text(&text), MP_INVALID_ARGUMENT, "nested more than 64 deep");
  mp_strbuf_deinit(&text);
}

// ---- recorded programs ----

static void each_recorded_program(void (*visit)(fixture_t file, bool is_spmd)) {
  glob_t found;
  assert_int_equal(glob(MINIPOD_SOURCE_DIR "/tests/fixtures/hlo/*.hlo", 0, NULL, &found), 0);
  assert_true(found.gl_pathc >= 10);
  for (size_t i = 0; i < found.gl_pathc; ++i) {
    fixture_t file = fixture_read_path(found.gl_pathv[i]);
    visit(file, strstr(found.gl_pathv[i], "spmd") != NULL);
    free(file.data);
  }
  globfree(&found);
}

static void compile_recorded(fixture_t file, bool is_spmd) {
  mp_module_t *module = NULL;
  assert_ok(mp_read_hlo(file.data, file.size, false, &module));
  assert_ok(mp_module_verify(module));
  mp_module_release(module);
  const mp_compile_request_t request = {
      .form = MP_PROGRAM_HLO, .num_replicas = is_spmd ? 1 : 4, .num_partitions = is_spmd ? 4 : 1};
  mp_program_t *program = NULL;
  assert_ok(mp_compile(file.data, file.size, &request, &program));
  mp_program_release(program);
}

static void recorded_programs_compile(void **state) {
  (void)state;
  each_recorded_program(compile_recorded);
}

static mp_status_t read_bytes(const char *data, size_t size) {
  mp_module_t *module = NULL;
  mp_status_t status = mp_read_hlo(data, size, false, &module);
  assert_int_equal(status == NULL, module != NULL);
  if (status == NULL) status = mp_module_verify(module);
  mp_module_release(module);
  return status;
}

static void every_truncation_is_harmless(void **state) {
  (void)state;
  fixture_t file = fixture_read("hlo/torch_launch_008.hlo");
  for (size_t size = 0; size < file.size; ++size) {
    char *copy = malloc(size + 1);
    assert_non_null(copy);
    memcpy(copy, file.data, size);
    copy = realloc(copy, size == 0 ? 1 : size);
    mp_status_t status = read_bytes(copy, size);
    // Where the field that ends is the last that matters, the program is whole.
    if (status != NULL) assert_int_equal(mp_status_code(status), MP_INVALID_ARGUMENT);
    mp_status_release(status);
    free(copy);
  }
  free(file.data);
}

static void changed_bytes_do_no_harm(void **state) {
  (void)state;
  static const uint8_t values[] = {0x00, 0x01, 0x03, 0x7F, 0x80, 0xFF};
  fixture_t file = fixture_read("hlo/torch_launch_004.hlo");
  size_t accepted = 0, refused = 0;
  for (size_t at = 0; at < file.size; ++at) {
    const char before = file.data[at];
    for (size_t i = 0; i < sizeof(values); ++i) {
      file.data[at] = (char)values[i];
      mp_status_t status = read_bytes(file.data, file.size);
      *(status == NULL ? &accepted : &refused) += 1;
      if (status != NULL) assert_true(strlen(mp_status_message(status)) > 0);
      mp_status_release(status);
    }
    file.data[at] = before;
  }
  assert_true(accepted > file.size / 10 && refused > file.size / 10);
  free(file.data);
}

// Reading and verifying with the n-th allocation failing, for every n.
static void every_failed_allocation_is_survived(void **state) {
  (void)state;
  fixture_t file = fixture_read("hlo/torch_launch_008.hlo");
  bool failed = true;
  int failures = -1;
  for (int n = 1; failed; ++n, ++failures) {
    mp_alloc_fail_at(n, 1);
    mp_status_t status = read_bytes(file.data, file.size);
    mp_alloc_fail_at(0, 0);
    failed = status != NULL;
    if (failed) assert_int_equal(mp_status_code(status), MP_RESOURCE_EXHAUSTED);
    mp_status_release(status);
  }
  assert_true(failures > 3);
  free(file.data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plain_operations),
      cmocka_unit_test(old_forms),
      cmocka_unit_test(literals),
      cmocka_unit_test(products_and_windows),
      cmocka_unit_test(computations_on_scalars),
      cmocka_unit_test(functions_are_calls),
      cmocka_unit_test(tuples_are_taken_apart),
      cmocka_unit_test(loops_branches_and_calls),
      cmocka_unit_test(what_starts_is_done),
      cmocka_unit_test(collectives),
      cmocka_unit_test(bitcasts_follow_the_layouts),
      cmocka_unit_test(calls_by_name),
      cmocka_unit_test(what_stands_beside),
      cmocka_unit_test(metadata_are_locations),
      cmocka_unit_test(configured_programs),
      cmocka_unit_test(unsupported_instructions),
      cmocka_unit_test(named_shardings),
      cmocka_unit_test(groups_of_shardings),
      cmocka_unit_test(malformed_programs),
      cmocka_unit_test(programs_that_grow),
      cmocka_unit_test(recorded_programs_compile),
      cmocka_unit_test(every_truncation_is_harmless),
      cmocka_unit_test(changed_bytes_do_no_harm),
      cmocka_unit_test(every_failed_allocation_is_survived),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
