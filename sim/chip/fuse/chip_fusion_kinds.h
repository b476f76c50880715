// Properties of ops that decide about fusions. Pure functions of verified ops.
#ifndef MINIPOD_SIM_CHIP_FUSE_CHIP_FUSION_KINDS_H_
#define MINIPOD_SIM_CHIP_FUSE_CHIP_FUSION_KINDS_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/work/work.h"
#include "topology/figures/figures.h"

typedef enum {
  MP_CHIP_FUSION_LOOP,       // any reader can compute its result element by element
  MP_CHIP_FUSION_MATMUL,     // a matmul or convolution
  MP_CHIP_FUSION_REDUCTION,  // reduces dimensions of one or several arrays
  MP_CHIP_FUSION_WINDOW,     // reduces windows: can compute its operands
  MP_CHIP_FUSION_UPDATE,     // updates a part of an array in place: can compute that part
  MP_CHIP_FUSION_ALONE,      // is never fused: reads and writes memory
} mp_chip_fusion_kind_t;

// The kind of an op for the chip's compiler, and its work.
mp_chip_fusion_kind_t mp_chip_fusion_kind(const mp_chip_figures_t *figures, const mp_op_t *op,
                                          mp_work_t *out_work);

// Whether the op scatters one element into each line of a constant, like the gradient of a lookup.
// It then compares each element's position with the index.
bool mp_chip_fusion_is_selection(const mp_chip_figures_t *figures, const mp_op_t *op);

// Whether the op is a matmul that XLA turns into a reduction on GPUs, which can compute its
// operands.
bool mp_chip_fusion_is_sum(const mp_chip_figures_t *figures, const mp_op_t *op);

// The padded rows, columns and k of a matmul, as multiples of the original ones.
typedef struct {
  double m, n, k;
} mp_matmul_padding_t;

// Whether XLA for GPUs pads the matmul to multiples of eight: operands in 16-bit floats, neither of
// them a vector.
bool mp_chip_fusion_pads(const mp_chip_figures_t *figures, const mp_op_t *op,
                         mp_matmul_padding_t *out_padding);

// Whether the constant initial value of a loop is never written: on TPUs the first iteration makes
// it.
bool mp_chip_fusion_makes_start(const mp_chip_figures_t *figures, const mp_op_t *loop,
                                uint32_t operand);

// Whether each reader recomputes the op: broadcasts, iotas, constants.
bool mp_chip_fusion_is_generator(const mp_op_t *op);

// Whether a value is a scalar constant, or its broadcast.
bool mp_chip_fusion_is_constant(const mp_value_t *value);

// Whether XLA folds a value into a scalar constant: elementwise ops and broadcasts of splat
// constants.
bool mp_chip_fusion_is_folded(const mp_value_t *value);

// Whether an op divides floats by such a constant, which XLA replaces by a multiplication.
bool mp_chip_fusion_is_scaling_quotient(const mp_op_t *op);

// Whether the op's fusion can compute operand `operand` element by element. Updated arrays have to
// be in memory, and except on GPUs tables of gathers.
bool mp_chip_fusion_takes(const mp_chip_figures_t *figures, const mp_op_t *op,
                          mp_chip_fusion_kind_t kind, uint32_t operand);

// The elements of a value, and of an op's largest result.
double mp_chip_fusion_value_count(const mp_value_t *value);
double mp_chip_fusion_op_count(const mp_op_t *op);
// The elements that an op iterates over: those of a reduction's operand, of an update's part.
double mp_chip_fusion_extent(const mp_op_t *op, mp_chip_fusion_kind_t kind);

// Whether the op reads each of the `count` elements of an operand once, as the kernel iterates, so
// that the kernel can compute them.
bool mp_chip_fusion_goes_along(const mp_op_t *op, mp_chip_fusion_kind_t kind, double count);

// Whether a reduce_window is cumulative: along a dimension, its windows are as long as the array,
// and longer than eight elements.
bool mp_chip_fusion_is_cumulative(const mp_op_t *op);
// The kernels of a select_and_scatter, the gradient of max pooling, in XLA for GPUs
// (SelectAndScatterExpander): the first finds each window's value and its position along each
// dimension, the second writes zeros, the third adds the source at those positions.
// `bytes`: of all values and positions. `moved`: what the kernels read and write in addition to
// operand, source and result once each. `kernels`: their number without the last. 0 for other ops.
double mp_chip_fusion_selected_bytes(const mp_op_t *op);
double mp_chip_fusion_selected_moved(const mp_op_t *op);
double mp_chip_fusion_selected_kernels(const mp_op_t *op);
// Whether an op writes one window of an array.
bool mp_chip_fusion_sets_window(const mp_op_t *op);
// The elements of a row if the op reduces only the minor dimension; else 0.
double mp_chip_fusion_row(const mp_op_t *op);
// Whether an op is the exponential of rows minus their maximum, with up to `rows_most` elements.
bool mp_chip_fusion_is_shifted_exp(const mp_op_t *op, double rows_most);
// The dimensions that an op reduces: a bit for each.
uint64_t mp_chip_fusion_reduced_dims(const mp_op_t *op);

// The longest row that a kernel of XLA for GPUs keeps on chip, unless `fusion.row` sets another.
#define MP_CHIP_FUSION_GPU_ROW 16384

// The value that this one is an alias of, or itself.
const mp_value_t *mp_chip_fusion_root(const mp_value_t *value);
// The same, also before transposes, which move nothing on TPUs.
const mp_value_t *mp_chip_fusion_untransposed(const mp_value_t *value);
// Whether libtpu gives the value a buffer of its own, from which it copies a result of main:
// results of gathers, exchanges and permutes. Sums are in place.
bool mp_chip_fusion_is_received(const mp_chip_figures_t *figures, const mp_value_t *value);
// Whether that buffer is in VMEM: it fits, and the chip has a single core, as cores share no VMEM.
bool mp_chip_fusion_is_received_near(const mp_chip_figures_t *figures, double bytes);
// Whether `received` was permuted from this value, in place.
bool mp_chip_fusion_is_sent_from(const mp_value_t *received, const mp_value_t *value);
// The value that operand `operand` of the op is, or is computed from: looks through aliases and
// broadcasts. NULL: iotas and scalar constants. `out_is_reused`: its elements are read several
// times.
const mp_value_t *mp_chip_fusion_source(const mp_chip_figures_t *figures, const mp_op_t *op,
                                        mp_chip_fusion_kind_t kind, uint32_t operand,
                                        bool *out_is_reused);

// An iterator over the operands with such a value: `mp_chip_fusion_next` finds the next one.
typedef struct {
  uint32_t next, operand;
  const mp_value_t *value;
  bool is_reused;
} mp_chip_fusion_read_t;

bool mp_chip_fusion_next(const mp_chip_figures_t *figures, const mp_op_t *op,
                         mp_chip_fusion_kind_t kind, mp_chip_fusion_read_t *read);

// The bytes of an array on the described chip: with tiles or without.
double mp_chip_fusion_bytes_of(const mp_chip_figures_t *figures, const mp_type_t *type);

#endif  // MINIPOD_SIM_CHIP_FUSE_CHIP_FUSION_KINDS_H_
