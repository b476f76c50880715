// The bell of a world, which wakes the world's thread or the thread that attends in its place.
#include "collectives/transport/world_impl.h"
#include "sim/base/assert.h"

// The world that the calling thread attends to; NULL: none.
static _Thread_local mp_world_t *t_attended;
// Whether that thread has rung for its own next round.
static _Thread_local bool t_has_rung;

void mp_world_ring(mp_world_t *world) {
  if (t_attended == world) {
    t_has_rung = true;
    return;
  }
  mp_doorbell_ring(world->doorbell);
  // Sequentially consistent: either this sees that no thread attends any more, or the attending
  // thread, after it has cleared the flag, finds that the bell has rung.
  if (atomic_load(&world->is_attended)) return;
  // Likewise, either this sees that the world's thread dozes, or that thread, after it has set
  // is_dozing, sees that it must not doze.
  if (atomic_load(&world->attended_until) != 0) atomic_store(&world->attended_until, 0);
  if (atomic_load(&world->is_dozing)) mp_doorbell_wake(world->doorbell);
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
