#include "sim/mosaic/price/price_grid.h"

#include <math.h>
#include <string.h>

// ---- copies of blocks ----

static bool price_grid_advance(const mp_price_grid_t *grid, int64_t *step) {
  for (uint32_t d = grid->rank; d-- > 0;) {
    if (++step[d] < grid->bounds[d]) return true;
    step[d] = 0;
  }
  return false;
}

// Moves all windows to a step: fetches blocks of operands that change. Blocks of results are
// written back by price_grid_write, before.
static mp_status_t price_grid_fetch(mp_price_grid_t *grid, const int64_t *step, bool single) {
  int64_t index[MP_PRICE_MAX_RANK];
  for (uint32_t w = 0; w < grid->num_windows; ++w) {
    mp_price_window_t *window = &grid->windows[w];
    if (window->is_result || (window->buffers == 1) != single) continue;
    if (window->is_constant && window->has_index) continue;
    bool is_known = true;
    MP_RETURN_IF_ERROR(mp_price_window_index(grid, window, step, index, &is_known));
    if (!is_known) grid->walk->is_guessed = true;
    if (is_known && window->has_index && memcmp(index, window->index, sizeof(index)) == 0) continue;
    window->has_index = is_known;
    memcpy(window->index, index, sizeof(index));
    window->fetched = mp_price_copy(grid->walk, window->bytes);
  }
  return NULL;
}

// When the blocks that have been fetched so far are there.
static double price_grid_due(const mp_price_grid_t *grid) {
  double due = 0;
  for (uint32_t w = 0; w < grid->num_windows; ++w) due = fmax(due, grid->windows[w].fetched);
  return due;
}

static void price_grid_await(mp_price_grid_t *grid, double due, bool is_first) {
  const double before = grid->walk->wait;
  mp_price_wait(grid->walk, due);
  if (!is_first) return;
  grid->fill += grid->walk->wait - before;
  grid->walk->wait = before;
}

// Writes back the blocks of results that the next step (NULL: there is none) does not have. Their
// buffer is free when the copy of the block before is done.
static mp_status_t price_grid_write(mp_price_grid_t *grid, const int64_t *next) {
  int64_t index[MP_PRICE_MAX_RANK], other[MP_PRICE_MAX_RANK];
  for (uint32_t w = 0; w < grid->num_windows; ++w) {
    mp_price_window_t *window = &grid->windows[w];
    if (!window->is_result || (window->is_constant && next != NULL)) continue;
    if (next != NULL) {
      bool is_known = true, next_known = true;
      MP_RETURN_IF_ERROR(mp_price_window_index(grid, window, grid->step, index, &is_known));
      MP_RETURN_IF_ERROR(mp_price_window_index(grid, window, next, other, &next_known));
      if (!is_known || !next_known) grid->walk->is_guessed = true;
      if (is_known && next_known && memcmp(index, other, sizeof(index)) == 0) continue;
    }
    if (window->buffers > 1) mp_price_wait(grid->walk, window->written);
    window->written = mp_price_copy(grid->walk, window->bytes);
    if (window->buffers == 1) mp_price_wait(grid->walk, window->written);
  }
  return NULL;
}

// ---- steps ----

static double price_grid_overhead(const mp_price_grid_t *grid) {
  const mp_price_core_t *core = mp_price_core(grid->walk->chip);
  double cycles = core->step;
  if (!grid->walk->chip->rules.overhead || grid->rank == 0) return 0;
  for (uint32_t w = 0; w < grid->num_windows; ++w) {
    const mp_price_window_t *window = &grid->windows[w];
    cycles += (window->is_constant ? 0 : core->window) + (window->is_held ? core->held : 0);
  }
  return cycles;
}

static mp_status_t price_grid_step(mp_price_grid_t *grid, double overhead, bool is_first,
                                   const int64_t *next) {
  mp_price_walk_t *walk = grid->walk;
  const mp_mosaic_block_t *body = grid->main->func->body;
  walk->now += overhead;
  walk->compute += overhead;
  walk->units[MP_PRICE_SCALAR] += overhead;
  const double due = price_grid_due(grid);
  if (next != NULL) MP_RETURN_IF_ERROR(price_grid_fetch(grid, next, false));
  price_grid_await(grid, due, is_first);
  for (uint32_t d = 0; d < grid->rank; ++d)
    grid->main->slots[body->args[d].id] =
        (mp_price_slot_t){.is_known = true, .number = grid->step[d]};
  MP_RETURN_IF_ERROR(mp_price_run(walk, grid->main));
  MP_RETURN_IF_ERROR(price_grid_write(grid, next));
  return next == NULL ? NULL : price_grid_fetch(grid, next, true);
}

// The steps that are left have the mean of those that were run.
static void price_grid_extrapolate(mp_price_grid_t *grid, double done, double all) {
  mp_price_walk_t *walk = grid->walk;
  const double times = all / done;
  walk->is_sampled = true;
  walk->now *= times;
  walk->compute *= times;
  walk->wait *= times;
  walk->copies *= times;
  walk->bytes *= times;
  walk->flops *= times;
  for (int u = 0; u < MP_PRICE_UNIT_COUNT; ++u) walk->units[u] *= times;
}

static void price_grid_drain(mp_price_grid_t *grid) {
  for (uint32_t w = 0; w < grid->num_windows; ++w)
    mp_price_wait(grid->walk, grid->windows[w].written);
}

mp_status_t mp_price_grid_run(mp_price_grid_t *grid) {
  // A step more at both ends: the pipeline's own loop.
  enum { ENDS = 2 };
  const double overhead = price_grid_overhead(grid);
  int64_t next[MP_PRICE_MAX_GRID] = {0};
  double all = 1, done = 0;
  for (uint32_t d = 0; d < grid->rank; ++d) all *= (double)grid->bounds[d];
  grid->steps = all;
  if (all < 1) return NULL;
  grid->overhead = (all + ENDS) * overhead;
  grid->walk->now += ENDS * overhead;
  grid->walk->compute += ENDS * overhead;
  MP_RETURN_IF_ERROR(price_grid_fetch(grid, grid->step, false));
  MP_RETURN_IF_ERROR(price_grid_fetch(grid, grid->step, true));
  for (bool more = true; more;) {
    more = price_grid_advance(grid, next);
    MP_RETURN_IF_ERROR(price_grid_step(grid, overhead, done == 0, more ? next : NULL));
    memcpy(grid->step, next, sizeof(next));
    ++done;
    if (++grid->walk->evaluated > MP_PRICE_EVALUATIONS && more) {
      price_grid_extrapolate(grid, done, all);
      return NULL;
    }
  }
  price_grid_drain(grid);
  return NULL;
}
