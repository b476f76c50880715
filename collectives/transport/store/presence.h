// Presence: which processes of a job there are, and what each of them joins. With this a process
// that waits for others finds out that they will not come: because one has ended, or because it
// waits itself for a process that cannot come while this one waits.
//
// Each process leaves notes in the job's key-value store, a new one whenever it begins to join a
// world or has failed to. The frameworks' side may leave the first one, before there is a client
// (minipod/jax/presence.py). All of this is optional: where the store refuses notes, or lacks them,
// waits end at their time limits.
//
// Not thread-safe; the lock of joining (bootstrap.c) is held.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_STORE_PRESENCE_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_STORE_PRESENCE_H_

#include <stdbool.h>

#include "collectives/transport/key_value_store.h"
#include "collectives/transport/store/subset.h"

typedef struct mp_presence_s mp_presence_t;

// The world that a process joins. Nothing is owned.
typedef struct {
  const mp_key_value_store_t *store;
  uint32_t rank, size;       // of this process in the job, and of the job
  uint64_t world;            // mp_subset_t.name; 0: the whole job
  const char *members;       // as the option `subset` has them, or one of those below
  bool is_from_environment;  // the members are those of MINIPOD_SUBSET
} mp_presence_join_t;

#define MP_PRESENCE_ALL     "*"  // of the job
#define MP_PRESENCE_UNKNOWN "?"  // processes that have other numbers in the job

// The world that a process joins with these options: the whole job (`subset` is NULL) or a part of
// it.
mp_presence_join_t mp_presence_of_options(const mp_options_t *options,
                                          const mp_key_value_store_t *store,
                                          const mp_subset_t *subset);
// Leaves a note that this process joins this world.
void mp_presence_tell(const mp_presence_join_t *join);
// The same, and begins the checks of the others. NULL when memory is short.
mp_presence_t *mp_presence_begin(const mp_presence_join_t *join);
// Looks at some of the others; to be called again and again during a wait. UNAVAILABLE when an
// awaited process has ended; FAILED_PRECONDITION when one waits for a process that cannot come, or
// has another MINIPOD_SUBSET.
MP_NODISCARD mp_status_t mp_presence_check(mp_presence_t *presence);
// Ends the checks of the others. NULL: nothing.
void mp_presence_end(mp_presence_t *presence);
// Leaves a note that this process could not join: `status`, which is not consumed.
void mp_presence_give_up(const mp_presence_join_t *join, mp_status_t status);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_STORE_PRESENCE_H_
