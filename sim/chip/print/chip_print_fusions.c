// Fusions: their ops, and the arrays that they read and write.
#include "sim/base/assert.h"
#include "sim/chip/print/chip_print_impl.h"

const char *mp_chip_print_space(mp_space_t space) {
  static const char *const names[] = {[MP_SPACE_HBM] = "HBM",
                                      [MP_SPACE_VMEM] = "VMEM",
                                      [MP_SPACE_PREFETCHED] = "VMEM, copied beside other work"};
  return names[space];
}

void mp_chip_print_value(const mp_value_t *value, mp_strbuf_t *out) {
  mp_strbuf_printf(out, "%%%u", value->id);
}

void mp_chip_print_layout(mp_tile_layout_t layout, mp_strbuf_t *out) {
  mp_strbuf_printf(out, "{%d,%d%s}", layout.lane, layout.sublane, layout.is_split ? ",split" : "");
}

// Prints the layout in which a fusion accesses an array: that of the layout
// copy, if it reads one. Only the stages `layout` and `memory` have it.
static void chip_print_fusions_layout(const mp_chip_print_t *p,
                                      const mp_chip_fusion_access_t *access) {
  const mp_layouts_t *layouts = &p->fusions->layouts;
  const mp_chip_stage_t stage = p->request->stage;
  if (stage != MP_CHIP_STAGE_LAYOUT && stage != MP_CHIP_STAGE_MEMORY) return;
  if (layouts->num_values == 0) return;  // GPUs have no tiles
  MP_ASSERT(access->copy == MP_LAYOUT_NONE || access->copy < layouts->copies.count);
  mp_strbuf_putc(p->out, ' ');
  mp_chip_print_layout(access->copy == MP_LAYOUT_NONE ? layouts->values[access->value->id]
                                                      : layouts->copies.items[access->copy].to,
                       p->out);
}

static void chip_print_fusions_access(const mp_chip_print_t *p,
                                      const mp_chip_fusion_access_t *access, const char *what) {
  mp_strbuf_printf(p->out, "      %s ", what);
  mp_chip_print_value(access->value, p->out);
  mp_strbuf_putc(p->out, ' ');
  mp_type_print(access->value->type, p->out);
  chip_print_fusions_layout(p, access);
  if (p->request->stage >= MP_CHIP_STAGE_MEMORY) {
    mp_strbuf_printf(p->out, ", %.4g MiB, %s", access->bytes / MP_CHIP_PRINT_MIB,
                     mp_chip_print_space(access->space));
  }
  mp_strbuf_putc(p->out, '\n');
}

void mp_chip_print_members(const mp_chip_print_t *p, const mp_chip_fusion_t *fusion) {
  const mp_chip_fusion_access_t *access = mp_chip_fusion_accesses(p->fusions, fusion);
  mp_strbuf_puts(p->out, "      ops");
  for (const mp_chip_fusion_member_t *m = NULL; mp_chip_fusion_visit(p->fusions, fusion, &m);) {
    mp_strbuf_putc(p->out, ' ');
    if (m->op->num_results > 0) {
      mp_chip_print_value(&m->op->results[0], p->out);
      mp_strbuf_putc(p->out, ':');
    }
    mp_strbuf_puts(p->out, mp_op_short_name(m->op));
  }
  mp_strbuf_putc(p->out, '\n');
  for (uint32_t i = 0; i < fusion->num_reads + fusion->num_writes; ++i) {
    chip_print_fusions_access(p, &access[i], i < fusion->num_reads ? "reads" : "writes");
  }
}
