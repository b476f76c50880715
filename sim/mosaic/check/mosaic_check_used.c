// Memory that a device may still use when another one writes it.
//
// A device that starts a DMA to another one's memory must know that the other one does not use it
// any more: a signal or DMA must have told it, directly or through other devices. Vector clocks say
// what a device knows.
#include "sim/base/alloc.h"
#include "sim/base/str.h"
#include "sim/mosaic/check/mosaic_check_impl.h"
#include "sim/mosaic/run/mosaic_peers.h"
#include "sim/mosaic/run/mosaic_view.h"

typedef struct {
  mp_mosaic_region_t *region;
  uint32_t clock;
  bool is_used;  // later than at `clock`
} use_t;

// The granules of a piece of memory, as far as they are in the region.
static void mosaic_check_used_granules(const mp_mosaic_region_t *region, const char *at,
                                       size_t bytes, size_t *out_begin, size_t *out_end) {
  const char *last = region->memory + region->bytes, *end = at + bytes;
  if (at < region->memory) at = region->memory;
  if (end > last) end = last;
  *out_begin = *out_end = 0;
  if (at >= end) return;
  *out_begin = (size_t)(at - region->memory) / MP_MOSAIC_CHECK_GRANULE;
  *out_end = ((size_t)(end - region->memory) - 1) / MP_MOSAIC_CHECK_GRANULE + 1;
}

static mp_status_t mosaic_check_used_mark(void *context, char *at, size_t bytes) {
  const use_t *use = context;
  size_t begin = 0, end = 0;
  mosaic_check_used_granules(use->region, at, bytes, &begin, &end);
  for (size_t i = begin; i < end; ++i) use->region->used[i] = use->clock;
  return NULL;
}

static mp_status_t mosaic_check_used_see(void *context, char *at, size_t bytes) {
  use_t *use = context;
  size_t begin = 0, end = 0;
  mosaic_check_used_granules(use->region, at, bytes, &begin, &end);
  for (size_t i = begin; i < end; ++i) use->is_used |= use->region->used[i] > use->clock;
  return NULL;
}

// Under the lock.
static mp_status_t mosaic_check_used_do(const mp_mosaic_access_t *access, use_t *use) {
  mp_mosaic_region_t *region = use->region;
  if (region->used == NULL) {
    region->used = mp_calloc(region->bytes / MP_MOSAIC_CHECK_GRANULE + 1, sizeof(*region->used));
    MP_RETURN_IF_NULL(region->used);
  }
  return mp_mosaic_view_walk(access->view, access->mask, mosaic_check_used_mark, use);
}

mp_status_t mp_mosaic_check_use(const mp_mosaic_check_t *check, const mp_mosaic_state_t *state,
                                const mp_mosaic_access_t *access, uint32_t lag) {
  if (state->peers == NULL || state->peers->clocks == NULL) return NULL;
  use_t use = {.region = mp_mosaic_check_find_region(check, access->view->base)};
  if (use.region == NULL) return NULL;
  mp_lock(check->lock);
  use.clock = mp_mosaic_clocks_known(state->peers->clocks, state->device, state->device) - lag;
  mp_status_t status = mosaic_check_used_do(access, &use);
  mp_unlock(check->lock);
  return status;
}

mp_status_t mp_mosaic_check_comes(mp_mosaic_watcher_t *watcher, const mp_mosaic_view_t *target,
                                  uint32_t known) {
  const mp_mosaic_check_t *check = (const mp_mosaic_check_t *)watcher;
  use_t use = {.region = mp_mosaic_check_find_region(check, target->base), .clock = known};
  if (use.region == NULL || use.region->used == NULL) return NULL;
  MP_RETURN_IF_ERROR(mp_mosaic_view_walk(target, NULL, mosaic_check_used_see, &use));
  if (!use.is_used) return NULL;
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_puts(&text, "race: it writes ");
  mp_mosaic_check_print_arg(check, use.region->arg, &text);
  mp_strbuf_puts(&text,
                 ", which that device may still use: no signal or DMA after its last use has "
                 "reached this device");
  return mp_mosaic_check_error(&text);
}
