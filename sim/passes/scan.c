// The composite chlo.scan: reading it, and choosing its form.
#include "sim/passes/rewrite/rewrite.h"
#include "sim/passes/scan_impl.h"

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
static bool scan_is_element(const mp_scan_form_t *form, const mp_type_t *array,
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
static bool scan_types_agree(const mp_scan_form_t *form, const mp_op_t *op) {
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

static bool scan_read(const mp_op_t *op, mp_scan_form_t *out_form) {
  const mp_attr_t *dict = mp_op_attr(op, MP_ATTR_COMPOSITE_ATTRIBUTES);
  mp_scan_form_t form = {.region = op->regions[0]};
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

// ---- making ----

mp_status_t mp_scan_make(const mp_scan_t *scan, mp_block_t *to, mp_value_t **out_results,
                         bool *out_made) {
  mp_scan_form_t form;
  *out_made = false;
  if (!scan_read(scan->op, &form)) return NULL;
  mp_scan_at_t at = {scan, &form, NULL};
  MP_RETURN_IF_ERROR(mp_rewrite_append_return(scan->module, to, scan->loc, &at.anchor));
  MP_RETURN_IF_ERROR(mp_scan_make_windows(&at, out_results, out_made));
  if (!*out_made) MP_RETURN_IF_ERROR(mp_scan_make_loop(&at, out_results, out_made));
  mp_op_unlink(at.anchor);
  return NULL;
}
