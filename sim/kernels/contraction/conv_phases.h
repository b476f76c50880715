// Convolutions whose input has holes (lhs_dilation): gradients of strided convolutions, and
// transposed convolutions.
//
// Where there are `by` - 1 holes between two elements, only every by-th position of the window
// meets elements, and which ones these are depends on the position of the window modulo `by`: its
// *phase*. The positions of one phase, the elements and those positions of the window are a
// convolution without holes. So the holes are neither packed nor multiplied.
#ifndef MINIPOD_SIM_KERNELS_CONTRACTION_CONV_PHASES_H_
#define MINIPOD_SIM_KERNELS_CONTRACTION_CONV_PHASES_H_

#include "sim/kernels/contraction/convolution.h"

// A phase of one spatial dimension: the result's positions start, start + by, ... read elements by
// the window's positions tap, tap + by, ...
struct mp_conv_phase_s {
  int64_t by, start, tap;
};

enum { MP_CONV_MOST_PHASES = 16 };

// The phase that begins at `start` of a dimension with `by` - 1 holes and low padding `pad`, whose
// window moves by 1.
mp_conv_phase_t mp_conv_phase(int64_t by, int64_t start, int64_t pad);
// How many of the positions start, start + by, ... lie below `extent`.
int64_t mp_conv_phase_count(int64_t extent, int64_t start, int64_t by);
// Changes the dimension to that of a phase. If `by` is 1, the dimension does not change.
void mp_conv_take_phase(mp_conv_dim_t *dim, mp_conv_phase_t phase);

// The kernel of all phases together.
typedef struct mp_conv_phases_s mp_conv_phases_t;
MP_NODISCARD mp_status_t mp_conv_phases_create(mp_arena_t *arena, const mp_op_t *op, uint32_t most,
                                               mp_conv_phases_t **out_phases);
// Adds the kernel of a phase. Its results begin `offset` bytes after the first result of the whole.
void mp_conv_phases_add(mp_conv_phases_t *phases, const mp_kernel_t *kernel, int64_t offset);
const mp_kernel_t *mp_conv_phases_kernel(const mp_conv_phases_t *phases);

#endif  // MINIPOD_SIM_KERNELS_CONTRACTION_CONV_PHASES_H_
