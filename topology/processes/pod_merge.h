// The pod of a job of several processes: each announces its part, and all of them merge the
// announcements to the same pod.
//
// The functions keep no state, so any thread may call them.
#ifndef MINIPOD_TOPOLOGY_PROCESSES_POD_MERGE_H_
#define MINIPOD_TOPOLOGY_PROCESSES_POD_MERGE_H_

#include "topology/pod.h"

// A grid of processes, and the box of chips that each of them has, as TPU hosts have them
// (TPU_PROCESS_BOUNDS, TPU_CHIPS_PER_PROCESS_BOUNDS). The fourth size is that of the cores of a
// chip. All 0: not given.
enum { MP_POD_BOUNDS_DIMS = 4 };
typedef struct {
  int32_t processes[MP_POD_BOUNDS_DIMS], chips[MP_POD_BOUNDS_DIMS];
  bool has_cores;  // the bounds count cores; otherwise a process has all cores of its chips
} mp_pod_bounds_t;

// The place of a process in its job.
typedef struct {
  int32_t host;  // number of its machine; machines count from 0, in the order of their lowest ranks
  const char *hostname;
  int64_t pid;
  uint64_t faults;  // a fingerprint of its initial faults; 0: none, UINT64_MAX: unknown
  // LIBTPU_INIT_ARGS: all, and those on which predicted times depend. NULL: none.
  const char *libtpu_args, *libtpu_flags;
  mp_pod_bounds_t bounds;
} mp_pod_process_t;

// Appends one process's announcement: its description or the found machine, the relevant options,
// its version. If the process cannot join the pod, the announcement has the error, and mp_pod_merge
// fails in all processes. So this fails only when memory is short (RESOURCE_EXHAUSTED).
MP_NODISCARD mp_status_t mp_pod_announce(const mp_options_t *options,
                                         const mp_pod_process_t *process, mp_strbuf_t *out_bytes);

// The pod of `count` processes, for the process `rank`, from all announcements in the order of
// ranks: a function of only these bytes, so that all processes agree. A described pod is divided
// among the processes in order, at the borders of its hosts if the numbers allow it, or in boxes
// where they have bounds (pod_bounds.h); the machine of a host is divided among the processes
// there. Cores that several processes may use are divided among them; other processes' devices have
// no core group.
//
// Errors: the error of a process that cannot join, with its own code; FAILED_PRECONDITION for
// processes that disagree (version, topology, options of the model of time, faults, bounds), naming
// both and their values; INVALID_ARGUMENT when the pod cannot be divided. `out_notes` receives
// lines for the user that only one process should print (unequal numbers of devices, processes
// bound to too few cores), or nothing.
MP_NODISCARD mp_status_t mp_pod_merge(const mp_str_t *announcements, int32_t count, int32_t rank,
                                      mp_pod_t **out_pod, mp_strbuf_t *out_notes);

#endif  // MINIPOD_TOPOLOGY_PROCESSES_POD_MERGE_H_
