// Ops that move elements, and reductions.
#include <math.h>

#include "sim/mosaic/price/price_units.h"

enum { PRICE_ROTATE_AND_ADD = 2, PRICE_SUBLANE_STEPS = 3 };

// ---- reductions ----

static bool price_shape_has(const mp_mosaic_op_t *op, const char *name, uint32_t dim) {
  const mp_mosaic_attr_t *dims = mp_mosaic_op_attr(op, name);
  if (dims == NULL) return false;
  if (dims->kind == MP_MOSAIC_INTS) {
    for (uint32_t i = 0; i < dims->ints.count; ++i) {
      if (dims->ints.values[i] == (int64_t)dim) return true;
    }
  } else if (dims->kind == MP_MOSAIC_ARRAY) {
    for (uint32_t i = 0; i < dims->list.count; ++i) {
      if (dims->list.items[i].value->i64 == (int64_t)dim) return true;
    }
  }
  return false;
}

// Registers are added up first, then the lanes or sublanes of what is left.
static void price_shape_reduce(const mp_price_core_t *core, const mp_mosaic_op_t *op,
                               mp_price_need_t *out) {
  const mp_mosaic_type_t *from = op->operands[0]->type;
  const uint32_t rank = from->rank;
  const bool lanes = rank >= 1 && price_shape_has(op, "reduction_dims", rank - 1);
  const bool sublanes = rank >= 2 && price_shape_has(op, "reduction_dims", rank - 2);
  const double registers = mp_price_wide_registers(from);
  double left = registers;
  for (uint32_t d = 0; d < rank; ++d) {
    if (!price_shape_has(op, "reduction_dims", d)) continue;
    const double size = (double)from->dims[d];
    const double tile = d + 1 == rank   ? MP_PRICE_LANES_OF_REGISTER
                        : d + 2 == rank ? MP_PRICE_SUBLANES
                                        : 1;
    left /= fmax(ceil(size / tile), 1);
  }
  out->work[MP_PRICE_ARITHMETIC] = registers - left;
  out->latency = core->arithmetic * (1 + log2(fmax(registers / left, 1)));
  if (sublanes) {
    out->work[MP_PRICE_ARITHMETIC] += left * PRICE_SUBLANE_STEPS * PRICE_ROTATE_AND_ADD;
    out->latency += PRICE_SUBLANE_STEPS * PRICE_ROTATE_AND_ADD * core->arithmetic;
    // Rows of several registers are joined in one.
    if (rank > 2) out->work[MP_PRICE_ARITHMETIC] += left * (1 - 1.0 / MP_PRICE_SUBLANES);
  }
  if (lanes) {
    out->work[MP_PRICE_LANES] = left;
    out->latency += core->lanes;
  }
}

// ---- moves ----

// Elements that start at another place of their registers: along lanes by the unit for lanes, along
// sublanes by a rotation and a selection.
static void price_shape_shift(const mp_price_core_t *core, const mp_mosaic_type_t *type,
                              uint32_t from_last, mp_price_need_t *out) {
  const double registers = mp_price_registers(type);
  if (from_last == 0) {
    out->work[MP_PRICE_LANES] += registers;
    out->latency = fmax(out->latency, core->lanes);
    if (mp_price_dim(type, 0) > MP_PRICE_LANES_OF_REGISTER)
      out->work[MP_PRICE_ARITHMETIC] += registers;
  } else if (from_last == 1) {
    out->work[MP_PRICE_ARITHMETIC] += 2 * registers;
    out->latency = fmax(out->latency, 2 * core->arithmetic);
  }
}

static int64_t price_shape_tile(const mp_mosaic_type_t *type, uint32_t from_last) {
  if (from_last == 0) return MP_PRICE_LANES_OF_REGISTER;
  const int bits = mp_dtype_bits(type->dtype);
  if (from_last > 1) return 1;
  return MP_PRICE_SUBLANES * (bits > 1 && bits < 32 ? 32 / bits : 1);
}

static void price_shape_slice(const mp_price_core_t *core, const mp_mosaic_op_t *op,
                              mp_price_need_t *out) {
  const mp_mosaic_attr_t *offsets = mp_mosaic_op_attr(op, "offsets");
  const mp_mosaic_type_t *to = op->results[0].type;
  for (uint32_t d = 0; offsets != NULL && d < to->rank; ++d) {
    int64_t at = 0;
    if (offsets->kind == MP_MOSAIC_INTS && d < offsets->ints.count) at = offsets->ints.values[d];
    if (offsets->kind == MP_MOSAIC_ARRAY && d < offsets->list.count)
      at = offsets->list.items[d].value->i64;
    const uint32_t from_last = to->rank - 1 - d;
    if (at % price_shape_tile(to, from_last) != 0) price_shape_shift(core, to, from_last, out);
  }
}

static void price_shape_concatenate(const mp_price_core_t *core, const mp_mosaic_op_t *op,
                                    mp_price_need_t *out) {
  const uint32_t rank = op->results[0].type->rank;
  const int64_t dim = mp_mosaic_op_int(op, "dimension", 0);
  if (rank == 0 || dim < 0 || dim >= (int64_t)rank) return;
  const uint32_t from_last = rank - 1 - (uint32_t)dim;
  int64_t at = 0;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_mosaic_type_t *part = op->operands[i]->type;
    if (at % price_shape_tile(part, from_last) != 0) {
      price_shape_shift(core, part, from_last, out);
      out->work[MP_PRICE_ARITHMETIC] += mp_price_registers(part);
    }
    at += part->dims[dim];
  }
}

static void price_shape_rotate(const mp_price_core_t *core, const mp_mosaic_op_t *op,
                               mp_price_need_t *out) {
  const uint32_t rank = op->results[0].type->rank;
  const int64_t dim = mp_mosaic_op_int(op, "dimension", 0);
  if (dim < 0 || dim >= (int64_t)rank) return;
  price_shape_shift(core, op->results[0].type, rank - 1 - (uint32_t)dim, out);
}

static void price_shape_transpose(const mp_price_core_t *core, const mp_mosaic_op_t *op,
                                  mp_price_need_t *out) {
  const mp_mosaic_type_t *from = op->operands[0]->type, *to = op->results[0].type;
  const mp_mosaic_attr_t *order = mp_mosaic_op_attr(op, "permutation");
  const uint32_t rank = from->rank;
  int64_t last = -1;
  if (order != NULL && order->kind == MP_MOSAIC_INTS && order->ints.count == rank && rank > 0)
    last = order->ints.values[rank - 1];
  if (order != NULL && order->kind == MP_MOSAIC_ARRAY && order->list.count == rank && rank > 0)
    last = order->list.items[rank - 1].value->i64;
  if (last == (int64_t)rank - 1) {  // the lanes stay: rows move
    const double registers = mp_price_registers(to);
    const bool is_free = rank > 2 && mp_price_dim(to, 1) == mp_price_dim(from, 1);
    out->work[MP_PRICE_ARITHMETIC] = is_free ? 0 : 4 * registers;
    out->latency = core->arithmetic * 4;
    return;
  }
  out->work[MP_PRICE_LANES] = fmax(mp_price_registers(from), mp_price_registers(to));
  out->latency = core->transpose;
}

// A reshape is free if the tiles stay what they are.
static void price_shape_reshape(const mp_price_core_t *core, const mp_mosaic_op_t *op,
                                mp_price_need_t *out) {
  const mp_mosaic_type_t *from = op->operands[0]->type, *to = op->results[0].type;
  if (from->kind != MP_MOSAIC_VECTOR || to->kind != MP_MOSAIC_VECTOR) return;
  const bool same_lanes = mp_price_dim(from, 0) == mp_price_dim(to, 0);
  const int64_t tile = price_shape_tile(to, 1);
  const bool whole = mp_price_dim(from, 1) % tile == 0 && mp_price_dim(to, 1) % tile == 0;
  const bool same_rows = mp_price_dim(from, 1) == mp_price_dim(to, 1);
  if (same_lanes && (whole || same_rows)) return;
  const double registers = fmax(mp_price_registers(from), mp_price_registers(to));
  // A row vector and a column of the same elements: through the unit for lanes.
  if (same_lanes) {
    out->work[MP_PRICE_ARITHMETIC] = 2 * registers;
    out->latency = 2 * core->arithmetic;
    return;
  }
  out->work[MP_PRICE_LANES] = registers;
  out->work[MP_PRICE_ARITHMETIC] = 2 * registers;
  out->latency = core->lanes;
}

// Scalars and rows are spread as they are loaded; a column is spread along the lanes.
static void price_shape_broadcast(const mp_price_core_t *core, const mp_mosaic_op_t *op,
                                  mp_price_need_t *out) {
  const mp_mosaic_type_t *from = op->operands[0]->type, *to = op->results[0].type;
  if (from->kind != MP_MOSAIC_VECTOR) return;
  if (mp_price_dim(from, 0) == 1 && mp_price_dim(to, 0) > 1 && mp_price_dim(from, 1) > 1) {
    out->work[MP_PRICE_LANES] = mp_price_wide_registers(from);
    out->latency = core->lanes;
  } else if (mp_price_dim(from, 1) == 1 && mp_price_dim(to, 1) > 1) {
    out->work[MP_PRICE_ARITHMETIC] = mp_price_registers(from);
    out->latency = core->arithmetic;
  }
}

void mp_price_shape(const mp_price_chip_t *chip, const mp_mosaic_op_t *op, mp_price_need_t *out) {
  const mp_price_core_t *core = mp_price_core(chip);
  const double registers = op->num_results == 0 ? 0 : mp_price_wide_registers(op->results[0].type);
  switch (op->code) {
    case MP_MOSAIC_MULTI_REDUCTION:
    case MP_MOSAIC_ALL_REDUCE:
    case MP_MOSAIC_REDUCE_INDEX:
      price_shape_reduce(core, op, out);
      return;
    case MP_MOSAIC_EXTRACT_STRIDED_SLICE:
      price_shape_slice(core, op, out);
      return;
    case MP_MOSAIC_CONCATENATE:
      price_shape_concatenate(core, op, out);
      return;
    case MP_MOSAIC_DYNAMIC_ROTATE:
      price_shape_rotate(core, op, out);
      return;
    case MP_MOSAIC_VECTOR_TRANSPOSE:
    case MP_MOSAIC_TRANSPOSE:
      price_shape_transpose(core, op, out);
      return;
    case MP_MOSAIC_SHAPE_CAST:
    case MP_MOSAIC_RESHAPE:
      price_shape_reshape(core, op, out);
      return;
    case MP_MOSAIC_BROADCAST:
    case MP_MOSAIC_BROADCAST_IN_SUBLANES:
      price_shape_broadcast(core, op, out);
      return;
    case MP_MOSAIC_IOTA:
    case MP_MOSAIC_VECTOR_BITCAST:
    case MP_MOSAIC_TPU_BITCAST:
    case MP_MOSAIC_BITCAST_VREG:
    case MP_MOSAIC_ASSUME_LAYOUT:
    case MP_MOSAIC_MASK_CAST:
    case MP_MOSAIC_REPEAT:
    case MP_MOSAIC_EXTRACT:
    case MP_MOSAIC_INSERT:
    case MP_MOSAIC_ROLL_VECTORS:
    case MP_MOSAIC_UNROLL_VECTORS:
    case MP_MOSAIC_CREATE_MASK:
      return;
    case MP_MOSAIC_DYNAMIC_GATHER:
    case MP_MOSAIC_GATHER:
      out->work[MP_PRICE_LANES] = registers;
      out->latency = core->lanes;
      return;
    case MP_MOSAIC_PRNG_RANDOM_BITS:
      out->work[MP_PRICE_ARITHMETIC] = 2 * registers;
      return;
    default:
      out->work[MP_PRICE_ARITHMETIC] = registers;
      out->latency = core->arithmetic;
  }
}
