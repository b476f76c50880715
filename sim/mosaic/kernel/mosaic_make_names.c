// What arguments of a kernel are called in the messages of checks.
#include "sim/mosaic/kernel/mosaic_maker.h"

mp_status_t mp_mosaic_make_names(mp_mosaic_maker_t *maker) {
  mp_mosaic_kernel_t *kernel = maker->kernel;
  const uint32_t num_args = maker->func->body->num_args;
  mp_mosaic_check_name_t *names = MP_ARENA_ARRAY(maker->arena, mp_mosaic_check_name_t, num_args);
  MP_RETURN_IF_NULL(names);
  for (uint32_t i = 0; i < kernel->rank; ++i) {
    names[i] = (mp_mosaic_check_name_t){"grid index", i};
  }
  for (uint32_t i = 0; i < kernel->num_locals; ++i) {
    const mp_mosaic_local_t *local = &kernel->locals[i];
    const bool is_scratch = local->operand == MP_MOSAIC_NONE;
    names[local->arg].what = is_scratch ? "scratch memory" : "operand";
    names[local->arg].number = is_scratch ? i - maker->num_prefetched : local->operand;
  }
  for (uint32_t w = 0; w < kernel->num_windows; ++w) {
    const mp_mosaic_window_t *window = &kernel->windows[w];
    names[window->arg].what = window->is_result ? "result" : "operand";
    names[window->arg].number = window->array;
  }
  kernel->names = names;
  kernel->num_args = num_args;
  return NULL;
}
