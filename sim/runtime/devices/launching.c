#include "sim/runtime/devices/launching.h"

#include "sim/base/os/futex.h"
#include "sim/runtime/devices/client_impl.h"

static _Thread_local mp_launching_t *t_launching;
static _Thread_local unsigned t_num_exemptions;
static _Thread_local uint64_t t_number;  // 0: the thread has none yet
static _Thread_local bool t_has_waited;  // since its last launch
static _Thread_local unsigned
    t_num_waits;  // consecutive launches that it waited for, up to MP_WAITS

enum { MP_WAITS = 2 };

void mp_launching_enter(mp_launching_t *launching, mp_client_t *client) {
  *launching = (mp_launching_t){client, t_launching};
  t_launching = launching;
  // The client's end sets is_stopping, under the launch lock, before it reads the number. So it
  // finds each launch that came before it, and a thread that counts itself without the lock either
  // is found or sees that the client is stopping.
  atomic_fetch_add(&client->num_launching, 1);
}

void mp_launching_leave(mp_launching_t *launching) {
  mp_client_t *client = launching->client;
  t_launching = launching->outer;
  atomic_fetch_sub(&client->num_launching, 1);
  // The client's end sets is_stopping before it reads the number. So either it reads the number
  // without this thread, or this thread sees is_stopping and wakes it. The client still exists,
  // because the caller has the executable that it launched, which holds the client.
  if (atomic_load(&client->is_stopping)) mp_futex_wake_all(&client->num_launching);
}

void mp_launching_await(mp_client_t *client) {
  unsigned own = 0;  // launches of this thread whose callbacks end the client
  for (const mp_launching_t *at = t_launching; at != NULL; at = at->outer)
    own += at->client == client;
  for (unsigned count; (count = atomic_load(&client->num_launching)) > own;) {
    mp_futex_wait(&client->num_launching, count, NULL);
  }
}

uint64_t mp_launching_thread(void) {
  static _Atomic uint64_t num_threads;  // relaxed: numbers only have to differ
  if (t_number == 0) t_number = atomic_fetch_add(&num_threads, 1) + 1;
  return t_number;
}

void mp_launching_exempt(void) {
  t_num_exemptions += 1;
}

void mp_launching_unexempt(void) {
  MP_ASSERT(t_num_exemptions != 0);
  t_num_exemptions -= 1;
}

bool mp_launching_may_wait(void) {
  return t_num_exemptions == 0 && t_launching == NULL;
}

void mp_launching_note_wait(void) {
  t_has_waited = true;
}

bool mp_launching_note(void) {
  if (!t_has_waited) {
    t_num_waits = 0;
  } else if (t_num_waits < MP_WAITS) {
    t_num_waits += 1;
  }
  t_has_waited = false;
  return t_num_waits == MP_WAITS;
}
