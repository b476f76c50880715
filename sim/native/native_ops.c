// The ops that code can have: all of sim/numeric/meaning.h, and the additional ones of
// sim/native/module/emit_op.c.
#include "sim/native/native.h"
#include "sim/numeric/meaning.h"

static bool native_ops_is_real(mp_dtype_t dtype) {
  return dtype == MP_DTYPE_F32 || dtype == MP_DTYPE_F64;
}

// Integers of whole bytes.
static bool native_ops_is_int(mp_dtype_t dtype) {
  return mp_dtype_is_integer(dtype) && mp_dtype_bits(dtype) >= 8 && dtype != MP_DTYPE_BOOL &&
         dtype != MP_DTYPE_INDEX;
}

// The ops that code can have on real numbers, only on f32, and on integers of either kind.
typedef struct {
  bool of_real, of_f32, of_signed, of_unsigned;
} knows_t;

static const knows_t g_knows[MP_OP_COUNT] = {
#define ROW(kind, op, arity, with) [MP_OP_##op].with = true,
#define FUNCTION_ROW(op, function) [MP_OP_##op].of_f32 = true,
    MP_REAL_OPS(ROW, of_real) MP_REAL_FUNCTIONS(FUNCTION_ROW) MP_WIDE_FUNCTIONS(FUNCTION_ROW)
        MP_INT_OPS(ROW, of_signed) MP_SIGNED_OPS(ROW, of_signed) MP_INT_OPS(ROW, of_unsigned)
            MP_UNSIGNED_OPS(ROW, of_unsigned)
#undef FUNCTION_ROW
#undef ROW
};

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
      if (from == MP_DTYPE_F32 && g_knows[op->code].of_f32) return true;
      if (native_ops_is_real(from)) return g_knows[op->code].of_real;
      return native_ops_is_int(from) &&
             (mp_dtype_class(from) == MP_CLASS_SIGNED ? g_knows[op->code].of_signed
                                                      : g_knows[op->code].of_unsigned);
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
