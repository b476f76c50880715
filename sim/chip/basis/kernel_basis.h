// On which parameters of the chip the time of kernels rests.
//
// A kernel's time is decided by the part of it that takes longest: its latency, its bytes, its
// vector work, an op with its own access pattern, or its matmul. The parameter of that part is the
// kernel's (kernel_basis.c has the table). A kernel that rests on a rate of the pod's description
// has none.
#ifndef MINIPOD_SIM_CHIP_BASIS_KERNEL_BASIS_H_
#define MINIPOD_SIM_CHIP_BASIS_KERNEL_BASIS_H_

#include "sim/base/str.h"
#include "sim/chip/cost/kernel_cost.h"

// The parameter of a kernel with this time; `work`: that of its ops.
mp_chip_figure_t mp_kernel_figure(const mp_chip_t *chip, const mp_work_t *work,
                                  const mp_kernel_time_t *time);
// The same of a kernel that only copies bytes, or of one on single elements.
mp_chip_figure_t mp_kernel_copy_figure(const mp_chip_t *chip, mp_work_class_t work_class,
                                       double bytes);

// `times`: of kernels, by the parameter of each, in any unit. Appends the line "12 % of this time
// rests on estimated or copied parameters: gather.slice, sort.stage"; nothing below half a percent.
void mp_kernel_basis_print(const mp_chip_figures_t *figures, const double times[MP_FIGURE_COUNT],
                           mp_strbuf_t *out);
// The share of the time that rests on parameters that are not sure.
double mp_kernel_basis_unsure(const mp_chip_figures_t *figures,
                              const double times[MP_FIGURE_COUNT]);

#endif  // MINIPOD_SIM_CHIP_BASIS_KERNEL_BASIS_H_
