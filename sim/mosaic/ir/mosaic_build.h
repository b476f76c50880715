// Makes Mosaic modules, for readers: each function allocates in an arena and checks nothing.
#ifndef MINIPOD_SIM_MOSAIC_IR_MOSAIC_BUILD_H_
#define MINIPOD_SIM_MOSAIC_IR_MOSAIC_BUILD_H_

#include "sim/mosaic/ir/mosaic_ir.h"

// Makes an empty module, which the caller owns.
MP_NODISCARD mp_status_t mp_mosaic_module_create(mp_mosaic_module_t **out_module);

// A copy of a type, with its dimensions, strides and elements.
MP_NODISCARD mp_status_t mp_mosaic_type_copy(mp_arena_t *arena, const mp_mosaic_type_t *type,
                                             const mp_mosaic_type_t **out_type);
// The type of a scalar.
MP_NODISCARD mp_status_t mp_mosaic_scalar_type(mp_arena_t *arena, mp_dtype_t dtype,
                                               const mp_mosaic_type_t **out_type);
// A copy of an attribute, shallow.
MP_NODISCARD mp_status_t mp_mosaic_attr_copy(mp_arena_t *arena, const mp_mosaic_attr_t *attr,
                                             const mp_mosaic_attr_t **out_attr);
// Sorts named attributes by name. Returns a name that occurs twice, or an empty text.
mp_str_t mp_mosaic_sort_attrs(mp_mosaic_named_t *items, uint32_t count);

// A block with arguments of these types.
MP_NODISCARD mp_status_t mp_mosaic_block_create(mp_arena_t *arena,
                                                const mp_mosaic_type_t *const *types,
                                                uint32_t num_types, mp_mosaic_block_t **out_block);

// What makes an op. The arrays are copied.
typedef struct {
  mp_mosaic_opcode_t code;
  const mp_loc_t *loc;
  mp_mosaic_value_t *const *operands;
  uint32_t num_operands;
  const mp_mosaic_type_t *const *result_types;
  uint32_t num_results;
  mp_mosaic_block_t *const *regions;
  uint32_t num_regions;
  const mp_mosaic_named_t *attrs;  // sorted by name
  uint32_t num_attrs;
} mp_mosaic_op_spec_t;

// Makes an op at the end of `block`.
MP_NODISCARD mp_status_t mp_mosaic_op_create(mp_arena_t *arena, const mp_mosaic_op_spec_t *spec,
                                             mp_mosaic_block_t *block, mp_mosaic_op_t **out_op);

// Makes a function at the end of the module, of its attributes (sym_name, function_type,
// sym_visibility, and those that stay) and its body; numbers its values. Returns an error without
// position if one of the first two is missing or of another kind.
MP_NODISCARD mp_status_t mp_mosaic_func_create(mp_mosaic_module_t *module,
                                               const mp_mosaic_named_t *attrs, uint32_t num_attrs,
                                               mp_mosaic_block_t *body, const mp_loc_t *loc);

// Sets the module's version and converts the attributes of ops of older versions to those of the
// newest one. UNIMPLEMENTED for versions that are not known.
MP_NODISCARD mp_status_t mp_mosaic_upgrade(mp_mosaic_module_t *module, int64_t version);

#endif  // MINIPOD_SIM_MOSAIC_IR_MOSAIC_BUILD_H_
