// The local forms of gather and scatter.
//
// Along an indexed dimension of the array, the indices for a part count from where the part begins.
// Where an index points outside of the part, another partition has the element: gather then yields
// a zero, by a mask, which adds nothing to the sum over the partitions; scatter skips the update,
// as it does with all indices that are out of bounds.
#include <string.h>

#include "sim/ir/reducer.h"
#include "sim/spmd/build/local_builder.h"
#include "sim/spmd/build/unreduced.h"
#include "sim/spmd/local/lower_form.h"

// The dimension of a tensor that has the factor, or -1.
static int64_t lower_index_dim_of(const mp_lowerer_t *low, uint32_t tensor, uint32_t factor) {
  for (uint32_t d = 0; d < mp_lowerer_type(low, tensor)->rank; ++d) {
    if (mp_lowerer_dim_has(low, tensor, d, factor)) return d;
  }
  return -1;
}

// ---- indices of parts ----

// The state of shifting indices. `map` lists the array's dimensions in the order of an index
// vector's components.
typedef struct {
  mp_local_builder_t e;
  mp_index_list_t map;
  const mp_boxes_t *boxes;  // of the array
  const bool *is_cut;       // [map.count]: the dimension is cut, so its indices are shifted
  int64_t vector_dim;       // of the indices
  mp_value_t *indices;      // s64
} shift_t;

// Repeats a vector with a number per component of an index vector to the indices' shape.
static mp_status_t lower_index_spread_vector(const shift_t *s, mp_value_t *vector,
                                             mp_value_t **out_value) {
  if (s->vector_dim < (int64_t)s->indices->type->rank) {
    return mp_emit_broadcast(&s->e, vector, &s->vector_dim, s->indices->type, out_value);
  }
  MP_RETURN_IF_ERROR(mp_emit_reshape(&s->e, vector, NULL, 0, &vector));
  return mp_emit_broadcast(&s->e, vector, NULL, s->indices->type, out_value);
}

// The starts of the parts per component of an index vector; 0 where indices are not shifted.
static mp_status_t lower_index_emit_starts(const shift_t *s, mp_value_t **out_value) {
  const mp_boxes_t *boxes = s->boxes;
  const uint32_t count = s->map.count;
  int64_t *starts =
      MP_ARENA_ARRAY(s->e.module->arena, int64_t, (size_t)boxes->num_partitions * count);
  MP_RETURN_IF_NULL(starts);
  for (uint32_t p = 0; p < boxes->num_partitions; ++p) {
    for (uint32_t i = 0; i < count; ++i) {
      if (!s->is_cut[i]) continue;
      starts[(size_t)p * count + i] =
          boxes->starts[(size_t)p * boxes->rank + (size_t)s->map.values[i]];
    }
  }
  mp_value_t *row = NULL;
  MP_RETURN_IF_ERROR(mp_emit_row(&s->e, starts, boxes->num_partitions, count, &row));
  return lower_index_spread_vector(s, row, out_value);
}

static mp_status_t lower_index_emit_constants(const shift_t *s, const int64_t *numbers,
                                              mp_value_t **out_value) {
  mp_value_t *vector = NULL;
  MP_RETURN_IF_ERROR(mp_emit_vector(&s->e, numbers, s->map.count, &vector));
  return lower_index_spread_vector(s, vector, out_value);
}

static mp_status_t lower_index_start_shift(const mp_local_op_t *local, uint32_t indices_operand,
                                           mp_attr_name_t map, mp_module_t *module,
                                           mp_block_t *block, const mp_op_spec_t *spec,
                                           shift_t *out_shift) {
  const mp_type_t *array = local->op->operands[0]->type;
  const mp_type_t *part = spec->operands[0]->type;
  shift_t s = {.e = {module, block, spec->loc},
               .map = mp_op_ints(local->op, map),
               .boxes = local->operands[0],
               .vector_dim = mp_op_int(local->op, MP_ATTR_INDEX_VECTOR_DIM, 0)};
  const mp_index_list_t sizes = mp_op_ints(local->op, MP_ATTR_SLICE_SIZES);  // of gather
  bool *is_cut = MP_ARENA_ARRAY(module->arena, bool, s.map.count);
  MP_RETURN_IF_NULL(is_cut);
  for (uint32_t i = 0; i < s.map.count; ++i) {
    const int64_t d = s.map.values[i];
    const bool is_window =
        sizes.count != 0
            ? sizes.values[d] != 1
            : !mp_index_list_has(mp_op_ints(local->op, MP_ATTR_INSERTED_WINDOW_DIMS), d);
    is_cut[i] = !is_window && part->dims[d] != array->dims[d];
  }
  s.is_cut = is_cut;
  MP_RETURN_IF_ERROR(mp_emit_index(&s.e, spec->operands[indices_operand], &s.indices));
  *out_shift = s;
  return NULL;
}

// ---- gather ----

// Whether gather can be computed with this factor sharded. That is so for dimensions that slices
// take whole, for the indices' own dimensions, and for an indexed dimension of which slices take
// one element.
static bool lower_index_can_gather(const mp_lowerer_t *low, uint32_t factor) {
  if (low->rule->factors[factor].kind != MP_FACTOR_REDUCTION) return true;
  const int64_t dim = lower_index_dim_of(low, 0, factor);
  unsigned char zero[16];
  return dim >= 0 && mp_op_ints(low->op, MP_ATTR_SLICE_SIZES).values[dim] == 1 &&
         mp_index_list_has(mp_op_ints(low->op, MP_ATTR_START_INDEX_MAP), dim) &&
         mp_reducer_identity(low->op->results[0].type->dtype, MP_OP_ADD, zero);
}

// Clamps the indices to the bounds of the whole array, and then counts them from the part's start.
static mp_status_t lower_index_emit_local_indices(const shift_t *s, const mp_op_t *op,
                                                  mp_value_t **out_value) {
  const mp_index_list_t sizes = mp_op_ints(op, MP_ATTR_SLICE_SIZES);
  int64_t *last = MP_ARENA_ARRAY(s->e.module->arena, int64_t, s->map.count);
  MP_RETURN_IF_NULL(last);
  for (uint32_t i = 0; i < s->map.count; ++i) {
    const int64_t d = s->map.values[i];
    last[i] = op->operands[0]->type->dims[d] - sizes.values[d];
  }
  mp_value_t *low = NULL;
  mp_value_t *high = NULL;
  mp_value_t *start = NULL;
  mp_value_t *indices = NULL;
  MP_RETURN_IF_ERROR(mp_emit_splat_s64(&s->e, s->indices->type, 0, &low));
  MP_RETURN_IF_ERROR(lower_index_emit_constants(s, last, &high));
  MP_RETURN_IF_ERROR(lower_index_emit_starts(s, &start));
  MP_RETURN_IF_ERROR(mp_emit_binary(&s->e, MP_OP_MAXIMUM, s->indices, low, &indices));
  MP_RETURN_IF_ERROR(mp_emit_binary(&s->e, MP_OP_MINIMUM, indices, high, &indices));
  return mp_emit_binary(&s->e, MP_OP_SUBTRACT, indices, start, out_value);
}

// Which index vectors point into the part: those whose components all do.
static mp_status_t lower_index_emit_is_inside(const shift_t *s, const mp_type_t *part,
                                              mp_value_t *indices, mp_value_t **out_value) {
  int64_t *sizes = MP_ARENA_ARRAY(s->e.module->arena, int64_t, s->map.count);
  MP_RETURN_IF_NULL(sizes);
  for (uint32_t i = 0; i < s->map.count; ++i) {
    sizes[i] = s->is_cut[i] ? part->dims[s->map.values[i]] : INT64_MAX;
  }
  mp_value_t *low = NULL;
  mp_value_t *high = NULL;
  mp_value_t *flags[2] = {NULL, NULL};
  mp_value_t *is_inside = NULL;
  MP_RETURN_IF_ERROR(mp_emit_splat_s64(&s->e, indices->type, 0, &low));
  MP_RETURN_IF_ERROR(lower_index_emit_constants(s, sizes, &high));
  MP_RETURN_IF_ERROR(mp_emit_compare(&s->e, MP_CMP_GE, indices, low, &flags[0]));
  MP_RETURN_IF_ERROR(mp_emit_compare(&s->e, MP_CMP_LT, indices, high, &flags[1]));
  MP_RETURN_IF_ERROR(mp_emit_binary(&s->e, MP_OP_AND, flags[0], flags[1], &is_inside));
  if (s->vector_dim == (int64_t)indices->type->rank) {
    *out_value = is_inside;
    return NULL;
  }
  return mp_emit_all(&s->e, is_inside, s->vector_dim, out_value);
}

// The mask of the index vectors, repeated along the slices.
static mp_status_t lower_index_emit_mask(const shift_t *s, const mp_op_t *op,
                                         const mp_type_t *result, mp_value_t *is_inside,
                                         mp_value_t **out_value) {
  const mp_index_list_t offsets = mp_op_ints(op, MP_ATTR_OFFSET_DIMS);
  int64_t dims[MP_MAX_RANK];
  uint32_t count = 0;
  for (uint32_t d = 0; d < result->rank; ++d) {
    if (!mp_index_list_has(offsets, d)) dims[count++] = d;
  }
  return mp_emit_broadcast(&s->e, is_inside, dims, result, out_value);
}

static mp_status_t lower_index_emit_gather(const mp_local_op_t *local, mp_module_t *module,
                                           mp_block_t *block, const mp_op_spec_t *spec,
                                           mp_value_t **out_results) {
  const mp_op_t *op = local->op;
  shift_t s;
  MP_RETURN_IF_ERROR(
      lower_index_start_shift(local, 1, MP_ATTR_START_INDEX_MAP, module, block, spec, &s));
  mp_value_t *operands[2] = {spec->operands[0], NULL};
  MP_RETURN_IF_ERROR(lower_index_emit_local_indices(&s, op, &operands[1]));
  mp_value_t *is_inside = NULL;
  mp_value_t *mask = NULL;
  mp_value_t *nothing = NULL;
  mp_value_t *gathered = NULL;
  MP_RETURN_IF_ERROR(lower_index_emit_is_inside(&s, operands[0]->type, operands[1], &is_inside));
  MP_RETURN_IF_ERROR(lower_index_emit_mask(&s, op, spec->result_types[0], is_inside, &mask));
  MP_RETURN_IF_ERROR(mp_emit_op(&s.e, MP_OP_GATHER, operands, 2, spec->result_types[0], spec->attrs,
                                spec->num_attrs, &gathered));
  unsigned char zero[16];
  (void)mp_reducer_identity(spec->result_types[0]->dtype, MP_OP_ADD, zero);
  MP_RETURN_IF_ERROR(mp_emit_splat(&s.e, spec->result_types[0], zero, &nothing));
  return mp_emit_select(&s.e, mask, gathered, nothing, &out_results[0]);
}

// If slices take a whole dimension, they take the whole part of it.
static mp_status_t lower_index_localize_gather(const mp_lowerer_t *low, mp_local_op_t *out) {
  const mp_type_t *array = low->op->operands[0]->type;
  const mp_type_t *part = NULL;
  MP_RETURN_IF_ERROR(mp_lowerer_local_type(low, out, 0, &part));
  const mp_index_list_t sizes = mp_op_ints(low->op, MP_ATTR_SLICE_SIZES);
  int64_t local[MP_MAX_RANK];
  for (uint32_t d = 0; d < sizes.count; ++d) {
    local[d] = sizes.values[d] == array->dims[d] ? part->dims[d] : sizes.values[d];
  }
  if (out->terms != NULL) out->emit = lower_index_emit_gather;
  return mp_lowerer_set_ints(low, out, MP_ATTR_SLICE_SIZES, local, sizes.count);
}

// How the terms are combined. An all_reduce that adds cannot combine booleans.
static mp_opcode_t lower_index_gather_combine(const mp_lowerer_t *low) {
  return low->op->results[0].type->dtype == MP_DTYPE_BOOL ? MP_OP_OR : MP_OP_ADD;
}

const mp_local_form_t mp_form_gather = {.is_usable = lower_index_can_gather,
                                        .combine = lower_index_gather_combine,
                                        .localize = lower_index_localize_gather};

// ---- scatter ----

// The op that combines an element with an update. The op's rule has checked that there is one.
static mp_opcode_t lower_index_scatter_combine(const mp_lowerer_t *low) {
  const mp_op_t *end = mp_block_terminator(low->op->regions[0]);
  return end->operands[0]->op->code;
}

static bool lower_index_starts_from_identity(mp_opcode_t code) {
  return !mp_opcode_has(code, MP_OP_TRAIT_IDEMPOTENT);  // other ops must not see an input twice
}

static bool lower_index_can_scatter(const mp_lowerer_t *low, uint32_t factor) {
  const mp_op_t *op = low->op;
  if (low->rule->factors[factor].kind == MP_FACTOR_REDUCTION) {
    const mp_opcode_t code = lower_index_scatter_combine(low);
    unsigned char identity[16];
    for (uint32_t i = 0; lower_index_starts_from_identity(code) && i < op->num_results; ++i) {
      if (!mp_reducer_identity(op->operands[i]->type->dtype, code, identity)) return false;
    }
    return true;
  }
  const int64_t dim = lower_index_dim_of(low, 0, factor);
  if (!mp_index_list_has(mp_op_ints(op, MP_ATTR_INSERTED_WINDOW_DIMS), dim)) return true;
  return mp_index_list_has(mp_op_ints(op, MP_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS), dim);
}

static mp_status_t lower_index_emit_scatter(const mp_local_op_t *local, mp_module_t *module,
                                            mp_block_t *block, const mp_op_spec_t *spec,
                                            mp_value_t **out_results) {
  const mp_op_t *op = local->op;
  const uint32_t count = op->num_results;
  mp_value_t **operands = MP_ARENA_ARRAY(module->arena, mp_value_t *, spec->num_operands);
  MP_RETURN_IF_NULL(operands);
  memcpy(operands, spec->operands, spec->num_operands * sizeof(*operands));
  shift_t s;
  MP_RETURN_IF_ERROR(lower_index_start_shift(local, count, MP_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS,
                                             module, block, spec, &s));
  bool shifts = false;
  for (uint32_t i = 0; i < s.map.count; ++i) shifts |= s.is_cut[i];
  if (shifts) {
    mp_value_t *start = NULL;
    MP_RETURN_IF_ERROR(lower_index_emit_starts(&s, &start));
    MP_RETURN_IF_ERROR(mp_emit_binary(&s.e, MP_OP_SUBTRACT, s.indices, start, &operands[count]));
  }
  for (uint32_t i = 0; local->terms != NULL && i < count; ++i) {
    const mp_opcode_t code = mp_block_terminator(op->regions[0])->operands[i]->op->code;
    if (!lower_index_starts_from_identity(code)) continue;
    MP_RETURN_IF_ERROR(mp_unreduced_keep_first(&(mp_append_at_t){module, block, spec->loc},
                                               local->terms, code, operands[i], &operands[i]));
  }
  mp_op_spec_t changed = *spec;
  changed.operands = operands;
  mp_op_t *copy = NULL;
  MP_RETURN_IF_ERROR(mp_op_create(module, &changed, &copy));
  mp_block_append(block, copy);
  for (uint32_t i = 0; i < count; ++i) out_results[i] = &copy->results[i];
  return NULL;
}

static mp_status_t lower_index_localize_scatter(const mp_lowerer_t *low, mp_local_op_t *out) {
  const mp_type_t *part = NULL;
  MP_RETURN_IF_ERROR(mp_lowerer_local_type(low, out, 0, &part));
  if (out->terms != NULL || !mp_type_same_shape(part, low->op->operands[0]->type)) {
    out->emit = lower_index_emit_scatter;
  }
  return NULL;
}

const mp_local_form_t mp_form_scatter = {.is_usable = lower_index_can_scatter,
                                         .combine = lower_index_scatter_combine,
                                         .localize = lower_index_localize_scatter};
