#include "sim/model/faults/health.h"

#include <math.h>
#include <string.h>

#include "sim/base/alloc.h"
#include "sim/base/assert.h"
#include "sim/base/hash.h"

static uint64_t health_id_of_changes(const mp_health_t *health) {
  uint64_t hash = MP_HASH_START;
  for (uint32_t i = 0; i < health->num_changes; ++i) {
    const mp_network_change_t *change = &health->changes[i];
    hash = mp_hash_u64(hash, change->link);
    hash = mp_hash_bytes(hash, &change->bandwidth, sizeof(change->bandwidth));
    hash = mp_hash_bytes(hash, &change->latency, sizeof(change->latency));
  }
  return health->num_changes == 0 ? 0 : hash | 1;
}

static uint64_t health_id_of(const mp_health_t *health) {
  uint64_t hash = mp_hash_u64(MP_HASH_START, health->changes_id);
  if (health->slowness != NULL) {
    hash = mp_hash_bytes(hash, health->slowness, health->num_devices * sizeof(double));
  }
  for (uint32_t i = 0; i < health->num_stragglers; ++i) {
    const mp_stragglers_t *stragglers = &health->stragglers[i];
    hash = mp_hash_u64(hash, stragglers->seed);
    hash = mp_hash_bytes(hash, &stragglers->spread, sizeof(stragglers->spread));
    hash = mp_hash_bytes(hash, &stragglers->share, sizeof(stragglers->share));
  }
  return hash | 1;
}

mp_status_t mp_health_create(const mp_health_t *like, mp_health_t **out_health) {
  const size_t slowness = like->slowness == NULL ? 0 : like->num_devices * sizeof(double);
  const size_t changes = like->num_changes * sizeof(*like->changes);
  const size_t stragglers = like->num_stragglers * sizeof(*like->stragglers);
  mp_health_t *health = mp_calloc(1, sizeof(*health) + changes + slowness + stragglers);
  MP_RETURN_IF_NULL(health);
  char *cursor = (char *)(health + 1);
  *health = (mp_health_t){.num_devices = like->num_devices,
                          .num_changes = like->num_changes,
                          .changes = (const mp_network_change_t *)(void *)cursor,
                          .num_stragglers = like->num_stragglers};
  if (changes != 0) memcpy(cursor, like->changes, changes);
  cursor += changes;
  if (slowness != 0) {
    memcpy(cursor, like->slowness, slowness);
    health->slowness = (const double *)(void *)cursor;
  }
  cursor += slowness;
  health->stragglers = (const mp_stragglers_t *)(void *)cursor;
  if (stragglers != 0) memcpy(cursor, like->stragglers, stragglers);
  atomic_init(&health->references, 1);
  health->changes_id = health_id_of_changes(health);
  health->id = health_id_of(health);
  *out_health = health;
  return NULL;
}

void mp_health_release(mp_health_t *health) {
  if (health == NULL) return;
  // Only the count ever changes; freeing the health comes after all that others read of it.
  const int before = atomic_fetch_sub_explicit(&health->references, 1, memory_order_acq_rel);
  MP_ASSERT(before > 0);
  if (before == 1) mp_free(health);
}

// A number above 0 and up to 1 that follows from `hash` and `draw`.
static double health_draw(uint64_t hash, uint64_t draw) {
  return (double)((mp_hash_u64(hash, draw) >> 11) + 1) * 0x1p-53;
}

static double health_straggle(const mp_stragglers_t *stragglers, uint64_t device, uint64_t program,
                              uint64_t number) {
  uint64_t hash = mp_hash_u64(MP_HASH_START, stragglers->seed);
  hash = mp_hash_u64(hash, device);
  hash = mp_hash_u64(hash, program);
  hash = mp_hash_u64(hash, number);
  if (health_draw(hash, 0) > stragglers->share) return 1;
  return 1 - stragglers->spread * log(health_draw(hash, 1));
}

double mp_health_slowness(const mp_health_t *health, uint32_t device, uint64_t program,
                          uint64_t number) {
  double slowness = health->slowness == NULL ? 1 : health->slowness[device];
  for (uint32_t i = 0; i < health->num_stragglers; ++i) {
    slowness *= health_straggle(&health->stragglers[i], device, program, number);
  }
  return slowness;
}
