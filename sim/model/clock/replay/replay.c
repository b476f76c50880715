#include "sim/model/clock/replay/replay.h"

#include "sim/base/alloc.h"
#include "sim/model/clock/replay/replay_impl.h"

// ---- Making ----

static mp_status_t replay_make(mp_replay_t *replay) {
  const mp_chip_program_t *chip_program = replay->chip_program;
  MP_RETURN_IF_ERROR(mp_arena_create(&replay->arena));
  replay->devices = MP_ARENA_ARRAY(replay->arena, mp_replay_device_t, replay->num_devices);
  replay->cursors = MP_ARENA_ARRAY(replay->arena, mp_path_cursor_t,
                                   (size_t)replay->num_devices * chip_program->num_controls + 1);
  MP_RETURN_IF_NULL(replay->cursors);
  MP_RETURN_IF_NULL(replay->devices);
  MP_RETURN_IF_ERROR(mp_books_create(replay->arena, replay->network, chip_program,
                                     replay->num_devices, &replay->books));
  MP_RETURN_IF_ERROR(mp_replay_make_stream(replay));
  MP_RETURN_IF_ERROR(mp_replay_make_lanes(replay));
  MP_RETURN_IF_ERROR(mp_replay_find_neighbours(replay));
  return mp_replay_make_meetings(replay);
}

mp_status_t mp_replay_create(mp_network_t *network, const mp_chip_program_t *chip_program,
                             uint32_t num_devices, const int32_t *ids, mp_replay_t **out_replay) {
  mp_replay_t *replay = mp_calloc(1, sizeof(*replay));
  MP_RETURN_IF_NULL(replay);
  replay->network = network;
  replay->chip_program = chip_program;
  replay->num_devices = num_devices;
  replay->ids = ids;
  mp_status_t status = replay_make(replay);
  if (status != NULL) {
    mp_replay_release(replay);
    return status;
  }
  *out_replay = replay;
  return NULL;
}

void mp_replay_release(mp_replay_t *replay) {
  if (replay == NULL) return;
  mp_replay_free_meetings(replay);
  mp_arena_release(replay->arena);
  mp_free(replay);
}

const mp_replay_books_t *mp_replay_books(const mp_replay_t *replay) {
  return &replay->books;
}

// ---- Walking ----

// What a device does at a step where its path says nothing: a loop goes round as often as the
// program says, or once. The cursor is behind the path's choices, and counts the rounds.
static uint64_t replay_guess(mp_replay_t *replay, mp_path_cursor_t *cursor, int64_t rounds) {
  replay->books.is_cut = true;
  const bool is_over = cursor->used >= (rounds < 0 ? 1 : (uint64_t)rounds);
  cursor->used = is_over ? 0 : cursor->used + 1;
  return is_over;
}

static uint64_t replay_choose(mp_replay_t *replay, uint32_t logical, uint32_t number) {
  uint64_t choice;
  const mp_chip_step_t *step = &replay->chip_program->steps[number];
  const uint32_t control = step->op->control;
  const bool is_known = mp_replay_take(replay, logical, number, control, 1, 1, &choice) != 0;
  if (is_known) return choice;
  return replay_guess(replay, mp_replay_cursor(replay, logical, control), step->rounds);
}

static uint32_t replay_next_step(mp_replay_t *replay, uint32_t logical, uint32_t number) {
  const mp_chip_step_t *step = &replay->chip_program->steps[number];
  uint64_t choice;
  switch (step->kind) {
    case MP_CHIP_STEP_JUMP:
      return step->targets[0];
    case MP_CHIP_STEP_BRANCH:
      return replay_choose(replay, logical, number) != 0 ? step->targets[0] : number + 1;
    case MP_CHIP_STEP_SWITCH:
      choice = replay_choose(replay, logical, number);
      return step->targets[choice < step->num_targets ? choice : step->num_targets - 1];
    case MP_CHIP_STEP_LOCAL:
      return step->targets[0];
    case MP_CHIP_STEP_WORK:
    case MP_CHIP_STEP_MEET:
    case MP_CHIP_STEP_SEND:
    case MP_CHIP_STEP_RECV:
    case MP_CHIP_STEP_START:
    case MP_CHIP_STEP_DONE:
    case MP_CHIP_STEP_COPY:
    case MP_CHIP_STEP_AWAIT:
    case MP_CHIP_STEP_PART:
    case MP_CHIP_STEP_END:
      break;
  }
  return number + 1;
}

// Lets the device go on until it is blocked or over.
static mp_status_t replay_walk(mp_replay_t *replay, uint32_t logical) {
  mp_replay_device_t *device = &replay->devices[logical];
  while (device->awaits == 0 && !device->is_over) {
    const uint32_t number = device->step;
    const mp_chip_step_t *step = &replay->chip_program->steps[number];
    replay->books.counts[number] += 1;
    if (step->kind == MP_CHIP_STEP_END) {
      device->is_over = true;
      return NULL;
    }
    if (step->kind == MP_CHIP_STEP_WORK) mp_replay_work(replay, logical, number, step->time);
    if (step->kind == MP_CHIP_STEP_LOCAL) mp_replay_local(replay, logical, step->flow);
    device->step = replay_next_step(replay, logical, number);
    if (step->kind == MP_CHIP_STEP_MEET || step->kind == MP_CHIP_STEP_SEND ||
        step->kind == MP_CHIP_STEP_RECV) {
      MP_RETURN_IF_ERROR(mp_replay_meet(replay, logical, step));
    }
    if (step->kind == MP_CHIP_STEP_START) {
      MP_RETURN_IF_ERROR(mp_replay_start(replay, logical, step->collective));
    }
    if (step->kind == MP_CHIP_STEP_DONE)
      mp_replay_await(replay, logical, step->collective, step->time);
    if (step->kind == MP_CHIP_STEP_COPY) mp_replay_copy(replay, logical, step->copy);
    if (step->kind == MP_CHIP_STEP_AWAIT) mp_replay_await_copy(replay, logical, step->copy);
  }
  return NULL;
}

// Does what comes next in time. `out_any` false: nothing is under way.
static mp_status_t replay_advance(uint32_t count, mp_replay_t *const *replays, bool *out_any) {
  bool is_alone = false;
  for (uint32_t i = 0; i < count; ++i) MP_RETURN_IF_ERROR(mp_replay_flush(replays[i]));
  *out_any = true;
  if (count == 1 && replays[0]->events.count != 0) {
    MP_RETURN_IF_ERROR(mp_replay_is_alone(replays[0], &is_alone));
  }
  return is_alone ? mp_replay_do_together(replays[0])
                  : mp_replay_advance_flows(count, replays, out_any);
}

static void replay_begin(mp_replay_t *replay, const mp_replay_launch_t *launch,
                         mp_replay_links_t *links, uint32_t member) {
  replay->launch = launch;
  replay->links = links;
  replay->member = member;
  mp_books_clear(&replay->books);
  memset(
      replay->cursors, 0,
      (size_t)replay->num_devices * replay->chip_program->num_controls * sizeof(*replay->cursors));
  mp_replay_reset_meetings(replay);
  mp_replay_reset_stream(replay);
  mp_replay_reset_lanes(replay);
  for (uint32_t i = 0; i < replay->num_devices; ++i) {
    const bool is_out = launch->takes_part != NULL && !launch->takes_part[i];
    replay->devices[i] =
        (mp_replay_device_t){.now = launch->starts[i], .awaited = UINT32_MAX, .is_over = is_out};
  }
}

static mp_status_t replay_go_on(mp_replay_t *replay) {
  for (uint32_t i = 0; i < replay->ready.count; ++i) {
    MP_RETURN_IF_ERROR(replay_walk(replay, replay->ready.items[i]));
  }
  replay->ready.count = 0;
  return NULL;
}

static void replay_end(mp_replay_t *replay, mp_moment_t *ends) {
  for (uint32_t i = 0; i < replay->num_devices; ++i) {
    // A device that is still blocked waits for something that never comes: the launch has failed
    // there.
    replay->books.is_cut |= !replay->devices[i].is_over;
    ends[i] = replay->devices[i].now;
  }
}

static mp_status_t replay_run_on(mp_replay_links_t *links, uint32_t count,
                                 mp_replay_t *const *replays, const mp_replay_launch_t *launches,
                                 mp_moment_t *const *ends) {
  for (uint32_t r = 0; r < count; ++r) {
    replay_begin(replays[r], &launches[r], links, r);
    for (uint32_t i = 0; i < replays[r]->num_devices; ++i) {
      MP_RETURN_IF_ERROR(replay_walk(replays[r], i));
    }
  }
  bool is_any = true;
  while (is_any) {
    MP_RETURN_IF_ERROR(replay_advance(count, replays, &is_any));
    for (uint32_t r = 0; r < count; ++r) MP_RETURN_IF_ERROR(replay_go_on(replays[r]));
  }
  for (uint32_t r = 0; r < count; ++r) replay_end(replays[r], ends[r]);
  return NULL;
}

// Gives each launch what it has sent.
static void replay_share_log(const mp_replay_links_t *links, uint32_t count,
                             const mp_replay_launch_t *launches) {
  for (uint32_t i = 0; i < count; ++i) launches[i].log->is_short |= links->log.is_short;
  for (uint32_t i = 0; i < links->log.spans.count; ++i) {
    const mp_flows_span_t *span = &links->log.spans.items[i];
    mp_flows_log_t *log = launches[mp_replay_member_of(span->tag)].log;
    mp_status_t status = MP_ARRAY_PUSH(NULL, &log->spans, *span);
    log->is_short |= status != NULL;
    mp_status_release(status);
  }
}

mp_status_t mp_replay_run_beside(uint32_t count, mp_replay_t *const *replays,
                                 const mp_replay_launch_t *launches, mp_moment_t *const *ends) {
  mp_replay_links_t links = {0};
  mp_status_t status = replay_run_on(&links, count, replays, launches, ends);
  mp_flows_release(links.flows);
  if (status == NULL && launches[0].log != NULL) replay_share_log(&links, count, launches);
  MP_ARRAY_FREE(&links.log.spans);
  return status;
}

mp_status_t mp_replay_run(mp_replay_t *replay, const mp_replay_launch_t *launch,
                          mp_moment_t *ends) {
  return mp_replay_run_beside(1, &replay, launch, &ends);
}
