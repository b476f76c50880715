// The watch: tells the user when participants wait too long for other processes.
//
// One thread per client of a world looks twice a second at the sessions in its endpoint. When
// somebody waits for another process and nothing has moved for `collective_warn` seconds, it asks
// the processes that are missing what they are doing and prints one line with who waits where and
// what they say. After `collective_timeout` seconds the launch fails with the same words.
//
// It also ends a client whose users are gone when its launches are over (mp_endpoint_linger).
#ifndef MINIPOD_SIM_RUNTIME_LAUNCH_WATCH_H_
#define MINIPOD_SIM_RUNTIME_LAUNCH_WATCH_H_

#include "sim/base/options.h"
#include "sim/runtime/remote/router.h"

typedef struct mp_watch_s mp_watch_t;

MP_NODISCARD mp_status_t mp_watch_start(mp_endpoint_t *endpoint, const mp_options_t *options,
                                        mp_watch_t **out_watch);
// Joins the thread. NULL: nothing.
void mp_watch_stop(mp_watch_t *watch);

#endif  // MINIPOD_SIM_RUNTIME_LAUNCH_WATCH_H_
