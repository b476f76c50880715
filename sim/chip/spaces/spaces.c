// The assignment: the argument that is prefetched across programs, then values by what they save,
// then layout copies and operands that are prefetched, kernel by kernel.
#include "sim/chip/spaces/spaces.h"

#include <math.h>

#include "sim/base/assert.h"
#include "sim/chip/rules/chip_policy.h"
#include "sim/chip/spaces/spaces_impl.h"

// ---- layout copies ----

// A copy writes to VMEM if there is room when the first kernel reads it, unless SparseCores do.
static void spaces_place_read_copies(mp_spaces_t *s, uint32_t kernel) {
  const mp_chip_fusion_t *fusion = mp_spaces_fusion(s, kernel);
  const mp_chip_fusion_access_t *reads = mp_spaces_accesses(s, fusion);
  for (uint32_t i = 0; i < fusion->num_reads; ++i) {
    if (reads[i].copy == MP_LAYOUT_NONE) continue;
    mp_layout_copy_t *copy = &s->fusions->layouts.copies.items[reads[i].copy];
    if (copy->is_placed) continue;
    copy->is_placed = true;
    copy->writes_vmem = !mp_spaces_is_table(s, fusion) &&
                        mp_spaces_take(s, kernel, kernel, mp_layouts_copy_bytes(copy), s->vmem);
  }
}

// Copies of what a kernel writes to HBM find it in VMEM if there is room.
static void spaces_place_written_copies(mp_spaces_t *s, uint32_t kernel) {
  const mp_chip_fusion_t *fusion = mp_spaces_fusion(s, kernel);
  mp_chip_fusion_access_t *writes = mp_spaces_accesses(s, fusion) + fusion->num_reads;
  mp_layouts_t *layouts = &s->fusions->layouts;
  for (uint32_t i = 0; i < fusion->num_writes && !mp_spaces_is_table(s, fusion); ++i) {
    const uint32_t first = layouts->first[writes[i].value->id];
    if (first == MP_LAYOUT_NONE || mp_spaces_updated(s, writes[i].value) != NULL) continue;
    if (mp_spaces_buffer(s, writes[i].value)->is_in_vmem) continue;
    if (!mp_spaces_take(s, kernel, kernel, writes[i].bytes, s->vmem)) continue;
    writes[i].space = MP_SPACE_VMEM;
    for (uint32_t at = first; at != MP_LAYOUT_NONE; at = layouts->reads.items[at].next) {
      layouts->copies.items[layouts->reads.items[at].copy].reads_vmem = true;
    }
  }
}

// Copies read from VMEM what is there.
static void spaces_read_copies(mp_spaces_t *s) {
  for (uint32_t i = 0; i < s->fusions->layouts.copies.count; ++i) {
    mp_layout_copy_t *copy = &s->fusions->layouts.copies.items[i];
    copy->reads_vmem |= mp_spaces_buffer(s, mp_spaces_origin(copy->value))->is_in_vmem;
  }
}

// ---- all ----

static void spaces_set(mp_spaces_t *s, uint32_t kernel) {
  mp_chip_fusion_t *fusion = mp_spaces_fusion(s, kernel);
  mp_chip_fusion_access_t *access = mp_spaces_accesses(s, fusion);
  for (uint32_t i = 0; i < fusion->num_reads + fusion->num_writes; ++i) {
    const bool is_copy = access[i].copy != MP_LAYOUT_NONE;
    const bool is_in_vmem =
        is_copy ? s->fusions->layouts.copies.items[access[i].copy].writes_vmem
                : mp_spaces_buffer(s, mp_spaces_origin(access[i].value))->is_in_vmem;
    if (is_in_vmem) access[i].space = MP_SPACE_VMEM;
    *(access[i].space == MP_SPACE_VMEM ? &fusion->vmem_bytes : &fusion->bytes) += access[i].bytes;
  }
}

static void spaces_kernel(mp_spaces_t *s, uint32_t kernel) {
  if (mp_spaces_fusion(s, kernel)->first_member == MP_CHIP_FUSION_NONE) return;
  mp_spaces_prefetch_operands(s, kernel);
  if (s->fusions->layouts.copies.count > 0) {
    spaces_place_read_copies(s, kernel);
    spaces_place_written_copies(s, kernel);
  }
  MP_ASSERT_MSG(s->live[kernel] <= fmax(s->vmem, s->prefetched), "%g bytes in VMEM",
                s->live[kernel]);
}

// While a kernel runs, as many bytes can be copied as it moves itself, or as HBM delivers in the
// time of its matmul.
static void spaces_find_time(mp_spaces_t *s) {
  enum { BALANCE = 240 };  // operations of matmuls per byte of HBM
  for (uint32_t kernel = 0; kernel < s->num_kernels; ++kernel) {
    const mp_chip_fusion_t *fusion = mp_spaces_fusion(s, kernel);
    const mp_chip_fusion_access_t *access = mp_spaces_accesses(s, fusion);
    const mp_work_matmul_t *matmul = &fusion->work.matmul;
    double bytes = 0;
    for (uint32_t i = 0; i < fusion->num_reads + fusion->num_writes; ++i) bytes += access[i].bytes;
    const double operations = 2 * matmul->batch * matmul->m * matmul->n * matmul->k;
    s->spare[kernel] = fmax(bytes, operations / BALANCE);
  }
}

static mp_status_t spaces_note_values(mp_spaces_t *s) {
  const uint32_t count = s->fusions->num_values;
  bool *is_in_vmem = MP_ARENA_ARRAY(s->arena, bool, (size_t)count + 1);
  MP_RETURN_IF_NULL(is_in_vmem);
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t id = i;
    while (s->values[id].parent != id) id = s->values[id].parent;
    is_in_vmem[i] = s->values[id].is_in_vmem;
  }
  s->fusions->is_in_vmem = is_in_vmem;
  return NULL;
}

static mp_status_t spaces_assign(mp_spaces_t *s) {
  spaces_find_time(s);
  MP_RETURN_IF_ERROR(mp_spaces_find_values(s));
  mp_spaces_prefetch_argument(s);
  MP_RETURN_IF_ERROR(mp_spaces_allocate(s));
  for (uint32_t kernel = 0; kernel < s->num_kernels; ++kernel) spaces_kernel(s, kernel);
  spaces_read_copies(s);
  return spaces_note_values(s);
}

mp_status_t mp_spaces_assign(const mp_module_t *module, const mp_chip_figures_t *figures,
                             mp_arena_t *arena, mp_chip_fusions_t *fusions) {
  const uint32_t num_kernels = fusions->fusions.count;
  mp_spaces_t s = {.figures = figures,
                   .main = module->main,
                   .arena = arena,
                   .fusions = fusions,
                   .num_kernels = num_kernels,
                   .vmem = mp_figure_or(figures->memory_scratch, 0),
                   .prefetched = mp_figure_or(figures->matmul_resident, 0)};
  s.live = MP_ARENA_ARRAY(arena, double, (size_t)num_kernels + 1);
  s.values = MP_ARENA_ARRAY(arena, mp_spaces_value_t, (size_t)fusions->num_values + 1);
  s.spare = MP_ARENA_ARRAY(arena, double, (size_t)num_kernels + 1);
  MP_RETURN_IF_NULL(s.live);
  MP_RETURN_IF_NULL(s.spare);
  MP_RETURN_IF_NULL(s.values);
  for (uint32_t i = 0; i <= num_kernels; ++i) s.live[i] = 0;
  for (uint32_t i = 0; i < fusions->num_values; ++i) {
    s.values[i] = (mp_spaces_value_t){.parent = i, .next = MP_SPACES_NONE, .first = MP_SPACES_NONE};
  }
  // VMEM holds arrays in tiles.
  const bool has_vmem = mp_chip_policy(figures)->has_tiles && (s.vmem > 0 || s.prefetched > 0);
  MP_RETURN_IF_ERROR(has_vmem ? spaces_assign(&s) : NULL);
  for (uint32_t kernel = 0; kernel < num_kernels; ++kernel) spaces_set(&s, kernel);
  return NULL;
}
