// The insides of executables.
#ifndef MINIPOD_SIM_RUNTIME_LAUNCH_EXECUTABLE_IMPL_H_
#define MINIPOD_SIM_RUNTIME_LAUNCH_EXECUTABLE_IMPL_H_

#include "sim/runtime/devices/client_impl.h"
#include "sim/runtime/launch/executable.h"
#include "sim/runtime/memory/name.h"

typedef struct mp_session_s mp_session_t;
typedef struct mp_endpoint_s mp_endpoint_t;

// The devices that launches run on, in logical order; shared by all executables with the same
// list. Launches of programs with collectives are counted per participant: the n-th launch on each
// belongs to the n-th session, in all processes alike. Under the client's launch lock.
struct mp_device_set_s {
  mp_device_set_t *next;
  uint32_t num_devices;
  const uint32_t *ids;
  uint64_t *num_launches;  // [num_devices]
  mp_session_t *waiting;   // sessions that some participants have not been launched in yet
  // Lists with devices of other processes (else endpoint is NULL):
  mp_endpoint_t *endpoint;
  uint64_t hash;             // of the list
  const uint32_t *ranks_of;  // [num_devices]
  uint32_t num_ranks;
  const uint32_t *ranks;  // of the other processes
};

// The set of these devices, made when it is new; lives as long as the client. Under the launch
// lock.
MP_NODISCARD mp_status_t mp_device_set_get(mp_client_t *client, const uint32_t *ids,
                                           uint32_t num_devices, mp_device_set_t **out_set);
// The session (retained) that the participant's next launch belongs to.
MP_NODISCARD mp_status_t mp_device_set_session(mp_device_set_t *set, uint32_t logical,
                                               mp_session_t **out_session);
// The launch happens: joins the session and counts it.
void mp_device_set_join(mp_device_set_t *set, uint32_t logical, mp_session_t *session,
                        mp_run_t *run);
// The launch failed on this device before it began. It counts all the same, and the launches that
// belong to it, on other devices of this process and of others, fail with the error.
void mp_device_set_skip(mp_device_set_t *set, uint32_t logical, mp_status_t error);
void mp_device_set_release(mp_device_set_t *set);

struct mp_executable_s {
  atomic_int references;
  mp_client_t *client;  // held
  mp_program_t *program;
  mp_name_t *name;
  uint32_t num_devices;
  const uint32_t *ids;  // [num_devices] global, in logical order
  uint32_t num_local;   // may be 0
  uint32_t *local;      // [num_local] logical numbers of this process's devices
  mp_device_set_t *set;
  uint32_t max_operands, max_results;  // of any command
  bool has_collectives;                // or sends and receives
  uint64_t digest;                     // equal for equal programs in all processes
  double inline_seconds;  // rough time of a run on one device; infinite: not for inline runs
  atomic_int slowness;    // grows when inline runs took much longer than that
};

#endif  // MINIPOD_SIM_RUNTIME_LAUNCH_EXECUTABLE_IMPL_H_
