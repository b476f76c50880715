// What tests of fusions share: finding them in a text, and texts of matmuls and sums of rows.
#ifndef MINIPOD_TESTS_UNIT_CHIP_FUSION_SAMPLES_H_
#define MINIPOD_TESTS_UNIT_CHIP_FUSION_SAMPLES_H_

#include "sim/chip/chip_compile.h"
#include "sim/plan/compile.h"
#include "tests/unit/support/op_samples.h"

typedef struct {
  mp_arena_t *arena;
  mp_program_t *program;
  mp_chip_fusions_t fusions;
} found_t;

static inline found_t find_with(const mp_chip_figures_t *figures, const char *text) {
  found_t f = {0};
  mp_module_t *module = NULL;
  const mp_compile_request_t request = {.keep_partitioned = true};
  assert_ok(mp_read_text(text, strlen(text), &module));
  assert_ok(mp_arena_create(&f.arena));
  assert_ok(mp_compile_module(module, &request, &f.program));
  assert_ok(mp_chip_make_fusions(f.program->partitioned, figures, f.arena, &f.fusions));
  return f;
}

static inline mp_chip_figures_t figures_of(mp_chip_compiler_t compiler) {
  mp_chip_figures_t figures = mp_chip_figures_none();
  figures.compiler = compiler;
  return figures;
}

static inline void find_end(found_t *f) {
  mp_program_release(f->program);
  mp_arena_release(f->arena);
}

static inline uint32_t count_fusions(const found_t *f) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < f->fusions.fusions.count; ++i) {
    count += f->fusions.fusions.items[i].first_member != MP_CHIP_FUSION_NONE;
  }
  return count;
}

static inline double sum_bytes(const found_t *f) {
  double bytes = 0;
  for (uint32_t i = 0; i < f->fusions.fusions.count; ++i) {
    if (f->fusions.fusions.items[i].first_member == MP_CHIP_FUSION_NONE) continue;
    bytes += f->fusions.fusions.items[i].bytes;
  }
  return bytes;
}

// So many kernels, which move so many bytes together.
static inline void expect(mp_chip_compiler_t compiler, const char *text, uint32_t count,
                          double bytes) {
  const mp_chip_figures_t figures = figures_of(compiler);
  found_t f = find_with(&figures, text);
  assert_int_equal(count_fusions(&f), count);
  assert_float_equal(sum_bytes(&f), bytes, 1e-3);
  find_end(&f);
}

// The first read of a value whose bytes are these.
static inline const mp_chip_fusion_access_t *read_of(const found_t *f, double bytes,
                                                     uint32_t *skip) {
  for (uint32_t i = f->fusions.fusions.count; i-- > 0;) {
    const mp_chip_fusion_t *fusion = &f->fusions.fusions.items[i];
    for (uint32_t r = 0; fusion->first_member != MP_CHIP_FUSION_NONE && r < fusion->num_reads;
         ++r) {
      const mp_chip_fusion_access_t *access = &f->fusions.accesses.items[fusion->first_access + r];
      if (fabs(access->bytes - bytes) < 1 && (*skip)-- == 0) return access;
    }
  }
  return NULL;
}

#define TPU MP_CHIP_COMPILER_TPU
#define GPU MP_CHIP_COMPILER_GPU

enum { ROWS = 256, COLUMNS = 1024, SIZE = ROWS * COLUMNS * 4 };
#define M            "tensor<256x1024xf32>"
#define V            "tensor<256xf32>"
#define ZERO         "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
#define OP(r, o)     "%" r " = stablehlo." o " : " M "\n"
#define SPREAD(r, o) "%" r " = stablehlo.broadcast_in_dim %" o ", dims = [0] : (" V ") -> " M "\n"
#define REDUCE(r, o, combiner)                                            \
  "%" r " = \"stablehlo.reduce\"(%" o                                     \
  ", %z) <{dimensions = array<i64: 1>}> "                                 \
  "({\n^bb0(%p: tensor<f32>, %q: tensor<f32>):\n%r = stablehlo." combiner \
  " %p, %q : "                                                            \
  "tensor<f32>\nstablehlo.return %r : tensor<f32>\n}) : (" M ", tensor<f32>) -> " V "\n"

#define SCORES     "tensor<2x256x1024xf32>"
#define SCORE_SUMS "tensor<2x256xf32>"
#define SCORES_REDUCE(r, o, combiner)                                                             \
  "%" r " = \"stablehlo.reduce\"(%" o                                                             \
  ", %z) <{dimensions = array<i64: 2>}> "                                                         \
  "({\n^bb0(%p: tensor<f32>, %q: tensor<f32>):\n%r = stablehlo." combiner                         \
  " %p, %q : "                                                                                    \
  "tensor<f32>\nstablehlo.return %r : tensor<f32>\n}) : (" SCORES ", tensor<f32>) -> " SCORE_SUMS \
  "\n"
#define SCORES_OP(r, o) "%" r " = stablehlo." o " : " SCORES "\n"
#define SCORES_SPREAD(r, o) \
  "%" r " = stablehlo.broadcast_in_dim %" o ", dims = [0, 1] : (" SCORE_SUMS ") -> " SCORES "\n"

#define DOT(r, a, b)                                                                         \
  "%" r " = stablehlo.dot_general %" a ", %" b ", contracting_dims = [1] x [1] : (" M ", " M \
  ") -> " S "\n"
#define S      "tensor<256x256xf32>"
#define SQUARE (256.0 * 256 * 4)

#endif  // MINIPOD_TESTS_UNIT_CHIP_FUSION_SAMPLES_H_
