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
// The virtual time in seconds, of the newest client; negative: none keeps it.
MP_EXPORT double minipod_virtual_time(void);

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

// A function of CPython that is called by its protocol "vectorcall".
typedef void *(*mp_python_call_t)(void *callable, void *const *arguments, size_t flags,
                                  void *names);
// Says what minipod_launch calls.
MP_EXPORT void minipod_follow_launches(mp_python_call_t real);
// A call of a function of JAX that launches: that clock stands for as long as it takes, for the
// work is for all devices of the process, of which a host of the pod has few.
MP_EXPORT void *minipod_launch(void *callable, void *const *arguments, size_t flags, void *names);
// Has that clock stand for this thread until minipod_unstand. False: it does already, or is the
// system's.
MP_EXPORT bool minipod_stand(void);
// False: it did not stand for this thread.
MP_EXPORT bool minipod_unstand(void);

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
