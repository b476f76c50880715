// Circles of waits between processes: the proof that launches will never continue.
//
// Processes may launch programs of different groups in different orders. Then process 0 may wait in
// a collective for process 1, whose share of it is queued after a collective that waits for process
// 2, and so on, until one waits for process 0. No process sees that alone. So a process in which
// nothing has moved for a moment sends a *probe* along each of its waits: to the process of the
// missing participant. If that participant is itself blocked, its process adds that to the probe
// and forwards it along the waits of that one (Chandy, Misra and Haas, "Distributed deadlock
// detection", 1983). If the probe returns to where it began, and nothing has moved there, each of
// these processes waits for the next, and all of them for ever.
//
// Nothing else is reported: each process forwards a probe only if, at one moment, the participant
// that is waited for has not come and could not come before another one (blocked.h). So when the
// probe returns, the last process still waits for the first one, which has not moved. Therefore the
// last one has not moved since it forwarded the probe, nor has the one before it, and so on. A
// process whose launch is missing ends a probe, because its host may still launch.
//
// All launches in the circle fail with one text, which names all waits.
#ifndef MINIPOD_SIM_RUNTIME_CIRCLES_CIRCLE_H_
#define MINIPOD_SIM_RUNTIME_CIRCLES_CIRCLE_H_

#include "sim/base/status.h"

typedef struct mp_client_s mp_client_t;
typedef struct mp_circles_s mp_circles_t;

// What a client in a world of several processes keeps for probes. RESOURCE_EXHAUSTED when memory is
// short.
MP_NODISCARD mp_status_t mp_circles_create(mp_circles_t **out_circles);
// Frees it. NULL: nothing.
void mp_circles_destroy(mp_circles_t *circles);

// The following functions are called by one thread of the client at a time, without locks
// (the watch).

// Called regularly. Sends probes for participants that have waited for other processes since an
// earlier call without any change: after the first such call, and then after twice as many each
// time.
void mp_circles_probe(mp_client_t *client);
// Called when inquiries have come: forwards or drops probes, and fails launches in circles.
void mp_circles_answer(mp_client_t *client);

#endif  // MINIPOD_SIM_RUNTIME_CIRCLES_CIRCLE_H_
