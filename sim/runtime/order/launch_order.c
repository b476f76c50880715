#include "sim/runtime/order/launch_order.h"

#include "sim/base/alloc.h"
#include "sim/runtime/order/device_set.h"
#include "sim/runtime/order/side_stream.h"

mp_status_t mp_launches_create(mp_launches_t **out_launches) {
  mp_launches_t *launches = mp_calloc(1, sizeof(*launches));
  MP_RETURN_IF_NULL(launches);
  mp_lock_init(&launches->lock, MP_LOCK_LAUNCH);
  *out_launches = launches;
  return NULL;
}

void mp_launches_destroy(mp_launches_t *launches) {
  if (launches == NULL) return;
  while (launches->sets != NULL) {
    mp_device_set_t *next = launches->sets->next;
    mp_device_set_release(launches->sets);
    launches->sets = next;
  }
  mp_side_streams_free(launches);
  mp_lock_deinit(&launches->lock);
  mp_free(launches);
}
