#include "sim/kernels/elementwise/elementwise.h"

#include <string.h>

#include "sim/base/assert.h"
#include "sim/kernels/elementwise/elementwise_makers.h"
#include "sim/numeric/float.h"

// The elements that are widened and narrowed at a time: so few that a block of each operand stays
// in the cache.
enum { BLOCK = 256 };

mp_dtype_t mp_ew_computing_type(mp_dtype_t dtype) {
  if (!mp_dtype_is_storable(dtype)) return MP_DTYPE_INVALID;
  if (mp_float_is_narrow(dtype)) return MP_DTYPE_F32;
  if (!mp_dtype_is_integer(dtype) || mp_dtype_bits(dtype) >= 8) return dtype;
  return mp_dtype_class(dtype) == MP_CLASS_SIGNED ? MP_DTYPE_S8 : MP_DTYPE_U8;
}

static mp_ew_loop_t elementwise_arithmetic_loop(mp_opcode_t code, mp_dtype_t dtype) {
  if (mp_dtype_is_float(dtype)) return mp_ew_float_loop(code, dtype);
  if (mp_dtype_is_complex(dtype)) return mp_ew_complex_loop(code, dtype);
  return mp_ew_integer_loop(code, dtype);
}

static mp_ew_loop_t elementwise_convert_loop(mp_dtype_t from, mp_dtype_t to) {
  mp_dtype_t computing = mp_ew_computing_type(from);
  mp_ew_loop_t to_odd = mp_ew_convert_to_odd_loop(computing);
  if (mp_float_is_narrow(to) && to_odd != NULL) return to_odd;
  return mp_ew_convert_loop(computing, mp_ew_computing_type(to));
}

static mp_ew_loop_t elementwise_find_loop(const mp_op_t *op, const mp_ew_t *ew) {
  mp_dtype_t first = ew->inputs[0], computing = mp_ew_computing_type(first);
  switch (op->code) {
    case MP_OP_CONVERT:
      return elementwise_convert_loop(first, ew->output);
    case MP_OP_COMPARE:
      return mp_ew_compare_loop(
          mp_op_enum(op, MP_ATTR_COMPARISON_DIRECTION, MP_CMP_EQ),
          mp_op_enum(op, MP_ATTR_COMPARE_TYPE, MP_CMP_NOTYPE) == MP_CMP_TOTALORDER, computing);
    case MP_OP_SELECT:
      return mp_ew_select_loop(mp_dtype_size(ew->output));
    case MP_OP_REDUCE_PRECISION: {
      mp_ew_loop_t loop = mp_ew_precision_loop(first);
      return loop != NULL ? loop : mp_ew_precision_loop(computing);
    }
    case MP_OP_COMPLEX:
      return elementwise_arithmetic_loop(op->code, ew->output);
    case MP_OP_COUNT_LEADING_ZEROS:
      if (mp_dtype_bits(first) < 8) return mp_ew_narrow_clz_loop(mp_dtype_bits(first));
      return elementwise_arithmetic_loop(op->code, computing);
    default:
      return elementwise_arithmetic_loop(op->code, computing);
  }
}

static mp_extend_t elementwise_extension(mp_opcode_t code, mp_dtype_t dtype) {
  if (!mp_dtype_is_integer(dtype) || mp_dtype_bits(dtype) >= 8) return MP_EXTEND_NONE;
  switch (code) {
    case MP_OP_COUNT_LEADING_ZEROS:
    case MP_OP_POPCNT:
    case MP_OP_SHIFT_RIGHT_LOGICAL:
      return MP_EXTEND_NONE;
    case MP_OP_SHIFT_RIGHT_ARITHMETIC:
      return MP_EXTEND_SIGN;
    default:
      return mp_dtype_class(dtype) == MP_CLASS_SIGNED ? MP_EXTEND_SIGN : MP_EXTEND_NONE;
  }
}

static void elementwise_set_convert_flags(mp_ew_t *ew) {
  mp_dtype_t from = ew->inputs[0], to = ew->output;
  ew->saturate = mp_dtype_is_float(from) || mp_dtype_is_complex(from);
  ew->widens = mp_float_is_narrow(from) && to == MP_DTYPE_F32;
  ew->narrows = from == MP_DTYPE_F32 && mp_float_is_narrow(to);
}

bool mp_ew_bind_convert(mp_dtype_t from, mp_dtype_t to, mp_ew_t *out_ew) {
  mp_ew_t ew = {
      .loop = elementwise_convert_loop(from, to), .num_inputs = 1, .inputs = {from}, .output = to};
  if (ew.loop == NULL) return false;
  ew.direct = mp_ew_computing_type(from) == from && mp_ew_computing_type(to) == to;
  ew.extend = elementwise_extension(MP_OP_CONVERT, from);
  elementwise_set_convert_flags(&ew);
  *out_ew = ew;
  return true;
}

bool mp_ew_bind_binary(mp_opcode_t code, mp_dtype_t dtype, mp_ew_t *out_ew) {
  mp_dtype_t computing = mp_ew_computing_type(dtype);
  mp_ew_t ew = {.num_inputs = 2, .inputs = {dtype, dtype}, .output = dtype};
  if (computing == MP_DTYPE_INVALID) return false;
  ew.loop = elementwise_arithmetic_loop(code, computing);
  ew.direct = computing == dtype;
  ew.extend = elementwise_extension(code, dtype);
  if (ew.loop == NULL) return false;
  *out_ew = ew;
  return true;
}

static mp_status_t elementwise_set_precision(const mp_op_t *op, mp_ew_t *ew) {
  ew->has_params = true;
  ew->params[0] = (int32_t)mp_op_int(op, MP_ATTR_EXPONENT_BITS, 0);
  ew->params[1] = (int32_t)mp_op_int(op, MP_ATTR_MANTISSA_BITS, -1);
  ew->direct = mp_ew_precision_loop(ew->inputs[0]) != NULL;
  if (ew->params[0] >= 1 && ew->params[1] >= 0) return NULL;
  return mp_op_error(op, MP_INVALID_ARGUMENT,
                     "needs at least 1 exponent bit and 0 mantissa bits, not %d and %d",
                     ew->params[0], ew->params[1]);
}

mp_status_t mp_ew_bind(const mp_op_t *op, mp_ew_t *out_ew) {
  mp_ew_t ew = {.num_inputs = op->num_operands, .output = op->results[0].type->dtype};
  if (!mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE) || op->num_operands > MP_EW_MAX_INPUTS) {
    return mp_op_error(op, MP_UNIMPLEMENTED, "this operation is not elementwise");
  }
  ew.direct = mp_ew_computing_type(ew.output) == ew.output;
  for (uint32_t i = 0; i < ew.num_inputs; ++i) {
    ew.inputs[i] = op->operands[i]->type->dtype;
    if (mp_ew_computing_type(ew.inputs[i]) != ew.inputs[i]) ew.direct = false;
  }
  ew.extend = elementwise_extension(op->code, ew.inputs[0]);
  ew.loop = elementwise_find_loop(op, &ew);
  if (ew.loop == NULL) {
    return mp_op_error(op, MP_UNIMPLEMENTED, "no kernel for element type %s",
                       mp_dtype_name(ew.inputs[0]));
  }
  if (op->code == MP_OP_SELECT) ew.direct = true;  // it only moves stored elements
  if (op->code == MP_OP_CONVERT) elementwise_set_convert_flags(&ew);
  if (op->code == MP_OP_REDUCE_PRECISION) MP_RETURN_IF_ERROR(elementwise_set_precision(op, &ew));
  *out_ew = ew;
  return NULL;
}

// ---- Running ----

static const void *elementwise_widen_block(const mp_ew_t *ew, mp_dtype_t dtype, int64_t n,
                                           const void *src, void *buffer) {
  if (mp_float_is_narrow(dtype)) {
    mp_float_widen(dtype, n, src, buffer);
    return buffer;
  }
  if (ew->extend == MP_EXTEND_NONE || mp_dtype_bits(dtype) >= 8 || !mp_dtype_is_integer(dtype)) {
    return src;
  }
  const uint8_t sign = (uint8_t)(1u << (mp_dtype_bits(dtype) - 1)), *codes = src;
  uint8_t *values = buffer;
  for (int64_t i = 0; i < n; ++i) values[i] = (uint8_t)((codes[i] ^ sign) - sign);
  return buffer;
}

// Turns 8-bit results into 2- or 4-bit ones.
static void elementwise_narrow_integers(const mp_ew_t *ew, int64_t n, uint8_t *values) {
  int bits = mp_dtype_bits(ew->output);
  uint8_t mask = (uint8_t)((1 << bits) - 1);
  bool is_signed = mp_dtype_class(ew->output) == MP_CLASS_SIGNED;
  int most = is_signed ? mask >> 1 : mask, least = is_signed ? -most - 1 : 0;
  for (int64_t i = 0; i < n && ew->saturate; ++i) {
    int value = is_signed ? (int8_t)values[i] : values[i];
    values[i] = (uint8_t)(value < least ? least : value > most ? most : value);
  }
  for (int64_t i = 0; i < n; ++i) values[i] &= mask;
}

static void elementwise_run_block(const mp_ew_t *ew, int64_t n, const void *const *in, void *out) {
  MP_ASSERT(n <= BLOCK && ew->num_inputs <= MP_EW_MAX_INPUTS);
  _Alignas(64) float buffers[MP_EW_MAX_INPUTS][BLOCK], result[BLOCK];
  const void *widened[MP_EW_MAX_INPUTS + 1];
  for (uint32_t i = 0; i < ew->num_inputs; ++i) {
    widened[i] = elementwise_widen_block(ew, ew->inputs[i], n, in[i], buffers[i]);
  }
  if (ew->has_params) widened[ew->num_inputs] = ew->params;
  if (mp_float_is_narrow(ew->output)) {
    ew->loop(n, widened, result);
    mp_float_narrow(ew->output, n, result, out);
    return;
  }
  ew->loop(n, widened, out);
  if (mp_dtype_is_integer(ew->output) && mp_dtype_bits(ew->output) < 8) {
    elementwise_narrow_integers(ew, n, out);
  }
}

void mp_ew_run(const mp_ew_t *ew, int64_t n, const void *const *in, void *out) {
  MP_ASSERT(n >= 0 && ew->loop != NULL);
  if (n == 0) return;
  if (ew->direct) {
    const void *with_params[] = {in[0], ew->params};
    ew->loop(n, ew->has_params ? with_params : in, out);
    return;
  }
  if (ew->widens) {
    mp_float_widen(ew->inputs[0], n, in[0], out);
    return;
  }
  if (ew->narrows && in[0] != out) {
    mp_float_narrow(ew->output, n, in[0], out);
    return;
  }
  size_t out_size = mp_dtype_size(ew->output);
  for (int64_t i = 0; i < n; i += BLOCK) {
    const void *block[MP_EW_MAX_INPUTS];
    for (uint32_t k = 0; k < ew->num_inputs; ++k) {
      block[k] = (const char *)in[k] + (size_t)i * mp_dtype_size(ew->inputs[k]);
    }
    elementwise_run_block(ew, n - i < BLOCK ? n - i : BLOCK, block,
                          (char *)out + (size_t)i * out_size);
  }
}

// ---- The kernel ----

typedef struct {
  mp_kernel_t base;
  mp_ew_t ew;
  int64_t count;
  uint32_t scalars;  // bit i: operand i is a scalar for all elements (a bound, a predicate)
} ew_kernel_t;

// The number of times that a scalar operand is repeated.
enum { SPLAT = 1024 };

static void elementwise_splat(const void *element, size_t size, int64_t n, char *out) {
  for (int64_t i = 0; i < n; ++i) memcpy(out + (size_t)i * size, element, size);
}

static mp_status_t elementwise_run_with_scalars(const ew_kernel_t *kernel,
                                                const mp_kernel_call_t *call, int64_t begin,
                                                int64_t end) {
  const mp_ew_t *ew = &kernel->ew;
  size_t out_size = mp_dtype_size(ew->output);
  if (kernel->base.op->code == MP_OP_SELECT && kernel->scalars == 1) {
    const char *chosen = call->operands[*(const uint8_t *)call->operands[0] != 0 ? 1 : 2];
    char *out = call->results[0];
    if (out != chosen) {
      memcpy(out + (size_t)begin * out_size, chosen + (size_t)begin * out_size,
             (size_t)(end - begin) * out_size);
    }
    return NULL;
  }
  char *scratch = call->scratch;
  for (uint32_t k = 0; k < ew->num_inputs; ++k) {
    if ((kernel->scalars >> k & 1) == 0) continue;
    size_t size = mp_dtype_size(ew->inputs[k]);
    elementwise_splat(call->operands[k], size, end - begin < SPLAT ? end - begin : SPLAT,
                      scratch + (size_t)k * SPLAT * 16);
  }
  for (int64_t i = begin; i < end; i += SPLAT) {
    const void *in[MP_EW_MAX_INPUTS];
    for (uint32_t k = 0; k < ew->num_inputs; ++k) {
      bool is_scalar = (kernel->scalars >> k & 1) != 0;
      in[k] = is_scalar
                  ? scratch + (size_t)k * SPLAT * 16
                  : (const char *)call->operands[k] + (size_t)i * mp_dtype_size(ew->inputs[k]);
    }
    mp_ew_run(ew, end - i < SPLAT ? end - i : SPLAT, in,
              (char *)call->results[0] + (size_t)i * out_size);
  }
  return NULL;
}

static mp_status_t elementwise_run(const mp_kernel_t *base, const mp_kernel_call_t *call) {
  const ew_kernel_t *kernel = (const ew_kernel_t *)base;
  int64_t begin, end;
  mp_part_range(kernel->count, base->num_parts, call->part, &begin, &end);
  if (begin == end) return NULL;
  if (kernel->scalars != 0) return elementwise_run_with_scalars(kernel, call, begin, end);
  const void *in[MP_EW_MAX_INPUTS];
  for (uint32_t k = 0; k < kernel->ew.num_inputs; ++k) {
    in[k] = (const char *)call->operands[k] + (size_t)begin * mp_dtype_size(kernel->ew.inputs[k]);
  }
  mp_ew_run(&kernel->ew, end - begin, in,
            (char *)call->results[0] + (size_t)begin * mp_dtype_size(kernel->ew.output));
  return NULL;
}

// A smaller array is made once and stays in the caches. That costs less than repeating the scalar
// in every part of every kernel that reads the array.
enum { SCALAR_FROM_BYTES = 64 * 1024 };

mp_value_t *mp_kernel_elementwise_operand(const mp_op_t *op, uint32_t operand) {
  mp_value_t *value = op->operands[operand];
  const mp_op_t *maker = value->op;
  if (maker == NULL || maker->code != MP_OP_BROADCAST_IN_DIM) return value;
  int64_t bytes = 0;
  mp_value_t *scalar = maker->operands[0];
  const bool is_large =
      mp_type_num_bytes(value->type, &bytes) && bytes > (int64_t)SCALAR_FROM_BYTES;
  return is_large && scalar->type->rank == 0 ? scalar : value;
}

// The number of elements that is worth a part.
static int64_t elementwise_grain(const mp_op_t *op) {
  return mp_op_info(op->code)->cost == MP_OP_COST_COSTLY ? 8 * 1024 : 64 * 1024;
}

mp_status_t mp_kernel_make_elementwise(mp_arena_t *arena, const mp_op_t *op,
                                       const mp_kernel_t **out_kernel) {
  ew_kernel_t *kernel = MP_ARENA_NEW(arena, ew_kernel_t);
  MP_RETURN_IF_NULL(kernel);
  MP_RETURN_IF_ERROR(mp_ew_bind(op, &kernel->ew));
  if (!mp_type_num_elements(op->results[0].type, &kernel->count)) {
    return mp_op_error(op, MP_INVALID_ARGUMENT, "the result is too large");
  }
  size_t out_size = mp_dtype_size(kernel->ew.output);
  for (uint32_t k = 0; k < op->num_operands; ++k) {
    const mp_type_t *type = mp_kernel_elementwise_operand(op, k)->type;
    if (!mp_type_same_shape(type, op->results[0].type)) {
      kernel->scalars |= 1u << k;
    } else if (mp_dtype_size(type->dtype) == out_size) {
      kernel->base.in_place |= 1u << k;
    }
  }
  if (kernel->scalars != 0) kernel->base.scratch_bytes = MP_EW_MAX_INPUTS * SPLAT * 16;
  kernel->base.run = elementwise_run;
  kernel->base.num_parts = mp_part_count(kernel->count, elementwise_grain(op));
  kernel->base.op = op;
  *out_kernel = &kernel->base;
  return NULL;
}
