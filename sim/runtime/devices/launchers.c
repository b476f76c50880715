#include "sim/runtime/devices/launchers.h"

#include "sim/base/os/futex.h"
#include "sim/runtime/devices/client_impl.h"

static _Thread_local mp_launcher_t *t_launcher;

void mp_launcher_enter(mp_launcher_t *launcher, mp_client_t *client) {
  *launcher = (mp_launcher_t){client, t_launcher};
  t_launcher = launcher;
  atomic_fetch_add(&client->num_launchers, 1);
}

void mp_launcher_leave(mp_launcher_t *launcher) {
  mp_client_t *client = launcher->client;
  t_launcher = launcher->outer;
  atomic_fetch_sub(&client->num_launchers, 1);
  // The client's end sets is_stopping before it looks at the number. So either it sees the number
  // without this thread, or this thread sees is_stopping and wakes it.
  if (atomic_load(&client->is_stopping)) mp_futex_wake_all(&client->num_launchers);
}

void mp_launchers_await(mp_client_t *client) {
  unsigned own = 0;  // launches of this thread, in whose callbacks the client is ended
  for (const mp_launcher_t *at = t_launcher; at != NULL; at = at->outer)
    own += at->client == client;
  for (unsigned count; (count = atomic_load(&client->num_launchers)) > own;) {
    mp_futex_wait(&client->num_launchers, count, NULL);
  }
}
