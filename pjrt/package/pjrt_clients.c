#include "pjrt/package/pjrt_clients.h"

#include <stdatomic.h>

#include "sim/base/alloc.h"
#include "sim/base/os/lock.h"
#include "sim/base/os/process.h"

static mp_lock_t g_lock = MP_LOCK_INITIALIZER(MP_LOCK_CLIENTS);
static PJRT_Client *g_clients;  // under the lock, by `next`
// The generation of the process that owns the list. Atomic, because a forked child must read it
// without the lock, which a thread of its parent may have held.
static atomic_uint g_generation;

void mp_pjrt_clients_add(PJRT_Client *client) {
  mp_lock(&g_lock);
  // A forked child starts a new list: it cannot use its parent's clients.
  if (g_generation != mp_process_generation()) g_clients = NULL;
  g_generation = mp_process_generation();
  client->next = g_clients;
  g_clients = client;
  mp_unlock(&g_lock);
}

void mp_pjrt_clients_remove(PJRT_Client *client) {
  if (g_generation != mp_process_generation()) return;
  mp_lock(&g_lock);
  PJRT_Client **at = &g_clients;
  while (*at != NULL && *at != client) at = &(*at)->next;
  if (*at != NULL) *at = client->next;
  mp_unlock(&g_lock);
}

mp_status_t mp_pjrt_clients_list(uint32_t *out_count, mp_client_t ***out_clients) {
  if (g_generation != mp_process_generation()) {
    *out_count = 0;
    *out_clients = NULL;
    return NULL;
  }
  uint32_t count = 0;
  mp_lock(&g_lock);
  for (const PJRT_Client *c = g_clients; c != NULL; c = c->next) ++count;
  mp_client_t **clients = mp_calloc(count + 1, sizeof(mp_client_t *));
  const PJRT_Client *client = g_clients;
  for (uint32_t i = 0; i < count && clients != NULL; ++i, client = client->next) {
    // A client in the list has its user's reference, which is released only after it has left the
    // list.
    clients[i] = mp_client_retain(client->client);
  }
  mp_unlock(&g_lock);
  MP_RETURN_IF_NULL(clients);
  *out_count = count;
  *out_clients = clients;
  return NULL;
}

void mp_pjrt_clients_free(uint32_t count, mp_client_t **clients) {
  for (uint32_t i = 0; i < count; ++i) mp_client_release(clients[i]);
  mp_free(clients);
}
