// Announcements: what each process of a pod tells the others about itself, as bytes.
//
// An announcement holds all that the division of the pod depends on, so that every process computes
// the same pod from the same announcements (pod_merge.c). The form is a protocol buffer: processes
// of other versions are still understood well enough to be named. Not thread-safe.
#ifndef MINIPOD_TOPOLOGY_ANNOUNCEMENT_H_
#define MINIPOD_TOPOLOGY_ANNOUNCEMENT_H_

#include "sim/base/arena.h"
#include "topology/machine.h"
#include "topology/pod.h"

enum { MP_ANNOUNCEMENT_PROTOCOL = 1 };

// Texts are borrowed: from the options when written, from the bytes when read.
typedef struct {
  int64_t protocol;
  mp_str_t version;  // of minipod; that the builds are one, the world has checked
  int32_t host;
  mp_str_t hostname;
  int64_t pid;
  // Why the process has nothing to announcement; MP_OK when it has.
  mp_status_code_t code;
  mp_str_t error;
  mp_str_t topology;  // as the user gave it; empty: what the machine has
  mp_str_t topology_source;
  mp_str_t name;        // that the description gives, or empty
  mp_str_t spec;        // the finished description (mp_spec_write)
  int64_t num_devices;  // of one process; 0: not given
  mp_str_t num_devices_source;
  int64_t device_memory;  // 0: not given
  int64_t workers;        // 0: not given
  mp_machine_t machine;   // that the process sees, not yet shared with others
} mp_announcement_t;

MP_NODISCARD mp_status_t mp_announcement_write(const mp_announcement_t *announcement,
                                               mp_strbuf_t *out_bytes);
// The machine's arrays are in `arena`. INVALID_ARGUMENT for bytes that are no announcement.
MP_NODISCARD mp_status_t mp_announcement_read(mp_str_t bytes, mp_arena_t *arena,
                                              mp_announcement_t *out_announcement);

#endif  // MINIPOD_TOPOLOGY_ANNOUNCEMENT_H_
