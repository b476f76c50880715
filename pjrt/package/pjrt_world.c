#include "pjrt/package/pjrt_world.h"

#include <string.h>

#include "collectives/transport/bootstrap/bootstrap.h"
#include "collectives/transport/bootstrap/leave.h"
#include "pjrt/package/pjrt_clients.h"
#include "sim/base/alloc.h"
#include "sim/runtime/parcels/parcel.h"
#include "sim/runtime/remote/router.h"

// More time than processes need that have just made a pod together; a process that has ended is
// noticed earlier.
static const double k_seconds = 300;

static mp_status_t pjrt_world_tell(const char *text, char *out_text, size_t capacity) {
  mp_world_t *world = mp_world_joined();
  void **bytes = NULL;
  size_t *sizes = NULL;
  const void *heard = text;
  size_t size = strlen(text);
  if (world != NULL) {
    MP_RETURN_IF_ERROR(mp_world_exchange(world, text, size, k_seconds, &bytes, &sizes));
    heard = bytes[0];
    size = sizes[0];
  }
  mp_status_t status = NULL;
  if (size >= capacity) {
    status = mp_status_make(MP_INVALID_ARGUMENT,
                            "the text has %zu bytes, and there is room for %zu", size, capacity);
  } else {
    memcpy(out_text, heard, size);
    out_text[size] = '\0';
  }
  mp_free(bytes);
  return status;
}

const char *minipod_tell_world(const char *text, char *out_text, size_t capacity) {
  if (text == NULL || out_text == NULL) {
    return mp_pjrt_text(mp_pjrt_null_argument(__func__, text == NULL ? "text" : "out_text"));
  }
  return mp_pjrt_text(pjrt_world_tell(text, out_text, capacity));
}

const char *minipod_world_failure(void) {
  mp_world_t *world = mp_world_joined();
  return world == NULL ? NULL : mp_pjrt_text(mp_world_failure(world));
}

static bool pjrt_world_find_place(mp_client_t *client, int32_t process,
                                  minipod_place_t *out_place) {
  for (uint32_t i = 0; i < mp_client_num_devices(client); ++i) {
    const mp_pod_device_t *device = mp_device_info(mp_client_device(client, i));
    if (device->process_index != process) continue;
    *out_place = (minipod_place_t){
        .id = (int32_t)i, .core = device->core_on_chip, .slice = device->slice_index};
    memcpy(out_place->coords, device->coords, sizeof(out_place->coords));
    return true;
  }
  return false;
}

bool minipod_place_of(int32_t process, minipod_place_t *out_place) {
  uint32_t count = 0;
  mp_client_t **clients = NULL;
  mp_status_release(mp_pjrt_clients_list(&count, &clients));
  const bool is_found = count != 0 && pjrt_world_find_place(clients[0], process, out_place);
  mp_pjrt_clients_free(count, clients);
  return is_found;
}

bool minipod_leave_world(bool has_failed) {
  if (!has_failed) mp_parcels_finish();
  if (!mp_leave_is_quick()) return false;
  if (!has_failed) mp_router_finish_all();
  return mp_leave_early(has_failed ? 1 : 0);
}
