// GPUs: reductions of rows that XLA fuses with the ops that read the rows again.
#include "sim/base/hash.h"
#include "sim/chip/fuse/chip_fusion_impl.h"

// The longest chain of ops between a reduction and the op that reads the rows again.
#define CHIP_FUSION_ROWS_OPS_MOST 16

// The only op that reads a value; NULL: none, several, or one that reads it from memory.
static const mp_chip_fusion_use_t *chip_fusion_rows_reader(const mp_chip_fusion_find_t *find,
                                                           const mp_value_t *value) {
  const mp_chip_fusion_value_t *entry;
  MP_HASH_MAP_GET(&find->values, mp_hash_pointer(value), entry);
  if (entry == NULL || entry->memory_use != MP_CHIP_FUSION_NONE) return NULL;
  if (entry->first_use == MP_CHIP_FUSION_NONE) return NULL;
  const mp_chip_fusion_use_t *use = &find->uses.items[entry->first_use];
  return use->next == MP_CHIP_FUSION_NONE ? use : NULL;
}

// The only array that an elementwise op reads, besides scalars; NULL: several, or none.
static const mp_value_t *chip_fusion_rows_operand(const mp_chip_fusion_find_t *find,
                                                  const mp_op_t *op) {
  if (!mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE) || op->num_results != 1) return NULL;
  const mp_value_t *only = NULL;
  for (mp_chip_fusion_read_t read = {0};
       mp_chip_fusion_next(find->figures, op, MP_CHIP_FUSION_LOOP, &read);) {
    if (mp_chip_fusion_value_count(read.value) == 1 || read.value == only) continue;
    if (only != NULL || read.is_reused) return NULL;
    only = read.value;
  }
  return only;
}

// Whether one value is computed from the other by ops of one operand.
static bool chip_fusion_rows_comes_of(const mp_chip_fusion_find_t *find, const mp_value_t *value,
                                      const mp_value_t *of) {
  for (uint32_t i = 0; i < CHIP_FUSION_ROWS_OPS_MOST && value != NULL; ++i) {
    if (value == of) return true;
    value = value->op == NULL ? NULL : chip_fusion_rows_operand(find, value->op);
  }
  return false;
}

// Whether an operand of the op, and the reduced value, are computed from the same value.
static bool chip_fusion_rows_meet(const mp_chip_fusion_find_t *find, const mp_op_t *op,
                                  const mp_value_t *summed) {
  for (mp_chip_fusion_read_t read = {0};
       mp_chip_fusion_next(find->figures, op, MP_CHIP_FUSION_LOOP, &read);) {
    if (read.is_reused) continue;
    const mp_value_t *of = summed;
    for (uint32_t j = 0; j < CHIP_FUSION_ROWS_OPS_MOST && of != NULL; ++j) {
      if (chip_fusion_rows_comes_of(find, read.value, of)) return true;
      of = of->op == NULL ? NULL : chip_fusion_rows_operand(find, of->op);
    }
  }
  return false;
}

// The op that reads the broadcast result of a reduction; NULL: none, or several.
static const mp_op_t *chip_fusion_rows_end_of(const mp_chip_fusion_find_t *find,
                                              const mp_op_t *sum) {
  if (sum->num_results != 1) return NULL;
  const mp_value_t *value = &sum->results[0];
  for (uint32_t i = 0; i < CHIP_FUSION_ROWS_OPS_MOST; ++i) {
    const mp_chip_fusion_use_t *reader = chip_fusion_rows_reader(find, value);
    if (reader == NULL || !mp_op_has(reader->op, MP_OP_TRAIT_ELEMENTWISE)) return NULL;
    if (mp_chip_fusion_op_count(reader->op) > mp_chip_fusion_value_count(value)) return reader->op;
    value = &reader->op->results[0];
  }
  return NULL;
}

bool mp_chip_fusion_closes_rows(const mp_chip_fusion_find_t *find, const mp_op_t *op) {
  return chip_fusion_rows_end_of(find, op) != NULL;
}

bool mp_chip_fusion_is_between_rows(const mp_chip_fusion_find_t *find, const mp_op_t *op) {
  const mp_op_t *end = chip_fusion_rows_end_of(find, op);
  for (uint32_t i = 0; end != NULL && i < CHIP_FUSION_ROWS_OPS_MOST; ++i) {
    const mp_value_t *value = chip_fusion_rows_operand(find, op);
    if (value == NULL || value->op == NULL) return false;
    op = value->op;
    if (mp_chip_fusion_row(op) > 0) {
      return chip_fusion_rows_meet(find, end, mp_chip_fusion_root(op->operands[0]));
    }
  }
  return false;
}

// Whether the op reads what is computed from a reduction of rows, broadcast over them.
static bool chip_fusion_rows_takes_sum(const mp_chip_fusion_find_t *find, const mp_op_t *op) {
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    bool is_reused = false;
    const mp_value_t *value =
        mp_chip_fusion_source(find->figures, op, MP_CHIP_FUSION_LOOP, i, &is_reused);
    for (uint32_t j = 0; is_reused && value != NULL && j < CHIP_FUSION_ROWS_OPS_MOST; ++j) {
      if (value->op == NULL) break;
      if (mp_chip_fusion_row(value->op) > 0) return true;
      value = chip_fusion_rows_operand(find, value->op);
    }
  }
  return false;
}

// Whether up to `depth` elementwise ops in kernels compute a value from such a broadcast.
static bool chip_fusion_rows_has_end(const mp_chip_fusion_find_t *find, const mp_value_t *value,
                                     uint32_t depth) {
  if (value == NULL || value->op == NULL || depth == 0) return false;
  const mp_op_t *op = value->op;
  if (!mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE)) return false;
  if (chip_fusion_rows_takes_sum(find, op)) return true;
  for (mp_chip_fusion_read_t read = {0};
       mp_chip_fusion_next(find->figures, op, MP_CHIP_FUSION_LOOP, &read);) {
    if (!read.is_reused && chip_fusion_rows_has_end(find, read.value, depth - 1)) return true;
  }
  return false;
}

bool mp_chip_fusion_follows_rows(const mp_chip_fusion_find_t *find, const mp_op_t *op) {
  enum { OPS_MOST = 5 };
  if (op->num_results != 1) return false;
  return chip_fusion_rows_has_end(find, mp_chip_fusion_root(op->operands[0]), OPS_MOST);
}

// The first array that an elementwise op reads; NULL: none.
static const mp_value_t *chip_fusion_rows_first(const mp_chip_fusion_find_t *find,
                                                const mp_op_t *op) {
  if (!mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE)) return NULL;
  for (mp_chip_fusion_read_t read = {0};
       mp_chip_fusion_next(find->figures, op, MP_CHIP_FUSION_LOOP, &read);) {
    if (read.is_reused || read.value->op == NULL) continue;
    if (read.value->op->code == MP_OP_COMPARE || read.value->op->code == MP_OP_AND) continue;
    return read.value;
  }
  return NULL;
}

bool mp_chip_fusion_is_transposed(const mp_chip_fusion_find_t *find, const mp_op_t *op) {
  bool is_transposed = false;
  const mp_value_t *value = mp_chip_fusion_root(op->operands[0]);
  for (uint32_t i = 0; i < CHIP_FUSION_ROWS_OPS_MOST && value != NULL && value->op != NULL; ++i) {
    if (value->op->code == MP_OP_DOT_GENERAL) return is_transposed;
    if (value->op->code != MP_OP_TRANSPOSE) {
      value = chip_fusion_rows_first(find, value->op);
      continue;
    }
    const mp_index_list_t order = mp_op_ints(value->op, MP_ATTR_PERMUTATION);
    is_transposed |= order.count > 0 && order.values[order.count - 1] + 1 != (int64_t)order.count;
    value = mp_chip_fusion_root(value->op->operands[0]);
  }
  return false;
}
