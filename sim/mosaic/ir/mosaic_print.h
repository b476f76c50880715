// What the files of the printer share; private to this folder.
#ifndef MINIPOD_SIM_MOSAIC_IR_MOSAIC_PRINT_H_
#define MINIPOD_SIM_MOSAIC_IR_MOSAIC_PRINT_H_

#include "sim/mosaic/ir/mosaic_ir.h"

// {name = value, ...}; nothing for an empty list.
void mp_mosaic_print_attrs(const mp_mosaic_named_t *items, uint32_t count, mp_strbuf_t *out);
// An attribute with its type.
void mp_mosaic_print_attr(const mp_mosaic_attr_t *attr, mp_strbuf_t *out);

#endif  // MINIPOD_SIM_MOSAIC_IR_MOSAIC_PRINT_H_
