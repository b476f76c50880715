// DMAs and semaphores.
//
// A semaphore is a number. A DMA is done when it is enqueued; it adds its bytes to its semaphore,
// and a wait for it takes them away again, as on a TPU. A run that waits for more than there is
// blocks; its caller decides whether that can end.
#include "sim/mosaic/run/mosaic_step.h"
#include "sim/mosaic/run/mosaic_view.h"

mp_status_t mp_mosaic_async_semaphore(const mp_mosaic_view_t *view, int64_t **out_semaphore) {
  if (mp_mosaic_view_count(view) != 1) {
    return mp_status_make(MP_INVALID_ARGUMENT, "the memref has more than one semaphore");
  }
  *out_semaphore = (int64_t *)view->base;
  return NULL;
}

int64_t mp_mosaic_async_bytes(const mp_mosaic_instruction_t *in, const mp_mosaic_view_t *view) {
  const int64_t count = mp_mosaic_view_count(view);
  const int bits = mp_dtype_bits((mp_dtype_t)in->dtype);
  // Elements of 4 bits, each of which has a byte here.
  const bool is_packed = bits > 1 && bits < 8 && view->element == 1;
  return is_packed ? (count * bits + 7) / 8 : count * view->element;
}

int64_t mp_mosaic_async_amount(const mp_mosaic_instruction_t *in, const mp_mosaic_state_t *state,
                               mp_mosaic_counts_t semaphore) {
  return (in->bits & semaphore) != 0 ? 1 : mp_mosaic_async_bytes(in, &state->views[in->b]);
}

static void mosaic_async_take(mp_mosaic_state_t *state, int64_t *semaphore, int64_t count,
                              bool *out_blocks) {
  *out_blocks = *semaphore < count;
  if (*out_blocks) {
    state->semaphore = semaphore;
    state->wanted = count;
  } else {
    *semaphore -= count;
    state->left = *semaphore;
  }
}

mp_status_t mp_mosaic_step_async(const mp_mosaic_instruction_t *in, mp_mosaic_state_t *state,
                                 bool *out_blocks) {
  int64_t *semaphore = NULL;
  const mp_mosaic_view_t *views = state->views;
  MP_RETURN_IF_ERROR(mp_mosaic_async_semaphore(&views[in->c], &semaphore));
  switch (in->kind) {
    case MP_MOSAIC_DO_DMA:
      MP_RETURN_IF_ERROR(mp_mosaic_view_dma(&views[in->b], &views[in->a], (mp_dtype_t)in->dtype));
      *semaphore += mp_mosaic_async_amount(in, state, MP_MOSAIC_COUNTS_TARGET);
      return NULL;
    case MP_MOSAIC_DO_WAIT_DMA:
      mosaic_async_take(state, semaphore, mp_mosaic_async_bytes(in, &views[in->a]), out_blocks);
      return NULL;
    case MP_MOSAIC_DO_SEM_READ:
      state->registers[in->out] = *semaphore;
      return NULL;
    case MP_MOSAIC_DO_SEM_SIGNAL:
      *semaphore += state->registers[in->a];
      return NULL;
    default:
      mosaic_async_take(state, semaphore, state->registers[in->a], out_blocks);
      return NULL;
  }
}
