// The timeline: what happens on the pod in virtual time, as a file that Perfetto and Chrome's trace
// viewer open ("Trace Event Format", as an array of events: its closing bracket may be missing).
//
// Three processes: the host (transfers), the devices (a thread for each: launches, in them the work
// by op, waiting, and collectives), and the links (a thread for each link that is used: when it
// carries bytes, and how many). Times are nanoseconds since the client was made.
//
// Work has the name that its framework gave it ("layer/dot_general"), its kind is an argument.
//
// Events go to the file as they come, in whole lines, so that what a process leaves that was killed
// can be opened, too; compressed where the path ends in ".gz". After `most_events` no more are
// written, and the last event says so.
#ifndef MINIPOD_SIM_MODEL_REPORT_EVENTS_TIMELINE_H_
#define MINIPOD_SIM_MODEL_REPORT_EVENTS_TIMELINE_H_

#include "sim/model/clock/model.h"

typedef struct mp_timeline_s mp_timeline_t;

// Makes the file, and what the model's observer tells of it. `devices`: which are shown
// (timeline_scope.h). INVALID_ARGUMENT for these, and when the file cannot be written.
MP_NODISCARD mp_status_t mp_timeline_create(const mp_model_t *model, const char *path,
                                            const char *devices, uint64_t most_events,
                                            mp_timeline_t **out_timeline);
// Ends the file and closes it. NULL has no effect.
void mp_timeline_release(mp_timeline_t *timeline);
// What writes the events; called by one thread at a time.
const mp_model_observer_t *mp_timeline_observer(const mp_timeline_t *timeline);
// Writes what is in the buffer. Not at the same time as the observer.
void mp_timeline_flush(mp_timeline_t *timeline);

#endif  // MINIPOD_SIM_MODEL_REPORT_EVENTS_TIMELINE_H_
