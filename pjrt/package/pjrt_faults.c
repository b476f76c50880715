// Faults injected at run time: all clients of the process get them.
#include "pjrt/package/pjrt_faults.h"

#include <stdatomic.h>

#include "sim/base/alloc.h"
#include "sim/base/os/lock.h"
#include "sim/base/os/process.h"
#include "sim/runtime/order/faulty.h"

static mp_lock_t g_lock = MP_LOCK_INITIALIZER(MP_LOCK_CLIENTS);
static PJRT_Client *g_clients;  // under the lock, by `next`
// The generation of the process that owns the list. Atomic, because a forked child must read it
// without the lock, which a thread of its parent may have held.
static atomic_uint g_generation;

void mp_pjrt_faults_begin(PJRT_Client *client) {
  mp_lock(&g_lock);
  // A forked child starts a new list: it cannot use its parent's clients.
  if (g_generation != mp_process_generation()) g_clients = NULL;
  g_generation = mp_process_generation();
  client->next = g_clients;
  g_clients = client;
  mp_unlock(&g_lock);
}

void mp_pjrt_faults_end(PJRT_Client *client) {
  if (g_generation != mp_process_generation()) return;
  mp_lock(&g_lock);
  PJRT_Client **at = &g_clients;
  while (*at != NULL && *at != client) at = &(*at)->next;
  if (*at != NULL) *at = client->next;
  mp_unlock(&g_lock);
}

mp_status_t mp_pjrt_faults_clients(uint32_t *out_count, mp_client_t ***out_clients) {
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

// `text` NULL: removes all faults.
static mp_status_t pjrt_faults_change(mp_client_t *client, const char *text) {
  return text == NULL ? mp_client_heal(client) : mp_client_inject(client, "inject", mp_str(text));
}

// For a client that is not the newest, errors are ignored: an array may keep it alive, and it may
// be another pod, without the device or link in question.
static mp_status_t pjrt_faults_change_one(mp_client_t *client, const char *text, bool is_newest) {
  mp_status_t status = pjrt_faults_change(client, text);
  if (is_newest || mp_status_code(status) != MP_INVALID_ARGUMENT) return status;
  mp_status_ignore(status);
  return NULL;
}

static mp_status_t pjrt_faults_change_all(const char *text) {
  uint32_t count = 0;
  mp_client_t **clients = NULL;
  MP_RETURN_IF_ERROR(mp_pjrt_faults_clients(&count, &clients));
  mp_status_t status = NULL;
  if (count == 0) {
    status = mp_status_make(MP_FAILED_PRECONDITION,
                            "there is no pod yet: use a device first, or set MINIPOD_FAULTS");
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (status == NULL) status = pjrt_faults_change_one(clients[i], text, i == 0);
    mp_client_release(clients[i]);
  }
  mp_free(clients);
  return status;
}

const char *minipod_inject(const char *text) {
  return mp_pjrt_text(pjrt_faults_change_all(text == NULL ? "" : text));
}

const char *minipod_heal(void) {
  return mp_pjrt_text(pjrt_faults_change_all(NULL));
}
