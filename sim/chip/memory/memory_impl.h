// What the files that plan the memory of a chip program share.
#ifndef MINIPOD_SIM_CHIP_MEMORY_MEMORY_IMPL_H_
#define MINIPOD_SIM_CHIP_MEMORY_MEMORY_IMPL_H_

#include "sim/base/containers/array.h"
#include "sim/chip/memory/chip_memory.h"

typedef MP_ARRAY(mp_memory_place_t) mp_memory_places_t;

#define MP_MEMORY_NONE UINT32_MAX

// The memory that a place is in. If two places become one, it has the later kind.
typedef enum {
  MP_MEMORY_TEMPORARY,
  MP_MEMORY_ELSEWHERE,  // VMEM, or the memory of another value
  MP_MEMORY_ARGUMENT,
  MP_MEMORY_RESULT,
} mp_memory_kind_t;

// A value, or the place of a set of values that share one, if it is the set's root. Values are
// numbered by mp_value_t.id.
typedef struct {
  const mp_value_t *value;
  uint32_t parent;       // another value of the set; its own id: it is the root
  uint32_t first, last;  // positions of its first write and last read; first > last: none
  uint32_t heir;         // the value that may be written over it at `heir_at`, its last read
  uint32_t heir_at;
  uint32_t taken_by;  // the fusion that was last found to read or compute it
  bool is_along;      // that reads each element only when it makes the same element of its results
  uint32_t end;       // the first operand of its block's terminator that it is; NONE: not known
  uint32_t result;    // RESULT: the number of main's result
  uint64_t copied;    // bytes of an additional array from `copied_first` to `copied_last`; 0: none
  uint32_t copied_first, copied_last;
  mp_memory_kind_t kind;
  uint64_t bytes;
} mp_memory_value_t;

typedef struct {
  const mp_chip_figures_t *figures;
  const mp_chip_fusions_t *fusions;
  const mp_program_t *program;
  mp_memory_value_t *values;  // by id
  uint32_t num_values, num_positions;
} mp_memory_values_t;

// ---- memory_values.c ----

// Bytes rounded up to the granule of the chip's allocations.
uint64_t mp_memory_round(const mp_chip_figures_t *figures, double bytes);
// Numbers values and ops, and makes a set of each value. Everything is allocated in `arena`.
MP_NODISCARD mp_status_t mp_memory_values_create(const mp_chip_figures_t *figures,
                                                 const mp_chip_fusions_t *fusions,
                                                 const mp_program_t *program, mp_arena_t *arena,
                                                 mp_memory_values_t *out_values);

// The place of a value.
mp_memory_value_t *mp_memory_place_of(const mp_memory_values_t *all, const mp_value_t *value);
bool mp_memory_is_live(const mp_memory_value_t *place);
// The position after a loop or branch.
uint32_t mp_memory_end_of(const mp_op_t *control);

// A place is needed at a position.
void mp_memory_extend(mp_memory_value_t *place, uint32_t at);
// Makes the places of two values one.
void mp_memory_unite(mp_memory_values_t *all, const mp_value_t *a, const mp_value_t *b);
// An op, or the fusion that runs at its position, reads a value at position `at` and may write
// `heir` over it (NONE: no value). A loop needs what it reads from outside until it ends.
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
// Gives the value's memory to its heir, unless the heir already has that of another value. Call it
// when all readers are known.
void mp_memory_hand_over(mp_memory_values_t *all, const mp_value_t *value);

// ---- memory_in_place.c ----

// Finds the operands of a fusion that it may write over.
void mp_memory_find_in_place(mp_memory_values_t *all, const mp_chip_fusion_t *fusion);
// The result of the fusion that may be written over an operand; NONE: none. After
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

// Adds the places of extras, and removes those of arrays that collective matmuls never store as a
// whole. After the sweep.
MP_NODISCARD mp_status_t mp_memory_add_extras(const mp_memory_values_t *all,
                                              const mp_memory_extras_t *extras, mp_arena_t *arena,
                                              mp_memory_places_t *places);

// ---- memory_sweep.c ----

// Finds the places of all temporaries, in `arena`, and those in the host's memory. Offsets are not
// set. `out_num_positions`: all positions are below it.
MP_NODISCARD mp_status_t mp_memory_find_places(
    const mp_chip_figures_t *figures, const mp_chip_fusions_t *fusions, const mp_program_t *program,
    const mp_memory_extras_t *extras, mp_arena_t *arena, mp_memory_places_t *out_places,
    mp_memory_places_t *out_host_places, uint32_t *out_num_positions);

// ---- memory_pack.c ----

// How many places get offsets. Smaller ones fill gaps, so only their sum at the peak counts.
enum { MP_MEMORY_MOST_PACKED = 4096 };

// Sorts the places, the largest first.
void mp_memory_sort(mp_memory_places_t *places);
// Sorts the places, gives them offsets and returns the bytes that they take
// together. Temporary data is allocated in `arena`.
MP_NODISCARD mp_status_t mp_memory_pack(mp_memory_places_t *places, mp_arena_t *arena,
                                        uint64_t *out_bytes);
// The position at which most bytes live, and how many do.
MP_NODISCARD mp_status_t mp_memory_find_peak(const mp_memory_places_t *places,
                                             uint32_t num_positions, mp_arena_t *arena,
                                             uint32_t *out_position, uint64_t *out_bytes);

#endif  // MINIPOD_SIM_CHIP_MEMORY_MEMORY_IMPL_H_
