#include "sim/numeric/iota_list.h"

#include <stddef.h>

bool mp_iota_fits(const int64_t *dims, const int64_t *permutation, uint32_t rank, int64_t count) {
  int64_t product = 1;
  uint64_t seen = 0;
  if (rank > MP_IOTA_MAX_RANK) return false;
  for (uint32_t d = 0; d < rank; ++d) {
    const int64_t from = permutation == NULL ? d : permutation[d];
    if (dims[d] < 1 || __builtin_mul_overflow(product, dims[d], &product)) return false;
    if (from < 0 || from >= rank || (seen >> from & 1) != 0) return false;
    seen |= UINT64_C(1) << from;
  }
  return product == count;
}

void mp_iota_transposed(const int64_t *dims, const int64_t *permutation, uint32_t rank,
                        int64_t *out_numbers) {
  int64_t strides[MP_IOTA_MAX_RANK], index[MP_IOTA_MAX_RANK] = {0}, count = 1, number = 0;
  for (uint32_t d = rank; d-- > 0;) {
    strides[d] = count;
    count *= dims[d];
  }
  for (int64_t i = 0; i < count; ++i) {
    out_numbers[i] = number;
    for (uint32_t d = rank; d-- > 0;) {
      const int64_t from = permutation == NULL ? d : permutation[d];
      number += strides[from];
      if (++index[d] < dims[from]) break;
      number -= index[d] * strides[from];
      index[d] = 0;
    }
  }
}
