// Entries of the tables by dialect.
#include "sim/readers/bytecode/bytecode_reader.h"

mp_status_t mp_bc_decode_attr(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_entry_t *entry) {
  if (!entry->custom) {
    mp_bc_cursor_t before = *c;
    mp_str_t text;
    MP_RETURN_IF_ERROR(mp_bc_cstring(c, &text));
    return mp_bc_unknown(&before, "the attribute '%.*s' is stored as text, which is not read",
                         (int)(text.size < 200 ? text.size : 200), text.data);
  }
  switch (entry->dialect) {
    case MP_BC_BUILTIN:
      return mp_bc_builtin_attr(r, c, entry);
    case MP_BC_VHLO:
      return mp_bc_vhlo_attr(r, c, entry);
    case MP_BC_SDY:
      return mp_bc_sdy_attr(r, c, entry);
    case MP_BC_STABLEHLO:
    case MP_BC_OTHER_DIALECT:
      break;
  }
  return mp_bc_unknown(c, "attributes of the dialect '%.*s' are not read",
                       MP_STR_ARG(entry->dialect_name));
}

// Older writers have no codes for the narrow floating-point types and write their names instead.
static mp_status_t bytecode_dialects_text_type(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                               mp_bc_type_t *out_type) {
  mp_bc_cursor_t before = *c;
  mp_str_t text;
  MP_RETURN_IF_ERROR(mp_bc_cstring(c, &text));
  mp_dtype_t dtype = mp_dtype_from_name(text);
  if (dtype != MP_DTYPE_INVALID) return mp_bc_scalar_type(r, dtype, NULL, out_type);
  return mp_bc_unknown(&before, "the type '%.*s' is stored as text, which is not read",
                       (int)(text.size < 200 ? text.size : 200), text.data);
}

// The object of a type entry is an mp_bc_type_t in scratch, which points to the IR's type.
mp_status_t mp_bc_decode_type(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_entry_t *entry) {
  mp_bc_type_t *type = MP_ARENA_NEW(r->scratch, mp_bc_type_t);
  MP_RETURN_IF_NULL(type);
  entry->object = type;
  if (!entry->custom) return bytecode_dialects_text_type(r, c, type);
  switch (entry->dialect) {
    case MP_BC_BUILTIN:
      return mp_bc_builtin_type(r, c, type);
    case MP_BC_VHLO:
      return mp_bc_vhlo_type(r, c, type);
    case MP_BC_STABLEHLO:
      return mp_bc_stablehlo_type(r, c, type);
    case MP_BC_SDY:
    case MP_BC_OTHER_DIALECT:
      break;
  }
  return mp_bc_unknown(c, "types of the dialect '%.*s' are not read",
                       MP_STR_ARG(entry->dialect_name));
}
