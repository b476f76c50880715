// StableHLO's pretty forms as data, for the printer and the text reader.
//
// A regular form is
//     operands, key = attribute, ... {other attributes} : types
// and differs from op to op only in its keys and in how it writes its types. A form that does not
// fit this pattern is SPECIAL: the printer and the reader have a function for it. Ops without an
// entry in the table have only the generic form.
#ifndef MINIPOD_SIM_IR_FORMS_H_
#define MINIPOD_SIM_IR_FORMS_H_

#include "sim/ir/module.h"

typedef enum {
  MP_FORM_GENERIC,   // no pretty form
  MP_FORM_SAME,      // one type when all operands and results have it, otherwise a function type
  MP_FORM_FUNCTION,  // (T, T) -> T
  MP_FORM_RESULT,    // the result's type (operands, if any, have what it implies)
  MP_FORM_SELECT,    // predicate's type, value's type; or a function type
  MP_FORM_COMPLEX,   // the result's type, operands have its real part; or a function type
  MP_FORM_OPERAND,   // the operand's type; the result, if any, has the same
  MP_FORM_SPECIAL,   // see the functions in print_forms.h and text_forms.h
} mp_form_types_t;

enum { MP_FORM_MAX_KEYS = 3 };

typedef struct {
  const char *key;
  mp_attr_name_t attr;
  bool optional;  // left out when it holds its default
} mp_form_key_t;

typedef struct {
  mp_form_types_t types;
  mp_form_key_t keys[MP_FORM_MAX_KEYS];  // the first one whose `key` is NULL ends the list
} mp_form_t;

// The form of an op; its `types` is MP_FORM_GENERIC when it has no pretty form.
const mp_form_t *mp_form_of(mp_opcode_t code);

#endif  // MINIPOD_SIM_IR_FORMS_H_
