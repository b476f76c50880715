#include "sim/runtime/remote/peers.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/alloc.h"

mp_status_t mp_peers_create(mp_session_t *session, mp_lock_t *lock, const mp_session_link_t *link,
                            mp_peers_t **out_peers) {
  mp_peers_t *peers =
      mp_calloc(1, sizeof(*peers) + link->num_ranks * (sizeof(mp_packet_t *) + sizeof(bool)));
  MP_RETURN_IF_NULL(peers);
  peers->endpoint = link->endpoint;
  peers->devices = link->devices;
  peers->number = link->number;
  peers->num_returns = link->num_returns;
  peers->ranks_of = link->ranks_of;
  peers->self = mp_world_rank(mp_endpoint_world(link->endpoint));
  peers->num_ranks = link->num_ranks;
  peers->ranks = link->ranks;
  peers->session = session;
  peers->lock = lock;
  peers->answers = (mp_packet_t **)(peers + 1);
  peers->has_left = (bool *)(peers->answers + link->num_ranks);
  *out_peers = peers;
  return NULL;
}

void mp_peers_release(mp_peers_t *peers) {
  if (peers == NULL) return;
  MP_ASSERT(peers->remotes == NULL);
  for (mp_group_sequence_t *sequence; (sequence = peers->sequences) != NULL;) {
    peers->sequences = sequence->next;
    mp_packet_list_clear(&sequence->early);
    mp_group_layout_release(sequence->layout);
    mp_free(sequence);
  }
  mp_packet_list_clear(&peers->early);
  for (uint32_t i = 0; i < peers->num_ranks; ++i) mp_packet_release(peers->answers[i]);
  mp_free(peers);
}

int64_t mp_peers_find(const mp_peers_t *peers, uint32_t rank) {
  for (uint32_t i = 0; i < peers->num_ranks; ++i) {
    if (peers->ranks[i] == rank) return i;
  }
  return -1;
}

bool mp_peers_has_left(const mp_peers_t *peers, uint32_t rank) {
  const int64_t i = mp_peers_find(peers, rank);
  return i >= 0 && peers->has_left[i];
}

mp_envelope_t mp_peers_envelope(const mp_peers_t *peers, mp_packet_kind_t kind) {
  return (mp_envelope_t){
      .channel = MP_CHANNEL_SESSIONS,
      .words = {(uint32_t)kind},
      .key = {peers->devices, mp_endpoint_launch_key(peers->endpoint, peers->number)},
  };
}

void mp_peers_send(const mp_peers_t *peers, uint32_t rank, const mp_envelope_t *envelope,
                   const void *bytes, size_t size) {
  mp_endpoint_send(peers->endpoint, rank, envelope, bytes, size);
}

void mp_peers_send_all(const mp_peers_t *peers, const mp_envelope_t *envelope, const void *bytes,
                       size_t size) {
  for (uint32_t i = 0; i < peers->num_ranks; ++i) {
    if (!peers->has_left[i]) mp_peers_send(peers, peers->ranks[i], envelope, bytes, size);
  }
}
