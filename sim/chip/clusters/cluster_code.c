// What XLA's compiler for GPUs makes no kernels of: code in which ops are there too often, and rows
// whose elements come from anywhere.
#include <math.h>

#include "sim/base/hash.h"
#include "sim/chip/clusters/cluster_impl.h"

// What is wanted in several orders is in it several times, no more often than this: texts of
// associative scans have three to five of their stages in a kernel.
#define CLUSTER_CODE_MOST 8

// Sums of fewer elements are added up by each thread for itself, as loops are (a warp of threads;
// IsUnnestedReductionFasterThanElemental): bags of 16 rows are, of 256 and 2,048 are not.
#define CLUSTER_CODE_SUM_LEAST 32

bool mp_cluster_is_untiled(const mp_op_t *op) {
  return op->code == MP_OP_GATHER || op->code == MP_OP_CONCATENATE || op->code == MP_OP_PAD ||
         op->code == MP_OP_REVERSE || op->code == MP_OP_REDUCE_WINDOW ||
         op->code == MP_OP_DYNAMIC_UPDATE_SLICE || op->code == MP_OP_SCATTER;
}

bool mp_cluster_is_turned_for(const mp_cluster_find_t *find, const mp_op_t *op, uint32_t number) {
  const mp_op_t *sum = find->out->clusters.items[number].leader;
  if (op->code != MP_OP_GATHER && op->code != MP_OP_DYNAMIC_SLICE) return false;
  if (!mp_cluster_is_sum(find->figures, sum)) return false;
  mp_work_t work;
  mp_work_of_op(sum, &work);
  if (work.product.k < CLUSTER_CODE_SUM_LEAST) return false;
  const double counts[2] = {mp_cluster_value_count(sum->operands[0]),
                            mp_cluster_value_count(sum->operands[1])};
  const mp_type_t *type = sum->operands[counts[1] > counts[0]]->type;
  if (mp_cluster_op_count(op) != fmax(counts[0], counts[1]) || type->rank == 0) return false;
  return !(mp_cluster_reduced_dims(sum) >> ((type->rank - 1) & 63) & 1);
}

double mp_cluster_emitted(const mp_cluster_find_t *find, const mp_op_t *op, uint32_t number) {
  double together = 0, apart = 0;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    uint32_t at = mp_cluster_first_use(find, &op->results[i]);
    for (; at != MP_CLUSTER_NONE; at = find->uses.items[at].next) {
      const mp_cluster_use_t *use = &find->uses.items[at];
      if (mp_cluster_now(find, use->cluster) != number) continue;
      if (!mp_op_has(use->op, MP_OP_TRAIT_ELEMENTWISE)) {
        apart += use->emitted;
      } else if (use->emitted > together) {
        together = use->emitted;
      }
    }
  }
  return together + apart > 0 ? together + apart : 1;
}

uint32_t mp_cluster_parts(const mp_cluster_find_t *find, const mp_op_t *op, uint32_t number) {
  uint32_t parts = 0;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    uint32_t at = mp_cluster_first_use(find, &op->results[i]);
    for (; at != MP_CLUSTER_NONE; at = find->uses.items[at].next) {
      const mp_cluster_use_t *use = &find->uses.items[at];
      if (mp_cluster_now(find, use->cluster) == number) parts |= use->parts;
    }
  }
  return parts;
}

// Parts that are cut out of an array or put in its place are made where they are read.
static bool cluster_code_moves(const mp_op_t *op) {
  return op->code == MP_OP_SLICE || op->code == MP_OP_PAD || mp_cluster_is_generator(op);
}

bool mp_cluster_has_room(const mp_cluster_find_t *find, const mp_op_t *op, uint32_t number) {
  if (find->compiler != MP_CHIP_COMPILER_GPU || cluster_code_moves(op)) return true;
  return mp_cluster_emitted(find, op, number) <= CLUSTER_CODE_MOST;
}

void mp_cluster_note_code(mp_cluster_find_t *find, const mp_op_t *op, uint32_t number) {
  find->states.items[number].is_untiled |= mp_cluster_is_untiled(op);
}
