// TPUs: the softmax of a matmul's rows, and the matmul of one of its operands, in the matmul's
// fusion. Evidence: optimized programs of libtpu 0.0.52.
#include <math.h>

#include "sim/chip/fuse/chip_fusion_impl.h"
#include "sim/chip/fuse/matmul_operand.h"
#include "sim/chip/rules/chip_rules.h"

// ---- rows ----

// Whether rows of an operand fill the lanes: heads of 128 or more.
static bool chip_fusion_matmuls_fills_lanes(const mp_op_t *op) {
  for (uint32_t i = 0; i < 2; ++i) {
    const mp_type_t *type = op->operands[i]->type;
    if (type->rank > 0 && type->dims[type->rank - 1] >= MP_TILE_LANES) return true;
  }
  return false;
}

bool mp_chip_fusion_makes_rows(const mp_chip_fusion_find_t *find, const mp_op_t *op,
                               uint32_t number) {
  const double row = find->states.items[number].row;
  if (row > find->matmul_rows_most ||
      !mp_chip_rule(find->figures, MP_CHIP_RULE_softmax_after_matmul)) {
    return false;
  }
  return row <= find->mixed_rows_most || !chip_fusion_matmuls_fills_lanes(op) ||
         !mp_chip_rule(find->figures, MP_CHIP_RULE_mixed_rows);
}

// ---- chains ----

// Whether a collective makes an operand of the op, which may then become a collective matmul.
static bool chip_fusion_matmuls_is_gathered(const mp_op_t *op) {
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_op_t *of = mp_chip_fusion_root(op->operands[i])->op;
    if (of != NULL && mp_op_info(of->code)->role == MP_OP_ROLE_COLLECTIVE) return true;
  }
  return false;
}

static double chip_fusion_matmuls_bytes(double count, mp_dtype_t dtype) {
  return count * (double)mp_dtype_bits(dtype) / 8;
}

// The bytes that stay in VMEM while the kernel of both matmuls iterates over the rows of the inner
// result (`is_by_rows`), or over the dimension that the outer matmul contracts.
static double chip_fusion_matmuls_held(const mp_work_matmul_t *inner, const mp_work_matmul_t *outer,
                                       double rows, double summed, double columns,
                                       bool is_by_rows) {
  enum { SUM_BYTES = 4 };
  if (!is_by_rows) {
    return chip_fusion_matmuls_bytes(rows * inner->k, inner->dtype) + rows * columns * SUM_BYTES;
  }
  return chip_fusion_matmuls_bytes(inner->k * summed, inner->dtype) +
         chip_fusion_matmuls_bytes(summed * columns, outer->dtype);
}

static bool chip_fusion_matmuls_is_plain(const mp_work_matmul_t *matmul) {
  return matmul->batch > 0 && matmul->convolution.window == 0 && matmul->m > 1 && matmul->n > 1;
}

// Whether two matmuls of the same batch form a chain: the inner result, perhaps transposed, is an
// operand of the outer matmul, and at most 5.5 MiB have to stay in VMEM. libtpu 0.0.52 fuses chains
// (m, k) x (k, h) x (h, n) that need up to 5 MiB on v5e, none that need 6 or more.
static bool chip_fusion_matmuls_chain(const mp_work_matmul_t *inner, const mp_work_matmul_t *outer,
                                      bool is_lhs) {
  enum { HELD_MOST = 11 << 19 };
  if (!chip_fusion_matmuls_is_plain(inner) || !chip_fusion_matmuls_is_plain(outer)) return false;
  const double rows = is_lhs ? outer->m : outer->n, columns = is_lhs ? outer->n : outer->m;
  const double summed = outer->k;
  const bool is_direct = inner->m == rows && inner->n == summed;
  const bool is_transposed = inner->n == rows && inner->m == summed;
  if (inner->batch != outer->batch || (!is_direct && !is_transposed)) return false;
  for (int i = 0; i < 2; ++i) {
    if (chip_fusion_matmuls_held(inner, outer, rows, summed, columns, i != 0) <= HELD_MOST)
      return true;
  }
  return false;
}

bool mp_chip_fusion_chains(const mp_chip_fusion_find_t *find, const mp_op_t *op,
                           const mp_work_t *work, const mp_chip_fusion_user_t *user) {
  const mp_chip_fusion_t *fusion = &find->out->fusions.items[user->fusion];
  if (op->code != MP_OP_DOT_GENERAL) return false;
  if (fusion->is_rows || fusion->inner.batch > 0) return false;
  if (find->states.items[user->fusion].kind != MP_CHIP_FUSION_MATMUL) return false;
  if (user->sides != MP_CHIP_FUSION_LHS && user->sides != MP_CHIP_FUSION_RHS) return false;
  return chip_fusion_matmuls_chain(&work->matmul, &fusion->work.matmul,
                                   user->sides == MP_CHIP_FUSION_LHS) &&
         !chip_fusion_matmuls_is_gathered(op) && mp_chip_rule(find->figures, MP_CHIP_RULE_chains);
}

// ---- ragged_dot ----

static bool chip_fusion_matmuls_is_made_by(const mp_value_t *value, mp_opcode_t code) {
  return value->op != NULL && value->op->code == code;
}

// The groups of an operand: a select keeps, for each group, some of the rows that are repeated for
// all groups, and has zeros elsewhere. 0: there is no such select. Groups are contracted, or they
// are a batch (`out_is_batch`) in the gradient of the other operand, which contracts rows.
static double chip_fusion_matmuls_groups(const mp_op_t *op, uint32_t operand, bool *out_is_batch) {
  const mp_matmul_operand_t of = mp_matmul_operand(op, operand);
  if (!chip_fusion_matmuls_is_made_by(of.value, MP_OP_SELECT)) return 0;
  const mp_value_t *rows = of.value->op->operands[1];
  if (!chip_fusion_matmuls_is_made_by(rows, MP_OP_BROADCAST_IN_DIM)) return 0;
  const mp_type_t *type = rows->type;
  const uint64_t kept = mp_matmul_dims(mp_op_ints(rows->op, MP_ATTR_BROADCAST_DIMENSIONS));
  const uint64_t all = ((uint64_t)1 << type->rank) - 1, added = all & ~kept;
  *out_is_batch = added != 0 && (added & ~of.batch) == 0;
  if (added == 0 || (!*out_is_batch && (added & ~of.summed) != 0)) return 0;
  double groups = 1;
  for (uint32_t i = 0; i < type->rank; ++i) {
    if (added >> i & 1) groups *= (double)type->dims[i];
  }
  // Elements of rows are contracted, too.
  return (of.summed & ~added) != 0 ? groups : 0;
}

mp_ragged_t mp_chip_fusion_ragged(const mp_op_t *hero) {
  mp_ragged_t ragged = {0};
  if (hero->code != MP_OP_DOT_GENERAL) return ragged;
  bool is_batch[2];
  const double groups[2] = {chip_fusion_matmuls_groups(hero, 0, &is_batch[0]),
                            chip_fusion_matmuls_groups(hero, 1, &is_batch[1])};
  ragged.is_gradient = groups[0] > 1 && groups[1] > 1 && is_batch[0] && is_batch[1];
  for (uint32_t side = 0; side < 2; ++side) {
    if (groups[side] <= 1 || (is_batch[side] && !ragged.is_gradient)) continue;
    ragged.groups = groups[side];
    ragged.side = side;
    ragged.masked[side] = mp_chip_fusion_value_count(mp_matmul_operand(hero, side).value);
  }
  return ragged;
}
