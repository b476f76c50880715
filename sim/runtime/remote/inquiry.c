// Inquiries: packets about the waits of several launches (sim/runtime/circles).
//
// They are not handed to sessions, because answering one takes locks that come before the router's.
// So they wait in the endpoint, and the client's watch takes them.
#include "sim/base/alloc.h"
#include "sim/runtime/remote/router_impl.h"

void mp_endpoint_on_inquiry(mp_endpoint_t *endpoint, void (*wake)(void *context), void *context) {
  mp_lock(&endpoint->router->lock);
  endpoint->wake = wake;
  endpoint->wake_context = context;
  mp_unlock(&endpoint->router->lock);
}

mp_packet_t *mp_endpoint_take_inquiry(mp_endpoint_t *endpoint) {
  mp_lock(&endpoint->router->lock);
  mp_packet_t *packet = mp_packet_list_pop(&endpoint->inquiries);
  if (packet != NULL) endpoint->num_inquiries -= 1;
  mp_unlock(&endpoint->router->lock);
  return packet;
}

mp_session_t *mp_endpoint_find_session(mp_endpoint_t *endpoint, uint64_t devices, uint64_t number) {
  mp_lock(&endpoint->router->lock);
  const mp_peers_t *peers = mp_router_find_peers(endpoint, devices, number);
  // The list of launches has a reference, so the session lives while the lock is held.
  mp_session_t *session = peers == NULL ? NULL : endpoint->calls->retain(peers->session);
  mp_unlock(&endpoint->router->lock);
  return session;
}

mp_session_t *mp_endpoint_find_subject(mp_endpoint_t *endpoint, const mp_packet_t *inquiry) {
  return mp_endpoint_find_session(endpoint, inquiry->envelope.key[0], mp_packet_launch(inquiry));
}

bool mp_endpoint_has_had_subject(mp_endpoint_t *endpoint, const mp_packet_t *inquiry) {
  mp_lock(&endpoint->router->lock);
  const mp_launch_queue_t *queue = mp_router_find_queue(endpoint, inquiry->envelope.key[0]);
  const bool has_had = queue != NULL && mp_packet_launch(inquiry) < queue->num_entered;
  mp_unlock(&endpoint->router->lock);
  return has_had;
}

void mp_endpoint_send(const mp_endpoint_t *endpoint, uint32_t rank, const mp_envelope_t *envelope,
                      const void *bytes, size_t size) {
  mp_world_t *world = endpoint->router->world;
  mp_payload_t *payload = NULL;
  if (size != 0) {
    // Without memory for the bytes the envelope is sent alone: it has the most important part.
    mp_status_ignore(mp_payload_create(world, size, &payload));
  }
  if (payload != NULL) memcpy(payload->data, bytes, size);
  mp_status_ignore(mp_world_send(world, rank, envelope, payload));
  if (payload != NULL) mp_payload_release(payload);
}
