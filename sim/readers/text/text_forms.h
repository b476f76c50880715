// Shared by the readers of pretty forms; private to this folder. The conventions are those of
// text_parser.h.
#ifndef MINIPOD_SIM_READERS_TEXT_TEXT_FORMS_H_
#define MINIPOD_SIM_READERS_TEXT_TEXT_FORMS_H_

#include "sim/ir/forms.h"
#include "sim/readers/text/text_parser.h"

// ---- types ----

// The number of operands that were read so far.
uint32_t mp_form_num_operands(const mp_text_op_t *op);
// The type of operand `i` where it was defined.
const mp_type_t *mp_form_operand_type(const mp_text_op_t *op, uint32_t i);
// Gives the op one result of this type; nothing is read.
MP_NODISCARD mp_status_t mp_form_set_result_type(mp_text_t *t, mp_text_op_t *op,
                                                 const mp_type_t *type);
// T, T, ...: the operands' types.
MP_NODISCARD mp_status_t mp_form_operand_types(mp_text_t *t, mp_text_op_t *op);
// {name = value, ...}? : types, where `form` is the notation of the types. Sets the types of
// operands and results.
MP_NODISCARD mp_status_t mp_form_types(mp_text_t *t, mp_text_op_t *op, mp_form_types_t form);

// ---- keys and values ----

// A value of this enumeration by its name, such as LT.
MP_NODISCARD mp_status_t mp_form_enum_word(mp_text_t *t, mp_enum_kind_t kind,
                                           const mp_attr_t **out_attr);
// The value of an attribute as it stands behind a key ([1, 2], 3, LT, "text"), in the form of the
// kind that the schema has for it; appends it to op->attrs.
MP_NODISCARD mp_status_t mp_form_key_value(mp_text_t *t, mp_text_op_t *op, mp_attr_name_t name);
// Takes `key`, or `, key` when there must be a comma. If the text has something else, takes nothing
// and returns false.
bool mp_form_accept_key(mp_text_t *t, const char *key, bool comma);
// Takes `key =`, or `, key =` when there must be a comma.
MP_NODISCARD mp_status_t mp_form_expect_key(mp_text_t *t, const char *key, bool comma);

// { ops }: a region whose block has arguments of these names and types; appends it to op->regions.
// The region has a scope of its own, which sees the names outside unless it is isolated.
MP_NODISCARD mp_status_t mp_form_region(mp_text_t *t, mp_text_op_t *op, bool isolated,
                                        const mp_text_tokens_t *names,
                                        const mp_text_types_t *types);

// ---- ops whose pretty form is their own ----
//
// Each of these reads one op after its name: operands, attributes, regions and types. The
// definitions show the form; it is that of the op's assembly format in the StableHLO, func or
// Shardy dialect.

MP_NODISCARD mp_status_t mp_form_read_call(mp_text_t *t, mp_text_op_t *op);
MP_NODISCARD mp_status_t mp_form_read_compare(mp_text_t *t, mp_text_op_t *op);
MP_NODISCARD mp_status_t mp_form_read_composite(mp_text_t *t, mp_text_op_t *op);
MP_NODISCARD mp_status_t mp_form_read_computation(mp_text_t *t, mp_text_op_t *op);
MP_NODISCARD mp_status_t mp_form_read_constant(mp_text_t *t, mp_text_op_t *op);
MP_NODISCARD mp_status_t mp_form_read_convolution(mp_text_t *t, mp_text_op_t *op);
MP_NODISCARD mp_status_t mp_form_read_custom_call(mp_text_t *t, mp_text_op_t *op);
MP_NODISCARD mp_status_t mp_form_read_data_flow_edge(mp_text_t *t, mp_text_op_t *op);
MP_NODISCARD mp_status_t mp_form_read_dot_general(mp_text_t *t, mp_text_op_t *op);
MP_NODISCARD mp_status_t mp_form_read_get_tuple_element(mp_text_t *t, mp_text_op_t *op);
MP_NODISCARD mp_status_t mp_form_read_optimization_barrier(mp_text_t *t, mp_text_op_t *op);
MP_NODISCARD mp_status_t mp_form_read_propagation_barrier(mp_text_t *t, mp_text_op_t *op);
MP_NODISCARD mp_status_t mp_form_read_reduce(mp_text_t *t, mp_text_op_t *op);
MP_NODISCARD mp_status_t mp_form_read_reduce_precision(mp_text_t *t, mp_text_op_t *op);
MP_NODISCARD mp_status_t mp_form_read_return(mp_text_t *t, mp_text_op_t *op);
MP_NODISCARD mp_status_t mp_form_read_sdy_collective(mp_text_t *t, mp_text_op_t *op);
MP_NODISCARD mp_status_t mp_form_read_sharding_constraint(mp_text_t *t, mp_text_op_t *op);
MP_NODISCARD mp_status_t mp_form_read_sharding_group(mp_text_t *t, mp_text_op_t *op);
MP_NODISCARD mp_status_t mp_form_read_slice(mp_text_t *t, mp_text_op_t *op);
MP_NODISCARD mp_status_t mp_form_read_while(mp_text_t *t, mp_text_op_t *op);

#endif  // MINIPOD_SIM_READERS_TEXT_TEXT_FORMS_H_
