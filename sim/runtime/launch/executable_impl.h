// The insides of executables.
#ifndef MINIPOD_SIM_RUNTIME_LAUNCH_EXECUTABLE_IMPL_H_
#define MINIPOD_SIM_RUNTIME_LAUNCH_EXECUTABLE_IMPL_H_

#include "sim/runtime/devices/client_impl.h"
#include "sim/runtime/launch/executable.h"
#include "sim/runtime/memory/name.h"

typedef struct mp_session_s mp_session_t;
typedef struct mp_shapes_s mp_shapes_t;
typedef struct mp_endpoint_s mp_endpoint_t;

// A device set: the list of devices that launches run on, in logical order. All executables with
// the same list share one. Launches of programs with collectives are counted per participant: the
// n-th launch on each belongs to the n-th session, in all processes alike. `num_launches` and
// `waiting` change under the client's launch lock; the rest never changes.
struct mp_device_set_s {
  mp_device_set_t *next;  // in the client's list, under the launch lock
  uint32_t num_devices;
  const uint32_t *ids;     // [num_devices] global
  uint64_t *num_launches;  // [num_devices]
  mp_session_t *waiting;   // retained: sessions in which launches of this process are missing
  // When some devices belong to other processes; otherwise endpoint is NULL and num_ranks 0.
  mp_endpoint_t *endpoint;   // the client's
  uint64_t hash;             // of the list of ids; names the set in packets
  const uint32_t *ranks_of;  // [num_devices] the process that each device belongs to
  uint32_t num_ranks;
  const uint32_t *ranks;  // [num_ranks] the other processes
};

// The caller holds the launch lock for all of these, except for mp_device_set_release.

// The set of these devices, made when it is new. Borrowed: it lives as long as the client.
// RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_device_set_get(mp_client_t *client, const uint32_t *ids,
                                           uint32_t num_devices, mp_device_set_t **out_set);
// The session (retained) that the participant's next launch belongs to, made when this participant
// is the first one to come. RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_device_set_session(mp_device_set_t *set, uint32_t logical,
                                               mp_session_t **out_session);
// The launch happens on this device: it is counted, and `run` joins the session that
// mp_device_set_session gave.
void mp_device_set_join(mp_device_set_t *set, uint32_t logical, mp_session_t *session,
                        mp_run_t *run);
// The launch failed on this device before it began. It counts all the same, and the launches that
// belong to it, on other devices of this process and of others, fail with `error` (borrowed).
void mp_device_set_skip(mp_device_set_t *set, uint32_t logical, mp_status_t error);
// Frees the set when its client ends, with the sessions whose missing launches never came.
void mp_device_set_release(mp_device_set_t *set);

// Nothing but `references`, `users` and `slowness` changes once the executable is made.
struct mp_executable_s {
  atomic_int references;
  mp_client_t *client;        // held
  mp_program_t *program;      // owned
  mp_shapes_t *shapes;        // for runs without values; NULL: they have values
  mp_model_program_t *timed;  // the same in the client's model of time; NULL: there is none
  mp_link_users_t *users;     // of the pod's links (sim/model/faults); under the launch lock
  mp_name_t *name;            // the program's, for labels of memory that outlives the executable
  uint32_t num_devices;
  const uint32_t *ids;                 // [num_devices] global, in logical order; the set's
  uint32_t num_local;                  // may be 0
  uint32_t *local;                     // [num_local] logical numbers of this process's devices
  mp_device_set_t *set;                // the client's
  uint32_t max_operands, max_results;  // of any command
  uint32_t max_edges;                  // of any loop that is one command, if the model wants them
  bool has_collectives;                // or sends and receives
  bool has_stages;                     // of foreign functions: prepare or initialize
  bool may_block;                      // it makes calls that may block
  uint64_t digest;                     // equal for equal programs in all processes
  double inline_seconds;  // rough time of a run on one device; infinite: not for inline runs
  atomic_int slowness;    // grows when inline runs took much longer than that
};

#endif  // MINIPOD_SIM_RUNTIME_LAUNCH_EXECUTABLE_IMPL_H_
