// Mosaic's vector ops in StableHLO, whose kernels compute them.
//
// Vectors become tensors of their dimensions, scalars tensors without dimensions, `index` becomes
// s64. Integers are signed; where Mosaic's op reads them as unsigned, their bits are.
#ifndef MINIPOD_SIM_MOSAIC_VECTORS_VECTORS_H_
#define MINIPOD_SIM_MOSAIC_VECTORS_VECTORS_H_

#include "sim/mosaic/ir/mosaic_ir.h"
#include "sim/mosaic/vectors/shlo.h"

enum { MP_MOSAIC_MOST_RESULTS = 2 };

// Whether ops of this kind are translated: those that make values of values, and do nothing else.
bool mp_mosaic_translates(mp_mosaic_opcode_t code);

// The type of a scalar or vector.
const mp_type_t *mp_mosaic_tensor_type(mp_shlo_t *hlo, const mp_mosaic_type_t *type);
// The element type that stands for one of Mosaic's.
static inline mp_dtype_t mp_mosaic_tensor_dtype(mp_dtype_t dtype) {
  return dtype == MP_DTYPE_INDEX ? MP_DTYPE_S64 : dtype;
}

// Makes the op's results from its operands, whose types are those of the op's. UNIMPLEMENTED by
// mp_mosaic_op_error for what is not supported.
MP_NODISCARD mp_status_t mp_mosaic_translate(mp_shlo_t *hlo, const mp_mosaic_op_t *op,
                                             mp_value_t *const *operands,
                                             mp_value_t *out_results[MP_MOSAIC_MOST_RESULTS]);

#endif  // MINIPOD_SIM_MOSAIC_VECTORS_VECTORS_H_
