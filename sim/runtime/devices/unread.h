// Errors that nobody has read: a launch fails in the background, and a program that never looks at
// its results ends as if all had gone well. What is in here at the end is said then.
//
// A failed run's error goes to whoever asks for the end of the launch, which frameworks do for
// themselves, and to whoever reads its results, which is the user. Both are deliveries of the same
// error, so they are counted: an error is read when it was delivered more often than it is owed to
// the ends of launches. An error that contains another's text passes it on and delivers it, too.
//
// For the process, as errors know no client. Thread-safe; while nothing has failed each function is
// one load. A forked child has none of its parent's.
#ifndef MINIPOD_SIM_RUNTIME_DEVICES_UNREAD_H_
#define MINIPOD_SIM_RUNTIME_DEVICES_UNREAD_H_

#include <stdbool.h>

#include "sim/base/status.h"
#include "sim/base/str.h"

// The run of a device has failed with `error` (borrowed). Called before anybody is told. Launches
// that were given up with their client do not count (CANCELLED).
void mp_unread_add(mp_status_t error);
// Whether those who launch are told of the end of each launch besides; as the last one was.
void mp_unread_expect_ends(bool are_told);
// `error` (borrowed) goes to the client of the library.
void mp_unread_deliver(mp_status_t error);
// Appends what nobody has read, and forgets everything: the first error whole, and the first line
// of each of the others. Nothing is appended where all were read.
void mp_unread_take(mp_strbuf_t *out_text);

#endif  // MINIPOD_SIM_RUNTIME_DEVICES_UNREAD_H_
