// The live clients of the process.
#ifndef MINIPOD_PJRT_PACKAGE_PJRT_CLIENTS_H_
#define MINIPOD_PJRT_PACKAGE_PJRT_CLIENTS_H_

#include "pjrt/pjrt_objects.h"

// Between the two calls the client is in the list. The second one is called before the runtime's
// client is released, and may be repeated. Neither can fail, because all processes of a job have
// already agreed that they have a client.
void mp_pjrt_clients_add(PJRT_Client *client);
void mp_pjrt_clients_remove(PJRT_Client *client);
// Writes references to the clients into a new array, the newest one first. A forked child has none,
// and takes no lock. RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_pjrt_clients_list(uint32_t *out_count, mp_client_t ***out_clients);
// Drops the references, and frees the array; NULL has no effect.
void mp_pjrt_clients_free(uint32_t count, mp_client_t **clients);

#endif  // MINIPOD_PJRT_PACKAGE_PJRT_CLIENTS_H_
