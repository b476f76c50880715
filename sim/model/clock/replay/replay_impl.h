// What the files of the replay share: the devices that walk (replay.c), what they meet at
// (replay_meet.c), what overlaps with them (replay_stream.c), and the traffic of both
// (replay_traffic.c, replay_together.c).
#ifndef MINIPOD_SIM_MODEL_CLOCK_REPLAY_REPLAY_IMPL_H_
#define MINIPOD_SIM_MODEL_CLOCK_REPLAY_REPLAY_IMPL_H_

#include "sim/base/containers/array.h"
#include "sim/base/containers/hash_map.h"
#include "sim/model/clock/replay/replay.h"

// A device on its way. It is blocked when `awaits` is not 0: so many meetings or messages have to
// end before it goes on, at the latest of their ends.
typedef struct {
  mp_moment_t now;
  uint32_t step;
  uint32_t awaits;
  mp_moment_t arrival;  // at what it waits for
  mp_moment_t counted;  // the books say what it did until then: messages may overlap
  uint32_t num_started;
  uint32_t awaited;  // the collective that it has started and waits for; UINT32_MAX: none
  bool is_over;
} mp_replay_device_t;

// A collective that a device has started and not waited for yet. Those of a device begin in the
// order in which they were started, no more at a time than it has tracks.
typedef struct {
  uint32_t collective;
  uint32_t awaits;  // parts of it that have not ended: of a permutation two at most
  uint32_t track;
  bool has_arrived, is_over;
  mp_moment_t ready;       // when the device started it
  mp_moment_t begin, end;  // of its traffic
  mp_moment_t lost;        // what work beside it took longer
} mp_started_t;

// What the groups of a collective that are complete since devices last went on have in common.
typedef struct {
  uint32_t count;
  bool is_apart;  // they do not begin at the same time
  mp_moment_t time;
} mp_round_t;

// Two collectives of which one may go on while the other one does: steps of the program lie so.
typedef struct {
  uint32_t a, b;
} mp_neighbours_t;

// One group of a collective at a time.
typedef struct {
  uint32_t collective, group;
  uint32_t num_arrived;
  uint32_t stage, num_running;  // of its traffic: the stage, and the transfers under way
  mp_moment_t begin;            // the latest arrival
  const mp_traffic_t *traffic;  // NULL: not asked for yet
} mp_meeting_t;

// A pair of a permutation: one message that both ends wait for.
typedef struct {
  uint32_t collective;
  uint32_t source, target;  // logical
  uint32_t num_arrived;
  mp_moment_t begin;
  bool has_transfer;
  mp_transfer_t transfer;
} mp_pair_t;

// The messages of one channel from one device to another, in order: those before `num_ended` have
// come at `times`.
typedef struct {
  uint32_t collective;  // of the sender
  int64_t channel_id;
  uint32_t source, target;
  MP_ARRAY(mp_moment_t) begins;
  MP_ARRAY(mp_moment_t) times;
  uint32_t num_received;
  bool is_awaited;    // the target is blocked here
  uint32_t receiver;  // the collective that it awaits
  bool has_transfer;
  mp_transfer_t transfer;
} mp_lane_t;

// ROUND: all groups of a collective at once.
typedef enum {
  MP_EVENT_ROUND,
  MP_EVENT_MEETING,
  MP_EVENT_PAIR,
  MP_EVENT_CHANNEL,
} mp_replay_event_kind_t;

// Something that starts at a time; `index` is of the collectives, meetings, pairs or channels.
typedef struct {
  mp_moment_t time;
  mp_replay_event_kind_t kind;
  uint32_t index;
} mp_replay_event_t;

typedef struct {
  uint64_t hash;
  uint32_t channel;
} mp_channel_entry_t;

// The links, for all replays that share them.
typedef struct {
  mp_flows_t *flows;   // NULL: nothing has been sent yet
  double now;          // seconds: the latest time that the flows have seen
  mp_flows_log_t log;  // of all
} mp_replay_links_t;

struct mp_replay_s {
  mp_arena_t *arena;  // owned: what lives as long as the replay
  mp_network_t *network;
  const mp_chip_program_t *chip_program;
  uint32_t num_devices;
  const int32_t *ids;
  mp_replay_device_t *devices;
  mp_path_cursor_t *cursors;  // [num_devices][num_controls of the chip program]
  uint32_t *first_meeting;    // [num_collectives] of each MEET that is no permutation
  uint32_t num_meetings;
  mp_meeting_t *meetings;
  uint32_t *first_pair;  // [num_collectives] of each permutation
  // [num_collectives][2 * num_devices] the pair of which each device is the source, then those of
  // which it is the target; UINT32_MAX: none.
  uint32_t **pair_ends;
  uint32_t num_pairs;
  mp_pair_t *pairs;
  MP_ARRAY(mp_lane_t) channels;
  MP_HASH_MAP(mp_channel_entry_t) channel_map;
  MP_ARRAY(mp_replay_event_t) events;  // a heap
  MP_ARRAY(uint32_t) ready;            // devices that may go on
  MP_ARRAY(uint32_t) complete;         // meetings whose members are all there, no events yet
  mp_round_t *rounds;                  // [num_collectives]
  mp_moment_t **together;              // [num_collectives] see replay_together.c; NULL: not known
  mp_started_t *started;               // [num_devices][most_started of the chip program]
  mp_moment_t *copy_ends;  // [num_devices][num_copy_slots of the chip program] of copies under way
  mp_moment_t *lanes;      // [num_devices][2] to the host, and from it: when free
  mp_moment_t
      *tracks;  // [num_devices][num_tracks of the chip program] when free; UINT64_MAX: in use
  MP_ARRAY(mp_neighbours_t) neighbours;
  uint8_t *freedom;  // [num_collectives] see replay_together.c
  // Of the current launch.
  const mp_replay_launch_t *launch;
  mp_replay_links_t *links;
  uint32_t member;  // of the replays that share the links, which one this is
  mp_replay_books_t books;
};

// ---- replay_step.c ----

// The device works at a step for so long.
void mp_replay_work(mp_replay_t *replay, uint32_t logical, uint32_t number, mp_moment_t time);
// Where a device is in its path at a loop or branch.
mp_path_cursor_t *mp_replay_cursor(mp_replay_t *replay, uint32_t logical, uint32_t control);
// Takes the next equal choices of a loop or branch: `most_zeros` at most of choice 0, `most` of any
// other one. Returns how many, with the choice; 0: the path says no more. Counts guessed ones at
// its step.
uint64_t mp_replay_take(mp_replay_t *replay, uint32_t logical, uint32_t step, uint32_t control,
                        uint64_t most_zeros, uint64_t most, uint64_t *out_choice);

MP_NODISCARD mp_status_t mp_replay_make_lanes(mp_replay_t *replay);
void mp_replay_reset_lanes(mp_replay_t *replay);
// The device begins a copy, and goes on; it waits until one is over.
void mp_replay_copy(mp_replay_t *replay, uint32_t logical, uint32_t number);
void mp_replay_await_copy(mp_replay_t *replay, uint32_t logical, uint32_t number);

// ---- replay_local.c ----

// The device goes through a LOCAL loop or branch, once.
void mp_replay_local(mp_replay_t *replay, uint32_t logical, const mp_chip_flow_t *flow);

// ---- replay_meet.c ----

// Makes the meetings and pairs of all collectives.
MP_NODISCARD mp_status_t mp_replay_make_meetings(mp_replay_t *replay);
// Makes everything ready for a launch.
void mp_replay_reset_meetings(mp_replay_t *replay);
// The device has come to a collective, a send or a receive; it may be blocked afterwards.
MP_NODISCARD mp_status_t mp_replay_meet(mp_replay_t *replay, uint32_t logical,
                                        const mp_chip_step_t *step);
void mp_replay_free_meetings(mp_replay_t *replay);
// The device comes to a collective at `moment`, which is no earlier than anything that has
// happened. `out_parts`: what has to end before it is over for the device.
MP_NODISCARD mp_status_t mp_replay_arrive(mp_replay_t *replay, uint32_t logical, uint32_t number,
                                          mp_moment_t moment, uint32_t *out_parts);
// The device is blocked until `parts` more things have ended.
void mp_replay_block(mp_replay_t *replay, uint32_t logical, uint32_t parts);
// Makes events of the meetings that are complete.
MP_NODISCARD mp_status_t mp_replay_flush(mp_replay_t *replay);
// Takes out the earliest event; there is one.
mp_replay_event_t mp_replay_pop(mp_replay_t *replay);
// One of the things that the device waits for has ended at `end`.
MP_NODISCARD mp_status_t mp_replay_unblock(mp_replay_t *replay, uint32_t logical, mp_moment_t end);
// The description of a collective of the chip program.
const mp_collective_t *mp_replay_collective(const mp_replay_t *replay, uint32_t number);

// ---- replay_stream.c: collectives that go on while the device does something else ----

MP_NODISCARD mp_status_t mp_replay_make_stream(mp_replay_t *replay);
void mp_replay_reset_stream(mp_replay_t *replay);
// Whether devices start the collective and wait for it later.
bool mp_replay_is_started(const mp_replay_t *replay, uint32_t number);
// The device starts a collective, and goes on.
MP_NODISCARD mp_status_t mp_replay_start(mp_replay_t *replay, uint32_t logical, uint32_t number);
// The device waits for one that it has started, which took so much time from work beside it; it may
// be blocked afterwards.
void mp_replay_await(mp_replay_t *replay, uint32_t logical, uint32_t number, mp_moment_t lost);
// A part of one that the device has started has ended.
MP_NODISCARD mp_status_t mp_replay_end_started(mp_replay_t *replay, uint32_t logical,
                                               uint32_t number, mp_moment_t begin, mp_moment_t end);

// ---- replay_together.c: all groups of a collective at once ----

// What of a program lies beside each collective.
MP_NODISCARD mp_status_t mp_replay_find_neighbours(mp_replay_t *replay);
// Whether the earliest event is a round of a collective on whose time nothing else has an
// influence. An error of the network is one here, too.
MP_NODISCARD mp_status_t mp_replay_is_alone(mp_replay_t *replay, bool *out_is_alone);
// Does that round, from its beginning to its end.
MP_NODISCARD mp_status_t mp_replay_do_together(mp_replay_t *replay);

// ---- replay_traffic.c ----

// What a meeting sends, asked for once.
MP_NODISCARD mp_status_t mp_replay_traffic_of(mp_replay_t *replay, mp_meeting_t *meeting);
// Starts the next stage of a meeting that has transfers. `out_is_over`: there is none.
// `tag`: of the meeting.
MP_NODISCARD mp_status_t mp_replay_next_stage(mp_flows_t *flows, mp_meeting_t *meeting,
                                              uint64_t tag, double now, bool *out_is_over);
// A meeting has ended: books, and its members go on.
MP_NODISCARD mp_status_t mp_replay_end_meeting(mp_replay_t *replay, mp_meeting_t *meeting,
                                               mp_moment_t end);

// Does what comes next in time of replays that share links, and puts the devices that may go on
// into their `ready`. `out_any` false: nothing is under way.
MP_NODISCARD mp_status_t mp_replay_advance_flows(uint32_t count, mp_replay_t *const *replays,
                                                 bool *out_any);
// Which of them a transfer belongs to.
uint32_t mp_replay_member_of(uint64_t tag);

#endif  // MINIPOD_SIM_MODEL_CLOCK_REPLAY_REPLAY_IMPL_H_
