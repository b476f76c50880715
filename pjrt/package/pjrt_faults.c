// Faults injected at run time: all clients of the process get them.
#include "pjrt/package/pjrt_faults.h"

#include "pjrt/package/pjrt_clients.h"
#include "sim/runtime/order/faulty.h"

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
  MP_RETURN_IF_ERROR(mp_pjrt_clients_list(&count, &clients));
  mp_status_t status = NULL;
  if (count == 0) {
    status = mp_status_make(MP_FAILED_PRECONDITION,
                            "there is no pod yet: use a device first, or set MINIPOD_FAULTS");
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (status == NULL) status = pjrt_faults_change_one(clients[i], text, i == 0);
  }
  mp_pjrt_clients_free(count, clients);
  return status;
}

const char *minipod_inject(const char *text) {
  return mp_pjrt_text(pjrt_faults_change_all(text == NULL ? "" : text));
}

const char *minipod_heal(void) {
  return mp_pjrt_text(pjrt_faults_change_all(NULL));
}
