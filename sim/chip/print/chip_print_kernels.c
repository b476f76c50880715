// Parts of the text: ops and arrays of a fusion, layout copies, memory.
#include "sim/base/assert.h"
#include "sim/chip/layout/layout_assign.h"
#include "sim/chip/print/chip_print_impl.h"

// ---- fusions ----

static void chip_print_kernels_layout(mp_tile_layout_t layout, mp_strbuf_t *out) {
  mp_strbuf_printf(out, "{%d,%d%s}", layout.lane, layout.sublane, layout.is_split ? ",split" : "");
}

// Prints the layout in which a fusion accesses an array: that of the layout copy, if it reads one.
// Only the stages `layout` and `memory` have it.
static void chip_print_kernels_layout_of(const mp_chip_print_t *p,
                                         const mp_chip_fusion_access_t *access) {
  const mp_layouts_t *layouts = &p->fusions.fusions.layouts;
  const mp_chip_stage_t stage = p->request->stage;
  if (stage != MP_CHIP_STAGE_LAYOUT && stage != MP_CHIP_STAGE_MEMORY) return;
  if (layouts->num_values == 0) return;  // GPUs have no tiles
  MP_ASSERT(access->copy == MP_LAYOUT_NONE || access->copy < layouts->copies.count);
  mp_strbuf_putc(p->out, ' ');
  chip_print_kernels_layout(access->copy == MP_LAYOUT_NONE ? layouts->values[access->value->id]
                                                           : layouts->copies.items[access->copy].to,
                            p->out);
}

static void chip_print_kernels_access(const mp_chip_print_t *p,
                                      const mp_chip_fusion_access_t *access, const char *what) {
  mp_strbuf_printf(p->out, "      %s ", what);
  mp_chip_print_value(access->value, p->out);
  mp_strbuf_putc(p->out, ' ');
  mp_type_print(access->value->type, p->out);
  chip_print_kernels_layout_of(p, access);
  if (p->request->stage >= MP_CHIP_STAGE_MEMORY) {
    mp_strbuf_printf(p->out, ", %.4g MiB, %s", access->bytes / MP_CHIP_PRINT_MIB,
                     mp_chip_print_space(p->request, access));
  }
  mp_strbuf_putc(p->out, '\n');
}

static void chip_print_kernels_ops(const mp_chip_print_t *p, const mp_chip_fusion_t *fusion) {
  mp_strbuf_puts(p->out, "      ops");
  for (uint32_t at = fusion->first_member; at != MP_CHIP_FUSION_NONE;) {
    const mp_chip_fusion_member_t *member = &p->fusions.fusions.members.items[at];
    mp_strbuf_putc(p->out, ' ');
    if (member->op->num_results > 0) {
      mp_chip_print_value(&member->op->results[0], p->out);
      mp_strbuf_putc(p->out, ':');
    }
    mp_strbuf_puts(p->out, mp_op_short_name(member->op));
    at = member->next;
  }
  mp_strbuf_putc(p->out, '\n');
}

void mp_chip_print_members(const mp_chip_print_t *p, const mp_chip_fusion_t *fusion) {
  const mp_chip_fusion_access_t *access = mp_chip_fusion_accesses(&p->fusions.fusions, fusion);
  chip_print_kernels_ops(p, fusion);
  for (uint32_t i = 0; i < fusion->num_reads + fusion->num_writes; ++i) {
    chip_print_kernels_access(p, &access[i], i < fusion->num_reads ? "reads" : "writes");
  }
}

// ---- layout copies ----

void mp_chip_print_layout_copies(const mp_chip_print_t *p) {
  const mp_layouts_t *layouts = &p->fusions.fusions.layouts;
  for (uint32_t i = 0; i < layouts->copies.count; ++i) {
    const mp_layout_copy_t *copy = &layouts->copies.items[i];
    mp_strbuf_puts(p->out, "  layout copy ");
    mp_chip_print_value(copy->value, p->out);
    mp_strbuf_putc(p->out, ' ');
    mp_type_print(copy->value->type, p->out);
    mp_strbuf_putc(p->out, ' ');
    chip_print_kernels_layout(copy->from, p->out);
    mp_strbuf_puts(p->out, " -> ");
    chip_print_kernels_layout(copy->to, p->out);
    mp_strbuf_printf(p->out, " for %s%s", mp_op_short_name(copy->op),
                     copy->is_reshape ? " (reshape)" : "");
    if (p->request->stage >= MP_CHIP_STAGE_MEMORY) {
      mp_strbuf_printf(p->out, ", %s to %s", copy->reads_vmem ? "VMEM" : "HBM",
                       copy->writes_vmem ? "VMEM" : "HBM");
    }
    mp_strbuf_putc(p->out, '\n');
  }
}

// ---- memory ----

void mp_chip_print_memory(const mp_chip_print_t *p) {
  const mp_chip_space_t *space = &p->chip_program->memory.device;
  mp_strbuf_printf(
      p->out,
      "  memory per device: arguments %.4g MiB, results %.4g MiB (%.4g MiB in place "
      "of arguments), temporaries %.4g MiB\n",
      (double)space->arguments / MP_CHIP_PRINT_MIB, (double)space->results / MP_CHIP_PRINT_MIB,
      (double)space->aliased / MP_CHIP_PRINT_MIB, (double)space->temporaries / MP_CHIP_PRINT_MIB);
}
