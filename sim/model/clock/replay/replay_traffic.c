// The traffic of meetings, pairs and messages, and what happens when it ends.
#include "collectives/mailbox.h"
#include "sim/base/assert.h"
#include "sim/model/clock/replay/replay_impl.h"
#include "sim/model/network/traffic/traffic.h"

// The tag of a transfer in the flows: what it belongs to.
static uint64_t replay_traffic_tag(const mp_replay_t *replay, mp_replay_event_kind_t kind,
                                   uint32_t index) {
  return (uint64_t)replay->member << 40 | (uint64_t)kind << 32 | index;
}

uint32_t mp_replay_member_of(uint64_t tag) {
  return (uint32_t)(tag >> 40);
}

// A transfer of a collective has happened between `begin` and `end`.
static void replay_traffic_count(mp_replay_t *replay, uint32_t number,
                                 const mp_transfer_t *transfer, mp_moment_t begin,
                                 mp_moment_t end) {
  const mp_replay_observer_t *observer = replay->launch->observer;
  if (observer != NULL) observer->on_transfer(observer->context, number, transfer, begin, end);
  mp_transfer_add_bytes(transfer, replay->books.link_bytes);
}

mp_status_t mp_replay_traffic_of(mp_replay_t *replay, mp_meeting_t *meeting) {
  if (meeting->traffic != NULL) return NULL;
  return mp_network_traffic(replay->network, mp_replay_collective(replay, meeting->collective),
                            meeting->group, replay->ids, &meeting->traffic);
}

mp_status_t mp_replay_next_stage(mp_flows_t *flows, mp_meeting_t *meeting, uint64_t tag, double now,
                                 bool *out_is_over) {
  const mp_traffic_t *traffic = meeting->traffic;
  while (meeting->stage < traffic->num_stages && traffic->stages[meeting->stage].num_transfers == 0)
    ++meeting->stage;
  *out_is_over = meeting->stage == traffic->num_stages;
  if (*out_is_over) return NULL;
  const mp_stage_t *stage = &traffic->stages[meeting->stage++];
  for (uint32_t i = 0; i < stage->num_transfers; ++i) {
    MP_RETURN_IF_ERROR(mp_flows_start(flows, &stage->transfers[i], now, tag));
  }
  meeting->num_running = stage->num_transfers;
  return NULL;
}

// ---- Ends ----

static void replay_traffic_note(mp_replay_meetings_t *met, mp_moment_t begin, mp_moment_t end) {
  met->count += 1;
  met->traffic += end - begin;
  if (end - begin > met->longest) met->longest = end - begin;
}

// The books of one member, and the member goes on.
static mp_status_t replay_traffic_release(mp_replay_t *replay, uint32_t logical, uint32_t number,
                                          mp_moment_t begin, mp_moment_t end) {
  if (mp_replay_is_started(replay, number)) {
    return mp_replay_end_started(replay, logical, number, begin, end);
  }
  mp_replay_device_t *device = &replay->devices[logical];
  const mp_replay_observer_t *observer = replay->launch->observer;
  const mp_moment_t waited = begin > device->counted ? begin - device->counted : 0;
  const mp_moment_t from = begin > device->counted ? begin : device->counted;
  const mp_moment_t took = end > from ? end - from : 0;
  MP_ASSERT(from >= device->counted);  // no time is counted twice
  device->counted = from + took;
  replay->books.meetings[number].waiting += waited;
  replay->books.meetings[number].members += took;
  replay->books.devices[logical].waiting += waited;
  replay->books.devices[logical].traffic += took;
  if (observer != NULL) {
    observer->on_meeting(observer->context, logical, number, device->arrival, begin, end);
  }
  return mp_replay_unblock(replay, logical, end);
}

mp_status_t mp_replay_end_meeting(mp_replay_t *replay, mp_meeting_t *meeting, mp_moment_t end) {
  const uint32_t number = meeting->collective;
  const mp_groups_t *groups = mp_replay_collective(replay, number)->groups;
  if (end < meeting->begin) end = meeting->begin;
  replay_traffic_note(&replay->books.meetings[number], meeting->begin, end);
  replay->books.meetings[number].algorithm = meeting->traffic->algorithm;
  meeting->num_arrived = 0;
  for (uint32_t s = 0; s < meeting->traffic->num_stages; ++s) {
    const mp_stage_t *stage = &meeting->traffic->stages[s];
    for (uint32_t i = 0; i < stage->num_transfers; ++i) {
      replay_traffic_count(replay, number, &stage->transfers[i], meeting->begin, end);
    }
  }
  const mp_moment_t begin = meeting->begin;
  for (uint32_t i = groups->offsets[meeting->group]; i < groups->offsets[meeting->group + 1]; ++i) {
    MP_RETURN_IF_ERROR(replay_traffic_release(replay, groups->members[i], number, begin, end));
  }
  return NULL;
}

static mp_status_t replay_traffic_end_pair(mp_replay_t *replay, mp_pair_t *pair, mp_moment_t end) {
  if (end < pair->begin) end = pair->begin;
  replay_traffic_note(&replay->books.meetings[pair->collective], pair->begin, end);
  replay_traffic_count(replay, pair->collective, &pair->transfer, pair->begin, end);
  pair->num_arrived = 0;
  MP_RETURN_IF_ERROR(
      replay_traffic_release(replay, pair->source, pair->collective, pair->begin, end));
  return replay_traffic_release(replay, pair->target, pair->collective, pair->begin, end);
}

static mp_status_t replay_traffic_end_message(mp_replay_t *replay, mp_lane_t *channel,
                                              mp_moment_t end) {
  MP_ASSERT(channel->times.count < channel->begins.count);  // a message ends after it began
  const mp_moment_t begin = channel->begins.items[channel->times.count];
  if (end < begin) end = begin;
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(NULL, &channel->times, end));
  replay_traffic_note(&replay->books.meetings[channel->collective], begin, end);
  replay_traffic_count(replay, channel->collective, &channel->transfer, begin, end);
  if (!channel->is_awaited) return NULL;
  channel->is_awaited = false;
  channel->num_received += 1;
  const mp_replay_observer_t *observer = replay->launch->observer;
  if (observer != NULL) {
    const mp_replay_message_t message = {.logical = channel->target,
                                         .other = channel->source,
                                         .collective = channel->receiver,
                                         .begin = replay->devices[channel->target].arrival,
                                         .end = end};
    observer->on_message(observer->context, &message);
  }
  return replay_traffic_release(replay, channel->target, channel->collective, begin, end);
}

// ---- Beginnings ----

static mp_status_t replay_traffic_message(mp_replay_t *replay, uint32_t number, uint32_t source,
                                          uint32_t target, bool *has, mp_transfer_t *transfer) {
  if (*has) return NULL;
  *has = true;
  return mp_network_message(replay->network, mp_network_device(replay->ids[source]),
                            mp_network_device(replay->ids[target]),
                            (double)mp_message_bytes(mp_replay_collective(replay, number)),
                            transfer);
}

static mp_status_t replay_traffic_start_meeting(mp_replay_t *replay, uint32_t index, double now) {
  mp_meeting_t *meeting = &replay->meetings[index];
  MP_RETURN_IF_ERROR(mp_replay_traffic_of(replay, meeting));
  meeting->stage = 0;
  bool is_over;
  const uint64_t tag = replay_traffic_tag(replay, MP_EVENT_MEETING, index);
  MP_RETURN_IF_ERROR(mp_replay_next_stage(replay->links->flows, meeting, tag, now, &is_over));
  return is_over ? mp_replay_end_meeting(replay, meeting, meeting->begin) : NULL;
}

static mp_status_t replay_traffic_start(mp_replay_t *replay, const mp_replay_event_t *event,
                                        double now) {
  const uint64_t tag = replay_traffic_tag(replay, event->kind, event->index);
  if (event->kind == MP_EVENT_PAIR) {
    mp_pair_t *pair = &replay->pairs[event->index];
    MP_RETURN_IF_ERROR(replay_traffic_message(replay, pair->collective, pair->source, pair->target,
                                              &pair->has_transfer, &pair->transfer));
    return mp_flows_start(replay->links->flows, &pair->transfer, now, tag);
  }
  if (event->kind == MP_EVENT_CHANNEL) {
    mp_lane_t *channel = &replay->channels.items[event->index];
    MP_RETURN_IF_ERROR(replay_traffic_message(replay, channel->collective, channel->source,
                                              channel->target, &channel->has_transfer,
                                              &channel->transfer));
    return mp_flows_start(replay->links->flows, &channel->transfer, now, tag);
  }
  if (event->kind == MP_EVENT_MEETING) {
    return replay_traffic_start_meeting(replay, event->index, now);
  }
  const uint32_t first = replay->first_meeting[event->index];
  const uint32_t count = mp_replay_collective(replay, event->index)->groups->num_groups;
  for (uint32_t i = 0; i < count; ++i) {
    MP_RETURN_IF_ERROR(replay_traffic_start_meeting(replay, first + i, now));
  }
  return NULL;
}

static mp_status_t replay_traffic_end(mp_replay_t *replay, uint64_t tag, double now) {
  const uint32_t index = (uint32_t)tag;
  const mp_moment_t end = mp_moment_of(now);
  switch ((mp_replay_event_kind_t)(tag >> 32 & 0xff)) {
    case MP_EVENT_PAIR:
      return replay_traffic_end_pair(replay, &replay->pairs[index], end);
    case MP_EVENT_CHANNEL:
      return replay_traffic_end_message(replay, &replay->channels.items[index], end);
    case MP_EVENT_ROUND:
    case MP_EVENT_MEETING:
      break;
  }
  mp_meeting_t *meeting = &replay->meetings[index];
  MP_ASSERT(meeting->num_running != 0);
  if (--meeting->num_running != 0) return NULL;
  bool is_over;
  MP_RETURN_IF_ERROR(mp_replay_next_stage(replay->links->flows, meeting, tag, now, &is_over));
  return is_over ? mp_replay_end_meeting(replay, meeting, end) : NULL;
}

// ---- In order of time ----

static mp_status_t replay_traffic_make_flows(const mp_replay_t *replay) {
  const mp_replay_launch_t *launch = replay->launch;
  mp_replay_links_t *links = replay->links;
  if (links->flows != NULL) return NULL;
  MP_RETURN_IF_ERROR(mp_flows_create(replay->network, &links->flows));
  if (launch->log != NULL) mp_flows_record(links->flows, &links->log);
  return mp_flows_yield(links->flows, launch->num_others, launch->others);
}

// The replay with the earliest event, of equal ones the first; NULL: there are no events.
static mp_replay_t *replay_traffic_first(uint32_t count, mp_replay_t *const *replays) {
  mp_replay_t *first = NULL;
  for (uint32_t i = 0; i < count; ++i) {
    mp_replay_t *replay = replays[i];
    if (replay->events.count == 0) continue;
    if (first == NULL || replay->events.items[0].time < first->events.items[0].time) first = replay;
  }
  return first;
}

mp_status_t mp_replay_advance_flows(uint32_t count, mp_replay_t *const *replays, bool *out_any) {
  mp_replay_links_t *links = replays[0]->links;
  mp_replay_t *first = replay_traffic_first(count, replays);
  MP_RETURN_IF_ERROR(replay_traffic_make_flows(replays[0]));
  double next = 0;
  const bool has_flow = mp_flows_next(links->flows, &next);
  *out_any = first != NULL || has_flow;
  const double begin = first != NULL ? mp_moment_seconds(first->events.items[0].time) : 0;
  if (first != NULL && (!has_flow || begin <= next)) {
    const mp_replay_event_t event = mp_replay_pop(first);
    if (begin > links->now) links->now = begin;
    return replay_traffic_start(first, &event, links->now);
  }
  if (!has_flow) return NULL;
  links->now = next;
  double now;
  uint64_t tag;
  while (mp_flows_finish(links->flows, next, &now, &tag)) {
    MP_RETURN_IF_ERROR(replay_traffic_end(replays[mp_replay_member_of(tag)], tag, now));
  }
  return NULL;
}
