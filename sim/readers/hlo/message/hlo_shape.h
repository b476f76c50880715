// Shapes (ShapeProto) become types. A tuple is split: its leaves are the arrays and tokens in it,
// in order.
#ifndef MINIPOD_SIM_READERS_HLO_MESSAGE_HLO_SHAPE_H_
#define MINIPOD_SIM_READERS_HLO_MESSAGE_HLO_SHAPE_H_

#include "sim/ir/type.h"
#include "sim/readers/hlo/message/hlo_decode.h"

typedef struct mp_hlo_shape_s mp_hlo_shape_t;
struct mp_hlo_shape_s {
  const mp_type_t *type;          // of an array or token; NULL: a tuple
  const int64_t *minor_to_major;  // of an array; NULL: row-major
  bool is_tiled;                  // the array's layout has more than an order of dimensions
  int64_t memory_space;           // of an array; 0: the device's own
  uint32_t num_elements;          // of a tuple
  const mp_hlo_shape_t **elements;
  uint32_t num_leaves;
  const mp_hlo_shape_t **leaves;  // [num_leaves]
  const mp_type_t **types;        // [num_leaves]
};

// ProgramShapeProto.
typedef struct {
  uint32_t num_params;
  const mp_hlo_shape_t **params;
  const mp_hlo_shape_t *result;  // NULL: not stated
} mp_hlo_program_shape_t;

// Reads a shape. Types are made in `types`, the rest lies in the source's arena. UNIMPLEMENTED for
// dynamic dimensions and for types that minipod's values cannot have.
MP_NODISCARD mp_status_t mp_hlo_read_shape(const mp_hlo_source_t *source, mp_arena_t *types,
                                           mp_str_t bytes, const mp_hlo_shape_t **out_shape);
MP_NODISCARD mp_status_t mp_hlo_read_program_shape(const mp_hlo_source_t *source, mp_arena_t *types,
                                                   mp_str_t bytes,
                                                   mp_hlo_program_shape_t *out_shape);

#endif  // MINIPOD_SIM_READERS_HLO_MESSAGE_HLO_SHAPE_H_
