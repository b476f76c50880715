// The pacer: delays the events of a paced client (time: paced) until their virtual time.
//
// Inside the client runs, copies and their events are as fast as they can be. Only the events that
// the user gets (of launches, of buffers, of reads) are held back: each is an event of its own,
// which one thread per client sets when the inner event is set and the time that the model predicts
// has come. So no thread sleeps with a lock, no worker waits, other clients notice nothing, and
// results do not change. Failures are reported at once, and so are raw reads whose destination the
// user gives later (PJRT_Buffer_CopyRawToHostFuture).
//
// With clock: virtual no thread waits for a due time. The host's clock (sim/base/os/host_clock.h)
// stops while a result that the host has requested is pending, and is then set to the time at which
// the result is ready on the pod.
//
// If the model does not know a time within a tenth of a second (because earlier launches still run,
// or lack devices that the host has yet to launch on), the event is released: those launches may be
// waiting for the host. The model's clock compensates for that at the next event.
#ifndef MINIPOD_SIM_RUNTIME_DEVICES_PACER_H_
#define MINIPOD_SIM_RUNTIME_DEVICES_PACER_H_

#include "sim/model/clock/model.h"
#include "sim/runtime/devices/device.h"
#include "sim/runtime/devices/event.h"

typedef struct mp_pacer_s mp_pacer_t;

// Makes the pacer of a client whose model is paced, and starts its thread. RESOURCE_EXHAUSTED.
MP_NODISCARD mp_status_t mp_pacer_create(mp_client_t *client, mp_pacer_t **out_pacer);
// Ends the thread and sets all events that are held back; later events are not held back. May be
// called on the pacer's own thread, in a callback. NULL has no effect.
void mp_pacer_stop(mp_pacer_t *pacer);
// Frees a pacer that was stopped. NULL has no effect.
void mp_pacer_free(mp_pacer_t *pacer);

// The event that the user gets for `inner` (borrowed), whose work `stamp` names. If nothing is
// paced, or memory is short: a new reference to `inner` itself.
mp_event_t *mp_pacer_hold_back(mp_client_t *client, mp_event_t *inner, mp_stamp_t stamp);

#endif  // MINIPOD_SIM_RUNTIME_DEVICES_PACER_H_
