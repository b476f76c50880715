// Layouts of main's parameters and results: the order of the dimensions in memory.
//
// Inside a program every array is row-major. A client may want another order for a parameter or a
// result; then the array is passed as a row-major array of permuted ("physical") dimensions.
#ifndef MINIPOD_SIM_IR_LAYOUT_H_
#define MINIPOD_SIM_IR_LAYOUT_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/ir/attr.h"

// The order that the attributes of a parameter or result ask for, by mhlo.layout_mode: "default",
// "auto", or the dimensions from minor to major as "{0,1}". `attrs` may be NULL;
// `out_minor_to_major` has room for `rank` entries. UNIMPLEMENTED for tiles and packed elements,
// INVALID_ARGUMENT for what is no order of the dimensions.
MP_NODISCARD mp_status_t mp_layout_from_attrs(const mp_attr_t *attrs, uint32_t rank,
                                              int64_t *out_minor_to_major);

// Whether the last dimension is the most minor one, the one before it the next, and so on.
bool mp_layout_is_row_major(const int64_t *minor_to_major, uint32_t rank);

// The dimension of the program's array that is dimension `k` of the array that the client sees.
static inline int64_t mp_layout_logical(const int64_t *minor_to_major, uint32_t rank, uint32_t k) {
  return minor_to_major[rank - 1 - k];
}

#endif  // MINIPOD_SIM_IR_LAYOUT_H_
