// The replay of a launch: the virtual times at which its devices are done.
//
// Devices go through the steps of their chip program, each along its own path, until they come to a
// collective or have to wait for a message. Collectives begin when their last member has arrived
// (a permutation: each of its messages when both ends have), and their traffic shares the links
// with that of all others of this launch. Those that a device starts overlap with what it does
// next, one after the other or several at a time, until it waits for them; so do copies to its host
// and from it, one after the other in each direction. Everything happens in the order of virtual
// time, and of numbers where times are equal, so that a replay depends on its arguments alone.
//
// Launches of several executables on different devices can be replayed together: the traffic of all
// of them shares the links. What still others put on links at the same time is as it was computed
// for them: these get what they leave.
//
// A replay belongs to one executable: a program on devices. Used by one thread at a time.
#ifndef MINIPOD_SIM_MODEL_CLOCK_REPLAY_REPLAY_H_
#define MINIPOD_SIM_MODEL_CLOCK_REPLAY_REPLAY_H_

#include "sim/model/clock/replay/books.h"
#include "sim/model/clock/replay/path.h"
#include "sim/model/network/traffic/flows.h"

typedef struct mp_replay_s mp_replay_t;

// A device has handed a message over to `other` (begin and end are the same), or has got one from
// it, which it awaited from `begin` on. The n-th receive of a channel gets what the n-th send sent.
typedef struct {
  uint32_t logical, other;
  uint32_t collective;
  bool is_send;
  mp_moment_t begin, end;
} mp_replay_message_t;

// Gets all events, for timelines. All moments are relative, as mp_replay_launch_t.starts; no
// function may be NULL. Meetings are reported once for each member, and then the transfers of the
// meeting, with the times of the whole. One that a member has started is on_stream for it, and
// on_meeting with what is exposed of it, if anything is.
typedef struct {
  void (*on_work)(void *context, uint32_t logical, uint32_t step, mp_moment_t begin,
                  mp_moment_t end);
  void (*on_meeting)(void *context, uint32_t logical, uint32_t collective, mp_moment_t arrival,
                     mp_moment_t begin, mp_moment_t end);
  void (*on_stream)(void *context, uint32_t logical, uint32_t collective, mp_moment_t begin,
                    mp_moment_t end);
  void (*on_transfer)(void *context, uint32_t collective, const mp_transfer_t *transfer,
                      mp_moment_t begin, mp_moment_t end);
  void (*on_message)(void *context, const mp_replay_message_t *message);
  // A copy between a device and its host goes on between these moments.
  void (*on_copy)(void *context, uint32_t logical, uint32_t copy, mp_moment_t begin,
                  mp_moment_t end);
  void *context;
} mp_replay_observer_t;

typedef struct {
  const mp_moment_t *starts;             // [num_devices] when each may begin
  const mp_path_t *const *paths;         // [num_devices] what each did
  const double *slowness;                // [num_devices] of their work; NULL: 1
  const bool *takes_part;                // [num_devices]; NULL: all do; others end when they start
  const mp_replay_observer_t *observer;  // NULL: none
  mp_flows_log_t *log;                   // gets what goes over links; NULL: not wanted
  uint32_t num_others;                   // what other launches put on links meanwhile; with a log
  const mp_flows_span_t *others;
} mp_replay_launch_t;

// `network`, `chip program` and `ids` (the global id of each logical device) are borrowed.
MP_NODISCARD mp_status_t mp_replay_create(mp_network_t *network,
                                          const mp_chip_program_t *chip_program,
                                          uint32_t num_devices, const int32_t *ids,
                                          mp_replay_t **out_replay);
void mp_replay_release(mp_replay_t *replay);

// Replays a launch and writes [num_devices] ends. RESOURCE_EXHAUSTED when memory is short, and what
// the network says of collectives.
MP_NODISCARD mp_status_t mp_replay_run(mp_replay_t *replay, const mp_replay_launch_t *launch,
                                       mp_moment_t *ends);
// The same for a launch of each of `count` replays, which share a network, together. All moments
// are relative to one; all launches have a log, and the `others` are those of the first one.
MP_NODISCARD mp_status_t mp_replay_run_beside(uint32_t count, mp_replay_t *const *replays,
                                              const mp_replay_launch_t *launches,
                                              mp_moment_t *const *ends);
// The books of the last launch alone.
const mp_replay_books_t *mp_replay_books(const mp_replay_t *replay);

#endif  // MINIPOD_SIM_MODEL_CLOCK_REPLAY_REPLAY_H_
