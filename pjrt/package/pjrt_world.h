// Messages between the Python packages of a job's processes.
#ifndef MINIPOD_PJRT_PACKAGE_PJRT_WORLD_H_
#define MINIPOD_PJRT_PACKAGE_PJRT_WORLD_H_

#include "pjrt/package/pjrt_foreign.h"

// Gives every process of the job the text of the first one: `text` (NUL-terminated, at most
// `capacity` - 1 bytes) is copied to `out_text`, which has room for `capacity` bytes. Every process
// must call it, in the same order among all agreements; it waits for the others. A process that is
// alone gets its own text. Returns NULL, or an error message.
MP_EXPORT const char *minipod_tell_world(const char *text, char *out_text, size_t capacity);

// Why a process of the job has failed ("UNAVAILABLE: process 1 (pid 4711 on host a) has ended
// unexpectedly"), or NULL: none has, or this process is alone.
MP_EXPORT const char *minipod_world_failure(void);

// The first device of a process of the job, in the newest client. False if there is none.
typedef struct {
  int32_t id;
  int32_t coords[3];
  int32_t core;  // on its chip
  int32_t slice;
} minipod_place_t;
MP_EXPORT bool minipod_place_of(int32_t process, minipod_place_t *out_place);

// Called when the process is about to end and launches nothing more. In a job without a launcher it
// notifies the other processes now, not at its very end, before which it may have to wait for them.
// First it does its part of its launches, unless `has_failed`. True: a process is lost, and no
// process may wait for all any more. In other jobs it has no effect and returns false.
MP_EXPORT bool minipod_leave_world(bool has_failed);

#endif  // MINIPOD_PJRT_PACKAGE_PJRT_WORLD_H_
