// The pod of a client in a job of several processes, merged from the announcements of all.
#ifndef MINIPOD_SIM_RUNTIME_CLIENT_POD_H_
#define MINIPOD_SIM_RUNTIME_CLIENT_POD_H_

#include "collectives/transport/world.h"
#include "sim/base/options.h"
#include "topology/pod.h"

// How a process gets its client.
typedef struct {
  mp_world_t *world;
  uint64_t number;            // the client's, in its world
  mp_agreement_t *agreement;  // in which all processes make the client; NULL: they have it already
  void *memo;                 // then: the announcements of the other processes
  size_t memo_bytes;
} mp_client_meeting_t;

// Makes the pod. Normally in agreement with the other processes; then it also gives them the
// announcements, for processes that restart later. A restarted process makes the pod from those
// announcements and its own: FAILED_PRECONDITION if its devices differ from its predecessor's.
// Otherwise the errors of mp_pod_merge and of the agreement.
MP_NODISCARD mp_status_t mp_client_make_pod(const mp_client_meeting_t *meeting,
                                            const mp_options_t *options, mp_pod_t **out_pod);

// Makes the pod of a process that stands for all processes of its job (option `bootstrap`: absent):
// each has the same description and options as this one. FAILED_PRECONDITION when nothing says how
// many processes there would be. Otherwise the errors of mp_pod_merge.
MP_NODISCARD mp_status_t mp_client_make_pod_of_absent(const mp_options_t *options,
                                                      mp_pod_t **out_pod);

#endif  // MINIPOD_SIM_RUNTIME_CLIENT_POD_H_
