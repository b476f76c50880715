// The clock of a host that sees the described pod (option clock: virtual), one for the process.
//
// It goes on with real time, and so never goes back, but for three things. It stands while it is
// stopped: while the library simulates. It is set forward to the moment at which a result that was
// waited for is there on the pod. And what the process's first thread has waited for a core
// (sim/base/os/core_wait.h) is left out: a busy machine is no slower pod. Unused, it is the real
// clock.
//
// No loop waits for a moment that never comes: a thread that is shown it again and again while it
// stands, and does not stop it in between, makes it go on, by what has gone by since the thread's
// last look and at most MP_HOST_CLOCK_CREEP_NS.
//
// Thread-safe. In forked children it goes on, and reading takes no lock there.
#ifndef MINIPOD_SIM_BASE_OS_HOST_CLOCK_H_
#define MINIPOD_SIM_BASE_OS_HOST_CLOCK_H_

#include <stdbool.h>
#include <stdint.h>

// From now on it may be stopped; each use is given back. When the last one is, it is the real clock
// again.
void mp_host_clock_use(void);
void mp_host_clock_unuse(void);
bool mp_host_clock_is_used(void);

// The time now in seconds: that of mp_clock_seconds when nothing has stopped it or set it forward.
double mp_host_clock_seconds(void);
// The same in nanoseconds for the client's threads, which it is shown to.
int64_t mp_host_clock_show(void);

// Stops the clock until each stop has been followed by its mp_host_clock_go, and for
// MP_HOST_CLOCK_PAUSE_NS after that. Between calls that follow each other so quickly, the client
// works for all devices of the pod, of which a host of the pod has few.
void mp_host_clock_stop(void);
void mp_host_clock_go(void);
// The same for a stop that was no call of ours, but of the client around such calls: the clock
// stands on only for what is left since the last of them.
void mp_host_clock_go_on(void);
enum { MP_HOST_CLOCK_PAUSE_NS = 200000, MP_HOST_CLOCK_CREEP_NS = 10000000 };
// Sets it forward to this moment, in seconds; one that has been is none to go to.
void mp_host_clock_advance(double moment);

#endif  // MINIPOD_SIM_BASE_OS_HOST_CLOCK_H_
