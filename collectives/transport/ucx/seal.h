// Seals: a number computed from some bytes and a key; without the key it cannot be computed
// (SipHash-2-4).
//
// The listening sockets of a network transport are open to anyone who can reach the host. A message
// is accepted only if its header has the seal of the job, whose key goes through the job's
// key-value store and never over the wire. The data behind a header are neither sealed nor
// encrypted: the network between the hosts of a job is taken to be their own, as MPI does.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_UCX_SEAL_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_UCX_SEAL_H_

#include <stddef.h>
#include <stdint.h>

typedef struct {
  uint64_t words[2];
} mp_seal_key_t;

uint64_t mp_seal(const mp_seal_key_t *key, const void *bytes, size_t size);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_UCX_SEAL_H_
