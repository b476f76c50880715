#include "sim/runtime/order/side_stream.h"

#include "sim/base/alloc.h"
#include "sim/runtime/devices/device_impl.h"
#include "sim/runtime/devices/launching.h"
#include "sim/runtime/order/launch_order.h"

// The side stream of the device with unfinished calls that this thread has launched; NULL: there is
// none.
static mp_device_t *side_stream_of_thread(const mp_device_t *device) {
  mp_lock_assert_held(&device->client->launches->lock);
  const uint64_t thread = mp_launching_thread();
  mp_device_t *side = device->client->launches->sides;
  for (; side != NULL; side = side->next_side) {
    if (!side->is_calling || side->id != device->id || side->behind_call_of != thread) continue;
    if (mp_device_completed(side) != side->enqueued) break;
  }
  return side;
}

bool mp_side_stream_is_calling(const mp_device_t *device) {
  return side_stream_of_thread(device) != NULL;
}

mp_status_t mp_side_stream_get(mp_device_t *device, bool is_calling, mp_device_t **out_side) {
  mp_client_t *client = device->client;
  mp_device_t *side = is_calling ? side_stream_of_thread(device) : NULL;
  if (side != NULL) {
    side->enqueued += 1;
    *out_side = side;
    return NULL;
  }
  side = client->launches->sides;
  // A side stream is free if all its runs are over. Acquire: the thread that ended the last one no
  // longer uses what is written below; it may still use the stream's lock and futex word.
  while (side != NULL && mp_device_completed(side) != side->enqueued) side = side->next_side;
  if (side == NULL) {
    side = mp_calloc(1, sizeof(*side));
    MP_RETURN_IF_NULL(side);
    mp_lock_init(&side->lock, MP_LOCK_DEVICE);
    side->client = client;
    side->is_local = true;
    side->next_side = client->launches->sides;
    client->launches->sides = side;
  }
  side->id = device->id;
  side->info = device->info;
  side->queue = device->queue;
  side->memories = device->memories;
  side->is_calling = is_calling;
  side->behind_call_of = mp_launching_thread();
  side->enqueued += 1;
  *out_side = side;
  return NULL;
}

mp_device_t *mp_side_stream_next(const mp_client_t *client, mp_device_t *device) {
  mp_lock_assert_held(&client->launches->lock);
  mp_device_t *first = &client->devices[client->first_local];
  if (device == NULL) return first;
  const bool is_own = device >= first && device < first + client->num_local;
  if (!is_own) return device->next_side;
  return device + 1 < first + client->num_local ? device + 1 : client->launches->sides;
}

void mp_side_streams_free(mp_launches_t *launches) {
  while (launches->sides != NULL) {
    mp_device_t *side = launches->sides;
    launches->sides = side->next_side;
    mp_lock_deinit(&side->lock);
    mp_free(side);
  }
}
