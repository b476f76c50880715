#include <inttypes.h>
#include <string.h>

#include "sim/base/alloc.h"
#include "sim/runtime/buffers/buffer_impl.h"
#include "sim/runtime/devices/reach.h"
#include "sim/runtime/parcels/parcel.h"
#include "sim/runtime/parcels/post.h"
#include "sim/runtime/remote/router.h"

// A parcel whose contents are being copied.
typedef struct {
  mp_world_t *world;
  uint32_t to;
  mp_envelope_t envelope;
  mp_payload_t *payload;
  bool is_absent;  // the contents were not computed, and are not sent
  mp_event_t *sent;
} parcel_send_t;

// Sends the error instead of the contents, or at least its code.
static void parcel_send_tell(const parcel_send_t *send, mp_status_t error) {
  mp_envelope_t envelope = send->envelope;
  envelope.words[0] = (uint32_t)mp_status_code(error);
  const size_t size = strlen(mp_status_message(error));
  mp_payload_t *text = NULL;
  mp_status_ignore(mp_payload_create(send->world, size, &text));
  if (text != NULL) memcpy(text->data, mp_status_message(error), size);
  mp_status_t told = mp_world_send(send->world, send->to, &envelope, text);
  if (told != NULL && text != NULL) {
    mp_status_ignore(told);
    told = mp_world_send(send->world, send->to, &envelope, NULL);
  }
  mp_status_ignore(told);
  mp_payload_release(text);
}

// The contents have been copied, or never will be.
static void parcel_send_go(mp_status_t status, void *context) {
  parcel_send_t *send = context;
  status = mp_status_retain(status);
  if (status == NULL) {
    if (send->is_absent) send->envelope.words[2] = MP_PARCEL_ABSENT;
    status = mp_world_send(send->world, send->to, &send->envelope,
                           send->is_absent ? NULL : send->payload);
  }
  if (status != NULL) parcel_send_tell(send, status);
  mp_payload_release(send->payload);
  atomic_fetch_sub(&mp_post_num_sending, 1);
  mp_event_set(send->sent, status);
  mp_event_release(send->sent);
  mp_free(send);
}

// Starts the copy; afterwards `send` may be freed at any time.
static mp_status_t parcel_send_start(mp_client_t *client, mp_buffer_t *buffer, uint32_t target,
                                     parcel_send_t *send, mp_event_t **out_sent) {
  const uint64_t bytes = mp_buffer_bytes(buffer);
  MP_RETURN_IF_ERROR(mp_payload_create(send->world, bytes, &send->payload));
  MP_RETURN_IF_ERROR(mp_event_create(&send->sent));
  mp_event_t *copied = NULL;
  MP_RETURN_IF_ERROR(mp_event_create(&copied));
  // Everything that may fail comes before the copy: afterwards only the event reports errors.
  mp_status_t status = mp_event_on_ready(copied, parcel_send_go, send);
  if (status != NULL) {
    mp_event_release(copied);
    return status;
  }
  // Incremented before the copy starts, because its end decrements it on any thread.
  atomic_fetch_add(&mp_post_num_sending, 1);
  *out_sent = mp_event_retain(send->sent);
  const mp_network_end_t from = mp_memory_end(mp_buffer_memory(buffer));
  status = mp_client_check_transfer(client, from, mp_network_device((int32_t)target));
  if (status == NULL) {
    status = mp_buffer_read_values_to(buffer, send->payload->data, copied, &send->is_absent);
  }
  if (status != NULL) mp_event_set(copied, status);
  mp_event_release(copied);
  return NULL;
}

static mp_status_t parcel_send_check(mp_client_t *client, uint64_t target) {
  MP_RETURN_IF_ERROR(mp_client_check(client));
  if (target >= mp_client_num_devices(client)) {
    return mp_status_make(MP_INVALID_ARGUMENT, "no device has the id %" PRIu64, target);
  }
  if (client->world == NULL) {
    return mp_status_make(MP_FAILED_PRECONDITION, "there is no other process to send to");
  }
  return NULL;
}

// A parcel for the device `target`, without contents.
static parcel_send_t parcel_send_begin(mp_client_t *client, const mp_buffer_t *buffer,
                                       uint32_t target, const mp_parcel_address_t *address) {
  return (parcel_send_t){
      .world = client->world,
      .to = (uint32_t)mp_device_info(mp_client_device(client, target))->process_index,
      .envelope = {.channel = MP_CHANNEL_PARCELS,
                   .words = {MP_OK, (uint32_t)mp_buffer_type(buffer)->dtype},
                   .key = {address->client, address->key, address->devices}}};
}

// Sends this parcel to the device `target`.
static mp_status_t parcel_send(mp_client_t *client, mp_buffer_t *buffer, uint32_t target,
                               const parcel_send_t *begun, mp_event_t **out_sent) {
  parcel_send_t *send = mp_calloc(1, sizeof(*send));
  MP_RETURN_IF_NULL(send);
  *send = *begun;
  mp_status_t status = parcel_send_start(client, buffer, target, send, out_sent);
  if (status != NULL) {
    mp_payload_release(send->payload);
    mp_event_release(send->sent);
    mp_free(send);
  }
  return status;
}

mp_status_t mp_parcel_send(mp_buffer_t *buffer, uint32_t target, int64_t key,
                           mp_event_t **out_sent) {
  mp_device_t *device = mp_memory_device(mp_buffer_memory(buffer));
  mp_client_t *client = mp_device_client(device);
  mp_post_t *post = NULL;
  MP_RETURN_IF_ERROR(parcel_send_check(client, target));
  MP_RETURN_IF_ERROR(mp_post_get(client->world, &post));
  const mp_parcel_address_t address = {.client = mp_endpoint_launch_key(client->endpoint, 0),
                                       .key = (uint64_t)key,
                                       .devices = mp_device_id(device) | (uint64_t)target << 32};
  const parcel_send_t send = parcel_send_begin(client, buffer, target, &address);
  return parcel_send(client, buffer, target, &send, out_sent);
}

mp_status_t mp_parcel_send_to(mp_buffer_t *buffer, const mp_parcel_ticket_t *ticket,
                              mp_event_t **out_sent) {
  if (ticket->magic != MP_PARCEL_TICKET_MAGIC) {
    return mp_status_make(MP_INVALID_ARGUMENT, "the receiver's descriptor is not minipod's");
  }
  mp_client_t *client = mp_device_client(mp_memory_device(mp_buffer_memory(buffer)));
  mp_post_t *post = NULL;
  MP_RETURN_IF_ERROR(parcel_send_check(client, ticket->target));
  MP_RETURN_IF_ERROR(mp_post_get(client->world, &post));
  const uint32_t target = (uint32_t)ticket->target;
  const mp_parcel_address_t address = mp_parcel_ticket_address(ticket);
  const parcel_send_t send = parcel_send_begin(client, buffer, target, &address);
  mp_status_t status = mp_post_use_ticket(post, send.to, ticket->key);
  if (status == NULL) status = parcel_send(client, buffer, target, &send, out_sent);
  if (status != NULL) parcel_send_tell(&send, status);
  return status;
}
