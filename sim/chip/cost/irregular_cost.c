#include "sim/chip/cost/irregular_cost.h"

#include "sim/chip/cost/vector_cost.h"
#include "sim/chip/fuse/chip_fusion_kinds.h"

typedef double (*irregular_cost_t)(const mp_chip_t *chip, const mp_op_t *op);

static irregular_cost_t irregular_cost_by_class(const mp_op_t *op) {
  static const irregular_cost_t rows[MP_WORK_CLASS_COUNT] = {
      [MP_WORK_GATHER] = mp_gather_seconds, [MP_WORK_SCATTER] = mp_scatter_seconds,
      [MP_WORK_SORT] = mp_sort_seconds,     [MP_WORK_FFT] = mp_fft_seconds,
      [MP_WORK_LINALG] = mp_linalg_seconds, [MP_WORK_FOREIGN] = mp_foreign_seconds,
      [MP_WORK_WINDOW] = mp_window_seconds,
  };
  mp_work_t work;
  mp_work_of_op(op, &work);
  return rows[work.work_class];
}

bool mp_irregular_seconds(const mp_chip_t *chip, const mp_op_t *op, double *out_seconds) {
  if (op->code == MP_OP_FUSION || mp_chip_fusion_is_selection(&chip->figures, op)) return false;
  // A scatter of one window is a dynamic_update_slice.
  if (mp_vmem_is_known(chip) && mp_chip_fusion_sets_window(op)) return false;
  const irregular_cost_t cost = op->code == MP_OP_REVERSE ? mp_reverse_seconds
                                : op->code == MP_OP_SLICE || op->code == MP_OP_PAD
                                    ? mp_strided_seconds
                                    : irregular_cost_by_class(op);
  if (cost == NULL) return false;
  *out_seconds = cost(chip, op);
  return true;
}
