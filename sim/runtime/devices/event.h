// Events: something that will have happened, well or badly.
//
// Reference-counted; may be created, set, waited for and released from any thread. An event is set
// once; later settings are ignored. Callbacks run exactly once each, without any lock held, on the
// thread that sets the event (or at once on the caller's when it is set already). A callback may
// release the event it was registered on; events whose last reference goes before they are set keep
// their callbacks, which still run (with CANCELLED, when nobody is left who could set the event).
// The thread is often a worker, whose other work waits meanwhile: callbacks are short, and wait for
// nothing that the client does.
//
// After a fork, what was not set before counts as ready and failed in the child: nobody is there
// who could set it.
#ifndef MINIPOD_SIM_RUNTIME_DEVICES_EVENT_H_
#define MINIPOD_SIM_RUNTIME_DEVICES_EVENT_H_

#include <stdbool.h>

#include "sim/base/status.h"

typedef struct mp_event_s mp_event_t;

// Lends the status for the time of the call.
typedef void (*mp_event_callback_t)(mp_status_t status, void *context);

MP_NODISCARD mp_status_t mp_event_create(mp_event_t **out_event);
mp_event_t *mp_event_retain(mp_event_t *event);
void mp_event_release(mp_event_t *event);

// Consumes `status` (NULL: it went well).
void mp_event_set(mp_event_t *event, mp_status_t status);
bool mp_event_is_ready(const mp_event_t *event);
// Set, and it went well.
bool mp_event_has_succeeded(const mp_event_t *event);
// A retained reference to the event's status; OK while it is not set.
MP_NODISCARD mp_status_t mp_event_status(const mp_event_t *event);
// Blocks until set, then as mp_event_status. Signals (Ctrl-C) do not end the wait: front ends wait
// in slices with mp_event_wait_for when they must notice them.
MP_NODISCARD mp_status_t mp_event_await(mp_event_t *event);
// False when `seconds` went by first.
bool mp_event_wait_for(mp_event_t *event, double seconds);
MP_NODISCARD mp_status_t mp_event_on_ready(mp_event_t *event, mp_event_callback_t callback,
                                           void *context);

#endif  // MINIPOD_SIM_RUNTIME_DEVICES_EVENT_H_
