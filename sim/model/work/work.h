// What an op has to do, whatever machine does it: its class, its operations, the elements that it
// reads and writes. The counts are those of the cost analysis that frameworks ask for (sim/plan),
// and the first half of a command's cost on a chip (sim/model/cost); README.md has the formulas.
//
// Pure functions of verified ops with static shapes; thread-safe.
#ifndef MINIPOD_SIM_MODEL_WORK_WORK_H_
#define MINIPOD_SIM_MODEL_WORK_WORK_H_

#include "sim/ir/module.h"

// Classes of ops whose kernels reach a similar share of a machine's peak: enumerator, and the name
// in tables and calibration files.
// clang-format off
#define MP_WORK_CLASSES(X)                                                                     \
  X(FREE, "free")                /* no work of its own: constants, reshapes, tokens, jumps */  \
  X(SCALAR, "scalar")            /* single elements: counters, conditions, indices, ids */     \
  X(MATMUL, "matmul")                                                                          \
  X(CONVOLUTION, "convolution")                                                                \
  X(ELEMENTWISE, "elementwise")                                                                \
  X(REDUCTION, "reduction")                                                                    \
  X(WINDOW, "window")            /* reduce_window, select_and_scatter */                       \
  X(COPY, "copy")                /* elements move: transpose, slice, pad, concatenate, ... */  \
  X(GATHER, "gather")                                                                          \
  X(SCATTER, "scatter")                                                                        \
  X(SORT, "sort")                                                                              \
  X(FFT, "fft")                                                                                \
  X(LINALG, "linalg")            /* decompositions and systems of equations */                 \
  X(RNG, "rng")                                                                                \
  X(FOREIGN, "foreign")          /* functions of others */                                     \
  X(COLLECTIVE, "collective")    /* the links' work, not the chip's */
// clang-format on

typedef enum {
#define MP_WORK_CLASS_ENUM(name, text) MP_WORK_##name,
  MP_WORK_CLASSES(MP_WORK_CLASS_ENUM)
#undef MP_WORK_CLASS_ENUM
      MP_WORK_CLASS_COUNT
} mp_work_class_t;

// "matmul", "elementwise", ...
const char *mp_work_class_name(mp_work_class_t work_class);

// Products of matrices: `batch` times [m, k] x [k, n].
typedef struct {
  double batch, m, n, k;
  mp_dtype_t dtype;  // of the elements that are multiplied: the wider one of both operands'
  // How often the unit for `dtype` has to run for one product (the precision and the algorithm that
  // the program asks for): 1, or more where several products in a narrower type make one.
  uint32_t passes;
} mp_work_product_t;

typedef struct {
  mp_work_class_t work_class;
  // Operations on numbers, multiplication and addition counted apart: all of them, and those of a
  // product of matrices, if the op is one (then `product` says which; otherwise batch is 0).
  double flops, product_flops;
  mp_work_product_t product;
  double transcendentals;  // elements of functions such as sine; not among `flops`
  // The widest elements that are computed with, not counting products.
  mp_dtype_t dtype;
} mp_work_t;

// The work of an op, without that of other ops in its regions that are commands of their own. Of a
// fused op it is the sum of its ops' work, and the class is that of a reduction if it has one.
void mp_work_of_op(const mp_op_t *op, mp_work_t *out_work);

// The bytes that an op reads of operand `operand` if it does not keep the operand's array, and
// that it writes of result `result`. What slices, gathers and updates do not touch is not counted.
// An update writes its result in place: only what is updated.
double mp_work_bytes_read(const mp_op_t *op, uint32_t operand);
double mp_work_bytes_written(const mp_op_t *op, uint32_t result);

#endif  // MINIPOD_SIM_MODEL_WORK_WORK_H_
