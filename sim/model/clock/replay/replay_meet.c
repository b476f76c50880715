// What devices wait for: meetings, the pairs of permutations, and messages, with their traffic.
#include "sim/base/alloc.h"
#include "sim/base/assert.h"
#include "sim/base/hash.h"
#include "sim/model/clock/replay/replay_impl.h"

// ---- Making ----

const mp_collective_t *mp_replay_collective(const mp_replay_t *replay, uint32_t number) {
  return replay->chip_program->collectives[number].collective;
}

// The pairs of a permutation, and the first one of each device as source and as target.
static mp_status_t replay_meet_make_pairs(mp_replay_t *replay, uint32_t number) {
  const mp_collective_t *collective = mp_replay_collective(replay, number);
  replay->first_pair[number] = replay->num_pairs;
  for (uint32_t i = 0; i < collective->num_pairs; ++i) {
    replay->pairs[replay->num_pairs++] = (mp_pair_t){
        .collective = number,
        .source = collective->pairs[2 * i],
        .target = collective->pairs[2 * i + 1],
    };
  }
  const uint32_t devices = replay->num_devices;
  uint32_t *ends = MP_ARENA_ARRAY(replay->arena, uint32_t, (size_t)2 * devices);
  MP_RETURN_IF_NULL(ends);
  for (uint32_t i = 0; i < 2 * devices; ++i) ends[i] = UINT32_MAX;
  for (uint32_t i = 0; i < collective->num_pairs; ++i) {
    const mp_pair_t *pair = &replay->pairs[replay->first_pair[number] + i];
    ends[pair->source] = ends[devices + pair->target] = replay->first_pair[number] + i;
  }
  replay->pair_ends[number] = ends;
  return NULL;
}

static void replay_meet_make_groups(mp_replay_t *replay, uint32_t number) {
  const mp_groups_t *groups = mp_replay_collective(replay, number)->groups;
  replay->first_meeting[number] = replay->num_meetings;
  for (uint32_t g = 0; g < groups->num_groups; ++g) {
    replay->meetings[replay->num_meetings++] = (mp_meeting_t){.collective = number, .group = g};
  }
}

static bool replay_meet_is_permutation(const mp_replay_t *replay, uint32_t number) {
  return mp_replay_collective(replay, number)->kind == MP_COLLECTIVE_PERMUTE;
}

static bool replay_meet_is_message(const mp_replay_t *replay, uint32_t number) {
  return mp_replay_collective(replay, number)->kind == MP_COLLECTIVE_SEND_RECV;
}

mp_status_t mp_replay_make_meetings(mp_replay_t *replay) {
  const uint32_t count = replay->chip_program->num_collectives;
  uint32_t meetings = 0, pairs = 0;
  for (uint32_t c = 0; c < count; ++c) {
    const mp_collective_t *collective = mp_replay_collective(replay, c);
    if (replay_meet_is_permutation(replay, c)) {
      pairs += collective->num_pairs;
    } else if (!replay_meet_is_message(replay, c)) {
      meetings += collective->groups->num_groups;
    }
  }
  replay->first_meeting = MP_ARENA_ARRAY(replay->arena, uint32_t, count + 1);
  replay->first_pair = MP_ARENA_ARRAY(replay->arena, uint32_t, count + 1);
  replay->pair_ends = MP_ARENA_ARRAY(replay->arena, uint32_t *, count + 1);
  replay->together = MP_ARENA_ARRAY(replay->arena, mp_moment_t *, count + 1);
  replay->rounds = MP_ARENA_ARRAY(replay->arena, mp_round_t, count + 1);
  replay->meetings = MP_ARENA_ARRAY(replay->arena, mp_meeting_t, meetings + 1);
  replay->pairs = MP_ARENA_ARRAY(replay->arena, mp_pair_t, pairs + 1);
  MP_RETURN_IF_NULL(replay->first_meeting);
  MP_RETURN_IF_NULL(replay->first_pair);
  MP_RETURN_IF_NULL(replay->pair_ends);
  MP_RETURN_IF_NULL(replay->together);
  MP_RETURN_IF_NULL(replay->rounds);
  MP_RETURN_IF_NULL(replay->meetings);
  MP_RETURN_IF_NULL(replay->pairs);
  for (uint32_t c = 0; c < count; ++c) {
    if (replay_meet_is_permutation(replay, c)) {
      MP_RETURN_IF_ERROR(replay_meet_make_pairs(replay, c));
    } else if (!replay_meet_is_message(replay, c)) {
      replay_meet_make_groups(replay, c);
    }
  }
  return NULL;
}

void mp_replay_reset_meetings(mp_replay_t *replay) {
  replay->events.count = replay->ready.count = replay->complete.count = 0;
  memset(replay->rounds, 0, replay->chip_program->num_collectives * sizeof(*replay->rounds));
  for (uint32_t m = 0; m < replay->num_meetings; ++m) replay->meetings[m].num_arrived = 0;
  for (uint32_t p = 0; p < replay->num_pairs; ++p) replay->pairs[p].num_arrived = 0;
  for (uint32_t i = 0; i < replay->channels.count; ++i) {
    mp_lane_t *channel = &replay->channels.items[i];
    channel->begins.count = channel->times.count = channel->num_received = 0;
    channel->is_awaited = false;
  }
}

void mp_replay_free_meetings(mp_replay_t *replay) {
  for (uint32_t i = 0; i < replay->channels.count; ++i) {
    MP_ARRAY_FREE(&replay->channels.items[i].begins);
    MP_ARRAY_FREE(&replay->channels.items[i].times);
  }
  MP_ARRAY_FREE(&replay->channels);
  MP_ARRAY_FREE(&replay->events);
  MP_ARRAY_FREE(&replay->ready);
  MP_ARRAY_FREE(&replay->complete);
  MP_HASH_MAP_FREE(&replay->channel_map);
}

// ---- Events: a heap, the earliest one first ----

static bool replay_meet_is_before(const mp_replay_event_t *a, const mp_replay_event_t *b) {
  if (a->time != b->time) return a->time < b->time;
  if (a->kind != b->kind) return a->kind < b->kind;
  return a->index < b->index;
}

static mp_status_t replay_meet_push(mp_replay_t *replay, mp_replay_event_t event) {
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(NULL, &replay->events, event));
  mp_replay_event_t *heap = replay->events.items;
  uint32_t at = replay->events.count - 1;
  while (at > 0 && replay_meet_is_before(&event, &heap[(at - 1) / 2])) {
    heap[at] = heap[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  heap[at] = event;
  return NULL;
}

mp_replay_event_t mp_replay_pop(mp_replay_t *replay) {
  mp_replay_event_t *heap = replay->events.items;
  MP_ASSERT(replay->events.count != 0);
  const mp_replay_event_t first = heap[0], last = heap[--replay->events.count];
  uint32_t at = 0;
  for (uint32_t child = 1; child < replay->events.count; child = 2 * at + 1) {
    if (child + 1 < replay->events.count && replay_meet_is_before(&heap[child + 1], &heap[child]))
      ++child;
    if (!replay_meet_is_before(&heap[child], &last)) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = last;
  return first;
}

// ---- Arriving ----

void mp_replay_block(mp_replay_t *replay, uint32_t logical, uint32_t parts) {
  mp_replay_device_t *device = &replay->devices[logical];
  if (device->awaits == 0) device->arrival = device->counted = device->now;
  device->awaits += parts;
}

mp_status_t mp_replay_unblock(mp_replay_t *replay, uint32_t logical, mp_moment_t end) {
  mp_replay_device_t *device = &replay->devices[logical];
  MP_ASSERT(device->awaits != 0);
  if (end > device->now) device->now = end;
  if (--device->awaits != 0) return NULL;
  return MP_ARRAY_PUSH(NULL, &replay->ready, logical);
}

// The meeting has all its members. Its event is made when all devices have gone as far as they can:
// then it is known whether the other groups begin at the same time.
static mp_status_t replay_meet_complete(mp_replay_t *replay, uint32_t index) {
  const mp_meeting_t *meeting = &replay->meetings[index];
  mp_round_t *round = &replay->rounds[meeting->collective];
  if (round->count == 0) round->time = meeting->begin;
  round->is_apart |= round->time != meeting->begin;
  round->count += 1;
  return MP_ARRAY_PUSH(NULL, &replay->complete, index);
}

mp_status_t mp_replay_flush(mp_replay_t *replay) {
  for (uint32_t i = 0; i < replay->complete.count; ++i) {
    const uint32_t index = replay->complete.items[i];
    const mp_meeting_t *meeting = &replay->meetings[index];
    const uint32_t number = meeting->collective;
    mp_round_t *round = &replay->rounds[number];
    if (round->count == 0) continue;  // is in a round
    mp_replay_event_t event = {meeting->begin, MP_EVENT_MEETING, index};
    if (!round->is_apart &&
        round->count == mp_replay_collective(replay, number)->groups->num_groups) {
      event = (mp_replay_event_t){meeting->begin, MP_EVENT_ROUND, number};
      round->count = 0;
    }
    MP_RETURN_IF_ERROR(replay_meet_push(replay, event));
  }
  for (uint32_t i = 0; i < replay->complete.count; ++i) {
    replay->rounds[replay->meetings[replay->complete.items[i]].collective] = (mp_round_t){0};
  }
  replay->complete.count = 0;
  return NULL;
}

static mp_status_t replay_meet_arrive(mp_replay_t *replay, uint32_t logical, uint32_t number,
                                      mp_moment_t moment, uint32_t *out_parts) {
  const mp_groups_t *groups = mp_replay_collective(replay, number)->groups;
  const int32_t group = groups->group_of[logical];
  if (group < 0) return NULL;
  const uint32_t index = replay->first_meeting[number] + (uint32_t)group;
  mp_meeting_t *meeting = &replay->meetings[index];
  if (meeting->num_arrived == 0 || moment > meeting->begin) meeting->begin = moment;
  meeting->num_arrived += 1;
  *out_parts += 1;
  if (meeting->num_arrived != groups->offsets[group + 1] - groups->offsets[group]) return NULL;
  return replay_meet_complete(replay, index);
}

static mp_status_t replay_meet_arrive_at_pair(mp_replay_t *replay, uint32_t index,
                                              mp_moment_t moment, uint32_t *out_parts) {
  if (index == UINT32_MAX) return NULL;
  mp_pair_t *pair = &replay->pairs[index];
  if (pair->num_arrived == 0 || moment > pair->begin) pair->begin = moment;
  pair->num_arrived += 1;
  *out_parts += 1;
  if (pair->num_arrived != 2) return NULL;
  return replay_meet_push(replay, (mp_replay_event_t){pair->begin, MP_EVENT_PAIR, index});
}

mp_status_t mp_replay_arrive(mp_replay_t *replay, uint32_t logical, uint32_t number,
                             mp_moment_t moment, uint32_t *out_parts) {
  *out_parts = 0;
  if (!replay_meet_is_permutation(replay, number)) {
    return replay_meet_arrive(replay, logical, number, moment, out_parts);
  }
  const uint32_t *ends = replay->pair_ends[number];
  MP_RETURN_IF_ERROR(replay_meet_arrive_at_pair(replay, ends[logical], moment, out_parts));
  return replay_meet_arrive_at_pair(replay, ends[replay->num_devices + logical], moment, out_parts);
}

static mp_status_t replay_meet_get_channel(mp_replay_t *replay, uint32_t number, uint32_t source,
                                           uint32_t target, uint32_t *out_index) {
  const int64_t id = mp_replay_collective(replay, number)->channel_id;
  uint64_t hash = mp_hash_u64(MP_HASH_START, (uint64_t)id);
  hash = mp_hash_u64(hash, (uint64_t)source << 32 | target);
  const mp_channel_entry_t *entry;
  MP_HASH_MAP_EACH(&replay->channel_map, hash, entry) {
    const mp_lane_t *channel = &replay->channels.items[entry->channel];
    if (channel->channel_id == id && channel->source == source && channel->target == target) {
      *out_index = entry->channel;
      return NULL;
    }
  }
  *out_index = replay->channels.count;
  const mp_channel_entry_t added = {hash, *out_index};
  MP_RETURN_IF_ERROR(MP_HASH_MAP_ADD(NULL, &replay->channel_map, &added));
  return MP_ARRAY_PUSH(
      NULL, &replay->channels,
      (mp_lane_t){.collective = number, .channel_id = id, .source = source, .target = target});
}

static void replay_meet_tell(const mp_replay_t *replay, const mp_replay_message_t *message) {
  const mp_replay_observer_t *observer = replay->launch->observer;
  if (observer != NULL) observer->on_message(observer->context, message);
}

static mp_status_t replay_meet_send(mp_replay_t *replay, uint32_t logical, uint32_t number) {
  const mp_collective_t *collective = mp_replay_collective(replay, number);
  const mp_moment_t now = replay->devices[logical].now;
  for (uint32_t i = 0; i < collective->num_pairs; ++i) {
    if (collective->pairs[2 * i] != logical) continue;
    uint32_t index;
    MP_RETURN_IF_ERROR(
        replay_meet_get_channel(replay, number, logical, collective->pairs[2 * i + 1], &index));
    mp_lane_t *channel = &replay->channels.items[index];
    channel->collective = number;
    replay_meet_tell(replay, &(mp_replay_message_t){.logical = logical,
                                                    .other = channel->target,
                                                    .collective = number,
                                                    .is_send = true,
                                                    .begin = now,
                                                    .end = now});
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(NULL, &channel->begins, now));
    MP_RETURN_IF_ERROR(replay_meet_push(replay, (mp_replay_event_t){now, MP_EVENT_CHANNEL, index}));
  }
  return NULL;
}

static mp_status_t replay_meet_receive(mp_replay_t *replay, uint32_t logical, uint32_t number) {
  const mp_collective_t *collective = mp_replay_collective(replay, number);
  uint32_t i = 0;
  while (i < collective->num_pairs && collective->pairs[2 * i + 1] != logical) ++i;
  if (i == collective->num_pairs) return NULL;  // no device sends to this one
  uint32_t index;
  MP_RETURN_IF_ERROR(
      replay_meet_get_channel(replay, number, collective->pairs[2 * i], logical, &index));
  mp_lane_t *channel = &replay->channels.items[index];
  mp_replay_device_t *device = &replay->devices[logical];
  if (channel->num_received < channel->times.count) {
    MP_ASSERT(!channel->is_awaited);
    const mp_moment_t came = channel->times.items[channel->num_received++], begin = device->now;
    if (came > device->now) device->now = came;
    replay_meet_tell(replay, &(mp_replay_message_t){.logical = logical,
                                                    .other = channel->source,
                                                    .collective = number,
                                                    .begin = begin,
                                                    .end = device->now});
    return NULL;
  }
  channel->is_awaited = true;
  channel->receiver = number;
  mp_replay_block(replay, logical, 1);
  return NULL;
}

mp_status_t mp_replay_meet(mp_replay_t *replay, uint32_t logical, const mp_chip_step_t *step) {
  const uint32_t number = step->collective;
  if (step->kind == MP_CHIP_STEP_SEND) return replay_meet_send(replay, logical, number);
  if (step->kind == MP_CHIP_STEP_RECV) return replay_meet_receive(replay, logical, number);
  uint32_t parts = 0;
  MP_RETURN_IF_ERROR(
      mp_replay_arrive(replay, logical, number, replay->devices[logical].now, &parts));
  if (parts != 0) mp_replay_block(replay, logical, parts);
  return NULL;
}
