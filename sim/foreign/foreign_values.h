// Values and dictionaries of them, as handlers get attributes and options. All are made in an arena
// and fail with RESOURCE_EXHAUSTED when memory is short.
#ifndef MINIPOD_SIM_FOREIGN_FOREIGN_VALUES_H_
#define MINIPOD_SIM_FOREIGN_FOREIGN_VALUES_H_

#include "sim/base/arena.h"
#include "sim/base/status.h"
#include "sim/foreign/foreign_abi.h"
#include "sim/ir/module.h"

typedef struct {
  XLA_FFI_AttrType type;
  void *value;
} mp_foreign_item_t;

// The interface's name of an element type; INVALID when it has none.
XLA_FFI_DataType mp_foreign_dtype(mp_dtype_t dtype);

// The bytes of `value` and of `text` are copied, and those of an array are used, for as long as the
// arena lives.
MP_NODISCARD mp_status_t mp_foreign_scalar(mp_arena_t *arena, mp_dtype_t dtype, const void *value,
                                           mp_foreign_item_t *out_item);
MP_NODISCARD mp_status_t mp_foreign_array(mp_arena_t *arena, mp_dtype_t dtype, size_t count,
                                          void *data, mp_foreign_item_t *out_item);
MP_NODISCARD mp_status_t mp_foreign_string(mp_arena_t *arena, mp_str_t text,
                                           mp_foreign_item_t *out_item);

// Makes an empty dictionary with room for `capacity` items, and adds one; the caller adds them
// sorted by name.
MP_NODISCARD mp_status_t mp_foreign_dict_create(mp_arena_t *arena, size_t capacity,
                                                XLA_FFI_Attrs *out_dict);
MP_NODISCARD mp_status_t mp_foreign_dict_add(mp_arena_t *arena, XLA_FFI_Attrs *dict, mp_str_t name,
                                             const mp_foreign_item_t *item);

#endif  // MINIPOD_SIM_FOREIGN_FOREIGN_VALUES_H_
