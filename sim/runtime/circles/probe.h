// The contents of probes: the chain of waits that a probe has followed.
#ifndef MINIPOD_SIM_RUNTIME_CIRCLES_PROBE_H_
#define MINIPOD_SIM_RUNTIME_CIRCLES_PROBE_H_

#include "sim/base/str.h"

// Longer chains are not followed; their launches end by the time limit (watch/watch.h).
enum { MP_PROBE_HOPS = 64 };

// A participant that waits for the next one in the chain.
typedef struct {
  uint32_t rank, logical;    // its process, and its number in the launch
  uint64_t devices, number;  // the launch, as packets name it
  mp_str_t text;             // "process 1: device 1 waits in f at ... for device 2"; borrowed
} mp_probe_hop_t;

typedef struct {
  uint64_t round;     // the number of this probe in the process of the first hop, which sent it
  uint64_t changes;   // what the launch of the first hop had counted then (mp_peers_t.num_changes)
  uint32_t num_hops;  // at least 1
  mp_probe_hop_t hops[MP_PROBE_HOPS];
} mp_probe_t;

// Reads the bytes of a probe; the texts stay in them. False: they are not those of a probe.
bool mp_probe_read(const void *bytes, size_t size, mp_probe_t *out_probe);
// Appends the bytes of a probe.
void mp_probe_write(const mp_probe_t *probe, mp_strbuf_t *out);
// Appends the error of the launches in a circle of waits: the texts of all hops, of which each
// waits for the next, and the last for the first. It is the same whichever hop comes first.
void mp_probe_describe(const mp_probe_t *probe, mp_strbuf_t *out);

#endif  // MINIPOD_SIM_RUNTIME_CIRCLES_PROBE_H_
