// From a partitioned program to the steps of its chip program.
#include "sim/chip/chip_program.h"

#include <math.h>

#include "sim/base/assert.h"
#include "sim/chip/chip_impl.h"
#include "sim/chip/rules/chip_rules.h"
#include "sim/chip/spaces/spaces.h"
#include "sim/plan/plan.h"
#include "sim/work/rounds.h"

static mp_status_t chip_program_block(mp_chip_builder_t *b, const mp_block_t *block);

// ---- steps ----

static mp_status_t chip_program_add_step(mp_chip_builder_t *b, const mp_chip_step_t *step,
                                         uint32_t *out_number) {
  *out_number = b->steps.count;
  b->must_begin = false;
  return MP_ARRAY_PUSH(b->arena, &b->steps, *step);
}

// Adds a step of control flow with room for its targets.
static mp_status_t chip_program_add_jump(mp_chip_builder_t *b, mp_chip_step_kind_t kind,
                                         const mp_op_t *op, uint32_t num_targets,
                                         uint32_t **out_targets) {
  *out_targets = MP_ARENA_ARRAY(b->arena, uint32_t, num_targets);
  MP_RETURN_IF_NULL(*out_targets);
  const mp_chip_step_t step = {.kind = kind,
                               .op = op,
                               .rounds = op->code == MP_OP_WHILE ? mp_work_rounds(op) : -1,
                               .num_targets = num_targets,
                               .targets = *out_targets};
  uint32_t number;
  b->has_choices |= kind != MP_CHIP_STEP_JUMP;
  return chip_program_add_step(b, &step, &number);
}

// The number of the step that comes next; a jump goes there.
static uint32_t chip_program_target(mp_chip_builder_t *b) {
  b->must_begin = true;
  return b->steps.count;
}

// ---- communication ----

static mp_status_t chip_program_add_meeting(mp_chip_builder_t *b, mp_chip_step_kind_t kind,
                                            const mp_op_t *op, uint32_t number) {
  uint32_t step;
  return chip_program_add_step(
      b, &(mp_chip_step_t){.kind = kind, .op = op, .collective = number, .rounds = -1}, &step);
}

static mp_status_t chip_program_meet(mp_chip_builder_t *b, const mp_op_t *op, uint32_t number) {
  mp_chip_step_kind_t kind = MP_CHIP_STEP_MEET;
  if (op->code == MP_OP_SEND) kind = MP_CHIP_STEP_SEND;
  if (op->code == MP_OP_RECV) kind = MP_CHIP_STEP_RECV;
  return chip_program_add_meeting(b, kind, op, number);
}

static mp_status_t chip_program_collective(mp_chip_builder_t *b, const mp_op_t *op) {
  uint32_t number;
  MP_RETURN_IF_ERROR(mp_chip_add_collective(b, op, &number));
  return chip_program_meet(b, op, number);
}

// Copies to the host go on from one block to the next, so that blocks cannot be counted alone.
static bool chip_program_is_local(const mp_op_t *op) {
  for (uint32_t i = 0; i < op->num_regions; ++i) {
    if (mp_chip_has_copy(op->regions[i], false)) return false;
    for (const mp_op_t *in = op->regions[i]->first; in != NULL; in = in->next) {
      if (mp_plan_is_collective(in) || !chip_program_is_local(in)) return false;
    }
  }
  return true;
}

// Whether nobody looks at a loop's condition: the host of a GPU starts the kernels of as many
// rounds as the program says (XLA's known_trip_count).
static bool chip_program_is_counted(const mp_chip_builder_t *b, const mp_op_t *loop) {
  return b->chip->figures.compiler == MP_CHIP_COMPILER_GPU && loop->code == MP_OP_WHILE &&
         mp_work_rounds(loop) != MP_ROUNDS_UNKNOWN &&
         mp_chip_rule(&b->chip->figures, MP_CHIP_RULE_counted_loop);
}

// ---- control flow with communication in it: jumps ----
//
//   loop: condition; BRANCH end; body; JUMP loop; end:
//   branch: SWITCH r0 r1 ...; r0: ...; JUMP end; r1: ...; JUMP end; end:

static mp_status_t chip_program_while(mp_chip_builder_t *b, const mp_op_t *op) {
  uint32_t *exit = NULL, *back = NULL;
  const uint32_t begin = chip_program_target(b);
  if (!chip_program_is_counted(b, op)) MP_RETURN_IF_ERROR(chip_program_block(b, op->regions[0]));
  MP_RETURN_IF_ERROR(chip_program_add_jump(b, MP_CHIP_STEP_BRANCH, op, 1, &exit));
  MP_RETURN_IF_ERROR(chip_program_block(b, op->regions[1]));
  MP_RETURN_IF_ERROR(mp_chip_copy_carried(b, op));
  MP_RETURN_IF_ERROR(chip_program_add_jump(b, MP_CHIP_STEP_JUMP, op, 1, &back));
  *back = begin;
  *exit = chip_program_target(b);
  return NULL;
}

static mp_status_t chip_program_case(mp_chip_builder_t *b, const mp_op_t *op) {
  uint32_t *targets = NULL;
  uint32_t **exits = MP_ARENA_ARRAY(b->scratch, uint32_t *, op->num_regions);
  MP_RETURN_IF_NULL(exits);
  MP_RETURN_IF_ERROR(chip_program_add_jump(b, MP_CHIP_STEP_SWITCH, op, op->num_regions, &targets));
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    targets[r] = chip_program_target(b);
    MP_RETURN_IF_ERROR(chip_program_block(b, op->regions[r]));
    MP_RETURN_IF_ERROR(mp_chip_copy_chosen(b, op->regions[r]));
    MP_RETURN_IF_ERROR(chip_program_add_jump(b, MP_CHIP_STEP_JUMP, op, 1, &exits[r]));
  }
  for (uint32_t r = 0; r < op->num_regions; ++r) *exits[r] = chip_program_target(b);
  return NULL;
}

// ---- control flow without ----

static mp_status_t chip_program_flow(mp_chip_builder_t *b, const mp_op_t *op,
                                     mp_chip_step_kind_t kind, mp_chip_flow_t *out_flow);

static bool chip_program_is_flow(const mp_op_t *op) {
  return mp_op_info(op->code)->role == MP_OP_ROLE_CONTROL;
}

// The work of a block, as one step, without what is in its control flow.
static mp_status_t chip_program_part_work(mp_chip_builder_t *b, const mp_op_t *op, uint32_t region,
                                          uint32_t *out_step) {
  const uint32_t before = b->steps.count;
  b->must_begin = true;
  if (region != 0 || !chip_program_is_counted(b, op)) {
    MP_RETURN_IF_ERROR(chip_program_block(b, op->regions[region]));
  }
  if (op->code == MP_OP_WHILE && region == 1) MP_RETURN_IF_ERROR(mp_chip_copy_carried(b, op));
  if (op->code != MP_OP_WHILE) MP_RETURN_IF_ERROR(mp_chip_copy_chosen(b, op->regions[region]));
  *out_step = b->steps.count == before ? UINT32_MAX : before;
  b->must_begin = true;
  return NULL;
}

static mp_status_t chip_program_part_flows(mp_chip_builder_t *b, const mp_block_t *block,
                                           mp_chip_block_t *out) {
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    out->num_flows += chip_program_is_flow(op);
  }
  mp_chip_flow_t *flows = MP_ARENA_ARRAY(b->arena, mp_chip_flow_t, (size_t)out->num_flows + 1);
  MP_RETURN_IF_NULL(flows);
  out->flows = flows;
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    if (chip_program_is_flow(op))
      MP_RETURN_IF_ERROR(chip_program_flow(b, op, MP_CHIP_STEP_PART, flows++));
  }
  return NULL;
}

// Adds the step of a loop or branch and those of what is in it.
static mp_status_t chip_program_flow(mp_chip_builder_t *b, const mp_op_t *op,
                                     mp_chip_step_kind_t kind, mp_chip_flow_t *out_flow) {
  mp_chip_block_t *blocks = MP_ARENA_ARRAY(b->arena, mp_chip_block_t, op->num_regions);
  MP_RETURN_IF_NULL(blocks);
  uint32_t *next = NULL;
  *out_flow = (mp_chip_flow_t){.step = b->steps.count,
                               .control = op->control,
                               .is_loop = op->code == MP_OP_WHILE,
                               .rounds = op->code == MP_OP_WHILE ? mp_work_rounds(op) : -1,
                               .num_blocks = op->num_regions,
                               .blocks = blocks};
  MP_RETURN_IF_ERROR(chip_program_add_jump(b, kind, op, 1, &next));
  b->steps.items[out_flow->step].flow = out_flow;
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    MP_RETURN_IF_ERROR(chip_program_part_work(b, op, r, &blocks[r].step));
  }
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    MP_RETURN_IF_ERROR(chip_program_part_flows(b, op->regions[r], &blocks[r]));
  }
  *next = chip_program_target(b);
  return NULL;
}

static mp_status_t chip_program_local(mp_chip_builder_t *b, const mp_op_t *op) {
  mp_chip_flow_t *flow = MP_ARENA_NEW(b->arena, mp_chip_flow_t);
  MP_RETURN_IF_NULL(flow);
  b->is_in_part = true;
  MP_RETURN_IF_ERROR(chip_program_flow(b, op, MP_CHIP_STEP_LOCAL, flow));
  b->is_in_part = false;
  return NULL;
}

static mp_status_t chip_program_control(mp_chip_builder_t *b, const mp_op_t *op) {
  if (op->code == MP_OP_WHILE) MP_RETURN_IF_ERROR(mp_chip_copy_starts(b, op));
  if (op->control >= b->num_controls) b->num_controls = op->control + 1;
  if (b->is_in_part) return NULL;  // chip_program_part_flows comes to it
  if (chip_program_is_local(op)) return chip_program_local(b, op);
  return op->code == MP_OP_WHILE ? chip_program_while(b, op) : chip_program_case(b, op);
}

// ---- blocks ----

static mp_status_t chip_program_copy(mp_chip_builder_t *b, const mp_op_t *op) {
  uint32_t number;
  MP_RETURN_IF_ERROR(mp_chip_add_host_copy(b, op, &number));
  MP_RETURN_IF_ERROR(mp_chip_begin_copy(b, number));
  return mp_chip_await_copy(b, number);
}

static mp_status_t chip_program_op(mp_chip_builder_t *b, const mp_op_t *op) {
  if (mp_op_info(op->code)->role != MP_OP_ROLE_KERNEL) {
    MP_RETURN_IF_ERROR(mp_chip_add_layout_copies(b, op));
  }
  if (mp_plan_is_collective(op)) return chip_program_collective(b, op);
  if (mp_op_crosses(op)) return chip_program_copy(b, op);
  switch (mp_op_info(op->code)->role) {
    case MP_OP_ROLE_KERNEL:
      if (mp_plan_is_sink(op)) return NULL;
      return mp_chip_add_kernel(b, op, NULL);
    case MP_OP_ROLE_COMMAND:
      return mp_chip_add_scalar(b, op);
    case MP_OP_ROLE_CONTROL:
      return chip_program_control(b, op);
    default:
      return NULL;
  }
}

static mp_status_t chip_program_slot(mp_chip_builder_t *b, const mp_chip_slot_t *slot) {
  const mp_chip_item_t *item = &slot->item;
  if (item->copy != UINT32_MAX) {
    if (slot->part != MP_CHIP_SLOT_FINISH) MP_RETURN_IF_ERROR(mp_chip_begin_copy(b, item->copy));
    return slot->part == MP_CHIP_SLOT_BEGIN ? NULL : mp_chip_await_copy(b, item->copy);
  }
  switch (slot->part) {
    case MP_CHIP_SLOT_BEGIN:
      if (++b->num_started > b->most_started) b->most_started = b->num_started;
      return chip_program_add_meeting(b, MP_CHIP_STEP_START, item->op, item->collective);
    case MP_CHIP_SLOT_FINISH:
      b->num_started -= 1;
      return chip_program_add_meeting(b, MP_CHIP_STEP_DONE, item->op, item->collective);
    case MP_CHIP_SLOT_WHOLE:
      break;
  }
  if (item->collective != UINT32_MAX) return chip_program_meet(b, item->op, item->collective);
  if (item->ring.kind != MP_RING_NONE) return mp_chip_add_kernel(b, item->op, &item->ring);
  return chip_program_op(b, item->op);
}

static bool chip_program_has_collective(const mp_block_t *block) {
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    if (mp_plan_is_collective(op)) return true;
  }
  return false;
}

// ---- work beside collectives ----

typedef struct {
  double work, matmuls;  // seconds
} beside_t;

static bool chip_program_is_matmul(const mp_chip_builder_t *b, const mp_chip_item_t *item) {
  const mp_chip_fusion_t *fusion = mp_chip_fusion_at(&b->fusions, item->op);
  return fusion != NULL && fusion->work.work_class == MP_WORK_MATMUL;
}

// What is done between the start of a collective and its end, at `end`.
static beside_t chip_program_beside(const mp_chip_builder_t *b, const mp_chip_order_t *order,
                                    uint32_t end) {
  beside_t beside = {0, 0};
  for (uint32_t i = end; i-- > 0;) {
    const mp_chip_item_t *item = &order->slots[i].item;
    if (item->collective == order->slots[end].item.collective) break;
    if (item->collective != UINT32_MAX) continue;
    beside.work += item->seconds;
    if (chip_program_is_matmul(b, item)) beside.matmuls += item->seconds;
  }
  return beside;
}

// The share of that work which a collective takes away while both go on: that of the
// multiprocessors it runs on. Of matmuls more, where each of their blocks has a multiprocessor for
// itself: the last ones begin when others are over (`overlap.lost`).
static double chip_program_lost_share(const mp_chip_figures_t *figures, const beside_t *beside) {
  const double units = figures->overlap_units / figures->matmul_units;
  const double of_matmuls = beside->work > 0 ? beside->matmuls / beside->work : 0;
  return units + of_matmuls * (mp_figure_or(figures->overlap_lost, units) - units);
}

// A collective on a GPU runs on some of its multiprocessors, which what goes on beside it has not.
// What that takes longer is the collective's: the device loses it where it waits for the end.
static double chip_program_lost_seconds(const mp_chip_builder_t *b, const mp_chip_order_t *order,
                                        uint32_t end) {
  const mp_chip_figures_t *figures = &b->chip->figures;
  const mp_chip_item_t *item = &order->slots[end].item;
  if (!(figures->overlap_units > 0 && figures->overlap_units < figures->matmul_units)) return 0;
  if (!mp_chip_rule(figures, MP_CHIP_RULE_overlap_units)) return 0;
  const beside_t beside = chip_program_beside(b, order, end);
  const double share = fmin(chip_program_lost_share(figures, &beside), 1), left = 1 - share;
  return (left > 0 ? fmin(item->seconds, beside.work / left) : item->seconds) * share;
}

static mp_status_t chip_program_block(mp_chip_builder_t *b, const mp_block_t *block) {
  if (b->links != NULL && (chip_program_has_collective(block) || mp_chip_has_copy(block, false))) {
    mp_chip_order_t order;
    MP_RETURN_IF_ERROR(mp_chip_order_block(b, block, &order));
    for (uint32_t i = 0; i < order.num_slots; ++i) {
      MP_RETURN_IF_ERROR(chip_program_slot(b, &order.slots[i]));
      if (order.slots[i].part != MP_CHIP_SLOT_FINISH) continue;
      if (order.slots[i].item.collective == UINT32_MAX) continue;
      b->steps.items[b->steps.count - 1].time =
          mp_moment_of(chip_program_lost_seconds(b, &order, i));
    }
    return NULL;
  }
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    MP_RETURN_IF_ERROR(chip_program_op(b, op));
  }
  return NULL;
}

// ---- the chip program ----

// For steps: what says which layout copies have a kernel, and which item makes the results of an
// op.
static mp_status_t chip_program_make_tables(mp_chip_builder_t *b) {
  const uint32_t num_copies = b->fusions.layouts.copies.count;
  MP_RETURN_IF_ERROR(mp_chip_order_find_uses(b));
  b->copied = MP_ARENA_ARRAY(b->scratch, bool, (size_t)num_copies + 1);
  MP_RETURN_IF_NULL(b->copied);
  for (uint32_t i = 0; i < num_copies; ++i) b->copied[i] = false;
  b->items = MP_ARENA_ARRAY(b->scratch, uint32_t, (size_t)b->position + 1);
  MP_RETURN_IF_NULL(b->items);
  for (uint32_t i = 0; i < b->position; ++i) b->items[i] = UINT32_MAX;
  return NULL;
}

// Kernels with their costs, collectives and control flow, in the order of the schedule.
static mp_status_t chip_program_make_steps(mp_chip_builder_t *b) {
  uint32_t step;
  MP_RETURN_IF_ERROR(chip_program_make_tables(b));
  MP_RETURN_IF_ERROR(chip_program_block(b, b->program->partitioned->main->body));
  MP_RETURN_IF_ERROR(mp_chip_copy_results(b));
  const mp_chip_step_t end = {.kind = MP_CHIP_STEP_END, .rounds = -1};
  return chip_program_add_step(b, &end, &step);
}

// The passes of the chip's compiler.
static mp_status_t chip_program_compile(mp_chip_builder_t *b) {
  const mp_chip_figures_t *figures = &b->chip->figures;
  mp_module_t *module = b->program->partitioned;
  MP_RETURN_IF_ERROR(mp_chip_fusions_find(module, figures, b->scratch, &b->fusions));
  MP_RETURN_IF_ERROR(mp_spaces_assign(module, figures, b->scratch, &b->fusions));
  MP_RETURN_IF_ERROR(chip_program_make_steps(b));
  const mp_memory_rings_t rings = {b->rings.count, b->rings.items};
  return mp_chip_memory_plan(figures, &b->fusions, b->program, &rings, b->arena, &b->memory);
}

static uint32_t chip_program_num_tracks(const mp_chip_t *chip) {
  const double tracks = mp_figure_or(chip->figures.overlap_tracks, 1);
  return tracks < 1 ? 1 : (uint32_t)tracks;
}

mp_status_t mp_chip_program_create_linked(const mp_chip_t *chip, const mp_program_t *program,
                                          const mp_chip_links_t *links, mp_arena_t *arena,
                                          const mp_chip_program_t **out_program) {
  MP_ASSERT(program->partitioned != NULL);
  mp_chip_builder_t b = {.chip = chip,
                         .links = links,
                         .program = program,
                         .arena = arena,
                         .num_tracks = chip_program_num_tracks(chip)};
  mp_chip_program_t *chip_program = MP_ARENA_NEW(arena, mp_chip_program_t);
  MP_RETURN_IF_NULL(chip_program);
  MP_RETURN_IF_ERROR(mp_arena_create(&b.scratch));
  const mp_status_t status = chip_program_compile(&b);
  mp_arena_release(b.scratch);
  if (status != NULL) return status;
  *chip_program = (mp_chip_program_t){.program = program,
                                      .num_kernels = b.kernels.count,
                                      .kernels = b.kernels.items,
                                      .num_steps = b.steps.count,
                                      .steps = b.steps.items,
                                      .num_collectives = b.collectives.count,
                                      .collectives = b.collectives.items,
                                      .num_copies = b.copies.count,
                                      .copies = b.copies.items,
                                      .num_copy_slots = b.slots.count,
                                      .num_tracks = b.num_tracks,
                                      .most_started = b.most_started,
                                      .num_controls = b.num_controls,
                                      .has_choices = b.has_choices,
                                      .memory = b.memory};
  *out_program = chip_program;
  return NULL;
}

mp_status_t mp_chip_program_create(const mp_chip_t *chip, const mp_program_t *program,
                                   mp_arena_t *arena, const mp_chip_program_t **out_program) {
  return mp_chip_program_create_linked(chip, program, NULL, arena, out_program);
}
