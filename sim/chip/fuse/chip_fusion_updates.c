// GPUs: a slice of an array is not fused into the update of this array, which would overwrite it
// first. And the kernels of a select_and_scatter.
#include <math.h>

#include "sim/base/hash.h"
#include "sim/chip/fuse/chip_fusion_impl.h"

// The bytes of a position, s32. Narrower floats are compared in f32.
#define CHIP_FUSION_UPDATES_POSITION 4

bool mp_chip_fusion_overwrites_source(const mp_chip_fusion_find_t *find, const mp_op_t *op,
                                      uint32_t number) {
  const mp_op_t *update = find->out->fusions.items[number].hero;
  if (!mp_chip_fusion_sets_window(update)) return false;
  return op->code == MP_OP_SLICE &&
         mp_chip_fusion_root(op->operands[0]) == mp_chip_fusion_root(update->operands[0]);
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

double mp_chip_fusion_selected_bytes(const mp_op_t *op) {
  if (!chip_fusion_updates_is_selected(op)) return 0;
  const double width = mp_dtype_bits(op->operands[0]->type->dtype) / 8.0;
  return chip_fusion_updates_windows(op) * fmax(width, CHIP_FUSION_UPDATES_POSITION) +
         chip_fusion_updates_positions(op);
}

double mp_chip_fusion_selected_moved(const mp_op_t *op) {
  if (!chip_fusion_updates_is_selected(op)) return 0;
  // Values and positions are written, positions are read; elements are read and added.
  return mp_chip_fusion_selected_bytes(op) + chip_fusion_updates_positions(op) +
         2 * mp_work_bytes_of(op->operands[1]->type);
}

double mp_chip_fusion_selected_kernels(const mp_op_t *op) {
  return chip_fusion_updates_is_selected(op) ? 2 : 0;
}
