// Events: objects that are set once, when something has succeeded or failed.
//
// Reference-counted; may be created, set, waited for and released from any thread. An event is set
// once; later settings are ignored. Callbacks run exactly once each, without any lock held, on the
// thread that sets the event (or at once on the caller's when it is set already). A callback may
// release the event it was registered on; if the last reference is released before the event is
// set, its callbacks still run (with CANCELLED, because no thread can set the event any more).
// Callbacks often run on a worker, whose other work waits meanwhile, so they must be short, and
// wait for nothing that the client does.
//
// In a forked child events that were not set before count as ready and failed, because no thread
// there could set them.
#ifndef MINIPOD_SIM_RUNTIME_DEVICES_EVENT_H_
#define MINIPOD_SIM_RUNTIME_DEVICES_EVENT_H_

#include <stdbool.h>

#include "sim/base/status.h"

typedef struct mp_event_s mp_event_t;

// Gets the event's status, which is lent for the time of the call.
typedef void (*mp_event_callback_t)(mp_status_t status, void *context);

// A new event that is not set. RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_event_create(mp_event_t **out_event);
// mp_event_retain adds a reference and returns the event; the last mp_event_release frees it, as
// described above. NULL has no effect in either.
mp_event_t *mp_event_retain(mp_event_t *event);
void mp_event_release(mp_event_t *event);

// Sets the event and calls back, on this thread and without any lock held. Consumes `status` (NULL:
// success). Has no effect if the event is already set.
void mp_event_set(mp_event_t *event, mp_status_t status);
// True when the event is set, with success or failure; in a forked child always true of the
// parent's events.
bool mp_event_is_ready(const mp_event_t *event);
// True when the event is set with success.
bool mp_event_has_succeeded(const mp_event_t *event);
// A retained reference to the event's status; OK while it is not set.
MP_NODISCARD mp_status_t mp_event_status(const mp_event_t *event);
// Blocks until the event is set, then returns the same as mp_event_status. Signals (Ctrl-C) do not
// end the wait.
MP_NODISCARD mp_status_t mp_event_await(mp_event_t *event);
// Blocks until the event is ready, or `seconds` (at most 1e9) have passed: then false.
bool mp_event_wait_for(mp_event_t *event, double seconds);
// Registers `callback`, which is called once with `context` when the event is set, or at once if it
// is ready. RESOURCE_EXHAUSTED when memory is short: then it is never called.
MP_NODISCARD mp_status_t mp_event_on_ready(mp_event_t *event, mp_event_callback_t callback,
                                           void *context);

#endif  // MINIPOD_SIM_RUNTIME_DEVICES_EVENT_H_
