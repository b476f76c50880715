// Cargo: reference-counted memory that holds what is sent.
//
// A piece of cargo is a header of one cache line with the data right behind it. It lies on the heap
// or in a segment (segment.h); references in a segment are counted by all processes that have it
// mapped, and whoever drops the last one hands it back to the segment's owner.
//
// All functions are thread-safe.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_CARGO_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_CARGO_H_

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/transport/world.h"

enum { MP_CARGO_ALIGNMENT = 64 };

typedef struct {
  _Alignas(MP_CARGO_ALIGNMENT) _Atomic uint32_t references;
  uint32_t generation;  // of the process that made it (sim/base/process.h)
  mp_parcel_t parcel;   // as its creator sees it; `data` means nothing elsewhere
  uint64_t offset;      // from the beginning of its segment; 0: on the heap
  uint64_t next;        // while free: the offset of the next free one
  uint32_t size_class;  // of a segment's
} mp_cargo_t;

_Static_assert(sizeof(mp_cargo_t) == MP_CARGO_ALIGNMENT, "the data begins on a cache line");

static inline void *mp_cargo_data(mp_cargo_t *cargo) {
  return cargo + 1;
}

static inline mp_cargo_t *mp_cargo_of_parcel(mp_parcel_t *parcel) {
  return (mp_cargo_t *)((char *)parcel - offsetof(mp_cargo_t, parcel));
}

// Writes the header of cargo whose place (offset, size_class) is settled: one reference.
void mp_cargo_init(mp_cargo_t *cargo, size_t bytes);
// On the heap. NULL when memory is short.
mp_cargo_t *mp_cargo_create(size_t bytes);
void mp_cargo_retain(mp_cargo_t *cargo);
void mp_cargo_release(mp_cargo_t *cargo);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_CARGO_H_
