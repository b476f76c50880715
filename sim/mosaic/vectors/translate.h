// Translating one op; private to this folder.
#ifndef MINIPOD_SIM_MOSAIC_VECTORS_TRANSLATE_H_
#define MINIPOD_SIM_MOSAIC_VECTORS_TRANSLATE_H_

#include "sim/mosaic/vectors/vectors.h"

typedef struct {
  mp_shlo_t *hlo;
  const mp_mosaic_op_t *op;
  mp_value_t *const *in;  // [op->num_operands]
  const mp_type_t *type;  // of the first result
  mp_value_t **out;       // [MP_MOSAIC_MOST_RESULTS]
} mp_translate_t;

// Makes out[0], ...; what hlo->status says need not be returned.
typedef mp_status_t (*mp_translate_fn_t)(const mp_translate_t *t);

MP_NODISCARD mp_status_t mp_translate_elementwise(const mp_translate_t *t);
MP_NODISCARD mp_status_t mp_translate_compare(const mp_translate_t *t);
MP_NODISCARD mp_status_t mp_translate_conversion(const mp_translate_t *t);
MP_NODISCARD mp_status_t mp_translate_bits(const mp_translate_t *t);
MP_NODISCARD mp_status_t mp_translate_movement(const mp_translate_t *t);
MP_NODISCARD mp_status_t mp_translate_reduction(const mp_translate_t *t);
MP_NODISCARD mp_status_t mp_translate_matmul(const mp_translate_t *t);

// UNIMPLEMENTED, by the op's name.
MP_NODISCARD mp_status_t mp_translate_refuse(const mp_translate_t *t);
// Whether x is a NaN.
mp_value_t *mp_translate_is_nan(mp_shlo_t *hlo, mp_value_t *x);
// The unsigned type of the same size.
mp_dtype_t mp_translate_unsigned(mp_dtype_t dtype);
// The words of an attribute such as #vector.kind<add>: the first one; "" if there is none.
mp_str_t mp_translate_word(const mp_mosaic_op_t *op, const char *name);
// The integers of an attribute: a list, or an array of integers.
mp_index_list_t mp_translate_ints(const mp_mosaic_op_t *op, const char *name,
                                  int64_t buffer[MP_MAX_RANK]);

#endif  // MINIPOD_SIM_MOSAIC_VECTORS_TRANSLATE_H_
