// A Fourier transform over several dimensions becomes a transform over one dimension after the
// other: along each of them there are many lines, which several workers can transform. The last
// dimension, whose complex side may be stored by half, comes first, or last when the results are
// real. All others are complex (MP_ATTR_KEPT is the number of dimensions after the transformed
// one), and work in their operand's memory.
#include "sim/ir/schema.h"
#include "sim/passes/passes.h"
#include "sim/passes/rewrite/rewrite.h"

// The attributes of a transform of length `length`, followed by `kept` dimensions.
static mp_status_t transforms_attrs(mp_module_t *module, uint32_t type, int64_t length,
                                    uint32_t kept, mp_named_attr_t attrs[3]) {
  const mp_attr_t *value = NULL;
  MP_RETURN_IF_ERROR(mp_rewrite_ints(module, MP_ATTR_FFT_LENGTH, &length, 1, &attrs[0]));
  MP_RETURN_IF_ERROR(mp_attr_make_enum(module->arena, MP_ENUM_FFT_TYPE, type, &value));
  attrs[1] = mp_rewrite_attr(MP_ATTR_FFT_TYPE, value);
  if (kept == 0) return NULL;
  MP_RETURN_IF_ERROR(mp_attr_make_int(module->arena, MP_DTYPE_S64, kept, &value));
  attrs[2] = mp_rewrite_attr(MP_ATTR_KEPT, value);
  return NULL;
}

static bool transforms_is_empty(const mp_op_t *op, mp_index_list_t lengths) {
  bool is_empty = false;
  for (uint32_t d = 0; d < lengths.count; ++d) is_empty |= lengths.values[d] == 0;
  const mp_type_t *type = op->operands[0]->type;
  for (uint32_t d = 0; d < type->rank; ++d) is_empty |= type->dims[d] == 0;
  return is_empty;
}

static mp_status_t transforms_visit(void *context, mp_op_t *op) {
  mp_module_t *module = context;
  if (op->code != MP_OP_FFT || !mp_type_is_static(op->operands[0]->type)) return NULL;
  const mp_index_list_t lengths = mp_op_ints(op, MP_ATTR_FFT_LENGTH);
  if (lengths.count == 1 || transforms_is_empty(op, lengths)) return NULL;
  const uint32_t type = mp_op_enum(op, MP_ATTR_FFT_TYPE, MP_FFT_FFT);
  const bool to_real = type == MP_FFT_IRFFT, is_inverse = to_real || type == MP_FFT_IFFT;
  const mp_type_t *between = to_real ? op->operands[0]->type : op->results[0].type;
  mp_value_t *value = op->operands[0];
  mp_named_attr_t attrs[3];
  for (uint32_t step = 0; step < lengths.count; ++step) {
    const uint32_t kept = to_real ? lengths.count - 1 - step : step;
    const uint32_t plain = is_inverse ? MP_FFT_IFFT : MP_FFT_FFT;
    MP_RETURN_IF_ERROR(transforms_attrs(module, kept == 0 ? type : plain,
                                        lengths.values[lengths.count - 1 - kept], kept, attrs));
    const uint32_t num_attrs = kept == 0 ? 2 : 3;
    if (step == lengths.count - 1) {
      for (uint32_t i = 0; i < num_attrs; ++i) {
        MP_RETURN_IF_ERROR(mp_op_set_attr(module, op, attrs[i].name, attrs[i].value));
      }
      return mp_rewrite_set_operands(module, op, &value, 1);
    }
    const mp_op_one_t made = {.code = MP_OP_FFT,
                              .type = between,
                              .operands = &value,
                              .num_operands = 1,
                              .attrs = attrs,
                              .num_attrs = num_attrs};
    MP_RETURN_IF_ERROR(mp_rewrite_insert_op(module, op, &made, &value));
  }
  return NULL;
}

mp_status_t mp_pass_transforms(mp_module_t *module) {
  return mp_module_walk(module, transforms_visit, module);
}
