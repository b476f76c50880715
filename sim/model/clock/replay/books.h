// Books: what a program did on its devices, and what that took, added up over launches.
//
// Their arrays lie in an arena. Used by one thread at a time.
#ifndef MINIPOD_SIM_MODEL_CLOCK_REPLAY_BOOKS_H_
#define MINIPOD_SIM_MODEL_CLOCK_REPLAY_BOOKS_H_

#include "sim/chip/chip_program.h"
#include "sim/model/network/network.h"

// What one collective of the program did, over all groups and rounds.
typedef struct {
  uint64_t count;  // meetings; of a permutation or a send: messages
  mp_algorithm_t algorithm;
  mp_moment_t traffic;  // from beginning to end, summed over meetings
  mp_moment_t longest;  // of one meeting
  mp_moment_t waiting;  // from arrival to beginning, summed over members
  mp_moment_t members;  // from beginning to end, summed over members
  mp_moment_t hidden;   // of that, what went by while the member did something else
} mp_replay_meetings_t;

// What one copy between devices and their hosts did, over all devices and rounds.
typedef struct {
  uint64_t count;
  mp_moment_t time;     // from beginning to end
  mp_moment_t exposed;  // for which devices waited for it, until it began as well
} mp_replay_copies_t;

// What one device did.
typedef struct {
  mp_moment_t work;
  mp_moment_t waiting;  // for others, and for its host
  mp_moment_t traffic;  // blocked in collectives that have begun: what is exposed of them
  mp_moment_t hidden;   // the rest of them, and of copies to the host and from it
} mp_replay_device_books_t;

typedef struct {
  uint32_t num_steps, num_collectives, num_copies, num_links, num_devices;
  uint64_t *counts;    // [num_steps] how often each step was done, summed over devices
  mp_moment_t *times;  // [num_steps] what its work took, summed over devices
  // [num_steps] how often a choice was guessed, summed over devices; NULL: there are no choices
  uint64_t *guesses;
  mp_replay_meetings_t *meetings;  // [num_collectives]
  mp_replay_copies_t *copies;      // [num_copies]
  double *link_bytes;  // [num_links] of the network; a program without collectives counts none
  mp_replay_device_books_t *devices;  // [num_devices]
  bool is_cut;  // some path did not say everything: there every loop went round once
} mp_replay_books_t;

// Makes empty books for a program on so many devices.
MP_NODISCARD mp_status_t mp_books_create(mp_arena_t *arena, const mp_network_t *network,
                                         const mp_chip_program_t *chip_program,
                                         uint32_t num_devices, mp_replay_books_t *out_books);
void mp_books_clear(mp_replay_books_t *books);
// Adds `times` times what another one of the same program says.
void mp_books_add(mp_replay_books_t *books, const mp_replay_books_t *more, uint64_t times);
void mp_meetings_add(mp_replay_meetings_t *met, const mp_replay_meetings_t *more, uint64_t times);
void mp_copies_add(mp_replay_copies_t *copies, const mp_replay_copies_t *more, uint64_t times);
void mp_device_books_add(mp_replay_device_books_t *books, const mp_replay_device_books_t *more,
                         uint64_t times);
// Of all devices together.
mp_replay_device_books_t mp_books_total(const mp_replay_books_t *books);

#endif  // MINIPOD_SIM_MODEL_CLOCK_REPLAY_BOOKS_H_
