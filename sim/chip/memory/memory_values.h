// Values and the places that they share, while a plan is made.
#ifndef MINIPOD_SIM_CHIP_MEMORY_MEMORY_VALUES_H_
#define MINIPOD_SIM_CHIP_MEMORY_MEMORY_VALUES_H_

#include "sim/chip/memory/memory_impl.h"

#define MP_MEMORY_NOBODY UINT32_MAX

// Whose memory a place is; of two places that become one, that of the later kind.
typedef enum {
  MP_MEMORY_TEMPORARY,
  MP_MEMORY_ELSEWHERE,  // not in the device's memory, or where another value is
  MP_MEMORY_ARGUMENT,
  MP_MEMORY_RESULT,
} mp_memory_kind_t;

// What is known of a value, or, where it is the root of a set of values that share a place, of the
// place. Values are named by mp_value_t.id.
typedef struct {
  const mp_value_t *value;
  uint32_t parent;       // of the set; its own id: it is the root
  uint32_t first, last;  // positions at which it is written and read; first > last: nowhere
  uint32_t heir;         // the value that may be written over it, at `heir_at`, as it is read last
  uint32_t heir_at;
  uint32_t taken_by;  // the fusion that was last found to take its elements itself,
  bool is_along;      // and whether it only does so where it makes those of its results
  uint32_t end;       // of one that its block ends with: at which operand of the end first
  uint32_t result;    // RESULT: which one of main
  uint64_t copied;    // bytes of a copy beside it, in another order of dimensions or while it
                      // is written over; 0: none
  uint32_t copied_first, copied_last;
  mp_memory_kind_t kind;
  uint64_t bytes;
} mp_memory_value_t;

typedef struct {
  const mp_chip_figures_t *figures;
  double scratch;  // bytes of memory that values can stay in beside that of the device
  const mp_chip_fusions_t *fusions;
  const mp_program_t *program;
  mp_memory_value_t *values;  // by id
  uint32_t num_values, num_positions;
} mp_memory_values_t;

// Numbers values and ops, and gives each value a set of its own. All lies in `arena`.
MP_NODISCARD mp_status_t mp_memory_values_create(const mp_chip_figures_t *figures,
                                                 const mp_chip_fusions_t *fusions,
                                                 const mp_program_t *program, mp_arena_t *arena,
                                                 mp_memory_values_t *out_values);

// The block in which a value is made.
const mp_block_t *mp_memory_block_of(const mp_value_t *value);
// The place of a value.
mp_memory_value_t *mp_memory_place_of(const mp_memory_values_t *all, const mp_value_t *value);
bool mp_memory_is_live(const mp_memory_value_t *place);
// The position behind a loop or branch.
uint32_t mp_memory_end_of(const mp_op_t *control);

// A place is needed at a position.
void mp_memory_extend(mp_memory_value_t *place, uint32_t at);
// Makes the places of two values one.
void mp_memory_unite(mp_memory_values_t *all, const mp_value_t *a, const mp_value_t *b);
// An op, or the fusion that is done at its place, reads a value at a position, and may write
// `heir` (NOBODY: none) over it. In a loop to which the value comes from outside it is needed until
// the loop ends.
void mp_memory_read(mp_memory_values_t *all, const mp_op_t *op, const mp_value_t *value,
                    uint32_t at, uint32_t heir);
// Whether one place may take over another one's memory before the program ends: of an argument,
// only the result that it was donated to.
bool mp_memory_may_take(const mp_memory_values_t *all, const mp_memory_value_t *place,
                        const mp_memory_value_t *heir);
// Whether an op reads a copy of a value in another layout.
bool mp_memory_is_copied(const mp_memory_values_t *all, const mp_value_t *value, const mp_op_t *op);
// The value that a block ends with at `i`, if that is its own: made in it, in the layout that is
// needed, and no other result.
const mp_value_t *mp_memory_own_end(mp_memory_values_t *all, const mp_block_t *block, uint32_t i);
// Gives the value's memory to its heir. All readers have told of themselves; nothing happens if the
// heir has another value's memory already.
void mp_memory_hand_over(mp_memory_values_t *all, const mp_value_t *value);

// ---- memory_in_place.c ----

// Finds the operands of a fusion that it may write over.
void mp_memory_find_in_place(mp_memory_values_t *all, const mp_chip_fusion_t *fusion);
// The result of the fusion that may be written over an operand; NOBODY: none. After
// mp_memory_find_in_place.
uint32_t mp_memory_heir(const mp_memory_values_t *all, const mp_chip_fusion_t *fusion,
                        const mp_value_t *value);

// ---- memory_results.c ----

// Before the sweep: finds the values that are made in the memory of main's results.
void mp_memory_sweep_results(mp_memory_values_t *all);
// After it: gives the memory of donated arguments to results.
void mp_memory_sweep_arguments(mp_memory_values_t *all);
// Removes the places of temporaries that fit into the memory of a result before that is written,
// each into the smallest one.
MP_NODISCARD mp_status_t mp_memory_use_results(const mp_memory_values_t *all, mp_arena_t *arena,
                                               mp_memory_places_t *places);

// ---- memory_extras.c ----

// Adds the places of extras, and removes those of values that are never there as a whole. After the
// sweep.
MP_NODISCARD mp_status_t mp_memory_add_extras(const mp_memory_values_t *all,
                                              const mp_memory_extras_t *extras, mp_arena_t *arena,
                                              mp_memory_places_t *places);

#endif  // MINIPOD_SIM_CHIP_MEMORY_MEMORY_VALUES_H_
