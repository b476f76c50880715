// Side streams: streams beside those of devices.
//
// While a run is in a foreign function (a Python callback), that function may launch programs on
// the same device and wait for them, or wait for another thread that does. In the device's stream
// these would come behind the run that has called, and neither could go on. So such a launch runs
// *beside* the streams of its devices: each of its runs has a stream of its own. It waits for
// nothing but its inputs, and other runs wait for it only through its results. Only programs that
// make such calls themselves have an order beside a stream too: those that one thread launches on a
// device share a stream until they are over, so that their calls come in the order of the launches.
//
// To the scheduler a side stream is a device. It has its device's number, queue and memories; only
// its runs and their numbers are its own. So the order of the device's stream protects none of
// their memory: they hold all that they use until they are over, take only blocks that no queued
// run uses any more, and take over a donated input only if no queued run reads it.
#ifndef MINIPOD_SIM_RUNTIME_ORDER_SIDE_STREAM_H_
#define MINIPOD_SIM_RUNTIME_ORDER_SIDE_STREAM_H_

#include <stdbool.h>

#include "sim/base/status.h"

typedef struct mp_client_s mp_client_t;
typedef struct mp_device_s mp_device_t;
typedef struct mp_launches_s mp_launches_t;

// A stream for a run beside that of `device`, which is of this process. `is_calling`: the
// run's program makes calls that may block. The stream's number `enqueued` is that of the run,
// which the caller pushes; or it takes the number back. The stream lasts as long as the client, and
// is given out again when its runs are over. The caller holds the launch lock. RESOURCE_EXHAUSTED
// when memory is short.
MP_NODISCARD mp_status_t mp_side_stream_get(mp_device_t *device, bool is_calling,
                                            mp_device_t **out_side);
// True when there are runs beside the stream of `device` which may call and which the calling
// thread has launched. The caller holds the launch lock.
bool mp_side_stream_is_calling(const mp_device_t *device);
// Frees all side streams, when their client ends.
void mp_side_streams_free(mp_launches_t *launches);

#endif  // MINIPOD_SIM_RUNTIME_ORDER_SIDE_STREAM_H_
