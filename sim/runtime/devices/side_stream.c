#include "sim/runtime/devices/side_stream.h"

#include "sim/base/alloc.h"
#include "sim/runtime/devices/client_impl.h"

mp_status_t mp_side_stream_get(mp_device_t *device, mp_device_t **out_side) {
  mp_client_t *client = device->client;
  mp_lock_assert_held(&client->launch_lock);
  mp_device_t *side = client->sides;
  while (side != NULL && mp_device_completed(side) != side->enqueued) side = side->next_side;
  if (side == NULL) {
    side = mp_calloc(1, sizeof(*side));
    MP_RETURN_IF_NULL(side);
    mp_lock_init(&side->lock, MP_LOCK_DEVICE);
    side->client = client;
    side->is_local = true;
    side->next_side = client->sides;
    client->sides = side;
  }
  side->id = device->id;
  side->info = device->info;
  side->queue = device->queue;
  side->memories = device->memories;
  side->enqueued += 1;
  *out_side = side;
  return NULL;
}

void mp_side_streams_free(mp_client_t *client) {
  while (client->sides != NULL) {
    mp_device_t *side = client->sides;
    client->sides = side->next_side;
    mp_lock_deinit(&side->lock);
    mp_free(side);
  }
}
