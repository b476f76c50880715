// The time of a matmul's or convolution's kernel, by the chip's parameters (`matmul`): the units
// and windows of a TPU, the waves of a GPU, or only the described rates. README.md has the
// formulas.
//
// Pure functions; thread-safe.
#ifndef MINIPOD_SIM_CHIP_COST_MATMUL_COST_H_
#define MINIPOD_SIM_CHIP_COST_MATMUL_COST_H_

#include "sim/chip/cost/chip.h"
#include "sim/chip/fuse/chip_fusion.h"

// How much faster results are written to VMEM than to HBM, if the chip has no parameter for it.
#define MP_MATMUL_SCRATCH_WRITE 1.45

// The bytes of HBM that a matmul's kernel moves, by their use. Arrays in VMEM have none.
typedef struct {
  double factors[2];    // read for each operand
  double beside;        // read by the epilogue: a residual, an optimizer's state
  double narrow, wide;  // results of up to 16 bits per element, and of more
  double swaps;  // seconds of copies because the result has its rows in the lanes; 0: it has not
  bool is_near;  // all arrays are in VMEM: the launch is shorter
  bool is_rows;  // the softmax of the result's rows is in the kernel
} mp_matmul_streams_t;

typedef struct {
  const mp_work_matmul_t *matmul;
  double bytes;                        // that the kernel moves through HBM, fused ops included
  double vector_seconds;               // of fused ops
  double efficiency;                   // the share of all rates that the kernel reaches; (0, 1]
  const mp_matmul_streams_t *streams;  // NULL: nothing is fused, and a TPU prefetches one operand
  double inner_seconds;                // of a matmul in the kernel that makes an operand; 0: none
  const mp_work_matmul_t *inner;       // that matmul; NULL: none
  const mp_matmul_streams_t *inner_streams;
} mp_matmul_kernel_t;

// The seconds of the kernel, with its latency.
double mp_matmul_seconds(const mp_chip_t *chip, const mp_matmul_kernel_t *kernel);

// ---- by kind of chip; without the bytes and the vector work of what is fused ----

// The described bandwidth of HBM; parameters are shares of it.
static inline double mp_matmul_bandwidth(const mp_chip_t *chip) {
  return chip->memory_bandwidth / mp_figure_or(chip->figures.memory_share, 1);
}

// How much faster a result of up to 16 bits per element, or a wider one, is written to VMEM than to
// HBM.
static inline double mp_matmul_near_write(const mp_chip_t *chip, bool is_narrow) {
  const mp_figure_list_t *near = &chip->figures.matmul_near_write;
  const mp_figure_list_t *write = &chip->figures.matmul_write;
  const uint32_t i = is_narrow ? MP_MATMUL_WRITE_NARROW : MP_MATMUL_WRITE_WIDE;
  if (near->count != MP_MATMUL_WRITE_COUNT || write->count != MP_MATMUL_WRITE_COUNT)
    return MP_MATMUL_SCRATCH_WRITE;
  return near->each[i] / write->each[i];
}

// Whether the chip has the parameters of waves of tiles, or of windows.
bool mp_matmul_has_waves(const mp_chip_t *chip);
double mp_matmul_gpu_seconds(const mp_chip_t *chip, const mp_matmul_kernel_t *kernel);

bool mp_matmul_has_windows(const mp_chip_t *chip);
double mp_matmul_tpu_seconds(const mp_chip_t *chip, const mp_matmul_kernel_t *kernel);
// Of a matmul that makes an operand of another one in its kernel; without a launch.
double mp_matmul_inner_seconds(const mp_chip_t *chip, const mp_work_matmul_t *matmul,
                               const mp_matmul_streams_t *streams);

// A `ragged_dot` becomes what the steps of its kernel multiply: a matmul per group, with the rows
// of a mean group. Returns the seconds that the steps take in addition; 0 for other matmuls.
double mp_matmul_ragged_steps(const mp_chip_t *chip, const mp_ragged_t *ragged,
                              mp_work_matmul_t *matmul);

#endif  // MINIPOD_SIM_CHIP_COST_MATMUL_COST_H_
