// Finds the fusion of a kernel, and prints its ops and values.
#include <string.h>

#include "sim/base/assert.h"
#include "sim/base/hash.h"
#include "sim/chip/chip_compile.h"
#include "sim/chip/print/chip_print_impl.h"

static mp_status_t chip_print_fusions_index(mp_chip_print_fusions_t *fusions) {
  for (uint32_t i = 0; i < fusions->fusions.fusions.count; ++i) {
    const mp_chip_fusion_t *fusion = &fusions->fusions.fusions.items[i];
    if (fusion->first_member == MP_CHIP_FUSION_NONE) continue;
    MP_ASSERT(fusion->hero != NULL);
    const mp_chip_print_entry_t entry = {mp_hash_pointer(fusion->hero), fusion};
    MP_RETURN_IF_ERROR(MP_HASH_MAP_ADD(fusions->arena, &fusions->by_hero, &entry));
  }
  return NULL;
}

mp_status_t mp_chip_print_find(const mp_chip_print_request_t *request,
                               mp_chip_print_fusions_t *out) {
  *out = (mp_chip_print_fusions_t){0};
  MP_RETURN_IF_ERROR(mp_arena_create(&out->arena));
  mp_module_t *module = request->chip_program->program->partitioned;
  const mp_chip_figures_t *figures = &request->chip->figures;
  MP_RETURN_IF_ERROR(mp_chip_make_fusions(module, figures, out->arena, &out->fusions));
  return chip_print_fusions_index(out);
}

void mp_chip_print_forget(mp_chip_print_fusions_t *fusions) {
  mp_arena_release(fusions->arena);
}

// Whether a kernel is the fusion of its op. Copies for an op have another name than the op.
static bool chip_print_fusions_is_own(const mp_chip_kernel_t *kernel) {
  return strcmp(kernel->name, mp_op_short_name(kernel->op)) == 0;
}

const mp_chip_fusion_t *mp_chip_print_fusion(const mp_chip_print_fusions_t *fusions,
                                             const mp_chip_kernel_t *kernel) {
  const mp_chip_print_entry_t *entry;
  if (!chip_print_fusions_is_own(kernel)) return NULL;
  MP_HASH_MAP_GET(&fusions->by_hero, mp_hash_pointer(kernel->op), entry);
  return entry == NULL ? NULL : entry->fusion;
}

const char *mp_chip_print_space(const mp_chip_print_request_t *request,
                                const mp_chip_fusion_access_t *access) {
  const bool is_tpu = request->chip->figures.compiler == MP_CHIP_COMPILER_TPU;
  switch (access->space) {
    case MP_SPACE_PREFETCHED:
      return is_tpu ? "VMEM, copied beside other work" : "on chip, copied";
    case MP_SPACE_VMEM:
      return is_tpu ? "VMEM" : "on chip";
    default:
      return "HBM";
  }
}

void mp_chip_print_value(const mp_value_t *value, mp_strbuf_t *out) {
  mp_strbuf_printf(out, "%%%u", value->id);
}
