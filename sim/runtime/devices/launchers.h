// Threads that are in a launch. What they have enqueued they still look at, and tiny programs they
// run themselves, so a client that ends waits for them to come out before it cancels runs.
#ifndef MINIPOD_SIM_RUNTIME_DEVICES_LAUNCHERS_H_
#define MINIPOD_SIM_RUNTIME_DEVICES_LAUNCHERS_H_

typedef struct mp_client_s mp_client_t;

// Lies on the thread's stack for the time of the launch.
typedef struct mp_launcher_s {
  mp_client_t *client;
  struct mp_launcher_s *outer;  // a launch in whose callback this one is made
} mp_launcher_t;

// Under the launch lock, of a client that is not stopping.
void mp_launcher_enter(mp_launcher_t *launcher, mp_client_t *client);
// The client must be held by something else.
void mp_launcher_leave(mp_launcher_t *launcher);
// Waits until no other thread is in a launch of this client, which is stopping.
void mp_launchers_await(mp_client_t *client);

#endif  // MINIPOD_SIM_RUNTIME_DEVICES_LAUNCHERS_H_
