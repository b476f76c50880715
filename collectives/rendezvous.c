#include "collectives/rendezvous.h"

#include <inttypes.h>
#include <string.h>

#include "sim/base/alloc.h"
#include "sim/base/hash.h"
#include "sim/base/str.h"
#include "sim/numeric/dims.h"

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

void mp_meeting_release(mp_meeting_t *meeting) {  // NULL: nothing
  mp_free(meeting);
}

static uint32_t rendezvous_num_members_of(const mp_collective_t *collective, uint32_t group) {
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

void mp_collective_print_side(mp_strbuf_t *out, uint32_t name, const mp_collective_t *collective) {
  mp_strbuf_printf(out, "device %" PRIu32 " is at %s (%s) of ", name, collective->name,
                   collective->location);
  for (uint32_t i = 0; i < collective->num_operands; ++i) {
    const mp_collective_operand_t *operand = &collective->operands[i];
    mp_strbuf_puts(out, i == 0 ? "tensor<" : ", tensor<");
    for (uint32_t d = 0; d < operand->rank; ++d) {
      mp_strbuf_printf(out, "%" PRId64 "x", operand->dims[d]);
    }
    mp_strbuf_printf(out, "%s>", mp_dtype_name(operand->dtype));
  }
}

mp_traits_t mp_traits_of(const mp_collective_t *collective, uint64_t program) {
  uint64_t types = MP_HASH_START;
  for (uint32_t i = 0; i < collective->num_operands; ++i) {
    const mp_collective_operand_t *operand = &collective->operands[i];
    types = mp_hash_u64(types, (uint64_t)operand->dtype << 32 | (uint64_t)operand->accumulation);
    types = mp_hash_u64(types, operand->rank);
    types = mp_hash_bytes(types, operand->dims, operand->rank * sizeof(*operand->dims));
  }
  uint64_t dimensions = mp_hash_u64(MP_HASH_START, (uint64_t)collective->dimension);
  dimensions = mp_hash_u64(dimensions, (uint64_t)collective->concat_dimension);
  return (mp_traits_t){.kind = collective->kind,
                       .num_operands = collective->num_operands,
                       .types = types,
                       .dimensions = dimensions,
                       .reduction = collective->reducer.digest,
                       .program = program,
                       .ordinal = collective->ordinal};
}

const char *mp_traits_difference(const mp_traits_t *a, const mp_traits_t *b) {
  if (a->kind != b->kind) return "they are different operations";
  if (a->num_operands != b->num_operands) return "their numbers of operands differ";
  if (a->types != b->types) return "their types differ";
  if (a->dimensions != b->dimensions) return "their dimensions differ";
  if (a->reduction != b->reduction) return "their reductions differ";
  if (a->program == b->program && a->ordinal != b->ordinal) {
    return "they are at different places of the program";
  }
  return NULL;
}

static mp_status_t rendezvous_check_agreement(const mp_rendezvous_t *table,
                                              const mp_meeting_t *meeting,
                                              const mp_arrival_t *arrival) {
  const mp_collective_t *theirs = meeting->collective, *ours = arrival->collective;
  if (theirs == ours) return NULL;
  const mp_arrival_t *other = NULL;
  for (uint32_t i = 0; other == NULL; ++i) other = meeting->arrivals[i];
  const mp_traits_t a = mp_traits_of(theirs, (uintptr_t)other->program);
  const mp_traits_t b = mp_traits_of(ours, (uintptr_t)arrival->program);
  const char *reason = mp_traits_difference(&a, &b);
  if (reason == NULL) return NULL;
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_collective_print_side(&text, table->names[other->logical], theirs);
  mp_strbuf_puts(&text, " while ");
  mp_collective_print_side(&text, table->names[arrival->logical], ours);
  mp_status_t status = mp_status_make(MP_INVALID_ARGUMENT, "collectives do not match: %s: %s",
                                      mp_strbuf_text(&text), reason);
  mp_strbuf_deinit(&text);
  return status;
}

// ---- Arriving ----

mp_status_t mp_rendezvous_arrive(mp_rendezvous_t *table, mp_arrival_t *arrival,
                                 mp_meeting_t **out_complete) {
  const mp_collective_t *collective = arrival->collective;
  const mp_groups_t *groups = collective->groups;
  uint32_t group = (uint32_t)groups->group_of[arrival->logical];
  uint32_t position = groups->position[arrival->logical];
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
  meeting->arrivals[position] = arrival;
  meeting->contributions[position] = arrival->contribution;
  meeting->num_arrived += 1;
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
