// What is known of the indices of blocks when a kernel is made.
#include <string.h>

#include "sim/mosaic/kernel/mosaic_maker.h"

// Whether what the instruction makes is known: memrefs are not, since they have no memory yet.
static bool mosaic_make_index_is_known(const mp_mosaic_kernel_t *kernel,
                                       const mp_mosaic_instruction_t *in) {
  switch (in->kind) {
    case MP_MOSAIC_DO_JUMP:
    case MP_MOSAIC_DO_UNLESS:
    case MP_MOSAIC_DO_SWITCH:
    case MP_MOSAIC_DO_MOVE:
    case MP_MOSAIC_DO_COPY:
    case MP_MOSAIC_DO_INTEGER:
    case MP_MOSAIC_DO_COMPARE:
    case MP_MOSAIC_DO_SELECT:
    case MP_MOSAIC_DO_EXTEND:
    case MP_MOSAIC_DO_TO_VECTOR:
    case MP_MOSAIC_DO_FROM_VECTOR:
    case MP_MOSAIC_DO_KERNEL:
    case MP_MOSAIC_DO_ASSERT:
      return true;
    case MP_MOSAIC_DO_BOUND:
      return kernel->bounds[in->value] != MP_MOSAIC_DYNAMIC;
    default:
      return false;
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
  *out_changes = memcmp(first, second, window->type->rank * sizeof(*first)) != 0;
  return NULL;
}
