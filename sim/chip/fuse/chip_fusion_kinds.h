// What an op can be in a fusion, as compilers see it. Pure functions of verified ops.
#ifndef MINIPOD_SIM_CHIP_FUSE_CHIP_FUSION_KINDS_H_
#define MINIPOD_SIM_CHIP_FUSE_CHIP_FUSION_KINDS_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/work/work.h"
#include "topology/figures/figures.h"

typedef enum {
  MP_CHIP_FUSION_LOOP,       // computes its result element by element wherever it is wanted
  MP_CHIP_FUSION_MATMUL,     // of matrices, or a convolution
  MP_CHIP_FUSION_REDUCTION,  // of some dimensions, of one array or of several
  MP_CHIP_FUSION_WINDOW,     // of windows: can compute its operands
  MP_CHIP_FUSION_UPDATE,     // changes a part of an array in place: can compute that part
  MP_CHIP_FUSION_ALONE,      // a kernel of its own, that begins and ends in memory
} mp_chip_fusion_kind_t;

// With the op's work, as this compiler does it.
mp_chip_fusion_kind_t mp_chip_fusion_kind(const mp_chip_figures_t *figures, const mp_op_t *op,
                                          mp_work_t *out_work);

// Whether the op is a scatter of one element into each line of a constant, as the gradient of a
// look-up is: all elements of a line compare their places with the index then, one by one.
bool mp_chip_fusion_is_selection(const mp_chip_figures_t *figures, const mp_op_t *op);

// Whether the op is a matmul that a compiler for GPUs makes a sum of, in a kernel of its own that
// computes what it reads.
bool mp_chip_fusion_is_sum(const mp_chip_figures_t *figures, const mp_op_t *op);

// Rows, columns and k of a matmul as its library gets them, by those that it has.
typedef struct {
  double m, n, k;
} mp_matmul_padding_t;

// Whether a compiler for GPUs pads the matmul: of 16-bit floats, matrices by matrices, to
// multiples of eight.
bool mp_chip_fusion_pads(const mp_chip_figures_t *figures, const mp_op_t *op,
                         mp_matmul_padding_t *out_padding);

// Whether nobody writes the constant with which a loop begins: on a TPU its first round makes it,
// or its rounds write every part of it before it is read.
bool mp_chip_fusion_makes_start(const mp_chip_figures_t *figures, const mp_op_t *loop,
                                uint32_t operand);

// Whether an op multiplies an array by a number.
bool mp_chip_fusion_scales(const mp_chip_figures_t *figures, const mp_op_t *op);

// Made again by whoever reads it.
bool mp_chip_fusion_is_generator(const mp_op_t *op);

// Whether XLA knows a value when it compiles: elementwise ops of constants that have one number for
// all elements. It writes the number in place of them.
bool mp_chip_fusion_is_folded(const mp_value_t *value);

// Whether an op divides floats by a number that is known then, which XLA makes a multiplication.
bool mp_chip_fusion_is_scaling_quotient(const mp_op_t *op);

// Whether the op's kernel can compute operand `operand` itself, element by element. What is looked
// up in a table, or is updated, has to be in memory.
bool mp_chip_fusion_takes(const mp_chip_figures_t *figures, const mp_op_t *op,
                          mp_chip_fusion_kind_t kind, uint32_t operand);

// Whether an op is too dear to be computed again for each element into which it is broadcast.
bool mp_chip_fusion_is_dear(const mp_op_t *op, const mp_work_t *work);

// Elements of a value; of an op's largest result.
double mp_chip_fusion_value_count(const mp_value_t *value);
double mp_chip_fusion_op_count(const mp_op_t *op);
// Elements through which an op goes.
double mp_chip_fusion_extent(const mp_op_t *op, mp_chip_fusion_kind_t kind);

// Whether the op goes through an array of `count` elements one by one, so that it can do so while
// its operand is being computed.
bool mp_chip_fusion_goes_along(const mp_op_t *op, mp_chip_fusion_kind_t kind, double count);

// The dimension along which every window of a reduce_window reaches from one end of the array: sums
// up to each element. -1: there is none.
int64_t mp_chip_fusion_cumulative(const mp_op_t *op);
// What XLA's compiler for GPUs makes of a select_and_scatter, the gradient of the largest elements
// of windows (SelectAndScatterExpander): a kernel that finds the windows' values and their places
// along every dimension, one that writes zeros, and one that adds what is given to those places.
// The bytes of all values and places; those that these kernels move besides the operand, what is
// given and the result, once each; how many kernels there are besides the last. 0 of any other op.
double mp_chip_fusion_selected_bytes(const mp_op_t *op);
double mp_chip_fusion_selected_moved(const mp_op_t *op);
double mp_chip_fusion_selected_kernels(const mp_op_t *op);
// Whether an op writes values to one window of an array.
bool mp_chip_fusion_sets_window(const mp_op_t *op);
// Whether a scatter sets values, so that it need not read what was there.
bool mp_chip_fusion_is_set(const mp_op_t *op);
// The elements of a row if a reduction is one over the minor dimension alone; else 0.
double mp_chip_fusion_row(const mp_op_t *op);
// Whether what it leaves has rows again. Sums that are one row lie in lanes, the rows that they are
// of in sublanes: libtpu 0.0.52 has a kernel for the maximum, one for the sum and one behind them.
bool mp_chip_fusion_leaves_rows(const mp_op_t *op);
// Whether it is the maximum of rows, or a sum of exponentials: the two of a softmax.
bool mp_chip_fusion_is_of_softmax(const mp_op_t *op);
// Whether an op is the exponential of rows of up to so many elements, from each of which its
// maximum was taken: it is made where that is.
bool mp_chip_fusion_is_shifted_exp(const mp_op_t *op, double rows_most);
// A number for the dimensions that a reduction takes away.
uint64_t mp_chip_fusion_reduced_dims(const mp_op_t *op);

// The longest row that a kernel of XLA's for GPUs keeps at hand, if no figure says another one.
#define MP_CHIP_FUSION_GPU_ROW 16384

// The value whose bytes this one has.
const mp_value_t *mp_chip_fusion_root(const mp_value_t *value);
// Whether a compiler for TPUs gives the value memory of its own, out of which it copies what main
// returns: what devices gathered or exchanged. Sums lie where what is added up does.
bool mp_chip_fusion_is_received(const mp_chip_figures_t *figures, const mp_value_t *value);
// Whether it waits for that copy in VMEM, which several cores do not have in common.
bool mp_chip_fusion_is_received_near(const mp_chip_figures_t *figures, double bytes);
// Whether it was sent out of this value as that lies in memory.
bool mp_chip_fusion_is_sent_from(const mp_value_t *received, const mp_value_t *value);
// What operand `operand` of the op is computed from, or is: broadcasts and the like are nothing.
// NULL: nothing. `out_is_reused`: its elements are wanted several times.
const mp_value_t *mp_chip_fusion_source(const mp_chip_figures_t *figures, const mp_op_t *op,
                                        mp_chip_fusion_kind_t kind, uint32_t operand,
                                        bool *out_is_reused);

// The size in tiles of a TPU with dimension `lane` across their lanes and `row` across their rows
// (-1: none), as a multiple of the size.
double mp_chip_fusion_padding(const mp_type_t *type, int32_t row, int32_t lane);

// Whether the last dimension lies across the lanes of tiles, because that leaves no more of them
// empty than another one would.
bool mp_chip_fusion_has_last_in_lanes(const mp_type_t *type);
// Whether it lies in tiles at all: across their lanes or across their rows.
bool mp_chip_fusion_has_last_in_tiles(const mp_type_t *type);

// The same for a part of a concatenation, which has rows and lanes where the whole has them,
// however empty that leaves its tiles.
double mp_chip_fusion_part_padding(const mp_op_t *concatenation, const mp_type_t *part);
// Bytes of a value in the memory of a TPU, and of the described chip: with padding of tiles or
// without.
double mp_chip_fusion_tiled_bytes(const mp_type_t *type);
double mp_chip_fusion_bytes_of(const mp_chip_figures_t *figures, const mp_type_t *type);

#endif  // MINIPOD_SIM_CHIP_FUSE_CHIP_FUSION_KINDS_H_
