// Passages: meetings with members in several processes, on their way.
#include <inttypes.h>
#include <string.h>

#include "sim/base/alloc.h"
#include "sim/base/hash.h"
#include "sim/runtime/job.h"
#include "sim/runtime/peers.h"

// What a side of a dispute says of itself: this, and a text behind it.
typedef struct {
  mp_traits_t traits;
} mp_dispute_t;

// ---- Lines ----

static uint64_t hash_members(const mp_meeting_t *meeting) {
  return mp_hash_bytes(MP_HASH_START, meeting->members,
                       meeting->num_members * sizeof(*meeting->members));
}

static mp_line_t *get_line(mp_peers_t *peers, uint64_t group) {
  for (mp_line_t *line = peers->lines; line != NULL; line = line->next) {
    if (line->group == group) return line;
  }
  mp_line_t *line = mp_calloc(1, sizeof(*line));
  if (line == NULL) return NULL;
  line->group = group;
  line->next = peers->lines;
  peers->lines = line;
  return line;
}

static mp_status_t make_spread(const mp_peers_t *peers, const mp_meeting_t *meeting,
                               mp_line_t *line) {
  if (line->spread != NULL) return NULL;
  const mp_world_t *world = mp_port_world(peers->port);
  uint32_t *ranks_of = mp_malloc(2 * (size_t)meeting->num_members * sizeof(*ranks_of));
  MP_RETURN_IF_NULL(ranks_of);
  uint32_t *hosts_of = ranks_of + meeting->num_members;
  for (uint32_t i = 0; i < meeting->num_members; ++i) {
    ranks_of[i] = peers->ranks_of[meeting->members[i]];
    hosts_of[i] = mp_world_peer(world, ranks_of[i])->host;
  }
  mp_status_t status =
      mp_spread_create(meeting->num_members, ranks_of, hosts_of, peers->self, &line->spread);
  mp_free(ranks_of);
  return status;
}

// ---- Disputes ----

static uint32_t low_word(uint64_t digest) {
  return (uint32_t)(digest ^ digest >> 32);
}

static mp_envelope_t envelope_of(const mp_peers_t *peers, const mp_passage_t *passage,
                                 mp_packet_kind_t kind) {
  const mp_collective_t *collective = passage->crossing->collective;
  mp_envelope_t envelope = mp_peers_envelope(peers, kind);
  envelope.words[0] |= passage->phase << 8;
  envelope.words[1] = low_word(mp_collective_digest(collective));
  envelope.words[2] = collective->ordinal;
  envelope.key[2] = passage->line->group;
  envelope.key[3] = passage->number | (uint64_t)low_word(passage->holder->program_digest) << 32;
  return envelope;
}

static bool differs(const mp_passage_t *passage, const mp_packet_t *packet) {
  const mp_collective_t *collective = passage->crossing->collective;
  if (packet->envelope.words[1] != low_word(mp_collective_digest(collective))) return true;
  const uint32_t program = (uint32_t)(packet->envelope.key[3] >> 32);
  return program == low_word(passage->holder->program_digest) &&
         packet->envelope.words[2] != collective->ordinal;
}

// Our first member's, whoever came last.
static uint32_t own_name(const mp_passage_t *passage) {
  const mp_spread_t *spread = passage->line->spread;
  return passage->names[passage->crossing->members[mp_spread_members(spread, spread->self)[0]]];
}

static void tell_dispute(const mp_peers_t *peers, const mp_passage_t *passage, uint32_t process) {
  const mp_dispute_t dispute = {
      mp_traits_of(passage->crossing->collective, passage->holder->program_digest)};
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_append(&text, (const char *)&dispute, sizeof(dispute));
  mp_collective_print_side(&text, own_name(passage), passage->crossing->collective);
  const mp_envelope_t envelope = envelope_of(peers, passage, MP_PACKET_DISPUTE);
  mp_peers_send(peers, passage->line->spread->ranks[process], &envelope, mp_strbuf_text(&text),
                text.size);
  mp_strbuf_deinit(&text);
}

// Both sides say the same: the lower rank comes first.
static mp_status_t compose_dispute(const mp_peers_t *peers, const mp_passage_t *passage,
                                   const mp_packet_t *packet) {
  const mp_collective_t *collective = passage->crossing->collective;
  mp_dispute_t theirs = {{0}};
  const bool is_whole = packet->bytes >= sizeof(theirs);
  if (is_whole) memcpy(&theirs, packet->data, sizeof(theirs));
  const mp_traits_t ours = mp_traits_of(collective, passage->holder->program_digest);
  const char *reason = mp_traits_difference(&ours, &theirs.traits);
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  for (int side = 0; side < 2; ++side) {
    const bool is_ours = (side == 0) == (peers->self < packet->from);
    mp_strbuf_printf(&text, "%sprocess %" PRIu32 ": ", side == 0 ? "" : " while ",
                     is_ours ? peers->self : packet->from);
    if (is_ours) {
      mp_collective_print_side(&text, own_name(passage), collective);
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

static uint32_t number_of(const mp_packet_t *packet) {
  return (uint32_t)packet->envelope.key[3];
}

// A packet of this very passage; takes it.
static mp_status_t place(mp_peers_t *peers, mp_passage_t *passage, mp_packet_t *packet,
                         mp_passage_t **out_ready) {
  const int64_t process = mp_spread_find(passage->line->spread, packet->from);
  const uint32_t phase = mp_packet_phase(packet);
  if (process < 0 || phase >= passage->crossing->num_phases) {
    // Of no member: nobody waits for it. Of a phase that we do not know: the digests differ.
    if (process >= 0) tell_dispute(peers, passage, (uint32_t)process);
    mp_packet_release(packet);
    return NULL;
  }
  if (mp_packet_kind(packet) == MP_PACKET_DISPUTE) {
    mp_status_t status = compose_dispute(peers, passage, packet);
    mp_packet_release(packet);
    return status;
  }
  const size_t at = mp_crossing_at(passage->crossing, phase, (uint32_t)process);
  if (differs(passage, packet) || passage->packets[at] != NULL) {
    if (differs(passage, packet)) tell_dispute(peers, passage, (uint32_t)process);
    mp_packet_release(packet);
    return NULL;
  }
  passage->packets[at] = packet;
  if (passage->is_waiting && phase == passage->phase && --passage->num_missing == 0) {
    *out_ready = passage;
  }
  return NULL;
}

mp_status_t mp_passage_file(mp_peers_t *peers, mp_packet_t *packet, mp_passage_t **out_ready) {
  *out_ready = NULL;
  mp_line_t *line = get_line(peers, packet->envelope.key[2]);
  if (line == NULL) {
    mp_packet_release(packet);
    return mp_status_out_of_memory();
  }
  if (number_of(packet) >= line->num_begun) {
    return mp_mail_push(&line->early, packet) ? NULL : mp_status_out_of_memory();
  }
  if (line->passage == NULL || line->passage->number != number_of(packet)) {
    mp_packet_release(packet);  // over
    return NULL;
  }
  return place(peers, line->passage, packet, out_ready);
}

static bool is_of_number(const mp_packet_t *packet, uint64_t number) {
  return number_of(packet) == number;
}

mp_status_t mp_passage_take_early(mp_peers_t *peers, mp_passage_t *passage) {
  mp_passage_t *ready = NULL;  // it does not wait yet
  for (mp_packet_t *packet;
       (packet = mp_mail_take(&passage->line->early, is_of_number, passage->number)) != NULL;) {
    MP_RETURN_IF_ERROR(place(peers, passage, packet, &ready));
  }
  return NULL;
}

// ---- Beginning and ending ----

static mp_status_t make(mp_peers_t *peers, mp_passage_t *passage, uint64_t group) {
  mp_meeting_t *meeting = passage->meeting;
  passage->line = get_line(peers, group);
  MP_RETURN_IF_NULL(passage->line);
  MP_RETURN_IF_ERROR(make_spread(peers, meeting, passage->line));
  MP_RETURN_IF_ERROR(mp_crossing_create(meeting->collective, meeting->group, passage->line->spread,
                                        meeting->contributions, &passage->crossing));
  const size_t places = MP_CROSSING_MAX_PHASES * (size_t)passage->line->spread->num_processes;
  passage->packets = mp_calloc(places, sizeof(*passage->packets) + sizeof(*passage->parcels));
  MP_RETURN_IF_NULL(passage->packets);
  passage->parcels = (mp_parcel_t **)(void *)(passage->packets + places);
  return NULL;
}

static void destroy(mp_passage_t *passage) {
  if (passage->packets != NULL) {
    const size_t places = MP_CROSSING_MAX_PHASES * (size_t)passage->line->spread->num_processes;
    for (size_t i = 0; i < places; ++i) {
      if (passage->packets[i] != NULL) mp_packet_release(passage->packets[i]);
      if (passage->parcels[i] != NULL) mp_parcel_release(passage->parcels[i]);
    }
  }
  mp_free(passage->packets);
  mp_crossing_release(passage->crossing);
  mp_meeting_release(passage->meeting);
  mp_free(passage);
}

mp_status_t mp_passage_begin(mp_peers_t *peers, mp_meeting_t *meeting, mp_arrival_t *holder,
                             const uint32_t *names, mp_passage_t **out_passage) {
  mp_passage_t *passage = mp_calloc(1, sizeof(*passage));
  MP_RETURN_IF_NULL(passage);
  passage->meeting = meeting;
  passage->holder = holder;
  passage->names = names;
  mp_status_t status = make(peers, passage, hash_members(meeting));
  if (status != NULL) {
    passage->meeting = NULL;
    destroy(passage);
    return status;
  }
  mp_line_t *line = passage->line;
  passage->number = line->num_begun++;
  line->passage = passage;
  passage->next = peers->passages;
  peers->passages = passage;
  peers->num_meetings += 1;
  *out_passage = passage;
  return NULL;
}

void mp_passage_end(mp_peers_t *peers, mp_passage_t *passage) {
  mp_passage_t **link = &peers->passages;
  while (*link != passage) link = &(*link)->next;
  *link = passage->next;
  passage->line->passage = NULL;
  destroy(passage);
}

// ---- Waiting ----

bool mp_passage_misses(const mp_passage_t *passage, uint32_t process) {
  return mp_crossing_awaits(passage->crossing, passage->phase, process) &&
         passage->packets[mp_crossing_at(passage->crossing, passage->phase, process)] == NULL;
}

bool mp_passage_has_all(mp_passage_t *passage) {
  passage->num_missing = 0;
  for (uint32_t p = 0; p < passage->line->spread->num_processes; ++p) {
    passage->num_missing += mp_passage_misses(passage, p);
  }
  passage->is_waiting = passage->num_missing != 0;
  return !passage->is_waiting;
}

bool mp_passage_is_lost(const mp_peers_t *peers, const mp_passage_t *passage) {
  const mp_spread_t *spread = passage->line->spread;
  for (uint32_t p = 0; p < spread->num_processes; ++p) {
    if (mp_passage_misses(passage, p) && mp_peers_has_left(peers, spread->ranks[p])) return true;
  }
  return false;
}

// ---- The holder's work ----

typedef struct {
  mp_job_t job;  // first
  mp_crossing_t *crossing;
  uint32_t phase;
} mp_passage_job_t;

static mp_status_t pack_part(mp_job_t *job, uint32_t part, void *scratch) {
  const mp_passage_job_t *work = (mp_passage_job_t *)job;
  return mp_crossing_pack(work->crossing, work->phase, part, scratch);
}

static mp_status_t finish_part(mp_job_t *job, uint32_t part, void *scratch) {
  return mp_crossing_finish(((mp_passage_job_t *)job)->crossing, part, scratch);
}

static mp_status_t attend(mp_passage_t *passage, mp_worker_t *self, uint32_t phase,
                          mp_job_run_t run) {
  mp_passage_job_t job = {.job = {.run = run,
                                  .num_parts = mp_crossing_num_parts(passage->crossing, phase),
                                  .scratch_bytes = mp_crossing_scratch_bytes(passage->crossing)},
                          .crossing = passage->crossing,
                          .phase = phase};
  return mp_job_attend(self->client, self, &job.job);
}

static mp_status_t make_parcels(mp_world_t *world, mp_passage_t *passage, bool is_shared,
                                bool *out_has_any) {
  mp_crossing_t *crossing = passage->crossing;
  const mp_spread_t *spread = crossing->spread;
  const mp_parcel_t *shared = NULL;
  *out_has_any = false;
  for (uint32_t p = 0; p < spread->num_processes; ++p) {
    const size_t at = mp_crossing_at(crossing, passage->phase, p);
    if (crossing->sizes[at] == 0 || crossing->sizes[at] == MP_NO_PARCEL) continue;
    if (shared == NULL || !is_shared) {
      MP_RETURN_IF_ERROR(mp_parcel_create(world, crossing->sizes[at], &passage->parcels[at]));
      shared = passage->parcels[at];
    }
    crossing->parcels[at] = shared->data;
    *out_has_any = true;
  }
  if (is_shared && shared != NULL) {
    crossing->parcels[mp_crossing_at(crossing, passage->phase, spread->self)] = shared->data;
  }
  return NULL;
}

mp_status_t mp_passage_send(mp_peers_t *peers, mp_passage_t *passage, mp_worker_t *self) {
  mp_world_t *world = mp_port_world(peers->port);
  const mp_spread_t *spread = passage->crossing->spread;
  bool is_shared, has_any;
  MP_RETURN_IF_ERROR(mp_crossing_plan(passage->crossing, passage->phase, &is_shared));
  MP_RETURN_IF_ERROR(make_parcels(world, passage, is_shared, &has_any));
  if (has_any) MP_RETURN_IF_ERROR(attend(passage, self, passage->phase, pack_part));
  const mp_envelope_t envelope = envelope_of(peers, passage, MP_PACKET_PARCEL);
  mp_parcel_t *shared = NULL;
  for (uint32_t p = 0; p < spread->num_processes; ++p) {
    const size_t at = mp_crossing_at(passage->crossing, passage->phase, p);
    const size_t bytes = passage->crossing->sizes[at];
    if (bytes == MP_NO_PARCEL) continue;
    if (shared == NULL) shared = passage->parcels[at];
    mp_parcel_t *parcel = is_shared ? shared : passage->parcels[at];
    MP_RETURN_IF_ERROR(
        mp_world_send(world, spread->ranks[p], &envelope, bytes == 0 ? NULL : parcel));
  }
  return NULL;
}

mp_status_t mp_passage_advance(mp_passage_t *passage, bool *out_is_last) {
  mp_crossing_t *crossing = passage->crossing;
  for (uint32_t p = 0; p < crossing->spread->num_processes; ++p) {
    if (!mp_crossing_awaits(crossing, passage->phase, p)) continue;
    const mp_packet_t *packet = passage->packets[mp_crossing_at(crossing, passage->phase, p)];
    MP_RETURN_IF_ERROR(
        mp_crossing_receive(crossing, passage->phase, p, packet->data, packet->bytes));
  }
  passage->phase += 1;
  *out_is_last = passage->phase == crossing->num_phases;
  return NULL;
}

mp_status_t mp_passage_finish(mp_passage_t *passage, mp_worker_t *self) {
  MP_RETURN_IF_ERROR(mp_crossing_open(passage->crossing));
  return attend(passage, self, passage->crossing->num_phases, finish_part);
}
