// Values that stay in VMEM during all iterations of a loop.
#include <math.h>

#include "sim/chip/fuse/chip_fusion_kinds.h"
#include "sim/chip/rules/chip_rules.h"
#include "sim/chip/spaces/spaces_impl.h"

// The share of VMEM for values that a loop carries, if no figure says it, and for the largest array
// that each iteration makes as a whole.
#define SPACES_LOOPS_CARRIED 0.5

// ---- carried values ----

// Whether iterations write parts of a carried array that main returns: it is in HBM from the
// beginning.
static bool spaces_loops_is_filled(const mp_spaces_t *s, const mp_block_t *body, uint32_t i) {
  const mp_value_t *next = mp_chip_fusion_root(mp_block_terminator(body)->operands[i]);
  if (next->op == NULL || next->op->code != MP_OP_DYNAMIC_UPDATE_SLICE) return false;
  const mp_op_t *end = mp_block_terminator(s->main->body);
  for (uint32_t k = 0; k < end->num_operands; ++k) {
    if (mp_chip_fusion_root(end->operands[k]) == &body->parent_op->results[i]) {
      return mp_chip_rule(s->figures, MP_CHIP_RULE_filled_in_hbm);
    }
  }
  return false;
}

static void spaces_loops_keep_carried(mp_spaces_t *s, const mp_block_t *body, double *room) {
  const mp_op_t *terminator = mp_block_terminator(body);
  for (uint32_t i = 0; i < body->num_args; ++i) {
    const double bytes = mp_chip_fusion_bytes_of(s->figures, body->args[i].type);
    if (bytes > *room || body->args[i].is_on_host || spaces_loops_is_filled(s, body, i)) continue;
    const mp_value_t *next = mp_chip_fusion_root(terminator->operands[i]);
    const bool is_made = next->op != NULL && next->op->parent == body;
    const bool is_whole = is_made && next->op->code != MP_OP_DYNAMIC_UPDATE_SLICE;
    if (is_whole && bytes > s->vmem * SPACES_LOOPS_CARRIED &&
        mp_chip_rule(s->figures, MP_CHIP_RULE_large_carried)) {
      continue;
    }
    if (!mp_chip_rule(s->figures, MP_CHIP_RULE_carried_in_vmem)) continue;
    *room -= bytes;
    s->values[body->args[i].id].is_in_vmem = true;
    if (is_made) s->values[next->id].is_in_vmem = true;
  }
}

// ---- what all iterations read ----

static bool spaces_loops_is_in(const mp_block_t *block, const mp_block_t *body) {
  while (block != NULL && block != body) {
    block = block->parent_op == NULL ? NULL : block->parent_op->parent;
  }
  return block != NULL;
}

// The bytes that a value which no iteration makes takes of VMEM during all iterations; INFINITY: it
// is read from HBM. f32 operands of matmuls, and stacks of them, are cast before the loop, and the
// cast stays; not for a vector, whose matrix is read itself. Other arguments are read in windows.
static double spaces_loops_held(const mp_spaces_t *s, const mp_chip_fusion_t *fusion,
                                const mp_chip_fusion_access_t *access) {
  const mp_value_t *value = access->value;
  const mp_work_matmul_t *matmul = &fusion->work.matmul;
  const double bytes = mp_chip_fusion_bytes_of(s->figures, value->type);
  if (value->is_on_host) return INFINITY;
  const bool is_operand = (access->sides & ~MP_CHIP_FUSION_BESIDE) != 0;
  const bool is_vector = matmul->m <= 1 || matmul->n <= 1;
  const bool is_cast = is_operand && !is_vector && value->type->dtype == MP_DTYPE_F32 &&
                       mp_chip_rule(s->figures, MP_CHIP_RULE_cast_before_loop);
  if (access->bytes < bytes && !is_cast) return INFINITY;
  if (!is_operand) return bytes;
  if (is_cast) return bytes / 2;
  return value->op != NULL ? bytes : INFINITY;
}

static void spaces_loops_keep_read(mp_spaces_t *s, const mp_block_t *body,
                                   const mp_chip_fusion_t *fusion, double *room) {
  const mp_chip_fusion_access_t *access = mp_spaces_accesses(s, fusion);
  for (uint32_t i = 0; i < fusion->num_reads; ++i) {
    const mp_value_t *value = access[i].value;
    const mp_block_t *made_in = value->op != NULL ? value->op->parent : value->block;
    if (spaces_loops_is_in(made_in, body)) continue;
    const double bytes = spaces_loops_held(s, fusion, &access[i]);
    if (s->values[value->id].is_in_vmem || bytes > *room) continue;
    if (!mp_chip_rule(s->figures, MP_CHIP_RULE_invariants_in_vmem)) continue;
    *room -= bytes;
    s->values[value->id].is_in_vmem = true;
  }
}

void mp_spaces_keep_rounds(mp_spaces_t *s, const mp_block_t *body) {
  double room = s->vmem * mp_figure_or(s->figures->fusion_carried, SPACES_LOOPS_CARRIED);
  // Cores with a VMEM each share a kernel.
  const bool is_shared_out = mp_figure_or(s->figures->fusion_cores, 1) > 1;
  if (!is_shared_out) spaces_loops_keep_carried(s, body, &room);
  for (uint32_t number = s->fusions->fusions.count; number-- > 0;) {
    const mp_chip_fusion_t *fusion = &s->fusions->fusions.items[number];
    if (fusion->first_member == MP_CHIP_FUSION_NONE || !spaces_loops_is_in(fusion->block, body)) {
      continue;
    }
    spaces_loops_keep_read(s, body, fusion, &room);
  }
}
