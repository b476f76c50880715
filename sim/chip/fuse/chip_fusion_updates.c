// What XLA's compiler for GPUs has in the kernel of an update: not what reads the updated array in
// other places, which would be overwritten. And of which kernels it makes a select_and_scatter.
#include <math.h>

#include "sim/base/hash.h"
#include "sim/chip/fuse/chip_fusion_impl.h"

// Ops that are looked through for a part of the updated array.
#define CHIP_FUSION_UPDATES_DEPTH 6
// Places are s32, and narrower floats are compared in f32.
#define CHIP_FUSION_UPDATES_PLACE 4

// Whether a value is a part of the array, as it is.
static bool chip_fusion_updates_is_part(const mp_value_t *value, const mp_value_t *array) {
  return value->op != NULL && value->op->code == MP_OP_SLICE &&
         mp_chip_fusion_root(value->op->operands[0]) == array;
}

// How many parts of the array an op reads.
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

// Whether a few ops make the value of parts of the array, element by element.
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

// Whether an op of the fusion that reads the op's result reads a part of the array, too.
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

// Whether an op of the fusion reads a part of the array.
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
  if (find->compiler != MP_CHIP_COMPILER_GPU || !mp_chip_fusion_sets_window(update)) return false;
  const mp_value_t *array = mp_chip_fusion_root(update->operands[0]);
  if (op->num_results != 1) return false;
  if (chip_fusion_updates_is_part(&op->results[0], array)) return true;
  if (!chip_fusion_updates_comes_of(find, op, array, CHIP_FUSION_UPDATES_DEPTH)) return false;
  const uint32_t num_parts = chip_fusion_updates_num_parts(find, op, array);
  // Of several ops that read a part the last one is in the kernel, and finds its part written; a
  // kernel of their own has the others with their parts, and all that is made of such.
  return num_parts > 1 || chip_fusion_updates_is_beside_part(find, op, array, number) ||
         (num_parts == 1 && chip_fusion_updates_has_part(find, array, number));
}

// ---- gradients of largest elements ----

static bool chip_fusion_updates_is_selected(const mp_op_t *op) {
  return op->code == MP_OP_SELECT_AND_SCATTER;
}

static double chip_fusion_updates_windows(const mp_op_t *op) {
  return mp_chip_fusion_value_count(op->operands[1]);
}

static double chip_fusion_updates_places(const mp_op_t *op) {
  return chip_fusion_updates_windows(op) * op->operands[0]->type->rank * CHIP_FUSION_UPDATES_PLACE;
}

// Padding in front moves all places: the result is made with it, and cut out by one kernel more.
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
  return chip_fusion_updates_windows(op) * fmax(width, CHIP_FUSION_UPDATES_PLACE) +
         chip_fusion_updates_places(op);
}

double mp_chip_fusion_selected_moved(const mp_op_t *op) {
  if (!chip_fusion_updates_is_selected(op)) return 0;
  // Values and places are written, places are read; the result's elements are read and written.
  const double found = mp_chip_fusion_selected_bytes(op) + chip_fusion_updates_places(op);
  const double added = 2 * mp_work_bytes_of(op->operands[1]->type);
  const double result = mp_work_bytes_of(op->results[0].type);
  return found + added + (chip_fusion_updates_is_cut(op) ? 2 * result : 0);
}

double mp_chip_fusion_selected_kernels(const mp_op_t *op) {
  if (!chip_fusion_updates_is_selected(op)) return 0;
  return chip_fusion_updates_is_cut(op) ? 3 : 2;
}
