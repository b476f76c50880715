// References to entries of the tables of attributes and types.
#include "sim/mosaic/read/mosaic_bytecode.h"

mp_status_t mp_mosaic_bc_attr(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                              const mp_mosaic_attr_t **out_attr) {
  const mp_bc_cursor_t before = *c;
  mp_bc_entry_t *entry = NULL;
  uint64_t index = 0;
  MP_RETURN_IF_ERROR(mp_bc_varint(c, &index));
  MP_RETURN_IF_ERROR(mp_bc_attr_entry_at(r, &before, index, &entry));
  if (entry->other == NULL)
    return mp_bc_fail(&before, "entry %llu is not an attribute", (unsigned long long)index);
  *out_attr = entry->other;
  return NULL;
}

mp_status_t mp_mosaic_bc_type(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                              const mp_mosaic_type_t **out_type) {
  const mp_bc_cursor_t before = *c;
  const mp_bc_type_t *type = NULL;
  MP_RETURN_IF_ERROR(mp_bc_type(r, c, &type));
  if (type->other == NULL) return mp_bc_unknown(&before, "a type that Mosaic does not have");
  *out_type = type->other;
  return NULL;
}

// Semaphores are elements of memrefs only, and functions no values.
mp_status_t mp_mosaic_bc_value_type_at(mp_bc_reader_t *r, const mp_bc_cursor_t *c, uint64_t index,
                                       const void **out_type) {
  const mp_bc_type_t *type = NULL;
  MP_RETURN_IF_ERROR(mp_bc_type_at(r, c, index, &type));
  const mp_mosaic_type_t *other = type->other;
  if (other == NULL || other->kind == MP_MOSAIC_FUNCTION ||
      (other->kind == MP_MOSAIC_SCALAR && other->element != MP_MOSAIC_NUMBER))
    return mp_bc_unknown(c, "a value has a type that values of Mosaic do not have");
  *out_type = other;
  return NULL;
}
