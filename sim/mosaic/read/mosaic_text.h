// What the files of the reader of Mosaic's text share; private to this folder. The state, tokens,
// aliases, locations and scopes are those of sim/readers/text/text_parser.h, whose conventions hold
// here, too: a function reads what its comment shows, and leaves `tok` behind it.
#ifndef MINIPOD_SIM_MOSAIC_READ_MOSAIC_TEXT_H_
#define MINIPOD_SIM_MOSAIC_READ_MOSAIC_TEXT_H_

#include "sim/mosaic/ir/mosaic_build.h"
#include "sim/readers/text/text_parser.h"

typedef MP_ARRAY(const mp_mosaic_type_t *) mp_mosaic_types_t;
typedef MP_ARRAY(mp_mosaic_named_t) mp_mosaic_items_t;

// Reads a module of the text's `size` bytes.
MP_NODISCARD mp_status_t mp_mosaic_read_text(const char *text, size_t size,
                                             mp_mosaic_module_t **out_module);

// Reads an attribute or a type that stands alone.
MP_NODISCARD mp_status_t mp_mosaic_parse_attr(mp_arena_t *arena, mp_arena_t *scratch, mp_str_t text,
                                              const mp_mosaic_attr_t **out_attr);
MP_NODISCARD mp_status_t mp_mosaic_parse_type(mp_arena_t *arena, mp_arena_t *scratch, mp_str_t text,
                                              const mp_mosaic_type_t **out_type);

// ---- mosaic_text_types.c ----

// Any type: number, index, vector, memref, function.
MP_NODISCARD mp_status_t mp_mosaic_text_type(mp_text_t *t, const mp_mosaic_type_t **out_type);
// Whether a type begins at the current token.
bool mp_mosaic_text_is_type(const mp_text_t *t);
// dense<...> : T from behind `dense`: DENSE of a vector's elements, INTS of a tensor's.
MP_NODISCARD mp_status_t mp_mosaic_text_dense(mp_text_t *t, const mp_mosaic_attr_t **out_attr);
// (T, T) -> T or (T, T) -> (T, T), as a function type.
MP_NODISCARD mp_status_t mp_mosaic_text_function(mp_text_t *t, const mp_mosaic_type_t **out_type);

// ---- mosaic_text_attrs.c ----

// Any attribute, or an alias of one.
MP_NODISCARD mp_status_t mp_mosaic_text_attr(mp_text_t *t, const mp_mosaic_attr_t **out_attr);
// {name = value, ...}: appends the items; the caller sorts them.
MP_NODISCARD mp_status_t mp_mosaic_text_dict(mp_text_t *t, mp_mosaic_items_t *items);
// Sorts items by name; a name that occurs twice is an error at `token`.
MP_NODISCARD mp_status_t mp_mosaic_text_sort(mp_text_t *t, const mp_token_t *token,
                                             mp_mosaic_items_t *items);

// ---- mosaic_text_map.c ----

// (d0, d1)[s0] -> (d0, d1 floordiv 8): an affine map from behind `affine_map<`.
MP_NODISCARD mp_status_t mp_mosaic_text_map(mp_text_t *t, const mp_mosaic_map_t **out_map);

// ---- mosaic_text_ops.c ----

// {^bb0(%a: T): ops}, a scope of its own.
MP_NODISCARD mp_status_t mp_mosaic_text_region(mp_text_t *t, bool isolated,
                                               mp_mosaic_block_t **out_block);

// ---- mosaic_plain.c: nothing is read ----

// The Mosaic form of an attribute of the StableHLO readers: a number, a text, a list of numbers, or
// a constant, whose type is then `dense_type` (NULL: its integers become INTS).
MP_NODISCARD mp_status_t mp_mosaic_from_plain(mp_arena_t *arena, const mp_attr_t *plain,
                                              const mp_mosaic_type_t *dense_type,
                                              const mp_mosaic_attr_t **out_attr);

// Sets the module's name and version from its attributes, and converts its ops to the newest
// version.
MP_NODISCARD mp_status_t mp_mosaic_finish_module(mp_mosaic_module_t *module,
                                                 const mp_mosaic_named_t *attrs, uint32_t count);

// ---- mosaic_layout.c: nothing is read ----

// Sets a part of a memref's type, whose dimensions are known, from the attribute that spells it:
// its memory space or its layout (strided<...> is `#builtin.strided` here). UNIMPLEMENTED without
// position for what is neither, and for layouts that are no sum of strides.
MP_NODISCARD mp_status_t mp_mosaic_apply_layout(mp_arena_t *arena, const mp_mosaic_attr_t *attr,
                                                mp_mosaic_type_t *type);

#endif  // MINIPOD_SIM_MOSAIC_READ_MOSAIC_TEXT_H_
