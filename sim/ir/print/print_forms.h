// What the printers of pretty forms share; private to this folder.
#ifndef MINIPOD_SIM_IR_PRINT_PRINT_FORMS_H_
#define MINIPOD_SIM_IR_PRINT_PRINT_FORMS_H_

#include "sim/ir/forms.h"
#include "sim/ir/print/print_parts.h"

// ---- conditions ----

// Whether all operands and results have one type; false for an op without results.
bool mp_form_same_types(const mp_op_t *op);
// Whether the op has just so many operands and results.
bool mp_form_has_counts(const mp_op_t *op, uint32_t operands, uint32_t results);
// The attribute, if it has a kind that its schema allows and that a short form can show; else NULL.
const mp_attr_t *mp_form_own_attr(const mp_op_t *op, mp_attr_name_t name);
// Whether the attribute (or NULL) is an array of enumeration values.
bool mp_form_are_precisions(const mp_attr_t *attr);

// ---- parts ----

// Prints the op's name.
void mp_form_print_name(mp_printer_t *p, const mp_op_t *op);
// Prints an array of enumeration values: [DEFAULT, HIGHEST].
void mp_form_print_precisions(const mp_attr_t *attr, mp_strbuf_t *out);
// Prints the value of an attribute as it stands behind a key, without its type.
void mp_form_print_short(const mp_attr_t *attr, mp_strbuf_t *out);
// Prints " : types" as the form has them.
void mp_form_print_types(mp_printer_t *p, const mp_op_t *op, mp_form_types_t form);
// Prints " {...} : (T) -> T". `said` are the attributes that the form has shown already; they do
// not appear in the dictionary.
void mp_form_print_function_types(mp_printer_t *p, const mp_op_t *op, const mp_attr_name_t *said,
                                  uint32_t num_said);

// ---- ops whose pretty form is their own ----
//
// Each of these prints an op's name and everything behind it in the op's pretty form. It returns
// false, and has printed nothing, when this op does not fit the form; it then prints in the generic
// form. The forms are the assembly formats of the StableHLO, func and Shardy dialects.

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
