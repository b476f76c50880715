// What an op has to do, whatever machine does it: its class, its operations, the bytes that it
// reads and writes. The counts are those of the cost analysis that frameworks ask for (sim/plan),
// and the first half of a command's cost on a chip (sim/chip). README.md has the formulas.
//
// Pure functions of verified ops with static shapes; thread-safe.
#ifndef MINIPOD_SIM_WORK_WORK_H_
#define MINIPOD_SIM_WORK_WORK_H_

#include "sim/ir/module.h"

// Classes of ops whose kernels reach a similar share of a machine's peak: enumerator, and the name
// in tables and calibration files.
// clang-format off
#define MP_WORK_CLASSES(X)                                                                       \
  X(FREE, "free")                /* nothing to do: constants, changes of type, jumps */          \
  X(SCALAR, "scalar")            /* single elements: counters, conditions, indices, ids */       \
  X(MATMUL, "matmul")                                                                            \
  X(CONVOLUTION, "convolution")                                                                  \
  X(ELEMENTWISE, "elementwise")                                                                  \
  X(REDUCTION, "reduction")                                                                      \
  X(WINDOW, "window")            /* reduce_window, select_and_scatter */                         \
  X(COPY, "copy")                /* elements move: transpose, slice, pad, concatenate, ... */    \
  X(GATHER, "gather")                                                                            \
  X(SCATTER, "scatter")                                                                          \
  X(SORT, "sort")                                                                                \
  X(FFT, "fft")                                                                                  \
  X(LINALG, "linalg")            /* decompositions and systems of equations */                   \
  X(RNG, "rng")                                                                                  \
  X(FOREIGN, "foreign")          /* functions of others */                                       \
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

// What a convolution is besides a matmul.
typedef struct {
  // Elements of a window, padding and holes counted, and those in its last dimension; 0: the
  // matmul is no convolution.
  double window, row;
  double images, channels;  // of the input; channels of all groups
  double in, out;           // positions of an image in the input and in the result
  bool is_strided;          // windows are more than one position apart
  double holes;             // positions of the input for each that is no hole
} mp_work_convolution_t;

// Matmuls: `batch` times [m, k] x [k, n]. Of a convolution m are its positions, n the features of
// one of `batch` groups and k what of a window lies in the input, with its channels.
typedef struct {
  double batch, m, n, k;
  mp_dtype_t dtype;   // of the factors: the wider one of both operands' types
  mp_dtype_t result;  // of the matmuls
  // How many matmuls of such elements the program asks for, to make one: more than 1 for complex
  // numbers, and for algorithms that add up several matmuls of a narrower type.
  double passes;
  // The same where a machine can only multiply bf16, for factors of f32: what the precision says.
  double bf16_passes;
  mp_work_convolution_t convolution;
} mp_work_matmul_t;

typedef struct {
  mp_work_class_t work_class;
  // Operations, a multiplication and an addition counted apart, and elements of functions such as
  // sine, which are not among the operations: as frameworks expect them of a cost analysis.
  double flops, transcendentals;
  // Operations other than matmuls, on 32-bit numbers: wider numbers and complex ones count several
  // times.
  double vector_flops, vector_transcendentals;
  mp_work_matmul_t matmul;  // batch is 0 if the op is no matmul
} mp_work_t;

// The work of an op, or of all ops of a fused one. Control flow has none: the ops in its regions
// are work of their own.
void mp_work_of_op(const mp_op_t *op, mp_work_t *out_work);
// The work of a kernel of the user's by its `cost_estimate`, and the bytes that it moves, each 0 if
// it does not say; false: it has none. The cost analysis has these numbers, as libtpu's.
bool mp_work_of_estimate(const mp_op_t *op, mp_work_t *out_work, double *out_bytes);

// How many operations on 32-bit numbers one on elements of this type counts as.
double mp_work_weight(mp_dtype_t dtype);

// The bytes of a value as an accelerator keeps it: elements of less than a byte are packed.
double mp_work_bytes_of(const mp_type_t *type);

// The bytes that an op reads of an operand, and those that it writes of a result. What slices,
// gathers and updates do not touch is not counted: of an update's result only what is updated is
// written, in place.
double mp_work_bytes_read(const mp_op_t *op, uint32_t operand);
double mp_work_bytes_written(const mp_op_t *op, uint32_t result);

#endif  // MINIPOD_SIM_WORK_WORK_H_
