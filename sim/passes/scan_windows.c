// One associative reduction of an array, as the reduction of windows.
#include "sim/ir/reducer.h"
#include "sim/ir/schema.h"
#include "sim/passes/rewrite/rewrite.h"
#include "sim/passes/scan_impl.h"

// The scalar whose copies an initial carry consists of; NULL: there is none.
static mp_status_t scan_windows_find_scalar(const mp_scan_at_t *at, mp_value_t *init,
                                            mp_value_t **out_value) {
  *out_value = NULL;
  if (init->type->rank == 0) {
    *out_value = init;
  } else if (init->op != NULL && init->op->code == MP_OP_CONSTANT) {
    const void *element = mp_op_splat(init->op);
    if (element == NULL || mp_dtype_bits(init->type->dtype) < 8) return NULL;
    const mp_type_t *scalar = NULL;
    MP_RETURN_IF_ERROR(
        mp_type_tensor(at->scan->module->arena, init->type->dtype, NULL, 0, &scalar));
    return mp_rewrite_insert_constant(at->scan->module, at->anchor, scalar, element, out_value);
  } else if (init->op != NULL && init->op->code == MP_OP_BROADCAST_IN_DIM &&
             init->op->operands[0]->type->rank == 0) {
    *out_value = init->op->operands[0];
  }
  return NULL;
}

// Windows that are the prefixes of a dimension, or in reverse its suffixes.
static mp_status_t scan_windows_attrs(const mp_scan_at_t *at, uint32_t rank,
                                      mp_named_attr_t attrs[2]) {
  const int64_t dim = at->form->dim;
  int64_t window[MP_MAX_RANK], padding[2 * MP_MAX_RANK] = {0};
  for (uint32_t d = 0; d < rank; ++d) window[d] = 1;
  window[dim] = at->form->length;
  padding[2 * dim + at->form->is_reverse] = at->form->length - 1;
  mp_module_t *module = at->scan->module;
  const mp_attr_t *table = NULL;
  MP_RETURN_IF_ERROR(mp_attr_make_table(module->arena, padding, rank, 2, &table));
  attrs[1] = mp_rewrite_attr(MP_ATTR_PADDING, table);
  return mp_rewrite_ints(module, MP_ATTR_WINDOW_DIMENSIONS, window, rank, &attrs[0]);
}

static mp_status_t scan_windows_put(const mp_scan_at_t *at, mp_opcode_t code, mp_value_t *scalar,
                                    mp_value_t **out_value) {
  const mp_scan_t *scan = at->scan;
  const mp_type_t *type = scan->operands[0]->type;
  mp_named_attr_t attrs[2], *all = NULL;
  uint32_t count = 0;
  mp_block_t *reducer = NULL;
  mp_op_t *made = NULL;
  MP_RETURN_IF_ERROR(scan_windows_attrs(at, type->rank, attrs));
  MP_RETURN_IF_ERROR(
      mp_schema_complete(scan->module->arena, MP_OP_REDUCE_WINDOW, attrs, 2, &all, &count));
  MP_RETURN_IF_ERROR(mp_block_create_reducer(scan->module, code, type->dtype, scan->loc, &reducer));
  const mp_op_spec_t spec = {.code = MP_OP_REDUCE_WINDOW,
                             .loc = scan->loc,
                             .num_operands = 2,
                             .operands = (mp_value_t *[]){scan->operands[0], scalar},
                             .num_results = 1,
                             .result_types = &type,
                             .num_regions = 1,
                             .regions = &reducer,
                             .num_attrs = count,
                             .attrs = all};
  MP_RETURN_IF_ERROR(mp_op_create(scan->module, &spec, &made));
  mp_block_insert_before(at->anchor, made);
  *out_value = &made->results[0];
  return NULL;
}

// The last element along dimension `dim`, or the first one.
static mp_status_t scan_windows_take_end(const mp_scan_at_t *at, mp_value_t *value, bool is_first,
                                         const mp_type_t *type, mp_value_t **out_value) {
  mp_module_t *module = at->scan->module;
  const mp_type_t *from = value->type, *part = NULL;
  const int64_t dim = at->form->dim;
  int64_t starts[MP_MAX_RANK] = {0}, sizes[MP_MAX_RANK];
  for (uint32_t d = 0; d < from->rank; ++d) sizes[d] = d == dim ? 1 : from->dims[d];
  starts[dim] = is_first ? 0 : from->dims[dim] - 1;
  mp_value_t *end = NULL;
  MP_RETURN_IF_ERROR(mp_type_tensor(module->arena, from->dtype, sizes, from->rank, &part));
  MP_RETURN_IF_ERROR(mp_rewrite_insert_slice(module, at->anchor, value, starts, part, &end));
  return mp_rewrite_insert(module, at->anchor, MP_OP_RESHAPE, &end, 1, type, out_value);
}

mp_status_t mp_scan_make_windows(const mp_scan_at_t *at, mp_value_t **out_results, bool *out_made) {
  const mp_scan_form_t *form = at->form;
  if (!form->is_associative || form->num_inputs != 1 || form->num_outputs != 1 ||
      form->num_carries != 1) {
    return NULL;
  }
  const mp_op_t *end = mp_block_terminator(form->region);
  const mp_value_t *result = end->operands[0];
  if (result != end->operands[1]) return NULL;
  const mp_opcode_t code = mp_reduce_kind_opcode(mp_region_kind(form->region, &result, 1));
  if (code == MP_OP_COUNT) return NULL;
  mp_value_t *scalar = NULL;
  MP_RETURN_IF_ERROR(scan_windows_find_scalar(at, at->scan->operands[1], &scalar));
  if (scalar == NULL || !mp_reducer_may_repeat(scalar, code)) return NULL;
  MP_RETURN_IF_ERROR(scan_windows_put(at, code, scalar, &out_results[0]));
  *out_made = true;
  return scan_windows_take_end(at, out_results[0], form->is_reverse, at->scan->op->results[1].type,
                               &out_results[1]);
}
