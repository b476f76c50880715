// Which results of products a compiler for TPUs copies behind them, by hand.
#include "sim/chip/clusters/cluster.h"
#include "sim/plan/compile.h"
#include "tests/unit/support/op_samples.h"

// What has to be done with the only result of a program, and whether the copy finds it in scratch
// memory of so many bytes.
static mp_cluster_lay_t lay_of(const char *text, double scratch, bool *out_is_near) {
  mp_arena_t *arena = NULL;
  mp_program_t *program = NULL;
  mp_module_t *module = NULL;
  mp_clusters_t clusters;
  mp_chip_figures_t figures = mp_chip_figures_none();
  figures.compiler = MP_CHIP_COMPILER_TPU;
  figures.memory_scratch = scratch;
  const mp_compile_request_t request = {.keep_partitioned = true};
  assert_ok(mp_read_text(text, strlen(text), &module));
  assert_ok(mp_arena_create(&arena));
  assert_ok(mp_compile_module(module, &request, &program));
  assert_ok(mp_clusters_find(program->partitioned, &figures, arena, &clusters));
  mp_cluster_lay_t lay = MP_CLUSTER_LAID;
  *out_is_near = false;
  for (uint32_t i = 0; i < clusters.accesses.count; ++i) {
    if (clusters.accesses.items[i].lay == MP_CLUSTER_LAID) continue;
    assert_int_equal(lay, MP_CLUSTER_LAID);
    lay = clusters.accesses.items[i].lay;
    *out_is_near = clusters.accesses.items[i].is_scratch;
  }
  mp_program_release(program);
  mp_arena_release(arena);
  return lay;
}

#define X "tensor<8x256x256xf32>"
#define MAIN(weight, behind, result)                                                          \
  "func.func @main(%x: " X ", %w: " weight ") -> " result " {\n" behind "return %r : " result \
  "\n}\n"
#define DOT(r, weight, result)                                                            \
  "%" r " = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0] : (" X ", " weight \
  ") -> " result "\n"
#define TURN(r, o, order, from, to) \
  "%" r " = stablehlo.transpose %" o ", dims = " order " : (" from ") -> " to "\n"

static void expect_lay(const char *text, mp_cluster_lay_t lay) {
  bool is_near;
  assert_int_equal(lay_of(text, 1e9, &is_near), lay);
  assert_int_equal(is_near, lay != MP_CLUSTER_LAID);
  assert_int_equal(lay_of(text, 0, &is_near), lay);
  assert_false(is_near);
}

#define W    "tensor<256x512xf32>"
#define BMN  "tensor<8x256x512xf32>"
#define MBN  "tensor<256x8x512xf32>"
#define NBM  "tensor<512x8x256xf32>"
#define LOUD "%e = stablehlo.tanh %d : " BMN "\n"

// Rows and lanes of a product's tiles are one dimension of either factor.
static void results_in_other_tiles_are_copied(void **state) {
  (void)state;
  expect_lay(MAIN(W, DOT("r", W, BMN), BMN), MP_CLUSTER_LAID);
  expect_lay(MAIN(W, DOT("d", W, BMN) TURN("r", "d", "[1, 0, 2]", BMN, MBN), MBN),
             MP_CLUSTER_RELAID);
  expect_lay(MAIN(W, DOT("d", W, BMN) LOUD TURN("r", "e", "[1, 0, 2]", BMN, MBN), MBN),
             MP_CLUSTER_RELAID);
  // Both factors exchanged, with rows of both dimensions of one of them.
  expect_lay(MAIN(W, DOT("d", W, BMN) TURN("r", "d", "[2, 0, 1]", BMN, NBM), NBM),
             MP_CLUSTER_RELAID);
}

#define WIDE   "tensor<256x8x128xf32>"
#define NARROW "tensor<256x8x64xf32>"
#define BTHD   "tensor<8x256x8x128xf32>"
#define BHTD   "tensor<8x8x256x128xf32>"
#define HBTD   "tensor<8x8x256x128xf32>"
#define BTHW   "tensor<8x256x8x64xf32>"
#define FLAT   "tensor<8x256x1024xf32>"

// Heads of 128 elements are rows of tiles; narrower ones have tokens in the lanes, as the product
// can make them. A transpose is not made by the product unless it makes that order by itself.
static void heads_are_copied_by_their_tiles(void **state) {
  (void)state;
  expect_lay(MAIN(WIDE, DOT("r", WIDE, BTHD), BTHD), MP_CLUSTER_RELAID);
  expect_lay(MAIN(NARROW, DOT("r", NARROW, BTHW), BTHW), MP_CLUSTER_LAID);
  expect_lay(MAIN(WIDE, DOT("d", WIDE, BTHD) TURN("r", "d", "[0, 2, 1, 3]", BTHD, BHTD), BHTD),
             MP_CLUSTER_LAID);
  expect_lay(MAIN(WIDE, DOT("d", WIDE, BTHD) TURN("r", "d", "[2, 0, 1, 3]", BTHD, HBTD), HBTD),
             MP_CLUSTER_RELAID);
  expect_lay(
      MAIN(WIDE, DOT("d", WIDE, BTHD) "%r = stablehlo.reshape %d : (" BTHD ") -> " FLAT "\n", FLAT),
      MP_CLUSTER_RELAID);
}

#define SCORES "tensor<8x4x256x512xf32>"
#define VALUES "tensor<8x512x4x128xf32>"
#define MADE   "tensor<8x4x256x128xf32>"
#define TOKENS "tensor<8x256x4x128xf32>"

// Matrices of a batch that lie inside of each other are not what a product makes.
static void batches_in_rows_are_copied(void **state) {
  (void)state;
  static const char made[] =
      "func.func @main(%s: " SCORES ", %v: " VALUES ") -> " MADE
      " {\n%r = stablehlo.dot_general %s, %v, batching_dims = [0, 1] x [0, 2], "
      "contracting_dims = [3] x [1] : (" SCORES ", " VALUES ") -> " MADE "\nreturn %r : " MADE
      "\n}\n";
  static const char turned[] =
      "func.func @main(%s: " SCORES ", %v: " VALUES ") -> " TOKENS
      " {\n%d = stablehlo.dot_general %s, %v, batching_dims = [0, 1] x [0, 2], "
      "contracting_dims = [3] x [1] : (" SCORES ", " VALUES ") -> " MADE
      "\n" TURN("r", "d", "[0, 2, 1, 3]", MADE, TOKENS) "return %r : " TOKENS "\n}\n";
  expect_lay(made, MP_CLUSTER_LAID);
  expect_lay(turned, MP_CLUSTER_RELAID);
}

#define A  "tensor<256x512xf32>"
#define AB "tensor<256x384xf32>"
#define BA "tensor<384x256xf32>"
#define ONE                                                               \
  "%d = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (" A \
  ", tensor<512x384xf32>) -> " AB "\n" TURN("r", "d", "[1, 0]", AB, BA)

// A matrix is made in either order, but only in one of them.
static void matrices_read_both_ways_are_copied_once(void **state) {
  (void)state;
  static const char once[] = "func.func @main(%a: " A ", %b: tensor<512x384xf32>) -> " BA " {\n" ONE
                             "return %r : " BA "\n}\n";
  static const char both[] = "func.func @main(%a: " A ", %b: tensor<512x384xf32>) -> (" BA ", " AB
                             ") {\n" ONE "return %r, %d : " BA ", " AB "\n}\n";
  expect_lay(once, MP_CLUSTER_LAID);
  expect_lay(both, MP_CLUSTER_CROSSED);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(results_in_other_tiles_are_copied),
      cmocka_unit_test(heads_are_copied_by_their_tiles),
      cmocka_unit_test(batches_in_rows_are_copied),
      cmocka_unit_test(matrices_read_both_ways_are_copied_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
