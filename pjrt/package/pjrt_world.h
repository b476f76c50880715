// What the Python packages of the processes of a job tell each other.
#ifndef MINIPOD_PJRT_PACKAGE_PJRT_WORLD_H_
#define MINIPOD_PJRT_PACKAGE_PJRT_WORLD_H_

#include "pjrt/package/pjrt_foreign.h"

// Gives every process of the job the text of the first one: `text` (NUL-terminated, at most
// `capacity` - 1 bytes) comes to `out_text`, which has room for `capacity` bytes. Every process has
// to call it, in the same order among all that they agree on; it waits for the others. A process
// that is alone hears itself. Returns NULL, or why it failed.
MP_EXPORT const char *minipod_tell_world(const char *text, char *out_text, size_t capacity);

// The process is about to end, and launches nothing any more: the other processes of a job without
// a launcher hear of it now, not at its very end, before which it may have to wait for them. First
// it does its part of what it has launched, unless `has_failed`. True: one of them is lost, and no
// process must wait for all any more. No effect, and false, in other processes.
MP_EXPORT bool minipod_leave_world(bool has_failed);

#endif  // MINIPOD_PJRT_PACKAGE_PJRT_WORLD_H_
