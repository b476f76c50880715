// The transport between hosts without MPI: UCX (ucx/ucx_engine.h).
//
// A packet is one active message: a sealed header (ucx/seal.h), and its data, which UCX sends after
// it, or lets the receiver fetch if it is large. Headers are numbered, so that packets of one peer
// are delivered in order and each of them once. A goodbye is acknowledged: a leaving process waits
// until the others have received all its messages, because the end of a connection may overtake it.
// All calls of UCX are made on the progress thread, once it runs, and none of them waits.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_HOSTS_UCX_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_HOSTS_UCX_H_

#include "collectives/transport/transport.h"
#include "collectives/transport/ucx/seal.h"
#include "collectives/transport/ucx/ucx_library.h"
#include "sim/base/str.h"

// A transport for the peers of the world that are named by mp_ucx_connect. UNAVAILABLE when UCX
// finds no network; RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_ucx_create(mp_world_t *world, const mp_ucx_library_t *library,
                                       mp_transport_t **out_transport);
// This process's address for the others; lives as long as the transport.
mp_str_t mp_ucx_address(const mp_transport_t *transport);
// The key of the job's seals. Before the world is started.
void mp_ucx_set_key(mp_transport_t *transport, const mp_seal_key_t *key);
// Adds a peer by its mp_ucx_address. Before the world is started. UNAVAILABLE when the two have no
// network in common (only in the lower rank, which begins the connection).
MP_NODISCARD mp_status_t mp_ucx_connect(mp_transport_t *transport, uint32_t rank, mp_str_t address);

// For a restarted process (world_return.h): knocks at a peer, by its mp_ucx_address, while the
// world runs. `incarnation`: the peer's, 0 for one of the first. RESOURCE_EXHAUSTED when memory is
// short; a peer that cannot be reached is lost.
MP_NODISCARD mp_status_t mp_ucx_knock(mp_transport_t *transport, uint32_t rank,
                                      uint64_t incarnation, mp_str_t address,
                                      const mp_knock_t *knock);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_HOSTS_UCX_H_
