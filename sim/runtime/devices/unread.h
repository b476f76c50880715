// Errors that the script never read: a launch fails in the background, and a program that never
// looks at its results ends as if all had succeeded. The errors left at the end are printed then.
//
// A failed run's error goes to the waits for the end of the launch, which the framework makes, and
// to the reads of its results, which the user makes. Both deliver the same error, so deliveries are
// counted: an error counts as read if it was delivered more often than there are ends of launches.
// Delivering an error that contains another error's text delivers that one, too.
//
// One list per process, as errors have no client. Thread-safe; while nothing has failed each
// function is one load. A forked child inherits none of its parent's errors.
#ifndef MINIPOD_SIM_RUNTIME_DEVICES_UNREAD_H_
#define MINIPOD_SIM_RUNTIME_DEVICES_UNREAD_H_

#include <stdbool.h>

#include "sim/base/status.h"
#include "sim/base/str.h"

// The run of a device has failed with `error` (borrowed). Called before the error is delivered.
// Launches that were cancelled because their client ended do not count (CANCELLED).
void mp_unread_add(mp_status_t error);
// Whether callers also get the end of each launch; the last call decides.
void mp_unread_expect_ends(bool are_told);
// Records that the user of the library gets `error` (borrowed).
void mp_unread_deliver(mp_status_t error);
// Appends the unread errors, and forgets everything: the first error whole, and the first line of
// each of the others. Appends nothing if all were read.
void mp_unread_take(mp_strbuf_t *out_text);

#endif  // MINIPOD_SIM_RUNTIME_DEVICES_UNREAD_H_
