// Sessions: one launch on all its participants, which meet at collectives and fail together.
//
// A participant is a device of the launch, named by its logical number. For each one the session
// knows whether it has been enqueued, runs, is parked at a collective, or is done. The first
// failure poisons the session: parked participants are resumed, all notice it at their next yield
// point and end with that first cause; those that were done before keep their results. If every
// participant has been enqueued, all are parked or done, and at least one is parked, then none can
// ever arrive any more: the session is stuck, and that is a failure too.
//
// Participants may be in several processes, each of which has a session for its own. They meet
// through packets (peers.h); a failure in one process poisons the sessions of all, and a process
// whose participants are all done notifies the others, so that none waits for it.
//
// Reference-counted: the runs hold their session, and so do the device set while launches are
// missing and the endpoint while packets may come. Thread-safe: functions take the session's lock,
// unless noted that the caller holds it. The lock order is in sim/runtime/README.md.
#ifndef MINIPOD_SIM_RUNTIME_SESSIONS_SESSION_H_
#define MINIPOD_SIM_RUNTIME_SESSIONS_SESSION_H_

#include "collectives/mailbox.h"
#include "collectives/rendezvous.h"
#include "sim/runtime/devices/client_impl.h"
#include "sim/runtime/remote/peers.h"

typedef struct mp_session_s mp_session_t;

// A session whose participants are all in this process, and none of them enqueued yet.
// `device_ids` are their global device ids in logical order; copied. RESOURCE_EXHAUSTED when memory
// is short.
MP_NODISCARD mp_status_t mp_session_create(uint32_t num_participants, const uint32_t *device_ids,
                                           mp_session_t **out_session);
// Called before any participant joins, when the launch has participants in other processes. The
// session enters the endpoint: packets come from here on. After a failure the session can only be
// released. RESOURCE_EXHAUSTED when memory is short, FAILED_PRECONDITION when the client was
// closed.
MP_NODISCARD mp_status_t mp_session_connect(mp_session_t *session, const mp_session_link_t *link);
// Called before any participant joins, for a participant that takes no part in the launch: it
// counts as done. Not for the last one of this process.
void mp_session_leave_out(mp_session_t *session, uint32_t logical);
// mp_session_retain adds a reference and returns the session; the last mp_session_release frees it.
// NULL has no effect in either.
mp_session_t *mp_session_retain(mp_session_t *session);
void mp_session_release(mp_session_t *session);

// Called when a participant was enqueued: absent -> active. `run` is borrowed until
// mp_session_leave, and is on `device`. Returns true when all participants of this process have
// joined or were skipped.
bool mp_session_join(mp_session_t *session, uint32_t logical, mp_device_t *device, mp_run_t *run);
// The world that carries messages of this launch; NULL: all participants are in this process.
mp_world_t *mp_session_world(const mp_session_t *session);
// Records where the launch is called from (copied), because a program may be called from many
// places. Only the first call counts; used by launches over several processes.
void mp_session_name_caller(mp_session_t *session, const char *caller);
// Records the incarnations that the launch is meant for (mp_endpoint_mean): if one of them was
// replaced, the launch fails.
void mp_session_mean(mp_session_t *session, size_t count, const int *ranks,
                     const int64_t *incarnations);
// Called when the launch did not happen for this participant: absent -> done. Returns the same. The
// caller has already poisoned the session with the reason.
bool mp_session_skip(mp_session_t *session, uint32_t logical);
// Called when a participant that has joined is over: active or parked -> done. Poisons the session
// if others wait for it. After the last participant of this process, the other processes are
// notified.
void mp_session_leave(mp_session_t *session, uint32_t logical);

// The launch fails with `error` (consumed), here and in all other processes. Only the first error
// counts; later ones are dropped. Parked participants are resumed.
void mp_session_poison(mp_session_t *session, mp_status_t error);
// The same, but of the other processes only those are notified for which `is_told` is true (NULL:
// none).
void mp_session_poison_some(mp_session_t *session, mp_status_t error,
                            bool (*is_told)(uint32_t rank, const void *context),
                            const void *context);
// The same with the error of a session that can never continue (deadlock.h). Has no effect if none
// is parked.
void mp_session_poison_stuck(mp_session_t *session);
// True from the first failure on; takes no lock.
bool mp_session_is_poisoned(const mp_session_t *session);
// A retained reference to the first cause; OK while there is none. Takes no lock.
MP_NODISCARD mp_status_t mp_session_error(mp_session_t *session);

// How a participant continues after it arrived at a meeting point.
typedef enum {
  MP_ARRIVED_GO_ON,
  MP_ARRIVED_YIELDS,  // only in talks: it looks for what another participant does
  MP_ARRIVED_PARKED,  // another thread may resume the run at once: it must not be touched
} mp_arrived_t;

// The participant meets its group at a collective. The last one to arrive does the work (with the
// help of idle workers), resumes the others and continues itself; if the group has members in other
// processes, it sends what those need and parks until their payloads have come. `arrival` must stay
// until the meeting is over. If a participant is resumed while its arrival is not over, it calls
// this again, to continue the work that it does as the last one. A device in none of the groups
// gets zeros. Errors: the session's own, INVALID_ARGUMENT when the participants are not at the same
// collective, or what the collective reports.
MP_NODISCARD mp_status_t mp_session_meet(mp_session_t *session, mp_worker_t *self,
                                         mp_arrival_t *arrival, mp_arrived_t *out_arrived);
// Sends a copy of `inputs` from participant `source` of this process to `target`, which may be in
// another one. Does not wait. RESOURCE_EXHAUSTED when memory is short, or what mp_world_send
// reports.
MP_NODISCARD mp_status_t mp_session_send(mp_session_t *session, const mp_collective_t *collective,
                                         uint32_t source, uint32_t target,
                                         const void *const *inputs);
// Takes the message from receiver->source, or parks until it comes; `receiver` must stay until
// then. After MP_ARRIVED_GO_ON, and after being resumed, the caller releases receiver->message; it
// is NULL when the session is poisoned.
void mp_session_receive(mp_session_t *session, mp_receiver_t *receiver, mp_arrived_t *out_arrived);
// The mailbox, for mp_message_read, which only uses the names in it. Borrowed.
const mp_mailbox_t *mp_session_mailbox(const mp_session_t *session);

// True when the participant waits at a meeting point.
bool mp_session_is_parked(mp_session_t *session, uint32_t logical);

// ---- For routers ----

// The functions that routers call (deliver.c).
extern const mp_session_calls_t mp_session_calls;

// Takes a packet of this launch from another process (deliver.c). True: the caller must call
// mp_session_carry_on when it holds no lock, and keep the session until then.
bool mp_session_deliver(mp_session_t *session, mp_packet_t *packet);
// Continues a remote collective in the place of its holder (meet.c). *followup runs the
// participants that its end resumes.
void mp_session_carry_on(mp_session_t *session, mp_followup_t *followup);
// True when some participants of this process were launched and are not done.
bool mp_session_is_moving(mp_session_t *session);
// True when a thread continues a remote collective in the place of its holder
// (mp_session_carry_on), or is about to.
bool mp_session_is_carried(mp_session_t *session);
// True when all participants of this process were launched or refused.
bool mp_session_is_complete(mp_session_t *session);

// ---- For stuck.c, deadlock.c and watch.c ----

// Changed only under the session's lock and only in these ways, so that a thread that reads several
// of them under it sees a state that existed: ABSENT -> ACTIVE (join) <-> PARKED (by the run
// itself, by the thread that resumes it) -> DONE (leave)
//   ABSENT -> DONE (skip, leave_out), REMOTE -> DONE (leave_out, its process reports that it is
//   done)
typedef enum {
  MP_PARTICIPANT_ABSENT,  // of this process, not enqueued yet
  MP_PARTICIPANT_ACTIVE,  // queued, running or runnable
  MP_PARTICIPANT_PARKED,  // at a meeting, waiting for a message, or with a remote collective
  MP_PARTICIPANT_DONE,    // over, or never to come
  MP_PARTICIPANT_REMOTE,  // of another process that has not reported that it is done
} mp_participant_state_t;

struct mp_session_s {
  atomic_int references;
  uint32_t num_participants, num_local;  // all of them; those of this process
  const uint32_t *names;                 // [num_participants] global device ids
  mp_peers_t *peers;  // set by mp_session_connect; NULL: all participants are in this process

  // ---- Under the lock ----
  mp_lock_t lock;
  uint32_t num_joined;              // of this process: all that are not ABSENT
  uint32_t num_active, num_parked;  // how many are in these states
  char *caller;                     // owned; NULL: not known
  mp_status_t error;                // the first failure, owned; written once, before is_poisoned
  atomic_bool is_poisoned;          // `error` is set; for reading without the lock
  mp_rendezvous_t rendezvous;       // meetings that lack participants of this process
  mp_mailbox_t mailbox;             // messages not received yet, receivers that wait
  struct mp_session_talk_s *talks;  // those in which participants are (talks.h)
  struct mp_talk_rounds_s *talk_rounds;  // by command
  mp_packet_list_t talk_packets;         // of other processes, for participants in talks
  // [num_participants] for participants ACTIVE or PARKED: the runs, borrowed and opaque, and their
  // devices (or side streams).
  mp_run_t **runs;
  mp_device_t **devices;
  uint8_t *states;  // [num_participants] mp_participant_state_t

  // ---- Under the client's launch lock ----
  struct mp_session_s *next;  // in the list of its device set's sessions that lack launches
  uint64_t number;            // which launch of the device set it is
  bool may_go_on;             // deadlock.c's mark
  uint64_t looked;            // deadlock.c's: the last look that read this session
#ifdef MINIPOD_ASSERTS
  // Under the lock:
  uint32_t num_at_held;  // parked participants whose meeting is being held, and is in no list
  uint64_t checked;      // the last check of the client that checked this session
#endif
};

// The caller holds the session's lock for all following functions. The last three functions are for
// sessions that mp_session_connect has connected.

// The error of a stuck session: which participants wait where, and which will never come. ABORTED,
// or RESOURCE_EXHAUSTED when there is no memory for the message.
MP_NODISCARD mp_status_t mp_session_describe_stuck(const mp_session_t *session);
// True when some participant is parked until another process sends something.
bool mp_session_waits_for_peers(const mp_session_t *session);
// True when some participant is parked until the process with this rank sends something.
bool mp_session_misses_rank(const mp_session_t *session, uint32_t rank);
// Appends "launch 3: devices 0-3 wait at ...; missing for 10 s: devices 4-7 of process 1", where
// `seconds` is how long nothing has moved. Appends nothing when memory is short.
void mp_session_describe_wait(const mp_session_t *session, double seconds, mp_strbuf_t *out);
// Appends what the participants of this process are doing, as the answer to another process.
// Appends nothing when memory is short.
void mp_session_describe_own(const mp_session_t *session, mp_strbuf_t *out);

// ---- For circles of waits (sim/runtime/circles; waits.c); the lock is held ----

// One reason why a parked participant waits: a participant that has not come to where it waits.
typedef struct {
  uint32_t logical, missing;          // the one that waits, and the one it waits for
  const mp_collective_t *collective;  // where; belongs to the program of the former
  bool is_message;                    // the missing one has to send a message
  // The remote collective, if the missing one is in another process: the hash of its group, and its
  // number in the group sequence.
  uint64_t group;
  uint32_t number;
} mp_wait_t;

// Calls `visit` for each reason why the participant waits; not at all if it is not parked, or if
// all that it waits for has come.
void mp_session_visit_waits(const mp_session_t *session, uint32_t logical,
                            void (*visit)(const mp_wait_t *wait, void *context), void *context);
// True when the participants of this process have arrived at this remote collective.
bool mp_session_has_begun(const mp_session_t *session, uint64_t group, uint32_t number);
// Appends "stablehlo.all_reduce (train.py:12) of devices 0-3": where the participant of the wait
// waits, and the group that meets there.
void mp_session_describe_place(const mp_session_t *session, const mp_wait_t *wait,
                               mp_strbuf_t *out);

#endif  // MINIPOD_SIM_RUNTIME_SESSIONS_SESSION_H_
