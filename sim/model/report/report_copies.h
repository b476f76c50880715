// Copies between devices and their hosts that a program makes, as rows: those at one line of the
// user's program, in pieces of one size, are one.
#ifndef MINIPOD_SIM_MODEL_REPORT_REPORT_COPIES_H_
#define MINIPOD_SIM_MODEL_REPORT_REPORT_COPIES_H_

#include "sim/model/report/report_fold.h"

// Makes the rows of a program, the one that takes longest first, in `arena`.
MP_NODISCARD mp_status_t mp_report_copies_make(mp_arena_t *arena, mp_report_places_t *places,
                                               const mp_model_program_books_t *books,
                                               mp_report_program_t *row);
// Replaces what the rows refer to by copies in the arena.
MP_NODISCARD mp_status_t mp_report_copies_own(mp_arena_t *arena, mp_report_program_t *row);
// Adds the rows of the same program.
void mp_report_copies_merge(mp_report_program_t *to, const mp_report_program_t *from);

#endif  // MINIPOD_SIM_MODEL_REPORT_REPORT_COPIES_H_
