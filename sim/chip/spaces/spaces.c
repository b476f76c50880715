// One sweep over the kernels in the order of the program: a value is in VMEM from its kernel to its
// last reader if there is room then.
#include "sim/chip/spaces/spaces.h"

#include <math.h>

#include "sim/base/assert.h"
#include "sim/chip/fuse/chip_fusion_kinds.h"
#include "sim/chip/fuse/lookup.h"
#include "sim/chip/rules/chip_rules.h"
#include "sim/chip/spaces/spaces_impl.h"

// ---- values between kernels ----

static bool spaces_is_looked_up(const mp_spaces_t *s, const mp_chip_fusion_t *fusion) {
  return fusion->hero->code == MP_OP_GATHER && mp_lookup_is_apart(s->figures, fusion->hero);
}

// An array that is updated in place is larger than what the kernel writes.
static bool spaces_is_update(const mp_spaces_t *s, const mp_value_t *value) {
  if (value->op == NULL) return false;
  mp_work_t work;
  return mp_chip_fusion_kind(s->figures, value->op, &work) == MP_CHIP_FUSION_UPDATE &&
         !mp_chip_fusion_is_selection(s->figures, value->op);
}

// Whether a value that a fusion writes may stay in VMEM until its last reader.
static bool spaces_may_stay(const mp_spaces_t *s, uint32_t number,
                            const mp_chip_fusion_access_t *write) {
  enum { FAR = 256 };  // kernels between the one that makes a value and its last reader
  const mp_spaces_value_t *value = &s->values[write->value->id];
  const uint32_t last = value->last_reader;
  const mp_chip_fusion_t *fusions = s->fusions->fusions.items;
  if (last == MP_CHIP_FUSION_NONE || last >= number || number - last > FAR) return false;
  return !value->is_table && !write->is_read_outside &&
         fusions[last].block == fusions[number].block && !spaces_is_update(s, write->value);
}

static void spaces_keep(mp_spaces_t *s, uint32_t number) {
  const mp_chip_fusion_t *fusion = &s->fusions->fusions.items[number];
  // SparseCores write to HBM.
  if (spaces_is_looked_up(s, fusion)) return;
  const mp_chip_fusion_access_t *writes = mp_spaces_accesses(s, fusion) + fusion->num_reads;
  for (uint32_t i = 0; i < fusion->num_writes; ++i) {
    const double bytes = writes[i].bytes;
    mp_spaces_value_t *value = &s->values[writes[i].value->id];
    if (!spaces_may_stay(s, number, &writes[i]) || s->kept + bytes > s->vmem ||
        s->kept + s->prefetched + bytes > fmax(s->vmem, s->prefetched_most) ||
        !mp_chip_rule(s->figures, MP_CHIP_RULE_kept_in_vmem)) {
      continue;
    }
    s->kept += bytes;
    s->freed_kept[value->last_reader] += bytes;
    value->is_in_vmem = true;
  }
}

// ---- layout copies ----

// Whether so many bytes fit into VMEM until the kernel ends; then they are there.
static bool spaces_take(mp_spaces_t *s, uint32_t number, double bytes) {
  if (s->kept + bytes > s->vmem) return false;
  s->kept += bytes;
  s->freed_kept[number] += bytes;
  return true;
}

// A copy writes to VMEM if there is room when the first kernel reads it.
static void spaces_place_read_copies(mp_spaces_t *s, uint32_t number) {
  const mp_chip_fusion_t *fusion = &s->fusions->fusions.items[number];
  const mp_chip_fusion_access_t *reads = mp_spaces_accesses(s, fusion);
  for (uint32_t i = 0; i < fusion->num_reads; ++i) {
    if (reads[i].copy == MP_LAYOUT_NONE) continue;
    mp_layout_copy_t *copy = &s->fusions->layouts.copies.items[reads[i].copy];
    if (copy->is_placed) continue;
    copy->is_placed = true;
    copy->writes_vmem = spaces_take(s, number, mp_layouts_copy_bytes(copy));
  }
}

// Copies of what a kernel writes find it in VMEM if there is room.
static void spaces_place_written_copies(mp_spaces_t *s, uint32_t number) {
  const mp_chip_fusion_t *fusion = &s->fusions->fusions.items[number];
  mp_chip_fusion_access_t *writes = mp_spaces_accesses(s, fusion) + fusion->num_reads;
  mp_layouts_t *layouts = &s->fusions->layouts;
  for (uint32_t i = 0; i < fusion->num_writes; ++i) {
    const uint32_t first = layouts->first[writes[i].value->id];
    if (first == MP_LAYOUT_NONE || !spaces_take(s, number, writes[i].bytes)) continue;
    writes[i].space = MP_SPACE_VMEM;
    for (uint32_t at = first; at != MP_LAYOUT_NONE; at = layouts->copies.items[at].next) {
      layouts->copies.items[at].reads_vmem = true;
    }
  }
}

// ---- all ----

static void spaces_set(mp_spaces_t *s, uint32_t number) {
  mp_chip_fusion_t *fusion = &s->fusions->fusions.items[number];
  mp_chip_fusion_access_t *access = mp_spaces_accesses(s, fusion);
  for (uint32_t i = 0; i < fusion->num_reads + fusion->num_writes; ++i) {
    const bool is_copy = access[i].copy != MP_LAYOUT_NONE;
    const bool is_in_vmem = is_copy ? s->fusions->layouts.copies.items[access[i].copy].writes_vmem
                                    : s->values[access[i].value->id].is_in_vmem;
    if (is_in_vmem) access[i].space = MP_SPACE_VMEM;
    *(access[i].space == MP_SPACE_VMEM ? &fusion->vmem_bytes : &fusion->bytes) += access[i].bytes;
  }
}

static void spaces_kernel(mp_spaces_t *s, uint32_t number) {
  if (s->fusions->fusions.items[number].first_member == MP_CHIP_FUSION_NONE) return;
  mp_spaces_prefetch_operand(s, number);
  s->previous = number;
  spaces_keep(s, number);
  if (s->fusions->layouts.copies.count > 0) {
    spaces_place_read_copies(s, number);
    spaces_place_written_copies(s, number);
  }
  MP_ASSERT_MSG(s->kept <= s->vmem && s->prefetched <= s->prefetched_most,
                "%g and %g bytes in VMEM", s->kept, s->prefetched);
  s->kept -= s->freed_kept[number];
  s->prefetched -= s->freed_prefetched[number];
}

// Loops from the end to the beginning, outer ones first.
static void spaces_loops(mp_spaces_t *s, const mp_block_t *block) {
  for (const mp_op_t *op = block->last; op != NULL; op = op->prev) {
    if (mp_op_info(op->code)->role != MP_OP_ROLE_CONTROL) continue;
    if (op->code == MP_OP_WHILE) mp_spaces_keep_rounds(s, op->regions[1]);
    for (uint32_t i = 0; i < op->num_regions; ++i) spaces_loops(s, op->regions[i]);
  }
}

// What the kernels of the program read.
static void spaces_note(mp_spaces_t *s, uint32_t number) {
  const mp_chip_fusion_t *fusion = &s->fusions->fusions.items[number];
  const mp_chip_fusion_access_t *reads = mp_spaces_accesses(s, fusion);
  for (uint32_t i = 0; i < fusion->num_reads; ++i) {
    s->values[reads[i].value->id].last_reader = number;
  }
  if (fusion->first_member != MP_CHIP_FUSION_NONE && spaces_is_looked_up(s, fusion)) {
    s->values[mp_chip_fusion_root(fusion->hero->operands[0])->id].is_table = true;
  }
}

static mp_status_t spaces_begin(mp_spaces_t *s, mp_arena_t *arena) {
  const uint32_t count = s->fusions->fusions.count, num_values = s->fusions->num_values;
  s->freed_kept = MP_ARENA_ARRAY(arena, double, (size_t)count + 1);
  s->freed_prefetched = MP_ARENA_ARRAY(arena, double, (size_t)count + 1);
  s->values = MP_ARENA_ARRAY(arena, mp_spaces_value_t, (size_t)num_values + 1);
  if (s->freed_kept == NULL || s->freed_prefetched == NULL || s->values == NULL) {
    return mp_status_out_of_memory();
  }
  for (uint32_t i = 0; i < num_values; ++i) {
    s->values[i] = (mp_spaces_value_t){.last_reader = MP_CHIP_FUSION_NONE};
  }
  for (uint32_t number = count; number-- > 0;) {
    s->freed_kept[number] = s->freed_prefetched[number] = 0;
    spaces_note(s, number);
  }
  return NULL;
}

mp_status_t mp_spaces_assign(const mp_module_t *module, const mp_chip_figures_t *figures,
                             mp_arena_t *arena, mp_chip_fusions_t *fusions) {
  mp_spaces_t s = {.figures = figures,
                   .main = module->main,
                   .fusions = fusions,
                   .vmem = mp_figure_or(figures->memory_scratch, 0),
                   .prefetched_most = mp_figure_or(figures->matmul_resident, 0),
                   .last_matmul = MP_CHIP_FUSION_NONE,
                   .previous = MP_CHIP_FUSION_NONE};
  MP_RETURN_IF_ERROR(spaces_begin(&s, arena));
  if (s.vmem > 0 || s.prefetched_most > 0) {
    spaces_loops(&s, module->main->body);
    mp_spaces_prefetch_argument(&s);
    for (uint32_t number = fusions->fusions.count; number-- > 0;) spaces_kernel(&s, number);
  }
  for (uint32_t number = fusions->fusions.count; number-- > 0;) spaces_set(&s, number);
  return NULL;
}
