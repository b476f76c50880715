// Strides of vectors that a TPU's compiler refuses: the last dimension has none. Tried with libtpu
// 0.0.52.
#include "sim/mosaic/kernel/mosaic_maker.h"

mp_status_t mp_mosaic_make_strides(const mp_mosaic_maker_t *maker, const mp_mosaic_op_t *op) {
  if (op->code != MP_MOSAIC_STRIDED_LOAD && op->code != MP_MOSAIC_STRIDED_STORE) return NULL;
  const mp_mosaic_attr_t *strides = mp_mosaic_op_attr(op, "strides");
  if (strides == NULL || strides->kind != MP_MOSAIC_INTS || strides->ints.count == 0) return NULL;
  const int64_t last = strides->ints.values[strides->ints.count - 1];
  if (last == 1) return NULL;
  return mp_mosaic_op_refused(
      op,
      "Mosaic function '%s': a TPU's compiler refuses a stride of %lld in the last dimension (%s)",
      maker->kernel->name, (long long)last,
      strides->ints.count > 1 ? "Not Implemented: Stride on last dim is not 1"
                              : "not implemented: Strided load with 1D vector");
}
