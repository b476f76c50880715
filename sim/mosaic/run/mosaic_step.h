// Single instructions of a run; private to this folder and to what watches runs.
#ifndef MINIPOD_SIM_MOSAIC_RUN_MOSAIC_STEP_H_
#define MINIPOD_SIM_MOSAIC_RUN_MOSAIC_STEP_H_

#include "sim/mosaic/run/mosaic_program.h"

// The part of a view that a load, a store or a slice is about.
MP_NODISCARD mp_status_t mp_mosaic_step_part(const mp_mosaic_part_t *part,
                                             const mp_mosaic_state_t *state,
                                             const mp_mosaic_view_t *view,
                                             mp_mosaic_view_t *out_view);
// Loads, stores, and what makes views.
MP_NODISCARD mp_status_t mp_mosaic_step_memory(const mp_mosaic_program_t *program,
                                               const mp_mosaic_instruction_t *in,
                                               mp_mosaic_state_t *state);
// Unsets all memory that the program allocates.
void mp_mosaic_step_unset_allocations(const mp_mosaic_program_t *program,
                                      const mp_mosaic_state_t *state);
// Where a kernel is to compute the result that a later instruction stores: in that memory, if it is
// as kernels expect, or in the vector's own.
char *mp_mosaic_step_direct(const mp_mosaic_program_t *program, const mp_mosaic_kernel_call_t *call,
                            const mp_mosaic_direct_t *direct, const mp_mosaic_state_t *state);
// DMAs and semaphores. `out_blocks` is set if the run must wait.
MP_NODISCARD mp_status_t mp_mosaic_step_async(const mp_mosaic_instruction_t *in,
                                              mp_mosaic_state_t *state, bool *out_blocks);
// The one semaphore that the view is; the bytes on a TPU of a DMA to or from the view.
MP_NODISCARD mp_status_t mp_mosaic_async_semaphore(const mp_mosaic_view_t *view,
                                                   int64_t **out_semaphore);
int64_t mp_mosaic_async_bytes(const mp_mosaic_instruction_t *in, const mp_mosaic_view_t *view);
// What a DMA adds to its semaphore.
int64_t mp_mosaic_async_amount(const mp_mosaic_instruction_t *in, const mp_mosaic_state_t *state,
                               mp_mosaic_counts_t semaphore);
// Random numbers: a function of the seeds and of how many were drawn since.
void mp_mosaic_step_random(const mp_mosaic_instruction_t *in, mp_mosaic_state_t *state);
// Prints what a kernel asks for.
MP_NODISCARD mp_status_t mp_mosaic_step_log(const mp_mosaic_log_t *log,
                                            const mp_mosaic_state_t *state);

#endif  // MINIPOD_SIM_MOSAIC_RUN_MOSAIC_STEP_H_
