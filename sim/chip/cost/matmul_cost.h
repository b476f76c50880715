// What the kernel of a matmul of matrices or of a convolution takes on a chip, by what is known of
// the chip (figures `matmul`): the units and windows of a TPU, the waves of a GPU, or no more than
// the rates of its description. README.md has the formulas.
//
// Pure functions; thread-safe.
#ifndef MINIPOD_SIM_CHIP_COST_MATMUL_COST_H_
#define MINIPOD_SIM_CHIP_COST_MATMUL_COST_H_

#include "sim/chip/cost/chip.h"
#include "sim/chip/fuse/chip_fusion.h"

// A result that stays in VMEM is written so much faster, where no figure says more.
#define MP_MATMUL_SCRATCH_WRITE 1.45

// The bytes of a matmul's kernel by what they are for. What lies in VMEM is none.
typedef struct {
  double factors[2];    // what each factor is made of, in the kernel itself
  double beside;        // what is read where the result is made: a residual, an optimizer's state
  double narrow, wide;  // results of up to 16 bits an element, of more
  bool has_rows_in_lanes;  // the result has its rows in the lanes
  bool is_near;            // nothing of it waits for memory: the launch is that in VMEM
  bool is_rows;            // the softmax of the rows that it makes is in the kernel
  bool is_rows_again;      // and other kernels make them again
} mp_matmul_streams_t;

typedef struct {
  const mp_work_matmul_t *matmul;
  double bytes;           // that the kernel moves through memory: what is fused with it, too
  double vector_seconds;  // of what is fused with it
  double efficiency;      // the share of all rates that it reaches; (0, 1]
  const mp_matmul_streams_t *streams;  // NULL: nothing is fused, and a TPU fetches one factor
  double inner_seconds;                // of a matmul in the kernel that makes a factor; 0: none
  const mp_work_matmul_t *inner;       // that matmul; NULL: none
  const mp_matmul_streams_t *inner_streams;
} mp_matmul_kernel_t;

// The seconds of the kernel, with its latency.
double mp_matmul_seconds(const mp_chip_t *chip, const mp_matmul_kernel_t *kernel);

// ---- by kind of chip; without the bytes and the vector work of what is fused ----

// On a chip of which only the rates are known; without the latency of its kernel.
double mp_matmul_plain_seconds(const mp_chip_t *chip, const mp_work_matmul_t *matmul);

// The bandwidth of the chip's memory as it is described, of which figures are shares.
static inline double mp_matmul_bandwidth(const mp_chip_t *chip) {
  return chip->memory_bandwidth / mp_figure_or(chip->figures.memory_share, 1);
}

// How much faster a result is written that stays in VMEM, one of up to 16 bits an element
// or a wider one.
static inline double mp_matmul_near_write(const mp_chip_t *chip, bool is_narrow) {
  const mp_figure_list_t *near = &chip->figures.matmul_near_write;
  const mp_figure_list_t *write = &chip->figures.matmul_write;
  const uint32_t i = is_narrow ? MP_MATMUL_WRITE_NARROW : MP_MATMUL_WRITE_WIDE;
  if (near->count != MP_MATMUL_WRITE_COUNT || write->count != MP_MATMUL_WRITE_COUNT)
    return MP_MATMUL_SCRATCH_WRITE;
  return near->each[i] / write->each[i];
}

bool mp_matmul_is_gpu(const mp_chip_t *chip);
double mp_matmul_gpu_seconds(const mp_chip_t *chip, const mp_matmul_kernel_t *kernel);

bool mp_matmul_is_tpu(const mp_chip_t *chip);
double mp_matmul_tpu_seconds(const mp_chip_t *chip, const mp_matmul_kernel_t *kernel);
// Of a matmul in the kernel of another one, of which it makes a factor; without a launch.
double mp_matmul_inner_seconds(const mp_chip_t *chip, const mp_work_matmul_t *matmul,
                               const mp_matmul_streams_t *streams);

// ---- matmul_ragged.c ----

// Of matmuls of which each group of rows has a factor of its own (`ragged_dot`), as JAX writes them
// for any backend: all rows by each group's matrix, masked, and added up.
// What a fusion's matmul is of that kind where a compiler for TPUs makes such a kernel of it.
typedef struct {
  double groups;     // 0: it is none
  bool is_gradient;  // each group has a result of its own, and its rows are summed up
  uint32_t side;     // of the factor whose rows are the groups'
  double masked[2];  // elements of each factor that is masked, with all rows for each group
} mp_matmul_ragged_t;

mp_matmul_ragged_t mp_matmul_ragged_find(const mp_chip_t *chip, const mp_chip_fusion_t *fusion);
// `matmul` becomes what the kernel's steps multiply: a matmul for each group, with the rows of a
// mean group. Returns what the steps take besides, in seconds.
double mp_matmul_ragged(const mp_chip_t *chip, const mp_matmul_ragged_t *ragged,
                        mp_work_matmul_t *matmul);

#endif  // MINIPOD_SIM_CHIP_COST_MATMUL_COST_H_
