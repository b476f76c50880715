// Collectives that go on while the device does something else: it starts them and waits for them
// later. They begin in the order in which they were started, on as many tracks as the chip has.
#include "sim/base/assert.h"
#include "sim/model/clock/replay/replay_impl.h"

// A track on which something goes on.
#define STREAM_IN_USE UINT64_MAX

mp_status_t mp_replay_make_stream(mp_replay_t *replay) {
  const mp_chip_program_t *chip_program = replay->chip_program;
  const size_t count = replay->num_devices;
  replay->started =
      MP_ARENA_ARRAY(replay->arena, mp_started_t, count * chip_program->most_started + 1);
  replay->tracks = MP_ARENA_ARRAY(replay->arena, mp_moment_t, count * chip_program->num_tracks + 1);
  MP_RETURN_IF_NULL(replay->started);
  MP_RETURN_IF_NULL(replay->tracks);
  return NULL;
}

void mp_replay_reset_stream(mp_replay_t *replay) {
  memset(replay->tracks, 0,
         (size_t)replay->num_devices * replay->chip_program->num_tracks * sizeof(*replay->tracks));
}

bool mp_replay_is_started(const mp_replay_t *replay, uint32_t number) {
  return replay->chip_program->collectives[number].overlap != MP_OVERLAP_SYNC;
}

static mp_started_t *replay_stream_of(mp_replay_t *replay, uint32_t logical) {
  return &replay->started[(size_t)logical * replay->chip_program->most_started];
}

static mp_moment_t *replay_stream_tracks(mp_replay_t *replay, uint32_t logical) {
  return &replay->tracks[(size_t)logical * replay->chip_program->num_tracks];
}

// The one of this number; NULL: the device has none.
static mp_started_t *replay_stream_find(mp_replay_t *replay, uint32_t logical, uint32_t number) {
  mp_started_t *started = replay_stream_of(replay, logical);
  for (uint32_t i = 0; i < replay->devices[logical].num_started; ++i) {
    if (started[i].collective == number) return &started[i];
  }
  return NULL;
}

// ---- Beginning ----

static mp_status_t replay_stream_arrive(mp_replay_t *replay, uint32_t logical, mp_started_t *one,
                                        mp_moment_t *track) {
  const mp_moment_t moment = one->ready > *track ? one->ready : *track;
  one->has_arrived = true;
  one->begin = UINT64_MAX;
  *track = STREAM_IN_USE;
  MP_RETURN_IF_ERROR(mp_replay_arrive(replay, logical, one->collective, moment, &one->awaits));
  if (one->awaits != 0) return NULL;
  // The device is in none of its groups.
  one->is_over = true;
  one->begin = one->end = *track = moment;
  return NULL;
}

// Lets what has been started begin, where there is a track for it.
static mp_status_t replay_stream_go_on(mp_replay_t *replay, uint32_t logical) {
  mp_started_t *started = replay_stream_of(replay, logical);
  mp_moment_t *tracks = replay_stream_tracks(replay, logical);
  for (uint32_t i = 0; i < replay->devices[logical].num_started; ++i) {
    if (started[i].has_arrived) continue;
    uint32_t first = 0;
    for (uint32_t t = 1; t < replay->chip_program->num_tracks; ++t) {
      if (tracks[t] < tracks[first]) first = t;
    }
    if (tracks[first] == STREAM_IN_USE) return NULL;
    started[i].track = first;
    MP_RETURN_IF_ERROR(replay_stream_arrive(replay, logical, &started[i], &tracks[first]));
  }
  return NULL;
}

mp_status_t mp_replay_start(mp_replay_t *replay, uint32_t logical, uint32_t number) {
  mp_replay_device_t *device = &replay->devices[logical];
  MP_ASSERT(device->num_started < replay->chip_program->most_started);
  replay_stream_of(replay, logical)[device->num_started++] =
      (mp_started_t){.collective = number, .ready = device->now};
  return replay_stream_go_on(replay, logical);
}

// ---- Ending ----

// What a collective took from work beside it is no more hidden than what the device waits for; what
// exceeds the collective itself, as faults may have it, stays work.
static void replay_stream_lose(mp_replay_t *replay, uint32_t logical, const mp_started_t *one,
                               mp_moment_t exposed) {
  mp_replay_device_books_t *books = &replay->books.devices[logical];
  MP_ASSERT(one->begin <= one->end && exposed <= one->end - one->begin);
  const mp_moment_t hidden = one->end - one->begin - exposed;
  const mp_moment_t lost = one->lost < hidden ? one->lost : hidden;
  replay->books.meetings[one->collective].hidden -= lost;
  books->hidden -= lost;
  books->traffic += lost;
  books->work += one->lost - lost;
}

// The device has waited from `from` on until it was over: forgets it.
static void replay_stream_take(mp_replay_t *replay, uint32_t logical, mp_started_t *one,
                               mp_moment_t from) {
  mp_replay_device_t *device = &replay->devices[logical];
  const mp_replay_observer_t *observer = replay->launch->observer;
  mp_moment_t exposed = 0;
  if (one->end > from) {
    const mp_moment_t begin = one->begin > from ? one->begin : from;
    exposed = one->end - begin;
    mp_replay_meetings_t *met = &replay->books.meetings[one->collective];
    met->waiting += begin - from;
    met->hidden -= one->end - begin;
    replay->books.devices[logical].waiting += begin - from;
    replay->books.devices[logical].traffic += one->end - begin;
    replay->books.devices[logical].hidden -= one->end - begin;
    if (observer != NULL) {
      observer->on_meeting(observer->context, logical, one->collective, from, begin, one->end);
    }
    if (device->now < one->end) device->now = one->end;
  }
  replay_stream_lose(replay, logical, one, exposed);
  MP_ASSERT(device->num_started != 0);
  const mp_started_t *last = replay_stream_of(replay, logical) + --device->num_started;
  memmove(one, one + 1, (size_t)(last - one) * sizeof(*one));
}

void mp_replay_await(mp_replay_t *replay, uint32_t logical, uint32_t number, mp_moment_t lost) {
  mp_replay_device_t *device = &replay->devices[logical];
  const double *slowness = replay->launch->slowness;
  mp_started_t *one = replay_stream_find(replay, logical, number);
  if (one == NULL) return;
  if (slowness != NULL) lost = mp_moment_of(mp_moment_seconds(lost) * slowness[logical]);
  device->now += lost;
  one->lost = lost;
  if (one->is_over) {
    replay_stream_take(replay, logical, one, device->now);
    return;
  }
  mp_replay_block(replay, logical, 1);
  device->awaited = number;
}

// What goes on is taken to be hidden until the device waits for it.
static void replay_stream_count(mp_replay_t *replay, uint32_t logical, const mp_started_t *one) {
  const mp_replay_observer_t *observer = replay->launch->observer;
  MP_ASSERT(one->is_over && one->begin <= one->end);
  const mp_moment_t took = one->end - one->begin;
  replay->books.meetings[one->collective].members += took;
  replay->books.meetings[one->collective].hidden += took;
  replay->books.devices[logical].hidden += took;
  if (observer != NULL) {
    observer->on_stream(observer->context, logical, one->collective, one->begin, one->end);
  }
}

mp_status_t mp_replay_end_started(mp_replay_t *replay, uint32_t logical, uint32_t number,
                                  mp_moment_t begin, mp_moment_t end) {
  mp_replay_device_t *device = &replay->devices[logical];
  mp_started_t *one = replay_stream_find(replay, logical, number);
  MP_ASSERT(one != NULL && one->awaits != 0 && begin <= end);
  if (begin < one->begin) one->begin = begin;
  if (end > one->end) one->end = end;
  if (--one->awaits != 0) return NULL;
  one->is_over = true;
  replay_stream_tracks(replay, logical)[one->track] = one->end;
  replay_stream_count(replay, logical, one);
  if (device->awaited == number) {
    device->awaited = UINT32_MAX;
    replay_stream_take(replay, logical, one, device->arrival);
    MP_RETURN_IF_ERROR(mp_replay_unblock(replay, logical, device->now));
  }
  return replay_stream_go_on(replay, logical);
}
