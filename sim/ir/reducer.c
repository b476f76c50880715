#include "sim/ir/module.h"

mp_status_t mp_block_create_reducer(mp_module_t *module, mp_opcode_t code, mp_dtype_t dtype,
                                    const mp_loc_t *loc, mp_block_t **out_block) {
  const mp_type_t *scalar = NULL;
  MP_RETURN_IF_ERROR(mp_type_tensor(module->arena, dtype, NULL, 0, &scalar));
  mp_block_t *block = NULL;
  MP_RETURN_IF_ERROR(mp_block_create(module, 2, (const mp_type_t *[]){scalar, scalar}, &block));
  const mp_op_spec_t combine_spec = {.code = code,
                                     .loc = loc,
                                     .num_operands = 2,
                                     .operands = (mp_value_t *[]){&block->args[0], &block->args[1]},
                                     .num_results = 1,
                                     .result_types = &scalar};
  mp_op_t *combined = NULL;
  MP_RETURN_IF_ERROR(mp_op_create(module, &combine_spec, &combined));
  mp_block_append(block, combined);
  const mp_op_spec_t return_spec = {.code = MP_OP_RETURN,
                                    .loc = loc,
                                    .num_operands = 1,
                                    .operands = (mp_value_t *[]){&combined->results[0]}};
  mp_op_t *terminator = NULL;
  MP_RETURN_IF_ERROR(mp_op_create(module, &return_spec, &terminator));
  mp_block_append(block, terminator);
  *out_block = block;
  return NULL;
}
