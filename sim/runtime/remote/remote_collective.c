// Remote collectives: meetings with members in several processes, from the arrival of this
// process's last member to the results.
#include <inttypes.h>
#include <string.h>

#include "collectives/collective_traits.h"
#include "sim/base/alloc.h"
#include "sim/base/hash.h"
#include "sim/runtime/remote/peers.h"
#include "sim/runtime/workers/job.h"

// The bytes of a DISPUTE packet: the traits of the sender's collective, followed by a text.
typedef struct {
  mp_traits_t traits;
} dispute_t;

// ---- Group sequences ----

static uint64_t remote_collective_hash_members(const mp_meeting_t *meeting) {
  return mp_hash_bytes(MP_HASH_START, meeting->members,
                       meeting->num_members * sizeof(*meeting->members));
}

static mp_group_sequence_t *remote_collective_find_sequence(const mp_peers_t *peers,
                                                            uint64_t group) {
  mp_group_sequence_t *sequence = peers->sequences;
  while (sequence != NULL && sequence->group != group) sequence = sequence->next;
  return sequence;
}

bool mp_peers_has_begun(const mp_peers_t *peers, uint64_t group, uint32_t number) {
  const mp_group_sequence_t *sequence = remote_collective_find_sequence(peers, group);
  return sequence != NULL && sequence->num_begun > number;
}

static bool remote_collective_is_of_group(const mp_packet_t *packet, uint64_t group) {
  return packet->envelope.key[2] == group;
}

static mp_group_sequence_t *remote_collective_get_sequence(mp_peers_t *peers, uint64_t group) {
  mp_group_sequence_t *sequence = remote_collective_find_sequence(peers, group);
  if (sequence != NULL) return sequence;
  sequence = mp_calloc(1, sizeof(*sequence));
  if (sequence == NULL) return NULL;
  sequence->group = group;
  sequence->next = peers->sequences;
  peers->sequences = sequence;
  for (mp_packet_t *packet; (packet = mp_packet_list_take(
                                 &peers->early, remote_collective_is_of_group, group)) != NULL;) {
    mp_packet_list_push(&sequence->early, packet);
  }
  return sequence;
}

static mp_status_t remote_collective_make_layout(const mp_peers_t *peers,
                                                 const mp_meeting_t *meeting,
                                                 mp_group_sequence_t *sequence) {
  if (sequence->layout != NULL) return NULL;
  const mp_world_t *world = mp_endpoint_world(peers->endpoint);
  uint32_t *ranks_of = mp_malloc(2 * (size_t)meeting->num_members * sizeof(*ranks_of));
  MP_RETURN_IF_NULL(ranks_of);
  uint32_t *hosts_of = ranks_of + meeting->num_members;
  for (uint32_t i = 0; i < meeting->num_members; ++i) {
    ranks_of[i] = peers->ranks_of[meeting->members[i]];
    hosts_of[i] = mp_world_peer(world, ranks_of[i])->host;
  }
  mp_status_t status = mp_group_layout_create(meeting->num_members, ranks_of, hosts_of, peers->self,
                                              &sequence->layout);
  mp_free(ranks_of);
  return status;
}

// ---- Disputes ----

static uint32_t remote_collective_low_word(uint64_t digest) {
  return (uint32_t)(digest ^ digest >> 32);
}

mp_envelope_t mp_remote_collective_envelope(const mp_peers_t *peers,
                                            const mp_remote_collective_t *remote,
                                            mp_packet_kind_t kind) {
  const mp_collective_t *collective = remote->meeting->collective;
  mp_envelope_t envelope = mp_peers_envelope(peers, kind);
  envelope.words[1] = remote_collective_low_word(mp_collective_digest(collective));
  envelope.words[2] = collective->ordinal;
  envelope.key[2] = remote->sequence->group;
  envelope.key[3] =
      remote->number | (uint64_t)remote_collective_low_word(remote->holder->program_digest) << 32;
  return envelope;
}

static bool remote_collective_differs(const mp_remote_collective_t *remote,
                                      const mp_packet_t *packet) {
  const mp_collective_t *collective = remote->meeting->collective;
  if (packet->envelope.words[1] != remote_collective_low_word(mp_collective_digest(collective)))
    return true;
  const uint32_t program = (uint32_t)(packet->envelope.key[3] >> 32);
  return program == remote_collective_low_word(remote->holder->program_digest) &&
         packet->envelope.words[2] != collective->ordinal;
}

// The name of this side in messages: the device of this process's first member, independent of
// which arrived last.
static uint32_t remote_collective_own_name(const mp_remote_collective_t *remote) {
  const mp_group_layout_t *layout = remote->sequence->layout;
  return remote->meeting
      ->names[remote->meeting->members[mp_group_layout_members(layout, layout->self)[0]]];
}

static void remote_collective_tell_dispute(const mp_peers_t *peers,
                                           const mp_remote_collective_t *remote, uint32_t process) {
  const dispute_t dispute = {
      mp_traits_of(remote->meeting->collective, remote->holder->program_digest)};
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_append(&text, (const char *)&dispute, sizeof(dispute));
  mp_collective_print_side(&text, remote_collective_own_name(remote), remote->meeting->collective);
  const mp_envelope_t envelope = mp_remote_collective_envelope(peers, remote, MP_PACKET_DISPUTE);
  mp_peers_send(peers, remote->sequence->layout->ranks[process], &envelope, mp_strbuf_text(&text),
                text.size);
  mp_strbuf_deinit(&text);
}

// The error after a DISPUTE of the other side. Both sides compose the same message: the lower rank
// comes first.
static mp_status_t remote_collective_compose_dispute(const mp_peers_t *peers,
                                                     const mp_remote_collective_t *remote,
                                                     const mp_packet_t *packet) {
  const mp_collective_t *collective = remote->meeting->collective;
  dispute_t theirs = {{0}};
  const bool is_whole = packet->bytes >= sizeof(theirs);
  if (is_whole) memcpy(&theirs, packet->data, sizeof(theirs));
  const mp_traits_t ours = mp_traits_of(collective, remote->holder->program_digest);
  const char *reason = mp_traits_difference(&ours, &theirs.traits);
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  for (int side = 0; side < 2; ++side) {
    const bool is_ours = (side == 0) == (peers->self < packet->from);
    mp_strbuf_printf(&text, "%sprocess %" PRIu32 ": ", side == 0 ? "" : " while ",
                     is_ours ? peers->self : packet->from);
    if (is_ours) {
      mp_collective_print_side(&text, remote_collective_own_name(remote), collective);
    } else if (is_whole) {
      mp_strbuf_append(&text, (const char *)packet->data + sizeof(theirs),
                       packet->bytes - sizeof(theirs));
    }
  }
  mp_status_t status =
      mp_status_make(MP_INVALID_ARGUMENT, "collectives do not match: %s: %s", mp_strbuf_text(&text),
                     reason == NULL ? "they move data differently" : reason);
  mp_strbuf_deinit(&text);
  return status;
}

// ---- Filing ----

static uint32_t remote_collective_number_of(const mp_packet_t *packet) {
  return (uint32_t)packet->envelope.key[3];
}

// Whether this payload was the last missing one of the stripe for which the holder waits.
static bool remote_collective_completes(mp_remote_collective_t *remote, uint32_t stripe,
                                        uint32_t phase) {
  if (!remote->is_waiting || stripe < remote->first_stripe || stripe >= remote->num_begun) {
    return false;
  }
  mp_remote_stripe_t *at = &remote->stripes[stripe];
  if (at->stripe == NULL || at->phase != phase) return false;
  MP_ASSERT(at->num_missing != 0);
  return --at->num_missing == 0;
}

// Files a packet of this remote collective; takes it.
static mp_status_t remote_collective_place(mp_peers_t *peers, mp_remote_collective_t *remote,
                                           mp_packet_t *packet,
                                           mp_remote_collective_t **out_ready) {
  const int64_t process = mp_group_layout_find(remote->sequence->layout, packet->from);
  const uint32_t stripe = mp_packet_place(packet) / MP_SCHEDULE_MAX_PHASES;
  const uint32_t phase = mp_packet_place(packet) % MP_SCHEDULE_MAX_PHASES;
  if (process < 0 || stripe >= remote->num_stripes) {
    // No member waits for a packet of a process without members. An unknown stripe shows that the
    // two sides are at different collectives.
    if (process >= 0) remote_collective_tell_dispute(peers, remote, (uint32_t)process);
    mp_packet_release(packet);
    return NULL;
  }
  if (mp_packet_kind(packet) == MP_PACKET_DISPUTE) {
    mp_status_t status = remote_collective_compose_dispute(peers, remote, packet);
    mp_packet_release(packet);
    return status;
  }
  const size_t at = mp_remote_place(remote, stripe, phase) + (size_t)process;
  if (remote_collective_differs(remote, packet) || remote->packets[at] != NULL) {
    if (remote_collective_differs(remote, packet))
      remote_collective_tell_dispute(peers, remote, (uint32_t)process);
    mp_packet_release(packet);
    return NULL;
  }
  remote->packets[at] = packet;
  if (remote_collective_completes(remote, stripe, phase)) *out_ready = remote;
  return NULL;
}

mp_status_t mp_remote_collective_file(mp_peers_t *peers, mp_packet_t *packet,
                                      mp_remote_collective_t **out_ready) {
  mp_lock_assert_held(peers->lock);
  mp_group_sequence_t *sequence = remote_collective_find_sequence(peers, packet->envelope.key[2]);
  if (sequence == NULL || remote_collective_number_of(packet) >= sequence->num_begun) {
    mp_packet_list_push(sequence == NULL ? &peers->early : &sequence->early, packet);
    *out_ready = NULL;
    return NULL;
  }
  if (sequence->remote == NULL || sequence->remote->number != remote_collective_number_of(packet)) {
    mp_packet_release(packet);  // that remote collective is over
    *out_ready = NULL;
    return NULL;
  }
  mp_remote_collective_t *ready = NULL;
  MP_RETURN_IF_ERROR(remote_collective_place(peers, sequence->remote, packet, &ready));
  *out_ready = ready;
  return NULL;
}

static bool remote_collective_is_of_number(const mp_packet_t *packet, uint64_t number) {
  return remote_collective_number_of(packet) == number;
}

mp_status_t mp_remote_collective_take_early(mp_peers_t *peers, mp_remote_collective_t *remote) {
  mp_lock_assert_held(peers->lock);
  mp_remote_collective_t *ready = NULL;  // it does not wait yet
  for (mp_packet_t *packet;
       (packet = mp_packet_list_take(&remote->sequence->early, remote_collective_is_of_number,
                                     remote->number)) != NULL;) {
    MP_RETURN_IF_ERROR(remote_collective_place(peers, remote, packet, &ready));
  }
  return NULL;
}

// ---- Beginning and ending ----

static mp_status_t remote_collective_make(mp_peers_t *peers, mp_remote_collective_t *remote,
                                          uint64_t group) {
  mp_meeting_t *meeting = remote->meeting;
  remote->sequence = remote_collective_get_sequence(peers, group);
  MP_RETURN_IF_NULL(remote->sequence);
  MP_RETURN_IF_ERROR(remote_collective_make_layout(peers, meeting, remote->sequence));
  const mp_group_layout_t *layout = remote->sequence->layout;
  const uint32_t num_stripes = mp_collective_num_stripes(meeting->collective, layout);
  const size_t places = (size_t)num_stripes * MP_SCHEDULE_MAX_PHASES * layout->num_processes;
  remote->stripes =
      mp_calloc(1, num_stripes * sizeof(*remote->stripes) +
                       places * (sizeof(*remote->packets) + sizeof(*remote->payloads)));
  MP_RETURN_IF_NULL(remote->stripes);
  remote->num_stripes = num_stripes;
  remote->packets = (mp_packet_t **)(void *)(remote->stripes + num_stripes);
  remote->payloads = (mp_payload_t **)(void *)(remote->packets + places);
  return NULL;
}

void mp_remote_collective_drop(mp_remote_collective_t *remote, uint32_t stripe) {
  const size_t first = mp_remote_place(remote, stripe, 0);
  const size_t count = MP_SCHEDULE_MAX_PHASES * (size_t)remote->sequence->layout->num_processes;
  for (size_t i = first; i < first + count; ++i) {
    mp_packet_release(remote->packets[i]);
    mp_payload_release(remote->payloads[i]);
    remote->packets[i] = NULL;
    remote->payloads[i] = NULL;
  }
  mp_collective_stripe_release(remote->stripes[stripe].stripe);
  remote->stripes[stripe].stripe = NULL;
}

static void remote_collective_destroy(mp_remote_collective_t *remote) {
  for (uint32_t i = 0; i < remote->num_stripes; ++i) mp_remote_collective_drop(remote, i);
  mp_free(remote->stripes);
  mp_meeting_release(remote->meeting);
  mp_free(remote);
}

mp_status_t mp_remote_collective_begin(mp_peers_t *peers, mp_meeting_t *meeting,
                                       mp_arrival_t *holder, mp_remote_collective_t **out_remote) {
  mp_lock_assert_held(peers->lock);
  mp_remote_collective_t *remote = mp_calloc(1, sizeof(*remote));
  MP_RETURN_IF_NULL(remote);
  remote->meeting = meeting;
  remote->holder = holder;
  mp_status_t status =
      remote_collective_make(peers, remote, remote_collective_hash_members(meeting));
  if (status != NULL) {
    remote->meeting = NULL;
    remote_collective_destroy(remote);
    return status;
  }
  mp_group_sequence_t *sequence = remote->sequence;
  MP_ASSERT(sequence->remote == NULL);  // one at a time
  remote->number = sequence->num_begun++;
  sequence->remote = remote;
  remote->next = peers->remotes;
  peers->remotes = remote;
  peers->num_meetings += 1;
  *out_remote = remote;
  return NULL;
}

void mp_remote_collective_end(mp_peers_t *peers, mp_remote_collective_t *remote) {
  mp_remote_collective_t **link = &peers->remotes;
  while (*link != remote) {
    MP_ASSERT(*link != NULL);  // it is in progress
    link = &(*link)->next;
  }
  MP_ASSERT(remote->sequence->remote == remote);
  *link = remote->next;
  remote->sequence->remote = NULL;
  remote_collective_destroy(remote);
}

void mp_remote_collective_end_all(mp_peers_t *peers) {
  while (peers != NULL && peers->remotes != NULL) mp_remote_collective_end(peers, peers->remotes);
}

// ---- Waiting ----

bool mp_remote_stripe_misses(const mp_remote_collective_t *remote, uint32_t stripe,
                             uint32_t process) {
  const mp_remote_stripe_t *at = &remote->stripes[stripe];
  return at->stripe != NULL &&
         mp_collective_schedule_awaits(at->stripe->schedule, at->phase, process) &&
         remote->packets[mp_remote_place(remote, stripe, at->phase) + process] == NULL;
}

bool mp_remote_collective_misses(const mp_remote_collective_t *remote, uint32_t process) {
  for (uint32_t i = remote->first_stripe; i < remote->num_begun; ++i) {
    if (mp_remote_stripe_misses(remote, i, process)) return true;
  }
  return false;
}

int64_t mp_remote_collective_find_complete(mp_remote_collective_t *remote) {
  for (uint32_t i = remote->first_stripe; i < remote->num_begun; ++i) {
    mp_remote_stripe_t *at = &remote->stripes[i];
    if (at->stripe == NULL) continue;
    at->num_missing = 0;
    for (uint32_t p = 0; p < remote->sequence->layout->num_processes; ++p) {
      at->num_missing += mp_remote_stripe_misses(remote, i, p);
    }
    if (at->num_missing == 0) return i;
  }
  remote->is_waiting = true;
  return -1;
}

bool mp_remote_collective_is_lost(const mp_peers_t *peers, const mp_remote_collective_t *remote) {
  const mp_group_layout_t *layout = remote->sequence->layout;
  for (uint32_t p = 0; p < layout->num_processes; ++p) {
    if (mp_remote_collective_misses(remote, p) && mp_peers_has_left(peers, layout->ranks[p]))
      return true;
  }
  return false;
}
