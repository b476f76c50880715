// The printer: StableHLO text as MLIR prints it.
//
// The text reader (sim/readers/text/text.h) reads the printed text back to an equal module, and
// MLIR with the StableHLO and Shardy dialects can read it too. The exception is minipod.exchange,
// which programs from outside never hold: it is written as a custom call that shows its types.
// Values get new names; attributes that have their default value are left out; constants of more
// than 100 elements are written as hexadecimal bytes.
#ifndef MINIPOD_SIM_IR_PRINT_PRINT_MODULE_H_
#define MINIPOD_SIM_IR_PRINT_PRINT_MODULE_H_

#include "sim/ir/module.h"

typedef struct {
  bool locations;  // a trailing loc(...) behind each op
  bool generic;    // all ops in the generic form
  bool unfused;    // in place of a minipod.fusion the ops of its region, which other tools know
  // Custom calls of target renamed[0] are printed with target renamed[1]; NULL: none.
  const char *renamed[2];
  // Constants of more elements than this become dense<...>, which cannot be read back; 0: no limit.
  uint32_t elide_elements;
} mp_print_options_t;

// Appends the module; `options` may be NULL for the defaults.
MP_NODISCARD mp_status_t mp_module_print(const mp_module_t *module,
                                         const mp_print_options_t *options, mp_strbuf_t *out);

// Appends one op with its regions. Values that are defined outside of it get numbers as they occur.
// `options` may be NULL.
MP_NODISCARD mp_status_t mp_op_print(const mp_op_t *op, const mp_print_options_t *options,
                                     mp_strbuf_t *out);

// Appends the value of a discardable attribute. How an op's own attribute is written depends on the
// op, so that this is not for those.
void mp_attr_print(const mp_attr_t *attr, mp_strbuf_t *out);

#endif  // MINIPOD_SIM_IR_PRINT_PRINT_MODULE_H_
