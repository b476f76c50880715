// Which attributes each operation has: names, kinds, and what an absent one means.
//
// VHLO bytecode spells out every attribute, while StableHLO text leaves out those that have their
// default value. The IR holds them all, so that no stage after the readers needs to know defaults.
// The readers, the verifier and the printer use this one table. Attributes that are not in it are
// discardable: they are the user's or a framework's own.
//
// The order within an operation is VHLO's, which is by name. It is also the order of mp_op_t's
// attrs after reading: first the attributes of the schema, then the discardable ones by name.
#ifndef MINIPOD_SIM_IR_SCHEMA_H_
#define MINIPOD_SIM_IR_SCHEMA_H_

#include "sim/ir/module.h"

typedef enum {
  MP_DEFAULT_REQUIRED,    // absent: an error
  MP_DEFAULT_ABSENT,      // optional: stays absent
  MP_DEFAULT_ZERO,        // 0, false, the enumeration's 0, "", empty list, array or dictionary
  MP_DEFAULT_ONE,         // 1, or the enumeration's 1
  MP_DEFAULT_MINUS_ONE,   // -1
  MP_DEFAULT_ZEROS,       // for each window dimension 0 (false)
  MP_DEFAULT_ONES,        // for each window dimension 1
  MP_DEFAULT_NO_PADDING,  // for each window dimension (0, 0)
  MP_DEFAULT_PRECISION,   // an array of two precisions DEFAULT; an empty array counts as absent
} mp_default_t;

typedef struct {
  mp_attr_name_t name;
  uint32_t kinds;  // bit (1 << MP_KIND_...) for each kind it may have
  mp_default_t when_absent;
  mp_dtype_t dtype;          // of INT and FLOAT kinds
  mp_enum_kind_t enum_kind;  // of ENUM kinds, and of the elements of arrays of them
  bool is_symbol;            // a STRING (or ARRAY of them) that names functions: printed as @name
} mp_schema_attr_t;

typedef struct {
  uint32_t count;
  const mp_schema_attr_t *attrs;
} mp_schema_t;

// All rows of an op; it may have none.
mp_schema_t mp_schema_of(mp_opcode_t code);

// The row of one attribute; NULL for a discardable one.
const mp_schema_attr_t *mp_schema_find(mp_opcode_t code, mp_attr_name_t name);

// Makes the complete, ordered list of attributes from those that a program states: the op's own in
// the table's order, absent ones with their default value, then the others in the order given. If
// an own attribute is given twice, the first one counts. The array is allocated in `arena`. Kinds
// are not checked, nor whether required attributes are there; the verifier does both.
MP_NODISCARD mp_status_t mp_schema_complete(mp_arena_t *arena, mp_opcode_t code,
                                            const mp_named_attr_t *attrs, uint32_t num_attrs,
                                            mp_named_attr_t **out_attrs, uint32_t *out_count);

// Whether the value is the one that an absent attribute would have, given the op's other
// attributes.
bool mp_schema_is_default(const mp_op_t *op, const mp_schema_attr_t *row, const mp_attr_t *value);

// A kind in words for error messages, such as "an i64 array".
const char *mp_attr_kind_name(mp_attr_kind_t kind);

#endif  // MINIPOD_SIM_IR_SCHEMA_H_
