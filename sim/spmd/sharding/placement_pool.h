// The pool of placements, in which equal boxes are one object. A program with a thousand
// annotations over a thousand devices has only a handful of different ones.
//
// Boxes are computed in scratch memory first and copied only if they are new. What the pool holds
// lives in its arena and is bounded: RESOURCE_EXHAUSTED beyond MP_SPMD_POOL_MAX_BYTES. Not
// thread-safe.
#ifndef MINIPOD_SIM_SPMD_SHARDING_PLACEMENT_POOL_H_
#define MINIPOD_SIM_SPMD_SHARDING_PLACEMENT_POOL_H_

#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/status.h"
#include "sim/ir/attr.h"

enum { MP_SPMD_POOL_MAX_BYTES = 1 << 30 };

typedef struct mp_spmd_pool_s mp_spmd_pool_t;

// Makes an empty pool in `arena`.
MP_NODISCARD mp_status_t mp_spmd_pool_create(mp_arena_t *arena, mp_spmd_pool_t **out_pool);

// Scratch memory for `count` numbers, which are not cleared; valid until the next call.
MP_NODISCARD mp_status_t mp_spmd_pool_scratch(mp_spmd_pool_t *pool, uint64_t count,
                                              int64_t **out_numbers);

// The pool's object with the contents of `boxes`. `groups` and `partials` must come from
// mp_spmd_pool_groups and are compared as pointers; the other arrays are copied if they are new.
MP_NODISCARD mp_status_t mp_spmd_pool_boxes(mp_spmd_pool_t *pool, const mp_boxes_t *boxes,
                                            const mp_boxes_t **out_boxes);

// The pool's boxes that were recorded for this key; NULL: none were.
const mp_boxes_t *mp_spmd_pool_recall(const mp_spmd_pool_t *pool, const int64_t *numbers,
                                      uint32_t count);
// Records them: `boxes` are the pool's, and the key is copied.
MP_NODISCARD mp_status_t mp_spmd_pool_note(mp_spmd_pool_t *pool, const int64_t *numbers,
                                           uint32_t count, const mp_boxes_t *boxes);

// The pool's array of `count` group numbers with these contents.
MP_NODISCARD mp_status_t mp_spmd_pool_groups(mp_spmd_pool_t *pool, const int32_t *groups,
                                             uint32_t count, const int32_t **out_groups);

#endif  // MINIPOD_SIM_SPMD_SHARDING_PLACEMENT_POOL_H_
