// The watch: tells the user when participants wait too long for other processes.
//
// Each client in a world of several processes has one such thread. Twice a second it checks the
// sessions in the client's endpoint. When a participant waits for another process and nothing has
// moved for `collective_warn` seconds, the watch asks the missing processes what they are doing,
// and prints one line: which participants wait where, and the answers of those processes. After
// `collective_timeout` seconds the launch fails with the same message.
//
// The watch also looks for circles of waits between processes, and answers other processes that do
// (circles/circle.h).
//
// It ends a client that its users have released, as soon as the launches that other processes take
// part in are over (mp_endpoint_linger).
#ifndef MINIPOD_SIM_RUNTIME_WATCH_WATCH_H_
#define MINIPOD_SIM_RUNTIME_WATCH_WATCH_H_

#include <stdatomic.h>

#include "sim/base/options.h"
#include "sim/runtime/remote/router.h"

typedef struct mp_watch_s mp_watch_t;

// The time from one check to the next. Only tests change it.
extern atomic_uint mp_watch_tick_ms;

// Starts the thread. `endpoint` is borrowed until mp_watch_stop, `options` during the call: their
// collective_warn and collective_timeout are in seconds, 0 means never. RESOURCE_EXHAUSTED when
// there is no memory or no thread.
MP_NODISCARD mp_status_t mp_watch_start(mp_endpoint_t *endpoint, const mp_options_t *options,
                                        mp_watch_t **out_watch);
// Ends the thread, waits for it and frees the watch. The caller holds no lock. NULL: nothing.
void mp_watch_stop(mp_watch_t *watch);

#endif  // MINIPOD_SIM_RUNTIME_WATCH_WATCH_H_
