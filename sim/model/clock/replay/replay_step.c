// What a device does at a step by itself: it takes its choices, works, and copies to the memory of
// its host and from it.
#include "sim/base/assert.h"
#include "sim/model/clock/replay/replay_impl.h"

mp_path_cursor_t *mp_replay_cursor(mp_replay_t *replay, uint32_t logical, uint32_t control) {
  MP_ASSERT(control < replay->chip_program->num_controls);
  return &replay->cursors[(size_t)logical * replay->chip_program->num_controls + control];
}

uint64_t mp_replay_take(mp_replay_t *replay, uint32_t logical, uint32_t step, uint32_t control,
                        uint64_t most_zeros, uint64_t most, uint64_t *out_choice) {
  const mp_path_t *path = replay->launch->paths[logical];
  mp_path_cursor_t *cursor = mp_replay_cursor(replay, logical, control);
  uint64_t count = mp_path_next(path, control, cursor, out_choice);
  if (count == 0) return 0;
  if (*out_choice == 0 || *out_choice == MP_PATH_GUESSED) most = most_zeros;
  if (count > most) count = most;
  mp_path_take(path, control, cursor, count);
  if ((*out_choice & MP_PATH_GUESSED) != 0) replay->books.guesses[step] += count;
  *out_choice &= ~MP_PATH_GUESSED;
  return count;
}

void mp_replay_work(mp_replay_t *replay, uint32_t logical, uint32_t number, mp_moment_t time) {
  const mp_replay_launch_t *launch = replay->launch;
  mp_replay_device_t *device = &replay->devices[logical];
  if (launch->slowness != NULL) {
    time = mp_moment_of(mp_moment_seconds(time) * launch->slowness[logical]);
  }
  replay->books.times[number] += time;
  replay->books.devices[logical].work += time;
  if (launch->observer != NULL && time != 0) {
    launch->observer->on_work(launch->observer->context, logical, number, device->now,
                              device->now + time);
  }
  device->now += time;
}

// ---- Copies ----
//
// A device has a stream for each direction, on which they come one after the other. Nothing else
// affects them, so their times are known when they begin.

mp_status_t mp_replay_make_lanes(mp_replay_t *replay) {
  const size_t count = replay->chip_program->num_copies == 0 ? 0 : replay->num_devices;
  replay->copy_ends =
      MP_ARENA_ARRAY(replay->arena, mp_moment_t, count * replay->chip_program->num_copy_slots + 1);
  replay->lanes = MP_ARENA_ARRAY(replay->arena, mp_moment_t, 2 * count + 1);
  MP_RETURN_IF_NULL(replay->copy_ends);
  MP_RETURN_IF_NULL(replay->lanes);
  return NULL;
}

void mp_replay_reset_lanes(mp_replay_t *replay) {
  const size_t count = replay->chip_program->num_copies == 0 ? 0 : replay->num_devices;
  memset(replay->lanes, 0, 2 * count * sizeof(*replay->lanes));
}

static mp_moment_t *replay_step_end_of(mp_replay_t *replay, uint32_t logical,
                                       const mp_chip_copy_t *copy) {
  MP_ASSERT(logical < replay->num_devices && copy->slot < replay->chip_program->num_copy_slots);
  return &replay->copy_ends[(size_t)logical * replay->chip_program->num_copy_slots + copy->slot];
}

// It is taken to be hidden until the device waits for it.
void mp_replay_copy(mp_replay_t *replay, uint32_t logical, uint32_t number) {
  const mp_chip_copy_t *copy = &replay->chip_program->copies[number];
  const mp_replay_observer_t *observer = replay->launch->observer;
  mp_moment_t *lane = &replay->lanes[2 * (size_t)logical + !copy->is_to_host];
  const mp_moment_t now = replay->devices[logical].now, took = mp_moment_of(copy->seconds);
  const mp_moment_t begin = *lane > now ? *lane : now;
  *lane = begin + took;
  *replay_step_end_of(replay, logical, copy) = *lane;
  replay->books.copies[number].count += 1;
  replay->books.copies[number].time += took;
  replay->books.devices[logical].hidden += took;
  if (observer != NULL) observer->on_copy(observer->context, logical, number, begin, *lane);
}

void mp_replay_await_copy(mp_replay_t *replay, uint32_t logical, uint32_t number) {
  const mp_chip_copy_t *copy = &replay->chip_program->copies[number];
  mp_replay_device_t *device = &replay->devices[logical];
  const mp_moment_t end = *replay_step_end_of(replay, logical, copy);
  if (end <= device->now) return;
  const mp_moment_t exposed = end - device->now, took = mp_moment_of(copy->seconds);
  replay->books.copies[number].exposed += exposed;
  replay->books.devices[logical].waiting += exposed;
  replay->books.devices[logical].hidden -= exposed < took ? exposed : took;
  device->now = end;
}
