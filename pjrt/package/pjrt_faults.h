// Functions that the Python package calls in the library: injects faults into the live clients of
// the process (sim/model/faults).
#ifndef MINIPOD_PJRT_PACKAGE_PJRT_FAULTS_H_
#define MINIPOD_PJRT_PACKAGE_PJRT_FAULTS_H_

#include "pjrt/package/pjrt_foreign.h"
#include "pjrt/pjrt_objects.h"

// Adds the faults of a text (a list in YAML, NUL-terminated) to every client of the process.
// Returns NULL, or an error message, which the calling thread's next call overwrites. A client that
// refuses one of the faults gets none of them. If the newest client refuses, no client gets any; if
// an older one does, which may be another pod, that is no failure.
MP_EXPORT const char *minipod_inject(const char *text);
// Removes all faults from every client of the process.
MP_EXPORT const char *minipod_heal(void);

// ---- for the library ----

// Between the two calls the client gets injected faults. The second one is called before the
// runtime's client is released, and may be repeated. Neither can fail, because all processes of a
// job have already agreed that they have a client.
void mp_pjrt_faults_begin(PJRT_Client *client);
void mp_pjrt_faults_end(PJRT_Client *client);
// Writes references to the clients into a new array, for mp_free. A forked child has none, and
// takes no lock. RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_pjrt_faults_clients(uint32_t *out_count, mp_client_t ***out_clients);

#endif  // MINIPOD_PJRT_PACKAGE_PJRT_FAULTS_H_
