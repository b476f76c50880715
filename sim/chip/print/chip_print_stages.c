// Prints a program after its first passes: fusions, collectives, host copies
// and control flow, and layout copies.
#include "sim/chip/layout/layout_assign.h"
#include "sim/chip/print/chip_print_impl.h"
#include "sim/plan/plan.h"

// ---- blocks ----

static void chip_print_stages_block(const mp_chip_print_t *p, const mp_block_t *block);

// Prints an op that is not a fusion, with its operands and regions: a
// collective, a loop.
static void chip_print_stages_plain(const mp_chip_print_t *p, const mp_op_t *op) {
  const char *name = mp_op_short_name(op);
  mp_strbuf_printf(p->out, "    %s", name);
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    mp_strbuf_putc(p->out, ' ');
    mp_chip_print_value(op->operands[i], p->out);
  }
  mp_strbuf_putc(p->out, '\n');
  if (mp_op_info(op->code)->role != MP_OP_ROLE_CONTROL) return;
  for (uint32_t i = 0; i < op->num_regions; ++i) {
    mp_strbuf_printf(p->out, "  region %u of %s\n", i, name);
    chip_print_stages_block(p, op->regions[i]);
  }
  mp_strbuf_printf(p->out, "  end of %s\n", name);
}

// Prints a fusion at the place of its last op, where it runs.
static void chip_print_stages_block(const mp_chip_print_t *p, const mp_block_t *block) {
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    const mp_chip_fusion_t *fusion = mp_chip_fusion_at(p->fusions, op);
    if (fusion != NULL) {
      mp_strbuf_printf(p->out, "    %s (%s)\n", mp_op_short_name(fusion->hero),
                       mp_work_class_name(fusion->work.work_class));
      mp_chip_print_members(p, fusion);
    } else if (mp_op_info(op->code)->role == MP_OP_ROLE_CONTROL || mp_plan_is_collective(op) ||
               mp_op_crosses(op)) {
      chip_print_stages_plain(p, op);
    }
  }
}

void mp_chip_print_blocks(const mp_chip_print_t *p) {
  chip_print_stages_block(p, p->chip_program->program->partitioned->main->body);
}

// ---- layout copies ----

void mp_chip_print_layout_copies(const mp_chip_print_t *p) {
  const mp_layouts_t *layouts = &p->fusions->layouts;
  for (uint32_t i = 0; i < layouts->copies.count; ++i) {
    const mp_layout_copy_t *copy = &layouts->copies.items[i];
    mp_strbuf_puts(p->out, "  layout copy ");
    mp_chip_print_value(copy->value, p->out);
    mp_strbuf_putc(p->out, ' ');
    mp_type_print(copy->value->type, p->out);
    mp_strbuf_putc(p->out, ' ');
    mp_chip_print_layout(copy->from, p->out);
    mp_strbuf_puts(p->out, " -> ");
    mp_chip_print_layout(copy->to, p->out);
    mp_strbuf_printf(p->out, " for %s%s", mp_op_short_name(copy->op),
                     copy->is_reshape ? " (reshape)" : "");
    if (p->request->stage >= MP_CHIP_STAGE_MEMORY) {
      mp_strbuf_printf(p->out, ", %s to %s", copy->reads_vmem ? "VMEM" : "HBM",
                       copy->writes_vmem ? "VMEM" : "HBM");
    }
    mp_strbuf_putc(p->out, '\n');
  }
}
