// The local forms of ops whose parts need their neighbours' elements: pad, reduce_window and
// convolution; and concatenate, whose operands can be treated as padded to the whole.
//
// All of these read a padded and stretched operand through windows. A part of the result reads one
// interval of it. The device of the part receives the elements of the operand in this interval (its
// box), pads them to the whole interval itself, and then runs the op without padding along that
// dimension. This also applies to PASS dimensions: a dimension may keep its size although it is
// padded, if as much is cut off at its other end.
#include <string.h>

#include "sim/spmd/build/local_builder.h"
#include "sim/spmd/local/lower_form.h"

// How the result reads one dimension of the operand.
typedef struct {
  uint32_t in, out;      // the dimension of the operands and that of the results
  int64_t low, high;     // padding; may be negative
  int64_t interior;      // padding between each two elements
  int64_t stride, size;  // of windows; the size includes a window's holes
} view_t;

enum { MP_MAX_VIEWS = MP_MAX_RANK };

static int64_t lower_window_entry(const mp_op_t *op, mp_attr_name_t name, uint32_t i,
                                  int64_t when_absent) {
  const mp_index_list_t list = mp_op_ints(op, name);
  return i < list.count ? list.values[i] : when_absent;
}

static view_t lower_window_view_of_pad(const mp_op_t *op, uint32_t i) {
  return (view_t){.in = i,
                  .out = i,
                  .low = lower_window_entry(op, MP_ATTR_EDGE_PADDING_LOW, i, 0),
                  .high = lower_window_entry(op, MP_ATTR_EDGE_PADDING_HIGH, i, 0),
                  .interior = lower_window_entry(op, MP_ATTR_INTERIOR_PADDING, i, 0),
                  .stride = 1,
                  .size = 1};
}

static int64_t lower_window_padding_entry(const mp_op_t *op, uint32_t i) {
  const mp_attr_t *table = mp_op_attr(op, MP_ATTR_PADDING);
  return table != NULL && i < table->u.ints.count ? table->u.ints.values[i] : 0;
}

static view_t lower_window_view_of_window(const mp_op_t *op, uint32_t i) {
  const int64_t size = lower_window_entry(op, MP_ATTR_WINDOW_DIMENSIONS, i, 1);
  return (view_t){.in = i,
                  .out = i,
                  .low = lower_window_padding_entry(op, 2 * i),
                  .high = lower_window_padding_entry(op, 2 * i + 1),
                  .interior = lower_window_entry(op, MP_ATTR_BASE_DILATIONS, i, 1) - 1,
                  .stride = lower_window_entry(op, MP_ATTR_WINDOW_STRIDES, i, 1),
                  .size = (size - 1) * lower_window_entry(op, MP_ATTR_WINDOW_DILATIONS, i, 1) + 1};
}

static view_t lower_window_view_of_convolution(const mp_op_t *op, uint32_t i) {
  const int64_t window = lower_window_entry(op, MP_ATTR_KERNEL_SPATIAL_DIMENSIONS, i, 0);
  const int64_t size = op->operands[1]->type->dims[window];
  return (view_t){.in = (uint32_t)lower_window_entry(op, MP_ATTR_INPUT_SPATIAL_DIMENSIONS, i, 0),
                  .out = (uint32_t)lower_window_entry(op, MP_ATTR_OUTPUT_SPATIAL_DIMENSIONS, i, 0),
                  .low = lower_window_padding_entry(op, 2 * i),
                  .high = lower_window_padding_entry(op, 2 * i + 1),
                  .interior = lower_window_entry(op, MP_ATTR_LHS_DILATION, i, 1) - 1,
                  .stride = lower_window_entry(op, MP_ATTR_WINDOW_STRIDES, i, 1),
                  .size = (size - 1) * lower_window_entry(op, MP_ATTR_RHS_DILATION, i, 1) + 1};
}

static uint32_t lower_window_num_views(const mp_op_t *op) {
  if (op->code == MP_OP_CONVOLUTION) return mp_op_ints(op, MP_ATTR_INPUT_SPATIAL_DIMENSIONS).count;
  return op->results[0].type->rank;
}

static view_t lower_window_view_of(const mp_op_t *op, uint32_t i) {
  view_t view = op->code == MP_OP_CONVOLUTION ? lower_window_view_of_convolution(op, i)
                : op->code == MP_OP_PAD       ? lower_window_view_of_pad(op, i)
                                              : lower_window_view_of_window(op, i);
  if (op->operands[0]->type->dims[view.in] <= 1) view.interior = 0;  // there are no two elements
  return view;
}

// The number of operands that are read like this: the first one of pad and convolution, and as many
// of reduce_window as it has results.
static uint32_t lower_window_num_viewed(const mp_op_t *op) {
  return op->code == MP_OP_REDUCE_WINDOW ? op->num_results : 1;
}

// ---- which parts are worth while ----

// If a part needed more from its neighbours than its own length, each part would get most of the
// operand.
bool mp_lowerer_is_window(const mp_lowerer_t *low, uint32_t factor) {
  const mp_op_t *op = low->op;
  int64_t elements = 0;
  if (!mp_type_num_elements(op->results[0].type, &elements) || elements == 0) return false;
  for (uint32_t i = 0; i < lower_window_num_views(op); ++i) {
    const view_t view = lower_window_view_of(op, i);
    if (!mp_lowerer_dim_has(low, op->num_operands, view.out, factor)) continue;
    if (view.size < 1 || view.stride < 1 || view.interior < 0) return false;
    for (uint32_t t = 0; t < mp_lowerer_num_tensors(low); ++t) {
      const mp_atoms_t *list = mp_lowerer_list(low, t, factor);
      const int64_t parts = mp_atoms_product(&low->propagation->space, list);
      const int64_t length = op->results[0].type->dims[view.out] / parts;
      if (parts > 1 && view.size - view.stride > length * view.stride) return false;
    }
    return true;
  }
  return false;
}

// ---- boxes ----

mp_status_t mp_lowerer_move_boxes(const mp_lowerer_t *low, mp_local_op_t *out, uint32_t operand,
                                  uint32_t dim, const int64_t *starts, const int64_t *sizes) {
  const mp_boxes_t *boxes = out->operands[operand];
  if (boxes == NULL) {
    MP_RETURN_IF_ERROR(mp_placement_whole(low->scope, low->op->operands[operand]->type, &boxes));
  }
  mp_boxes_t moved = *boxes;
  const size_t bytes = (size_t)boxes->num_partitions * boxes->rank * sizeof(int64_t);
  int64_t *all_starts = mp_arena_copy(low->arena, boxes->starts, bytes);
  int64_t *all_sizes = mp_arena_copy(low->arena, boxes->sizes, bytes);
  if (all_starts == NULL || all_sizes == NULL) return mp_status_out_of_memory();
  for (uint32_t p = 0; p < boxes->num_partitions; ++p) {
    all_starts[(size_t)p * boxes->rank + dim] = starts[p];
    all_sizes[(size_t)p * boxes->rank + dim] = sizes[p];
  }
  if (out->are_excerpts == NULL) {
    out->are_excerpts = MP_ARENA_ARRAY(low->arena, bool, low->op->num_operands);
    MP_RETURN_IF_NULL(out->are_excerpts);
  }
  out->are_excerpts[operand] = true;
  moved.starts = all_starts;
  moved.sizes = all_sizes;
  return mp_spmd_pool_boxes(low->scope->pool, &moved, &out->operands[operand]);
}

bool mp_boxes_is_cut(const mp_boxes_t *boxes, uint32_t dim) {
  for (uint32_t p = 0; boxes != NULL && p < boxes->num_partitions; ++p) {
    if (boxes->sizes[(size_t)p * boxes->rank + dim] != boxes->dims[dim]) return true;
  }
  return false;
}

static int64_t lower_window_divide_up(int64_t a, int64_t b) {
  return a >= 0 ? (a + b - 1) / b : -(-a / b);
}

// The operand's elements in the interval that a part of `count` results, from `first` on, reads.
static void lower_window_needed_interval(const view_t *view, int64_t dim, int64_t first,
                                         int64_t count, int64_t *out_start, int64_t *out_size) {
  *out_start = *out_size = 0;
  if (count == 0) return;
  const int64_t step = view->interior + 1;
  const int64_t from = first * view->stride - view->low;
  // Both ends count elements of the stretched operand.
  const int64_t end = from + (count - 1) * view->stride + view->size;
  int64_t begin = lower_window_divide_up(from, step);
  int64_t limit = lower_window_divide_up(end, step);
  if (begin < 0) begin = 0;
  if (limit > dim) limit = dim;
  if (begin >= limit) return;
  *out_start = begin;
  *out_size = limit - begin;
}

// Whether the dimension is read unchanged, so that the operand's parts are the result's.
static bool lower_window_is_plain(const view_t *view) {
  return view->low == 0 && view->high == 0 && view->interior == 0 && view->stride == 1 &&
         view->size == 1;
}

static mp_status_t lower_window_widen_operand(const mp_lowerer_t *low, mp_local_op_t *out,
                                              uint32_t operand, const view_t *view) {
  const mp_boxes_t *parts = out->results[0];
  int64_t *starts = MP_ARENA_ARRAY(low->arena, int64_t, parts->num_partitions);
  int64_t *sizes = MP_ARENA_ARRAY(low->arena, int64_t, parts->num_partitions);
  if (starts == NULL || sizes == NULL) return mp_status_out_of_memory();
  const int64_t dim = low->op->operands[operand]->type->dims[view->in];
  for (uint32_t p = 0; p < parts->num_partitions; ++p) {
    const size_t at = (size_t)p * parts->rank + view->out;
    lower_window_needed_interval(view, dim, parts->starts[at], parts->sizes[at], &starts[p],
                                 &sizes[p]);
  }
  return mp_lowerer_move_boxes(low, out, operand, view->in, starts, sizes);
}

// ---- the local op ----

// Sets entry `i` of the attribute `name` to `value`; tables have two entries per dimension.
static mp_status_t lower_window_set_entry(const mp_lowerer_t *low, mp_local_op_t *out,
                                          mp_attr_name_t name, uint32_t i, int64_t value) {
  for (uint32_t a = 0; a < low->op->num_attrs; ++a) {
    if (out->attrs[a].name != name) continue;
    const mp_attr_t *old = out->attrs[a].value;
    int64_t *values =
        mp_arena_copy(low->arena, old->u.ints.values, old->u.ints.count * sizeof(*values));
    MP_RETURN_IF_NULL(values);
    if (old->u.ints.rank == 1) {
      values[i] = value;
      return mp_attr_make_ints(low->arena, values, old->u.ints.count, &out->attrs[a].value);
    }
    values[2 * i] = values[2 * i + 1] = value;
    return mp_attr_make_table(low->arena, values, old->u.ints.dims[0], 2, &out->attrs[a].value);
  }
  return NULL;
}

static mp_status_t lower_window_drop_padding(const mp_lowerer_t *low, mp_local_op_t *out,
                                             uint32_t i) {
  static const mp_attr_name_t zeros[] = {MP_ATTR_PADDING, MP_ATTR_EDGE_PADDING_LOW,
                                         MP_ATTR_EDGE_PADDING_HIGH, MP_ATTR_INTERIOR_PADDING};
  for (uint32_t k = 0; k < 4; ++k)
    MP_RETURN_IF_ERROR(lower_window_set_entry(low, out, zeros[k], i, 0));
  MP_RETURN_IF_ERROR(lower_window_set_entry(low, out, MP_ATTR_BASE_DILATIONS, i, 1));
  return lower_window_set_entry(low, out, MP_ATTR_LHS_DILATION, i, 1);
}

// Replaces the elements after the end of a part that is shorter than the longest by `fill`.
static mp_status_t lower_window_emit_mask(const mp_local_builder_t *e, mp_value_t *value,
                                          const mp_boxes_t *boxes, uint32_t dim, mp_value_t *fill,
                                          mp_value_t **out_value) {
  const int64_t longest = value->type->dims[dim];
  int64_t *sizes = MP_ARENA_ARRAY(e->module->arena, int64_t, boxes->num_partitions);
  MP_RETURN_IF_NULL(sizes);
  bool is_needed = false;
  for (uint32_t p = 0; p < boxes->num_partitions; ++p) {
    sizes[p] = boxes->sizes[(size_t)p * boxes->rank + dim];
    is_needed |= sizes[p] != longest;
  }
  *out_value = value;
  if (!is_needed) return NULL;
  const mp_type_t *line = NULL;
  mp_value_t *count = NULL;
  mp_value_t *size = NULL;
  mp_value_t *is_own = NULL;
  mp_value_t *others = NULL;
  const int64_t along = dim;
  MP_RETURN_IF_ERROR(mp_type_tensor(e->module->arena, MP_DTYPE_S64, &longest, 1, &line));
  MP_RETURN_IF_ERROR(mp_emit_iota(e, line, 0, &count));
  MP_RETURN_IF_ERROR(mp_append_lookup(&(mp_append_at_t){e->module, e->block, e->loc}, MP_DTYPE_S64,
                                      sizes, boxes->num_partitions, &size));
  MP_RETURN_IF_ERROR(mp_emit_broadcast(e, size, NULL, line, &size));
  MP_RETURN_IF_ERROR(mp_emit_compare(e, MP_CMP_LT, count, size, &is_own));
  MP_RETURN_IF_ERROR(mp_emit_broadcast(e, is_own, &along, value->type, &is_own));
  MP_RETURN_IF_ERROR(mp_emit_broadcast(e, fill, NULL, value->type, &others));
  return mp_emit_select(e, is_own, value, others, out_value);
}

// Pads by `around` on both sides, and as the view does between elements.
static mp_status_t lower_window_emit_pad(const mp_local_builder_t *e, const view_t *view,
                                         int64_t around, mp_value_t *fill, mp_value_t *value,
                                         mp_value_t **out_value) {
  const uint32_t dim = view->in;
  const uint32_t rank = value->type->rank;
  int64_t edges[MP_MAX_RANK] = {0}, between[MP_MAX_RANK] = {0}, dims[MP_MAX_RANK];
  edges[dim] = around;
  between[dim] = view->interior;
  memcpy(dims, value->type->dims, rank * sizeof(*dims));
  if (dims[dim] > 0) dims[dim] += (dims[dim] - 1) * view->interior;
  dims[dim] += 2 * around;
  mp_named_attr_t attrs[3];
  MP_RETURN_IF_ERROR(mp_emit_ints(e, MP_ATTR_EDGE_PADDING_HIGH, edges, rank, &attrs[0]));
  MP_RETURN_IF_ERROR(mp_emit_ints(e, MP_ATTR_EDGE_PADDING_LOW, edges, rank, &attrs[1]));
  MP_RETURN_IF_ERROR(mp_emit_ints(e, MP_ATTR_INTERIOR_PADDING, between, rank, &attrs[2]));
  const mp_type_t *type = NULL;
  MP_RETURN_IF_ERROR(mp_type_tensor(e->module->arena, value->type->dtype, dims, rank, &type));
  return mp_emit_op(e, MP_OP_PAD, (mp_value_t *[]){value, fill}, 2, type, attrs, 3, out_value);
}

// Takes `length` elements along `dim`, from a start that differs between partitions.
static mp_status_t lower_window_emit_cut(const mp_local_builder_t *e, mp_value_t *value,
                                         uint32_t dim, int64_t length, const int64_t *starts,
                                         uint32_t num_partitions, mp_value_t **out_value) {
  const uint32_t rank = value->type->rank;
  int64_t dims[MP_MAX_RANK];
  memcpy(dims, value->type->dims, rank * sizeof(*dims));
  dims[dim] = length;
  const mp_type_t *type = NULL;
  const mp_type_t *scalar = NULL;
  MP_RETURN_IF_ERROR(mp_type_tensor(e->module->arena, value->type->dtype, dims, rank, &type));
  MP_RETURN_IF_ERROR(mp_type_tensor(e->module->arena, MP_DTYPE_S64, NULL, 0, &scalar));
  mp_value_t *operands[1 + MP_MAX_RANK] = {value};
  for (uint32_t d = 0; d < rank; ++d) {
    MP_RETURN_IF_ERROR(d == dim ? mp_append_lookup(&(mp_append_at_t){e->module, e->block, e->loc},
                                                   MP_DTYPE_S64, starts, num_partitions,
                                                   &operands[1 + d])
                                : mp_emit_splat_s64(e, scalar, 0, &operands[1 + d]));
  }
  mp_named_attr_t sizes;
  MP_RETURN_IF_ERROR(mp_emit_ints(e, MP_ATTR_SLICE_SIZES, dims, rank, &sizes));
  return mp_emit_op(e, MP_OP_DYNAMIC_SLICE, operands, 1 + rank, type, &sizes, 1, out_value);
}

// Replaces the elements that a part received by the interval that it reads: pads them on both sides
// by the length of the interval, and then slices the interval from that.
static mp_status_t lower_window_emit_view(const mp_local_builder_t *e, const mp_local_op_t *local,
                                          uint32_t operand, const view_t *view, mp_value_t *fill,
                                          mp_value_t **value) {
  const mp_boxes_t *boxes = local->operands[operand];
  const mp_boxes_t *parts = local->results[0];
  const uint32_t count = boxes->num_partitions;
  int64_t longest = 0;
  for (uint32_t p = 0; p < count; ++p) {
    const int64_t size = parts->sizes[(size_t)p * parts->rank + view->out];
    if (size > longest) longest = size;
  }
  const int64_t length = (longest - 1) * view->stride + view->size;
  int64_t *starts = MP_ARENA_ARRAY(e->module->arena, int64_t, count);
  MP_RETURN_IF_NULL(starts);
  for (uint32_t p = 0; p < count; ++p) {
    const size_t at = (size_t)p * boxes->rank + view->in;
    if (boxes->sizes[at] == 0) continue;  // the interval holds only padding
    const int64_t own = boxes->starts[at] * (view->interior + 1) + view->low;
    const int64_t wanted = parts->starts[(size_t)p * parts->rank + view->out] * view->stride;
    starts[p] = length + wanted - own;
  }
  // In a concatenation the next piece covers the elements after a shorter piece.
  if (local->op->code != MP_OP_CONCATENATE) {
    MP_RETURN_IF_ERROR(lower_window_emit_mask(e, *value, boxes, view->in, fill, value));
  }
  MP_RETURN_IF_ERROR(lower_window_emit_pad(e, view, length, fill, *value, value));
  return lower_window_emit_cut(e, *value, view->in, length, starts, count, value);
}

static mp_status_t lower_window_emit_fill(const mp_local_builder_t *e, const mp_local_op_t *local,
                                          const mp_op_spec_t *spec, uint32_t operand,
                                          mp_value_t **out_value) {
  static const unsigned char zero[16] = {0};
  const mp_op_t *op = local->op;
  if (op->code != MP_OP_CONVOLUTION) {
    *out_value = spec->operands[lower_window_num_viewed(op) + operand];
    return NULL;
  }
  const mp_type_t *scalar = NULL;
  MP_RETURN_IF_ERROR(
      mp_type_tensor(e->module->arena, spec->operands[0]->type->dtype, NULL, 0, &scalar));
  return mp_emit_splat(e, scalar, zero, out_value);
}

static mp_status_t lower_window_emit_windows(const mp_local_op_t *local, mp_module_t *module,
                                             mp_block_t *block, const mp_op_spec_t *spec,
                                             mp_value_t **out_results) {
  const mp_local_builder_t e = {module, block, spec->loc};
  const mp_op_t *op = local->op;
  mp_value_t **operands = MP_ARENA_ARRAY(module->arena, mp_value_t *, spec->num_operands);
  MP_RETURN_IF_NULL(operands);
  memcpy(operands, spec->operands, spec->num_operands * sizeof(*operands));
  for (uint32_t i = 0; i < lower_window_num_viewed(op); ++i) {
    mp_value_t *fill = NULL;
    MP_RETURN_IF_ERROR(lower_window_emit_fill(&e, local, spec, i, &fill));
    for (uint32_t v = 0; v < lower_window_num_views(op); ++v) {
      const view_t view = lower_window_view_of(op, v);
      if (lower_window_is_plain(&view) || !mp_boxes_is_cut(local->results[0], view.out)) continue;
      MP_RETURN_IF_ERROR(lower_window_emit_view(&e, local, i, &view, fill, &operands[i]));
    }
  }
  mp_op_spec_t changed = *spec;
  changed.operands = operands;
  mp_op_t *copy = NULL;
  MP_RETURN_IF_ERROR(mp_op_create(module, &changed, &copy));
  mp_block_append(block, copy);
  for (uint32_t i = 0; i < spec->num_results; ++i) out_results[i] = &copy->results[i];
  return NULL;
}

mp_status_t mp_lowerer_widen(const mp_lowerer_t *low, mp_local_op_t *out) {
  for (uint32_t v = 0; v < lower_window_num_views(low->op); ++v) {
    const view_t view = lower_window_view_of(low->op, v);
    if (lower_window_is_plain(&view) || !mp_boxes_is_cut(out->results[0], view.out)) continue;
    for (uint32_t i = 0; i < lower_window_num_viewed(low->op); ++i) {
      MP_RETURN_IF_ERROR(lower_window_widen_operand(low, out, i, &view));
    }
    MP_RETURN_IF_ERROR(lower_window_drop_padding(low, out, v));
    out->emit = lower_window_emit_windows;
  }
  return NULL;
}

// ---- concatenate ----

// Each piece takes an array of the part's length, so this is limited to a few pieces.
enum { MP_MAX_JOINED = 8 };

static bool lower_window_is_short_row(const mp_lowerer_t *low, uint32_t factor) {
  (void)factor;
  int64_t elements = 0;
  return low->op->num_operands <= MP_MAX_JOINED &&
         mp_type_num_elements(low->op->results[0].type, &elements) && elements != 0;
}

// How the result reads piece `i`: padded by the length of the pieces before it.
static view_t lower_window_view_of_piece(const mp_op_t *op, uint32_t i) {
  const uint32_t dim = (uint32_t)mp_op_int(op, MP_ATTR_DIMENSION, 0);
  view_t view = {.in = dim, .out = dim, .stride = 1, .size = 1};
  for (uint32_t k = 0; k < i; ++k) view.low += op->operands[k]->type->dims[dim];
  view.high = op->results[0].type->dims[dim] - view.low - op->operands[i]->type->dims[dim];
  return view;
}

// Which elements of a part are at or after `first` along `dim`.
static mp_status_t lower_window_emit_is_behind(const mp_local_builder_t *e, const mp_boxes_t *parts,
                                               const mp_type_t *type, uint32_t dim, int64_t first,
                                               mp_value_t **out_value) {
  int64_t *firsts = MP_ARENA_ARRAY(e->module->arena, int64_t, parts->num_partitions);
  MP_RETURN_IF_NULL(firsts);
  for (uint32_t p = 0; p < parts->num_partitions; ++p) {
    firsts[p] = first - parts->starts[(size_t)p * parts->rank + dim];
  }
  const int64_t along = dim;
  const mp_type_t *line = NULL;
  mp_value_t *count = NULL;
  mp_value_t *bound = NULL;
  MP_RETURN_IF_ERROR(mp_type_tensor(e->module->arena, MP_DTYPE_S64, &type->dims[dim], 1, &line));
  MP_RETURN_IF_ERROR(mp_emit_iota(e, line, 0, &count));
  MP_RETURN_IF_ERROR(mp_append_lookup(&(mp_append_at_t){e->module, e->block, e->loc}, MP_DTYPE_S64,
                                      firsts, parts->num_partitions, &bound));
  MP_RETURN_IF_ERROR(mp_emit_broadcast(e, bound, NULL, line, &bound));
  MP_RETURN_IF_ERROR(mp_emit_compare(e, MP_CMP_GE, count, bound, &count));
  return mp_emit_broadcast(e, count, &along, type, out_value);
}

static mp_status_t lower_window_emit_pieces(const mp_local_op_t *local, mp_module_t *module,
                                            mp_block_t *block, const mp_op_spec_t *spec,
                                            mp_value_t **out_results) {
  static const unsigned char zero[16] = {0};
  const mp_local_builder_t e = {module, block, spec->loc};
  const mp_type_t *type = spec->result_types[0];
  const mp_type_t *scalar = NULL;
  mp_value_t *fill = NULL;
  mp_value_t *joined = NULL;
  MP_RETURN_IF_ERROR(mp_type_tensor(module->arena, type->dtype, NULL, 0, &scalar));
  MP_RETURN_IF_ERROR(mp_emit_splat(&e, scalar, zero, &fill));
  for (uint32_t i = 0; i < spec->num_operands; ++i) {
    const view_t view = lower_window_view_of_piece(local->op, i);
    mp_value_t *piece = spec->operands[i];
    MP_RETURN_IF_ERROR(lower_window_emit_view(&e, local, i, &view, fill, &piece));
    if (i != 0) {
      mp_value_t *is_own = NULL;
      MP_RETURN_IF_ERROR(
          lower_window_emit_is_behind(&e, local->results[0], type, view.out, view.low, &is_own));
      MP_RETURN_IF_ERROR(mp_emit_select(&e, is_own, piece, joined, &piece));
    }
    joined = piece;
  }
  out_results[0] = joined;
  return NULL;
}

static mp_status_t lower_window_localize_pieces(const mp_lowerer_t *low, mp_local_op_t *out) {
  const uint32_t dim = (uint32_t)mp_op_int(low->op, MP_ATTR_DIMENSION, 0);
  if (!mp_boxes_is_cut(out->results[0], dim)) return NULL;
  for (uint32_t i = 0; i < low->op->num_operands; ++i) {
    const view_t view = lower_window_view_of_piece(low->op, i);
    MP_RETURN_IF_ERROR(lower_window_widen_operand(low, out, i, &view));
  }
  out->emit = lower_window_emit_pieces;
  return NULL;
}

const mp_local_form_t mp_form_concatenate = {.is_permutable = lower_window_is_short_row,
                                             .localize = lower_window_localize_pieces};
