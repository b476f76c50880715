// mp_transpose against a loop over elements: every size of elements, every remainder of blocks,
// steps and addresses without alignment, and nothing written beside.
#include "tests/unit/support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "sim/kernels/transpose.h"

static void check(size_t size, int64_t height, int64_t width, int64_t in_gap, int64_t out_gap) {
  const int64_t bytes = (int64_t)size;
  const int64_t src_step = height * bytes + in_gap, dst_step = width * bytes + out_gap;
  const size_t in_bytes = (size_t)(width * src_step), out_bytes = (size_t)(height * dst_step);
  // Blocks of their own, of exactly these bytes, so that sanitizers see what is read beside.
  char *in = malloc(in_bytes + 1), *out = malloc(out_bytes + 1), *expected = malloc(out_bytes + 1);
  assert_true(in != NULL && out != NULL && expected != NULL);
  for (size_t i = 0; i <= in_bytes; ++i) in[i] = (char)(i * 37 + i / 251);
  memset(out, 0x5a, out_bytes + 1);
  memset(expected, 0x5a, out_bytes + 1);
  for (int64_t r = 0; r < height; ++r) {
    for (int64_t c = 0; c < width; ++c) {
      memcpy(expected + 1 + r * dst_step + c * bytes, in + 1 + c * src_step + r * bytes, size);
    }
  }
  mp_transpose(&(mp_matrix_t){height, width, dst_step, src_step}, size, out + 1, in + 1);
  if (memcmp(out, expected, out_bytes + 1) != 0) {
    fail_msg("%d x %d elements of %d bytes", (int)height, (int)width, (int)size);
  }
  free(in);
  free(out);
  free(expected);
}

static void every_size_and_remainder(void **state) {
  (void)state;
  static const int64_t extents[] = {0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 65, 130, 300};
  enum { NUM_EXTENTS = sizeof(extents) / sizeof(extents[0]) };
  for (size_t size = 1; size <= 16; size *= 2) {
    for (size_t h = 0; h < NUM_EXTENTS; ++h) {
      for (size_t w = 0; w < NUM_EXTENTS; ++w) {
        check(size, extents[h], extents[w], 0, 0);
        check(size, extents[h], extents[w], 5, 3);
      }
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_size_and_remainder),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
