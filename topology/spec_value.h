// Values of pod descriptions: from text to numbers and back, and descriptions of valid values.
#ifndef MINIPOD_TOPOLOGY_SPEC_VALUE_H_
#define MINIPOD_TOPOLOGY_SPEC_VALUE_H_

#include "topology/spec.h"

// Writes the value into the member that `out_member` points to, which has the C type of the spec
// type (spec.h). False: the text is not of the type or out of its range; writes nothing.
bool mp_spec_value_parse(mp_spec_type_t type, mp_str_t text, void *out_member);

// Appends text that parses back to the same value.
void mp_spec_value_write(mp_spec_type_t type, const void *member, mp_strbuf_t *out_text);

// The bytes of the member.
size_t mp_spec_value_size(mp_spec_type_t type);

// The valid values of this type, for messages: "a whole number from 1 to 65536".
const char *mp_spec_value_expected(mp_spec_type_t type);

#endif  // MINIPOD_TOPOLOGY_SPEC_VALUE_H_
