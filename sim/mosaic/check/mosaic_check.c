#include "sim/mosaic/check/mosaic_check.h"

#include "sim/base/alloc.h"
#include "sim/mosaic/check/mosaic_check_impl.h"
#include "sim/mosaic/run/mosaic_step.h"
#include "sim/mosaic/run/mosaic_unset.h"
#include "sim/mosaic/run/mosaic_view.h"

// ---- instructions ----

static mp_status_t mosaic_check_access(mp_mosaic_check_t *check, const mp_mosaic_instruction_t *in,
                                       const mp_mosaic_state_t *state, bool is_write) {
  mp_mosaic_view_t view;
  mp_mosaic_access_t access = {.in = in, .view = &view};
  MP_RETURN_IF_ERROR(mp_mosaic_step_part(in->u.part, state, &state->views[in->a], &view));
  if (in->kind == MP_MOSAIC_DO_STORE && in->c != MP_MOSAIC_NONE) {
    access.mask = (const uint8_t *)state->vectors[in->c];
  }
  MP_RETURN_IF_ERROR(mp_mosaic_check_races(
      check, &access, is_write ? MP_MOSAIC_ACCESS_WRITES : MP_MOSAIC_ACCESS_READS));
  MP_RETURN_IF_ERROR(mp_mosaic_check_use(check, state, &access, 0));
  return is_write ? mp_mosaic_check_writes(check, &access) : mp_mosaic_check_reads(check, &access);
}

// A vector that was loaded from outside of its memory is like memory that nothing has written.
static bool mosaic_check_is_outside(const mp_mosaic_instruction_t *in,
                                    const mp_mosaic_state_t *state, size_t *out_bytes) {
  mp_mosaic_view_t view;
  if (in->kind != MP_MOSAIC_DO_LOAD || in->value == 0) return false;
  mp_status_t status = mp_mosaic_step_part(in->u.part, state, &state->views[in->a], &view);
  const bool is_outside = mp_status_code(status) == MP_OUT_OF_RANGE;
  mp_status_ignore(status);
  *out_bytes = mp_dtype_size((mp_dtype_t)in->dtype);
  for (uint32_t d = 0; d < in->u.part->rank; ++d) *out_bytes *= (size_t)in->u.part->sizes[d];
  return is_outside;
}

static void mosaic_check_outside(mp_mosaic_check_t *check, const mp_mosaic_instruction_t *in,
                                 const mp_mosaic_state_t *state, size_t bytes) {
  const mp_mosaic_type_t type = {.kind = MP_MOSAIC_VECTOR, .dtype = (mp_dtype_t)in->dtype};
  const uint32_t arg = state->views[in->a].root;
  if (mp_mosaic_check_spoils(check, arg))
    mp_mosaic_unset_otherwise(&type, arg, state->vectors[in->out], bytes);
  if (!check->spoils) mp_mosaic_check_suspects(check, in, arg);
}

static mp_status_t mosaic_check_dma(mp_mosaic_check_t *check, const mp_mosaic_instruction_t *in,
                                    const mp_mosaic_state_t *state) {
  const mp_mosaic_access_t source = {.in = in, .view = &state->views[in->a]};
  const mp_mosaic_access_t target = {.in = in, .view = &state->views[in->b]};
  MP_RETURN_IF_ERROR(mp_mosaic_check_races(check, &source, MP_MOSAIC_ACCESS_READS));
  MP_RETURN_IF_ERROR(mp_mosaic_check_races(check, &target, MP_MOSAIC_ACCESS_WRITES));
  MP_RETURN_IF_ERROR(mp_mosaic_check_use(check, state, &source, 0));
  MP_RETURN_IF_ERROR(mp_mosaic_check_use(check, state, &target, 0));
  MP_RETURN_IF_ERROR(mp_mosaic_check_reads(check, &source));
  MP_RETURN_IF_ERROR(mp_mosaic_check_writes(check, &target));
  return mp_mosaic_check_start(
      check, in, source.view, target.view, (const int64_t *)state->views[in->c].base,
      mp_mosaic_async_amount(in, state, MP_MOSAIC_COUNTS_TARGET), MP_MOSAIC_NONE);
}

// The target is another device's.
static mp_status_t mosaic_check_remote_dma(mp_mosaic_check_t *check,
                                           const mp_mosaic_instruction_t *in,
                                           const mp_mosaic_state_t *state) {
  const mp_mosaic_access_t source = {.in = in, .view = &state->views[in->a]};
  MP_RETURN_IF_ERROR(mp_mosaic_check_races(check, &source, MP_MOSAIC_ACCESS_READS));
  // The device that gets the data knows that they have been read.
  MP_RETURN_IF_ERROR(mp_mosaic_check_use(check, state, &source, 1));
  if (in->out == MP_MOSAIC_NONE) return NULL;
  return mp_mosaic_check_start(
      check, in, source.view, NULL, (const int64_t *)state->views[in->out].base,
      mp_mosaic_async_amount(in, state, MP_MOSAIC_COUNTS_SOURCE), MP_MOSAIC_NONE);
}

static mp_status_t mosaic_check_allocate(mp_mosaic_check_t *check,
                                         const mp_mosaic_instruction_t *in,
                                         const mp_mosaic_state_t *state) {
  const mp_mosaic_view_t *view = &state->views[in->out];
  const size_t bytes = (size_t)mp_mosaic_view_count(view) * view->element;
  const mp_mosaic_access_t access = {.in = in, .view = view};
  if (!check->spoils)
    MP_RETURN_IF_ERROR(mp_mosaic_check_races(check, &access, MP_MOSAIC_ACCESS_ALLOCATES));
  MP_RETURN_IF_ERROR(mp_mosaic_check_unset(check, in->u.type, view->base, bytes, MP_MOSAIC_NONE));
  mp_mosaic_check_set_incoming(check);
  return NULL;
}

static mp_status_t mosaic_check_saw(mp_mosaic_watcher_t *watcher, const mp_mosaic_instruction_t *in,
                                    const mp_mosaic_state_t *state) {
  mp_mosaic_check_t *check = (mp_mosaic_check_t *)watcher;
  if (state->peers != NULL) MP_RETURN_IF_ERROR(mp_mosaic_check_take_incoming(check, state));
  if (in->kind == MP_MOSAIC_DO_ALLOCATE) return mosaic_check_allocate(check, in, state);
  size_t bytes = 0;
  if (mosaic_check_is_outside(in, state, &bytes)) {
    mosaic_check_outside(check, in, state, bytes);
    return NULL;
  }
  if (check->spoils) return NULL;
  switch (in->kind) {
    case MP_MOSAIC_DO_LOAD_SCALAR:
      if (in->flag && state->registers[in->out] == MP_MOSAIC_OUTSIDE) return NULL;
      return mosaic_check_access(check, in, state, false);
    case MP_MOSAIC_DO_LOAD:
      return mosaic_check_access(check, in, state, false);
    case MP_MOSAIC_DO_STORE:
    case MP_MOSAIC_DO_STORE_SCALAR:
      return mosaic_check_access(check, in, state, true);
    case MP_MOSAIC_DO_DMA:
      return mosaic_check_dma(check, in, state);
    case MP_MOSAIC_DO_WAIT_DMA:
    case MP_MOSAIC_DO_SEM_WAIT:
      mp_mosaic_check_waited(check, (const int64_t *)state->views[in->c].base, state->left);
      return NULL;
    case MP_MOSAIC_DO_SEM_READ:  // the kernel sees that the DMAs are complete
      mp_mosaic_check_waited(check, (const int64_t *)state->views[in->c].base, 0);
      return NULL;
    case MP_MOSAIC_DO_REMOTE_DMA:
      return mosaic_check_remote_dma(check, in, state);
    case MP_MOSAIC_DO_BARRIER:
      return mp_mosaic_check_add_semaphores(check, (const int64_t *)state->views[in->out].base, 1,
                                            MP_MOSAIC_BARRIER);
    default:
      return NULL;
  }
}

// ---- ----

mp_status_t mp_mosaic_check_create(const mp_mosaic_check_name_t *names, uint32_t num_names,
                                   mp_mosaic_check_t **out_check) {
  mp_mosaic_check_t *check = mp_calloc(1, sizeof(*check));
  MP_RETURN_IF_NULL(check);
  check->watcher.saw = mosaic_check_saw;
  check->watcher.comes = mp_mosaic_check_comes;
  check->names = names;
  check->num_names = num_names;
  *out_check = check;
  return NULL;
}

void mp_mosaic_check_destroy(mp_mosaic_check_t *check) {
  if (check == NULL) return;
  mp_mosaic_check_free_dmas(check);
  mp_mosaic_check_free_regions(check);
  MP_ARRAY_FREE(&check->semaphores);
  mp_free(check);
}

void mp_mosaic_check_follow(mp_mosaic_check_t *check, mp_mosaic_state_t *state, const int64_t *step,
                            uint32_t rank) {
  state->watcher = &check->watcher;
  check->step = step;
  check->rank = rank < MP_MOSAIC_CHECK_MAX_GRID ? rank : MP_MOSAIC_CHECK_MAX_GRID;
}

mp_status_t mp_mosaic_check_unset(mp_mosaic_check_t *check, const mp_mosaic_type_t *type,
                                  char *memory, size_t bytes, uint32_t arg) {
  if (type->element != MP_MOSAIC_NUMBER) {
    if (check->spoils) return NULL;
    return mp_mosaic_check_add_semaphores(check, (const int64_t *)memory, (int64_t)bytes / 8, arg);
  }
  if (mp_mosaic_check_spoils(check, arg)) mp_mosaic_unset_otherwise(type, arg, memory, bytes);
  return check->spoils ? NULL : mp_mosaic_check_add_region(check, memory, bytes, arg);
}

void mp_mosaic_check_share(mp_mosaic_check_t *check, mp_lock_t *lock) {
  check->lock = lock;
}

void mp_mosaic_check_divide(mp_mosaic_check_t *check) {
  check->is_divided = true;
}

void mp_mosaic_check_spoil(mp_mosaic_check_t *check, uint32_t arg) {
  check->spoils = true;
  check->spoiled = arg;
}

bool mp_mosaic_check_spoils(const mp_mosaic_check_t *check, uint32_t arg) {
  return check->spoils && (check->spoiled == arg || check->spoiled == MP_MOSAIC_CHECK_ALL);
}
