// Equality of attributes of the struct kinds; private to sim/ir/attr_equal*.c.
#ifndef MINIPOD_SIM_IR_COMPARE_ATTR_EQUAL_H_
#define MINIPOD_SIM_IR_COMPARE_ATTR_EQUAL_H_

#include "sim/ir/attr.h"

// Two attributes of the same kind, which is none of the plain ones.
bool mp_attr_struct_equal(const mp_attr_t *a, const mp_attr_t *b);

#endif  // MINIPOD_SIM_IR_COMPARE_ATTR_EQUAL_H_
