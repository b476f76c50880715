// Sessions: one launch on all its participants, which share their collectives and their fate.
//
// A session knows for each participant whether it has been enqueued, runs, is parked at a
// collective, or is done. The first failure poisons the session: parked participants are resumed,
// all notice it at their next yield point and end with that first cause; those that were done
// before keep their results. When every participant has been enqueued and all are parked or done,
// with one parked at least, nobody can ever arrive any more: the session is stuck, and that is a
// failure too.
//
// Participants may be in several processes, each of which has a session for its own. They meet
// through packets (peers.h); a failure in one process poisons the sessions of all, and a process
// whose participants are all done says so, so that nobody waits for it.
//
// Reference-counted; has a lock of its own (sim/runtime/README.md: lock order).
#ifndef MINIPOD_SIM_RUNTIME_LAUNCH_SESSION_H_
#define MINIPOD_SIM_RUNTIME_LAUNCH_SESSION_H_

#include "collectives/mailbox.h"
#include "collectives/rendezvous.h"
#include "sim/runtime/devices/client_impl.h"
#include "sim/runtime/remote/peers.h"

typedef struct mp_session_s mp_session_t;

// `device_ids` of the participants, in logical order; copied.
MP_NODISCARD mp_status_t mp_session_create(uint32_t num_participants, const uint32_t *device_ids,
                                           mp_session_t **out_session);
// Before anybody joins: the launch has participants in other processes. `ranks_of` (by logical
// number) and `ranks` (of the others) are borrowed. Enters the endpoint, so packets come from here
// on.
MP_NODISCARD mp_status_t mp_session_connect(mp_session_t *session, mp_endpoint_t *endpoint,
                                            uint64_t devices, uint64_t number,
                                            const uint32_t *ranks_of, uint32_t num_ranks,
                                            const uint32_t *ranks);
mp_session_t *mp_session_retain(mp_session_t *session);
void mp_session_release(mp_session_t *session);

// A participant was enqueued. True when it was the last one.
bool mp_session_join(mp_session_t *session, uint32_t logical, mp_run_t *run);
// The launch did not come about for this participant: it joins only to be done.
bool mp_session_skip(mp_session_t *session, uint32_t logical);
// A participant that was joined is over.
void mp_session_leave(mp_session_t *session, uint32_t logical);

// Consumes `error`; later errors are dropped.
void mp_session_poison(mp_session_t *session, mp_status_t error);
// The same with the error of a session that can never go on (deadlock.h).
void mp_session_poison_stuck(mp_session_t *session);
bool mp_session_is_poisoned(const mp_session_t *session);
// A retained reference to the first cause; OK while there is none.
MP_NODISCARD mp_status_t mp_session_error(mp_session_t *session);

// How a participant goes on after it came to a meeting point.
typedef enum {
  MP_ARRIVED_GO_ON,
  MP_ARRIVED_PARKED,  // the run may be resumed on another thread at once: hands off
} mp_arrived_t;

// Meets the group. The last one to arrive does the work (with the help of idle workers), resumes
// the others and goes on itself. `arrival` must stay until then. A participant that is resumed and
// whose arrival is not over comes here again: it is to go on with what it was the last one for.
MP_NODISCARD mp_status_t mp_session_meet(mp_session_t *session, mp_worker_t *self,
                                         mp_arrival_t *arrival, mp_arrived_t *out_arrived);
// Sends a copy of `inputs`.
MP_NODISCARD mp_status_t mp_session_send(mp_session_t *session, const mp_collective_t *collective,
                                         uint32_t source, uint32_t target,
                                         const void *const *inputs);
void mp_session_receive(mp_session_t *session, mp_receiver_t *receiver, mp_arrived_t *out_arrived);
const mp_mailbox_t *mp_session_mailbox(const mp_session_t *session);

bool mp_session_is_parked(mp_session_t *session, uint32_t logical);

// ---- For routers ----

// These functions as routers get them.
extern const mp_session_calls_t mp_session_calls;

// Takes a packet of this launch.
void mp_session_deliver(mp_session_t *session, mp_packet_t *packet);
// Some participants of this process were launched and are not done.
bool mp_session_is_moving(mp_session_t *session);
// All of this process were launched.
bool mp_session_is_complete(mp_session_t *session);
// This rank sends no more.
void mp_session_lose(mp_session_t *session, uint32_t rank, mp_status_t why);

// ---- For stuck.c, deadlock.c and watch.c ----

typedef enum {
  MP_PARTICIPANT_ABSENT,  // not enqueued yet
  MP_PARTICIPANT_ACTIVE,  // queued, running or runnable
  MP_PARTICIPANT_PARKED,
  MP_PARTICIPANT_DONE,
  MP_PARTICIPANT_REMOTE,  // of another process that has not left
} mp_participant_state_t;

struct mp_session_s {
  atomic_int references;
  uint32_t num_participants, num_local;
  mp_lock_t lock;
  uint32_t num_joined, num_active, num_parked;
  atomic_bool is_poisoned;
  mp_status_t error;
  mp_rendezvous_t rendezvous;
  mp_mailbox_t mailbox;
  mp_peers_t *peers;          // NULL: all participants are in this process
  mp_run_t **runs;            // [num_participants]
  uint8_t *states;            // [num_participants] mp_participant_state_t
  const uint32_t *names;      // [num_participants] global device ids
  struct mp_session_s *next;  // of a device set's sessions that wait for launches
  uint64_t number;            // among them
  bool may_go_on;             // deadlock.c's mark, under the launch lock
#ifdef MINIPOD_ASSERTS
  uint32_t num_at_held;  // parked participants whose meeting is being held: it is in no list
  uint64_t checked;      // by which check of the client
#endif
};

// The session's lock is held for all of these. The error that describes a stuck session.
MP_NODISCARD mp_status_t mp_session_describe_stuck(const mp_session_t *session);
// Somebody is parked until another process sends.
bool mp_session_waits_for_peers(const mp_session_t *session);
// Somebody is parked until this one sends.
bool mp_session_misses_rank(const mp_session_t *session, uint32_t rank);
// "launch 3: devices 0-3 wait at ...; missing for 10 s: devices 4-7 of process 1"
void mp_session_describe_wait(const mp_session_t *session, double seconds, mp_strbuf_t *out);
// What the participants of this process are doing.
void mp_session_describe_own(const mp_session_t *session, mp_strbuf_t *out);

#endif  // MINIPOD_SIM_RUNTIME_LAUNCH_SESSION_H_
