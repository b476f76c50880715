// Messages through a key-value store while processes join: each puts its own value into a folder,
// and reads the values of the others there.
//
// A value begins with a status code, so a process that fails tells the others instead of letting
// them wait.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_STORE_TALK_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_STORE_TALK_H_

#include "collectives/transport/key_value_store.h"
#include "collectives/transport/world.h"

enum { MP_STORE_KEY_BYTES = 80, MP_STORE_FOLDER_BYTES = MP_STORE_KEY_BYTES / 2 };

// The folder of the hellos: a fixed name, which all processes know in advance.
#define MP_STORE_HELLOS "minipod/hello"
// The same for the errors of processes that have failed.
#define MP_STORE_FAILURES "minipod/failed"

typedef struct {
  const mp_key_value_store_t *store;
  uint32_t rank;
  uint32_t size;
  double timeout_s;
  double deadline;            // mp_clock_seconds
  mp_world_t *world;          // knows the names of peers
  const char *verdicts;       // a folder in which failed processes put their error, too
  mp_agreement_t *agreement;  // once the world runs: a wait ends when it cannot succeed any more
  // Returns why the awaited processes will never come, or OK if they still may. NULL: no such
  // check.
  mp_status_t (*check)(void *context);
  void *context;
} mp_store_talk_t;

// Puts the result of a step in this process: `bytes`, or an error, of which at least the code is
// put when memory is short. Consumes `status`; returns the error after putting it. ALREADY_EXISTS
// when another process has this rank, and the errors of the store.
MP_NODISCARD mp_status_t mp_store_tell(const mp_store_talk_t *talk, const char *folder,
                                       mp_status_t status, mp_str_t bytes);
// Waits until a process has put its value, and appends that to `bytes`. DEADLINE_EXCEEDED with all
// that are missing; the process's error, with its name, when it has failed; the agreement's; and
// the errors of the store.
MP_NODISCARD mp_status_t mp_store_hear(const mp_store_talk_t *talk, const char *folder,
                                       uint32_t rank, mp_strbuf_t *bytes);
// Waits until all have put a value that is no error.
MP_NODISCARD mp_status_t mp_store_await_all(const mp_store_talk_t *talk, const char *folder);
// A process that has failed may have ended before this one could reach it: this one's `status`
// (consumed) is then UNAVAILABLE, and the error that the other process has put is the cause and is
// returned in its place.
MP_NODISCARD mp_status_t mp_store_find_cause(const mp_store_talk_t *talk, const char *folder,
                                             mp_status_t status);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_STORE_TALK_H_
