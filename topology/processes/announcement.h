// Announcements: the messages in which each process of a pod describes itself to the others.
//
// An announcement has everything that the division of the pod depends on, so that every process
// computes the same pod from the same announcements (pod_merge.c). It is a protocol buffer, so that
// announcements of other versions can still be read as far as errors need the name of the process.
// The functions keep no state, so any thread may call them.
#ifndef MINIPOD_TOPOLOGY_PROCESSES_ANNOUNCEMENT_H_
#define MINIPOD_TOPOLOGY_PROCESSES_ANNOUNCEMENT_H_

#include "sim/base/arena.h"
#include "topology/machine/machine.h"
#include "topology/pod.h"

enum { MP_ANNOUNCEMENT_PROTOCOL = 1 };

// Texts are borrowed: from the options when written, from the bytes when read.
typedef struct {
  int64_t protocol;
  mp_str_t version;  // of minipod; the world has already checked that all run the same build
  int32_t host;      // number of the machine that runs the process
  mp_str_t hostname;
  int64_t pid;
  mp_status_code_t
      code;           // the error because of which the process cannot join the pod; MP_OK: it can
  mp_str_t error;     // its message
  mp_str_t topology;  // as the user gave it; empty: from the machine
  mp_str_t topology_source;  // its origin: an option, a variable, a file
  mp_str_t name;             // the one in the description, or empty
  mp_str_t spec;             // the finished description (mp_spec_write)
  mp_str_t bounds;           // of the processes on the pod (mp_pod_bounds_write); empty: not given
  mp_str_t settings;  // other settings that must be equal in all processes (mp_pod_write_settings)
  mp_str_t libtpu_args;  // LIBTPU_INIT_ARGS, which may differ where it has no effect
  int64_t num_devices;   // of one process; 0: not given
  mp_str_t num_devices_source;
  int64_t device_memory;  // bytes; 0: not given
  int64_t workers;        // 0: not given
  mp_machine_t machine;   // the whole machine, before it is divided among processes
} mp_announcement_t;

// Appends the announcement as bytes. RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_announcement_write(const mp_announcement_t *announcement,
                                               mp_strbuf_t *out_bytes);
// Reads an announcement; the machine's arrays are made in `arena`. INVALID_ARGUMENT for invalid
// bytes.
MP_NODISCARD mp_status_t mp_announcement_read(mp_str_t bytes, mp_arena_t *arena,
                                              mp_announcement_t *out_announcement);

#endif  // MINIPOD_TOPOLOGY_PROCESSES_ANNOUNCEMENT_H_
