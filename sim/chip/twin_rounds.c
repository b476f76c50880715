// Which values that a loop carries are copied in each of its rounds: the next round's value lies
// where this round's does, and this one is still read when that one is written.
#include "sim/chip/clusters/cluster_kinds.h"
#include "sim/chip/cost/kernel_cost.h"
#include "sim/chip/rules/chip_rules.h"
#include "sim/chip/twin_impl.h"

// How a cluster accesses a value, as a read or as a write; NULL: it does not.
static const mp_cluster_access_t *twin_rounds_access(const mp_twin_builder_t *b,
                                                     const mp_cluster_t *cluster,
                                                     const mp_value_t *value, bool is_write) {
  const mp_cluster_access_t *accesses = mp_cluster_accesses(&b->clusters, cluster);
  const uint32_t first = is_write ? cluster->num_reads : 0;
  const uint32_t end = is_write ? first + cluster->num_writes : cluster->num_reads;
  for (uint32_t i = first; i < end; ++i) {
    if (mp_cluster_root(accesses[i].value) == value) return &accesses[i];
  }
  return NULL;
}

// Whether the kernel also writes a part of an array in its place: then it takes over nothing else.
static bool twin_rounds_updates(const mp_twin_builder_t *b, const mp_cluster_t *cluster) {
  for (uint32_t at = cluster->first_member; at != MP_CLUSTER_NONE;) {
    const mp_cluster_member_t *member = &b->clusters.members.items[at];
    if (member->op->code == MP_OP_DYNAMIC_UPDATE_SLICE) return true;
    at = member->next;
  }
  return false;
}

// Whether an op of a kernel finds a value in other places than those at which the kernel writes.
static bool twin_rounds_moves(const mp_cluster_member_t *member, const mp_value_t *now) {
  const mp_op_t *op = member->op;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    if (mp_cluster_root(op->operands[i]) != now) continue;
    const bool is_updated =
        i == 0 && (op->code == MP_OP_DYNAMIC_UPDATE_SLICE || op->code == MP_OP_SCATTER);
    if (is_updated) continue;
    if (!member->is_epilogue || !mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE)) return true;
  }
  return false;
}

// Whether some op of a kernel does: neighbours, rows of which there is a sum, what is looked up.
static bool twin_rounds_is_moved(const mp_twin_builder_t *b, const mp_cluster_t *cluster,
                                 const mp_value_t *now) {
  for (uint32_t at = cluster->first_member; at != MP_CLUSTER_NONE;) {
    const mp_cluster_member_t *member = &b->clusters.members.items[at];
    if (twin_rounds_moves(member, now)) return true;
    at = member->next;
  }
  return false;
}

// Whether a kernel that makes the next round's value reads this round's in a way in which it cannot
// write over it: as a factor of a product, all of which it needs for each element. On a GPU that is
// everything but the element at the place of the one that is written.
static bool twin_rounds_holds(const mp_twin_builder_t *b, const mp_cluster_t *maker,
                              const mp_value_t *now) {
  const mp_cluster_access_t *read = twin_rounds_access(b, maker, now, false);
  if (read == NULL) return false;
  if ((read->sides & ~MP_CLUSTER_BESIDE) != 0) return true;
  const bool is_gpu = b->chip->figures.compiler == MP_CHIP_COMPILER_GPU;
  const bool holds = is_gpu ? twin_rounds_is_moved(b, maker, now) : twin_rounds_updates(b, maker);
  return holds && mp_chip_rule(&b->chip->figures, MP_CHIP_RULE_carried_moved);
}

// The write of the next round's value by a kernel while this round's is needed; NULL if there is no
// such kernel. Clusters were found from the end of a block to its beginning. XLA's compiler for
// GPUs has kernels that read this round's value come before (LoopScheduleLinearizer).
static const mp_cluster_access_t *twin_rounds_clash(const mp_twin_builder_t *b,
                                                    const mp_block_t *body, const mp_value_t *now,
                                                    const mp_value_t *next) {
  for (uint32_t i = 0; i < b->clusters.clusters.count; ++i) {
    const mp_cluster_t *cluster = &b->clusters.clusters.items[i];
    if (cluster->first_member == MP_CLUSTER_NONE || cluster->block != body) continue;
    const mp_cluster_access_t *write = twin_rounds_access(b, cluster, next, true);
    if (write != NULL) {
      return twin_rounds_holds(b, cluster, now) ? write : NULL;
    }
  }
  return NULL;
}

mp_status_t mp_twin_copy_held(mp_twin_builder_t *b, const mp_op_t *loop, uint32_t i) {
  const mp_block_t *body = loop->regions[1];
  const mp_value_t *next = mp_cluster_root(mp_block_terminator(body)->operands[i]);
  const mp_chip_compiler_t compiler = b->chip->figures.compiler;
  if (compiler != MP_CHIP_COMPILER_TPU && compiler != MP_CHIP_COMPILER_GPU) return NULL;
  if (next->op == NULL || next->op->code == MP_OP_DYNAMIC_UPDATE_SLICE) return NULL;
  if (next->op->code == MP_OP_SCATTER && compiler == MP_CHIP_COMPILER_GPU) return NULL;
  const mp_cluster_access_t *write = twin_rounds_clash(b, body, &body->args[i], next);
  if (write == NULL || !mp_chip_rule(&b->chip->figures, MP_CHIP_RULE_carried_copy)) return NULL;
  if (!write->is_scratch) return mp_twin_add_copy(b, loop, 2 * write->bytes);
  int64_t elements = 0;
  if (!mp_type_num_elements(next->type, &elements)) return NULL;
  return mp_twin_put_kernel(
      b, &(mp_twin_kernel_t){.op = loop,
                             .name = "copy",
                             .work_class = MP_WORK_COPY,
                             .kind = MP_FLOP_F32,
                             .seconds = mp_kernel_near_copy_seconds(b->chip, (double)elements)});
}
