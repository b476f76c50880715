// Cargo: reference-counted memory that holds what is sent.
//
// A piece of cargo is a header of one cache line with the data right behind it.
//
// All functions are thread-safe.
#ifndef MINIPOD_COLLECTIVES_CARGO_H_
#define MINIPOD_COLLECTIVES_CARGO_H_

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/world.h"

enum { MP_CARGO_ALIGNMENT = 64 };

typedef struct {
  _Alignas(MP_CARGO_ALIGNMENT) _Atomic uint32_t references;
  uint32_t generation;  // of the process that made it (sim/base/process.h)
  mp_parcel_t parcel;   // as its creator sees it; `data` means nothing elsewhere
} mp_cargo_t;

_Static_assert(sizeof(mp_cargo_t) == MP_CARGO_ALIGNMENT, "the data begins on a cache line");

static inline void *mp_cargo_data(mp_cargo_t *cargo) {
  return cargo + 1;
}

static inline mp_cargo_t *mp_cargo_of_parcel(mp_parcel_t *parcel) {
  return (mp_cargo_t *)((char *)parcel - offsetof(mp_cargo_t, parcel));
}

// NULL when memory is short.
mp_cargo_t *mp_cargo_create(size_t bytes);
void mp_cargo_retain(mp_cargo_t *cargo);
void mp_cargo_release(mp_cargo_t *cargo);

#endif  // MINIPOD_COLLECTIVES_CARGO_H_
