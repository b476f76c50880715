// Talks: the runs of a kernel that communicates, on the participants of a session
// (sim/kernels/talk.h).
//
// The n-th time that a participant comes to a kernel, it enters the kernel's n-th talk. It may be
// the first or the last one there. While it waits for another participant it is parked.
#ifndef MINIPOD_SIM_RUNTIME_SESSIONS_TALKS_H_
#define MINIPOD_SIM_RUNTIME_SESSIONS_TALKS_H_

#include "sim/kernels/talk.h"
#include "sim/runtime/sessions/session.h"

typedef enum {
  MP_TALK_NOT_YET,
  MP_TALK_INSIDE,
  MP_TALK_WAITS,  // inside, and parked
  MP_TALK_GONE,
} mp_talk_state_t;

// A command that runs a kernel which communicates.
typedef struct {
  const mp_kernel_t *kernel;
  uint64_t program;  // the digest of its program
  uint32_t number;   // of the command
} mp_talk_call_t;

typedef struct mp_session_talk_s mp_session_talk_t;
struct mp_session_talk_s {
  mp_session_talk_t *next;  // in the session's list, the oldest first
  mp_session_t *session;
  mp_talk_call_t call;  // of the participants' executable, which they hold
  uint32_t round;       // the participants have come to the command as often before
  mp_talk_t *talk;      // owned
  // Under the session's lock:
  uint32_t num_inside, num_gone;
  uint8_t *states;  // [num_participants] mp_talk_state_t
};

// How often each participant has come to a command.
typedef struct mp_talk_rounds_s mp_talk_rounds_t;
struct mp_talk_rounds_s {
  mp_talk_rounds_t *next;
  uint32_t number;    // of the command
  uint32_t counts[];  // [num_participants]
};

// The participant, which is active, enters. The arrays and their contents stay until it leaves.
// *out_talk is set unless the talk cannot be made; the participant must leave it, even after an
// error.
MP_NODISCARD mp_status_t mp_session_enter_talk(mp_session_t *session, const mp_talk_call_t *call,
                                               uint32_t logical, const void *const *operands,
                                               void *const *results, mp_session_talk_t **out_talk);
// Runs the kernel until it is over for the participant, has to wait and parks, or yields: then this
// is called again when it is resumed. Errors: the kernel's, or the session's.
MP_NODISCARD mp_status_t mp_session_go_on_talk(mp_session_t *session, mp_session_talk_t *talk,
                                               uint32_t logical, mp_arrived_t *out_arrived);
// Called when the kernel is over for the participant, or has failed, or the run ends.
void mp_session_leave_talk(mp_session_t *session, mp_session_talk_t *talk, uint32_t logical);

// ---- talk_packets.c: what devices of other processes send ----

// Fills in the link's functions for devices of other processes.
void mp_session_link_talk(mp_talk_link_t *link);
// Takes the next packet for the participant, which is inside; NULL: there is none. The caller holds
// the lock.
mp_packet_t *mp_session_next_talk_packet(mp_session_t *session, const mp_session_talk_t *talk,
                                         uint32_t logical);
// Whether there is one. The caller holds the lock.
bool mp_session_has_talk_packet(const mp_session_t *session, const mp_session_talk_t *talk,
                                uint32_t logical);
// A packet has come: its receiver is resumed if it waits. Takes the packet. The caller holds the
// lock.
void mp_session_take_talk_packet(mp_session_t *session, mp_packet_t *packet,
                                 mp_device_list_t *resumed);

// ---- talk_list.c; the caller holds the lock, but for the first two ----

// Frees a talk that no participant is in, or all of a session.
void mp_session_release_talk(mp_session_talk_t *talk);
void mp_session_release_talks(mp_session_t *session);
// Whether a participant waits in a talk while another one of the process with this rank (or, -1, of
// any other one) is not done, and so may signal.
bool mp_session_talks_miss(const mp_session_t *session, int64_t rank);
// Appends `words` and which participants wait where in kernels; nothing if none waits.
void mp_session_describe_talks(const mp_session_t *session, const char *words, mp_strbuf_t *out);
// The same, with those that have ended.
void mp_session_describe_stuck_talks(const mp_session_t *session, mp_strbuf_t *out);

#endif  // MINIPOD_SIM_RUNTIME_SESSIONS_TALKS_H_
