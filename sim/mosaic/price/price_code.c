#include "sim/mosaic/price/price_code.h"

#include <math.h>

// Among so many ops before one, equal ones are looked for.
enum { PRICE_RECENT = 32 };

typedef struct {
  const mp_price_chip_t *chip;
  mp_price_value_t *values;
  uint32_t code;
  double chain;  // the longest one
  uint32_t num_ops;
  const mp_mosaic_op_t *recent[PRICE_RECENT];  // the last ones, in any order
  mp_price_code_t *out;
} coder_t;

static bool price_code_is_vector(const mp_mosaic_value_t *value) {
  return value->type->kind == MP_MOSAIC_VECTOR;
}

static mp_mosaic_class_t price_code_class(const mp_mosaic_op_t *op) {
  return mp_mosaic_op_info(op->code)->op_class;
}

bool mp_price_is_code(const mp_mosaic_op_t *op) {
  switch (price_code_class(op)) {
    case MP_MOSAIC_CLASS_VECTOR:
      return true;
    case MP_MOSAIC_CLASS_SCALAR_OR_VECTOR:
    case MP_MOSAIC_CLASS_READ:
      return op->num_results > 0 && price_code_is_vector(&op->results[0]);
    case MP_MOSAIC_CLASS_WRITE:
      return op->num_operands > 0 &&
             (price_code_is_vector(op->operands[0]) ||
              (op->num_operands > 1 && price_code_is_vector(op->operands[1])));
    default:
      return false;
  }
}

// ---- what is used ----

static bool price_code_has_effect(const mp_mosaic_op_t *op) {
  const mp_mosaic_class_t op_class = price_code_class(op);
  return op->num_results == 0 || op_class == MP_MOSAIC_CLASS_FLOW ||
         op_class == MP_MOSAIC_CLASS_ASYNC || op_class == MP_MOSAIC_CLASS_WRITE;
}

static bool price_code_is_used(const mp_mosaic_op_t *op, const mp_price_value_t *values) {
  if (price_code_has_effect(op)) return true;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    if (values[op->results[i].id].is_used) return true;
  }
  return false;
}

// Backwards, so that users come before what they use.
mp_status_t mp_price_mark_used(mp_arena_t *arena, const mp_mosaic_block_t *block,
                               mp_price_value_t *values) {
  uint32_t count = 0;
  const mp_mosaic_op_t **ops = mp_mosaic_block_ops(block, arena, &count);
  MP_RETURN_IF_NULL(ops);
  while (count-- > 0) {
    const mp_mosaic_op_t *op = ops[count];
    for (uint32_t r = 0; r < op->num_regions; ++r) {
      if (op->regions[r] == NULL) continue;
      MP_RETURN_IF_ERROR(mp_price_mark_used(arena, op->regions[r], values));
    }
    if (!price_code_is_used(op, values)) continue;
    for (uint32_t i = 0; i < op->num_operands; ++i) values[op->operands[i]->id].is_used = true;
  }
  return NULL;
}

// ---- what an op needs ----

static uint32_t price_code_stored(const mp_mosaic_op_t *op) {
  // tpu.vector_store has the vector first, as all stores have.
  return price_code_is_vector(op->operands[0]) ? 0 : 1;
}

static void price_code_access(const mp_mosaic_op_t *op, mp_price_need_t *out) {
  if (price_code_class(op) == MP_MOSAIC_CLASS_READ) {
    out->work[MP_PRICE_LOAD] = mp_price_registers(op->results[0].type);
    out->latency = 1;
    return;
  }
  const mp_mosaic_type_t *stored = op->operands[price_code_stored(op)]->type;
  out->work[MP_PRICE_STORE] = mp_price_registers(stored);
  out->latency = 1;
  if (mp_mosaic_op_int(op, "add", 0) != 0) {
    out->work[MP_PRICE_LOAD] = out->work[MP_PRICE_STORE];
    out->work[MP_PRICE_ARITHMETIC] = out->work[MP_PRICE_STORE];
  }
}

static void price_code_need(const coder_t *c, const mp_mosaic_op_t *op, mp_price_need_t *out) {
  const mp_mosaic_class_t op_class = price_code_class(op);
  *out = (mp_price_need_t){0};
  if (op_class == MP_MOSAIC_CLASS_READ || op_class == MP_MOSAIC_CLASS_WRITE) {
    price_code_access(op, out);
  } else if (op->code == MP_MOSAIC_MATMUL) {
    mp_price_matmul(c->chip, op, out);
    // The third operand is added, unless it is zero.
    if (!c->values[op->operands[2]->id].is_same)
      out->work[MP_PRICE_ARITHMETIC] += mp_price_wide_registers(op->results[0].type);
  } else if (!mp_price_elementwise(c->chip, op, out)) {
    mp_price_shape(c->chip, op, out);
  }
}

// ---- values ----

static bool price_code_all_same(const coder_t *c, const mp_mosaic_op_t *op) {
  if (op->code == MP_MOSAIC_IOTA || op->code == MP_MOSAIC_CONSTANT) return true;
  const mp_mosaic_class_t op_class = price_code_class(op);
  if (op_class != MP_MOSAIC_CLASS_SCALAR_OR_VECTOR && op_class != MP_MOSAIC_CLASS_VECTOR)
    return false;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    if (price_code_is_vector(op->operands[i]) && !c->values[op->operands[i]->id].is_same)
      return false;
  }
  return op->code != MP_MOSAIC_PRNG_RANDOM_BITS;
}

static bool price_code_is_spread(const coder_t *c, const mp_mosaic_op_t *op) {
  const mp_mosaic_type_t *type = op->results[0].type;
  if (op->code == MP_MOSAIC_MULTI_REDUCTION) return true;
  if (op->code == MP_MOSAIC_LOG_VALUES || op->num_operands == 0) return false;
  bool spread = true;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_price_value_t *operand = &c->values[op->operands[i]->id];
    spread &= operand->is_same || operand->is_spread || !price_code_is_vector(op->operands[i]);
  }
  return spread && type->kind == MP_MOSAIC_VECTOR && price_code_class(op) != MP_MOSAIC_CLASS_READ;
}

static double price_code_begin(const coder_t *c, const mp_mosaic_op_t *op) {
  double at = 0;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_price_value_t *operand = &c->values[op->operands[i]->id];
    if (operand->code == c->code) at = fmax(at, operand->ready);
  }
  return at;
}

static bool price_code_is_spread_broadcast(const coder_t *c, const mp_mosaic_op_t *op) {
  return (op->code == MP_MOSAIC_BROADCAST || op->code == MP_MOSAIC_SHAPE_CAST) &&
         c->values[op->operands[0]->id].is_spread;
}

// Rows that have the same element in all lanes have one register, however long they are.
static double price_code_lane_tiles(const mp_mosaic_type_t *type) {
  return fmax(ceil((double)mp_price_dim(type, 0) / MP_PRICE_LANES_OF_REGISTER), 1);
}

static void price_code_scale(mp_price_need_t *need, double by) {
  for (int u = 0; u < MP_PRICE_UNIT_COUNT; ++u) need->work[u] *= by;
}

// A quotient by numbers that do not differ along the lanes is a product by their reciprocals.
static void price_code_divide(const coder_t *c, const mp_mosaic_op_t *op, mp_price_need_t *need) {
  if (op->code != MP_MOSAIC_DIVF) return;
  const mp_price_value_t *divisor = &c->values[op->operands[1]->id];
  const mp_mosaic_type_t *type = op->results[0].type;
  if (!divisor->is_same && !divisor->is_spread) return;
  price_code_scale(need, divisor->is_same ? 0 : 1 / price_code_lane_tiles(type));
  need->work[MP_PRICE_ARITHMETIC] += mp_price_wide_registers(type);
}

// The id of the value that this one is equal to.
static uint32_t price_code_origin(const coder_t *c, const mp_mosaic_value_t *value) {
  const uint32_t same_as = c->values[value->id].same_as;
  return same_as == 0 ? value->id : same_as - 1;
}

// An equal op shortly before; NULL: there is none. libtpu computes it once.
static const mp_mosaic_op_t *price_code_equal(const coder_t *c, const mp_mosaic_op_t *op) {
  const bool is_plain =
      op->code == MP_MOSAIC_BROADCAST || price_code_class(op) == MP_MOSAIC_CLASS_SCALAR_OR_VECTOR;
  if (op->num_results != 1 || op->num_operands == 0 || op->code == MP_MOSAIC_CMPF ||
      op->code == MP_MOSAIC_CMPI || !is_plain)
    return NULL;
  for (uint32_t i = 0; i < PRICE_RECENT; ++i) {
    const mp_mosaic_op_t *other = c->recent[i];
    if (other == NULL || other->code != op->code || other->num_operands != op->num_operands ||
        !mp_mosaic_type_equal(other->results[0].type, op->results[0].type))
      continue;
    bool is_equal = true;
    for (uint32_t k = 0; k < op->num_operands; ++k)
      is_equal &= price_code_origin(c, other->operands[k]) == price_code_origin(c, op->operands[k]);
    if (is_equal) return other;
  }
  return NULL;
}

static bool price_code_reuse(coder_t *c, const mp_mosaic_op_t *op) {
  const mp_mosaic_op_t *equal = price_code_equal(c, op);
  c->recent[c->num_ops++ % PRICE_RECENT] = op;
  if (equal == NULL) return false;
  mp_price_value_t *value = &c->values[op->results[0].id];
  *value = c->values[equal->results[0].id];
  value->same_as = 1 + price_code_origin(c, &equal->results[0]);
  return true;
}

static void price_code_add(coder_t *c, const mp_mosaic_op_t *op) {
  if (price_code_reuse(c, op)) return;
  const double at = price_code_begin(c, op);
  mp_price_need_t need;
  price_code_need(c, op, &need);
  const bool is_elementwise =
      price_code_class(op) == MP_MOSAIC_CLASS_SCALAR_OR_VECTOR && op->num_results > 0;
  if (is_elementwise) price_code_divide(c, op, &need);
  if (is_elementwise && price_code_is_spread(c, op))
    price_code_scale(&need, 1 / price_code_lane_tiles(op->results[0].type));
  const bool is_same = op->num_results > 0 && price_code_all_same(c, op);
  if (is_same || price_code_is_spread_broadcast(c, op)) need = (mp_price_need_t){0};
  for (int u = 0; u < MP_PRICE_UNIT_COUNT; ++u) c->out->units[u] += need.work[u];
  c->out->flops += need.flops;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    mp_price_value_t *value = &c->values[op->results[i].id];
    *value = (mp_price_value_t){.ready = at + need.latency,
                                .code = c->code,
                                .is_same = is_same,
                                .is_spread = !is_same && price_code_is_spread(c, op),
                                .is_used = true};
  }
  c->chain = fmax(c->chain, at + need.latency);
}

// ---- the whole ----

static void price_code_finish(const coder_t *c) {
  const mp_price_core_t *core = mp_price_core(c->chip);
  mp_price_code_t *out = c->out;
  double longest = 0;
  out->units[MP_PRICE_MEMORY] = out->units[MP_PRICE_LOAD] + out->units[MP_PRICE_STORE];
  for (int u = 0; u < MP_PRICE_UNIT_COUNT; ++u) {
    out->units[u] *= core->cycles[u];
    longest = fmax(longest, out->units[u]);
  }
  out->cycles = ceil(longest + (c->chip->rules.latency ? c->chain : 0));
}

void mp_price_code(const mp_price_chip_t *chip, const mp_mosaic_op_t *first,
                   const mp_mosaic_op_t *end, uint32_t code, mp_price_value_t *values,
                   mp_price_code_t *out_code) {
  *out_code = (mp_price_code_t){0};
  coder_t c = {.chip = chip, .values = values, .code = code, .out = out_code};
  for (const mp_mosaic_op_t *op = first; op != end && op != NULL; op = op->next) {
    if (mp_price_is_code(op) && price_code_is_used(op, values)) price_code_add(&c, op);
  }
  price_code_finish(&c);
}
