// Coming back: another process takes the place of one that has ended, in a world that goes on.
//
// A restarted process knocks at each live process: those of its host read the knock in their
// segment (shm_return.c), those of other hosts get it as a message (ucx_return.c). Each of them
// connects the newcomer on its progress thread, drops the remains of its predecessor, and welcomes
// it. The first welcome lists the other processes, and the newcomer knocks at these. So if two
// processes restart at once, the later one learns of the earlier one, and knocks there.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_WORLD_RETURN_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_WORLD_RETURN_H_

#include "collectives/transport/world_impl.h"

// ---- Answering knocks: called by transports on the progress thread ----

// Whether a knock can be answered: OK, or INVALID_ARGUMENT when it is malformed.
MP_NODISCARD mp_status_code_t mp_world_check_knock(const mp_world_t *world,
                                                   const mp_knock_t *knock);
// The rank's process is another one from now on; `transport` reaches it, and has dropped all that
// was under way with its predecessor, which counts as lost by now. Takes `bygone` (mp_calloc). Ends
// with a welcome.
void mp_world_take_back(mp_world_t *world, const mp_knock_t *knock, mp_transport_t *transport,
                        mp_bygone_t *bygone);

// ---- The restarted process ----

typedef struct {
  bool is_alive;
  uint64_t incarnation;  // 0: it was never restarted
} mp_world_place_t;

// Waits for the welcome of a rank. UNAVAILABLE when the rank is lost; OK without a welcome
// (`out_welcome` NULL) when none has come after `timeout_s` seconds.
MP_NODISCARD mp_status_t mp_world_await_welcome(mp_world_t *world, uint32_t rank, double timeout_s,
                                                mp_packet_t **out_welcome);
// Takes over the state of the job from a welcome: the places of all ranks ([size], where those that
// have knocked here meanwhile are not alive: they need nothing), the agreements so far, the memo.
// Ranks that are dead are lost from now on. INTERNAL for a malformed welcome.
MP_NODISCARD mp_status_t mp_world_settle(mp_world_t *world, const mp_packet_t *welcome,
                                         mp_world_place_t *out_places);

// The incarnation of a rank, which may be this one, before any channel has a handler.
void mp_world_note_incarnation(mp_world_t *world, uint32_t rank, uint64_t incarnation);
// A rank could not be reached: it is lost, unless another incarnation has knocked here meanwhile.
// Consumes `why`. Any thread.
void mp_world_miss(mp_world_t *world, uint32_t rank, uint64_t incarnation, mp_status_t why);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_WORLD_RETURN_H_
