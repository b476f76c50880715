// The local forms of ops that reduce: dot_general, convolution, reduce and windows.
#include <string.h>

#include "sim/ir/reducer.h"
#include "sim/spmd/build/local_builder.h"
#include "sim/spmd/build/unreduced.h"
#include "sim/spmd/local/lower_form.h"

static bool lower_reduce_always(const mp_lowerer_t *low, uint32_t factor) {
  (void)low;
  (void)factor;
  return true;
}

const mp_local_form_t mp_form_dot_general = {.is_usable = lower_reduce_always};

// ---- convolution ----

// Whether the factor is that of the groups: the one that input, kernel and output share.
static bool lower_reduce_is_group(const mp_lowerer_t *low, uint32_t factor) {
  return mp_lowerer_has_factor(low, 0, factor) && mp_lowerer_has_factor(low, 1, factor) &&
         mp_lowerer_has_factor(low, 2, factor);
}

// Whether the factor does not belong to the window; a part of a window would need its neighbours'
// elements.
static bool lower_reduce_is_no_window(const mp_lowerer_t *low, uint32_t factor) {
  if (low->rule->factors[factor].kind != MP_FACTOR_REDUCTION) return true;
  const int64_t in = mp_op_int(low->op, MP_ATTR_KERNEL_INPUT_FEATURE_DIMENSION, 0);
  return mp_lowerer_dim_has(low, 1, (uint32_t)in, factor);
}

static mp_status_t lower_reduce_localize_convolution(const mp_lowerer_t *low, mp_local_op_t *out) {
  static const mp_attr_name_t names[] = {MP_ATTR_BATCH_GROUP_COUNT, MP_ATTR_FEATURE_GROUP_COUNT};
  int64_t parts = 1;
  for (uint32_t f = 0; f < low->rule->num_factors; ++f) {
    if (lower_reduce_is_group(low, f))
      parts *= mp_atoms_product(&low->propagation->space, &low->chosen[f]);
  }
  for (uint32_t i = 0; parts != 1 && i < 2; ++i) {
    const int64_t count = mp_op_int(low->op, names[i], 1);
    if (count > 1) MP_RETURN_IF_ERROR(mp_lowerer_set_int(low, out, names[i], count / parts));
  }
  return mp_lowerer_widen(low, out);
}

const mp_local_form_t mp_form_convolution = {.is_usable = lower_reduce_is_no_window,
                                             .is_permutable = mp_lowerer_is_window,
                                             .needs_even = lower_reduce_is_group,
                                             .localize = lower_reduce_localize_convolution};

// ---- windows ----

const mp_local_form_t mp_form_reduce_window = {.is_permutable = mp_lowerer_is_window,
                                               .localize = mp_lowerer_widen};

// Whether windows neither overlap nor leave gaps, so that the dimension can be cut between them.
static bool lower_reduce_is_tiling(const mp_lowerer_t *low, uint32_t factor) {
  const mp_op_t *op = low->op;
  const mp_index_list_t sizes = mp_op_ints(op, MP_ATTR_WINDOW_DIMENSIONS);
  const mp_index_list_t strides = mp_op_ints(op, MP_ATTR_WINDOW_STRIDES);
  const mp_index_list_t padding = mp_op_ints(op, MP_ATTR_PADDING);
  const mp_type_t *in = op->operands[0]->type;
  for (uint32_t d = 0; d < in->rank; ++d) {
    if (!mp_lowerer_dim_has(low, 0, d, factor)) continue;
    if (sizes.values[d] != strides.values[d] || padding.values[2 * d] != 0 ||
        padding.values[2 * d + 1] != 0) {
      return false;
    }
    const int64_t count = op->operands[1]->type->dims[d];
    if (count == 0 || in->dims[d] % count != 0 || in->dims[d] / count != sizes.values[d]) {
      return false;
    }
    for (uint32_t t = 0; t < mp_lowerer_num_tensors(low); ++t) {
      const mp_atoms_t *list = mp_lowerer_list(low, t, factor);
      if (count % mp_atoms_product(&low->propagation->space, list) != 0) return false;
    }
  }
  return true;
}

static bool lower_reduce_is_permute(const mp_lowerer_t *low, uint32_t factor) {
  return low->rule->factors[factor].kind == MP_FACTOR_PERMUTE;
}

// Gives the source operand the boxes that belong to the windows of a part.
static mp_status_t lower_reduce_localize_tiling(const mp_lowerer_t *low, mp_local_op_t *out) {
  const mp_index_list_t strides = mp_op_ints(low->op, MP_ATTR_WINDOW_STRIDES);
  const mp_boxes_t *parts = out->results[0];
  for (uint32_t d = 0; parts != NULL && d < parts->rank; ++d) {
    if (strides.values[d] == 1 || !mp_boxes_is_cut(parts, d)) continue;
    int64_t *starts = MP_ARENA_ARRAY(low->arena, int64_t, parts->num_partitions);
    int64_t *sizes = MP_ARENA_ARRAY(low->arena, int64_t, parts->num_partitions);
    if (starts == NULL || sizes == NULL) return mp_status_out_of_memory();
    for (uint32_t p = 0; p < parts->num_partitions; ++p) {
      starts[p] = parts->starts[(size_t)p * parts->rank + d] / strides.values[d];
      sizes[p] = parts->sizes[(size_t)p * parts->rank + d] / strides.values[d];
    }
    MP_RETURN_IF_ERROR(mp_lowerer_move_boxes(low, out, 1, d, starts, sizes));
  }
  return NULL;
}

const mp_local_form_t mp_form_select_and_scatter = {.is_permutable = lower_reduce_is_tiling,
                                                    .needs_even = lower_reduce_is_permute,
                                                    .localize = lower_reduce_localize_tiling};

// ---- reduce ----

// The single op of the reduction, which can also combine the terms of parts; MP_OP_COUNT if there
// is none.
static mp_opcode_t lower_reduce_reduction_of(const mp_op_t *op) {
  if (op->num_results != 1) return MP_OP_COUNT;
  return mp_reduce_kind_opcode(mp_reducer_kind(op->regions[0]));
}

// Whether the results of the parts can be gathered and reduced again, which uses initial values
// several times: either the region always returns one of its arguments, or one op computes each
// result, for which repeated initial values are harmless.
static bool lower_reduce_can_reduce_twice(const mp_op_t *op) {
  if (op->results[0].type->rank >= MP_MAX_RANK) return false;  // terms need one more dimension
  if (mp_reducer_is_choice(op->regions[0])) return true;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    const mp_opcode_t code = mp_reduce_kind_opcode(mp_reducer_result_kind(op->regions[0], i));
    if (code == MP_OP_COUNT || !mp_reducer_may_repeat(op->operands[op->num_results + i], code))
      return false;
  }
  return true;
}

static bool lower_reduce_is_reducible(const mp_lowerer_t *low, uint32_t factor) {
  if (low->rule->factors[factor].kind != MP_FACTOR_REDUCTION) return true;
  const mp_opcode_t code = lower_reduce_reduction_of(low->op);
  if (code == MP_OP_COUNT) return lower_reduce_can_reduce_twice(low->op);
  unsigned char identity[16];
  return mp_reducer_may_repeat(low->op->operands[1], code) ||
         mp_reducer_identity(low->op->operands[1]->type->dtype, code, identity);
}

// The first partition of each sum begins with the initial value, and the others with the neutral
// element.
static mp_status_t lower_reduce_emit_reduce_once(const mp_local_op_t *local, mp_module_t *module,
                                                 mp_block_t *block, const mp_op_spec_t *spec,
                                                 mp_value_t **out_results) {
  const mp_opcode_t code = lower_reduce_reduction_of(local->op);
  mp_value_t *operands[2] = {spec->operands[0], NULL};
  MP_RETURN_IF_ERROR(mp_unreduced_keep_first(&(mp_append_at_t){module, block, spec->loc},
                                             local->terms, code, spec->operands[1], &operands[1]));
  mp_op_spec_t changed = *spec;
  changed.operands = operands;
  mp_op_t *op = NULL;
  MP_RETURN_IF_ERROR(mp_op_create(module, &changed, &op));
  mp_block_append(block, op);
  out_results[0] = &op->results[0];
  return NULL;
}

// Gathers the results of all parts along a new first dimension.
static mp_status_t lower_reduce_gather_terms(const mp_local_builder_t *e, const mp_boxes_t *terms,
                                             mp_value_t *value, mp_value_t **out_value) {
  int64_t dims[MP_MAX_RANK + 1] = {1};
  const uint32_t rank = value->type->rank + 1;
  for (uint32_t d = 1; d < rank; ++d) dims[d] = value->type->dims[d - 1];
  MP_RETURN_IF_ERROR(mp_emit_reshape(e, value, dims, rank, &value));
  return mp_unreduced_gather(&(mp_append_at_t){e->module, e->block, e->loc}, terms, value,
                             out_value);
}

// For regions with several results, or without a known op: gathers the results of all parts and
// reduces them again.
static mp_status_t lower_reduce_emit_reduce_twice(const mp_local_op_t *local, mp_module_t *module,
                                                  mp_block_t *block, const mp_op_spec_t *spec,
                                                  mp_value_t **out_results) {
  const mp_local_builder_t e = {module, block, spec->loc};
  const uint32_t count = spec->num_results;
  mp_op_t *first = NULL;
  MP_RETURN_IF_ERROR(mp_op_create(module, spec, &first));
  mp_block_append(block, first);
  mp_op_spec_t second = *spec;
  mp_value_t **operands = MP_ARENA_ARRAY(module->arena, mp_value_t *, spec->num_operands);
  mp_named_attr_t *attrs =
      mp_arena_copy(module->arena, spec->attrs, spec->num_attrs * sizeof(*attrs));
  if (operands == NULL || attrs == NULL) return mp_status_out_of_memory();
  memcpy(operands, spec->operands, spec->num_operands * sizeof(*operands));
  for (uint32_t i = 0; i < count; ++i) {
    MP_RETURN_IF_ERROR(
        lower_reduce_gather_terms(&e, local->terms, &first->results[i], &operands[i]));
  }
  const int64_t dim = 0;
  for (uint32_t a = 0; a < spec->num_attrs; ++a) {
    if (attrs[a].name != MP_ATTR_DIMENSIONS) continue;
    MP_RETURN_IF_ERROR(mp_attr_make_ints(module->arena, &dim, 1, &attrs[a].value));
  }
  second.operands = operands;
  second.attrs = attrs;
  second.regions = spec->regions + 1;
  mp_op_t *op = NULL;
  MP_RETURN_IF_ERROR(mp_op_create(module, &second, &op));
  mp_block_append(block, op);
  for (uint32_t i = 0; i < count; ++i) out_results[i] = &op->results[i];
  return NULL;
}

static mp_status_t lower_reduce_localize_reduce(const mp_lowerer_t *low, mp_local_op_t *out) {
  if (out->terms == NULL) return NULL;
  const mp_opcode_t code = lower_reduce_reduction_of(low->op);
  if (code == MP_OP_COUNT) {
    out->emit = lower_reduce_emit_reduce_twice;
    out->has_regions_twice = true;
  } else if (!mp_reducer_may_repeat(low->op->operands[1], code)) {
    out->emit = lower_reduce_emit_reduce_once;
  }
  return NULL;
}

static mp_opcode_t lower_reduce_reduction_of_form(const mp_lowerer_t *low) {
  return lower_reduce_reduction_of(low->op);
}

const mp_local_form_t mp_form_reduce = {.is_usable = lower_reduce_is_reducible,
                                        .combine = lower_reduce_reduction_of_form,
                                        .localize = lower_reduce_localize_reduce};
