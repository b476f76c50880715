// Prints a program after its first passes: fusions, collectives, host copies and control flow.
#include "sim/chip/print/chip_print_impl.h"
#include "sim/plan/plan.h"

static const char *const g_chip_stage_names[] = {
    [MP_CHIP_STAGE_FUSE] = "fuse",         [MP_CHIP_STAGE_LAYOUT] = "layout",
    [MP_CHIP_STAGE_MEMORY] = "memory",     [MP_CHIP_STAGE_COST] = "cost",
    [MP_CHIP_STAGE_SCHEDULE] = "schedule",
};

const char *mp_chip_stage_name(mp_chip_stage_t stage) {
  return g_chip_stage_names[stage];
}

bool mp_chip_stage_from_name(mp_str_t name, mp_chip_stage_t *out_stage) {
  for (int i = 0; i < MP_CHIP_STAGE_COUNT; ++i) {
    if (!mp_str_equal(name, mp_str(g_chip_stage_names[i]))) continue;
    *out_stage = (mp_chip_stage_t)i;
    return true;
  }
  return false;
}

// ---- blocks ----

// Prints an op that is not a fusion, with its operands: a collective, a loop.
static void chip_print_stages_plain(const mp_chip_print_t *p, const mp_op_t *op) {
  mp_strbuf_printf(p->out, "    %s", mp_op_short_name(op));
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    mp_strbuf_putc(p->out, ' ');
    mp_chip_print_value(op->operands[i], p->out);
  }
  mp_strbuf_putc(p->out, '\n');
}

static void chip_print_stages_block(const mp_chip_print_t *p, const mp_block_t *block);

static void chip_print_stages_regions(const mp_chip_print_t *p, const mp_op_t *op) {
  chip_print_stages_plain(p, op);
  for (uint32_t i = 0; i < op->num_regions; ++i) {
    mp_strbuf_printf(p->out, "  region %u of %s\n", i, mp_op_short_name(op));
    chip_print_stages_block(p, op->regions[i]);
  }
  mp_strbuf_printf(p->out, "  end of %s\n", mp_op_short_name(op));
}

// Prints a fusion at the place of its last op, where it runs.
static void chip_print_stages_op(const mp_chip_print_t *p, const mp_op_t *op) {
  const mp_chip_fusion_t *fusion = mp_chip_fusion_at(&p->fusions.fusions, op);
  if (fusion != NULL) {
    mp_strbuf_printf(p->out, "    %s (%s)\n", mp_op_short_name(fusion->hero),
                     mp_work_class_name(fusion->work.work_class));
    mp_chip_print_members(p, fusion);
  } else if (mp_op_info(op->code)->role == MP_OP_ROLE_CONTROL) {
    chip_print_stages_regions(p, op);
  } else if (mp_plan_is_collective(op) || mp_op_crosses(op)) {
    chip_print_stages_plain(p, op);
  }
}

static void chip_print_stages_block(const mp_chip_print_t *p, const mp_block_t *block) {
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) chip_print_stages_op(p, op);
}

void mp_chip_print_blocks(const mp_chip_print_t *p) {
  chip_print_stages_block(p, p->chip_program->program->partitioned->main->body);
}
