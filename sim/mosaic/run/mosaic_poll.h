// Loops that poll: a run that reads a semaphore, or memory that other devices write, until it
// changes.
//
// Such a run must let other devices go on, and must not poll for ever. So it stops, like at a wait,
// when it is proved that only another device can end its loop: it has come to the same read again
// with the same registers, and has stored nothing and signalled nothing meanwhile. A loop that does
// something else in each round (it counts, say) is not proved. It yields now and then, and counts
// as one that waits after very many reads without a change.
#ifndef MINIPOD_SIM_MOSAIC_RUN_MOSAIC_POLL_H_
#define MINIPOD_SIM_MOSAIC_RUN_MOSAIC_POLL_H_

#include "sim/mosaic/run/mosaic_program.h"

// Called after an instruction that is more than arithmetic or a jump. BLOCKED: the run has to wait;
// when it continues, it reads again. YIELDS: other devices should go on first. DONE: it goes on.
mp_mosaic_outcome_t mp_mosaic_poll(const mp_mosaic_program_t *program,
                                   const mp_mosaic_instruction_t *in, mp_mosaic_state_t *state,
                                   uint32_t pc);

#endif  // MINIPOD_SIM_MOSAIC_RUN_MOSAIC_POLL_H_
