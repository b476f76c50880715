// Observers of clients, programs and launches: the extensions and the Python package's functions,
// which are above this room. pjrt/plugin/ sets the functions; a client that was made earlier has no
// observer.
#ifndef MINIPOD_PJRT_PJRT_OBSERVER_H_
#define MINIPOD_PJRT_PJRT_OBSERVER_H_

#include "pjrt/pjrt_objects.h"

// All functions are set.
typedef struct {
  // A client was made. When this fails the client is destroyed, and `client_ends` is called.
  mp_status_t (*client_made)(PJRT_Client *client, const mp_options_t *options);
  // Called before the runtime's client is released, at least once for each client.
  void (*client_ends)(PJRT_Client *client);
  // A client's program was compiled; a failure fails the compilation. Called without locks, because
  // Python may run in it.
  mp_status_t (*program_made)(const mp_program_t *program);
  // The time before a launch, 0 without an observer.
  int64_t (*launch_begins)(void);
  // The same launch, unless that was 0, afterwards: on `num_devices` devices of the executable,
  // with their numbers in it and the events of their ends.
  void (*launch_made)(int64_t begin, const PJRT_Executable *executable, const uint32_t *logical,
                      mp_event_t *const *done, size_t num_devices);
} mp_pjrt_observer_t;

// Sets who observes, for the process; `observer` must stay for ever.
void mp_pjrt_observe(const mp_pjrt_observer_t *observer);

// Tell the observer, if there is one; as in the struct.
MP_NODISCARD mp_status_t mp_pjrt_observe_client(PJRT_Client *client, const mp_options_t *options);
void mp_pjrt_observe_client_end(PJRT_Client *client);
MP_NODISCARD mp_status_t mp_pjrt_observe_program(const mp_program_t *program);
int64_t mp_pjrt_observe_launch(void);
void mp_pjrt_observe_launched(int64_t begin, const PJRT_Executable *executable,
                              const uint32_t *logical, mp_event_t *const *done, size_t num_devices);

#endif  // MINIPOD_PJRT_PJRT_OBSERVER_H_
