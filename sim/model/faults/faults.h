// The faults of a client: which are in force, and what they mean for launches and transfers.
//
// A fault begins with a launch and may end with one (topology/faults/fault_list.h). In between it
// concerns everything that needs its device or link, whatever the program. Launches are counted for
// each fault from when it was given, on each device apart, so that a thread per device and one for
// all come to the same. One that is refused counts.
//
// Dead devices and links make launches and transfers fail; flips change bits. Slow ones change
// virtual times alone: the time model gets a health (health.h).
//
// Thread-safe.
#ifndef MINIPOD_SIM_MODEL_FAULTS_FAULTS_H_
#define MINIPOD_SIM_MODEL_FAULTS_FAULTS_H_

#include "sim/base/options.h"
#include "sim/model/faults/health.h"
#include "sim/model/faults/link_users.h"

typedef struct mp_faults_s mp_faults_t;

// Makes the faults of a client of this pod, which it retains: those of the options `topology` (its
// file) and `faults` (a file, or the list itself), or none. INVALID_ARGUMENT with file, line and
// key; NOT_FOUND for a missing file.
MP_NODISCARD mp_status_t mp_faults_create(mp_pod_t *pod, const mp_options_t *options,
                                          mp_faults_t **out_faults);
// A fingerprint of the faults that the options name, which processes of one pod must have alike; 0:
// there are none. Errors are those of reading the lists.
MP_NODISCARD mp_status_t mp_faults_fingerprint(const mp_options_t *options,
                                               uint64_t *out_fingerprint);
// NULL is allowed.
void mp_faults_release(mp_faults_t *faults);

// Adds the faults of a text, which messages call `origin`. What a client without virtual times, or
// without values, cannot have is refused. On an error none is added.
MP_NODISCARD mp_status_t mp_faults_add(mp_faults_t *faults, const char *origin, mp_str_t text);
// From now on all is well.
void mp_faults_clear(mp_faults_t *faults);
// How many there are, in force or not.
uint32_t mp_faults_count(mp_faults_t *faults);

// A launch that is about to happen.
typedef struct {
  const mp_program_t *program;
  uint32_t num_devices;  // of the program
  const uint32_t *ids;   // [num_devices] global
  uint32_t num_shares;   // devices that are launched on here
  const uint32_t *logical;
  mp_link_users_t **users;  // kept with the executable: NULL at first, freed with it
} mp_faults_launch_t;

// A bit to be flipped: of an argument before the program runs, or of a result when it has.
typedef struct {
  bool is_result;
  uint32_t logical, index;
  uint64_t byte;  // of the array on that device
  uint8_t mask;
} mp_faults_flip_t;

// Counts the launch, and says what becomes of it: UNAVAILABLE names the dead device or link that it
// needs, and for a link the collective; INVALID_ARGUMENT a flip that does not fit the program.
// Otherwise `out_flips` is a new array (mp_free) of bits, or NULL. Calls for one executable come
// one after the other.
MP_NODISCARD mp_status_t mp_faults_meet_launch(mp_faults_t *faults,
                                               const mp_faults_launch_t *launch,
                                               uint32_t *out_num_flips,
                                               mp_faults_flip_t **out_flips);
// UNAVAILABLE when a transfer between these ends needs a device or link that is dead.
MP_NODISCARD mp_status_t mp_faults_meet_transfer(mp_faults_t *faults, mp_network_end_t from,
                                                 mp_network_end_t to);

// True once after each change of the pod's health, which `out_health` then receives: a reference,
// or NULL when all is well.
bool mp_faults_take_health(mp_faults_t *faults, mp_health_t **out_health);

#endif  // MINIPOD_SIM_MODEL_FAULTS_FAULTS_H_
