// The names of ops without their dialect.
#ifndef MINIPOD_SIM_IR_OP_NAME_H_
#define MINIPOD_SIM_IR_OP_NAME_H_

#include <string.h>

#include "sim/ir/module.h"

// "dot_general" of a stablehlo.dot_general; a constant.
static inline const char *mp_op_short_name(const mp_op_t *op) {
  const char *name = mp_op_info(op->code)->name, *dot = strchr(name, '.');
  return dot == NULL ? name : dot + 1;
}

#endif  // MINIPOD_SIM_IR_OP_NAME_H_
