// The transport between processes of one host. Headers and small data go through rings in the
// receiver's segment; larger data are read in place, in the sender's segment (segment.h).
//
// A message of up to MP_INLINE_BYTES is one write into a ring and at most one wake-up. Peers that
// die without a goodbye are noticed within about a second.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_SHM_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_SHM_H_

#include "collectives/transport/transport.h"

// A transport without peers. `own` (retained) has a ring for each rank of this host. A peer counts
// as lost `grace_s` seconds after it was found dead. RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_shm_create(mp_world_t *world, mp_segment_t *own, double grace_s,
                                       mp_transport_t **out_transport);
// Called before the first send to `rank`, whose rank on the host names its ring. `segment` is the
// peer's, and retained. The process `pid` (as this process sees it) is watched, unless it is this
// process itself. INTERNAL when one of the two segments has no ring for the other side.
MP_NODISCARD mp_status_t mp_shm_add_peer(mp_transport_t *transport, uint32_t rank,
                                         mp_segment_t *segment, int64_t pid);

// ---- Coming back (world_return.h) ----

// Knocks at the door of a peer, whose segment this is, and which was added before. False: its owner
// is just reading the knock of this process's predecessor; to be repeated.
bool mp_shm_knock(mp_transport_t *transport, mp_segment_t *segment, const mp_knock_t *knock);
// True when the knock was answered: OK, or ALREADY_EXISTS when this process's predecessor is still
// alive, or the code of the error for which the peer refused it.
bool mp_shm_is_answered(mp_transport_t *transport, mp_segment_t *segment,
                        mp_status_code_t *out_code);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_SHM_H_
