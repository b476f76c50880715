// Arrays that kernels need besides the values of the program: copies in other layouts, and the
// parts that collective matmuls store instead of whole arrays.
//
// A ring of libtpu goes both ways. Two parts are in use while the next two arrive. A reduce_scatter
// accumulates in two more parts, which exist from the end of the ring before. If parts of an
// operand add to the result, there are two results.
#include "sim/base/assert.h"
#include "sim/chip/fuse/chip_fusion_kinds.h"
#include "sim/chip/memory/memory_impl.h"

enum { WAYS = 2, MOVING = 2 * WAYS };

static uint64_t memory_extras_bytes(const mp_memory_values_t *all, const mp_value_t *value) {
  return mp_memory_bytes(all->figures, value->type);
}

// The place of a value that shares it with no other one; NULL: there is none.
static mp_memory_value_t *memory_extras_place(const mp_memory_values_t *all,
                                              const mp_value_t *value) {
  mp_memory_value_t *place = mp_memory_place_of(all, value);
  const bool is_its_own = place->value == mp_chip_fusion_root(value);
  return is_its_own && place->kind == MP_MEMORY_TEMPORARY && mp_memory_is_live(place) ? place
                                                                                      : NULL;
}

static mp_status_t memory_extras_put(const mp_value_t *value, uint64_t bytes, uint32_t first,
                                     uint32_t last, mp_arena_t *arena, mp_memory_places_t *places) {
  return MP_ARRAY_PUSH(arena, places, (mp_memory_place_t){value, bytes, first, last, 0});
}

static mp_status_t memory_extras_gather(const mp_memory_values_t *all, const mp_memory_ring_t *ring,
                                        mp_arena_t *arena, mp_memory_places_t *places) {
  const uint32_t at = ring->matmul->id;
  const mp_value_t *whole = &ring->collective->results[0], *part = ring->collective->operands[0];
  mp_memory_value_t *place = memory_extras_place(all, whole);
  if (place == NULL) return NULL;
  const uint64_t parts = MOVING * memory_extras_bytes(all, part), bytes = place->bytes;
  if (ring->is_last) place->kind = MP_MEMORY_ELSEWHERE;
  MP_RETURN_IF_ERROR(
      memory_extras_put(whole, parts < bytes ? parts : bytes, at, at, arena, places));
  if (!ring->adds) return NULL;
  const mp_value_t *sum = &ring->matmul->results[0];
  if (memory_extras_place(all, sum) == NULL) return NULL;  // in VMEM
  return memory_extras_put(sum, memory_extras_bytes(all, sum), at, at, arena, places);
}

// The end of the ring before it in its block; without one the beginning of the block.
static uint32_t memory_extras_before(const mp_memory_extras_t *extras,
                                     const mp_memory_ring_t *ring) {
  uint32_t before = ring->matmul->parent->first->id;
  for (uint32_t i = 0; i < extras->num_rings; ++i) {
    const mp_op_t *other = extras->rings[i].matmul;
    const bool is_before = other->parent == ring->matmul->parent && other->id < ring->matmul->id;
    if (is_before && other->id >= before) before = other->id + 1;
  }
  return before;
}

static mp_status_t memory_extras_scatter(const mp_memory_values_t *all,
                                         const mp_memory_extras_t *extras,
                                         const mp_memory_ring_t *ring, mp_arena_t *arena,
                                         mp_memory_places_t *places) {
  const uint32_t at = ring->matmul->id;
  const mp_value_t *whole = ring->collective->operands[0], *part = &ring->collective->results[0];
  mp_memory_value_t *place = memory_extras_place(all, whole);
  if (place == NULL || place->first != at) return NULL;
  const uint64_t bytes = memory_extras_bytes(all, part);
  place->kind = MP_MEMORY_ELSEWHERE;
  MP_RETURN_IF_ERROR(memory_extras_put(whole, MOVING * bytes, at, at, arena, places));
  return memory_extras_put(part, WAYS * bytes, memory_extras_before(extras, ring), at, arena,
                           places);
}

static mp_status_t memory_extras_copies(const mp_memory_extras_t *extras, mp_arena_t *arena,
                                        mp_memory_places_t *places) {
  for (uint32_t i = 0; i < extras->num_copies; ++i) {
    const mp_memory_copy_t *copy = &extras->copies[i];
    MP_ASSERT(copy->first->id <= copy->last->id);
    if (copy->bytes == 0) continue;
    // A loop needs it until it ends.
    const bool is_loop = copy->last->code == MP_OP_WHILE;
    const uint32_t last = is_loop ? mp_memory_end_of(copy->last) : copy->last->id;
    MP_RETURN_IF_ERROR(
        memory_extras_put(copy->value, copy->bytes, copy->first->id, last, arena, places));
  }
  return NULL;
}

mp_status_t mp_memory_add_extras(const mp_memory_values_t *all, const mp_memory_extras_t *extras,
                                 mp_arena_t *arena, mp_memory_places_t *places) {
  MP_RETURN_IF_ERROR(memory_extras_copies(extras, arena, places));
  for (uint32_t i = 0; i < extras->num_rings; ++i) {
    const mp_memory_ring_t *ring = &extras->rings[i];
    if (ring->collective->code == MP_OP_REDUCE_SCATTER) {
      MP_RETURN_IF_ERROR(memory_extras_scatter(all, extras, ring, arena, places));
    } else {
      MP_RETURN_IF_ERROR(memory_extras_gather(all, ring, arena, places));
    }
  }
  return NULL;
}
