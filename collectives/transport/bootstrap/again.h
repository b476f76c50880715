// Joining again: a process that was started in the place of a dead one, while the others continue
// (../world_return.h).
//
// It finds the hellos of the first processes in the store, and knocks at the lowest of them that is
// still alive. Its welcome lists the other processes and their incarnations. The data of restarted
// processes is in the store under their incarnations. When all live processes have welcomed this
// one, it is a member.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_AGAIN_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_AGAIN_H_

#include "collectives/transport/bootstrap/hello.h"
#include "collectives/transport/store/store_talk.h"
#include "collectives/transport/transport.h"

typedef struct {
  const mp_store_talk_t *talk;
  mp_world_t *world;      // without transports
  mp_hello_t own;         // of this process
  mp_hello_t *hellos;     // [size] of the first processes; its own place has its predecessor's
  int64_t *leaders;       // [size], the lowest rank of each one's host
  const char *cards;      // the folder of the first processes' cards
  const char *connected;  // and of their outcomes
  mp_transport_t *far;    // made here if there are other hosts; owned by the world
} mp_again_t;

// ALREADY_EXISTS when the first process of this rank is on this host, and has not ended.
MP_NODISCARD mp_status_t mp_again_check_predecessor(uint32_t rank, const mp_hello_t *hello);

// ALREADY_EXISTS when the predecessor is still alive; FAILED_PRECONDITION when this process is on
// another host than its predecessor, and other processes were or are on these hosts; UNAVAILABLE
// when no process is left that could admit it; DEADLINE_EXCEEDED when one of them does not answer;
// and the errors of the store.
MP_NODISCARD mp_status_t mp_again_join(mp_again_t *again);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_AGAIN_H_
