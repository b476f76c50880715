// Joining by a key-value store: the world of processes without an MPI launcher.
//
// Each process puts its hello into the store, reads those of all others, maps their memory, and
// reports through the store whether it could. If there are other hosts, UCX is opened, and its
// addresses are exchanged through the store, too. From then on everything uses shared memory and
// UCX, and the store is not used any more. A process that fails meanwhile puts its error there, so
// the others need not wait for it.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_STORE_WORLD_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_STORE_WORLD_H_

#include "collectives/transport/key_value_store.h"
#include "collectives/transport/store/subset.h"
#include "collectives/transport/world.h"
#include "sim/base/options.h"

// Makes the world of the num_nodes (at least 2) processes that share the store, in which this one
// has the rank node_id; or, if `subset` is not NULL, that of these processes. `is_first`: this
// process is in no other world. It leaves this one at its end.
//
// INVALID_ARGUMENT when node_id is missing or too large; ALREADY_EXISTS when another process has
// the same; DEADLINE_EXCEEDED, with the processes that are missing, when not all have come within
// init_timeout seconds; FAILED_PRECONDITION when they differ in version or number, or run on
// different hosts and UCX is missing or finds no network; UNAVAILABLE when one of them has ended,
// or when its memory cannot be mapped; another process's error when that has failed; and the errors
// of the store.
MP_NODISCARD mp_status_t mp_store_world_join(const mp_options_t *options,
                                             const mp_key_value_store_t *store,
                                             const mp_subset_t *subset, bool is_first,
                                             mp_world_t **out_world);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_STORE_WORLD_H_
