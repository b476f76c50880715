// Which ops code can have: those that sim/native/module/emit_op.c and emit_math.c compute.
#include "sim/native/native.h"

static bool native_ops_is_real(mp_dtype_t dtype) {
  return dtype == MP_DTYPE_F32 || dtype == MP_DTYPE_F64;
}

// Of whole bytes.
static bool native_ops_is_int(mp_dtype_t dtype) {
  return mp_dtype_is_integer(dtype) && mp_dtype_bits(dtype) >= 8 && dtype != MP_DTYPE_BOOL &&
         dtype != MP_DTYPE_INDEX;
}

static bool native_ops_knows_real(mp_opcode_t code) {
  switch (code) {
    case MP_OP_ABS:
    case MP_OP_ADD:
    case MP_OP_CEIL:
    case MP_OP_CLAMP:
    case MP_OP_DIVIDE:
    case MP_OP_FLOOR:
    case MP_OP_MAXIMUM:
    case MP_OP_MINIMUM:
    case MP_OP_MULTIPLY:
    case MP_OP_NEGATE:
    case MP_OP_ROUND_NEAREST_AFZ:
    case MP_OP_ROUND_NEAREST_EVEN:
    case MP_OP_RSQRT:
    case MP_OP_SIGN:
    case MP_OP_SQRT:
    case MP_OP_SUBTRACT:
      return true;
    default:
      return false;
  }
}

// Functions of f32 that are computed by polynomials.
static bool native_ops_knows_function(mp_opcode_t code) {
  return code == MP_OP_EXPONENTIAL || code == MP_OP_EXPONENTIAL_MINUS_ONE || code == MP_OP_LOG ||
         code == MP_OP_LOG_PLUS_ONE || code == MP_OP_LOGISTIC || code == MP_OP_TANH;
}

static bool native_ops_knows_int(mp_opcode_t code) {
  switch (code) {
    case MP_OP_ABS:
    case MP_OP_ADD:
    case MP_OP_AND:
    case MP_OP_CLAMP:
    case MP_OP_DIVIDE:
    case MP_OP_MAXIMUM:
    case MP_OP_MINIMUM:
    case MP_OP_MULTIPLY:
    case MP_OP_NEGATE:
    case MP_OP_NOT:
    case MP_OP_OR:
    case MP_OP_POPCNT:
    case MP_OP_REMAINDER:
    case MP_OP_SHIFT_LEFT:
    case MP_OP_SHIFT_RIGHT_ARITHMETIC:
    case MP_OP_SHIFT_RIGHT_LOGICAL:
    case MP_OP_SIGN:
    case MP_OP_SUBTRACT:
    case MP_OP_XOR:
      return true;
    default:
      return false;
  }
}

static bool native_ops_knows_convert(mp_dtype_t from, mp_dtype_t to) {
  if (from == MP_DTYPE_BF16 || from == MP_DTYPE_F16) return to == MP_DTYPE_F32;
  if (to == MP_DTYPE_BF16 || to == MP_DTYPE_F16) return from == MP_DTYPE_F32;
  const bool from_number =
      native_ops_is_real(from) || native_ops_is_int(from) || from == MP_DTYPE_BOOL;
  return from_number && (native_ops_is_real(to) || native_ops_is_int(to) || to == MP_DTYPE_BOOL);
}

bool mp_native_knows(const mp_native_op_t *op) {
  const mp_dtype_t from = op->from;
  switch (op->code) {
    case MP_OP_CONVERT:
      return native_ops_knows_convert(from, op->to);
    case MP_OP_BITCAST_CONVERT:
      return (native_ops_is_real(from) || native_ops_is_int(from)) &&
             (native_ops_is_real(op->to) || native_ops_is_int(op->to)) &&
             mp_dtype_size(from) == mp_dtype_size(op->to);
    case MP_OP_SELECT:
      return from == op->to && (native_ops_is_real(from) || native_ops_is_int(from));
    case MP_OP_COMPARE:
      return op->to == MP_DTYPE_BOOL &&
             (native_ops_is_real(from) || native_ops_is_int(from) || from == MP_DTYPE_BOOL);
    case MP_OP_IS_FINITE:
      return op->to == MP_DTYPE_BOOL && native_ops_is_real(from);
    case MP_OP_AND:
    case MP_OP_OR:
    case MP_OP_XOR:
    case MP_OP_NOT:
      return from == op->to && (native_ops_is_int(from) || from == MP_DTYPE_BOOL);
    default:
      if (from != op->to) return false;
      if (from == MP_DTYPE_F32 && native_ops_knows_function(op->code)) return true;
      return native_ops_is_real(from) ? native_ops_knows_real(op->code)
                                      : native_ops_is_int(from) && native_ops_knows_int(op->code);
  }
}

mp_dtype_t mp_native_moved_type(size_t bytes) {
  switch (bytes) {
    case 1:
      return MP_DTYPE_U8;
    case 2:
      return MP_DTYPE_U16;
    case 4:
      return MP_DTYPE_U32;
    case 8:
      return MP_DTYPE_U64;
    default:
      return MP_DTYPE_INVALID;
  }
}
