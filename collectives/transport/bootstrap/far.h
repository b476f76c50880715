// The processes of other hosts, if no MPI launcher has started them: connects a world with them by
// UCX.
//
// Each process puts a card into the store: the address at which UCX listens; rank 0's also has the
// key of the job's seals (../ucx/seal.h). Any process with access to the store may take part.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_FAR_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_FAR_H_

#include "collectives/transport/store/store_talk.h"
#include "collectives/transport/transport.h"

// Opens UCX and adds its transport, which the world owns, and appends the card of this process.
// UNAVAILABLE, with the package that is missing, when there is no UCX; and the errors of
// mp_ucx_create.
MP_NODISCARD mp_status_t mp_far_open(mp_world_t *world, mp_strbuf_t *card,
                                     mp_transport_t **out_transport);
// Reads the cards of all in `folder`, and names those peers to the transport that are on other
// hosts: `leaders[rank]` is the lowest rank of its host. The errors of mp_store_hear and
// mp_ucx_connect.
MP_NODISCARD mp_status_t mp_far_connect(const mp_store_talk_t *talk, const char *folder,
                                        const int64_t *leaders, mp_transport_t *transport);

// For a restarted process (again.h): takes the job's secret from the card of the first process, and
// knocks at a process of another host, by its card. INTERNAL for an invalid card.
MP_NODISCARD mp_status_t mp_far_take_secret(const mp_strbuf_t *card, mp_transport_t *transport);
MP_NODISCARD mp_status_t mp_far_knock(mp_world_t *world, uint32_t rank, uint64_t incarnation,
                                      const mp_strbuf_t *card, const mp_knock_t *knock,
                                      mp_transport_t *transport);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_FAR_H_
