// Functions that the Python package calls in the library: the virtual times of the process's
// clients (sim/model/report); and their beginning and end.
#ifndef MINIPOD_PJRT_PACKAGE_PJRT_TIME_H_
#define MINIPOD_PJRT_PACKAGE_PJRT_TIME_H_

#include "pjrt/package/pjrt_foreign.h"
#include "pjrt/pjrt_objects.h"
#include "sim/model/report/report.h"

// The tables of all clients, as a text that the caller frees by minipod_time_free. Returns NULL, or
// why there is none: a text that the calling thread's next call overwrites.
MP_EXPORT const char *minipod_time_report(char **out_text);
MP_EXPORT void minipod_time_free(char *text);
// The virtual time in seconds, of the client that has come furthest; negative: none keeps it.
MP_EXPORT double minipod_virtual_time(void);

// The time in nanoseconds on the clock of a host that sees the pod (sim/base/os/host_clock.h), and
// whether a client has asked for it (clock: virtual): otherwise it is the system's monotonic clock.
MP_EXPORT int64_t minipod_host_clock(void);
MP_EXPORT bool minipod_has_host_clock(void);

// ---- for the library ----

// Makes the reports of the client's model of time, if it has one. INVALID_ARGUMENT for options that
// ask for reports where there is no model, or for files that cannot be written.
MP_NODISCARD mp_status_t mp_pjrt_time_begin(PJRT_Client *client, const mp_options_t *options);
// Writes and ends them, before the runtime's client goes. May be repeated.
void mp_pjrt_time_end(PJRT_Client *client);
// Calls for the reports of all clients of the process, with the lock held that keeps them; `visit`
// takes none outside of MP_LOCK_REPORTS. In a forked child there are none.
void mp_pjrt_time_visit(void (*visit)(mp_report_t *report, void *context), void *context);

#endif  // MINIPOD_PJRT_PACKAGE_PJRT_TIME_H_
