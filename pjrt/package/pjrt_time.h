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
// The same as a list of objects of JSON (sim/model/report/report_table.h).
MP_EXPORT const char *minipod_time_report_json(char **out_text);
MP_EXPORT void minipod_time_free(char *text);
// The virtual time in seconds, of the newest client; negative: none keeps it. It is that of all
// launches so far if these have been awaited: otherwise, of those whose paths are known by now.
MP_EXPORT double minipod_virtual_time(void);
// Waits, at most `seconds` of real time, until the virtual times of all launches so far are known,
// in all clients (mp_model_await): 1. 0: the time was too short. -1: the caller is a callback of a
// program, which may be the one that would be waited for.
MP_EXPORT int minipod_await_launches(double seconds);

// The time in nanoseconds on the clock of a host that sees the pod (sim/base/os/host_clock.h), and
// whether a client has asked for it (clock: virtual): otherwise it is the system's monotonic clock.
MP_EXPORT int64_t minipod_host_clock(void);
MP_EXPORT bool minipod_has_host_clock(void);

// A function of CPython with one argument: it returns a new reference, or NULL with an exception.
typedef void *(*mp_python_method_t)(void *self, void *argument);
// Says what minipod_sleep does: `real` is Python's own time.sleep, `asked` says how many seconds of
// an argument are to pass on that clock (negative: none, the argument is for `real` alone), and
// `moment` is an argument for `real` that takes hardly any time. All must stay.
MP_EXPORT void minipod_follow_sleep(mp_python_method_t real, double (*asked)(void *seconds),
                                    void *moment);
// Python's time.sleep on that clock. As all that CPython calls: with the interpreter's lock held.
MP_EXPORT void *minipod_sleep(void *self, void *seconds);

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
