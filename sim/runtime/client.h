// The client: a pod brought to life. Devices (devices/device.h), their memory spaces, and the
// workers that run them.
//
// In a job of several processes the pod is that of all of them. Devices of other processes
// exist to be named in device assignments: they have no memories, and what would use them fails
// with INVALID_ARGUMENT "device 5 belongs to process 1, …".
//
// A client owns its pod, one mp_device_t per device, one mp_memory_t per memory space, and one
// worker thread per core that we may use (named "mp-w<n>"). However many devices there are, it has
// at most four helper threads ("mp-…"). All functions are thread-safe. Devices and memories live as
// long as the client. Releasing the last reference stops the work in flight at its next yield point
// (its events and buffers get CANCELLED) and joins the threads; buffers and executables keep the
// client's memory alive, so they may be released later. Only launches that other processes take
// part in are finished first, in the background, because those processes count on them.
//
// After a fork the child's copy has no workers: every function that would need them returns
// FAILED_PRECONDITION there, and releasing is harmless.
#ifndef MINIPOD_SIM_RUNTIME_CLIENT_H_
#define MINIPOD_SIM_RUNTIME_CLIENT_H_

#include "collectives/transport/key_value_store.h"
#include "collectives/transport/world.h"
#include "sim/base/options.h"
#include "sim/base/status.h"
#include "sim/runtime/devices/device.h"

// What the maker of a client adds to it while the client is made (the PJRT wrapper, for example).
// So either all processes have a client with its addition, or none has a client. When `add` fails,
// the creation fails in all processes. The creation may also fail after `add` has succeeded: then
// the client is gone, and the maker drops what `add` has made.
typedef struct {
  mp_status_t (*add)(void *context, mp_client_t *client);
  void *context;
} mp_client_addition_t;

// Makes a client for the pod that the options describe. Joins the world of this process first
// (collectives/transport/bootstrap/bootstrap.h): all its processes make their n-th clients
// together, and agree on the pod or fail together. When one process fails, the others hear of it at
// once, and fail with its name and its error. `store` (may be NULL) is where processes find each
// other that no launcher has started; it is used during this call alone, by this thread. `addition`
// may be NULL.
MP_NODISCARD mp_status_t mp_client_create(const mp_options_t *options,
                                          const mp_key_value_store_t *store,
                                          const mp_client_addition_t *addition,
                                          mp_client_t **out_client);
// For tests: the same in a given world, which must live as long as the client; NULL: the process is
// alone.
MP_NODISCARD mp_status_t mp_client_create_in(const mp_options_t *options, mp_world_t *world,
                                             mp_client_t **out_client);
// The same with an addition.
MP_NODISCARD mp_status_t mp_client_create_with(const mp_options_t *options, mp_world_t *world,
                                               const mp_client_addition_t *addition,
                                               mp_client_t **out_client);
// What the user's coordinator says of the processes of the job now: their incarnations, by rank;
// 0: not known (mp_endpoint_note_incarnations). No effect where the client has not as many.
void mp_client_note_incarnations(mp_client_t *client, size_t count, const uint64_t *incarnations);

// mp_client_retain adds a reference and returns the client; the last mp_client_release ends it, as
// said above. It may be called on a worker, in a callback. NULL is released without effect.
mp_client_t *mp_client_retain(mp_client_t *client);
void mp_client_release(mp_client_t *client);

#endif  // MINIPOD_SIM_RUNTIME_CLIENT_H_
