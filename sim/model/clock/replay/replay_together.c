// All groups of a collective at once.
//
// In most programs all devices come to the same collective at the same time. Then nothing else can
// happen before it ends, and how long each group takes depends on the collective alone: it is
// computed once. The same holds if something that uses other links overlaps with it.
#include "sim/base/alloc.h"
#include "sim/model/clock/replay/replay_impl.h"
#include "sim/model/network/traffic/traffic.h"

static uint32_t replay_together_num_groups(const mp_replay_t *replay, uint32_t number) {
  return mp_replay_collective(replay, number)->groups->num_groups;
}

// How long each group takes when all groups begin at the same time.
static mp_status_t replay_together_time(mp_replay_t *replay, uint32_t number, mp_flows_t *flows,
                                        mp_moment_t *durations) {
  const uint32_t first = replay->first_meeting[number];
  const uint32_t count = replay_together_num_groups(replay, number);
  for (uint32_t i = 0; i < count; ++i) {
    mp_meeting_t *meeting = &replay->meetings[first + i];
    MP_RETURN_IF_ERROR(mp_replay_traffic_of(replay, meeting));
    meeting->stage = 0;
    bool is_over;
    MP_RETURN_IF_ERROR(mp_replay_next_stage(flows, meeting, i, 0, &is_over));
  }
  double next, now;
  uint64_t tag;
  while (mp_flows_next(flows, &next)) {
    while (mp_flows_finish(flows, next, &now, &tag)) {
      const uint32_t i = (uint32_t)tag;
      mp_meeting_t *meeting = &replay->meetings[first + i];
      if (--meeting->num_running != 0) continue;
      bool is_over;
      MP_RETURN_IF_ERROR(mp_replay_next_stage(flows, meeting, i, now, &is_over));
      if (is_over) durations[i] = mp_moment_of(now);
    }
  }
  return NULL;
}

static mp_status_t replay_together_know(mp_replay_t *replay, uint32_t number) {
  if (replay->together[number] != NULL) return NULL;
  mp_moment_t *durations =
      MP_ARENA_ARRAY(replay->arena, mp_moment_t, replay_together_num_groups(replay, number) + 1);
  MP_RETURN_IF_NULL(durations);
  mp_flows_t *flows = NULL;
  MP_RETURN_IF_ERROR(mp_flows_create(replay->network, &flows));
  mp_status_t status = replay_together_time(replay, number, flows, durations);
  mp_flows_release(flows);
  if (status == NULL) replay->together[number] = durations;
  return status;
}

// ---- Neighbours ----

// Whether a collective has links to itself while it goes on.
typedef enum { FREEDOM_UNKNOWN, FREEDOM_NONE, FREEDOM_FULL } freedom_t;

static bool replay_together_meets(mp_chip_step_kind_t kind, uint32_t num_tracks) {
  return kind == MP_CHIP_STEP_MEET || kind == MP_CHIP_STEP_SEND || kind == MP_CHIP_STEP_RECV ||
         (kind == MP_CHIP_STEP_START && num_tracks > 1);
}

// A collective that is started overlaps with those whose steps lie before the one that waits.
mp_status_t mp_replay_find_neighbours(mp_replay_t *replay) {
  const mp_chip_program_t *chip_program = replay->chip_program;
  replay->freedom = MP_ARENA_ARRAY(replay->arena, uint8_t, chip_program->num_collectives + 1);
  MP_RETURN_IF_NULL(replay->freedom);
  for (uint32_t s = 0; s < chip_program->num_steps; ++s) {
    const mp_chip_step_t *start = &chip_program->steps[s];
    if (start->kind != MP_CHIP_STEP_START) continue;
    for (uint32_t i = s + 1; i < chip_program->num_steps; ++i) {
      const mp_chip_step_t *step = &chip_program->steps[i];
      if (step->kind == MP_CHIP_STEP_DONE && step->collective == start->collective) break;
      if (!replay_together_meets(step->kind, chip_program->num_tracks)) continue;
      const mp_neighbours_t pair = {start->collective, step->collective};
      MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(replay->arena, &replay->neighbours, pair));
    }
  }
  return NULL;
}

// The links that a collective uses, each marked.
typedef struct {
  uint8_t *marks;
  bool is_shared;  // some link was marked before
  bool is_marking;
} links_t;

static void replay_together_visit(void *context, const mp_transfer_t *transfer) {
  links_t *links = context;
  for (uint32_t u = 0; u < transfer->num_uses; ++u) {
    uint8_t *mark = &links->marks[transfer->uses[u].link];
    if (links->is_marking) *mark = 1;
    links->is_shared |= !links->is_marking && *mark != 0;
  }
}

static mp_status_t replay_together_mark(mp_replay_t *replay, uint32_t number, links_t *links) {
  return mp_network_visit_round(replay->network, mp_replay_collective(replay, number), replay->ids,
                                replay_together_visit, links);
}

// Whether none of the collectives beside this one uses a link that it does.
static mp_status_t replay_together_find_freedom(mp_replay_t *replay, uint32_t number,
                                                uint8_t *marks) {
  links_t links = {.marks = marks, .is_marking = true};
  MP_RETURN_IF_ERROR(replay_together_mark(replay, number, &links));
  links.is_marking = false;
  for (uint32_t i = 0; i < replay->neighbours.count && !links.is_shared; ++i) {
    const mp_neighbours_t *pair = &replay->neighbours.items[i];
    if (pair->a != number && pair->b != number) continue;
    const uint32_t other = pair->a == number ? pair->b : pair->a;
    MP_RETURN_IF_ERROR(replay_together_mark(replay, other, &links));
  }
  replay->freedom[number] = links.is_shared ? FREEDOM_NONE : FREEDOM_FULL;
  return NULL;
}

static mp_status_t replay_together_is_free(mp_replay_t *replay, uint32_t number, bool *out_is) {
  if (replay->freedom[number] == FREEDOM_UNKNOWN) {
    uint8_t *marks = mp_calloc((size_t)mp_network_num_links(replay->network) + 1, 1);
    MP_RETURN_IF_NULL(marks);
    mp_status_t status = replay_together_find_freedom(replay, number, marks);
    mp_free(marks);
    MP_RETURN_IF_ERROR(status);
  }
  *out_is = replay->freedom[number] == FREEDOM_FULL;
  return NULL;
}

// ---- Rounds ----

// With other events to come they have to be rounds as well: devices are in step then, and what is
// beside the round is what the program has there.
mp_status_t mp_replay_is_alone(mp_replay_t *replay, bool *out_is_alone) {
  const mp_replay_event_t *first = &replay->events.items[0];
  *out_is_alone = false;
  if (first->kind != MP_EVENT_ROUND || replay->launch->log != NULL) return NULL;
  if (replay->links->flows != NULL && mp_flows_count(replay->links->flows) != 0) return NULL;
  for (uint32_t i = 1; i < replay->events.count; ++i) {
    if (replay->events.items[i].kind != MP_EVENT_ROUND) return NULL;
  }
  *out_is_alone = replay->events.count == 1;
  if (*out_is_alone) return NULL;
  return replay_together_is_free(replay, first->index, out_is_alone);
}

mp_status_t mp_replay_do_together(mp_replay_t *replay) {
  const mp_replay_event_t event = mp_replay_pop(replay);
  const uint32_t number = event.index;
  const uint32_t count = replay_together_num_groups(replay, number);
  MP_RETURN_IF_ERROR(replay_together_know(replay, number));
  for (uint32_t i = 0; i < count; ++i) {
    mp_meeting_t *meeting = &replay->meetings[replay->first_meeting[number] + i];
    MP_RETURN_IF_ERROR(
        mp_replay_end_meeting(replay, meeting, event.time + replay->together[number][i]));
  }
  return NULL;
}
