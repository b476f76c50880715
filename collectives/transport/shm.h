// The transport between processes of one host: rings for headers and small data in the receiver's
// segment, payload read in place in the sender's (segment.h).
//
// A message of up to MP_INLINE_BYTES is one write into a ring and at most one wake-up. Peers that
// die without a goodbye are noticed within about a second.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_SHM_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_SHM_H_

#include "collectives/transport/transport.h"

// `own` has a ring for each peer's rank on this host. A peer is lost `grace_s` after it was found
// dead.
MP_NODISCARD mp_status_t mp_shm_create(mp_world_t *world, mp_segment_t *own, double grace_s,
                                       mp_transport_t **out_transport);
// Before the first send to `rank`, whose rank on the host names its ring. `pid` as this process
// sees it: watched; that of this process itself is not.
MP_NODISCARD mp_status_t mp_shm_add_peer(mp_transport_t *transport, uint32_t rank,
                                         mp_segment_t *segment, int64_t pid);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_SHM_H_
