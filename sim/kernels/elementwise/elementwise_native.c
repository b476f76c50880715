// Elementwise ops for machine code.
#include "sim/kernels/elementwise/elementwise.h"
#include "sim/kernels/shape.h"
#include "sim/numeric/float.h"

mp_native_op_t mp_ew_native(const mp_op_t *op) {
  const mp_dtype_t to = mp_op_result_type(op, 0)->dtype;
  const mp_dtype_t from = mp_op_operand_type(op, op->code == MP_OP_SELECT ? 1 : 0)->dtype;
  mp_native_op_t native = {
      .code = op->code, .from = mp_ew_computing_type(from), .to = mp_ew_computing_type(to)};
  bool can = true;
  if (op->code == MP_OP_COMPARE) {
    native.direction = mp_op_enum(op, MP_ATTR_COMPARISON_DIRECTION, MP_CMP_EQ);
    can = mp_op_enum(op, MP_ATTR_COMPARE_TYPE, MP_CMP_NOTYPE) != MP_CMP_TOTALORDER;
  } else if (op->code == MP_OP_CONVERT) {
    // Two kinds of conversions have no machine code: f64 to a narrow type, where the intermediate
    // f32 is rounded in a special way, and 2- and 4-bit integers, which cannot hold all computed
    // values.
    can = (from != MP_DTYPE_F64 || !mp_float_is_narrow(to)) &&
          (!mp_dtype_is_integer(to) || mp_dtype_bits(to) >= 8 || to == MP_DTYPE_BOOL);
  }
  if (!can || !mp_native_knows(&native)) native.code = MP_OP_COUNT;
  return native;
}
