// The faults of a client (sim/model/faults): where launches ask about them, and how they change.
#ifndef MINIPOD_SIM_RUNTIME_ORDER_FAULTY_H_
#define MINIPOD_SIM_RUNTIME_ORDER_FAULTY_H_

#include "sim/base/options.h"
#include "sim/base/str.h"
#include "sim/model/faults/faults.h"
#include "sim/runtime/devices/device.h"

// Makes the faults that the client's options name. The client already has its pod and its time
// model.
MP_NODISCARD mp_status_t mp_client_make_faults(mp_client_t *client, const mp_options_t *options);

// Adds faults (topology/faults/fault_list.h) while the client lives: `text` is a list, and messages
// say that it comes from `origin`. Launches are counted from now on. In a job each process calls
// this for itself. INVALID_ARGUMENT, and then none is added; FAILED_PRECONDITION as in
// mp_client_check.
MP_NODISCARD mp_status_t mp_client_inject(mp_client_t *client, const char *origin, mp_str_t text);
// Removes all faults, including those of the options.
MP_NODISCARD mp_status_t mp_client_heal(mp_client_t *client);

// Counts a launch and returns the faults that hit it (mp_faults_meet_launch). The caller holds the
// launch lock.
MP_NODISCARD mp_status_t mp_client_meet_faults(mp_client_t *client,
                                               const mp_faults_launch_t *launch,
                                               uint32_t *out_num_flips,
                                               mp_faults_flip_t **out_flips);

#endif  // MINIPOD_SIM_RUNTIME_ORDER_FAULTY_H_
