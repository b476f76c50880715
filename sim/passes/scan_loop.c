// A scan as a loop over transposed arrays. The loop's values are the step, the carries, the inputs
// and the outputs.
#include "sim/passes/rewrite/rewrite.h"
#include "sim/passes/scan_impl.h"

enum {
  NARROW = 16,  // elements that a step of the decomposition reads together, at most: transpose
};

// ---- transposed arrays ----

// The type of an array whose scanned dimension comes first.
static mp_status_t scan_loop_leading_type(const mp_scan_at_t *at, const mp_type_t *array,
                                          const mp_type_t **out_type) {
  int64_t dims[MP_MAX_RANK] = {at->form->length};
  for (uint32_t d = 0, k = 1; d < array->rank; ++d) {
    if (d != at->form->dim) dims[k++] = array->dims[d];
  }
  return mp_type_tensor(at->scan->module->arena, array->dtype, dims, array->rank, out_type);
}

static mp_status_t scan_loop_to_front(const mp_scan_at_t *at, mp_value_t *value,
                                      mp_value_t **out_value) {
  int64_t order[MP_MAX_RANK] = {at->form->dim};
  for (uint32_t d = 0, k = 1; d < value->type->rank; ++d) {
    if (d != at->form->dim) order[k++] = d;
  }
  const mp_type_t *type = NULL;
  MP_RETURN_IF_ERROR(scan_loop_leading_type(at, value->type, &type));
  return mp_rewrite_insert_transpose(at->scan->module, at->anchor, value, order, type, out_value);
}

static mp_status_t scan_loop_from_front(const mp_scan_at_t *at, mp_value_t *value,
                                        const mp_type_t *type, mp_value_t **out_value) {
  int64_t order[MP_MAX_RANK];
  for (uint32_t d = 0; d < type->rank; ++d) {
    order[d] = d == at->form->dim ? 0 : d < at->form->dim ? d + 1 : d;
  }
  return mp_rewrite_insert_transpose(at->scan->module, at->anchor, value, order, type, out_value);
}

// ---- the body ----

// Where a step's ops are made, the place of its elements in the arrays, and the number 0.
typedef struct {
  mp_scan_at_t at;
  mp_value_t *index, *zero;
} scan_loop_step_t;

// In reverse, the first step is the one at the end.
static mp_status_t scan_loop_begin_step(scan_loop_step_t *s, mp_value_t *step) {
  mp_module_t *module = s->at.scan->module;
  mp_value_t *pair[2] = {NULL, step};
  s->index = step;
  MP_RETURN_IF_ERROR(mp_rewrite_insert_number(module, s->at.anchor, step->type, 0, &s->zero));
  if (!s->at.form->is_reverse) return NULL;
  MP_RETURN_IF_ERROR(
      mp_rewrite_insert_number(module, s->at.anchor, step->type, s->at.form->length - 1, &pair[0]));
  return mp_rewrite_insert(module, s->at.anchor, MP_OP_SUBTRACT, pair, 2, step->type, &s->index);
}

// The operands of a slice at the step's index of the first dimension: `first` of them are the
// caller's.
static mp_status_t scan_loop_put_at(const scan_loop_step_t *s, mp_opcode_t code,
                                    mp_value_t *const *first, uint32_t num_first,
                                    const mp_type_t *type, mp_value_t **out_value) {
  const uint32_t rank = first[0]->type->rank;
  mp_module_t *module = s->at.scan->module;
  mp_value_t *operands[2 + MP_MAX_RANK];
  uint32_t count = 0;
  for (uint32_t i = 0; i < num_first; ++i) operands[count++] = first[i];
  for (uint32_t d = 0; d < rank; ++d) operands[count++] = d == 0 ? s->index : s->zero;
  mp_named_attr_t sizes;
  MP_RETURN_IF_ERROR(mp_rewrite_ints(module, MP_ATTR_SLICE_SIZES, type->dims, rank, &sizes));
  const mp_op_one_t op = {.code = code,
                          .type = type,
                          .operands = operands,
                          .num_operands = count,
                          .attrs = &sizes,
                          .num_attrs = code == MP_OP_DYNAMIC_SLICE ? 1 : 0};
  return mp_rewrite_insert_op(module, s->at.anchor, &op, out_value);
}

// One element along the first dimension of an array.
static mp_status_t scan_loop_part_type(const scan_loop_step_t *s, const mp_type_t *array,
                                       const mp_type_t **out_type) {
  int64_t dims[MP_MAX_RANK];
  for (uint32_t d = 0; d < array->rank; ++d) dims[d] = d == 0 ? 1 : array->dims[d];
  return mp_type_tensor(s->at.scan->module->arena, array->dtype, dims, array->rank, out_type);
}

// The step's element of an input.
static mp_status_t scan_loop_get(const scan_loop_step_t *s, mp_value_t *input,
                                 const mp_type_t *type, mp_value_t **out_value) {
  const mp_type_t *part_type = NULL;
  mp_value_t *part = NULL;
  MP_RETURN_IF_ERROR(scan_loop_part_type(s, input->type, &part_type));
  MP_RETURN_IF_ERROR(scan_loop_put_at(s, MP_OP_DYNAMIC_SLICE, &input, 1, part_type, &part));
  return mp_rewrite_insert(s->at.scan->module, s->at.anchor, MP_OP_RESHAPE, &part, 1, type,
                           out_value);
}

// The output with the step's element.
static mp_status_t scan_loop_set(const scan_loop_step_t *s, mp_value_t *output, mp_value_t *element,
                                 mp_value_t **out_value) {
  const mp_type_t *part_type = NULL;
  mp_value_t *pair[2] = {output, NULL};
  MP_RETURN_IF_ERROR(scan_loop_part_type(s, output->type, &part_type));
  MP_RETURN_IF_ERROR(mp_rewrite_insert(s->at.scan->module, s->at.anchor, MP_OP_RESHAPE, &element, 1,
                                       part_type, &pair[1]));
  return scan_loop_put_at(s, MP_OP_DYNAMIC_UPDATE_SLICE, pair, 2, output->type, out_value);
}

static mp_status_t scan_loop_make_body(const mp_scan_at_t *outer, mp_block_t *block) {
  const mp_scan_t *scan = outer->scan;
  const mp_scan_form_t *form = outer->form;
  const uint32_t first_input = 1 + form->num_carries, first_output = first_input + form->num_inputs;
  mp_module_t *module = scan->module;
  scan_loop_step_t s = {.at = *outer};
  mp_value_t *step = &block->args[0], *pair[2] = {step, NULL};
  mp_value_t **args = MP_ARENA_ARRAY(module->arena, mp_value_t *, form->region->num_args);
  mp_value_t **made = MP_ARENA_ARRAY(module->arena, mp_value_t *, scan->op->num_results);
  mp_value_t **values = MP_ARENA_ARRAY(module->arena, mp_value_t *, block->num_args);
  if (args == NULL || made == NULL || values == NULL) return mp_status_out_of_memory();
  MP_RETURN_IF_ERROR(mp_rewrite_append_return(module, block, scan->loc, &s.at.anchor));
  MP_RETURN_IF_ERROR(scan_loop_begin_step(&s, step));
  for (uint32_t i = 0; i < form->num_inputs; ++i) {
    values[first_input + i] = &block->args[first_input + i];
    MP_RETURN_IF_ERROR(
        scan_loop_get(&s, values[first_input + i], form->region->args[i].type, &args[i]));
  }
  for (uint32_t i = 0; i < form->num_carries; ++i) {
    args[form->num_inputs + i] = &block->args[1 + i];
  }
  mp_op_unlink(s.at.anchor);
  MP_RETURN_IF_ERROR(scan->copy_region(scan->context, form->region, args, block, made));
  mp_block_append(block, s.at.anchor);
  for (uint32_t i = 0; i < form->num_outputs; ++i) {
    MP_RETURN_IF_ERROR(
        scan_loop_set(&s, &block->args[first_output + i], made[i], &values[first_output + i]));
  }
  for (uint32_t i = 0; i < form->num_carries; ++i) values[1 + i] = made[form->num_outputs + i];
  MP_RETURN_IF_ERROR(mp_rewrite_insert_number(module, s.at.anchor, step->type, 1, &pair[1]));
  MP_RETURN_IF_ERROR(
      mp_rewrite_insert(module, s.at.anchor, MP_OP_ADD, pair, 2, step->type, &values[0]));
  return mp_rewrite_set_operands(module, s.at.anchor, values, block->num_args);
}

// ---- the loop ----

static mp_status_t scan_loop_make_condition(const mp_scan_at_t *outer, mp_block_t *block) {
  mp_scan_at_t at = *outer;
  mp_module_t *module = at.scan->module;
  MP_RETURN_IF_ERROR(mp_rewrite_append_return(module, block, at.scan->loc, &at.anchor));
  mp_value_t *step = &block->args[0], *length = NULL, *less = NULL;
  MP_RETURN_IF_ERROR(
      mp_rewrite_insert_number(module, at.anchor, step->type, at.form->length, &length));
  MP_RETURN_IF_ERROR(mp_rewrite_insert_compare(module, at.anchor, MP_CMP_LT, step, length, &less));
  return mp_rewrite_set_operands(module, at.anchor, &less, 1);
}

// What the loop starts with.
static mp_status_t scan_loop_put_starts(const mp_scan_at_t *at, mp_value_t **values) {
  const mp_scan_t *scan = at->scan;
  const mp_scan_form_t *form = at->form;
  uint32_t count = 0;
  MP_RETURN_IF_ERROR(
      mp_rewrite_insert_zero(scan->module, at->anchor, MP_DTYPE_S64, &values[count++]));
  for (uint32_t i = 0; i < form->num_carries; ++i) {
    values[count++] = scan->operands[form->num_inputs + i];
  }
  for (uint32_t i = 0; i < form->num_inputs; ++i) {
    MP_RETURN_IF_ERROR(scan_loop_to_front(at, scan->operands[i], &values[count++]));
  }
  for (uint32_t i = 0; i < form->num_outputs; ++i) {
    const mp_type_t *type = NULL;
    mp_value_t *zero = NULL;
    MP_RETURN_IF_ERROR(scan_loop_leading_type(at, scan->op->results[i].type, &type));
    MP_RETURN_IF_ERROR(mp_rewrite_insert_zero(scan->module, at->anchor, type->dtype, &zero));
    MP_RETURN_IF_ERROR(
        mp_rewrite_insert_copies(scan->module, at->anchor, zero, type, &values[count++]));
  }
  return NULL;
}

// Whether the decomposition's steps read few elements from places next to each other.
static bool scan_loop_has_gaps(const mp_scan_form_t *form, const mp_op_t *op) {
  const mp_type_t *type = op->operands[0]->type;
  double inner = 1, others = 1;
  for (uint32_t d = 0; d < type->rank; ++d) {
    if (d > form->dim) inner *= (double)type->dims[d];
    if (d != form->dim) others *= (double)type->dims[d];
  }
  return inner < NARROW && others > inner;
}

mp_status_t mp_scan_make_loop(const mp_scan_at_t *at, mp_value_t **out_results, bool *out_made) {
  const mp_scan_t *scan = at->scan;
  const mp_scan_form_t *form = at->form;
  if (!scan_loop_has_gaps(form, scan->op)) return NULL;
  const uint32_t count = 1 + form->num_carries + form->num_inputs + form->num_outputs;
  mp_arena_t *arena = scan->module->arena;
  mp_value_t **starts = MP_ARENA_ARRAY(arena, mp_value_t *, count);
  const mp_type_t **types = MP_ARENA_ARRAY(arena, const mp_type_t *, count);
  if (starts == NULL || types == NULL) return mp_status_out_of_memory();
  MP_RETURN_IF_ERROR(scan_loop_put_starts(at, starts));
  for (uint32_t i = 0; i < count; ++i) types[i] = starts[i]->type;
  mp_block_t *regions[2] = {NULL, NULL};
  mp_op_t *loop = NULL;
  for (int i = 0; i < 2; ++i) {
    MP_RETURN_IF_ERROR(mp_block_create(scan->module, count, types, &regions[i]));
  }
  MP_RETURN_IF_ERROR(scan_loop_make_condition(at, regions[0]));
  MP_RETURN_IF_ERROR(scan_loop_make_body(at, regions[1]));
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
    MP_RETURN_IF_ERROR(scan_loop_from_front(at, &loop->results[first_output + i],
                                            scan->op->results[i].type, &out_results[i]));
  }
  for (uint32_t i = 0; i < form->num_carries; ++i) {
    out_results[form->num_outputs + i] = &loop->results[1 + i];
  }
  *out_made = true;
  return NULL;
}
