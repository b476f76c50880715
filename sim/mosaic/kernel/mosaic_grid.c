#include "sim/mosaic/kernel/mosaic_grid.h"

#include <string.h>

#include "sim/kernels/shape.h"
#include "sim/mosaic/run/mosaic_scalar.h"
#include "sim/mosaic/run/mosaic_unset.h"

// ---- the memory of a part ----

static char *mosaic_grid_take(char **at, size_t bytes) {
  char *taken = *at;
  *at += mp_round_up_64(bytes);
  return taken;
}

static void mosaic_grid_set_local(mp_mosaic_grid_t *grid, const mp_mosaic_local_t *local,
                                  char *memory) {
  char *base = memory + local->offset;
  mp_mosaic_view_dense(local->type, base, local->arg, &grid->state.views[local->view]);
  if (local->operand == MP_MOSAIC_NONE) {
    mp_mosaic_unset(local->type, base, local->bytes);
  } else {
    memcpy(base, grid->call.operands[local->operand], local->bytes);
  }
}

static void mosaic_grid_set_window(mp_mosaic_grid_t *grid, uint32_t w, char *memory) {
  const mp_mosaic_window_t *window = &grid->kernel->windows[w];
  const mp_kernel_call_t *call = &grid->call;
  mp_mosaic_window_state_t *state = &grid->windows[w];
  *state = (mp_mosaic_window_state_t){.copy = memory + window->offset};
  // An operand that a result begins with has the result's memory where it is seen as a whole.
  const bool is_shared =
      window->is_whole && !window->is_semaphores && !window->is_result && window->alias >= 0;
  state->array = window->is_result ? call->results[window->array]
                 : is_shared       ? call->results[window->alias]
                                   : (char *)call->operands[window->array];
  if (window->is_semaphores && !(window->is_result && window->alias >= 0)) {
    mp_mosaic_window_load_semaphores(window, state);
  }
  mp_mosaic_view_dense(window->type, window->is_semaphores ? state->copy : state->array,
                       window->arg, &grid->state.views[window->view]);
  if (window->is_whole && !window->is_semaphores) {
    mp_mosaic_view_make_room(window->type, &grid->state.views[window->view]);
  }
  // Blocks of other results are filled, stored as a whole or fetched when the grid comes to them.
  const bool begins_unset =
      window->is_result && !window->is_whole && !window->is_kept && window->alias >= 0;
  if (begins_unset) mp_mosaic_unset(window->type, state->copy, window->bytes);
  // The function of its index reads the same prefetched operands as the kernel does.
  for (uint32_t i = grid->kernel->rank; i < window->entry.num_args; ++i) {
    grid->state.views[window->entry.args[i]] = grid->state.views[grid->kernel->main.args[i]];
  }
}

static mp_status_t mosaic_grid_set_memory(mp_mosaic_grid_t *grid) {
  const mp_mosaic_kernel_t *kernel = grid->kernel;
  char *at = grid->call.scratch;
  char *state = mosaic_grid_take(&at, mp_mosaic_state_bytes(&kernel->program));
  grid->windows = (mp_mosaic_window_state_t *)mosaic_grid_take(
      &at, kernel->num_windows * sizeof(*grid->windows));
  mp_mosaic_state_init(&kernel->program, state, &grid->state);
  grid->state.bounds = grid->bounds;
  for (uint32_t i = 0; i < kernel->num_locals; ++i)
    mosaic_grid_set_local(grid, &kernel->locals[i], at);
  for (uint32_t w = 0; w < kernel->num_windows; ++w) mosaic_grid_set_window(grid, w, at);
  if (grid->check == NULL) return NULL;
  mp_mosaic_check_follow(grid->check, &grid->state, grid->step, kernel->rank);
  return mp_mosaic_grid_watch_begin(kernel, &grid->state, grid->check);
}

static mp_status_t mosaic_grid_read_bounds(mp_mosaic_grid_t *grid) {
  const mp_mosaic_kernel_t *kernel = grid->kernel;
  for (uint32_t d = 0; d < kernel->rank; ++d) {
    grid->bounds[d] = kernel->bounds[d];
    if (kernel->bounds[d] != MP_MOSAIC_DYNAMIC) continue;
    const void *bound = grid->call.operands[kernel->bound_operands[d]];
    grid->bounds[d] = mp_mosaic_scalar_load(MP_DTYPE_S32, bound);
    if (grid->bounds[d] < 0) {
      return mp_status_make(MP_OUT_OF_RANGE, "kernel '%s': bound %u of the grid is %lld",
                            kernel->name, d, (long long)grid->bounds[d]);
    }
  }
  return NULL;
}

// ---- a step ----

mp_status_t mp_mosaic_window_index(const mp_mosaic_kernel_t *kernel,
                                   const mp_mosaic_window_t *window, const int64_t *step,
                                   mp_mosaic_state_t *state, int64_t *out_index) {
  mp_mosaic_outcome_t outcome = MP_MOSAIC_DONE;
  memset(out_index, 0, window->type->rank * sizeof(*out_index));
  if (!window->has_entry) return NULL;
  for (uint32_t d = 0; d < kernel->rank; ++d) state->registers[window->entry.args[d]] = step[d];
  state->pc = window->entry.begin;
  MP_RETURN_IF_ERROR(mp_mosaic_run(&kernel->program, state, &outcome));
  for (uint32_t d = 0; d < window->entry.num_results; ++d) {
    out_index[d] = state->registers[window->entry.results[d]];
  }
  return NULL;
}

static mp_status_t mosaic_grid_move_windows(mp_mosaic_grid_t *grid) {
  const mp_mosaic_kernel_t *kernel = grid->kernel;
  int64_t index[MP_MOSAIC_MAX_RANK];
  for (uint32_t w = 0; w < kernel->num_windows; ++w) {
    const mp_mosaic_window_t *window = &kernel->windows[w];
    if (window->is_whole) continue;
    MP_RETURN_IF_ERROR(mp_mosaic_window_index(kernel, window, grid->step, &grid->state, index));
    const bool is_seen =
        grid->check != NULL && mp_mosaic_window_moves(window, index, &grid->windows[w]);
    MP_RETURN_IF_ERROR(
        mp_mosaic_window_move(window, index, &grid->windows[w], &grid->state.views[window->view]));
    if (is_seen) MP_RETURN_IF_ERROR(mp_mosaic_grid_watch_move(window, &grid->state, grid->check));
  }
  return NULL;
}

static mp_status_t mosaic_grid_blocked(const mp_mosaic_grid_t *grid) {
  const char *where = grid->kernel->program.instructions[grid->state.pc].where;
  if (grid->state.semaphore == NULL) {
    return mp_status_make(MP_FAILED_PRECONDITION,
                          "%s: a loop reads again and again what nothing changes",
                          where == NULL ? "" : where);
  }
  return mp_status_make(MP_FAILED_PRECONDITION,
                        "%s: it waits for a semaphore that nothing signals: it is %lld, and the "
                        "wait is for %lld",
                        where == NULL ? "" : where, (long long)*grid->state.semaphore,
                        (long long)grid->state.wanted);
}

mp_status_t mp_mosaic_grid_enter_step(mp_mosaic_grid_t *grid) {
  const mp_mosaic_kernel_t *kernel = grid->kernel;
  if (grid->num_left == 0 || grid->is_inside) return NULL;
  if (grid->check != NULL) {
    MP_RETURN_IF_ERROR(
        mp_mosaic_grid_watch_step(kernel, grid->step, grid->bounds, &grid->state, grid->check));
  }
  MP_RETURN_IF_ERROR(mosaic_grid_move_windows(grid));
  for (uint32_t d = 0; d < kernel->rank; ++d) {
    grid->state.registers[kernel->main.args[d]] = grid->step[d];
  }
  grid->state.pc = kernel->main.begin;
  grid->is_inside = true;
  if (grid->has_moved != NULL) grid->has_moved(grid);
  return NULL;
}

static mp_status_t mosaic_grid_step(mp_mosaic_grid_t *grid, mp_mosaic_outcome_t *out_outcome) {
  MP_RETURN_IF_ERROR(mp_mosaic_grid_enter_step(grid));
  MP_RETURN_IF_ERROR(mp_mosaic_run(&grid->kernel->program, &grid->state, out_outcome));
  if (*out_outcome == MP_MOSAIC_DONE) grid->is_inside = false;
  if (*out_outcome != MP_MOSAIC_BLOCKED || grid->kernel->program.communicates) return NULL;
  return mosaic_grid_blocked(grid);
}

void mp_mosaic_grid_print(const mp_mosaic_grid_t *grid, mp_strbuf_t *out) {
  mp_strbuf_printf(out, "kernel '%s', grid step (", grid->kernel->name);
  for (uint32_t d = 0; d < grid->kernel->rank; ++d) {
    mp_strbuf_printf(out, d == 0 ? "%lld" : ", %lld", (long long)grid->step[d]);
  }
  mp_strbuf_puts(out, ")");
}

// "kernel 'flash', grid step (0, 1, 2): ...".
static mp_status_t mosaic_grid_annotate(const mp_mosaic_grid_t *grid, mp_status_t status) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_mosaic_grid_print(grid, &text);
  status = mp_status_annotate(status, "%s", mp_strbuf_text(&text));
  mp_strbuf_deinit(&text);
  return status;
}

static bool mosaic_grid_next(mp_mosaic_grid_t *grid) {
  for (uint32_t d = grid->kernel->rank; d-- > 0;) {
    if (++grid->step[d] < grid->bounds[d]) return true;
    grid->step[d] = 0;
  }
  return false;
}

// The steps [begin, end) of the outer, parallel dimensions.
static void mosaic_grid_set_steps(mp_mosaic_grid_t *grid, int64_t begin, int64_t end) {
  const mp_mosaic_kernel_t *kernel = grid->kernel;
  int64_t rest = begin;
  grid->num_left = end - begin;
  for (uint32_t d = kernel->num_parallel; d < kernel->rank; ++d) grid->num_left *= grid->bounds[d];
  memset(grid->step, 0, sizeof(grid->step));
  for (uint32_t d = kernel->num_parallel; d-- > 0;) {
    grid->step[d] = rest % grid->bounds[d];
    rest /= grid->bounds[d];
  }
}

static void mosaic_grid_flush(const mp_mosaic_grid_t *grid) {
  const mp_mosaic_kernel_t *kernel = grid->kernel;
  for (uint32_t w = 0; w < kernel->num_windows; ++w) {
    const mp_mosaic_window_t *window = &kernel->windows[w];
    if (window->is_constant && !grid->is_last) continue;
    mp_mosaic_window_flush(window, &grid->windows[w]);
  }
}

mp_status_t mp_mosaic_grid_go_on(mp_mosaic_grid_t *grid, mp_mosaic_outcome_t *out_outcome) {
  *out_outcome = MP_MOSAIC_DONE;
  for (; grid->num_left > 0; --grid->num_left) {
    mp_status_t status = mosaic_grid_step(grid, out_outcome);
    if (status != NULL) return mosaic_grid_annotate(grid, status);
    if (*out_outcome != MP_MOSAIC_DONE) return NULL;
    mosaic_grid_next(grid);
  }
  mosaic_grid_flush(grid);
  return NULL;
}

// ---- parts ----

// A part other than the first has no memory of the steps before it.
static void mosaic_grid_unset(mp_mosaic_grid_t *grid) {
  const mp_mosaic_kernel_t *kernel = grid->kernel;
  grid->state.kernel_args = kernel->main.args;
  for (uint32_t i = 0; i < kernel->num_locals; ++i) {
    const mp_mosaic_local_t *local = &kernel->locals[i];
    if (local->operand == MP_MOSAIC_NONE) grid->state.unset |= UINT64_C(1) << local->arg;
  }
  for (uint32_t w = 0; w < kernel->num_windows; ++w) {
    const mp_mosaic_window_t *window = &kernel->windows[w];
    if (window->is_constant) grid->state.unset |= UINT64_C(1) << window->arg;
  }
}

static void mosaic_grid_copy_aliases(const mp_mosaic_grid_t *grid) {
  const mp_mosaic_kernel_t *kernel = grid->kernel;
  for (uint32_t w = 0; w < kernel->num_windows; ++w) {
    const mp_mosaic_window_t *window = &kernel->windows[w];
    if (!window->is_result || window->alias < 0) continue;
    const void *from = grid->call.operands[window->alias];
    void *to = grid->call.results[window->array];
    if (from != to) memcpy(to, from, mp_mosaic_window_array_bytes(window));
  }
}

static void mosaic_grid_fill_results(const mp_mosaic_grid_t *grid) {
  const mp_mosaic_kernel_t *kernel = grid->kernel;
  for (uint32_t w = 0; w < kernel->num_windows; ++w) {
    const mp_mosaic_window_t *window = &kernel->windows[w];
    if (!window->fills) continue;
    mp_mosaic_unset(window->type, grid->call.results[window->array],
                    mp_mosaic_window_array_bytes(window));
  }
}

mp_status_t mp_mosaic_grid_begin(const mp_mosaic_kernel_t *kernel, const mp_kernel_call_t *call,
                                 mp_mosaic_check_t *check, mp_mosaic_grid_t *out_grid) {
  mp_mosaic_grid_t *grid = out_grid;
  *grid = (mp_mosaic_grid_t){.kernel = kernel, .call = *call, .is_last = true, .check = check};
  MP_RETURN_IF_ERROR(mosaic_grid_read_bounds(grid));
  mosaic_grid_copy_aliases(grid);
  mosaic_grid_fill_results(grid);
  MP_RETURN_IF_ERROR(mosaic_grid_set_memory(grid));
  mosaic_grid_set_steps(grid, 0, kernel->parallel_steps);
  return NULL;
}

static mp_status_t mosaic_grid_begin_part(const mp_mosaic_kernel_t *kernel,
                                          const mp_kernel_call_t *call, mp_mosaic_check_t *check,
                                          mp_mosaic_grid_t *grid) {
  const uint32_t num_parts = kernel->kernel.num_parts;
  int64_t begin = 0, end = 0;
  *grid = (mp_mosaic_grid_t){
      .kernel = kernel, .call = *call, .is_last = call->part + 1 == num_parts, .check = check};
  MP_RETURN_IF_ERROR(mosaic_grid_read_bounds(grid));
  mp_part_range(kernel->parallel_steps, num_parts, call->part, &begin, &end);
  MP_RETURN_IF_ERROR(mosaic_grid_set_memory(grid));
  mosaic_grid_set_steps(grid, begin, end);
  if (call->part != 0) mosaic_grid_unset(grid);
  return NULL;
}

static mp_status_t mosaic_grid_store_semaphores(const mp_mosaic_grid_t *grid) {
  const mp_mosaic_kernel_t *kernel = grid->kernel;
  for (uint32_t w = 0; w < kernel->num_windows && kernel->has_semaphores; ++w) {
    const mp_mosaic_window_t *window = &kernel->windows[w];
    // An operand that is a result, too, is stored as the result.
    if (!window->is_semaphores || (!window->is_result && window->alias >= 0)) continue;
    mp_status_t status = mp_mosaic_window_store_semaphores(window, &grid->windows[w]);
    if (status != NULL) return mp_status_annotate(status, "kernel '%s'", kernel->name);
  }
  return NULL;
}

mp_status_t mp_mosaic_grid_end(const mp_mosaic_grid_t *grid) {
  MP_RETURN_IF_ERROR(mosaic_grid_store_semaphores(grid));
  if (grid->check == NULL) return NULL;
  mp_status_t status = mp_mosaic_check_end(grid->check);
  return status == NULL ? NULL : mp_status_annotate(status, "kernel '%s'", grid->kernel->name);
}

mp_status_t mp_mosaic_grid_run_with(const mp_mosaic_kernel_t *kernel, const mp_kernel_call_t *call,
                                    mp_mosaic_check_t *check) {
  const bool has_parts = kernel->kernel.num_parts > 1;
  mp_mosaic_outcome_t outcome = MP_MOSAIC_DONE;
  mp_mosaic_grid_t grid;
  MP_RETURN_IF_ERROR(has_parts ? mosaic_grid_begin_part(kernel, call, check, &grid)
                               : mp_mosaic_grid_begin(kernel, call, check, &grid));
  mp_status_t status = mp_mosaic_grid_go_on(&grid, &outcome);
  if (has_parts) ((uint8_t *)call->shared)[call->part] = outcome == MP_MOSAIC_CARRIES;
  return status == NULL ? mp_mosaic_grid_end(&grid) : status;
}

mp_status_t mp_mosaic_grid_run(const mp_kernel_t *base, const mp_kernel_call_t *call) {
  return mp_mosaic_grid_run_with((const mp_mosaic_kernel_t *)base, call, NULL);
}

mp_status_t mp_mosaic_grid_finish(const mp_kernel_t *base, const mp_kernel_call_t *call) {
  const mp_mosaic_kernel_t *kernel = (const mp_mosaic_kernel_t *)base;
  mp_mosaic_outcome_t outcome = MP_MOSAIC_DONE;
  const uint8_t *parts = call->shared;
  bool carries = false;
  for (uint32_t i = 0; i < base->num_parts; ++i) carries |= parts[i] != 0;
  if (!carries) return NULL;
  mp_mosaic_grid_t grid = {.kernel = kernel, .call = *call, .is_last = true};
  MP_RETURN_IF_ERROR(mosaic_grid_read_bounds(&grid));
  MP_RETURN_IF_ERROR(mosaic_grid_set_memory(&grid));
  mosaic_grid_set_steps(&grid, 0, kernel->parallel_steps);
  return mp_mosaic_grid_go_on(&grid, &outcome);
}
