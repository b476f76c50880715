// The pod of a job of several processes: each announces its part, and all of them merge the
// announcements to the same pod.
//
// The functions keep no state, so any thread may call them.
#ifndef MINIPOD_TOPOLOGY_PROCESSES_POD_MERGE_H_
#define MINIPOD_TOPOLOGY_PROCESSES_POD_MERGE_H_

#include "topology/pod.h"

// Which process of its job this is.
typedef struct {
  int32_t host;  // number of its machine; machines count from 0, in the order of their lowest ranks
  const char *hostname;
  int64_t pid;
  uint64_t faults;  // a fingerprint of those that it begins with; 0: none, UINT64_MAX: not known
} mp_pod_process_t;

// Appends what one process brings into the pod: its description or what hwloc found, the options
// that count, its version. If it can bring nothing, the announcement says why, and mp_pod_merge
// fails in all processes. So this fails only when memory is short (RESOURCE_EXHAUSTED).
MP_NODISCARD mp_status_t mp_pod_announce(const mp_options_t *options,
                                         const mp_pod_process_t *process, mp_strbuf_t *out_bytes);

// The pod that `count` processes make, as the process `rank` sees it, from all their announcements
// in the order of ranks: a function of these bytes alone, so that all processes agree. A described
// pod is divided among the processes in order, at the borders of its hosts where the numbers allow
// it; what hwloc finds on a host is divided among the processes there. Cores that several processes
// may use are divided among them; other processes' devices have no core group.
//
// Errors: the error of a process that could bring nothing, with its own code; FAILED_PRECONDITION
// for processes that disagree (version, topology, options of the model of time, faults), naming
// both and their values;
// INVALID_ARGUMENT when the pod cannot be divided. `out_notes` receives lines for the user that
// only one process should print (unequal numbers of devices, processes bound to too few cores), or
// nothing.
MP_NODISCARD mp_status_t mp_pod_merge(const mp_str_t *announcements, int32_t count, int32_t rank,
                                      mp_pod_t **out_pod, mp_strbuf_t *out_notes);

#endif  // MINIPOD_TOPOLOGY_PROCESSES_POD_MERGE_H_
