// Equality of modules. Tests and fuzzers use it to hold the two readers to each other, and the text
// reader to the printer.
#ifndef MINIPOD_SIM_IR_COMPARE_MODULE_EQUAL_H_
#define MINIPOD_SIM_IR_COMPARE_MODULE_EQUAL_H_

#include "sim/ir/module.h"

// OK when both have the same functions, ops, operands, types and attributes in the same order;
// locations do not count. Otherwise FAILED_PRECONDITION, which says where they differ first.
MP_NODISCARD mp_status_t mp_module_compare(const mp_module_t *a, const mp_module_t *b);

#endif  // MINIPOD_SIM_IR_COMPARE_MODULE_EQUAL_H_
