// Finds mistakes that a run of a kernel shows: races with DMAs, reads of memory that nothing has
// written, semaphores that are not zero at the end. README.md says what counts as one.
//
// A check belongs to one run of all steps, and is used by one thread at a time. Errors are
// FAILED_PRECONDITION, or out of memory.
#ifndef MINIPOD_SIM_MOSAIC_CHECK_MOSAIC_CHECK_H_
#define MINIPOD_SIM_MOSAIC_CHECK_MOSAIC_CHECK_H_

#include "sim/base/os/lock.h"
#include "sim/mosaic/run/mosaic_program.h"

typedef struct mp_mosaic_check_s mp_mosaic_check_t;

// What an argument of the kernel's function is in messages: "operand", 3.
typedef struct {
  const char *what;
  uint32_t number;
} mp_mosaic_check_name_t;

// `names`, by argument, are borrowed.
MP_NODISCARD mp_status_t mp_mosaic_check_create(const mp_mosaic_check_name_t *names,
                                                uint32_t num_names, mp_mosaic_check_t **out_check);
void mp_mosaic_check_destroy(mp_mosaic_check_t *check);

// Other devices look at the check, under this lock.
void mp_mosaic_check_share(mp_mosaic_check_t *check, mp_lock_t *lock);

// The check watches a run. `step` is the step of the grid, of `rank` dimensions, as it changes;
// borrowed until the run ends.
void mp_mosaic_check_follow(mp_mosaic_check_t *check, mp_mosaic_state_t *state, const int64_t *step,
                            uint32_t rank);

// Memory of the argument `arg` (NONE: an allocation) that nothing has written. Semaphores are
// watched until the end.
MP_NODISCARD mp_status_t mp_mosaic_check_unset(mp_mosaic_check_t *check,
                                               const mp_mosaic_type_t *type, char *memory,
                                               size_t bytes, uint32_t arg);
// The steps from here on are another core's, which has other scratch memory.
void mp_mosaic_check_divide(mp_mosaic_check_t *check);
// The memory gets another block: an error if a DMA in flight uses it.
MP_NODISCARD mp_status_t mp_mosaic_check_move(const mp_mosaic_check_t *check, char *memory,
                                              size_t bytes);
// The kernel is done.
MP_NODISCARD mp_status_t mp_mosaic_check_end(const mp_mosaic_check_t *check);

// ---- the second run ----

// All memory that nothing has written, for mp_mosaic_check_spoil.
#define MP_MOSAIC_CHECK_ALL (UINT32_MAX - 1)

// The argument of suspicious load `i`, which may be NONE; false: there are not so many.
bool mp_mosaic_check_suspect(const mp_mosaic_check_t *check, uint32_t i, uint32_t *out_arg);
// The error about the first suspicious load of the argument's memory.
MP_NODISCARD mp_status_t mp_mosaic_check_blame(const mp_mosaic_check_t *check, uint32_t arg);
// Makes the check one that finds nothing, but puts other values into the memory of the argument (or
// ALL) that nothing has written.
void mp_mosaic_check_spoil(mp_mosaic_check_t *check, uint32_t arg);
// Whether it puts other values there.
bool mp_mosaic_check_spoils(const mp_mosaic_check_t *check, uint32_t arg);

#endif  // MINIPOD_SIM_MOSAIC_CHECK_MOSAIC_CHECK_H_
