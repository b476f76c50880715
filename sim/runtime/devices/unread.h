// Errors that the script never read: a launch fails in the background, and a program that never
// looks at its results ends as if all had succeeded. The errors left at the end are printed then.
//
// A failed run's error goes to the waits for the end of the launch, which are the framework's own,
// and to the reads of its results, which are the user's. Both are deliveries of the same error, so
// they are counted: an error is read when it was delivered more often than it is owed to the ends
// of launches. An error that contains another's text passes it on and delivers it, too.
//
// For the process, as errors know no client. Thread-safe; while nothing has failed each function is
// one load. A forked child has none of its parent's.
#ifndef MINIPOD_SIM_RUNTIME_DEVICES_UNREAD_H_
#define MINIPOD_SIM_RUNTIME_DEVICES_UNREAD_H_

#include <stdbool.h>

#include "sim/base/status.h"
#include "sim/base/str.h"

// The run of a device has failed with `error` (borrowed). Called before the error is delivered.
// Launches that were given up with their client do not count (CANCELLED).
void mp_unread_add(mp_status_t error);
// Whether callers also get the end of each launch; as for the last one.
void mp_unread_expect_ends(bool are_told);
// `error` (borrowed) goes to the client of the library.
void mp_unread_deliver(mp_status_t error);
// Appends the unread errors, and forgets everything: the first error whole, and the first line of
// each of the others. Nothing is appended where all were read.
void mp_unread_take(mp_strbuf_t *out_text);

#endif  // MINIPOD_SIM_RUNTIME_DEVICES_UNREAD_H_
