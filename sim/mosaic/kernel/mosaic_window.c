// Blocks of arrays.
#include <string.h>

#include "sim/kernels/strided.h"
#include "sim/mosaic/kernel/mosaic_grid.h"
#include "sim/mosaic/run/mosaic_unset.h"

size_t mp_mosaic_window_element_bytes(const mp_mosaic_window_t *window) {
  return window->is_semaphores ? sizeof(uint32_t) : mp_mosaic_element_bytes(window->type);
}

size_t mp_mosaic_window_array_bytes(const mp_mosaic_window_t *window) {
  size_t bytes = mp_mosaic_window_element_bytes(window);
  for (uint32_t d = 0; d < window->type->rank; ++d) bytes *= (size_t)window->dims[d];
  return bytes;
}

// The first element of the block in the array, which may be before it or near its end.
static void mosaic_window_starts(const mp_mosaic_window_t *window, const int64_t *index,
                                 int64_t *out_starts) {
  for (uint32_t d = 0; d < window->type->rank; ++d) {
    out_starts[d] =
        window->is_element ? index[d] - window->pad[d] : index[d] * window->type->dims[d];
  }
}

static mp_status_t mosaic_window_check(const mp_mosaic_window_t *window, const int64_t *index,
                                       const int64_t *starts) {
  for (uint32_t d = 0; d < window->type->rank; ++d) {
    const int64_t size = window->type->dims[d], most = window->dims[d];
    const bool is_near = index[d] > -(INT64_C(1) << 40) && index[d] < (INT64_C(1) << 40);
    if (is_near && starts[d] < (most == 0 ? 1 : most) && starts[d] + size > 0) continue;
    return mp_status_make(MP_OUT_OF_RANGE,
                          "%s %u (argument %u of the kernel): the block with index %lld of "
                          "dimension %u is outside of its %lld elements",
                          window->is_result ? "result" : "operand", window->array, window->arg,
                          (long long)index[d], d, (long long)most);
  }
  return NULL;
}

static bool mosaic_window_is_inside(const mp_mosaic_window_t *window, const int64_t *starts) {
  for (uint32_t d = 0; d < window->type->rank; ++d) {
    if (starts[d] < 0 || starts[d] + window->type->dims[d] > window->dims[d]) return false;
  }
  return true;
}

// Whether blocks lie in one piece: all dimensions after the first one that is longer than 1 are
// whole.
static bool mosaic_window_is_one_piece(const mp_mosaic_window_t *window) {
  uint32_t d = 0;
  while (d < window->type->rank && window->type->dims[d] == 1) ++d;
  for (++d; d < window->type->rank; ++d) {
    if (window->type->dims[d] != window->dims[d]) return false;
  }
  return true;
}

static int64_t mosaic_window_strides(const mp_mosaic_window_t *window, const int64_t *starts,
                                     int64_t *out_strides) {
  int64_t stride = mp_mosaic_element_bytes(window->type), offset = 0;
  for (uint32_t d = window->type->rank; d-- > 0;) {
    out_strides[d] = stride;
    offset += starts[d] * stride;
    stride *= window->dims[d];
  }
  return offset;
}

// Copies the part of a block that is in the array, to or from the copy.
static void mosaic_window_copy(const mp_mosaic_window_t *window, const int64_t *starts,
                               const mp_mosaic_window_state_t *state, bool is_back) {
  int64_t array_strides[MP_MOSAIC_MAX_RANK], first[MP_MOSAIC_MAX_RANK];
  const int64_t element = mp_mosaic_element_bytes(window->type);
  int64_t stride = element, at = 0;
  mp_strided_t copy;
  int64_t extents[MP_MOSAIC_MAX_RANK], strides[MP_MOSAIC_MAX_RANK];
  for (uint32_t d = window->type->rank; d-- > 0;) {
    const int64_t begin = starts[d] < 0 ? -starts[d] : 0;
    int64_t end = window->dims[d] - starts[d];
    if (end > window->type->dims[d]) end = window->type->dims[d];
    first[d] = starts[d] + begin;
    extents[d] = end - begin;
    strides[d] = stride;
    at += begin * stride;
    stride *= window->type->dims[d];
  }
  const int64_t offset = mosaic_window_strides(window, first, array_strides);
  mp_strided_init(&copy, (size_t)element);
  for (uint32_t d = 0; d < window->type->rank; ++d) {
    mp_strided_add_dim(&copy, extents[d], is_back ? array_strides[d] : strides[d],
                       is_back ? strides[d] : array_strides[d]);
  }
  mp_strided_finish(&copy);
  char *in_array = state->array + offset, *in_copy = state->copy + at;
  mp_strided_run(&copy, is_back ? in_array : in_copy, is_back ? in_copy : in_array);
}

void mp_mosaic_window_flush(const mp_mosaic_window_t *window, mp_mosaic_window_state_t *state) {
  int64_t starts[MP_MOSAIC_MAX_RANK];
  if (!window->is_result || !state->block.has_block || !state->block.is_copy) return;
  mosaic_window_starts(window, state->block.index, starts);
  mosaic_window_copy(window, starts, state, true);
}

bool mp_mosaic_window_moves(const mp_mosaic_window_t *window, const int64_t *index,
                            const mp_mosaic_window_state_t *state) {
  const size_t size = window->type->rank * sizeof(*index);
  return !state->block.has_block || memcmp(state->block.index, index, size) != 0;
}

mp_status_t mp_mosaic_window_move(const mp_mosaic_window_t *window, const int64_t *index,
                                  mp_mosaic_window_state_t *state, mp_mosaic_view_t *view) {
  int64_t starts[MP_MOSAIC_MAX_RANK], strides[MP_MOSAIC_MAX_RANK];
  if (!mp_mosaic_window_moves(window, index, state)) return NULL;
  mp_mosaic_window_flush(window, state);
  mosaic_window_starts(window, index, starts);
  MP_RETURN_IF_ERROR(mosaic_window_check(window, index, starts));
  memcpy(state->block.index, index, window->type->rank * sizeof(*index));
  state->block.has_block = true;
  const bool is_inside = mosaic_window_is_inside(window, starts);
  state->block.is_copy = window->is_copied || !is_inside || !mosaic_window_is_one_piece(window);
  if (!state->block.is_copy) {
    view->base = state->array + mosaic_window_strides(window, starts, strides);
    if (window->unsets) mp_mosaic_unset(window->type, view->base, window->bytes);
    return NULL;
  }
  view->base = state->copy;
  if (window->unsets) mp_mosaic_unset(window->type, state->copy, window->bytes);
  if (window->is_result && !window->is_kept) return NULL;
  if (!is_inside) mp_mosaic_unset(window->type, state->copy, window->bytes);
  mosaic_window_copy(window, starts, state, false);
  return NULL;
}

// ---- semaphores ----

void mp_mosaic_window_load_semaphores(const mp_mosaic_window_t *window,
                                      const mp_mosaic_window_state_t *state) {
  const int32_t *array = (const int32_t *)state->array;
  int64_t *semaphores = (int64_t *)state->copy;
  for (size_t i = 0; i < window->bytes / sizeof(*semaphores); ++i) {
    semaphores[i] = window->is_result ? 0 : array[i];
  }
}

mp_status_t mp_mosaic_window_store_semaphores(const mp_mosaic_window_t *window,
                                              const mp_mosaic_window_state_t *state) {
  int32_t *array = (int32_t *)state->array;
  const int64_t *semaphores = (const int64_t *)state->copy;
  for (size_t i = 0; i < window->bytes / sizeof(*semaphores); ++i) {
    array[i] = (int32_t)semaphores[i];
    if (array[i] == semaphores[i]) continue;
    return mp_status_make(MP_OUT_OF_RANGE,
                          "number %zu of the semaphores in %s %u is %lld when the kernel ends, "
                          "which is more than 32 bits",
                          i, window->is_result ? "result" : "operand", window->array,
                          (long long)semaphores[i]);
  }
  return NULL;
}
