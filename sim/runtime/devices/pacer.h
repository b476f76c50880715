// The pacer: what a host sees of a paced client (time: paced) is not ready before its virtual time.
//
// Runs, copies and their events inside of the client go as fast as they can. Only the events that
// are given to the user (of launches, of buffers, of reads) are held back: each is an event of its
// own, which one thread per client sets when the inner one is set and the moment has come that the
// model of time says. So no thread sleeps with a lock, no worker waits, other clients notice
// nothing, and results are what they always are. Failures are reported at once, and so are raw
// reads whose destination the user gives later (PJRT_Buffer_CopyRawToHostFuture).
//
// With clock: virtual no thread waits for a moment. The host's clock (sim/base/os/host_clock.h)
// stands while something that the host has asked for is still to come, and is set to the moment at
// which it is there on the pod.
//
// What the model cannot say within a tenth of a second (launches before it go on, or miss devices
// that the host has still to launch on) is let go: the host might be what they wait for. The
// model's clock makes up for that with what comes next.
#ifndef MINIPOD_SIM_RUNTIME_DEVICES_PACER_H_
#define MINIPOD_SIM_RUNTIME_DEVICES_PACER_H_

#include "sim/model/clock/model.h"
#include "sim/runtime/devices/device.h"
#include "sim/runtime/devices/event.h"

typedef struct mp_pacer_s mp_pacer_t;

// Makes the pacer of a client whose model is paced, and starts its thread. RESOURCE_EXHAUSTED.
MP_NODISCARD mp_status_t mp_pacer_create(mp_client_t *client, mp_pacer_t **out_pacer);
// Ends the thread and sets all that is held back; from now on nothing is. May be called on the
// pacer's own thread, in a callback. NULL has no effect.
void mp_pacer_stop(mp_pacer_t *pacer);
// Frees a pacer that was stopped. NULL has no effect.
void mp_pacer_free(mp_pacer_t *pacer);

// The event that the user gets for `inner` (borrowed), which is of what `stamp` names: a new
// reference to `inner` itself where nothing is paced, and when memory is short.
mp_event_t *mp_pacer_hold_back(mp_client_t *client, mp_event_t *inner, mp_stamp_t stamp);

#endif  // MINIPOD_SIM_RUNTIME_DEVICES_PACER_H_
