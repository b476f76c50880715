// What the printers of pretty forms share; private to sim/ir/print*.c.
#ifndef MINIPOD_SIM_IR_PRINT_PRINT_FORMS_H_
#define MINIPOD_SIM_IR_PRINT_PRINT_FORMS_H_

#include "sim/ir/forms.h"
#include "sim/ir/print/print_parts.h"

// ---- conditions ----

// Operands and results have one type; false without results.
bool mp_form_same_types(const mp_op_t *op);
bool mp_form_has_counts(const mp_op_t *op, uint32_t operands, uint32_t results);
// The attribute, if it has a kind that its schema allows and a short form can show.
const mp_attr_t *mp_form_own_attr(const mp_op_t *op, mp_attr_name_t name);
bool mp_form_are_precisions(const mp_attr_t *attr);

// ---- parts ----

void mp_form_print_name(mp_printer_t *p, const mp_op_t *op);
// [DEFAULT, HIGHEST]
void mp_form_print_precisions(const mp_attr_t *attr, mp_strbuf_t *out);
// The bare spelling of an attribute behind its key.
void mp_form_print_short(const mp_attr_t *attr, mp_strbuf_t *out);
// " : types" of a regular form.
void mp_form_print_types(mp_printer_t *p, const mp_op_t *op, mp_form_types_t form);
// " {...} : (T) -> T"; `said` are the attributes that the form has shown already.
void mp_form_print_function_types(mp_printer_t *p, const mp_op_t *op, const mp_attr_name_t *said,
                                  uint32_t num_said);

// ---- forms of their own; false, and nothing printed, where the op does not fit its form ----

bool mp_form_print_call(mp_printer_t *p, const mp_op_t *op);
bool mp_form_print_compare(mp_printer_t *p, const mp_op_t *op);
bool mp_form_print_composite(mp_printer_t *p, const mp_op_t *op);
bool mp_form_print_computation(mp_printer_t *p, const mp_op_t *op);
bool mp_form_print_constant(mp_printer_t *p, const mp_op_t *op);
bool mp_form_print_convolution(mp_printer_t *p, const mp_op_t *op);
bool mp_form_print_custom_call(mp_printer_t *p, const mp_op_t *op);
bool mp_form_print_dot_general(mp_printer_t *p, const mp_op_t *op);
bool mp_form_print_get_tuple_element(mp_printer_t *p, const mp_op_t *op);
bool mp_form_print_optimization_barrier(mp_printer_t *p, const mp_op_t *op);
bool mp_form_print_propagation_barrier(mp_printer_t *p, const mp_op_t *op);
bool mp_form_print_reduce(mp_printer_t *p, const mp_op_t *op);
bool mp_form_print_reduce_precision(mp_printer_t *p, const mp_op_t *op);
bool mp_form_print_return(mp_printer_t *p, const mp_op_t *op);
bool mp_form_print_sdy_collective(mp_printer_t *p, const mp_op_t *op);
bool mp_form_print_sharding_constraint(mp_printer_t *p, const mp_op_t *op);
bool mp_form_print_sharding_group(mp_printer_t *p, const mp_op_t *op);
bool mp_form_print_slice(mp_printer_t *p, const mp_op_t *op);
bool mp_form_print_while(mp_printer_t *p, const mp_op_t *op);

#endif  // MINIPOD_SIM_IR_PRINT_PRINT_FORMS_H_
