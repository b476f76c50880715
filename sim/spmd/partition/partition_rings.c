// Which matmuls become collective matmuls (rings) in compilers that partition by GSPMD's rules: a
// part of one operand, or of the sum, moves from device to device while the matmul of another part
// is computed. The partitioner decides that from the matmul's own shardings: a program's own
// gathers and sums, in manual code or by an annotation of the gathered array, never become rings.
// The rules are those that XLA's partitioned texts show (libtpu 0.0.52; 200 products on 4x4, 2x8,
// 8x2 and 16x16 of a v5e), in terms of the sets of digits (atoms) that shard the dimensions:
//
// - an operand is gathered over S. The other operand's rows, and the result's, are sharded over
//   exactly S, and the result shares all other shardings of the operand: none, if S shards its own
//   rows.
// - a sum over S is scattered. The contracted dimension of both operands is sharded over S alone
//   (one of them may be resharded to that), and the result shares their other shardings, or has
//   them in the other operand's place: then that operand is first gathered as a whole.
// - in both cases every digit is used: in S, in rows or columns that stay sharded, in the batch, or
//   in the contracted dimension of both operands. With an unused digit, or if rows are sharded over
//   more than the gathered dimension is (a mesh of replicas of FSDP), operands are gathered as a
//   whole.
// - of a sum in terms only the second operand's gather is a ring.
//
// If several could be rings, the chip's parameters choose (sim/chip/schedule/chip_order_ring.c).
#include "sim/spmd/partition/partitioner.h"

typedef uint32_t atom_set_t;

// The atoms of one of a matmul's arrays.
typedef struct {
  atom_set_t batch, summed, own;  // `own`: rows of the first operand, columns of the second one
} side_t;

typedef struct {
  side_t sides[2];
  atom_set_t batch, rows[2];  // of the result: rows[i] are `own` of operand i there
  atom_set_t all;             // all atoms of the scope
} product_t;

// Reads one operand; `*next` is the result's dimension that belongs to its next own one.
static void partition_rings_read_side(const mp_op_t *op, uint32_t side,
                                      const mp_atom_sharding_t *sharding,
                                      const mp_atom_sharding_t *result, uint32_t *next,
                                      product_t *product) {
  static const mp_attr_name_t batches[] = {MP_ATTR_LHS_BATCHING_DIMENSIONS,
                                           MP_ATTR_RHS_BATCHING_DIMENSIONS};
  static const mp_attr_name_t sums[] = {MP_ATTR_LHS_CONTRACTING_DIMENSIONS,
                                        MP_ATTR_RHS_CONTRACTING_DIMENSIONS};
  const mp_index_list_t batch = mp_op_ints(op, batches[side]), summed = mp_op_ints(op, sums[side]);
  side_t *of = &product->sides[side];
  for (uint32_t d = 0; d < sharding->rank; ++d) {
    const atom_set_t atoms = mp_atoms_set(&sharding->dims[d].atoms);
    if (mp_index_list_has(batch, d)) {
      of->batch |= atoms;
    } else if (mp_index_list_has(summed, d)) {
      of->summed |= atoms;
    } else {
      of->own |= atoms;
      product->rows[side] |= mp_atoms_set(&result->dims[(*next)++].atoms);
    }
  }
}

static bool partition_rings_read(const mp_partitioner_t *p, const mp_op_t *op,
                                 product_t *out_product) {
  mp_atom_sharding_t *const *values = p->propagation.values;
  const mp_atom_sharding_t *result = values[op->results[0].id];
  const mp_atom_sharding_t *sides[] = {values[op->operands[0]->id], values[op->operands[1]->id]};
  if (result == NULL || sides[0] == NULL || sides[1] == NULL) return false;
  const mp_index_list_t batch = mp_op_ints(op, MP_ATTR_LHS_BATCHING_DIMENSIONS);
  uint32_t next = batch.count;
  *out_product = (product_t){.all = (((atom_set_t)1 << p->propagation.space.count) - 1) &
                                    ~(result->manual | sides[0]->manual | sides[1]->manual)};
  for (uint32_t d = 0; d < batch.count; ++d) {
    out_product->batch |= mp_atoms_set(&result->dims[d].atoms);
  }
  for (uint32_t side = 0; side < 2; ++side) {
    partition_rings_read_side(op, side, sides[side], result, &next, out_product);
  }
  return out_product->batch == out_product->sides[0].batch &&
         out_product->batch == out_product->sides[1].batch;
}

// Whether an operand's gather may be a ring. `common`: the atoms that shard the contracted
// dimension of both operands.
static bool partition_rings_gathers(const product_t *product, uint32_t side, atom_set_t common) {
  const side_t *of = &product->sides[side], *other = &product->sides[1 - side];
  const atom_set_t stays = product->rows[side] & ~common;
  const atom_set_t gathered = (of->own & ~stays) | (of->summed & ~other->summed);
  if (gathered == 0 || (product->rows[1 - side] & ~common) != gathered) return false;
  if ((other->own & gathered) != gathered || (of->own & ~gathered) != stays) return false;
  if ((of->own & gathered) != 0 && stays != 0) return false;
  return (product->batch | stays | gathered | common) == product->all;
}

// Whether the scatter of the sum may be a ring, if the parts of the sum go to this operand's rows
// or columns. Other atoms of the operand are gathered before.
static bool partition_rings_scatters_to(const product_t *product, uint32_t side,
                                        atom_set_t summed) {
  const side_t *of = &product->sides[side], *other = &product->sides[1 - side];
  const atom_set_t stays = product->rows[1 - side] & ~summed;
  if ((product->rows[side] & summed) != summed) return false;
  const atom_set_t own = of->own & ~summed, rest = product->rows[side] & ~summed;
  if ((other->own & ~summed) != stays || (own & ~stays) != rest) return false;
  return (product->batch | summed | stays | rest) == product->all;
}

// Whether XLA has swapped the operands before it partitions: it merges a matmul and its transpose
// into one matmul.
static bool partition_rings_is_turned(const mp_partitioner_t *p, const mp_op_t *op) {
  const mp_value_t *result = &op->results[0];
  const mp_op_t *user = p->users[result->id];
  return p->uses[result->id] == 1 && result->type->rank == 2 && user->code == MP_OP_TRANSPOSE &&
         mp_op_ints(user, MP_ATTR_PERMUTATION).values[0] == 1;
}

uint8_t mp_partitioner_rings(const mp_partitioner_t *p, const mp_op_t *op, bool is_sum) {
  product_t product;
  const bool is_product = p->is_propagated && op->code == MP_OP_DOT_GENERAL;
  if (!is_product || !partition_rings_read(p, op, &product)) return 0;
  const side_t *sides = product.sides;
  const atom_set_t common = sides[0].summed & sides[1].summed;
  const atom_set_t summed = sides[0].summed | sides[1].summed;
  const uint32_t first = partition_rings_is_turned(p, op) ? 1 : 0;
  uint8_t rings = common != 0 ? MP_OP_RING_IN_TERMS : 0;
  for (uint32_t side = 0; side < 2; ++side) {
    const bool may_gather = common == 0 ? !is_sum : side != first;
    if (may_gather && partition_rings_gathers(&product, side, common)) {
      rings |= (uint8_t)(MP_OP_RING_LHS << side);
    }
    if (summed != 0 && (is_sum || common == summed) &&
        partition_rings_scatters_to(&product, side, summed)) {
      rings |= MP_OP_RING_SUM;
    }
  }
  return rings;
}
