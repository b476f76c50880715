// What the files that assign layouts share.
#ifndef MINIPOD_SIM_CHIP_LAYOUT_LAYOUT_ASSIGN_IMPL_H_
#define MINIPOD_SIM_CHIP_LAYOUT_LAYOUT_ASSIGN_IMPL_H_

#include "sim/chip/layout/layout_assign.h"

// How much a value's readers prefer a layout.
typedef enum { LAYOUT_FREE, LAYOUT_WEAK, LAYOUT_RESHAPED, LAYOUT_STRONG } layout_want_t;

typedef struct {
  layout_want_t want;
  mp_tile_layout_t wanted;
  bool is_any;  // its readers recompute it, in any layout
} layout_state_t;

typedef struct {
  mp_arena_t *arena;
  mp_layouts_t *out;
  layout_state_t *states;  // by value id
} layout_assign_t;

static inline layout_state_t *layout_assign_state(const layout_assign_t *a,
                                                  const mp_value_t *value) {
  return &a->states[value->id];
}

static inline mp_tile_layout_t *layout_assign_of(const layout_assign_t *a,
                                                 const mp_value_t *value) {
  return &a->out->values[value->id];
}

// ---- layout_wants.c ----

// The backward pass: finds the layouts that readers prefer.
void mp_layout_find_wants(const layout_assign_t *a, const mp_block_t *main);

// ---- layout_copies.c ----

// Notes that `copy->op` reads a copy of a value: an equal one of the block, or a new one.
MP_NODISCARD mp_status_t mp_layout_add_copy(layout_assign_t *a, const mp_layout_copy_t *copy);

#endif  // MINIPOD_SIM_CHIP_LAYOUT_LAYOUT_ASSIGN_IMPL_H_
