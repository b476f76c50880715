// How well a pod is: which devices and links are slow, and how devices straggle.
//
// Immutable, and reference-counted: may be used by any thread.
#ifndef MINIPOD_SIM_MODEL_FAULTS_HEALTH_H_
#define MINIPOD_SIM_MODEL_FAULTS_HEALTH_H_

#include <stdatomic.h>

#include "sim/model/network/network.h"

// Of each launch, each device is a straggler with likelihood `share`, and its work then takes
// 1 + spread * X times as long, where X is exponentially distributed with mean 1: the model that is
// usual in the literature on coded computation. What X is follows from the seed, the device, the
// program and the number of the launch alone.
typedef struct {
  uint64_t seed;
  double spread, share;
} mp_stragglers_t;

typedef struct {
  atomic_int references;
  uint64_t id;             // equal for equal healths; never 0
  uint32_t num_devices;    // of the pod
  const double *slowness;  // [num_devices] how many times as long work takes; NULL: 1
  uint32_t num_changes;
  const mp_network_change_t *changes;  // at most one for each link
  uint64_t changes_id;                 // equal for equal changes; 0: none
  uint32_t num_stragglers;
  const mp_stragglers_t *stragglers;
} mp_health_t;

// Makes a health of copies of what `like` says, and fills in its ids. RESOURCE_EXHAUSTED.
MP_NODISCARD mp_status_t mp_health_create(const mp_health_t *like, mp_health_t **out_health);
// NULL is allowed.
void mp_health_release(mp_health_t *health);

// How many times as long the work of a device takes, in launch `number` of the program with this
// fingerprint.
double mp_health_slowness(const mp_health_t *health, uint32_t device, uint64_t program,
                          uint64_t number);

#endif  // MINIPOD_SIM_MODEL_FAULTS_HEALTH_H_
