#include "collectives/transport/cargo.h"

#include "collectives/transport/segment.h"
#include "sim/base/alloc.h"
#include "sim/base/process.h"

void mp_cargo_init(mp_cargo_t *cargo, size_t bytes) {
  atomic_store_explicit(&cargo->references, 1, memory_order_relaxed);
  cargo->generation = mp_process_generation();
  cargo->parcel = (mp_parcel_t){.data = mp_cargo_data(cargo), .bytes = bytes};
}

mp_cargo_t *mp_cargo_create(size_t bytes) {
  size_t room;
  if (__builtin_add_overflow(bytes, sizeof(mp_cargo_t), &room)) return NULL;
  mp_cargo_t *cargo = mp_aligned_malloc(MP_CARGO_ALIGNMENT, room);
  if (cargo == NULL) return NULL;
  cargo->offset = 0;
  mp_cargo_init(cargo, bytes);
  return cargo;
}

void mp_cargo_retain(mp_cargo_t *cargo) {
  atomic_fetch_add_explicit(&cargo->references, 1, memory_order_relaxed);
}

void mp_cargo_release(mp_cargo_t *cargo) {
  if (cargo == NULL) return;
  if (atomic_fetch_sub_explicit(&cargo->references, 1, memory_order_acq_rel) != 1) return;
  if (cargo->offset == 0) {
    mp_free(cargo);
  } else {
    mp_segment_return(cargo);
  }
}
