// Which results are unset before the kernel, or block by block: those of which it cannot be shown
// that the grid comes to all blocks, and that each step stores the whole block before it reads it.
#include "sim/mosaic/kernel/mosaic_maker.h"

// ---- whether a step stores the whole block ----

static bool mosaic_make_fills_uses(const mp_mosaic_instruction_t *in,
                                   const mp_mosaic_window_t *window) {
  switch (in->kind) {
    case MP_MOSAIC_DO_LOAD:
    case MP_MOSAIC_DO_LOAD_SCALAR:
    case MP_MOSAIC_DO_STORE:
    case MP_MOSAIC_DO_STORE_SCALAR:
      return in->target == window->arg || in->target == MP_MOSAIC_NONE;
    case MP_MOSAIC_DO_JUMP:
    case MP_MOSAIC_DO_UNLESS:
    case MP_MOSAIC_DO_SWITCH:
    case MP_MOSAIC_DO_DMA:
    case MP_MOSAIC_DO_REMOTE_DMA:
    case MP_MOSAIC_DO_REMOTE_SIGNAL:
    case MP_MOSAIC_DO_RETURN:
      return true;
    default:
      return false;
  }
}

static bool mosaic_make_fills_is_whole(const mp_mosaic_instruction_t *in,
                                       const mp_mosaic_window_t *window) {
  if (in->kind != MP_MOSAIC_DO_STORE || in->target != window->arg || in->a != window->view ||
      in->c != MP_MOSAIC_NONE || in->u.part->rank != window->type->rank) {
    return false;
  }
  for (uint32_t d = 0; d < window->type->rank; ++d) {
    if (in->u.part->sizes[d] != window->type->dims[d]) return false;
  }
  return true;
}

// Whether the first use of the block, in each step, is a store to all of it. Nothing is shown of
// what comes after a branch.
static bool mosaic_make_fills_stores(const mp_mosaic_kernel_t *kernel,
                                     const mp_mosaic_window_t *window) {
  const mp_mosaic_instruction_t *in = &kernel->program.instructions[kernel->main.begin];
  while (!mosaic_make_fills_uses(in, window)) ++in;
  return mosaic_make_fills_is_whole(in, window);
}

// ---- whether the grid comes to all blocks ----

static bool mosaic_make_fills_has_steps(const mp_mosaic_kernel_t *kernel, int64_t *out_steps) {
  *out_steps = 1;
  for (uint32_t d = 0; d < kernel->rank; ++d) {
    if (kernel->bounds[d] < 1) return false;  // dynamic ones, too
    *out_steps *= kernel->bounds[d];
  }
  return true;
}

static uint32_t mosaic_make_fills_grid_dim(const mp_mosaic_kernel_t *kernel,
                                           const mp_mosaic_window_t *window, uint32_t d) {
  for (uint32_t g = 0; window->has_entry && g < kernel->rank; ++g) {
    if (window->entry.results[d] == window->entry.args[g]) return g;
  }
  return MP_MOSAIC_NONE;
}

static int64_t mosaic_make_fills_blocks(const mp_mosaic_window_t *window, uint32_t d) {
  const int64_t size = window->type->dims[d];
  return size == 0 ? 0 : (window->dims[d] + size - 1) / size;
}

// The index of each dimension is one of the step, each another, or there is a single block.
static bool mosaic_make_fills_is_plain(const mp_mosaic_kernel_t *kernel,
                                       const mp_mosaic_window_t *window) {
  uint32_t used = 0;
  for (uint32_t d = 0; d < window->type->rank; ++d) {
    const int64_t blocks = mosaic_make_fills_blocks(window, d);
    if (blocks <= 1) continue;
    const uint32_t g = mosaic_make_fills_grid_dim(kernel, window, d);
    if (g == MP_MOSAIC_NONE || (used >> g & 1) != 0 || kernel->bounds[g] < blocks) return false;
    used |= 1u << g;
  }
  return true;
}

// The number of the block at a step; -1: it is outside.
static int64_t mosaic_make_fills_block(const mp_mosaic_window_t *window, const int64_t *index) {
  int64_t block = 0;
  for (uint32_t d = 0; d < window->type->rank; ++d) {
    const int64_t blocks = mosaic_make_fills_blocks(window, d);
    if (index[d] < 0 || index[d] >= blocks) return -1;
    block = block * blocks + index[d];
  }
  return block;
}

// Goes through the steps of the grid, `seen` has a byte for each block.
static bool mosaic_make_fills_walk(const mp_mosaic_maker_t *maker, const mp_mosaic_window_t *window,
                                   int64_t steps, int64_t blocks, bool *seen) {
  const mp_mosaic_kernel_t *kernel = maker->kernel;
  int64_t index[MP_MOSAIC_MAX_RANK];
  for (int64_t i = 0; i < steps && blocks > 0; ++i) {
    int64_t step[MP_MOSAIC_MAX_GRID] = {0}, rest = i;
    for (uint32_t d = kernel->rank; d-- > 0; rest /= kernel->bounds[d]) {
      step[d] = rest % kernel->bounds[d];
    }
    mp_status_t status = mp_mosaic_window_index(kernel, window, step, maker->state, index);
    if (status != NULL) {  // the step will say so
      mp_status_ignore(status);
      return false;
    }
    const int64_t block = mosaic_make_fills_block(window, index);
    if (block < 0 || seen[block]) continue;
    seen[block] = true;
    --blocks;
  }
  return blocks == 0;
}

static mp_status_t mosaic_make_fills_try_steps(const mp_mosaic_maker_t *maker,
                                               const mp_mosaic_window_t *window, int64_t steps,
                                               bool *out_covers) {
  enum { MOST_STEPS = 1 << 14 };
  int64_t blocks = 1;
  for (uint32_t d = 0; d < window->type->rank; ++d) {
    if (__builtin_mul_overflow(blocks, mosaic_make_fills_blocks(window, d), &blocks)) return NULL;
  }
  if (steps > MOST_STEPS || blocks > steps || !window->has_entry ||
      mp_mosaic_reads_memory(maker->kernel, &window->entry)) {
    return NULL;
  }
  bool *seen = MP_ARENA_ARRAY(maker->compiler->scratch, bool, (size_t)blocks);
  MP_RETURN_IF_NULL(seen);
  *out_covers = mosaic_make_fills_walk(maker, window, steps, blocks, seen);
  return NULL;
}

static mp_status_t mosaic_make_fills_covers(const mp_mosaic_maker_t *maker,
                                            const mp_mosaic_window_t *window, bool *out_covers) {
  const mp_mosaic_kernel_t *kernel = maker->kernel;
  int64_t steps = 0;
  *out_covers = false;
  if (window->is_whole || window->is_element || !mosaic_make_fills_has_steps(kernel, &steps)) {
    return NULL;
  }
  *out_covers = mosaic_make_fills_is_plain(kernel, window);
  return *out_covers ? NULL : mosaic_make_fills_try_steps(maker, window, steps, out_covers);
}

// ---- ----

mp_status_t mp_mosaic_make_fills(mp_mosaic_maker_t *maker) {
  mp_mosaic_kernel_t *kernel = maker->kernel;
  for (uint32_t w = 0; w < kernel->num_windows; ++w) {
    mp_mosaic_window_t *window = &kernel->windows[w];
    if (!window->is_result || window->alias >= 0 || window->is_semaphores) continue;
    bool covers = false;
    MP_RETURN_IF_ERROR(mosaic_make_fills_covers(maker, window, &covers));
    const bool stores = mosaic_make_fills_stores(kernel, window);
    window->fills = !covers || (window->is_kept && !stores);
    window->unsets = !window->is_whole && !window->is_kept && !stores;
  }
  return NULL;
}
