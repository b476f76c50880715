// The innermost kernels of matrix products: one tile of C, whose elements stay in registers.
#ifndef MINIPOD_SIM_KERNELS_CONTRACTION_GEMM_MICRO_H_
#define MINIPOD_SIM_KERNELS_CONTRACTION_GEMM_MICRO_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Accumulation types. Integers wrap, so that signed ones are the same as unsigned ones. In pairs,
// one element of A or B is two 16-bit integers for two neighbouring k, and their two products are
// added to an accumulator of 32 bits; as that wraps, too, the sums are those of MP_ACC_U32. In
// quads it is four signed 8-bit integers for four neighbouring k; A's are stored plus 128, as
// unsigned ones.
typedef enum {
  MP_ACC_F32,
  MP_ACC_F64,
  MP_ACC_U32,
  MP_ACC_U64,
  MP_ACC_PAIRS,
  MP_ACC_QUADS,
  MP_ACC_COUNT
} mp_acc_t;

// The bytes of an accumulator, and of an element of A and B.
static inline size_t mp_acc_size(mp_acc_t acc) {
  return acc == MP_ACC_F64 || acc == MP_ACC_U64 ? 8 : 4;
}

// A tile. For i in the rows and j in the columns of a kernel,
//   c[i, j] = (accumulate ? c[i, j] : 0) + sum over s < segments, p < k of a[i, s, p] * b[s * k +
//   p, j],
// summed up one after the other. All steps are in bytes, and elements are aligned to their size.
typedef struct {
  int64_t k, segments;
  // Element (i, s, p) of A is at a + i * a_row + s * a_segment + p * a_k.
  const void *a;
  int64_t a_row, a_k, a_segment;
  // Rows of B are contiguous along j; row p is at b + p * b_k. Memory b_ahead bytes after the
  // current row is prefetched.
  const void *b;
  int64_t b_k, b_ahead;
  // Rows of C are contiguous along j; row i is at c + i * c_row.
  void *c;
  int64_t c_row;
  bool accumulate;
} mp_micro_tile_t;

typedef void (*mp_micro_run_t)(const mp_micro_tile_t *tile);

// The most rows of a tile, and the most columns, on any machine.
enum { MP_MICRO_MAX_ROWS = 14, MP_MICRO_MAX_COLUMNS = 32 };
// Whether the elements of A are contiguous along the rows (a_row is an element's size) or along k
// (a_k is).
enum { MP_MICRO_BY_ROW, MP_MICRO_BY_K, MP_MICRO_FORMS };

// The kernels for one accumulation type on this machine.
typedef struct {
  uint32_t rows;   // a tile has 1 to this many rows
  uint32_t lanes;  // and this many or twice as many columns
  mp_micro_run_t run[MP_MICRO_FORMS][MP_MICRO_MAX_ROWS]
                    [2];  // [form][rows - 1][columns / lanes - 1]
} mp_micro_t;

// The best kernels for this machine's processor; static. NULL: it has no instructions for quads.
const mp_micro_t *mp_gemm_micro(mp_acc_t acc);

#endif  // MINIPOD_SIM_KERNELS_CONTRACTION_GEMM_MICRO_H_
