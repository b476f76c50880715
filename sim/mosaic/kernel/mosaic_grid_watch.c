// What a run of a kernel tells its check.
#include "sim/mosaic/kernel/mosaic_grid.h"

// Results that begin as nothing. The array of a result that is seen block by block gets other
// values in a second run, since blocks that the grid does not come to stay as they are.
static mp_status_t mosaic_grid_watch_result(const mp_mosaic_window_t *window, char *array,
                                            mp_mosaic_check_t *check) {
  const size_t bytes = mp_mosaic_window_array_bytes(window);
  if (!window->is_result || window->alias >= 0 || !window->fills) return NULL;
  if (window->is_semaphores) return NULL;  // the next kernel waits for them
  if (window->is_whole || mp_mosaic_check_spoils(check, window->arg)) {
    return mp_mosaic_check_unset(check, window->type, array, bytes, window->arg);
  }
  return NULL;
}

static mp_status_t mosaic_grid_watch_scratch(const mp_mosaic_kernel_t *kernel,
                                             const mp_mosaic_state_t *state,
                                             mp_mosaic_check_t *check) {
  for (uint32_t i = 0; i < kernel->num_locals; ++i) {
    const mp_mosaic_local_t *local = &kernel->locals[i];
    if (local->operand != MP_MOSAIC_NONE) continue;
    MP_RETURN_IF_ERROR(mp_mosaic_check_unset(check, local->type, state->views[local->view].base,
                                             local->bytes, local->arg));
  }
  return NULL;
}

mp_status_t mp_mosaic_grid_watch_begin(const mp_mosaic_kernel_t *kernel,
                                       const mp_mosaic_state_t *state, mp_mosaic_check_t *check) {
  MP_RETURN_IF_ERROR(mosaic_grid_watch_scratch(kernel, state, check));
  for (uint32_t w = 0; w < kernel->num_windows; ++w) {
    const mp_mosaic_window_t *window = &kernel->windows[w];
    MP_RETURN_IF_ERROR(mosaic_grid_watch_result(window, state->views[window->view].base, check));
  }
  return NULL;
}

// Steps of the second half of the dimension are the second core's.
mp_status_t mp_mosaic_grid_watch_step(const mp_mosaic_kernel_t *kernel, const int64_t *step,
                                      const int64_t *bounds, const mp_mosaic_state_t *state,
                                      mp_mosaic_check_t *check) {
  const uint32_t d = kernel->divided;
  if (d == MP_MOSAIC_NONE || step[d] != (bounds[d] + 1) / 2) return NULL;
  for (uint32_t other = 0; other < kernel->rank; ++other) {
    if (other != d && step[other] != 0) return NULL;
  }
  mp_mosaic_check_divide(check);
  return mosaic_grid_watch_scratch(kernel, state, check);
}

mp_status_t mp_mosaic_grid_watch_move(const mp_mosaic_window_t *window,
                                      const mp_mosaic_state_t *state, mp_mosaic_check_t *check) {
  char *block = state->views[window->view].base;
  MP_RETURN_IF_ERROR(mp_mosaic_check_move(check, block, window->bytes));
  if (!window->is_result || window->is_kept) return NULL;
  return mp_mosaic_check_unset(check, window->type, block, window->bytes, window->arg);
}
