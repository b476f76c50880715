// Strided copies of random boxes against a loop over elements, and nothing written beside.
#include "tests/unit/support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "sim/kernels/strided.h"

enum { BOXES = 20000, MOST_RANK = 4 };

static uint64_t g_state;

static int64_t draw(int64_t below) {
  g_state = g_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (int64_t)((g_state >> 33) % (uint64_t)below);
}

typedef struct {
  size_t size;
  uint32_t rank;
  mp_strided_dim_t dims[MOST_RANK];
  int64_t src_begin, src_bytes, dst_bytes;
} box_t;

// A box whose destination has gaps, and whose source goes any way.
static void draw_box(box_t *box) {
  *box = (box_t){.size = (size_t)1 << draw(5), .rank = (uint32_t)draw(MOST_RANK + 1)};
  const int64_t size = (int64_t)box->size;
  int64_t dst = size, src = size;
  box->src_bytes = size;
  for (uint32_t d = box->rank; d-- > 0;) {
    const int64_t extent = 1 + draw(draw(4) == 0 ? 40 : 9);
    const int64_t step = draw(3) == 0 ? src : draw(5) * size * (draw(4) == 0 ? -1 : 1);
    box->dims[d] = (mp_strided_dim_t){extent, dst + draw(2) * draw(3) * size, step};
    dst = box->dims[d].dst * extent;
    src = step * extent;
    box->src_bytes += (extent - 1) * llabs(step);
    if (step < 0) box->src_begin -= (extent - 1) * step;
  }
  box->dst_bytes = dst;
}

static void copy_by_elements(const box_t *box, uint32_t d, char *dst, const char *src) {
  if (d == box->rank) {
    memcpy(dst, src, box->size);
    return;
  }
  for (int64_t i = 0; i < box->dims[d].extent; ++i) {
    copy_by_elements(box, d + 1, dst + i * box->dims[d].dst, src + i * box->dims[d].src);
  }
}

static void check_box(const box_t *box) {
  // Blocks of their own, of exactly these bytes, so that sanitizers see what is read beside.
  char *src = malloc((size_t)box->src_bytes), *dst = malloc((size_t)box->dst_bytes);
  char *wanted = malloc((size_t)box->dst_bytes);
  assert_true(src != NULL && dst != NULL && wanted != NULL);
  for (int64_t i = 0; i < box->src_bytes; ++i) src[i] = (char)draw(256);
  memset(dst, 0x5a, (size_t)box->dst_bytes);
  memset(wanted, 0x5a, (size_t)box->dst_bytes);
  copy_by_elements(box, 0, wanted, src + box->src_begin);
  mp_strided_t copy;
  mp_strided_init(&copy, box->size);
  for (uint32_t d = 0; d < box->rank; ++d) {
    mp_strided_add_dim(&copy, box->dims[d].extent, box->dims[d].dst, box->dims[d].src);
  }
  mp_strided_finish(&copy);
  mp_strided_run(&copy, dst, src + box->src_begin);
  if (memcmp(dst, wanted, (size_t)box->dst_bytes) != 0) {
    fail_msg("rank %u, elements of %zu bytes", box->rank, box->size);
  }
  free(src);
  free(dst);
  free(wanted);
}

static void random_boxes(void **state) {
  (void)state;
  g_state = 0;
  for (int i = 0; i < BOXES; ++i) {
    box_t box;
    draw_box(&box);
    check_box(&box);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_boxes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
