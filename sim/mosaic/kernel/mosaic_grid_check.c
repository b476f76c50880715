// Runs of a kernel with MINIPOD_KERNELS=check.
//
// If the run has loaded memory that nothing has written, the kernel runs again, on copies, with
// other values in such memory: if a result is another one then, the kernel depends on it.
#include <string.h>

#include "sim/base/alloc.h"
#include "sim/kernels/shape.h"
#include "sim/mosaic/kernel/mosaic_grid.h"
#include "sim/mosaic/run/mosaic_unset.h"

// ---- the second run ----

// Operands and results of a second run. An operand that the first one overwrites is copied before.
typedef struct {
  const mp_mosaic_kernel_t *kernel;
  const mp_kernel_call_t *call;
  const void **operands;
  void **results;
  void *scratch;
} again_t;

static void mosaic_grid_check_free(again_t *again) {
  for (uint32_t w = 0; w < again->kernel->num_windows; ++w) {
    const mp_mosaic_window_t *window = &again->kernel->windows[w];
    if (window->is_result && again->results != NULL) mp_free(again->results[window->array]);
    if (window->is_result || again->operands == NULL) continue;
    const void *operand = again->operands[window->array];
    if (operand != again->call->operands[window->array]) mp_free((void *)operand);
  }
  mp_free(again->operands);
  mp_free(again->results);
  mp_free(again->scratch);
}

static mp_status_t mosaic_grid_check_keep(again_t *again) {
  const mp_mosaic_kernel_t *kernel = again->kernel;
  const uint32_t num_operands = kernel->kernel.op->num_operands;
  again->operands = mp_calloc(num_operands, sizeof(*again->operands));
  again->results = mp_calloc(kernel->kernel.op->num_results, sizeof(*again->results));
  if (again->operands == NULL || again->results == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < num_operands; ++i) again->operands[i] = again->call->operands[i];
  for (uint32_t w = 0; w < kernel->num_windows; ++w) {
    const mp_mosaic_window_t *window = &kernel->windows[w];
    if (window->is_result) continue;
    const void *operand = again->call->operands[window->array];
    const bool is_result = window->alias >= 0 && operand == again->call->results[window->alias];
    if (!is_result && !window->is_semaphores) continue;
    const size_t bytes = mp_mosaic_window_array_bytes(window);
    void *copy = mp_aligned_malloc(64, bytes);
    MP_RETURN_IF_NULL(copy);
    again->operands[window->array] = memcpy(copy, operand, bytes);
  }
  return NULL;
}

static mp_status_t mosaic_grid_check_prepare(again_t *again) {
  const mp_mosaic_kernel_t *kernel = again->kernel;
  if (again->scratch != NULL) return NULL;
  again->scratch = mp_aligned_malloc(64, kernel->kernel.scratch_bytes);
  MP_RETURN_IF_NULL(again->scratch);
  for (uint32_t w = 0; w < kernel->num_windows; ++w) {
    const mp_mosaic_window_t *window = &kernel->windows[w];
    if (!window->is_result) continue;
    void *result = mp_aligned_malloc(64, mp_mosaic_window_array_bytes(window));
    MP_RETURN_IF_NULL(result);
    again->results[window->array] = result;
  }
  return NULL;
}

// Whether an element of a result differs that is not, in both runs, what it was before.
static bool mosaic_grid_check_differs(const mp_mosaic_window_t *window, const char *first,
                                      const char *second, bool is_spoilt) {
  const size_t size = mp_mosaic_window_element_bytes(window);
  const size_t bytes = mp_mosaic_window_array_bytes(window);
  char before[8], other[8];
  mp_mosaic_unset(window->type, before, size);
  mp_mosaic_unset_otherwise(window->type, window->arg, other, size);
  for (size_t at = 0; at < bytes; at += size) {
    if (memcmp(first + at, second + at, size) == 0) continue;
    const bool stays =
        is_spoilt && memcmp(first + at, before, size) == 0 && memcmp(second + at, other, size) == 0;
    if (!stays) return true;
  }
  return false;
}

// Runs again with other values in the unset memory of the argument (or of ALL).
static mp_status_t mosaic_grid_check_depends(again_t *again, uint32_t arg, bool *out_depends) {
  const mp_mosaic_kernel_t *kernel = again->kernel;
  mp_mosaic_check_t *check = NULL;
  MP_RETURN_IF_ERROR(mosaic_grid_check_prepare(again));
  MP_RETURN_IF_ERROR(mp_mosaic_check_create(kernel->names, kernel->num_args, &check));
  mp_mosaic_check_spoil(check, arg);
  const mp_kernel_call_t call = {
      .operands = again->operands, .results = again->results, .scratch = again->scratch};
  mp_status_t status = mp_mosaic_grid_run_with(kernel, &call, check);
  if (mp_status_code(status) == MP_RESOURCE_EXHAUSTED) {
    mp_mosaic_check_destroy(check);
    return status;
  }
  *out_depends = status != NULL;  // the first run has not failed
  mp_status_ignore(status);
  for (uint32_t w = 0; w < kernel->num_windows && !*out_depends; ++w) {
    const mp_mosaic_window_t *window = &kernel->windows[w];
    if (!window->is_result) continue;
    *out_depends = mosaic_grid_check_differs(window, again->call->results[window->array],
                                             again->results[window->array],
                                             mp_mosaic_check_spoils(check, window->arg));
  }
  mp_mosaic_check_destroy(check);
  return NULL;
}

// The loads of the first memory on which alone the results depend are to blame.
static mp_status_t mosaic_grid_check_suspects(again_t *again, const mp_mosaic_check_t *check) {
  bool depends = false;
  uint32_t arg = 0;
  MP_RETURN_IF_ERROR(mosaic_grid_check_depends(again, MP_MOSAIC_CHECK_ALL, &depends));
  if (!depends) return NULL;
  for (uint32_t i = 0; mp_mosaic_check_suspect(check, i, &arg); ++i) {
    MP_RETURN_IF_ERROR(mosaic_grid_check_depends(again, arg, &depends));
    if (depends) break;
  }
  if (!depends) (void)mp_mosaic_check_suspect(check, 0, &arg);
  mp_status_t status = mp_mosaic_check_blame(check, arg);
  return mp_status_annotate(status, "kernel '%s'", again->kernel->name);
}

static mp_status_t mosaic_grid_check_both(again_t *again, mp_mosaic_check_t *check) {
  uint32_t arg = 0;
  MP_RETURN_IF_ERROR(mosaic_grid_check_keep(again));
  MP_RETURN_IF_ERROR(mp_mosaic_grid_run_with(again->kernel, again->call, check));
  return mp_mosaic_check_suspect(check, 0, &arg) ? mosaic_grid_check_suspects(again, check) : NULL;
}

mp_status_t mp_mosaic_grid_check(const mp_kernel_t *base, const mp_kernel_call_t *call) {
  again_t again = {.kernel = (const mp_mosaic_kernel_t *)base, .call = call};
  mp_mosaic_check_t *check = NULL;
  MP_RETURN_IF_ERROR(mp_mosaic_check_create(again.kernel->names, again.kernel->num_args, &check));
  mp_status_t status = mosaic_grid_check_both(&again, check);
  mosaic_grid_check_free(&again);
  mp_mosaic_check_destroy(check);
  return status;
}
