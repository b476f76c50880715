// Removes ops that the partitioner made early and that no op reads. Dead-code elimination keeps
// collectives, because a program's own may have an effect; the partitioner's only move data.
#include <stdlib.h>

#include "sim/spmd/partition/partitioner.h"

mp_status_t mp_partitioner_note_early(mp_partitioner_t *p, const mp_op_t *last) {
  for (mp_op_t *op = p->versions.block->last; op != last; op = op->prev) {
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(p->arena, &p->early, op));
  }
  return NULL;
}

static mp_status_t partition_unread_count(void *context, mp_op_t *op) {
  uint32_t *uses = context;
  for (uint32_t i = 0; i < op->num_operands; ++i) ++uses[op->operands[i]->id];
  return NULL;
}

static bool partition_unread_is_read(const mp_op_t *op, const uint32_t *uses) {
  for (uint32_t i = 0; i < op->num_results; ++i) {
    if (uses[op->results[i].id] != 0) return true;
  }
  return false;
}

static int partition_unread_compare(const void *a, const void *b) {
  const mp_op_t *left = *(mp_op_t *const *)a, *right = *(mp_op_t *const *)b;
  return left->results[0].id > right->results[0].id ? -1 : 1;
}

mp_status_t mp_partitioner_drop_unread(mp_partitioner_t *p, mp_block_t *body) {
  if (p->early.count == 0) return NULL;
  const size_t count = mp_module_number_values(p->module);
  uint32_t *uses = MP_ARENA_ARRAY(p->arena, uint32_t, count + 1);
  MP_RETURN_IF_NULL(uses);
  MP_RETURN_IF_ERROR(mp_block_walk(body, partition_unread_count, uses));
  // Values are numbered in order, so that the users of a value come before it here.
  qsort(p->early.items, p->early.count, sizeof(*p->early.items), partition_unread_compare);
  for (uint32_t i = 0; i < p->early.count; ++i) {
    mp_op_t *op = p->early.items[i];
    if (partition_unread_is_read(op, uses)) continue;
    for (uint32_t k = 0; k < op->num_operands; ++k) --uses[op->operands[k]->id];
    mp_op_unlink(op);
  }
  return NULL;
}
