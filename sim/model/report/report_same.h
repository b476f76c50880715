// Which devices compute the same: for each value of a partitioned program the devices that hold the
// same array. Parameters are as they are cut, collectives make alike what their groups bring, and
// everything else is as different as its operands are.
//
// Conservative: devices reported as different may still hold equal numbers, but devices reported as
// equal do.
// Made and read by one thread; lies in an arena.
#ifndef MINIPOD_SIM_MODEL_REPORT_REPORT_SAME_H_
#define MINIPOD_SIM_MODEL_REPORT_REPORT_SAME_H_

#include "sim/base/arena.h"
#include "sim/plan/program.h"

typedef struct mp_report_same_s mp_report_same_t;

// Looks through the program, which is borrowed. Of programs of replicas nothing is known: the
// replicas' arguments are the client's. RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_report_same_create(mp_arena_t *arena, const mp_program_t *program,
                                               mp_report_same_t **out_same);

// Of how many different arrays a value is, over all devices; 0: that is not known.
uint32_t mp_report_same_kinds(const mp_report_same_t *same, const mp_value_t *value);

#endif  // MINIPOD_SIM_MODEL_REPORT_REPORT_SAME_H_
