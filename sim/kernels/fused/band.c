#include "sim/kernels/fused/band.h"

#include "sim/base/assert.h"
#include "sim/kernels/fused/tile/tile.h"
#include "sim/kernels/shape.h"

// Regions with more ops are ignored, because each of their values is searched in a list.
enum { MOST_VALUES = 128 };

// How much of a value a band needs.
typedef enum {
  BAND_UNUSED,
  BAND_PART,   // that of the band
  BAND_WHOLE,  // all of it
} band_need_t;

typedef struct {
  mp_arena_t *arena;
  const mp_block_t *region;
  uint32_t rank;  // of the leading dimensions
  uint32_t count;
  const mp_value_t *values[MOST_VALUES];  // of the region: arguments, then results in their order
  band_need_t needs[MOST_VALUES];
  mp_value_t *copies[MOST_VALUES];
} banding_t;

static uint32_t band_find_value(const banding_t *b, const mp_value_t *value) {
  for (uint32_t i = 0; i < b->count; ++i) {
    if (b->values[i] == value) return i;
  }
  return MOST_VALUES;
}

// Lists the region's values; false if there are too many, or an op of several results.
static bool band_list_values(banding_t *b) {
  const mp_block_t *region = b->region;
  for (uint32_t i = 0; i < region->num_args; ++i) {
    if (b->count == MOST_VALUES || !mp_type_is_tensor(region->args[i].type)) return false;
    b->values[b->count++] = &region->args[i];
  }
  for (const mp_op_t *op = region->first; op != region->last; op = op->next) {
    if (b->count == MOST_VALUES || op->num_results != 1) return false;
    b->values[b->count++] = &op->results[0];
  }
  return true;
}

// ---- What is needed ----

static bool band_want(banding_t *b, const mp_value_t *value, band_need_t need) {
  const uint32_t i = band_find_value(b, value);
  if (i == MOST_VALUES || (b->needs[i] != BAND_UNUSED && b->needs[i] != need)) return false;
  b->needs[i] = need;
  return true;
}

// Whether the types have the same leading dimensions.
static bool band_leads_alike(const banding_t *b, const mp_type_t *a, const mp_type_t *c) {
  if (a->rank < b->rank || c->rank < b->rank) return false;
  for (uint32_t i = 0; i < b->rank; ++i) {
    if (a->dims[i] != c->dims[i]) return false;
  }
  return true;
}

// Notes how much is needed of an operand that is broadcast to a value, if a band of the value is
// needed.
static bool band_want_broadcast(banding_t *b, const mp_op_t *op) {
  const mp_index_list_t dims = mp_op_ints(op, MP_ATTR_BROADCAST_DIMENSIONS);
  const mp_type_t *in = mp_op_operand_type(op, 0), *out = mp_op_result_type(op, 0);
  uint32_t leading = 0, same = 0, ones = 0;
  for (uint32_t i = 0; i < dims.count; ++i) {
    if (dims.values[i] >= (int64_t)b->rank) continue;
    ++leading;
    ones += in->dims[i] == 1;
    same += dims.values[i] == (int64_t)i && in->dims[i] == out->dims[i];
  }
  if (leading == ones) return band_want(b, op->operands[0], BAND_WHOLE);
  return leading == b->rank && same == leading && band_want(b, op->operands[0], BAND_PART);
}

static bool band_want_transposed(banding_t *b, const mp_op_t *op) {
  const mp_index_list_t order = mp_op_ints(op, MP_ATTR_PERMUTATION);
  for (uint32_t i = 0; i < b->rank; ++i) {
    if (order.values[i] != (int64_t)i) return false;
  }
  return band_want(b, op->operands[0], BAND_PART);
}

static bool band_want_reduced(banding_t *b, const mp_op_t *op) {
  const mp_index_list_t dims = mp_op_ints(op, MP_ATTR_DIMENSIONS);
  for (uint32_t i = 0; i < dims.count; ++i) {
    if (dims.values[i] < (int64_t)b->rank) return false;
  }
  return op->num_operands == 2 && band_want(b, op->operands[0], BAND_PART) &&
         band_want(b, op->operands[1], BAND_WHOLE);
}

// Notes the needs of an elementwise op: a band of each operand, or all of a scalar.
static bool band_want_elements(banding_t *b, const mp_op_t *op) {
  const mp_type_t *out = mp_op_result_type(op, 0);
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_type_t *in = mp_op_operand_type(op, i);
    const band_need_t need = in->rank == out->rank ? BAND_PART : BAND_WHOLE;
    if (!band_want(b, op->operands[i], need)) return false;
  }
  return true;
}

// Notes how much of each operand the op needs to compute a band of its result.
static bool band_want_operands(banding_t *b, const mp_op_t *op) {
  switch (op->code) {
    case MP_OP_CONSTANT:
      return mp_op_splat(op) != NULL;
    case MP_OP_IOTA:
      return mp_op_int(op, MP_ATTR_IOTA_DIMENSION, 0) >= (int64_t)b->rank;
    case MP_OP_BROADCAST_IN_DIM:
      return band_want_broadcast(b, op);
    case MP_OP_RESHAPE:
      return band_leads_alike(b, mp_op_operand_type(op, 0), mp_op_result_type(op, 0)) &&
             band_want(b, op->operands[0], BAND_PART);
    case MP_OP_TRANSPOSE:
      return band_want_transposed(b, op);
    case MP_OP_REDUCE:
      return band_want_reduced(b, op);
    default:
      return mp_tile_computes(op) && op->code != MP_OP_BITCAST_CONVERT && band_want_elements(b, op);
  }
}

// Goes back over the ops between the products, and the constants before them.
static bool band_want_middle(banding_t *b, const mp_op_t *first, const mp_op_t *last) {
  for (const mp_op_t *op = last->prev; op != NULL; op = op->prev) {
    const uint32_t i = band_find_value(b, &op->results[0]);
    if (op == first) continue;
    if (b->needs[i] == BAND_PART && !band_want_operands(b, op)) return false;
    if (b->needs[i] != BAND_WHOLE) continue;
    for (uint32_t k = 0; k < op->num_operands; ++k) {
      if (!band_want(b, op->operands[k], BAND_WHOLE)) return false;
    }
  }
  return true;
}

// ---- Products ----

// Whether the op is a product whose first `rank` dimensions are those of the batch on both sides.
static bool band_is_product(const mp_op_t *op, uint32_t rank) {
  if (op->code != MP_OP_DOT_GENERAL) return false;
  const mp_index_list_t sides[] = {mp_op_ints(op, MP_ATTR_LHS_BATCHING_DIMENSIONS),
                                   mp_op_ints(op, MP_ATTR_RHS_BATCHING_DIMENSIONS)};
  if (sides[0].count != rank || sides[1].count != rank) return false;
  for (uint32_t i = 0; i < rank; ++i) {
    if (sides[0].values[i] != (int64_t)i || sides[1].values[i] != (int64_t)i) return false;
  }
  return true;
}

static bool band_want_all(banding_t *b, mp_bands_t *bands) {
  const mp_op_t *first = bands->inputs[0], *last = bands->inputs[1];
  const mp_value_t *middle = last->operands[bands->operand];
  if (middle->op == NULL || middle->op == first) return false;
  return band_want(b, middle, BAND_PART) && band_want_middle(b, first, last) &&
         b->needs[band_find_value(b, &first->results[0])] == BAND_PART &&
         band_want(b, last->operands[1 - bands->operand], BAND_PART) &&
         band_want(b, first->operands[0], BAND_PART) && band_want(b, first->operands[1], BAND_PART);
}

// Finds the products of the region: its first op that is not only a constant, and its last one.
static bool band_find_products(const mp_block_t *region, mp_bands_t *bands) {
  const mp_op_t *end = mp_block_terminator(region), *last = end->prev, *first = region->first;
  if (last == NULL || last->code != MP_OP_DOT_GENERAL || end->num_operands != 1) return false;
  while (first->code == MP_OP_CONSTANT) first = first->next;
  if (first == last || end->operands[0] != &last->results[0]) return false;
  const uint32_t rank = mp_op_ints(last, MP_ATTR_LHS_BATCHING_DIMENSIONS).count;
  if (rank == 0 || !band_is_product(first, rank) || !band_is_product(last, rank)) return false;
  const bool from_left = last->operands[0]->op != NULL, from_right = last->operands[1]->op != NULL;
  bands->inputs[0] = first;
  bands->inputs[1] = last;
  bands->operand = from_left ? 0 : 1;
  return from_left != from_right && first->operands[0]->op == NULL &&
         first->operands[1]->op == NULL;
}

// ---- The ops of a band ----

static mp_status_t band_make_type(const banding_t *b, const mp_type_t *type, band_need_t need,
                                  const mp_type_t **out_type) {
  *out_type = type;
  if (need != BAND_PART) return NULL;
  int64_t dims[MP_MAX_RANK];
  for (uint32_t i = 0; i < type->rank; ++i) dims[i] = i < b->rank ? 1 : type->dims[i];
  return mp_type_tensor(b->arena, type->dtype, dims, type->rank, out_type);
}

// Makes an op like `op` without operands, whose results have the types.
static mp_status_t band_make_op(const banding_t *b, const mp_op_t *op, const mp_type_t *type,
                                mp_op_t **out_op) {
  mp_op_t *copy = *out_op = MP_ARENA_NEW(b->arena, mp_op_t);
  mp_value_t *results = MP_ARENA_NEW(b->arena, mp_value_t);
  if (copy == NULL || results == NULL) return mp_status_out_of_memory();
  *copy = *op;
  copy->parent = NULL;
  copy->prev = copy->next = NULL;
  copy->operands = NULL;
  copy->results = results;
  *results = (mp_value_t){.type = type, .op = copy};
  return NULL;
}

// Copies an op of the region; its operands are copies.
static mp_status_t band_copy_op(banding_t *b, const mp_op_t *op, mp_op_t **out_op) {
  const mp_type_t *type = NULL;
  mp_op_t *copy = NULL;
  uint32_t result = MOST_VALUES;
  if (op->num_results == 1) {
    result = band_find_value(b, &op->results[0]);
    MP_RETURN_IF_ERROR(band_make_type(b, op->results[0].type, b->needs[result], &type));
  }
  MP_RETURN_IF_ERROR(band_make_op(b, op, type, &copy));
  copy->operands = MP_ARENA_ARRAY(b->arena, mp_value_t *, (size_t)op->num_operands + 1);
  MP_RETURN_IF_NULL(copy->operands);
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    copy->operands[i] = b->copies[band_find_value(b, op->operands[i])];
  }
  if (result != MOST_VALUES) b->copies[result] = &copy->results[0];
  *out_op = copy;
  return NULL;
}

// The block of the op in the middle, with its arguments.
static mp_status_t band_make_block(banding_t *b, const mp_type_t *product, mp_block_t **out_block) {
  const uint32_t count = b->region->num_args + 1;
  mp_block_t *block = *out_block = MP_ARENA_NEW(b->arena, mp_block_t);
  MP_RETURN_IF_NULL(block);
  block->num_args = count;
  block->args = MP_ARENA_ARRAY(b->arena, mp_value_t, count);
  MP_RETURN_IF_NULL(block->args);
  for (uint32_t i = 0; i < count; ++i) {
    const mp_type_t *type = product;
    if (i + 1 < count) {
      MP_RETURN_IF_ERROR(band_make_type(b, b->values[i]->type, b->needs[i], &type));
      b->copies[i] = &block->args[i];
    }
    block->args[i] = (mp_value_t){.type = type, .block = block, .index = i & MP_VALUE_INDEX_MOST};
  }
  return NULL;
}

static mp_status_t band_make_middle(banding_t *b, const mp_op_t *fusion, mp_block_t *block,
                                    mp_bands_t *bands) {
  const mp_op_t *last = bands->inputs[1];
  for (const mp_op_t *op = b->region->first; op != last; op = op->next) {
    mp_op_t *copy = NULL;
    const uint32_t i = band_find_value(b, &op->results[0]);
    if (op == bands->inputs[0] || b->needs[i] == BAND_UNUSED) continue;
    MP_RETURN_IF_ERROR(band_copy_op(b, op, &copy));
    mp_block_append(block, copy);
  }
  mp_value_t *result = b->copies[band_find_value(b, last->operands[bands->operand])];
  mp_op_t *end = NULL, *middle = NULL;
  MP_RETURN_IF_ERROR(band_copy_op(b, mp_block_terminator(b->region), &end));
  end->operands[0] = result;
  mp_block_append(block, end);
  MP_RETURN_IF_ERROR(band_make_op(b, fusion, result->type, &middle));
  middle->num_operands = block->num_args;
  middle->operands = MP_ARENA_ARRAY(b->arena, mp_value_t *, block->num_args);
  middle->regions = MP_ARENA_NEW(b->arena, mp_block_t *);
  if (middle->operands == NULL || middle->regions == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < block->num_args; ++i) middle->operands[i] = &block->args[i];
  middle->regions[0] = block;
  block->parent_op = middle;
  bands->middle = middle;
  return NULL;
}

static mp_status_t band_make_all(banding_t *b, const mp_op_t *fusion, mp_bands_t *bands) {
  const mp_op_t *first = bands->inputs[0];
  const uint32_t product = band_find_value(b, &first->results[0]);
  const mp_type_t *type = NULL;
  mp_block_t *block = NULL;
  bool *has_bands = MP_ARENA_ARRAY(b->arena, bool, (size_t)b->region->num_args + 1);
  MP_RETURN_IF_NULL(has_bands);
  for (uint32_t i = 0; i < b->region->num_args; ++i) has_bands[i] = b->needs[i] == BAND_PART;
  bands->has_bands = has_bands;
  MP_RETURN_IF_ERROR(band_make_type(b, first->results[0].type, BAND_PART, &type));
  MP_RETURN_IF_ERROR(band_make_block(b, type, &block));
  MP_RETURN_IF_ERROR(band_copy_op(b, first, &bands->first));
  b->copies[product] = &block->args[b->region->num_args];
  MP_RETURN_IF_ERROR(band_make_middle(b, fusion, block, bands));
  return band_copy_op(b, bands->inputs[1], &bands->last);
}

mp_status_t mp_bands_find(mp_arena_t *arena, const mp_op_t *fusion, bool *out_found,
                          mp_bands_t *out_bands) {
  const mp_block_t *region = fusion->regions[0];
  mp_bands_t bands = {.count = 1};
  *out_found = false;
  if (!band_find_products(region, &bands)) return NULL;
  banding_t *b = MP_ARENA_NEW(arena, banding_t);
  MP_RETURN_IF_NULL(b);
  *b = (banding_t){.arena = arena, .region = region};
  b->rank = mp_op_ints(bands.inputs[1], MP_ATTR_LHS_BATCHING_DIMENSIONS).count;
  if (!band_list_values(b) || !band_want_all(b, &bands)) return NULL;
  if (!band_want(b, &bands.inputs[1]->results[0], BAND_PART)) return NULL;
  for (uint32_t i = 0; i < b->rank; ++i) bands.count *= fusion->results[0].type->dims[i];
  if (bands.count == 0) return NULL;
  MP_RETURN_IF_ERROR(band_make_all(b, fusion, &bands));
  *out_found = true;
  *out_bands = bands;
  return NULL;
}
