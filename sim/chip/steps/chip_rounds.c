// Which values that a loop carries are copied in each of its rounds: the next round's value lies
// where this round's does, and this one is still read when that one is written.
#include "sim/chip/fuse/chip_fusion_kinds.h"
#include "sim/chip/rules/chip_policy.h"
#include "sim/chip/rules/chip_rules.h"
#include "sim/chip/steps/chip_builder.h"

// How a fusion accesses a value, as a read or as a write; NULL: it does not.
static const mp_chip_fusion_access_t *chip_rounds_access(const mp_chip_builder_t *b,
                                                         const mp_chip_fusion_t *fusion,
                                                         const mp_value_t *value, bool is_write) {
  const mp_chip_fusion_access_t *accesses = mp_chip_fusion_accesses(b->c->fusions, fusion);
  const uint32_t first = is_write ? fusion->num_reads : 0;
  const uint32_t end = is_write ? first + fusion->num_writes : fusion->num_reads;
  for (uint32_t i = first; i < end; ++i) {
    if (mp_chip_fusion_root(accesses[i].value) == value) return &accesses[i];
  }
  return NULL;
}

// Whether the kernel also writes a part of an array in its place: then it takes over nothing else.
static bool chip_rounds_updates(const mp_chip_builder_t *b, const mp_chip_fusion_t *fusion) {
  for (const mp_chip_fusion_member_t *m = NULL; mp_chip_fusion_visit(b->c->fusions, fusion, &m);) {
    if (m->op->code == MP_OP_DYNAMIC_UPDATE_SLICE) return true;
  }
  return false;
}

// Whether an op of a kernel finds a value in other places than those at which the kernel writes:
// neighbours, rows of a sum, what is looked up.
static bool chip_rounds_is_moved(const mp_chip_builder_t *b, const mp_chip_fusion_t *fusion,
                                 const mp_value_t *now) {
  for (const mp_chip_fusion_member_t *m = NULL; mp_chip_fusion_visit(b->c->fusions, fusion, &m);) {
    const mp_op_t *op = m->op;
    const bool is_in_place = m->is_epilogue && mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE);
    for (uint32_t i = 0; i < op->num_operands && !is_in_place; ++i) {
      if (mp_chip_fusion_root(op->operands[i]) == now) return true;
    }
  }
  return false;
}

// Whether a kernel that makes the next round's value reads this round's in a way in which it cannot
// write over it: as a factor of a matmul, all of which it needs for each element. On a GPU that is
// everything but the element at the place of the one that is written.
static bool chip_rounds_holds(const mp_chip_builder_t *b, const mp_chip_fusion_t *maker,
                              const mp_value_t *now) {
  const mp_chip_fusion_access_t *read = chip_rounds_access(b, maker, now, false);
  if (read == NULL) return false;
  if ((read->sides & ~MP_CHIP_FUSION_BESIDE) != 0) return true;
  return mp_chip_policy(&b->c->chip->figures)->copies_moved ? chip_rounds_is_moved(b, maker, now)
                                                            : chip_rounds_updates(b, maker);
}

// The write of the next round's value by a kernel while this round's is needed; NULL if there is no
// such kernel. Fusions were found from the end of a block to its beginning. XLA's compiler for
// GPUs has kernels that read this round's value come before (LoopScheduleLinearizer).
static const mp_chip_fusion_access_t *chip_rounds_clash(const mp_chip_builder_t *b,
                                                        const mp_block_t *body,
                                                        const mp_value_t *now,
                                                        const mp_value_t *next) {
  for (uint32_t i = 0; i < b->c->fusions->fusions.count; ++i) {
    const mp_chip_fusion_t *fusion = &b->c->fusions->fusions.items[i];
    if (fusion->first_member == MP_CHIP_FUSION_NONE || fusion->block != body) continue;
    const mp_chip_fusion_access_t *write = chip_rounds_access(b, fusion, next, true);
    if (write == NULL) continue;
    return chip_rounds_holds(b, fusion, now) ? write : NULL;
  }
  return NULL;
}

mp_status_t mp_chip_copy_held(mp_chip_builder_t *b, const mp_op_t *loop, uint32_t i) {
  const mp_block_t *body = loop->regions[1];
  const mp_value_t *next = mp_chip_fusion_root(mp_block_terminator(body)->operands[i]);
  if (!mp_chip_policy(&b->c->chip->figures)->copies_carried) return NULL;
  if (next->op == NULL || next->op->code == MP_OP_DYNAMIC_UPDATE_SLICE ||
      next->op->code == MP_OP_SCATTER)
    return NULL;
  const mp_chip_fusion_access_t *write = chip_rounds_clash(b, body, &body->args[i], next);
  if (write == NULL || !mp_chip_rule(&b->c->chip->figures, MP_CHIP_RULE_carried_copy)) return NULL;
  if (write->space == MP_SPACE_HBM) return mp_chip_add_copy(b, loop, 2 * write->bytes);
  return mp_chip_add_vmem_copy(b, loop, next);
}
