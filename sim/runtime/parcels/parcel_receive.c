#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>

#include "sim/base/alloc.h"
#include "sim/base/os/clock.h"
#include "sim/base/str.h"
#include "sim/runtime/devices/client_impl.h"
#include "sim/runtime/parcels/parcel.h"
#include "sim/runtime/parcels/post.h"
#include "sim/runtime/remote/router.h"

// A buffer that awaits its contents.
typedef struct {
  mp_parcel_receiver_t base;
  mp_buffer_t *buffer;
  mp_event_t *definition;
  mp_event_t *written;  // set when the contents have been copied into the buffer
  mp_packet_t *packet;
} parcel_receive_t;

static void parcel_receive_free(parcel_receive_t *receive) {
  mp_packet_release(receive->packet);
  mp_event_release(receive->written);
  mp_event_release(receive->definition);
  mp_buffer_release(receive->buffer);
  mp_free(receive);
}

static void parcel_receive_end(mp_status_t status, void *context) {
  parcel_receive_t *receive = context;
  mp_event_set(receive->definition, mp_status_retain(status));
  parcel_receive_free(receive);
}

// The error that the sender sent instead of the contents, or the mismatch of the contents.
static mp_status_t parcel_receive_check(const parcel_receive_t *receive,
                                        const mp_packet_t *packet) {
  const mp_status_code_t code = mp_status_code_of_number(packet->envelope.words[0]);
  if (code != MP_OK) {
    return mp_status_make(code, "process %" PRIu32 " could not send this array: %.*s", packet->from,
                          mp_str_precision(packet->bytes),
                          packet->data == NULL ? "" : (const char *)packet->data);
  }
  const mp_dtype_t dtype = mp_buffer_type(receive->buffer)->dtype;
  const uint64_t bytes = mp_buffer_bytes(receive->buffer);
  const bool is_absent = packet->envelope.words[2] == MP_PARCEL_ABSENT;
  if (is_absent && packet->envelope.words[1] == (uint32_t)dtype) return NULL;
  if (packet->envelope.words[1] == (uint32_t)dtype && packet->bytes == bytes) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT,
                        "process %" PRIu32
                        " sends an array of %zu bytes, but this one awaits %" PRIu64 " bytes of %s",
                        packet->from, packet->bytes, bytes, mp_dtype_name(dtype));
}

static mp_status_t parcel_receive_late_error(const parcel_receive_t *receive) {
  mp_device_t *device = mp_memory_device(mp_buffer_memory(receive->buffer));
  mp_strbuf_t type;
  mp_strbuf_init(&type);
  mp_type_print(mp_buffer_type(receive->buffer), &type);
  mp_strbuf_t source;
  mp_strbuf_init(&source);
  if (receive->base.from == MP_PARCEL_FROM_ANY) {
    mp_strbuf_puts(&source, "no process has");
  } else {
    mp_strbuf_printf(&source, "device %" PRIu32 " of process %" PRIu32 " has not",
                     (uint32_t)receive->base.address.devices, receive->base.from);
  }
  mp_status_t status = mp_status_make(
      MP_DEADLINE_EXCEEDED,
      "device %" PRIu32
      " has waited %g s for an array (%s) that %s sent: every process has "
      "to make the same transfers in the same order (the limit is MINIPOD_COLLECTIVE_TIMEOUT_S)",
      mp_device_id(device), mp_device_client(device)->timeout_s, mp_strbuf_text(&type),
      mp_strbuf_text(&source));
  mp_strbuf_deinit(&source);
  mp_strbuf_deinit(&type);
  return status;
}

static void parcel_receive_take(mp_parcel_receiver_t *receiver, mp_packet_t *packet,
                                mp_status_t error) {
  parcel_receive_t *receive = (parcel_receive_t *)receiver;
  receive->packet = packet;
  if (error == NULL) {
    error =
        packet == NULL ? parcel_receive_late_error(receive) : parcel_receive_check(receive, packet);
  }
  mp_event_t *written = mp_event_retain(receive->written);  // this frees the receiver
  // A buffer that was never written has no values when programs run for their shapes alone.
  const bool is_absent = error == NULL && packet->envelope.words[2] == MP_PARCEL_ABSENT;
  if (error == NULL && !is_absent) {
    error = mp_buffer_write_raw_to(receive->buffer, packet->data, 0, packet->bytes, written);
  }
  if (error != NULL || is_absent) mp_event_set(written, error);
  mp_event_release(written);
}

static mp_status_t parcel_receive_prepare(parcel_receive_t *receive, mp_memory_t *memory,
                                          mp_dtype_t dtype, const int64_t *dims, uint32_t rank) {
  MP_RETURN_IF_ERROR(mp_event_create(&receive->written));
  MP_RETURN_IF_ERROR(
      mp_buffer_create(memory, dtype, dims, rank, &receive->buffer, &receive->definition));
  return mp_event_on_ready(receive->written, parcel_receive_end, receive);
}

// Receives from the rank `from` what is sent to the address.
static mp_status_t parcel_receive_from(mp_memory_t *memory, mp_dtype_t dtype, const int64_t *dims,
                                       uint32_t rank, uint32_t from,
                                       const mp_parcel_address_t *address,
                                       mp_buffer_t **out_buffer) {
  mp_client_t *client = mp_device_client(mp_memory_device(memory));
  mp_post_t *post = NULL;
  MP_RETURN_IF_ERROR(mp_post_get(client->world, &post));
  parcel_receive_t *receive = mp_calloc(1, sizeof(*receive));
  MP_RETURN_IF_NULL(receive);
  receive->base.take = parcel_receive_take;
  receive->base.deadline =
      client->timeout_s == 0 ? (double)INFINITY : mp_clock_seconds() + client->timeout_s;
  receive->base.from = from;
  receive->base.address = *address;
  mp_status_t status = parcel_receive_prepare(receive, memory, dtype, dims, rank);
  if (status != NULL) {
    // A buffer that was not returned has no waiters for its definition.
    if (receive->definition != NULL) mp_event_set(receive->definition, mp_status_retain(status));
    parcel_receive_free(receive);
    return status;
  }
  *out_buffer = mp_buffer_retain(receive->buffer);
  mp_post_await(post, &receive->base);
  return NULL;
}

static mp_status_t parcel_receive_check_world(const mp_client_t *client) {
  if (client->world != NULL) return NULL;
  return mp_status_make(MP_FAILED_PRECONDITION, "there is no other process to receive from");
}

mp_status_t mp_parcel_receive(mp_memory_t *memory, mp_dtype_t dtype, const int64_t *dims,
                              uint32_t rank, uint32_t source, int64_t key,
                              mp_buffer_t **out_buffer) {
  mp_device_t *device = mp_memory_device(memory);
  mp_client_t *client = mp_device_client(device);
  MP_RETURN_IF_ERROR(mp_client_check(client));
  if (source >= mp_client_num_devices(client)) {
    return mp_status_make(MP_INVALID_ARGUMENT, "no device has the id %" PRIu32, source);
  }
  MP_RETURN_IF_ERROR(parcel_receive_check_world(client));
  const uint32_t from = (uint32_t)mp_device_info(mp_client_device(client, source))->process_index;
  const mp_parcel_address_t address = {.client = mp_endpoint_launch_key(client->endpoint, 0),
                                       .key = (uint64_t)key,
                                       .devices = source | (uint64_t)mp_device_id(device) << 32};
  return parcel_receive_from(memory, dtype, dims, rank, from, &address, out_buffer);
}

// ---- Receivers that do not know the sender ----

mp_status_t mp_parcel_receive_any(mp_memory_t *memory, mp_dtype_t dtype, const int64_t *dims,
                                  uint32_t rank, mp_parcel_ticket_t *out_ticket,
                                  mp_buffer_t **out_buffer) {
  static atomic_uint_fast64_t next_key;
  mp_device_t *device = mp_memory_device(memory);
  mp_client_t *client = mp_device_client(device);
  MP_RETURN_IF_ERROR(mp_client_check(client));
  MP_RETURN_IF_ERROR(parcel_receive_check_world(client));
  const mp_parcel_ticket_t ticket = {.magic = MP_PARCEL_TICKET_MAGIC,
                                     .client = mp_endpoint_launch_key(client->endpoint, 0),
                                     .key = atomic_fetch_add(&next_key, 1),
                                     .target = mp_device_id(device)};
  const mp_parcel_address_t address = mp_parcel_ticket_address(&ticket);
  MP_RETURN_IF_ERROR(
      parcel_receive_from(memory, dtype, dims, rank, MP_PARCEL_FROM_ANY, &address, out_buffer));
  *out_ticket = ticket;
  return NULL;
}

void mp_parcel_cancel(mp_client_t *client, const mp_parcel_ticket_t *ticket, mp_status_t error) {
  mp_post_t *post = NULL;
  mp_status_t status = client->world == NULL ? NULL : mp_post_get(client->world, &post);
  mp_status_ignore(status);
  if (post == NULL) {
    mp_status_release(error);
    return;
  }
  const mp_parcel_address_t address = mp_parcel_ticket_address(ticket);
  mp_post_cancel(post, &address, error);
}
