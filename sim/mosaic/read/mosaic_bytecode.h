// What the files of the reader of Mosaic's bytecode share; private to this folder. The container,
// the tables and the structure of the IR section are those of sim/readers/bytecode/.
#ifndef MINIPOD_SIM_MOSAIC_READ_MOSAIC_BYTECODE_H_
#define MINIPOD_SIM_MOSAIC_READ_MOSAIC_BYTECODE_H_

#include "sim/mosaic/ir/mosaic_build.h"
#include "sim/readers/bytecode/bytecode_ir.h"

// Reads a module of bytecode.
MP_NODISCARD mp_status_t mp_mosaic_read_bytecode(const void *bytes, size_t size,
                                                 mp_mosaic_module_t **out_module);

// Gives the functions and ops of the module the locations that bytecode beside it has: JAX 0.12
// takes them out of the module, so that they do not change the keys of caches.
MP_NODISCARD mp_status_t mp_mosaic_read_locations(const void *bytes, size_t size,
                                                  mp_mosaic_module_t *module);

// ---- mosaic_bytecode_ir.c ----

// Reads the IR section into the module, after the other sections.
MP_NODISCARD mp_status_t mp_mosaic_read_ir(mp_bc_reader_t *r, mp_mosaic_module_t *module);
// Reads the attributes of the module in the IR section, and nothing else of it. NULL: it has none.
MP_NODISCARD mp_status_t mp_mosaic_read_module_attrs(mp_bc_reader_t *r,
                                                     const mp_mosaic_attr_t **out_dict);

// ---- mosaic_locations.c ----

// Sets the locations of functions and ops to those of the list, an ARRAY in which the module, each
// function, argument and op has one, outer ones before those in their regions. A list of another
// length is not of this module, and changes nothing.
void mp_mosaic_set_locations(mp_mosaic_module_t *module, const mp_mosaic_attr_t *locs);

// ---- mosaic_bytecode_attrs.c, mosaic_bytecode_types.c: entries of the tables ----

MP_NODISCARD mp_status_t mp_mosaic_decode_attr(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                               mp_bc_entry_t *entry);
// The same, and locations, too, which are no attributes of ops.
MP_NODISCARD mp_status_t mp_mosaic_decode_attr_or_loc(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                      mp_bc_entry_t *entry);
MP_NODISCARD mp_status_t mp_mosaic_decode_type(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                               mp_bc_entry_t *entry);

// ---- mosaic_bytecode_maps.c ----

// Reads an affine map after its code.
MP_NODISCARD mp_status_t mp_mosaic_bc_map(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                          const mp_mosaic_map_t **out_map);

// ---- mosaic_bytecode_refs.c: references to entries ----

// Reads the reference of an attribute.
MP_NODISCARD mp_status_t mp_mosaic_bc_attr(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                           const mp_mosaic_attr_t **out_attr);
// Reads the reference of any type that Mosaic has.
MP_NODISCARD mp_status_t mp_mosaic_bc_type(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                           const mp_mosaic_type_t **out_type);
// The type of a value, from its index.
MP_NODISCARD mp_status_t mp_mosaic_bc_value_type_at(mp_bc_reader_t *r, const mp_bc_cursor_t *c,
                                                    uint64_t index, const void **out_type);

#endif  // MINIPOD_SIM_MOSAIC_READ_MOSAIC_BYTECODE_H_
