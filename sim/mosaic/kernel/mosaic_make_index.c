// What is known of the indices of blocks when a kernel is made.
#include <string.h>

#include "sim/mosaic/kernel/mosaic_maker.h"

static bool mosaic_make_index_is_known(const mp_mosaic_kernel_t *kernel,
                                       const mp_mosaic_instruction_t *in) {
  switch (in->kind) {
    case MP_MOSAIC_DO_LOAD:
    case MP_MOSAIC_DO_LOAD_SCALAR:
    case MP_MOSAIC_DO_SIZE:
      return false;
    case MP_MOSAIC_DO_BOUND:
      return kernel->bounds[in->value] != MP_MOSAIC_DYNAMIC;
    default:
      return true;
  }
}

bool mp_mosaic_reads_memory(const mp_mosaic_kernel_t *kernel, const mp_mosaic_entry_t *entry) {
  const mp_mosaic_instruction_t *in = &kernel->program.instructions[entry->begin];
  for (; in->kind != MP_MOSAIC_DO_RETURN; ++in) {
    if (!mosaic_make_index_is_known(kernel, in)) return true;
  }
  return false;
}

mp_status_t mp_mosaic_index_changes(const mp_mosaic_maker_t *maker,
                                    const mp_mosaic_window_t *window, uint32_t d,
                                    bool *out_changes) {
  const mp_mosaic_kernel_t *kernel = maker->kernel;
  int64_t step[MP_MOSAIC_MAX_GRID] = {0}, first[MP_MOSAIC_MAX_RANK], second[MP_MOSAIC_MAX_RANK];
  MP_RETURN_IF_ERROR(mp_mosaic_window_index(kernel, window, step, maker->state, first));
  step[d] = 1;
  MP_RETURN_IF_ERROR(mp_mosaic_window_index(kernel, window, step, maker->state, second));
  *out_changes = memcmp(first, second, window->type.rank * sizeof(*first)) != 0;
  return NULL;
}
