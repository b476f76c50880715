// What the files that make a chip program share.
#ifndef MINIPOD_SIM_CHIP_CHIP_IMPL_H_
#define MINIPOD_SIM_CHIP_CHIP_IMPL_H_

#include "sim/base/containers/array.h"
#include "sim/base/containers/hash_map.h"
#include "sim/chip/chip_program.h"
#include "sim/chip/cost/ring_cost.h"
#include "sim/chip/fuse/chip_fusion.h"
#include "sim/plan/plan.h"

// What is known of the uses of a value; the last one as the position of an op in the order of
// mp_block_walk.
typedef struct {
  uint64_t hash;  // mp_hash_pointer of the value
  uint32_t last;
  const mp_block_t *turned_in;  // the block that has it turned by now; NULL: none
  uint32_t num_matmuls;         // that have it as a factor
  bool is_kept;                 // somebody reads it who is no kernel: main's results, collectives
} mp_chip_order_use_t;

// Something that is done as a whole: a kernel, a collective, a copy, a loop or branch.
typedef struct {
  const mp_op_t *op;
  uint32_t collective;    // its number; UINT32_MAX: it is none
  uint32_t copy;          // the same of a copy to the host or from it
  double seconds;         // about
  mp_ring_matmul_t ring;  // of a matmul that is decomposed
} mp_chip_item_t;

typedef enum { MP_CHIP_SLOT_WHOLE, MP_CHIP_SLOT_BEGIN, MP_CHIP_SLOT_FINISH } mp_chip_slot_part_t;

typedef struct {
  mp_chip_item_t item;
  mp_chip_slot_part_t part;
} mp_chip_slot_t;

typedef struct {
  uint32_t num_slots;
  mp_chip_slot_t *slots;
} mp_chip_order_t;

// Where no figure says how many collectives may be started at a time: their results lie in memory.
enum { MP_CHIP_MOST_STARTED = 4 };

typedef struct {
  const mp_chip_t *chip;
  const mp_chip_links_t *links;  // NULL: nothing goes on beside work
  const mp_program_t *program;
  mp_arena_t *arena, *scratch;
  mp_chip_fusions_t fusions;
  uint32_t position;                      // of the next op that is visited
  MP_HASH_MAP(mp_chip_order_use_t) uses;  // in scratch; of values whose bytes are their own
  MP_ARRAY(mp_chip_kernel_t) kernels;
  MP_ARRAY(mp_chip_step_t) steps;
  MP_ARRAY(mp_chip_collective_t) collectives;
  mp_plan_groups_t groups;  // of these
  MP_ARRAY(mp_chip_copy_t) copies;
  MP_ARRAY(bool) slots;  // of copies: which are in use
  // [positions], in scratch: of ops whose results an item makes, its number in their block;
  // UINT32_MAX: none does
  uint32_t *items;
  uint32_t num_tracks, num_started, most_started;
  uint32_t num_controls;
  bool has_choices;
  bool is_in_part;                   // the block at hand belongs to a LOCAL step
  bool must_begin;                   // the next kernel begins a step: a jump goes there
  MP_ARRAY(mp_memory_ring_t) rings;  // in scratch
  bool *copied;                      // [copies], in scratch: layout copies that have a kernel
  mp_chip_memory_t memory;
} mp_chip_builder_t;

// ---- chip_steps.c ----

// The op without its dialect: "dot_general".
const char *mp_chip_step_name(const mp_op_t *op);
// Adds a kernel to the last step, or to a new one.
MP_NODISCARD mp_status_t mp_chip_put_kernel(mp_chip_builder_t *b, const mp_chip_kernel_t *kernel);
// Adds a kernel that only moves bytes.
MP_NODISCARD mp_status_t mp_chip_add_copy(mp_chip_builder_t *b, const mp_op_t *op, double bytes);
// Adds a kernel of single elements.
MP_NODISCARD mp_status_t mp_chip_add_scalar(mp_chip_builder_t *b, const mp_op_t *op);
// Adds a collective, without a step.
MP_NODISCARD mp_status_t mp_chip_add_collective(mp_chip_builder_t *b, const mp_op_t *op,
                                                uint32_t *out_number);

// ---- chip_host.c: copies between the device and its host ----

// Whether an op of the block, or with `is_deep` of what is in its control flow, is such a copy.
bool mp_chip_has_copy(const mp_block_t *block, bool is_deep);
// Adds a copy, without a step.
MP_NODISCARD mp_status_t mp_chip_add_host_copy(mp_chip_builder_t *b, const mp_op_t *op,
                                               uint32_t *out_number);
// Adds the step that begins it, and the one that waits for it.
MP_NODISCARD mp_status_t mp_chip_begin_copy(mp_chip_builder_t *b, uint32_t number);
MP_NODISCARD mp_status_t mp_chip_await_copy(mp_chip_builder_t *b, uint32_t number);

// ---- chip_order.c ----

// The order of a block's items, in scratch. Adds its collectives.
MP_NODISCARD mp_status_t mp_chip_order_block(mp_chip_builder_t *b, const mp_block_t *block,
                                             mp_chip_order_t *out_order);

// ---- chip_kernels.c ----

// What the kernel that an op leads takes, without what is copied for it. `ring`: of a matmul that
// is decomposed; NULL: it is not.
double mp_chip_kernel_seconds(const mp_chip_builder_t *b, const mp_op_t *op,
                              const mp_ring_matmul_t *ring);

// Adds the kernel that is done at the place of an op, if there is one.
MP_NODISCARD mp_status_t mp_chip_add_kernel(mp_chip_builder_t *b, const mp_op_t *op,
                                            const mp_ring_matmul_t *ring);
// ---- chip_copies.c: where the chip has to copy, because two values want the same memory ----

// Finds the last uses of all values.
MP_NODISCARD mp_status_t mp_chip_order_find_uses(mp_chip_builder_t *b);
// The bytes that an op copies before it changes its operands in place.
double mp_chip_bytes_kept(const mp_chip_builder_t *b, const mp_op_t *op);
// What a loop copies before it begins, and between its rounds; what a branch's region copies when
// it ends; what main does.
MP_NODISCARD mp_status_t mp_chip_copy_starts(mp_chip_builder_t *b, const mp_op_t *loop);
MP_NODISCARD mp_status_t mp_chip_copy_carried(mp_chip_builder_t *b, const mp_op_t *loop);
MP_NODISCARD mp_status_t mp_chip_copy_chosen(mp_chip_builder_t *b, const mp_block_t *region);
MP_NODISCARD mp_status_t mp_chip_copy_results(mp_chip_builder_t *b);

// ---- chip_rounds.c ----

// What a loop copies in each round of its carried value `i`, because it is still read when the next
// round's is written.
MP_NODISCARD mp_status_t mp_chip_copy_held(mp_chip_builder_t *b, const mp_op_t *loop, uint32_t i);

// ---- chip_tiles.c ----

// Adds the kernels that copy an op's operands into other layouts, those that no op before needed.
MP_NODISCARD mp_status_t mp_chip_add_layout_copies(mp_chip_builder_t *b, const mp_op_t *op);

// ---- chip_complex.c ----

// The bytes that move besides what it reads, because an op is the first that reads complex
// arguments of main.
double mp_chip_bytes_split(const mp_chip_builder_t *b, const mp_op_t *op);

// ---- chip_turns.c ----

// Adds the kernels that turn what a matmul of a batch reads: matrices that are not whole in
// memory.
MP_NODISCARD mp_status_t mp_chip_turn_factors(mp_chip_builder_t *b, const mp_op_t *op);
// What is known of the uses of a value; NULL: it has none.
const mp_chip_order_use_t *mp_chip_order_use_of(const mp_chip_builder_t *b,
                                                const mp_value_t *value);
// Adds the kernels that pad what a matmul reads, where the library wants longer rows.
MP_NODISCARD mp_status_t mp_chip_pad_factors(mp_chip_builder_t *b, const mp_op_t *op);

#endif  // MINIPOD_SIM_CHIP_CHIP_IMPL_H_
