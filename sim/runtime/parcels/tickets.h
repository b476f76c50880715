// Sets of ticket numbers, which count from 0 in each process that makes tickets.
#ifndef MINIPOD_SIM_RUNTIME_PARCELS_TICKETS_H_
#define MINIPOD_SIM_RUNTIME_PARCELS_TICKETS_H_

#include "sim/base/status.h"

// Zero-initialized: empty. Not thread-safe.
typedef struct {
  uint64_t *bits;
  size_t num_words;
} mp_tickets_t;

// Numbers are below this one. A set needs one bit for each number up to the highest one.
#define MP_TICKETS_MOST (UINT64_C(1) << 32)

bool mp_tickets_have(const mp_tickets_t *tickets, uint64_t number);
// INVALID_ARGUMENT for a number that is too high, RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_tickets_add(mp_tickets_t *tickets, uint64_t number);
// Frees the set, and leaves an empty one.
void mp_tickets_clear(mp_tickets_t *tickets);

#endif  // MINIPOD_SIM_RUNTIME_PARCELS_TICKETS_H_
