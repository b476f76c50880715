// The bell of a world, and who hears it: the world's thread, or one that attends in its place.
#include "collectives/transport/world_impl.h"
#include "sim/base/assert.h"

// The world that the calling thread attends to; NULL: none.
static _Thread_local mp_world_t *t_attended;
// Whether that thread has left something for its own next round.
static _Thread_local bool t_has_rung;

void mp_world_ring(mp_world_t *world) {
  if (t_attended == world) {
    t_has_rung = true;
  } else {
    mp_doorbell_ring(world->doorbell);
  }
}

bool mp_world_attend_begin(mp_world_t *world) {
  if (t_attended != NULL || atomic_exchange(&world->is_attended, true)) return false;
  t_attended = world;
  t_has_rung = false;
  return true;
}

bool mp_world_hear_own_bell(mp_world_t *world) {
  MP_ASSERT(t_attended == world);
  const bool has_rung = t_has_rung;
  t_has_rung = false;
  return has_rung;
}

void mp_world_stop_attending(mp_world_t *world) {
  MP_ASSERT(t_attended == world);
  t_attended = NULL;
  atomic_store(&world->is_attended, false);
}
