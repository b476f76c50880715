// Which steps of the grid may run at the same time.
#include "sim/kernels/shape.h"
#include "sim/mosaic/kernel/mosaic_maker.h"

static bool mosaic_make_parts_is_parallel(const mp_mosaic_maker_t *maker, uint32_t d) {
  const mp_mosaic_attr_t *attr =
      mp_mosaic_attr(maker->func->attrs, maker->func->num_attrs, "dimension_semantics");
  if (attr == NULL || attr->kind != MP_MOSAIC_ARRAY || d >= attr->list.count) return false;
  const mp_mosaic_attr_t *item = attr->list.items[d].value;
  if (item->kind == MP_MOSAIC_DIALECT && item->list.count == 1) item = item->list.items[0].value;
  return item->kind == MP_MOSAIC_STRING && mp_str_is(item->str, "parallel");
}

// A chip with two cores for one device divides a parallel dimension between them. Inner ones are
// not looked at: the steps of both cores would run in turn.
static uint32_t mosaic_make_parts_divided(const mp_mosaic_maker_t *maker) {
  const mp_mosaic_kernel_t *kernel = maker->kernel;
  if (!maker->target->checks || maker->target->cores < 2) return MP_MOSAIC_NONE;
  for (uint32_t d = 0; d < kernel->rank; ++d) {
    if (kernel->bounds[d] == 1) continue;
    return mosaic_make_parts_is_parallel(maker, d) ? d : MP_MOSAIC_NONE;
  }
  return MP_MOSAIC_NONE;
}

// What prevents parts altogether.
static bool mosaic_make_parts_are_refused(const mp_mosaic_maker_t *maker) {
  const mp_mosaic_kernel_t *kernel = maker->kernel;
  if (maker->target->checks || maker->compiler->has_state || maker->func->body->num_args > 64)
    return true;
  for (uint32_t w = 0; w < kernel->num_windows; ++w) {
    const mp_mosaic_window_t *window = &kernel->windows[w];
    if (window->alias >= 0 || window->is_semaphores) return true;
    if (!window->is_result) continue;
    if (window->is_whole || window->is_kept || window->fills ||
        (window->has_entry && mp_mosaic_reads_memory(kernel, &window->entry))) {
      return true;
    }
  }
  // Prefetched operands that are written carry values from step to step.
  for (uint32_t i = 0; i < kernel->num_locals; ++i) {
    const mp_mosaic_local_t *local = &kernel->locals[i];
    if (local->operand != MP_MOSAIC_NONE && maker->compiler->written[local->arg]) return true;
  }
  return false;
}

// A result's blocks must change with all dimensions that parts divide, or with none of them.
static mp_status_t mosaic_make_parts_find(const mp_mosaic_maker_t *maker) {
  mp_mosaic_kernel_t *kernel = maker->kernel;
  int64_t steps = 1;
  uint32_t count = 0;
  for (uint32_t d = 0; d < kernel->rank && mosaic_make_parts_is_parallel(maker, d); ++d) {
    if (kernel->bounds[d] == MP_MOSAIC_DYNAMIC || kernel->bounds[d] < 1) break;
    bool fits = true;
    for (uint32_t w = 0; w < kernel->num_windows && kernel->bounds[d] > 1; ++w) {
      mp_mosaic_window_t *window = &kernel->windows[w];
      bool changes = false;
      if (!window->is_result) continue;
      MP_RETURN_IF_ERROR(mp_mosaic_index_changes(maker, window, d, &changes));
      const bool is_first = steps == 1;
      if (is_first) window->is_constant = !changes;
      fits &= window->is_constant == !changes;
    }
    if (!fits) break;
    steps *= kernel->bounds[d];
    count = d + 1;
  }
  kernel->num_parallel = count;
  kernel->parallel_steps = steps;
  return NULL;
}

static void mosaic_make_parts_set(mp_mosaic_kernel_t *kernel) {
  kernel->kernel.num_parts = mp_part_count(kernel->parallel_steps, 1);
  for (uint32_t w = 0; w < kernel->num_windows; ++w) {
    mp_mosaic_window_t *window = &kernel->windows[w];
    window->is_constant &= kernel->kernel.num_parts > 1;
    window->is_copied |= window->is_constant;
  }
  if (kernel->kernel.num_parts == 1) return;
  kernel->kernel.finish = mp_mosaic_grid_finish;
  kernel->kernel.shared_bytes = 64;
}

mp_status_t mp_mosaic_make_parts(mp_mosaic_maker_t *maker) {
  mp_mosaic_kernel_t *kernel = maker->kernel;
  kernel->divided = mosaic_make_parts_divided(maker);
  kernel->num_parallel = 0;
  kernel->parallel_steps = 1;
  if (mosaic_make_parts_are_refused(maker)) return NULL;
  MP_RETURN_IF_ERROR(mosaic_make_parts_find(maker));
  mosaic_make_parts_set(kernel);
  return NULL;
}
