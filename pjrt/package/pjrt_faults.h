// Functions that the Python package calls in the library: faults while the clients of the process
// live (sim/model/faults).
#ifndef MINIPOD_PJRT_PACKAGE_PJRT_FAULTS_H_
#define MINIPOD_PJRT_PACKAGE_PJRT_FAULTS_H_

#include "pjrt/package/pjrt_foreign.h"
#include "pjrt/pjrt_objects.h"

// Adds the faults of a text (a list in YAML, NUL-terminated) to every client of the process.
// Returns NULL, or why it failed: a text that the calling thread's next call overwrites. A client
// that does not take one of the faults takes none. If that is the newest, none takes any; if it is
// an older one, which may be another pod, that is no failure.
MP_EXPORT const char *minipod_inject(const char *text);
// Takes all faults away, from every client of the process.
MP_EXPORT const char *minipod_heal(void);

// ---- for the library ----

// From now on the client gets the faults that come while it lives, until the second one, which is
// called before the runtime's client goes and may be repeated. Neither can fail: all processes of a
// job have agreed by now that they have a client.
void mp_pjrt_faults_begin(PJRT_Client *client);
void mp_pjrt_faults_end(PJRT_Client *client);
// Writes references to the clients into a new array, for mp_free. A forked child has none, and
// takes no lock. RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_pjrt_faults_clients(uint32_t *out_count, mp_client_t ***out_clients);

#endif  // MINIPOD_PJRT_PACKAGE_PJRT_FAULTS_H_
