// The printer: StableHLO text as MLIR prints it.
//
// What it writes the text reader (sim/readers/text/text.h) reads back to an equal module, and
// so does MLIR with the StableHLO and Shardy dialects; only minipod.exchange, which programs from
// outside never hold, is written as a custom call that shows its types. Values get fresh names;
// attributes that hold their default are left out; constants of more than 100 elements are written
// as hexadecimal bytes.
#ifndef MINIPOD_SIM_IR_PRINT_PRINT_MODULE_H_
#define MINIPOD_SIM_IR_PRINT_PRINT_MODULE_H_

#include "sim/ir/module.h"

typedef struct {
  bool locations;           // a trailing loc(...) behind each op
  bool generic;             // all ops in the generic form
  uint32_t elide_elements;  // constants of more elements become dense<...>, which cannot be read
                            // back; 0: none
} mp_print_options_t;

// Appends the module; `options` may be NULL for the defaults.
MP_NODISCARD mp_status_t mp_module_print(const mp_module_t *module,
                                         const mp_print_options_t *options, mp_strbuf_t *out);

// Appends one op with its regions; values that are defined outside of it are numbered as they come.
MP_NODISCARD mp_status_t mp_op_print(const mp_op_t *op, const mp_print_options_t *options,
                                     mp_strbuf_t *out);

// Appends a value of an attribute that is no op's own (those print by their op's rules).
void mp_attr_print(const mp_attr_t *attr, mp_strbuf_t *out);

#endif  // MINIPOD_SIM_IR_PRINT_PRINT_MODULE_H_
