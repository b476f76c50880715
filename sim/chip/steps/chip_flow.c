// Steps of loops and branches: jumps, or one step for a loop or branch without collectives.
#include "sim/base/assert.h"
#include "sim/chip/rules/chip_policy.h"
#include "sim/chip/steps/chip_builder.h"
#include "sim/work/rounds.h"

// Adds a step of control flow. The caller sets its targets.
static mp_status_t chip_flow_add_jump(mp_chip_builder_t *b, mp_chip_step_kind_t kind,
                                      const mp_op_t *op, uint32_t num_targets,
                                      uint32_t **out_targets) {
  *out_targets = MP_ARENA_ARRAY(b->c->arena, uint32_t, num_targets);
  MP_RETURN_IF_NULL(*out_targets);
  b->has_choices |= kind != MP_CHIP_STEP_JUMP;
  return mp_chip_add_step(
      b, &(mp_chip_step_t){.kind = kind,
                           .op = op,
                           .rounds = op->code == MP_OP_WHILE ? mp_work_rounds(op) : -1,
                           .num_targets = num_targets,
                           .targets = *out_targets});
}

// The number of the next step, as the target of a jump.
static uint32_t chip_flow_target(mp_chip_builder_t *b) {
  b->must_begin = true;
  return b->steps.count;
}

// Whether the condition of a loop has no kernels, because its trip count is known: a GPU's host
// launches the iterations, and a TPU counts them on its scalar unit.
static bool chip_flow_is_counted(const mp_chip_builder_t *b, const mp_op_t *loop) {
  return mp_chip_policy(&b->c->chip->figures)->counts_rounds && loop->code == MP_OP_WHILE &&
         mp_work_rounds(loop) != MP_ROUNDS_UNKNOWN;
}

// ---- with collectives or host copies: jumps ----
//
//   loop: condition; BRANCH end; body; JUMP loop; end:
//   branch: SWITCH r0 r1 ...; r0: ...; JUMP end; r1: ...; JUMP end; end:

static mp_status_t chip_flow_while(mp_chip_builder_t *b, const mp_op_t *op) {
  uint32_t *exit = NULL, *back = NULL;
  const uint32_t begin = chip_flow_target(b);
  if (!chip_flow_is_counted(b, op)) MP_RETURN_IF_ERROR(mp_chip_add_block(b, op->regions[0]));
  MP_RETURN_IF_ERROR(chip_flow_add_jump(b, MP_CHIP_STEP_BRANCH, op, 1, &exit));
  MP_RETURN_IF_ERROR(mp_chip_add_block(b, op->regions[1]));
  MP_RETURN_IF_ERROR(mp_chip_copy_carried(b, op));
  MP_RETURN_IF_ERROR(chip_flow_add_jump(b, MP_CHIP_STEP_JUMP, op, 1, &back));
  *back = begin;
  *exit = chip_flow_target(b);
  return NULL;
}

static mp_status_t chip_flow_case(mp_chip_builder_t *b, const mp_op_t *op) {
  uint32_t *targets = NULL;
  uint32_t **exits = MP_ARENA_ARRAY(b->c->scratch, uint32_t *, op->num_regions);
  MP_RETURN_IF_NULL(exits);
  MP_RETURN_IF_ERROR(chip_flow_add_jump(b, MP_CHIP_STEP_SWITCH, op, op->num_regions, &targets));
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    targets[r] = chip_flow_target(b);
    MP_RETURN_IF_ERROR(mp_chip_add_block(b, op->regions[r]));
    MP_RETURN_IF_ERROR(mp_chip_copy_chosen(b, op->regions[r]));
    MP_RETURN_IF_ERROR(chip_flow_add_jump(b, MP_CHIP_STEP_JUMP, op, 1, &exits[r]));
  }
  for (uint32_t r = 0; r < op->num_regions; ++r) *exits[r] = chip_flow_target(b);
  return NULL;
}

// ---- without: local steps ----

static mp_status_t chip_flow_add(mp_chip_builder_t *b, const mp_op_t *op, mp_chip_step_kind_t kind,
                                 mp_chip_flow_t *out_flow);

static bool chip_flow_is_control(const mp_op_t *op) {
  return mp_op_info(op->code)->role == MP_OP_ROLE_CONTROL;
}

// The kernels of a block as one step, without those of its control flow.
static mp_status_t chip_flow_part_work(mp_chip_builder_t *b, const mp_op_t *op, uint32_t region,
                                       uint32_t *out_step) {
  const uint32_t before = b->steps.count;
  b->must_begin = true;
  if (region != 0 || !chip_flow_is_counted(b, op)) {
    MP_RETURN_IF_ERROR(mp_chip_add_block(b, op->regions[region]));
  }
  if (op->code == MP_OP_WHILE && region == 1) MP_RETURN_IF_ERROR(mp_chip_copy_carried(b, op));
  if (op->code != MP_OP_WHILE) MP_RETURN_IF_ERROR(mp_chip_copy_chosen(b, op->regions[region]));
  *out_step = b->steps.count == before ? UINT32_MAX : before;
  b->must_begin = true;
  return NULL;
}

// A kernel as the step of a flow.
static mp_status_t chip_flow_add_kernel(mp_chip_builder_t *b, const mp_chip_kernel_t *kernel,
                                        mp_chip_step_kind_t kind, mp_chip_flow_t *out_flow) {
  mp_chip_block_t *block = MP_ARENA_NEW(b->c->arena, mp_chip_block_t);
  MP_RETURN_IF_NULL(block);
  uint32_t *next = NULL;
  const uint32_t control = kernel->op->control;
  *out_flow = (mp_chip_flow_t){.step = b->steps.count,
                               .control = control,
                               .is_by_values = true,
                               .rounds = -1,
                               .num_blocks = 1,
                               .blocks = block};
  MP_RETURN_IF_ERROR(chip_flow_add_jump(b, kind, kernel->op, 1, &next));
  b->steps.items[out_flow->step].flow = out_flow;
  b->must_begin = true;
  block->step = b->steps.count;
  MP_RETURN_IF_ERROR(mp_chip_put_kernel(b, kernel));
  *next = chip_flow_target(b);
  if (control >= b->num_controls) b->num_controls = control + 1;
  return NULL;
}

static const mp_chip_kernel_t *chip_flow_by_values(const mp_chip_builder_t *b, const mp_op_t *op) {
  for (uint32_t i = 0; i < b->by_values.count; ++i) {
    if (b->by_values.items[i].op == op) return &b->by_values.items[i];
  }
  return NULL;
}

mp_status_t mp_chip_add_by_values(mp_chip_builder_t *b, const mp_op_t *op) {
  const mp_chip_kernel_t *found = chip_flow_by_values(b, op);
  // Of a part, chip_flow_part_flows adds it.
  if (found == NULL || b->is_in_part) return NULL;
  const mp_chip_kernel_t kernel = *found;
  mp_chip_flow_t *flow = MP_ARENA_NEW(b->c->arena, mp_chip_flow_t);
  MP_RETURN_IF_NULL(flow);
  b->is_in_part = true;
  MP_RETURN_IF_ERROR(chip_flow_add_kernel(b, &kernel, MP_CHIP_STEP_LOCAL, flow));
  b->is_in_part = false;
  return NULL;
}

static mp_status_t chip_flow_part_flows(mp_chip_builder_t *b, const mp_block_t *block,
                                        mp_chip_block_t *out) {
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    out->num_flows += chip_flow_is_control(op) || chip_flow_by_values(b, op) != NULL;
  }
  mp_chip_flow_t *flows = MP_ARENA_ARRAY(b->c->arena, mp_chip_flow_t, (size_t)out->num_flows + 1);
  MP_RETURN_IF_NULL(flows);
  out->flows = flows;
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    const mp_chip_kernel_t *kernel = chip_flow_by_values(b, op);
    if (chip_flow_is_control(op)) {
      MP_RETURN_IF_ERROR(chip_flow_add(b, op, MP_CHIP_STEP_PART, flows++));
    } else if (kernel != NULL) {
      const mp_chip_kernel_t own = *kernel;
      MP_RETURN_IF_ERROR(chip_flow_add_kernel(b, &own, MP_CHIP_STEP_PART, flows++));
    }
  }
  return NULL;
}

// Adds the step of a loop or branch, and those of its blocks.
static mp_status_t chip_flow_add(mp_chip_builder_t *b, const mp_op_t *op, mp_chip_step_kind_t kind,
                                 mp_chip_flow_t *out_flow) {
  mp_chip_block_t *blocks = MP_ARENA_ARRAY(b->c->arena, mp_chip_block_t, op->num_regions);
  MP_RETURN_IF_NULL(blocks);
  uint32_t *next = NULL;
  *out_flow = (mp_chip_flow_t){.step = b->steps.count,
                               .control = op->control,
                               .is_loop = op->code == MP_OP_WHILE,
                               .rounds = op->code == MP_OP_WHILE ? mp_work_rounds(op) : -1,
                               .num_blocks = op->num_regions,
                               .blocks = blocks};
  MP_RETURN_IF_ERROR(chip_flow_add_jump(b, kind, op, 1, &next));
  b->steps.items[out_flow->step].flow = out_flow;
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    MP_RETURN_IF_ERROR(chip_flow_part_work(b, op, r, &blocks[r].step));
  }
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    MP_RETURN_IF_ERROR(chip_flow_part_flows(b, op->regions[r], &blocks[r]));
  }
  *next = chip_flow_target(b);
  return NULL;
}

static mp_status_t chip_flow_local(mp_chip_builder_t *b, const mp_op_t *op) {
  mp_chip_flow_t *flow = MP_ARENA_NEW(b->c->arena, mp_chip_flow_t);
  MP_RETURN_IF_NULL(flow);
  b->is_in_part = true;
  MP_RETURN_IF_ERROR(chip_flow_add(b, op, MP_CHIP_STEP_LOCAL, flow));
  b->is_in_part = false;
  return NULL;
}

mp_status_t mp_chip_add_control(mp_chip_builder_t *b, const mp_op_t *op) {
  if (op->code == MP_OP_WHILE) MP_RETURN_IF_ERROR(mp_chip_copy_starts(b, op));
  if (op->control >= b->num_controls) b->num_controls = op->control + 1;
  if (b->is_in_part) return NULL;  // chip_flow_part_flows adds it
  // Without communication, its time depends only on how often each of its blocks runs.
  if (!mp_communication_is_in(op)) return chip_flow_local(b, op);
  return op->code == MP_OP_WHILE ? chip_flow_while(b, op) : chip_flow_case(b, op);
}
