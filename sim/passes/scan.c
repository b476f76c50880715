#include "sim/passes/scan.h"

#include "sim/ir/reducer.h"
#include "sim/ir/schema.h"
#include "sim/passes/rewrite/rewrite.h"

enum {
  NARROW = 16,  // elements that a step of the decomposition reads together, at most: transpose
};

// What the composite's attributes say.
typedef struct {
  uint32_t num_inputs, num_outputs, num_carries;
  int64_t dim, length;
  bool is_reverse, is_associative;
  const mp_block_t *region;
} scan_form_t;

// ---- reading ----

bool mp_scan_is(const mp_op_t *op) {
  return op->code == MP_OP_COMPOSITE && op->num_regions == 1 &&
         mp_str_is(mp_op_str(op, MP_ATTR_NAME), "chlo.scan") &&
         mp_op_int(op, MP_ATTR_VERSION, 0) == 1;
}

static bool scan_read_int(const mp_attr_t *dict, const char *name, int64_t *out_value) {
  const mp_attr_t *attr = mp_attr_dict_get_text(dict, name);
  if (attr == NULL || (attr->kind != MP_KIND_INT && attr->kind != MP_KIND_BOOL)) return false;
  *out_value = attr->u.i64;
  return true;
}

// A pair of counts that add up to `total`.
static bool scan_read_segments(const mp_attr_t *dict, const char *name, uint32_t total,
                               uint32_t *out_first, uint32_t *out_second) {
  const mp_attr_t *attr = mp_attr_dict_get_text(dict, name);
  if (attr == NULL || attr->kind != MP_KIND_INTS || attr->u.ints.count != 2) return false;
  const int64_t first = attr->u.ints.values[0], second = attr->u.ints.values[1];
  if (first < 1 || second < 0 || first > total || first + second != total) return false;
  *out_first = (uint32_t)first;
  *out_second = (uint32_t)second;
  return true;
}

// Whether `element` is the type of an array's elements along the scanned dimension.
static bool scan_is_element(const scan_form_t *form, const mp_type_t *array,
                            const mp_type_t *element) {
  if (!mp_type_is_static(array) || !mp_type_is_static(element) || array->dtype != element->dtype ||
      array->rank != element->rank + 1 || form->dim >= array->rank ||
      array->dims[form->dim] != form->length) {
    return false;
  }
  for (uint32_t d = 0; d < element->rank; ++d) {
    if (element->dims[d] != array->dims[d + (d >= form->dim)]) return false;
  }
  return true;
}

// Whether the types of operands, results and region agree.
static bool scan_types_agree(const scan_form_t *form, const mp_op_t *op) {
  const mp_block_t *region = form->region;
  const mp_op_t *end = mp_block_terminator(region);
  if (region->num_args != op->num_operands || end == NULL || end->num_operands != op->num_results) {
    return false;
  }
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_type_t *type = op->operands[i]->type, *arg = region->args[i].type;
    if (i < form->num_inputs ? !scan_is_element(form, type, arg) : !mp_type_equal(type, arg)) {
      return false;
    }
  }
  for (uint32_t i = 0; i < op->num_results; ++i) {
    const mp_type_t *type = op->results[i].type, *made = end->operands[i]->type;
    if (i < form->num_outputs ? !scan_is_element(form, type, made) : !mp_type_equal(type, made)) {
      return false;
    }
  }
  for (uint32_t i = 0; i < form->num_carries; ++i) {
    if (!mp_type_equal(op->operands[form->num_inputs + i]->type,
                       op->results[form->num_outputs + i].type)) {
      return false;
    }
  }
  return true;
}

static bool scan_read(const mp_op_t *op, scan_form_t *out_form) {
  const mp_attr_t *dict = mp_op_attr(op, MP_ATTR_COMPOSITE_ATTRIBUTES);
  scan_form_t form = {.region = op->regions[0]};
  uint32_t num_carries = 0;
  int64_t is_reverse = 0, is_associative = 0;
  if (dict == NULL || dict->kind != MP_KIND_DICT || !scan_read_int(dict, "dimension", &form.dim) ||
      !scan_read_int(dict, "scan_dim_size", &form.length) ||
      !scan_read_int(dict, "is_reverse", &is_reverse) || form.dim < 0 || form.length < 1) {
    return false;
  }
  (void)scan_read_int(dict, "is_associative", &is_associative);
  form.is_reverse = is_reverse != 0;
  form.is_associative = is_associative != 0;
  if (!scan_read_segments(dict, "operandSegmentSizes", op->num_operands, &form.num_inputs,
                          &form.num_carries) ||
      !scan_read_segments(dict, "resultSegmentSizes", op->num_results, &form.num_outputs,
                          &num_carries) ||
      num_carries != form.num_carries || !scan_types_agree(&form, op)) {
    return false;
  }
  *out_form = form;
  return true;
}

// ---- building ----

// Where ops are made: before an anchor, which is the last op of a block for the time being.
typedef struct {
  const mp_scan_t *scan;
  const scan_form_t *form;
  mp_op_t *anchor;
} scan_at_t;

static mp_status_t scan_begin(const mp_scan_t *scan, mp_block_t *block, mp_op_t **out_anchor) {
  const mp_op_spec_t spec = {.code = MP_OP_RETURN, .loc = scan->loc};
  MP_RETURN_IF_ERROR(mp_op_create(scan->module, &spec, out_anchor));
  mp_block_append(block, *out_anchor);
  return NULL;
}

static mp_status_t scan_type(const scan_at_t *at, mp_dtype_t dtype, const int64_t *dims,
                             uint32_t rank, const mp_type_t **out_type) {
  return mp_type_tensor(at->scan->module->arena, dtype, dims, rank, out_type);
}

static mp_status_t scan_put(const scan_at_t *at, mp_opcode_t code, mp_value_t *const *operands,
                            uint32_t num_operands, const mp_type_t *type, mp_value_t **out_value) {
  return mp_rewrite_insert(at->scan->module, at->anchor, code, operands, num_operands, type,
                           out_value);
}

static mp_status_t scan_reshape(const scan_at_t *at, mp_value_t *value, const mp_type_t *type,
                                mp_value_t **out_value) {
  return scan_put(at, MP_OP_RESHAPE, &value, 1, type, out_value);
}

// The last element along dimension `dim`, or the first one.
static mp_status_t scan_take_end(const scan_at_t *at, mp_value_t *value, bool is_first,
                                 const mp_type_t *type, mp_value_t **out_value) {
  const mp_type_t *from = value->type, *part = NULL;
  const int64_t dim = at->form->dim;
  int64_t starts[MP_MAX_RANK] = {0}, sizes[MP_MAX_RANK];
  for (uint32_t d = 0; d < from->rank; ++d) sizes[d] = d == dim ? 1 : from->dims[d];
  starts[dim] = is_first ? 0 : from->dims[dim] - 1;
  mp_value_t *end = NULL;
  MP_RETURN_IF_ERROR(scan_type(at, from->dtype, sizes, from->rank, &part));
  MP_RETURN_IF_ERROR(
      mp_rewrite_insert_slice(at->scan->module, at->anchor, value, starts, part, &end));
  return scan_reshape(at, end, type, out_value);
}

// ---- one associative reduction ----

// The scalar whose copies an initial carry consists of; NULL: there is none.
static mp_status_t scan_find_scalar(const scan_at_t *at, mp_value_t *init, mp_value_t **out_value) {
  *out_value = NULL;
  if (init->type->rank == 0) {
    *out_value = init;
  } else if (init->op != NULL && init->op->code == MP_OP_CONSTANT) {
    const void *element = mp_op_splat(init->op);
    if (element == NULL || mp_dtype_bits(init->type->dtype) < 8) return NULL;
    const mp_type_t *scalar = NULL;
    MP_RETURN_IF_ERROR(scan_type(at, init->type->dtype, NULL, 0, &scalar));
    return mp_rewrite_insert_constant(at->scan->module, at->anchor, scalar, element, out_value);
  } else if (init->op != NULL && init->op->code == MP_OP_BROADCAST_IN_DIM &&
             init->op->operands[0]->type->rank == 0) {
    *out_value = init->op->operands[0];
  }
  return NULL;
}

// Windows that are the prefixes of a dimension, or in reverse its suffixes.
static mp_status_t scan_window_attrs(const scan_at_t *at, uint32_t rank, mp_named_attr_t attrs[2]) {
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

static mp_status_t scan_put_windows(const scan_at_t *at, mp_opcode_t code, mp_value_t *scalar,
                                    mp_value_t **out_value) {
  const mp_scan_t *scan = at->scan;
  const mp_type_t *type = scan->operands[0]->type;
  mp_named_attr_t attrs[2], *all = NULL;
  uint32_t count = 0;
  mp_block_t *reducer = NULL;
  mp_op_t *made = NULL;
  MP_RETURN_IF_ERROR(scan_window_attrs(at, type->rank, attrs));
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

static mp_status_t scan_make_reduction(const scan_at_t *at, mp_value_t **out_results,
                                       bool *out_made) {
  const scan_form_t *form = at->form;
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
  MP_RETURN_IF_ERROR(scan_find_scalar(at, at->scan->operands[1], &scalar));
  if (scalar == NULL || !mp_reducer_may_repeat(scalar, code)) return NULL;
  MP_RETURN_IF_ERROR(scan_put_windows(at, code, scalar, &out_results[0]));
  *out_made = true;
  return scan_take_end(at, out_results[0], form->is_reverse, at->scan->op->results[1].type,
                       &out_results[1]);
}

// ---- a loop over transposed arrays ----

// The type of an array whose scanned dimension comes first, with `length` elements.
static mp_status_t scan_leading_type(const scan_at_t *at, const mp_type_t *array, int64_t length,
                                     const mp_type_t **out_type) {
  int64_t dims[MP_MAX_RANK] = {length};
  for (uint32_t d = 0, k = 1; d < array->rank; ++d) {
    if (d != at->form->dim) dims[k++] = array->dims[d];
  }
  return scan_type(at, array->dtype, dims, array->rank, out_type);
}

static mp_status_t scan_to_front(const scan_at_t *at, mp_value_t *value, mp_value_t **out_value) {
  int64_t order[MP_MAX_RANK] = {at->form->dim};
  for (uint32_t d = 0, k = 1; d < value->type->rank; ++d) {
    if (d != at->form->dim) order[k++] = d;
  }
  const mp_type_t *type = NULL;
  MP_RETURN_IF_ERROR(scan_leading_type(at, value->type, at->form->length, &type));
  return mp_rewrite_insert_transpose(at->scan->module, at->anchor, value, order, type, out_value);
}

static mp_status_t scan_from_front(const scan_at_t *at, mp_value_t *value, const mp_type_t *type,
                                   mp_value_t **out_value) {
  int64_t order[MP_MAX_RANK];
  for (uint32_t d = 0; d < type->rank; ++d) {
    order[d] = d == at->form->dim ? 0 : d < at->form->dim ? d + 1 : d;
  }
  return mp_rewrite_insert_transpose(at->scan->module, at->anchor, value, order, type, out_value);
}

// The operands of a slice at `index` of the first dimension: `first` of them are the caller's.
static mp_status_t scan_put_at(const scan_at_t *at, mp_opcode_t code, mp_value_t *const *first,
                               uint32_t num_first, mp_value_t *index, mp_value_t *zero,
                               const mp_type_t *type, mp_value_t **out_value) {
  const uint32_t rank = first[0]->type->rank;
  mp_value_t *operands[2 + MP_MAX_RANK];
  uint32_t count = 0;
  for (uint32_t i = 0; i < num_first; ++i) operands[count++] = first[i];
  for (uint32_t d = 0; d < rank; ++d) operands[count++] = d == 0 ? index : zero;
  mp_named_attr_t sizes;
  MP_RETURN_IF_ERROR(
      mp_rewrite_ints(at->scan->module, MP_ATTR_SLICE_SIZES, type->dims, rank, &sizes));
  const mp_op_one_t op = {.code = code,
                          .type = type,
                          .operands = operands,
                          .num_operands = count,
                          .attrs = &sizes,
                          .num_attrs = code == MP_OP_DYNAMIC_SLICE ? 1 : 0};
  return mp_rewrite_insert_op(at->scan->module, at->anchor, &op, out_value);
}

static mp_status_t scan_make_condition(const scan_at_t *outer, mp_block_t *block) {
  scan_at_t at = *outer;
  MP_RETURN_IF_ERROR(scan_begin(at.scan, block, &at.anchor));
  mp_module_t *module = at.scan->module;
  mp_value_t *step = &block->args[0], *length = NULL, *less = NULL;
  MP_RETURN_IF_ERROR(
      mp_rewrite_insert_number(module, at.anchor, step->type, at.form->length, &length));
  MP_RETURN_IF_ERROR(mp_rewrite_insert_compare(module, at.anchor, MP_CMP_LT, step, length, &less));
  return mp_rewrite_set_operands(module, at.anchor, &less, 1);
}

// The loop's values: the step, the carries, the inputs, the outputs.
static mp_status_t scan_make_body(const scan_at_t *outer, mp_block_t *block) {
  scan_at_t at = *outer;
  const mp_scan_t *scan = at.scan;
  const scan_form_t *form = at.form;
  const uint32_t first_input = 1 + form->num_carries, first_output = first_input + form->num_inputs;
  mp_module_t *module = scan->module;
  mp_value_t *step = &block->args[0], *index = step, *zero = NULL, *number = NULL;
  mp_value_t **args = MP_ARENA_ARRAY(module->arena, mp_value_t *, form->region->num_args);
  mp_value_t **made = MP_ARENA_ARRAY(module->arena, mp_value_t *, scan->op->num_results);
  mp_value_t **values = MP_ARENA_ARRAY(module->arena, mp_value_t *, block->num_args);
  if (args == NULL || made == NULL || values == NULL) return mp_status_out_of_memory();
  MP_RETURN_IF_ERROR(scan_begin(scan, block, &at.anchor));
  MP_RETURN_IF_ERROR(mp_rewrite_insert_number(module, at.anchor, step->type, 0, &zero));
  if (form->is_reverse) {
    MP_RETURN_IF_ERROR(
        mp_rewrite_insert_number(module, at.anchor, step->type, form->length - 1, &number));
    MP_RETURN_IF_ERROR(
        scan_put(&at, MP_OP_SUBTRACT, (mp_value_t *[]){number, step}, 2, step->type, &index));
  }
  for (uint32_t i = 0; i < form->num_inputs; ++i) {
    mp_value_t *input = &block->args[first_input + i], *part = NULL;
    const mp_type_t *type = NULL;
    MP_RETURN_IF_ERROR(scan_leading_type(outer, scan->operands[i]->type, 1, &type));
    MP_RETURN_IF_ERROR(scan_put_at(&at, MP_OP_DYNAMIC_SLICE, &input, 1, index, zero, type, &part));
    MP_RETURN_IF_ERROR(scan_reshape(&at, part, form->region->args[i].type, &args[i]));
    values[first_input + i] = input;
  }
  for (uint32_t i = 0; i < form->num_carries; ++i) {
    args[form->num_inputs + i] = &block->args[1 + i];
  }
  mp_op_unlink(at.anchor);
  MP_RETURN_IF_ERROR(scan->copy_region(scan->context, form->region, args, block, made));
  MP_RETURN_IF_ERROR(scan_begin(scan, block, &at.anchor));
  for (uint32_t i = 0; i < form->num_outputs; ++i) {
    mp_value_t *pair[2] = {&block->args[first_output + i], NULL};
    const mp_type_t *type = NULL;
    MP_RETURN_IF_ERROR(scan_leading_type(outer, scan->op->results[i].type, 1, &type));
    MP_RETURN_IF_ERROR(scan_reshape(&at, made[i], type, &pair[1]));
    MP_RETURN_IF_ERROR(scan_put_at(&at, MP_OP_DYNAMIC_UPDATE_SLICE, pair, 2, index, zero,
                                   pair[0]->type, &values[first_output + i]));
  }
  for (uint32_t i = 0; i < form->num_carries; ++i) values[1 + i] = made[form->num_outputs + i];
  MP_RETURN_IF_ERROR(mp_rewrite_insert_number(module, at.anchor, step->type, 1, &number));
  MP_RETURN_IF_ERROR(
      scan_put(&at, MP_OP_ADD, (mp_value_t *[]){step, number}, 2, step->type, &values[0]));
  return mp_rewrite_set_operands(module, at.anchor, values, block->num_args);
}

// What the loop starts with.
static mp_status_t scan_put_starts(const scan_at_t *at, mp_value_t **values) {
  const mp_scan_t *scan = at->scan;
  const scan_form_t *form = at->form;
  uint32_t count = 0;
  MP_RETURN_IF_ERROR(
      mp_rewrite_insert_zero(scan->module, at->anchor, MP_DTYPE_S64, &values[count++]));
  for (uint32_t i = 0; i < form->num_carries; ++i) {
    values[count++] = scan->operands[form->num_inputs + i];
  }
  for (uint32_t i = 0; i < form->num_inputs; ++i) {
    MP_RETURN_IF_ERROR(scan_to_front(at, scan->operands[i], &values[count++]));
  }
  for (uint32_t i = 0; i < form->num_outputs; ++i) {
    const mp_type_t *type = NULL;
    mp_value_t *zero = NULL;
    MP_RETURN_IF_ERROR(scan_leading_type(at, scan->op->results[i].type, form->length, &type));
    MP_RETURN_IF_ERROR(mp_rewrite_insert_zero(scan->module, at->anchor, type->dtype, &zero));
    MP_RETURN_IF_ERROR(
        mp_rewrite_insert_copies(scan->module, at->anchor, zero, type, &values[count++]));
  }
  return NULL;
}

// Whether the decomposition's steps read few elements from places next to each other.
static bool scan_has_gaps(const scan_form_t *form, const mp_op_t *op) {
  const mp_type_t *type = op->operands[0]->type;
  double inner = 1, others = 1;
  for (uint32_t d = 0; d < type->rank; ++d) {
    if (d > form->dim) inner *= (double)type->dims[d];
    if (d != form->dim) others *= (double)type->dims[d];
  }
  return inner < NARROW && others > inner;
}

static mp_status_t scan_make_loop(const scan_at_t *at, mp_value_t **out_results, bool *out_made) {
  const mp_scan_t *scan = at->scan;
  const scan_form_t *form = at->form;
  if (!scan_has_gaps(form, scan->op)) return NULL;
  const uint32_t count = 1 + form->num_carries + form->num_inputs + form->num_outputs;
  mp_arena_t *arena = scan->module->arena;
  mp_value_t **starts = MP_ARENA_ARRAY(arena, mp_value_t *, count);
  const mp_type_t **types = MP_ARENA_ARRAY(arena, const mp_type_t *, count);
  if (starts == NULL || types == NULL) return mp_status_out_of_memory();
  MP_RETURN_IF_ERROR(scan_put_starts(at, starts));
  for (uint32_t i = 0; i < count; ++i) types[i] = starts[i]->type;
  mp_block_t *regions[2] = {NULL, NULL};
  mp_op_t *loop = NULL;
  for (int i = 0; i < 2; ++i) {
    MP_RETURN_IF_ERROR(mp_block_create(scan->module, count, types, &regions[i]));
  }
  MP_RETURN_IF_ERROR(scan_make_condition(at, regions[0]));
  MP_RETURN_IF_ERROR(scan_make_body(at, regions[1]));
  const mp_op_spec_t spec = {.code = MP_OP_WHILE,
                             .loc = scan->loc,
                             .num_operands = count,
                             .operands = starts,
                             .num_results = count,
                             .result_types = types,
                             .num_regions = 2,
                             .regions = regions};
  MP_RETURN_IF_ERROR(mp_op_create(scan->module, &spec, &loop));
  mp_block_insert_before(at->anchor, loop);
  const uint32_t first_output = count - form->num_outputs;
  for (uint32_t i = 0; i < form->num_outputs; ++i) {
    MP_RETURN_IF_ERROR(scan_from_front(at, &loop->results[first_output + i],
                                       scan->op->results[i].type, &out_results[i]));
  }
  for (uint32_t i = 0; i < form->num_carries; ++i) {
    out_results[form->num_outputs + i] = &loop->results[1 + i];
  }
  *out_made = true;
  return NULL;
}

mp_status_t mp_scan_make(const mp_scan_t *scan, mp_block_t *to, mp_value_t **out_results,
                         bool *out_made) {
  scan_form_t form;
  *out_made = false;
  if (!scan_read(scan->op, &form)) return NULL;
  scan_at_t at = {scan, &form, NULL};
  MP_RETURN_IF_ERROR(scan_begin(scan, to, &at.anchor));
  MP_RETURN_IF_ERROR(scan_make_reduction(&at, out_results, out_made));
  if (!*out_made) MP_RETURN_IF_ERROR(scan_make_loop(&at, out_results, out_made));
  mp_op_unlink(at.anchor);
  return NULL;
}
