// The processes of this host: connects a world with them by shared memory.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_NEAR_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_NEAR_H_

#include "collectives/transport/bootstrap/hello.h"

// Numbers the hosts by lowest rank. `leaders[rank]` is the lowest rank of its host.
void mp_near_number_hosts(mp_world_t *world, const int64_t *leaders);

// Maps the memory of the other ranks of this host: segments[rank], which the caller releases,
// including those mapped before an error. `hellos[rank]` is the hello of a rank. UNAVAILABLE,
// naming the rank, when its memory or ours cannot be shared.
MP_NODISCARD mp_status_t mp_near_open(mp_world_t *world, void *const *hellos,
                                      const int64_t *leaders, mp_segment_t **segments);

// From now on uses mapped memory for the ranks that have it. A process that dies without a goodbye
// counts as lost after `grace_s` seconds.
MP_NODISCARD mp_status_t mp_near_connect(mp_world_t *world, void *const *hellos,
                                         mp_segment_t **segments, double grace_s);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_NEAR_H_
