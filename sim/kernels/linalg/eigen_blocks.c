// The blocks are the connected parts of the graph whose edges are the elements that are not zero.
#include "sim/kernels/linalg/eigen_blocks.h"

#include "sim/kernels/linalg/linalg.h"

// The least row of a row's part, as known so far. Rows on the way get shorter ways.
static int64_t eigen_blocks_find(int64_t *block, int64_t row) {
  while (block[row] != row) {
    block[row] = block[block[row]];
    row = block[row];
  }
  return row;
}

bool mp_eigen_blocks(int64_t n, const void *a, bool is_complex, int64_t *block) {
  int64_t count = n;
  for (int64_t i = 0; i < n; ++i) {
    block[i] = i;
    for (int64_t j = 0; j < i; ++j) {
      const bool is_zero = is_complex ? ((const mp_complex_t *)a)[i * n + j] == 0
                                      : ((const double *)a)[i * n + j] == 0;
      if (is_zero) continue;
      const int64_t x = eigen_blocks_find(block, i), y = eigen_blocks_find(block, j);
      if (x == y) continue;
      block[x > y ? x : y] = x > y ? y : x;
      --count;
    }
  }
  for (int64_t i = 0; i < n; ++i) block[i] = eigen_blocks_find(block, i);
  return count > 1;
}
