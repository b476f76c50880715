// The local forms of ops that move elements.
#include "sim/spmd/build/local_builder.h"
#include "sim/spmd/local/lower_form.h"

// ---- constants ----

static bool lower_shape_is_splat(const mp_lowerer_t *low, uint32_t factor) {
  (void)factor;
  return mp_op_attr(low->op, MP_ATTR_VALUE)->u.dense.splat;
}

static mp_status_t lower_shape_localize_constant(const mp_lowerer_t *low, mp_local_op_t *out) {
  const mp_type_t *type = NULL;
  MP_RETURN_IF_ERROR(mp_lowerer_local_type(low, out, 0, &type));
  for (uint32_t a = 0; a < low->op->num_attrs; ++a) {
    if (out->attrs[a].name != MP_ATTR_VALUE) continue;
    const mp_attr_t *old = out->attrs[a].value;
    MP_RETURN_IF_ERROR(mp_attr_make_dense(low->arena, type, old->u.dense.data, old->u.dense.size,
                                          true, &out->attrs[a].value));
  }
  return NULL;
}

const mp_local_form_t mp_form_constant = {.is_usable = lower_shape_is_splat,
                                          .localize = lower_shape_localize_constant};

// ---- reshape: what both sides have ----

static bool lower_shape_is_shared(const mp_lowerer_t *low, uint32_t factor) {
  return mp_lowerer_has_factor(low, 0, factor);
}

static bool lower_shape_always(const mp_lowerer_t *low, uint32_t factor) {
  (void)low;
  (void)factor;
  return true;
}

const mp_local_form_t mp_form_reshape = {.is_usable = lower_shape_is_shared,
                                         .needs_even = lower_shape_always};

// ---- slices and pads of other dimensions ----

// Sets an attribute with a size per dimension to the part's size where the result is sharded.
static mp_status_t lower_shape_localize_sizes(const mp_lowerer_t *low, mp_local_op_t *out,
                                              mp_attr_name_t name) {
  const mp_type_t *global = low->op->results[0].type;
  const mp_type_t *local = NULL;
  MP_RETURN_IF_ERROR(mp_lowerer_local_type(low, out, low->op->num_operands, &local));
  const mp_index_list_t old = mp_op_ints(low->op, name);
  int64_t values[MP_MAX_RANK];
  for (uint32_t d = 0; d < old.count; ++d) {
    values[d] = local->dims[d] != global->dims[d] ? local->dims[d] : old.values[d];
  }
  return mp_lowerer_set_ints(low, out, name, values, old.count);
}

// A part of the result needs an interval of the operand; the operand gets that as its box.
static mp_status_t lower_shape_localize_slice(const mp_lowerer_t *low, mp_local_op_t *out) {
  const mp_op_t *op = low->op;
  const mp_index_list_t starts = mp_op_ints(op, MP_ATTR_START_INDICES);
  const mp_index_list_t strides = mp_op_ints(op, MP_ATTR_STRIDES);
  const mp_boxes_t *parts = out->results[0];
  const mp_type_t *local = NULL;
  int64_t begins[MP_MAX_RANK];
  MP_RETURN_IF_ERROR(mp_lowerer_local_type(low, out, 1, &local));
  int64_t limits[MP_MAX_RANK];
  for (uint32_t d = 0; d < starts.count; ++d) {
    begins[d] = starts.values[d];
    limits[d] = mp_op_ints(op, MP_ATTR_LIMIT_INDICES).values[d];
    if (!mp_boxes_is_cut(parts, d)) continue;
    begins[d] = 0;
    limits[d] = (local->dims[d] - 1) * strides.values[d] + 1;
    if (op->operands[0]->type->dims[d] == op->results[0].type->dims[d]) continue;  // not sliced
    int64_t *from = MP_ARENA_ARRAY(low->arena, int64_t, parts->num_partitions);
    int64_t *sizes = MP_ARENA_ARRAY(low->arena, int64_t, parts->num_partitions);
    if (from == NULL || sizes == NULL) return mp_status_out_of_memory();
    for (uint32_t p = 0; p < parts->num_partitions; ++p) {
      const int64_t count = parts->sizes[(size_t)p * parts->rank + d];
      if (count == 0) continue;
      from[p] = starts.values[d] + parts->starts[(size_t)p * parts->rank + d] * strides.values[d];
      sizes[p] = (count - 1) * strides.values[d] + 1;
    }
    MP_RETURN_IF_ERROR(mp_lowerer_move_boxes(low, out, 0, d, from, sizes));
  }
  MP_RETURN_IF_ERROR(mp_lowerer_set_ints(low, out, MP_ATTR_START_INDICES, begins, starts.count));
  return mp_lowerer_set_ints(low, out, MP_ATTR_LIMIT_INDICES, limits, starts.count);
}

static bool lower_shape_is_any(const mp_lowerer_t *low, uint32_t factor) {
  (void)factor;
  int64_t elements = 0;
  return mp_type_num_elements(low->op->results[0].type, &elements) && elements != 0;
}

// ---- reverse: a part of the result is the part at the other end, reversed ----

static bool lower_shape_is_permute(const mp_lowerer_t *low, uint32_t factor) {
  return low->rule->factors[factor].kind == MP_FACTOR_PERMUTE;
}

static mp_status_t lower_shape_localize_reverse(const mp_lowerer_t *low, mp_local_op_t *out) {
  const mp_index_list_t dims = mp_op_ints(low->op, MP_ATTR_DIMENSIONS);
  const mp_boxes_t *parts = out->results[0];
  for (uint32_t i = 0; parts != NULL && i < dims.count; ++i) {
    const uint32_t d = (uint32_t)dims.values[i];
    int64_t *from = MP_ARENA_ARRAY(low->arena, int64_t, parts->num_partitions);
    int64_t *sizes = MP_ARENA_ARRAY(low->arena, int64_t, parts->num_partitions);
    if (from == NULL || sizes == NULL) return mp_status_out_of_memory();
    for (uint32_t p = 0; p < parts->num_partitions; ++p) {
      sizes[p] = parts->sizes[(size_t)p * parts->rank + d];
      from[p] = parts->dims[d] - parts->starts[(size_t)p * parts->rank + d] - sizes[p];
    }
    MP_RETURN_IF_ERROR(mp_lowerer_move_boxes(low, out, 0, d, from, sizes));
  }
  return NULL;
}

const mp_local_form_t mp_form_reverse = {.is_permutable = lower_shape_is_any,
                                         .needs_even = lower_shape_is_permute,
                                         .localize = lower_shape_localize_reverse};

static mp_status_t lower_shape_localize_dynamic_slice(const mp_lowerer_t *low, mp_local_op_t *out) {
  return lower_shape_localize_sizes(low, out, MP_ATTR_SLICE_SIZES);
}

const mp_local_form_t mp_form_slice = {.is_permutable = lower_shape_is_any,
                                       .localize = lower_shape_localize_slice};
const mp_local_form_t mp_form_dynamic_slice = {.localize = lower_shape_localize_dynamic_slice};

const mp_local_form_t mp_form_pad = {.is_permutable = mp_lowerer_is_window,
                                     .localize = mp_lowerer_widen};

// ---- dynamic_update_slice ----

// If the operand is cut along a dimension that the update does not fill, each part takes those
// elements of the update that fall into it. For that the whole update is padded on both sides by
// the length of a part. The part takes a window of this array, which begins where the part does,
// counted from the update's start; if part and update do not overlap, the window holds only
// padding. A mask that is padded and cut in the same way marks the update's elements in the window.
typedef struct {
  mp_local_builder_t e;
  const mp_local_op_t *local;
  const mp_op_spec_t *spec;
  uint32_t rank;
  int64_t part[MP_MAX_RANK];  // the length of a part along dimensions that need this; else 0
} updater_t;

// The op's start along a dimension, clamped so that the update fits in.
static mp_status_t lower_shape_emit_start(const updater_t *u, uint32_t d, mp_value_t **out_value) {
  const int64_t room =
      u->local->op->operands[0]->type->dims[d] - u->local->op->operands[1]->type->dims[d];
  mp_value_t *start = NULL;
  MP_RETURN_IF_ERROR(mp_emit_index(&u->e, u->spec->operands[2 + d], &start));
  return mp_emit_clamp(&u->e, start, 0, room, out_value);
}

// Where the part's window begins in the padded update.
static mp_status_t lower_shape_emit_window_start(const updater_t *u, uint32_t d,
                                                 mp_value_t **out_value) {
  const mp_boxes_t *boxes = u->local->operands[0];
  int64_t *offsets = MP_ARENA_ARRAY(u->e.module->arena, int64_t, boxes->num_partitions);
  MP_RETURN_IF_NULL(offsets);
  for (uint32_t p = 0; p < boxes->num_partitions; ++p) {
    // Empty parts may begin anywhere beyond the end.
    const int64_t start = boxes->starts[(size_t)p * boxes->rank + d];
    if (__builtin_add_overflow(start, u->part[d], &offsets[p])) offsets[p] = INT64_MAX;
  }
  mp_value_t *offset = NULL;
  mp_value_t *start = NULL;
  MP_RETURN_IF_ERROR(mp_append_lookup(&(mp_append_at_t){u->e.module, u->e.block, u->e.loc},
                                      MP_DTYPE_S64, offsets, boxes->num_partitions, &offset));
  MP_RETURN_IF_ERROR(lower_shape_emit_start(u, d, &start));
  MP_RETURN_IF_ERROR(mp_emit_binary(&u->e, MP_OP_SUBTRACT, offset, start, &offset));
  const int64_t last = u->spec->operands[1]->type->dims[d] + u->part[d];
  return mp_emit_clamp(&u->e, offset, 0, last, out_value);
}

// The part's window of `array`, which has the update's shape, padded with `zero`.
static mp_status_t lower_shape_emit_window(const updater_t *u, mp_value_t *array, mp_value_t *zero,
                                           mp_value_t *const *starts, mp_value_t **out_value) {
  int64_t none[MP_MAX_RANK] = {0}, padded[MP_MAX_RANK], sizes[MP_MAX_RANK];
  for (uint32_t d = 0; d < u->rank; ++d) {
    padded[d] = array->type->dims[d] + 2 * u->part[d];
    sizes[d] = u->part[d] != 0 ? u->part[d] : array->type->dims[d];
  }
  mp_named_attr_t attrs[4];
  MP_RETURN_IF_ERROR(mp_emit_ints(&u->e, MP_ATTR_EDGE_PADDING_HIGH, u->part, u->rank, &attrs[0]));
  MP_RETURN_IF_ERROR(mp_emit_ints(&u->e, MP_ATTR_EDGE_PADDING_LOW, u->part, u->rank, &attrs[1]));
  MP_RETURN_IF_ERROR(mp_emit_ints(&u->e, MP_ATTR_INTERIOR_PADDING, none, u->rank, &attrs[2]));
  MP_RETURN_IF_ERROR(mp_emit_ints(&u->e, MP_ATTR_SLICE_SIZES, sizes, u->rank, &attrs[3]));
  mp_arena_t *arena = u->e.module->arena;
  const mp_type_t *padded_type = NULL;
  const mp_type_t *window_type = NULL;
  MP_RETURN_IF_ERROR(mp_type_tensor(arena, array->type->dtype, padded, u->rank, &padded_type));
  MP_RETURN_IF_ERROR(mp_type_tensor(arena, array->type->dtype, sizes, u->rank, &window_type));
  mp_value_t *operands[1 + MP_MAX_RANK] = {array, zero};
  MP_RETURN_IF_ERROR(
      mp_emit_op(&u->e, MP_OP_PAD, operands, 2, padded_type, attrs, 3, &operands[0]));
  for (uint32_t d = 0; d < u->rank; ++d) operands[1 + d] = starts[d];
  return mp_emit_op(&u->e, MP_OP_DYNAMIC_SLICE, operands, 1 + u->rank, window_type, &attrs[3], 1,
                    out_value);
}

// The window of the update and of its mask.
static mp_status_t lower_shape_emit_windows(const updater_t *u, mp_value_t **out_update,
                                            mp_value_t **out_mask) {
  static const unsigned char zeros[16] = {0};
  static const unsigned char one = 1;
  mp_value_t *update = u->spec->operands[1];
  const mp_type_t *scalar = NULL;
  const mp_type_t *flag = NULL;
  const mp_type_t *flags = NULL;
  mp_arena_t *arena = u->e.module->arena;
  MP_RETURN_IF_ERROR(mp_type_tensor(arena, update->type->dtype, NULL, 0, &scalar));
  MP_RETURN_IF_ERROR(mp_type_tensor(arena, MP_DTYPE_BOOL, NULL, 0, &flag));
  MP_RETURN_IF_ERROR(mp_emit_type(&u->e, update->type, MP_DTYPE_BOOL, &flags));
  mp_value_t *starts[MP_MAX_RANK];
  for (uint32_t d = 0; d < u->rank; ++d) {
    MP_RETURN_IF_ERROR(u->part[d] != 0 ? lower_shape_emit_window_start(u, d, &starts[d])
                                       : mp_emit_splat_s64(&u->e, flag, 0, &starts[d]));
  }
  mp_value_t *zero = NULL;
  mp_value_t *no = NULL;
  mp_value_t *yes = NULL;
  MP_RETURN_IF_ERROR(mp_emit_splat(&u->e, scalar, zeros, &zero));
  MP_RETURN_IF_ERROR(mp_emit_splat(&u->e, flag, zeros, &no));
  MP_RETURN_IF_ERROR(mp_emit_splat(&u->e, flags, &one, &yes));
  MP_RETURN_IF_ERROR(lower_shape_emit_window(u, update, zero, starts, out_update));
  return lower_shape_emit_window(u, yes, no, starts, out_mask);
}

static mp_status_t lower_shape_emit_update(const mp_local_op_t *local, mp_module_t *module,
                                           mp_block_t *block, const mp_op_spec_t *spec,
                                           mp_value_t **out_results) {
  const mp_type_t *part = spec->operands[0]->type;
  updater_t u = {.e = {module, block, spec->loc}, .local = local, .spec = spec, .rank = part->rank};
  for (uint32_t d = 0; d < u.rank; ++d) {
    const int64_t whole = local->op->operands[0]->type->dims[d];
    if (part->dims[d] != whole && local->op->operands[1]->type->dims[d] != whole) {
      u.part[d] = part->dims[d];
    }
  }
  mp_value_t *update = NULL;
  mp_value_t *mask = NULL;
  MP_RETURN_IF_ERROR(lower_shape_emit_windows(&u, &update, &mask));
  // The windows are written into the part: at its beginning along dimensions where the window has
  // the part's length, and otherwise at the op's start index.
  const mp_type_t *scalar = NULL;
  MP_RETURN_IF_ERROR(mp_type_tensor(module->arena, MP_DTYPE_S64, NULL, 0, &scalar));
  mp_value_t *operands[2 + MP_MAX_RANK] = {spec->operands[0], spec->operands[0]};
  for (uint32_t d = 0; d < u.rank; ++d) {
    MP_RETURN_IF_ERROR(u.part[d] != 0
                           ? mp_emit_splat_s64(&u.e, scalar, 0, &operands[2 + d])
                           : mp_emit_index(&u.e, spec->operands[2 + d], &operands[2 + d]));
  }
  mp_named_attr_t sizes;
  MP_RETURN_IF_ERROR(mp_emit_ints(&u.e, MP_ATTR_SLICE_SIZES, update->type->dims, u.rank, &sizes));
  mp_value_t *old = NULL;
  MP_RETURN_IF_ERROR(mp_emit_op(&u.e, MP_OP_DYNAMIC_SLICE, operands + 1, 1 + u.rank, update->type,
                                &sizes, 1, &old));
  MP_RETURN_IF_ERROR(mp_emit_select(&u.e, mask, update, old, &operands[1]));
  return mp_emit_op(&u.e, MP_OP_DYNAMIC_UPDATE_SLICE, operands, 2 + u.rank, part, NULL, 0,
                    &out_results[0]);
}

static mp_status_t lower_shape_localize_update(const mp_lowerer_t *low, mp_local_op_t *out) {
  const mp_type_t *whole = low->op->operands[0]->type;
  const mp_type_t *part = NULL;
  MP_RETURN_IF_ERROR(mp_lowerer_local_type(low, out, 0, &part));
  for (uint32_t d = 0; d < whole->rank; ++d) {
    if (part->dims[d] == whole->dims[d]) continue;
    if (low->op->operands[1]->type->dims[d] != whole->dims[d]) out->emit = lower_shape_emit_update;
  }
  return NULL;
}

const mp_local_form_t mp_form_dynamic_update_slice = {.localize = lower_shape_localize_update};
