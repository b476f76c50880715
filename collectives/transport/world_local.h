// Worlds of one process, for tests and tools: every rank is an object of its own, all connected by
// the shared-memory transport inside a "host", and by copies between hosts, as real ranks are.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_WORLD_LOCAL_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_WORLD_LOCAL_H_

#include "collectives/transport/world.h"

// Rank r is on host r / ranks_per_host. `out_worlds` has room for `size`.
MP_NODISCARD mp_status_t mp_worlds_create_local(uint32_t size, uint32_t ranks_per_host,
                                                mp_world_t **out_worlds);
// Says goodbye to the others, waits for what was sent to be delivered, frees.
void mp_world_close(mp_world_t *world);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_WORLD_LOCAL_H_
