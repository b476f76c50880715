// The client: a running pod. It has devices (devices/device.h), their memory spaces, and the
// workers that run them.
//
// In a job of several processes the pod is that of all of them. Devices of other processes exist
// only to be named in device assignments: they have no memories, and functions that would use them
// fail with INVALID_ARGUMENT "device 5 belongs to process 1, …".
//
// A client owns its pod, one mp_device_t per device, one mp_memory_t per memory space, and one
// worker thread per core that the process may use (named "mp-w<n>"). It has at most four helper
// threads ("mp-…"), however many devices it has. All functions are thread-safe. Devices and
// memories live as long as the client. Releasing the last reference stops the work in flight at its
// next yield point (its events and buffers get CANCELLED) and joins the threads; buffers and
// executables keep the client's memory alive, so they may be released later. Only launches that
// other processes take part in are finished first, in the background, because those processes count
// on them.
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

// What the caller adds to a client during its creation (the PJRT wrapper, for example). Then either
// all processes have a client with its addition, or none has a client. If `add` fails, the creation
// fails in all processes. The creation may also fail after `add` has succeeded: then the client is
// freed, and the caller drops what `add` has made.
typedef struct {
  mp_status_t (*add)(void *context, mp_client_t *client);
  void *context;
} mp_client_addition_t;

// Returns the error that these options would cause on this pod, apart from errors about memory and
// about other processes. For callers whose framework aborts if it gets no client.
MP_NODISCARD mp_status_t mp_client_check_options(mp_pod_t *pod, const mp_options_t *options);

// Makes a client for the pod that the options describe. Joins the world of this process first
// (collectives/transport/bootstrap/bootstrap.h): all its processes make their n-th clients
// together, and agree on the pod or fail together. If one process fails, the others fail at once,
// with its name and its error. Through `store` (may be NULL) processes find each other if no
// launcher has started them; only this thread uses it, and only during this call. `addition` may be
// NULL.
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
// Records the current incarnations of the job's processes, by rank, as the user's coordinator
// reports them; 0: unknown (mp_endpoint_note_incarnations). No effect if the client has another
// number of processes.
void mp_client_note_incarnations(mp_client_t *client, size_t count, const uint64_t *incarnations);

// mp_client_retain adds a reference and returns the client; the last mp_client_release ends it as
// described above. It may be called on a worker, in a callback. NULL is released without effect.
mp_client_t *mp_client_retain(mp_client_t *client);
void mp_client_release(mp_client_t *client);

#endif  // MINIPOD_SIM_RUNTIME_CLIENT_H_
