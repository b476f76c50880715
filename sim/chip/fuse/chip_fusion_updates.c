// GPUs: an op that reads other parts of an array is not fused into the update of this array, which
// would overwrite them first. And the kernels of a select_and_scatter.
#include <math.h>

#include "sim/base/hash.h"
#include "sim/chip/fuse/chip_fusion_impl.h"

// How many ops back to look for a slice of the updated array.
#define CHIP_FUSION_UPDATES_DEPTH 6
// The bytes of a position, s32. Narrower floats are compared in f32.
#define CHIP_FUSION_UPDATES_POSITION 4

// Whether a value is a slice of the array.
static bool chip_fusion_updates_is_part(const mp_value_t *value, const mp_value_t *array) {
  return value->op != NULL && value->op->code == MP_OP_SLICE &&
         mp_chip_fusion_root(value->op->operands[0]) == array;
}

// How many slices of the array an elementwise op reads.
static uint32_t chip_fusion_updates_num_parts(const mp_chip_fusion_find_t *find, const mp_op_t *op,
                                              const mp_value_t *array) {
  uint32_t num_parts = 0;
  if (!mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE)) return 0;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    bool is_reused = false;
    const mp_value_t *value =
        mp_chip_fusion_source(find->figures, op, MP_CHIP_FUSION_LOOP, i, &is_reused);
    num_parts += value != NULL && chip_fusion_updates_is_part(value, array);
  }
  return num_parts;
}

// Whether an op's result is computed from slices of the array by up to `depth` elementwise ops.
static bool chip_fusion_updates_comes_of(const mp_chip_fusion_find_t *find, const mp_op_t *op,
                                         const mp_value_t *array, uint32_t depth) {
  if (op == NULL || depth == 0 || !mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE)) return false;
  if (chip_fusion_updates_num_parts(find, op, array) > 0) return true;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    bool is_reused = false;
    const mp_value_t *value =
        mp_chip_fusion_source(find->figures, op, MP_CHIP_FUSION_LOOP, i, &is_reused);
    if (value != NULL && chip_fusion_updates_comes_of(find, value->op, array, depth - 1))
      return true;
  }
  return false;
}

// Whether a reader of the op in the fusion also reads a slice of the array.
static bool chip_fusion_updates_is_beside_part(const mp_chip_fusion_find_t *find, const mp_op_t *op,
                                               const mp_value_t *array, uint32_t number) {
  uint32_t at = mp_chip_fusion_first_use(find, &op->results[0]);
  for (; at != MP_CHIP_FUSION_NONE; at = find->uses.items[at].next) {
    const mp_chip_fusion_use_t *use = &find->uses.items[at];
    if (mp_chip_fusion_now(find, use->fusion) != number) continue;
    if (chip_fusion_updates_num_parts(find, use->op, array) > 0) return true;
  }
  return false;
}

// Whether an op of the fusion reads a slice of the array.
static bool chip_fusion_updates_has_part(const mp_chip_fusion_find_t *find, const mp_value_t *array,
                                         uint32_t number) {
  const mp_chip_fusion_t *fusion = &find->out->fusions.items[number];
  for (uint32_t at = fusion->first_member; at != MP_CHIP_FUSION_NONE;) {
    const mp_chip_fusion_member_t *member = &find->out->members.items[at];
    if (chip_fusion_updates_num_parts(find, member->op, array) > 0) return true;
    at = member->next;
  }
  return false;
}

bool mp_chip_fusion_overwrites_source(const mp_chip_fusion_find_t *find, const mp_op_t *op,
                                      uint32_t number) {
  const mp_op_t *update = find->out->fusions.items[number].hero;
  if (!mp_chip_fusion_sets_window(update)) return false;
  const mp_value_t *array = mp_chip_fusion_root(update->operands[0]);
  if (op->num_results != 1) return false;
  if (chip_fusion_updates_is_part(&op->results[0], array)) return true;
  if (!chip_fusion_updates_comes_of(find, op, array, CHIP_FUSION_UPDATES_DEPTH)) return false;
  const uint32_t num_parts = chip_fusion_updates_num_parts(find, op, array);
  // If several ops read slices, only the last one joins the update, and reads a slice that another
  // kernel has written. The others, and all ops that read them, are in that kernel.
  return num_parts > 1 || chip_fusion_updates_is_beside_part(find, op, array, number) ||
         (num_parts == 1 && chip_fusion_updates_has_part(find, array, number));
}

// ---- select_and_scatter ----

static bool chip_fusion_updates_is_selected(const mp_op_t *op) {
  return op->code == MP_OP_SELECT_AND_SCATTER;
}

static double chip_fusion_updates_windows(const mp_op_t *op) {
  return mp_chip_fusion_value_count(op->operands[1]);
}

static double chip_fusion_updates_positions(const mp_op_t *op) {
  return chip_fusion_updates_windows(op) * op->operands[0]->type->rank *
         CHIP_FUSION_UPDATES_POSITION;
}

// Whether the windows have padding before the first element. Then the result is computed with the
// padding, and one more kernel slices it.
static bool chip_fusion_updates_is_cut(const mp_op_t *op) {
  const mp_index_list_t padding = mp_op_ints(op, MP_ATTR_PADDING);
  for (uint32_t i = 0; i < padding.count; i += 2) {
    if (padding.values[i] > 0) return true;
  }
  return false;
}

double mp_chip_fusion_selected_bytes(const mp_op_t *op) {
  if (!chip_fusion_updates_is_selected(op)) return 0;
  const double width = mp_dtype_bits(op->operands[0]->type->dtype) / 8.0;
  return chip_fusion_updates_windows(op) * fmax(width, CHIP_FUSION_UPDATES_POSITION) +
         chip_fusion_updates_positions(op);
}

double mp_chip_fusion_selected_moved(const mp_op_t *op) {
  if (!chip_fusion_updates_is_selected(op)) return 0;
  // Values and positions are written, positions are read; the result is read and written.
  const double found = mp_chip_fusion_selected_bytes(op) + chip_fusion_updates_positions(op);
  const double added = 2 * mp_work_bytes_of(op->operands[1]->type);
  const double result = mp_work_bytes_of(op->results[0].type);
  return found + added + (chip_fusion_updates_is_cut(op) ? 2 * result : 0);
}

double mp_chip_fusion_selected_kernels(const mp_op_t *op) {
  if (!chip_fusion_updates_is_selected(op)) return 0;
  return chip_fusion_updates_is_cut(op) ? 3 : 2;
}
