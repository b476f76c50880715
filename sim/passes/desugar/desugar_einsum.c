// einsum and unary_einsum ("ab,bc->ac"). Each operand is first summed over the labels that neither
// the other operand nor the result has; what remains is one dot_general, and a transpose that puts
// the result's labels in order.
#include <string.h>

#include "sim/ir/reducer.h"
#include "sim/passes/desugar/desugar_impl.h"
#include "sim/passes/rewrite/rewrite.h"

// The labels of a value's dimensions.
typedef struct {
  uint32_t count;
  char labels[MP_MAX_RANK];
} labels_t;

static mp_status_t desugar_einsum_bad_config(const mp_op_t *op, mp_status_code_t code,
                                             const char *what) {
  return mp_op_error(op, code, "einsum \"%.*s\": %s",
                     MP_STR_ARG(mp_op_str(op, MP_ATTR_EINSUM_CONFIG)), what);
}

static int desugar_einsum_find_label(const labels_t *labels, char label) {
  const char *at = memchr(labels->labels, label, labels->count);
  return at == NULL ? -1 : (int)(at - labels->labels);
}

static bool desugar_einsum_is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static mp_status_t desugar_einsum_parse_labels(const mp_op_t *op, mp_str_t text, size_t *at,
                                               labels_t *out_labels) {
  labels_t labels = {0};
  for (; *at < text.size && desugar_einsum_is_letter(text.data[*at]); ++*at) {
    if (labels.count == MP_MAX_RANK) {
      return desugar_einsum_bad_config(op, MP_UNIMPLEMENTED, "too many dimensions");
    }
    if (desugar_einsum_find_label(&labels, text.data[*at]) >= 0) {
      return desugar_einsum_bad_config(op, MP_UNIMPLEMENTED,
                                       "a label twice in one array is not supported");
    }
    labels.labels[labels.count++] = text.data[*at];
  }
  *out_labels = labels;
  return NULL;
}

// Reads one list of labels per operand and the result's. Every other spelling (ellipses, spaces, no
// arrow) is refused.
static mp_status_t desugar_einsum_parse_config(const mp_op_t *op, uint32_t num_operands,
                                               labels_t *operands, labels_t *result) {
  const mp_str_t text = mp_op_str(op, MP_ATTR_EINSUM_CONFIG);
  size_t at = 0;
  for (uint32_t i = 0; i < num_operands; ++i) {
    if (i > 0 && (at == text.size || text.data[at++] != ',')) {
      return desugar_einsum_bad_config(op, MP_INVALID_ARGUMENT,
                                       "expected one label list for each operand");
    }
    MP_RETURN_IF_ERROR(desugar_einsum_parse_labels(op, text, &at, &operands[i]));
    if (operands[i].count != op->operands[i]->type->rank) {
      return desugar_einsum_bad_config(op, MP_INVALID_ARGUMENT,
                                       "the labels do not fit the operands' ranks");
    }
  }
  if (text.size - at < 2 || text.data[at] != '-' || text.data[at + 1] != '>') {
    return desugar_einsum_bad_config(op, MP_UNIMPLEMENTED,
                                     "only letters, ',' and '->' are supported");
  }
  at += 2;
  MP_RETURN_IF_ERROR(desugar_einsum_parse_labels(op, text, &at, result));
  if (at != text.size || result->count != op->results[0].type->rank) {
    return desugar_einsum_bad_config(op, MP_INVALID_ARGUMENT,
                                     "the result's labels do not fit its rank");
  }
  for (uint32_t i = 0; i < result->count; ++i) {
    bool found = false;
    for (uint32_t k = 0; k < num_operands; ++k) {
      found |= desugar_einsum_find_label(&operands[k], result->labels[i]) >= 0;
    }
    if (!found)
      return desugar_einsum_bad_config(op, MP_INVALID_ARGUMENT,
                                       "no operand has a label of the result");
  }
  return NULL;
}

// Sums `value` over the labels that are in neither of the kept lists, and removes them from
// `labels`.
static mp_status_t desugar_einsum_sum_out(mp_module_t *module, mp_op_t *op, const labels_t *kept_a,
                                          const labels_t *kept_b, labels_t *labels,
                                          mp_value_t **value) {
  const mp_type_t *type = (*value)->type;
  int64_t summed[MP_MAX_RANK], dims[MP_MAX_RANK];
  uint32_t num_summed = 0;
  labels_t rest = {0};
  for (uint32_t d = 0; d < labels->count; ++d) {
    const char label = labels->labels[d];
    const bool is_kept = desugar_einsum_find_label(kept_a, label) >= 0 ||
                         (kept_b != NULL && desugar_einsum_find_label(kept_b, label) >= 0);
    if (!is_kept) {
      summed[num_summed++] = d;
      continue;
    }
    dims[rest.count] = type->dims[d];
    rest.labels[rest.count++] = label;
  }
  if (num_summed == 0) return NULL;
  const mp_type_t *sum_type = NULL;
  mp_named_attr_t attr;
  mp_value_t *operands[2] = {*value, NULL};
  MP_RETURN_IF_ERROR(mp_type_tensor(module->arena, type->dtype, dims, rest.count, &sum_type));
  MP_RETURN_IF_ERROR(mp_rewrite_ints(module, MP_ATTR_DIMENSIONS, summed, num_summed, &attr));
  MP_RETURN_IF_ERROR(mp_rewrite_insert_zero(module, op, type->dtype, &operands[1]));
  mp_op_t *reduce = NULL;
  MP_RETURN_IF_ERROR(
      mp_op_create_reduce(module, MP_OP_ADD, op->loc, operands, sum_type, &attr, &reduce));
  mp_block_insert_before(op, reduce);
  *value = &reduce->results[0];
  *labels = rest;
  return NULL;
}

// Makes `op` the transpose of `value`, whose dimensions are labelled `from`, to the result's order.
static mp_status_t desugar_einsum_become_transpose(mp_module_t *module, mp_op_t *op,
                                                   mp_value_t *value, const labels_t *from,
                                                   const labels_t *result) {
  int64_t permutation[MP_MAX_RANK];
  for (uint32_t d = 0; d < result->count; ++d) {
    permutation[d] = desugar_einsum_find_label(from, result->labels[d]);
  }
  mp_named_attr_t attr;
  MP_RETURN_IF_ERROR(
      mp_rewrite_ints(module, MP_ATTR_PERMUTATION, permutation, result->count, &attr));
  MP_RETURN_IF_ERROR(mp_rewrite_set_operands(module, op, &value, 1));
  return mp_rewrite_become(module, op, MP_OP_TRANSPOSE, &attr, 1);
}

mp_status_t mp_desugar_unary_einsum(mp_module_t *module, mp_op_t *op) {
  labels_t operand, result;
  if (!mp_type_is_static(op->operands[0]->type)) return NULL;
  MP_RETURN_IF_ERROR(desugar_einsum_parse_config(op, 1, &operand, &result));
  mp_value_t *value = op->operands[0];
  MP_RETURN_IF_ERROR(desugar_einsum_sum_out(module, op, &result, NULL, &operand, &value));
  return desugar_einsum_become_transpose(module, op, value, &operand, &result);
}

// How the dimensions of the two sides pair up in a dot_general.
typedef struct {
  int64_t batch[2][MP_MAX_RANK], contracting[2][MP_MAX_RANK];
  uint32_t num_batch, num_contracting;
  labels_t product;  // the dot_general's dimensions: batch, free left, free right
  int64_t product_dims[2 * MP_MAX_RANK];
} pairing_t;

static mp_status_t desugar_einsum_pair_labels(const mp_op_t *op, mp_value_t *const *values,
                                              const labels_t *operands, const labels_t *result,
                                              pairing_t *pairing) {
  labels_t free_labels = {0};
  int64_t free_dims[MP_MAX_RANK];
  for (int side = 0; side < 2; ++side) {
    for (uint32_t d = 0; d < operands[side].count; ++d) {
      const char label = operands[side].labels[d];
      const int64_t size = values[side]->type->dims[d];
      const int other = desugar_einsum_find_label(&operands[1 - side], label);
      if (other < 0) {
        if (free_labels.count == MP_MAX_RANK) {
          return desugar_einsum_bad_config(op, MP_UNIMPLEMENTED, "too many dimensions");
        }
        free_dims[free_labels.count] = size;
        free_labels.labels[free_labels.count++] = label;
        continue;
      }
      if (side == 1) continue;  // the left side has added the pair already
      if (values[1]->type->dims[other] != size) {
        return desugar_einsum_bad_config(op, MP_INVALID_ARGUMENT,
                                         "a label stands for different sizes");
      }
      if (desugar_einsum_find_label(result, label) >= 0) {
        pairing->batch[0][pairing->num_batch] = d;
        pairing->batch[1][pairing->num_batch++] = other;
        pairing->product_dims[pairing->product.count] = size;
        pairing->product.labels[pairing->product.count++] = label;
      } else {
        pairing->contracting[0][pairing->num_contracting] = d;
        pairing->contracting[1][pairing->num_contracting++] = other;
      }
    }
  }
  // There is room, because all labels of the product are labels of the result.
  for (uint32_t i = 0; i < free_labels.count; ++i) {
    pairing->product_dims[pairing->product.count] = free_dims[i];
    pairing->product.labels[pairing->product.count++] = free_labels.labels[i];
  }
  return NULL;
}

static mp_status_t desugar_einsum_pairing_attrs(mp_module_t *module, const pairing_t *pairing,
                                                mp_named_attr_t attrs[4]) {
  const uint32_t batch = pairing->num_batch;
  const uint32_t contracting = pairing->num_contracting;
  MP_RETURN_IF_ERROR(mp_rewrite_ints(module, MP_ATTR_LHS_BATCHING_DIMENSIONS, pairing->batch[0],
                                     batch, &attrs[0]));
  MP_RETURN_IF_ERROR(mp_rewrite_ints(module, MP_ATTR_RHS_BATCHING_DIMENSIONS, pairing->batch[1],
                                     batch, &attrs[1]));
  MP_RETURN_IF_ERROR(mp_rewrite_ints(module, MP_ATTR_LHS_CONTRACTING_DIMENSIONS,
                                     pairing->contracting[0], contracting, &attrs[2]));
  return mp_rewrite_ints(module, MP_ATTR_RHS_CONTRACTING_DIMENSIONS, pairing->contracting[1],
                         contracting, &attrs[3]);
}

mp_status_t mp_desugar_einsum(mp_module_t *module, mp_op_t *op) {
  labels_t operands[2], result;
  mp_value_t *values[2] = {op->operands[0], op->operands[1]};
  if (!mp_type_is_static(values[0]->type) || !mp_type_is_static(values[1]->type)) return NULL;
  MP_RETURN_IF_ERROR(desugar_einsum_parse_config(op, 2, operands, &result));
  const labels_t whole_left = operands[0];
  MP_RETURN_IF_ERROR(
      desugar_einsum_sum_out(module, op, &result, &operands[1], &operands[0], &values[0]));
  MP_RETURN_IF_ERROR(
      desugar_einsum_sum_out(module, op, &result, &whole_left, &operands[1], &values[1]));
  pairing_t pairing = {0};
  MP_RETURN_IF_ERROR(desugar_einsum_pair_labels(op, values, operands, &result, &pairing));
  mp_named_attr_t attrs[4];
  MP_RETURN_IF_ERROR(desugar_einsum_pairing_attrs(module, &pairing, attrs));
  const bool in_order =
      memcmp(pairing.product.labels, result.labels, result.count * sizeof(char)) == 0;
  if (in_order) {
    MP_RETURN_IF_ERROR(mp_rewrite_set_operands(module, op, values, 2));
    return mp_rewrite_become(module, op, MP_OP_DOT_GENERAL, attrs, 4);
  }
  const mp_type_t *type = NULL;
  mp_value_t *product = NULL;
  MP_RETURN_IF_ERROR(mp_type_tensor(module->arena, op->results[0].type->dtype, pairing.product_dims,
                                    pairing.product.count, &type));
  const mp_op_one_t made = {.code = MP_OP_DOT_GENERAL,
                            .type = type,
                            .operands = values,
                            .num_operands = 2,
                            .attrs = attrs,
                            .num_attrs = 4};
  MP_RETURN_IF_ERROR(mp_rewrite_insert_op(module, op, &made, &product));
  return desugar_einsum_become_transpose(module, op, product, &pairing.product, &result);
}
