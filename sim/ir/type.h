// Types of values (StableHLO spec, "Types").
//
// Types are immutable and live in their module's arena. Equal types may be different objects, so
// they are compared with mp_type_equal.
#ifndef MINIPOD_SIM_IR_TYPE_H_
#define MINIPOD_SIM_IR_TYPE_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/status.h"
#include "sim/numeric/dtype.h"

typedef enum {
  MP_TYPE_TENSOR,
  MP_TYPE_UNRANKED,  // tensor<*xT>
  MP_TYPE_BUFFER,    // memref<...>: results of custom calls
  MP_TYPE_TOKEN,
  MP_TYPE_TUPLE,
  MP_TYPE_FUTURE,
  MP_TYPE_FUNCTION,  // attribute values only; elements = inputs then results
  MP_TYPE_NONE,      // "no algorithm" in dot_general; attribute values only
} mp_type_kind_t;

// A dimension that is not known (`?`). Readers accept it; the verifier refuses values with one.
#define MP_DYNAMIC INT64_MIN

// Highest rank that kernels support; the verifier refuses more by name.
#define MP_MAX_RANK 32

// Uniform quantisation: readers decode it, the verifier refuses it.
typedef struct {
  mp_dtype_t storage;
  mp_dtype_t expressed;
  uint32_t flags;
  int64_t axis;  // -1: per tensor
  int64_t storage_min;
  int64_t storage_max;
  uint32_t num_scales;
  const double *scales;
  const int64_t *zero_points;
} mp_quant_t;

typedef struct mp_type_s mp_type_t;
struct mp_type_s {
  mp_type_kind_t kind;
  mp_dtype_t dtype;       // tensor, unranked, buffer (storage type when quantised)
  uint32_t rank;          // tensor, buffer
  const int64_t *dims;    // [rank]
  const int64_t *bounds;  // [rank] or NULL; MP_DYNAMIC: none (#stablehlo.bounds)
  const mp_quant_t *quant;
  uint32_t num_elements;             // tuple, future, function: inputs + results
  uint32_t num_inputs;               // function
  const mp_type_t *const *elements;  // [num_elements]
};

// Makes a tensor type in `arena`; `dims` is copied.
MP_NODISCARD mp_status_t mp_type_tensor(mp_arena_t *arena, mp_dtype_t dtype, const int64_t *dims,
                                        uint32_t rank, const mp_type_t **out_type);
// The token type: one static object for all modules.
const mp_type_t *mp_type_token(void);
// Makes a tuple or future type in `arena`; the array `elements` is copied.
MP_NODISCARD mp_status_t mp_type_compound(mp_arena_t *arena, mp_type_kind_t kind,
                                          const mp_type_t *const *elements, uint32_t num_elements,
                                          const mp_type_t **out_type);

// Whether two types are the same: kind, shape, element type, bounds, quantisation, elements.
bool mp_type_equal(const mp_type_t *a, const mp_type_t *b);
// Whether both are tensors with the same dimensions, whatever their element types.
bool mp_type_same_shape(const mp_type_t *a, const mp_type_t *b);

// Whether it is a ranked tensor; its dimensions need not be known.
static inline bool mp_type_is_tensor(const mp_type_t *type) {
  return type->kind == MP_TYPE_TENSOR;
}
// Whether it is a tensor whose dimensions are all known and which is not quantised.
bool mp_type_is_static(const mp_type_t *type);

// The number of elements of a static tensor, and the bytes that they take when stored; a token has
// 0 bytes. False when the number does not fit 64 bits.
bool mp_type_num_elements(const mp_type_t *type, int64_t *out_count);
bool mp_type_num_bytes(const mp_type_t *type, int64_t *out_bytes);

// Appends MLIR's spelling: tensor<4x8xf32>, !stablehlo.token, ...
void mp_type_print(const mp_type_t *type, mp_strbuf_t *out);

#endif  // MINIPOD_SIM_IR_TYPE_H_
