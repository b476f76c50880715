// What the files of this room share: the list (faults.c), and what launches and transfers meet
// (faults_meet.c).
#ifndef MINIPOD_SIM_MODEL_FAULTS_FAULTS_IMPL_H_
#define MINIPOD_SIM_MODEL_FAULTS_FAULTS_IMPL_H_

#include "sim/base/containers/array.h"
#include "sim/base/os/lock.h"
#include "sim/model/faults/faults.h"
#include "topology/faults/fault_list.h"

// A fault that was given.
typedef struct {
  mp_pod_fault_t what;
  const char *origin;
  uint32_t link;       // LINK: its number
  uint64_t *launches;  // [num_devices of the pod] counted so far; owned
  uint64_t newest;     // the launch that the latest state belongs to
  bool is_on;          // in force since then
  bool has_launches;   // there was one since it was given, of whichever program
  bool was_met;        // FLIP: by the launch that it is for, on its device
} mp_fault_rule_t;

struct mp_faults_s {
  // Of all below. Launches come with the launch lock, but transfers without any, from all threads.
  mp_lock_t lock;
  mp_pod_t *pod;  // a reference
  bool has_times, has_values;
  mp_network_options_t algorithms;
  mp_network_t *network;  // made when it is needed first
  mp_arena_t *arena;      // texts of the rules
  MP_ARRAY(mp_fault_rule_t) rules;
  bool is_changed;  // the health has not been taken since it changed
};

// The fault as messages call it: "faults.yaml:3".
#define MP_FAULT_RULE_FORMAT     "%s:%d"
#define MP_FAULT_RULE_ARGS(rule) (rule)->origin, (rule)->what.line

// Of a device: the slice or host of the pod that it belongs to, by the kind of a fault; itself for
// other kinds.
uint64_t mp_fault_unit(const mp_pod_t *pod, mp_pod_fault_kind_t kind, uint32_t device);
// OUTAGES: what kind of thing is down, and whether the one with this number is at a launch (from
// 1).
mp_pod_fault_kind_t mp_fault_outage_kind(const mp_pod_fault_t *what);
bool mp_fault_is_out(const mp_pod_fault_t *what, uint64_t unit, uint64_t step);
// Whether a fault changes virtual times alone.
bool mp_fault_rule_is_slow(const mp_fault_rule_t *rule);

#endif  // MINIPOD_SIM_MODEL_FAULTS_FAULTS_IMPL_H_
