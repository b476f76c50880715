// The chip that a program is compiled for: rates, latencies and efficiencies of one device of the
// described pod. A plain value that may be copied; all rates are finite and greater than 0.
#ifndef MINIPOD_SIM_CHIP_COST_CHIP_H_
#define MINIPOD_SIM_CHIP_COST_CHIP_H_

#include <stdbool.h>

#include "sim/base/status.h"
#include "sim/base/str.h"
#include "sim/work/work.h"
#include "topology/figures/figures.h"
#include "topology/pod.h"

typedef struct {
  // Matmuls of matrices, operations per second by element type.
  double flops[MP_FLOP_KIND_COUNT];
  // The tile of the matrix unit, to which matmuls are padded. 0: no such unit, and matmuls of any
  // shape run at their rate.
  int32_t matrix_rows, matrix_columns;
  // No f32 rate is described: matmuls of f32 are several of bf16.
  bool f32_by_bf16;
  double vector_flops;                     // all other operations, per second, on 32-bit numbers
  double transcendental_flops;             // operations per element of sine, exp and others
  double memory_bandwidth;                 // bytes/s of the device's own memory
  double launch_latency;                   // seconds from enqueueing a program to its start
  double op_latency;                       // seconds of a kernel in addition to its work
  double scalar_latency;                   // the same of ops on single elements
  mp_chip_figures_t figures;               // its other parameters
  double efficiency[MP_WORK_CLASS_COUNT];  // share of the peak that a class reaches, (0, 1]
} mp_chip_t;

// The chip of a pod. Rates that neither the description nor the chip's file has derive from others,
// or have a default (README.md). Errors: the description names a file that does not exist or cannot
// be read (mp_chip_figures_find).
MP_NODISCARD mp_status_t mp_chip_from_pod(const mp_pod_info_t *info, mp_chip_t *out_chip);

// The kind of rate for matmuls of elements of this type.
mp_flop_kind_t mp_chip_flop_kind(mp_dtype_t dtype);

// Simple operations per second on 32-bit numbers: additions, comparisons, selections.
static inline double mp_vector_rate(const mp_chip_t *chip) {
  return chip->vector_flops * mp_figure_or(chip->figures.vector_share, 1);
}

// What a kernel that moves so many bytes waits for its memory with nothing beside: its latency, and
// the first window that is read and the last one that is written.
double mp_chip_memory_latency(const mp_chip_t *chip, double bytes);

// Changes the efficiencies of the classes that a calibration names: lines of the form `class:
// efficiency`, and comments after a #. `origin` is the text's name in messages. INVALID_ARGUMENT
// "<origin>:<line>: ..." for an unknown class (with the nearest one), a number outside of (0, 1],
// or a class that is given twice. On an error the chip is as it was.
MP_NODISCARD mp_status_t mp_chip_calibrate(mp_chip_t *chip, const char *origin, mp_str_t text);
// The same of a file; NOT_FOUND when there is none.
MP_NODISCARD mp_status_t mp_chip_calibrate_by_file(mp_chip_t *chip, const char *path);

#endif  // MINIPOD_SIM_CHIP_COST_CHIP_H_
