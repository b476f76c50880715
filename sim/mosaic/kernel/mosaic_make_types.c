// Element types that a TPU's compiler refuses. Each row was tried with libtpu 0.0.52, for v4, v5e,
// v6e and 7x; ops that were not tried are accepted.
#include "sim/mosaic/kernel/mosaic_maker.h"

// What vectors of a type cannot be.
typedef enum {
  USE_MOVE = 1,      // loaded or stored
  USE_ADD = 2,       // added, subtracted or multiplied as integers
  USE_ORDER = 4,     // the larger or the smaller one of integers
  USE_FLOAT = 8,     // an operand of arithmetic of floats
  USE_CONVERT = 16,  // converted
  USE_MATMUL = 32,   // an operand of a matmul
} use_t;

// What the compiler says of sums.
#define REFUSED_ADD " (Not implemented: Only vector<i16> and vector<i32> are supported)"

static use_t mosaic_make_types_use(const mp_mosaic_op_t *op) {
  switch (op->code) {
    case MP_MOSAIC_ADDI:
    case MP_MOSAIC_SUBI:
    case MP_MOSAIC_MULI:
      return USE_ADD;
    case MP_MOSAIC_MAXSI:
    case MP_MOSAIC_MINSI:
      return USE_ORDER;
    case MP_MOSAIC_ADDF:
    case MP_MOSAIC_SUBF:
    case MP_MOSAIC_MULF:
    case MP_MOSAIC_EXP:
      return USE_FLOAT;
    case MP_MOSAIC_EXTF:
      return USE_CONVERT;
    case MP_MOSAIC_MATMUL:
      return USE_MATMUL;
    default:
      break;
  }
  const mp_mosaic_class_t op_class = mp_mosaic_op_info(op->code)->op_class;
  const bool moves = op_class == MP_MOSAIC_CLASS_READ || op_class == MP_MOSAIC_CLASS_WRITE;
  return moves ? USE_MOVE : (use_t)0;
}

// The uses that are refused.
static uint32_t mosaic_make_types_refused(const mp_mosaic_target_t *target, mp_dtype_t dtype) {
  const int bits = mp_dtype_bits(dtype);
  const bool is_four = dtype == MP_DTYPE_F4E2M1FN && !target->has_f4;
  uint32_t uses = 0;
  if (dtype == MP_DTYPE_F16) uses |= USE_MOVE | USE_MATMUL;
  if (is_four) uses |= USE_CONVERT | USE_MATMUL;
  if (dtype == MP_DTYPE_F8E4M3B11FNUZ && target->has_f4) uses |= USE_MATMUL;
  if (mp_dtype_is_float(dtype)) return bits < 16 ? uses | USE_FLOAT : uses;
  if (bits > 1 && bits < 16) uses |= USE_ADD;
  if (bits > 1 && bits < 32) uses |= USE_ORDER;
  if (bits == 16) uses |= USE_MATMUL;
  return uses;
}

static mp_status_t mosaic_make_types_value(const mp_mosaic_maker_t *maker, const mp_mosaic_op_t *op,
                                           use_t use, const mp_mosaic_value_t *value) {
  const mp_mosaic_type_t *type = value->type;
  if (type->kind != MP_MOSAIC_VECTOR) return NULL;
  if ((mosaic_make_types_refused(maker->target, type->dtype) & (uint32_t)use) == 0) return NULL;
  return mp_mosaic_op_refused(
      op,
      "Mosaic function '%s': a TPU's compiler refuses this op on vectors of "
      "%s; convert them first%s",
      maker->kernel->name, mp_dtype_name(type->dtype), use != USE_ADD ? "" : REFUSED_ADD);
}

static mp_status_t mosaic_make_types_block(const mp_mosaic_maker_t *maker,
                                           const mp_mosaic_block_t *block) {
  for (const mp_mosaic_op_t *op = block->first; op != NULL; op = op->next) {
    MP_RETURN_IF_ERROR(mp_mosaic_make_scalars(maker, op));
    MP_RETURN_IF_ERROR(mp_mosaic_make_strides(maker, op));
    const use_t use = mosaic_make_types_use(op);
    for (uint32_t i = 0; use != 0 && i < op->num_operands; ++i) {
      MP_RETURN_IF_ERROR(mosaic_make_types_value(maker, op, use, op->operands[i]));
    }
    for (uint32_t i = 0; use == USE_MOVE && i < op->num_results; ++i) {
      MP_RETURN_IF_ERROR(mosaic_make_types_value(maker, op, use, &op->results[i]));
    }
    for (uint32_t r = 0; r < op->num_regions; ++r) {
      if (op->regions[r] == NULL) continue;
      MP_RETURN_IF_ERROR(mosaic_make_types_block(maker, op->regions[r]));
    }
  }
  return NULL;
}

mp_status_t mp_mosaic_make_types(const mp_mosaic_maker_t *maker) {
  const mp_mosaic_func_t *func = maker->compiler->module->funcs.first;
  for (; func != NULL; func = func->next) {
    MP_RETURN_IF_ERROR(mosaic_make_types_block(maker, func->body));
  }
  return NULL;
}
