// Equality of attributes of the struct kinds; private to this folder.
#ifndef MINIPOD_SIM_IR_ATTR_EQUAL_H_
#define MINIPOD_SIM_IR_ATTR_EQUAL_H_

#include "sim/ir/attr.h"

// Whether two attributes of the same kind are equal; for the kinds that mp_attr_equal (attr.h) does
// not compare itself.
bool mp_attr_struct_equal(const mp_attr_t *a, const mp_attr_t *b);

#endif  // MINIPOD_SIM_IR_ATTR_EQUAL_H_
