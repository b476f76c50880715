// What a device does at a step: it takes its choices, and works.
#include "sim/model/clock/replay_impl.h"

uint64_t mp_replay_take(mp_replay_t *replay, uint32_t logical, uint32_t step, uint32_t control,
                        uint64_t most_zeros, uint64_t most, uint64_t *out_choice) {
  const mp_path_t *path = replay->launch->paths[logical];
  mp_path_cursor_t *cursor =
      &replay->cursors[(size_t)logical * replay->twin->num_controls + control];
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
