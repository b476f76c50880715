#include "pjrt/package/pjrt_launch.h"

#include <stdatomic.h>

#include "pjrt/pjrt_executable.h"
#include "sim/base/os/host_clock.h"

// A call that has donated this many buffers counts as donating very many: JAX keeps some 60 MB for
// them.
enum { MANY_DONATED = 1 << 16 };

// Under the interpreter's lock.
static mp_python_call_t g_launch;
static mp_python_drop_t g_drop;
static mp_python_donated_t g_donated;  // NULL: not wanted

static _Thread_local bool t_is_standing;  // minipod_stand
static atomic_bool g_has_shapes_only;     // never reset

void mp_pjrt_launch_begin(const PJRT_Client *client) {
  if (mp_client_has_shapes_only(client->client)) atomic_store(&g_has_shapes_only, true);
}

bool minipod_has_shapes_only(void) {
  return atomic_load(&g_has_shapes_only);
}

void minipod_follow_launches(mp_python_call_t real) {
  g_launch = real;
}

void minipod_follow_drops(mp_python_drop_t real) {
  g_drop = real;
}

void minipod_follow_donations(mp_python_donated_t donated) {
  g_donated = donated;
}

bool minipod_stand(void) {
  if (t_is_standing || !mp_host_clock_is_used()) return false;
  mp_host_clock_stop();
  t_is_standing = true;
  return true;
}

bool minipod_unstand(void) {
  if (!t_is_standing) return false;
  t_is_standing = false;
  mp_host_clock_go_on();
  return true;
}

const char *minipod_label(const char *text) {
  return mp_pjrt_label_create(text);
}

void *minipod_label_slot(void) {
  return mp_pjrt_label_slot();
}

void *minipod_others_slot(void) {
  return mp_pjrt_others_slot();
}

void *minipod_launch(void *callable, void *const *arguments, size_t flags, void *names) {
  const bool stands = minipod_stand();
  const uint64_t before = mp_pjrt_num_donated();
  void *result = g_launch(callable, arguments, flags, names);
  if (result != NULL && g_donated != NULL && mp_pjrt_num_donated() - before >= MANY_DONATED) {
    g_donated(arguments, flags, names);
  }
  if (stands) minipod_unstand();
  return result;
}

void minipod_drop(void *array) {
  const bool stands = minipod_stand();
  g_drop(array);
  if (stands) minipod_unstand();
}
