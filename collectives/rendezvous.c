#include "collectives/rendezvous.h"

#include <string.h>

#include "collectives/collective_traits.h"
#include "sim/base/alloc.h"
#include "sim/base/assert.h"
#include "sim/base/str.h"
#include "sim/numeric/dims.h"

// A rendezvous has no lock of its own: the caller holds the session's. So exactly one thread sees
// that the last participant has arrived. A complete meeting leaves the table under the same lock,
// and belongs to that thread, which works on it without the lock.

enum { MP_MAX_BUCKETS = 1024 };

void mp_rendezvous_init(mp_rendezvous_t *table, const uint32_t *names, uint32_t num_participants) {
  *table = (mp_rendezvous_t){.names = names, .num_buckets = 1};
  while (table->num_buckets < num_participants && table->num_buckets < MP_MAX_BUCKETS) {
    table->num_buckets *= 2;
  }
}

void mp_rendezvous_deinit(mp_rendezvous_t *table) {
  mp_rendezvous_abandon(table);
  mp_free(table->buckets);
}

void mp_meeting_release(mp_meeting_t *meeting) {
  mp_free(meeting);
}

static uint32_t rendezvous_num_members_of(const mp_collective_t *collective, uint32_t group) {
  MP_ASSERT(group < collective->groups->num_groups);
  return collective->groups->offsets[group + 1] - collective->groups->offsets[group];
}

static const uint32_t *rendezvous_members_of(const mp_collective_t *collective, uint32_t group) {
  return collective->groups->members + collective->groups->offsets[group];
}

static uint32_t rendezvous_count_local(const mp_rendezvous_t *table, const uint32_t *members,
                                       uint32_t count) {
  if (table->ranks_of == NULL) return count;
  uint32_t local = 0;
  for (uint32_t i = 0; i < count; ++i) local += table->ranks_of[members[i]] == table->self;
  return local;
}

// One allocation: the meeting, its contributions, its arrivals.
static mp_status_t rendezvous_open_meeting(mp_rendezvous_t *table,
                                           const mp_collective_t *collective, uint32_t group,
                                           uint32_t bucket, mp_meeting_t **out_meeting) {
  uint32_t count = rendezvous_num_members_of(collective, group);
  mp_meeting_t *meeting =
      mp_calloc(1, sizeof(*meeting) + count * (sizeof(mp_contribution_t) + sizeof(mp_arrival_t *)));
  MP_RETURN_IF_NULL(meeting);
  meeting->bucket = bucket;
  meeting->collective = collective;
  meeting->names = table->names;
  meeting->group = group;
  meeting->num_members = count;
  meeting->members = rendezvous_members_of(collective, group);
  meeting->num_needed = rendezvous_count_local(table, meeting->members, count);
  meeting->contributions = (mp_contribution_t *)(meeting + 1);
  meeting->arrivals = (mp_arrival_t **)(meeting->contributions + count);
  meeting->next = table->buckets[bucket];
  if (meeting->next != NULL) meeting->next->prev = meeting;
  table->buckets[bucket] = meeting;
  table->num_open += 1;
  *out_meeting = meeting;
  return NULL;
}

static void rendezvous_unlink_meeting(mp_rendezvous_t *table, mp_meeting_t *meeting) {
  MP_ASSERT(table->num_open != 0 && meeting->bucket < table->num_buckets);
  MP_ASSERT((meeting->prev != NULL ? meeting->prev->next : table->buckets[meeting->bucket]) ==
            meeting);
  if (meeting->prev != NULL) {
    meeting->prev->next = meeting->next;
  } else {
    table->buckets[meeting->bucket] = meeting->next;
  }
  if (meeting->next != NULL) meeting->next->prev = meeting->prev;
  table->num_open -= 1;
}

static mp_meeting_t *rendezvous_find_meeting(const mp_rendezvous_t *table,
                                             const mp_collective_t *collective, uint32_t group,
                                             uint32_t bucket) {
  uint32_t count = rendezvous_num_members_of(collective, group);
  const uint32_t *members = rendezvous_members_of(collective, group);
  for (mp_meeting_t *m = table->buckets[bucket]; m != NULL; m = m->next) {
    if (m->num_members != count) continue;
    // Equal programs share the table of groups.
    if (m->members == members || memcmp(m->members, members, count * sizeof(*members)) == 0) {
      return m;
    }
  }
  return NULL;
}

// ---- Agreement ----

static mp_status_t rendezvous_check_agreement(const mp_rendezvous_t *table,
                                              const mp_meeting_t *meeting,
                                              const mp_arrival_t *arrival) {
  const mp_collective_t *theirs = meeting->collective, *ours = arrival->collective;
  if (theirs == ours) return NULL;
  // An open meeting has at least one arrival: an arrival opens it, and it leaves the table as a
  // whole.
  const mp_arrival_t *other = NULL;
  for (uint32_t i = 0; other == NULL; ++i) other = meeting->arrivals[i];
  const bool is_same_program = other->program_digest == arrival->program_digest;
  const bool is_same_place = !is_same_program || theirs->ordinal == ours->ordinal;
  if (mp_collective_digest(theirs) == mp_collective_digest(ours) && is_same_place) return NULL;
  const mp_traits_t a = mp_traits_of(theirs, other->program_digest);
  const mp_traits_t b = mp_traits_of(ours, arrival->program_digest);
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_collective_print_side(&text, table->names[other->logical], theirs);
  mp_strbuf_puts(&text, " while ");
  mp_collective_print_side(&text, table->names[arrival->logical], ours);
  mp_status_t status = mp_status_make(MP_INVALID_ARGUMENT, "collectives do not match: %s: %s",
                                      mp_strbuf_text(&text), mp_traits_difference(&a, &b));
  mp_strbuf_deinit(&text);
  return status;
}

// ---- Arriving ----

mp_status_t mp_rendezvous_arrive(mp_rendezvous_t *table, mp_arrival_t *arrival,
                                 mp_meeting_t **out_complete) {
  const mp_collective_t *collective = arrival->collective;
  const mp_groups_t *groups = collective->groups;
  MP_ASSERT(arrival->logical < groups->num_devices && groups->group_of[arrival->logical] >= 0);
  uint32_t group = (uint32_t)groups->group_of[arrival->logical];
  uint32_t position = groups->position[arrival->logical];
  // Allocated at the first arrival: a launch without collectives never needs them.
  if (table->buckets == NULL) {
    table->buckets = mp_calloc(table->num_buckets, sizeof(*table->buckets));
    MP_RETURN_IF_NULL(table->buckets);
  }
  uint32_t bucket = *rendezvous_members_of(collective, group) & (table->num_buckets - 1);
  mp_meeting_t *meeting = rendezvous_find_meeting(table, collective, group, bucket);
  if (meeting == NULL) {
    MP_RETURN_IF_ERROR(rendezvous_open_meeting(table, collective, group, bucket, &meeting));
  } else {
    MP_RETURN_IF_ERROR(rendezvous_check_agreement(table, meeting, arrival));
  }
  MP_ASSERT(position < meeting->num_members && meeting->members[position] == arrival->logical);
  MP_ASSERT(meeting->arrivals[position] == NULL && meeting->num_arrived < meeting->num_needed);
  // The arrival is part of a run that parks next, under this same lock. It stays valid until a
  // thread resumes the run, and that thread first removes it from the meeting.
  meeting->arrivals[position] = arrival;
  meeting->contributions[position] = arrival->contribution;
  meeting->num_arrived += 1;
  // Only participants of this process arrive; others contribute by packets.
  if (meeting->num_arrived == meeting->num_needed) {
    rendezvous_unlink_meeting(table, meeting);
    *out_complete = meeting;
  } else {
    *out_complete = NULL;
  }
  return NULL;
}

mp_meeting_t *mp_rendezvous_next(const mp_rendezvous_t *table, const mp_meeting_t *meeting) {
  if (table->buckets == NULL) return NULL;
  if (meeting != NULL && meeting->next != NULL) return meeting->next;
  for (uint32_t i = meeting == NULL ? 0 : meeting->bucket + 1; i < table->num_buckets; ++i) {
    if (table->buckets[i] != NULL) return table->buckets[i];
  }
  return NULL;
}

void mp_rendezvous_abandon(mp_rendezvous_t *table) {
  if (table->buckets == NULL) return;
  for (uint32_t i = 0; i < table->num_buckets; ++i) {
    while (table->buckets[i] != NULL) {
      mp_meeting_t *meeting = table->buckets[i];
      rendezvous_unlink_meeting(table, meeting);
      mp_meeting_release(meeting);
    }
  }
}

void mp_collective_zero_outputs(const mp_collective_t *collective, const mp_arrival_t *arrival) {
  for (uint32_t i = 0; i < collective->num_operands; ++i) {
    const mp_collective_operand_t *operand = &collective->operands[i];
    size_t bytes = mp_dtype_size(operand->dtype) *
                   (size_t)mp_dims_product(operand->result_dims, 0, operand->rank);
    if (bytes != 0) memset(arrival->contribution.outputs[i], 0, bytes);
  }
}
