// Side streams: additional streams of a device, unordered with its own stream.
//
// While a run is in a foreign function (a Python callback), that function may launch programs on
// the same device and wait for them, or wait for another thread that does. In the device's stream
// these launches would come after the run that has called, and neither could continue. So each run
// of such a launch gets a *side stream*. It waits only for its inputs, and other runs wait for it
// only through its results. Programs that make such calls themselves are ordered in side streams,
// too: those that one thread launches on a device share a side stream until they are over, so that
// their calls come in the order of the launches.
//
// To the scheduler a side stream is a device. It shares its device's number, queue and memories;
// only its runs and their numbers are its own. Stream order therefore does not protect the memory
// of its runs: they hold all that they use until they are over, take only blocks that no queued run
// uses any more, and take over a donated input only if no queued run reads it.
#ifndef MINIPOD_SIM_RUNTIME_ORDER_SIDE_STREAM_H_
#define MINIPOD_SIM_RUNTIME_ORDER_SIDE_STREAM_H_

#include <stdbool.h>

#include "sim/base/status.h"

typedef struct mp_client_s mp_client_t;
typedef struct mp_device_s mp_device_t;
typedef struct mp_launches_s mp_launches_t;

// A side stream of `device` (a device of this process) for a run. `is_calling`: the run's program
// makes calls that may block. The run's number is the stream's `enqueued`: the caller pushes the
// run, or takes the number back. The stream lives as long as the client, and is reused when its
// runs are over. The caller holds the launch lock. RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_side_stream_get(mp_device_t *device, bool is_calling,
                                            mp_device_t **out_side);
// True when side streams of `device` have runs that may call and that the calling thread has
// launched. The caller holds the launch lock.
bool mp_side_stream_is_calling(const mp_device_t *device);
// Iterates over the streams of this process's devices and then over the side streams: the stream
// after `device` (NULL: the first one), or NULL after the last. The caller holds the launch lock.
mp_device_t *mp_side_stream_next(const mp_client_t *client, mp_device_t *device);
// Frees all side streams, when their client ends.
void mp_side_streams_free(mp_launches_t *launches);

#endif  // MINIPOD_SIM_RUNTIME_ORDER_SIDE_STREAM_H_
