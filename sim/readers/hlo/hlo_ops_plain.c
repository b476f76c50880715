// Operations on arrays whose attributes are numbers of the instruction.
#include "sim/ir/layout.h"
#include "sim/readers/hlo/hlo_literal.h"
#include "sim/readers/hlo/hlo_ops.h"

// The operands, which must be arrays.
static mp_status_t hlo_ops_plain_operands(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                          mp_hlo_leaves_t *out) {
  MP_RETURN_IF_ERROR(mp_hlo_new_leaves(b->h, inst->operand_ids.count, out));
  for (uint32_t i = 0; i < out->count; ++i) {
    MP_RETURN_IF_ERROR(mp_hlo_array(b, inst, i, &out->items[i]));
  }
  return NULL;
}

// The array that the instruction's shape must be.
static mp_status_t hlo_ops_plain_type(const mp_hlo_inst_t *inst, const mp_type_t **out_type) {
  if (inst->shape->type == NULL || inst->shape->type->kind != MP_TYPE_TENSOR) {
    return mp_hlo_error(inst, MP_INVALID_ARGUMENT, "shape: it is not an array");
  }
  *out_type = inst->shape->type;
  return NULL;
}

static mp_status_t hlo_ops_plain_emit(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                      const mp_hlo_attrs_t *attrs, mp_hlo_leaves_t *out) {
  mp_hlo_leaves_t operands = {0};
  const mp_type_t *type = NULL;
  MP_RETURN_IF_ERROR(hlo_ops_plain_operands(b, inst, &operands));
  MP_RETURN_IF_ERROR(hlo_ops_plain_type(inst, &type));
  return mp_hlo_emit_whole(b, inst, inst->row->code, operands, NULL, 0, attrs, out);
}

mp_status_t mp_hlo_build_plain(mp_hlo_build_t *b, const mp_hlo_inst_t *inst, mp_hlo_leaves_t *out) {
  return hlo_ops_plain_emit(b, inst, NULL, out);
}

// An operation whose only attribute are the dimensions.
static mp_status_t hlo_ops_plain_dims(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                      mp_attr_name_t name, mp_hlo_leaves_t *out) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  mp_hlo_put_list(&attrs, name, &inst->dimensions);
  return hlo_ops_plain_emit(b, inst, &attrs, out);
}

mp_status_t mp_hlo_build_broadcast(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                   mp_hlo_leaves_t *out) {
  return hlo_ops_plain_dims(b, inst, MP_ATTR_BROADCAST_DIMENSIONS, out);
}

mp_status_t mp_hlo_build_transpose(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                   mp_hlo_leaves_t *out) {
  return hlo_ops_plain_dims(b, inst, MP_ATTR_PERMUTATION, out);
}

mp_status_t mp_hlo_build_reverse(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                 mp_hlo_leaves_t *out) {
  return hlo_ops_plain_dims(b, inst, MP_ATTR_DIMENSIONS, out);
}

// An operation whose only attribute is one dimension.
static mp_status_t hlo_ops_plain_dim(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                     mp_attr_name_t name, mp_hlo_leaves_t *out) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  int64_t dim = 0;
  MP_RETURN_IF_ERROR(mp_hlo_one_dimension(inst, &dim));
  mp_hlo_put_int(&attrs, name, MP_DTYPE_S64, dim);
  return hlo_ops_plain_emit(b, inst, &attrs, out);
}

mp_status_t mp_hlo_build_iota(mp_hlo_build_t *b, const mp_hlo_inst_t *inst, mp_hlo_leaves_t *out) {
  return hlo_ops_plain_dim(b, inst, MP_ATTR_IOTA_DIMENSION, out);
}

mp_status_t mp_hlo_build_concatenate(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                     mp_hlo_leaves_t *out) {
  return hlo_ops_plain_dim(b, inst, MP_ATTR_DIMENSION, out);
}

mp_status_t mp_hlo_build_get_dimension_size(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                            mp_hlo_leaves_t *out) {
  return hlo_ops_plain_dim(b, inst, MP_ATTR_DIMENSION, out);
}

mp_status_t mp_hlo_build_reduce_precision(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                          mp_hlo_leaves_t *out) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  mp_hlo_put_int(&attrs, MP_ATTR_EXPONENT_BITS, MP_DTYPE_S32, inst->exponent_bits);
  mp_hlo_put_int(&attrs, MP_ATTR_MANTISSA_BITS, MP_DTYPE_S32, inst->mantissa_bits);
  return hlo_ops_plain_emit(b, inst, &attrs, out);
}

mp_status_t mp_hlo_build_constant(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                  mp_hlo_leaves_t *out) {
  return mp_hlo_build_literal(b, inst, out);
}

// ---- comparison ----

// The type of comparison that a type of elements has when none is stated.
static uint32_t hlo_ops_plain_compare_type(mp_dtype_t dtype) {
  switch (mp_dtype_class(dtype)) {
    case MP_CLASS_SIGNED:
      return MP_CMP_SIGNED;
    case MP_CLASS_UNSIGNED:
    case MP_CLASS_BOOL:
      return MP_CMP_UNSIGNED;
    default:
      return MP_CMP_FLOAT;
  }
}

mp_status_t mp_hlo_build_compare(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                 mp_hlo_leaves_t *out) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  mp_value_t *operand = NULL;
  MP_RETURN_IF_ERROR(mp_hlo_array(b, inst, 0, &operand));
  const int direction =
      mp_enum_value_from_name(MP_ENUM_COMPARISON_DIRECTION, inst->comparison_direction);
  int type = (int)hlo_ops_plain_compare_type(operand->type->dtype);
  if (inst->comparison_type.size != 0) {
    type = mp_enum_value_from_name(MP_ENUM_COMPARISON_TYPE, inst->comparison_type);
  }
  if (direction < 0 || type < 0) {
    return mp_hlo_error(
        inst, MP_INVALID_ARGUMENT, "comparison_%s: '%.*s' is none",
        direction < 0 ? "direction" : "type",
        MP_STR_ARG(direction < 0 ? inst->comparison_direction : inst->comparison_type));
  }
  mp_hlo_put_enum(&attrs, MP_ATTR_COMPARE_TYPE, MP_ENUM_COMPARISON_TYPE, (uint32_t)type);
  mp_hlo_put_enum(&attrs, MP_ATTR_COMPARISON_DIRECTION, MP_ENUM_COMPARISON_DIRECTION,
                  (uint32_t)direction);
  return hlo_ops_plain_emit(b, inst, &attrs, out);
}

// ---- slices ----

typedef struct {
  int64_t start, limit, stride;
} slice_t;

MP_HLO_MESSAGE(g_slice, "HloInstructionProto.SliceDimensions", MP_HLO_FIELD(1, INT, slice_t, start),
               MP_HLO_FIELD(2, INT, slice_t, limit), MP_HLO_FIELD(3, INT, slice_t, stride));

mp_status_t mp_hlo_build_slice(mp_hlo_build_t *b, const mp_hlo_inst_t *inst, mp_hlo_leaves_t *out) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  mp_hlo_ints_t starts = {0}, limits = {0}, strides = {0};
  mp_arena_t *arena = b->h->source.arena;
  for (uint32_t i = 0; i < inst->slices.count; ++i) {
    slice_t slice = {0};
    MP_RETURN_IF_ERROR(mp_hlo_error_at(
        inst,
        mp_status_annotate(mp_hlo_decode(&b->h->source, &g_slice, inst->slices.items[i], &slice),
                           "slice_dimensions[%u]", i)));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(arena, &starts, slice.start));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(arena, &limits, slice.limit));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(arena, &strides, slice.stride == 0 ? 1 : slice.stride));
  }
  mp_hlo_put_list(&attrs, MP_ATTR_LIMIT_INDICES, &limits);
  mp_hlo_put_list(&attrs, MP_ATTR_START_INDICES, &starts);
  mp_hlo_put_list(&attrs, MP_ATTR_STRIDES, &strides);
  return hlo_ops_plain_emit(b, inst, &attrs, out);
}

// Takes element `at` of a vector, as a scalar.
static mp_status_t hlo_ops_plain_element(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                         mp_value_t *vector, int64_t at, mp_value_t **out_value) {
  static const int64_t one = 1;
  const int64_t limit = at + 1;
  const mp_type_t *cut = NULL, *scalar = NULL;
  mp_value_t *value = NULL;
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  MP_RETURN_IF_ERROR(mp_hlo_tensor(b, vector->type->dtype, &one, 1, &cut));
  MP_RETURN_IF_ERROR(mp_hlo_tensor(b, vector->type->dtype, NULL, 0, &scalar));
  mp_hlo_put_ints(&attrs, MP_ATTR_LIMIT_INDICES, &limit, 1);
  mp_hlo_put_ints(&attrs, MP_ATTR_START_INDICES, &at, 1);
  mp_hlo_put_ints(&attrs, MP_ATTR_STRIDES, &one, 1);
  MP_RETURN_IF_ERROR(mp_hlo_emit_one(b, inst, MP_OP_SLICE, &vector, 1, cut, &attrs, &value));
  return mp_hlo_emit_one(b, inst, MP_OP_RESHAPE, &value, 1, scalar, NULL, out_value);
}

// The operands, of which the last ones are the start indices: one scalar for each dimension, or in
// the old form all in one vector.
static mp_status_t hlo_ops_plain_starts(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                        uint32_t first, mp_hlo_leaves_t *out) {
  mp_hlo_leaves_t operands = {0};
  MP_RETURN_IF_ERROR(hlo_ops_plain_operands(b, inst, &operands));
  *out = operands;
  if (operands.count != first + 1 || operands.items[first]->type->rank != 1) return NULL;
  mp_value_t *vector = operands.items[first];
  if (vector->type->dims[0] != operands.items[0]->type->rank) {
    return mp_hlo_error(inst, MP_INVALID_ARGUMENT, "%lld start indices for %u dimensions",
                        (long long)vector->type->dims[0], operands.items[0]->type->rank);
  }
  const uint32_t rank = operands.items[0]->type->rank;
  MP_RETURN_IF_ERROR(mp_hlo_new_leaves(b->h, first + rank, out));
  for (uint32_t i = 0; i < first; ++i) out->items[i] = operands.items[i];
  for (uint32_t i = 0; i < rank; ++i) {
    MP_RETURN_IF_ERROR(hlo_ops_plain_element(b, inst, vector, i, &out->items[first + i]));
  }
  return NULL;
}

mp_status_t mp_hlo_build_dynamic_slice(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                       mp_hlo_leaves_t *out) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  mp_hlo_leaves_t operands = {0};
  MP_RETURN_IF_ERROR(hlo_ops_plain_starts(b, inst, 1, &operands));
  mp_hlo_put_list(&attrs, MP_ATTR_SLICE_SIZES, &inst->dynamic_slice_sizes);
  return mp_hlo_emit_whole(b, inst, MP_OP_DYNAMIC_SLICE, operands, NULL, 0, &attrs, out);
}

mp_status_t mp_hlo_build_dynamic_update_slice(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                              mp_hlo_leaves_t *out) {
  mp_hlo_leaves_t operands = {0};
  MP_RETURN_IF_ERROR(hlo_ops_plain_starts(b, inst, 2, &operands));
  return mp_hlo_emit_whole(b, inst, MP_OP_DYNAMIC_UPDATE_SLICE, operands, NULL, 0, NULL, out);
}

// ---- padding ----

typedef struct {
  mp_hlo_texts_t dims;
} padding_t;

MP_HLO_MESSAGE(g_padding, "PaddingConfig", MP_HLO_FIELD(1, TEXTS, padding_t, dims));

typedef struct {
  int64_t low, high, interior;
} padding_dim_t;

MP_HLO_MESSAGE(g_padding_dim, "PaddingConfig.PaddingConfigDimension",
               MP_HLO_FIELD(1, INT, padding_dim_t, low), MP_HLO_FIELD(2, INT, padding_dim_t, high),
               MP_HLO_FIELD(3, INT, padding_dim_t, interior));

mp_status_t mp_hlo_build_pad(mp_hlo_build_t *b, const mp_hlo_inst_t *inst, mp_hlo_leaves_t *out) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  mp_hlo_ints_t lows = {0}, highs = {0}, interiors = {0};
  mp_arena_t *arena = b->h->source.arena;
  padding_t padding = {0};
  MP_RETURN_IF_ERROR(mp_hlo_error_at(
      inst,
      mp_status_annotate(mp_hlo_decode(&b->h->source, &g_padding, inst->padding_bytes, &padding),
                         "padding_config")));
  for (uint32_t i = 0; i < padding.dims.count; ++i) {
    padding_dim_t dim = {0};
    MP_RETURN_IF_ERROR(mp_hlo_error_at(
        inst, mp_status_annotate(
                  mp_hlo_decode(&b->h->source, &g_padding_dim, padding.dims.items[i], &dim),
                  "padding_config.dimensions[%u]", i)));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(arena, &lows, dim.low));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(arena, &highs, dim.high));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(arena, &interiors, dim.interior));
  }
  mp_hlo_put_list(&attrs, MP_ATTR_EDGE_PADDING_HIGH, &highs);
  mp_hlo_put_list(&attrs, MP_ATTR_EDGE_PADDING_LOW, &lows);
  mp_hlo_put_list(&attrs, MP_ATTR_INTERIOR_PADDING, &interiors);
  return hlo_ops_plain_emit(b, inst, &attrs, out);
}

// ---- bitcast ----

// The type of an array's bytes in memory, and the permutations from its dimensions to those and
// back.
static mp_status_t hlo_ops_plain_physical(mp_hlo_build_t *b, const mp_hlo_shape_t *shape,
                                          int64_t *to_physical, int64_t *to_logical,
                                          const mp_type_t **out_type) {
  const mp_type_t *type = shape->type;
  int64_t dims[MP_MAX_RANK];
  for (uint32_t k = 0; k < type->rank; ++k) {
    const int64_t logical = mp_layout_logical(shape->minor_to_major, type->rank, k);
    to_physical[k] = logical;
    to_logical[logical] = k;
    dims[k] = type->dims[logical];
  }
  return mp_hlo_tensor(b, type->dtype, dims, type->rank, out_type);
}

static mp_status_t hlo_ops_plain_permute(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                         const int64_t *permutation, const mp_type_t *type,
                                         mp_value_t **value) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  mp_hlo_put_ints(&attrs, MP_ATTR_PERMUTATION, permutation, type->rank);
  return mp_hlo_emit_one(b, inst, MP_OP_TRANSPOSE, value, 1, type, &attrs, value);
}

// The result has the operand's bytes. Both layouts give the order of their elements in memory, so
// here layouts of inner values matter.
mp_status_t mp_hlo_build_bitcast(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                 mp_hlo_leaves_t *out) {
  int64_t to_physical[MP_MAX_RANK], to_logical[MP_MAX_RANK];
  const mp_hlo_shape_t *from = inst->operands[0]->shape, *to = inst->shape;
  const mp_type_t *type = NULL;
  mp_value_t *value = NULL;
  MP_RETURN_IF_ERROR(mp_hlo_array(b, inst, 0, &value));
  MP_RETURN_IF_ERROR(hlo_ops_plain_type(inst, &type));
  if (from->is_tiled || to->is_tiled ||
      mp_dtype_bits(from->type->dtype) != mp_dtype_bits(type->dtype)) {
    return mp_hlo_error(inst, MP_UNIMPLEMENTED,
                        "a bitcast between tiled layouts or elements of different sizes is not "
                        "supported");
  }
  if (from->minor_to_major != NULL) {
    const mp_type_t *physical = NULL;
    MP_RETURN_IF_ERROR(hlo_ops_plain_physical(b, from, to_physical, to_logical, &physical));
    MP_RETURN_IF_ERROR(hlo_ops_plain_permute(b, inst, to_physical, physical, &value));
  }
  if (value->type->dtype != type->dtype) {
    const mp_type_t *same = NULL;
    MP_RETURN_IF_ERROR(mp_hlo_tensor(b, type->dtype, value->type->dims, value->type->rank, &same));
    MP_RETURN_IF_ERROR(
        mp_hlo_emit_one(b, inst, MP_OP_BITCAST_CONVERT, &value, 1, same, NULL, &value));
  }
  if (to->minor_to_major != NULL) {
    MP_RETURN_IF_ERROR(hlo_ops_plain_physical(b, to, to_physical, to_logical, &type));
  }
  MP_RETURN_IF_ERROR(mp_hlo_emit_one(b, inst, MP_OP_RESHAPE, &value, 1, type, NULL, &value));
  if (to->minor_to_major != NULL) {
    MP_RETURN_IF_ERROR(hlo_ops_plain_permute(b, inst, to_logical, to->type, &value));
  }
  MP_RETURN_IF_ERROR(mp_hlo_new_leaves(b->h, 1, out));
  out->items[0] = value;
  return NULL;
}
