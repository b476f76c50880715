// Worlds within one process, for tests and tools: each rank is an object of its own. Ranks of one
// "host" are connected by the shared-memory transport, as ranks of several processes are, and ranks
// of different hosts by copies.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_WORLD_LOCAL_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_WORLD_LOCAL_H_

#include "collectives/transport/world.h"

// Makes `size` worlds, one per rank, in `out_worlds`; rank r is on host r / ranks_per_host. The
// caller ends each by mp_world_close. RESOURCE_EXHAUSTED when memory or threads are short.
MP_NODISCARD mp_status_t mp_worlds_create_local(uint32_t size, uint32_t ranks_per_host,
                                                mp_world_t **out_worlds);
// Says goodbye to the other worlds, waits until all its packets are delivered, and frees the world.
// NULL: nothing.
void mp_world_close(mp_world_t *world);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_WORLD_LOCAL_H_
