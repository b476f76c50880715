// DMAs that other devices start to this one.
//
// Such a DMA is seen before the next instruction of this device counts. What this device has done
// before may have happened before the DMA as well: whether the other device knows that is not
// checked. What it does later, without a wait for the DMA, happens while the DMA may still write.
#include "sim/base/alloc.h"
#include "sim/mosaic/check/mosaic_check_impl.h"
#include "sim/mosaic/run/mosaic_peers.h"

static mp_status_t mosaic_check_incoming_take(mp_mosaic_check_t *check,
                                              const mp_mosaic_state_t *state,
                                              const mp_mosaic_incoming_t *incoming) {
  const uint32_t from = state->peers->link.names[incoming->from];
  const mp_mosaic_access_t target = {.in = incoming->in, .view = &incoming->target};
  mp_status_t status = mp_mosaic_check_races(check, &target, MP_MOSAIC_ACCESS_COMES);
  if (status != NULL) {
    return mp_status_annotate(status, "before this, a DMA that device %u has started (%s)", from,
                              incoming->in->where == NULL ? "" : incoming->in->where);
  }
  MP_RETURN_IF_ERROR(mp_mosaic_check_writes(check, &target));
  return mp_mosaic_check_start(check, incoming->in, NULL, &incoming->target, incoming->semaphore,
                               incoming->amount, from);
}

mp_status_t mp_mosaic_check_take_incoming(mp_mosaic_check_t *check,
                                          const mp_mosaic_state_t *state) {
  mp_mosaic_incomings_t all;
  mp_status_t status = NULL;
  mp_mosaic_peers_take_incoming(state->peers, state->device, &all);
  for (uint32_t i = 0; i < all.count && status == NULL; ++i) {
    status = mosaic_check_incoming_take(check, state, &all.items[i]);
  }
  MP_ARRAY_FREE(&all);
  return status;
}

void mp_mosaic_check_set_incoming(const mp_mosaic_check_t *check) {
  for (uint32_t i = 0; i < check->dmas.count; ++i) {
    const mp_mosaic_dma_t *dma = &check->dmas.items[i];
    for (uint32_t p = 0; p < dma->target.count && dma->from != MP_MOSAIC_NONE; ++p) {
      mp_mosaic_check_set(check, &dma->target.items[p]);
    }
  }
}
