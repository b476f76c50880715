// Functions that the Python package calls in the library: the virtual times of the process's
// clients (sim/model/report); and their beginning and end.
#ifndef MINIPOD_PJRT_PACKAGE_PJRT_TIME_H_
#define MINIPOD_PJRT_PACKAGE_PJRT_TIME_H_

#include "pjrt/package/pjrt_foreign.h"
#include "pjrt/pjrt_objects.h"
#include "sim/model/report/report.h"

// The tables of all clients, as a text that the caller frees by minipod_time_free. Returns NULL, or
// an error message, which the calling thread's next call overwrites.
MP_EXPORT const char *minipod_time_report(char **out_text);
// The same as a JSON list of objects (sim/model/report/report_table.h).
MP_EXPORT const char *minipod_time_report_json(char **out_text);
MP_EXPORT void minipod_time_free(char *text);
// The virtual time of the newest client in seconds; negative: no client keeps it. It includes all
// launches so far if these have been awaited; otherwise those whose paths are already known.
MP_EXPORT double minipod_virtual_time(void);
// Waits, at most `seconds` of real time, until the virtual times of all launches so far are known,
// in all clients (mp_model_await): then 1. 0: the time was too short. -1: the caller is a callback
// of a program, which would perhaps wait for itself.
MP_EXPORT int minipod_await_launches(double seconds);

// For frameworks that ask for the ready event of each result, but do not wait for it: from now on
// only minipod_host_waits and reads are waits of the host, in virtual time.
MP_EXPORT void minipod_expect_waits(void);
// The host has waited for all that was launched so far.
MP_EXPORT void minipod_host_waits(void);

// The time in nanoseconds on the host's clock (sim/base/os/host_clock.h), and whether a client has
// made it virtual (clock: virtual); otherwise it is the system's monotonic clock.
MP_EXPORT int64_t minipod_host_clock(void);
MP_EXPORT bool minipod_has_host_clock(void);

// A function of CPython with one argument: it returns a new reference, or NULL with an exception.
typedef void *(*mp_python_method_t)(void *self, void *argument);
// Sets the functions of minipod_sleep: `real` is Python's own time.sleep, `asked` returns the
// seconds of an argument that should pass on that clock (negative: none, only `real` handles the
// argument), and `moment` is an argument with which `real` takes hardly any time. All must stay
// valid.
MP_EXPORT void minipod_follow_sleep(mp_python_method_t real, double (*asked)(void *seconds),
                                    void *moment);
// Python's time.sleep on that clock. The interpreter's lock is held, as for all functions that
// CPython calls.
MP_EXPORT void *minipod_sleep(void *self, void *seconds);

// ---- for the library ----

// Makes the reports of the client's model of time, if it has one. INVALID_ARGUMENT for options that
// request reports without a model, or files that cannot be written.
MP_NODISCARD mp_status_t mp_pjrt_time_begin(PJRT_Client *client, const mp_options_t *options);
// Writes and ends them, before the runtime's client is released. May be repeated.
void mp_pjrt_time_end(PJRT_Client *client);
// Calls `visit` for the reports of all clients of the process, with their lock held; `visit` takes
// no lock outside of MP_LOCK_REPORTS. A forked child has no reports.
void mp_pjrt_time_visit(void (*visit)(mp_report_t *report, void *context), void *context);

#endif  // MINIPOD_PJRT_PACKAGE_PJRT_TIME_H_
