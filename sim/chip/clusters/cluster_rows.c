// Which sums of rows XLA's compiler for GPUs has in one kernel with what comes of them.
#include "sim/base/hash.h"
#include "sim/chip/clusters/cluster_impl.h"

// No chain between a sum and where it is used is longer.
#define CLUSTER_ROWS_OPS_MOST 16

// The op that reads a value, if there is one only; NULL: nobody, or several, or not in kernels.
static const mp_cluster_use_t *cluster_rows_reader(const mp_cluster_find_t *find,
                                                   const mp_value_t *value) {
  const mp_cluster_value_t *entry;
  MP_HASH_MAP_GET(&find->values, mp_hash_pointer(value), entry);
  if (entry == NULL || entry->memory_use != MP_CLUSTER_NONE) return NULL;
  const mp_cluster_use_t *only = NULL;
  for (uint32_t at = entry->first_use; at != MP_CLUSTER_NONE; at = find->uses.items[at].next) {
    if (only != NULL && find->uses.items[at].op != only->op) return NULL;
    only = &find->uses.items[at];
  }
  return only;
}

// What an op goes through, if it is one array besides numbers that are the same for all elements;
// else NULL.
static const mp_value_t *cluster_rows_operand(const mp_cluster_find_t *find, const mp_op_t *op) {
  if (!mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE) || op->num_results != 1) return NULL;
  const mp_value_t *only = NULL;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    bool is_reused = false;
    const mp_value_t *value = mp_cluster_source(find->compiler, op, MP_CLUSTER_LOOP, i, &is_reused);
    if (value == NULL || mp_cluster_value_count(value) == 1 || value == only) continue;
    if (only != NULL || is_reused) return NULL;
    only = value;
  }
  return only;
}

// Whether one value is made of the other by ops of one operand.
static bool cluster_rows_comes_of(const mp_cluster_find_t *find, const mp_value_t *value,
                                  const mp_value_t *of) {
  for (uint32_t i = 0; i < CLUSTER_ROWS_OPS_MOST && value != NULL; ++i) {
    if (value == of) return true;
    value = value->op == NULL ? NULL : cluster_rows_operand(find, value->op);
  }
  return false;
}

// Whether an op has on one of its sides what both values are made of.
static bool cluster_rows_meet(const mp_cluster_find_t *find, const mp_op_t *op,
                              const mp_value_t *summed) {
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    bool is_reused = false;
    const mp_value_t *value = mp_cluster_source(find->compiler, op, MP_CLUSTER_LOOP, i, &is_reused);
    if (value == NULL || is_reused) continue;
    const mp_value_t *of = summed;
    for (uint32_t j = 0; j < CLUSTER_ROWS_OPS_MOST && of != NULL; ++j) {
      if (cluster_rows_comes_of(find, value, of)) return true;
      of = of->op == NULL ? NULL : cluster_rows_operand(find, of->op);
    }
  }
  return false;
}

bool mp_cluster_closes_rows(const mp_cluster_find_t *find, const mp_op_t *op) {
  if (op->num_results != 1) return false;
  const mp_value_t *summed = mp_cluster_root(op->operands[0]), *value = &op->results[0];
  for (uint32_t i = 0; i < CLUSTER_ROWS_OPS_MOST; ++i) {
    const mp_cluster_use_t *reader = cluster_rows_reader(find, value);
    if (reader == NULL || !mp_op_has(reader->op, MP_OP_TRAIT_ELEMENTWISE)) return false;
    if (mp_cluster_op_count(reader->op) > mp_cluster_value_count(value)) {
      return cluster_rows_meet(find, reader->op, summed);
    }
    value = &reader->op->results[0];
  }
  return false;
}
