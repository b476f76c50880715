#include "sim/model/clock/replay/books.h"

mp_status_t mp_books_create(mp_arena_t *arena, const mp_network_t *network,
                            const mp_chip_program_t *chip_program, uint32_t num_devices,
                            mp_replay_books_t *out_books) {
  const uint32_t num_links = chip_program->num_collectives == 0 ? 0 : mp_network_num_links(network);
  *out_books = (mp_replay_books_t){
      .num_steps = chip_program->num_steps,
      .num_collectives = chip_program->num_collectives,
      .num_copies = chip_program->num_copies,
      .num_links = num_links,
      .num_devices = num_devices,
      .counts = MP_ARENA_ARRAY(arena, uint64_t, chip_program->num_steps),
      .times = MP_ARENA_ARRAY(arena, mp_moment_t, chip_program->num_steps),
      .meetings = MP_ARENA_ARRAY(arena, mp_replay_meetings_t, chip_program->num_collectives + 1),
      .copies = MP_ARENA_ARRAY(arena, mp_replay_copies_t, chip_program->num_copies + 1),
      .link_bytes = MP_ARENA_ARRAY(arena, double, num_links + 1),
      .devices = MP_ARENA_ARRAY(arena, mp_replay_device_books_t, num_devices),
  };
  if (chip_program->has_choices) {
    out_books->guesses = MP_ARENA_ARRAY(arena, uint64_t, chip_program->num_steps);
    MP_RETURN_IF_NULL(out_books->guesses);
  }
  MP_RETURN_IF_NULL(out_books->counts);
  MP_RETURN_IF_NULL(out_books->times);
  MP_RETURN_IF_NULL(out_books->meetings);
  MP_RETURN_IF_NULL(out_books->copies);
  MP_RETURN_IF_NULL(out_books->link_bytes);
  MP_RETURN_IF_NULL(out_books->devices);
  return NULL;
}

void mp_books_clear(mp_replay_books_t *books) {
  memset(books->counts, 0, books->num_steps * sizeof(*books->counts));
  memset(books->times, 0, books->num_steps * sizeof(*books->times));
  if (books->guesses != NULL) {
    memset(books->guesses, 0, books->num_steps * sizeof(*books->guesses));
  }
  memset(books->meetings, 0, books->num_collectives * sizeof(*books->meetings));
  memset(books->copies, 0, books->num_copies * sizeof(*books->copies));
  memset(books->link_bytes, 0, books->num_links * sizeof(*books->link_bytes));
  memset(books->devices, 0, books->num_devices * sizeof(*books->devices));
  books->is_cut = false;
}

void mp_meetings_add(mp_replay_meetings_t *met, const mp_replay_meetings_t *more, uint64_t times) {
  met->count += times * more->count;
  met->traffic += times * more->traffic;
  met->waiting += times * more->waiting;
  met->members += times * more->members;
  met->hidden += times * more->hidden;
  if (more->longest > met->longest) met->longest = more->longest;
  if (more->count != 0) met->algorithm = more->algorithm;
}

void mp_copies_add(mp_replay_copies_t *copies, const mp_replay_copies_t *more, uint64_t times) {
  copies->count += times * more->count;
  copies->time += times * more->time;
  copies->exposed += times * more->exposed;
}

void mp_device_books_add(mp_replay_device_books_t *books, const mp_replay_device_books_t *more,
                         uint64_t times) {
  books->work += times * more->work;
  books->waiting += times * more->waiting;
  books->traffic += times * more->traffic;
  books->hidden += times * more->hidden;
}

void mp_books_add(mp_replay_books_t *books, const mp_replay_books_t *more, uint64_t times) {
  for (uint32_t i = 0; i < books->num_steps; ++i) {
    books->counts[i] += times * more->counts[i];
    books->times[i] += times * more->times[i];
  }
  for (uint32_t i = 0; i < books->num_steps && books->guesses != NULL; ++i) {
    books->guesses[i] += times * more->guesses[i];
  }
  for (uint32_t i = 0; i < books->num_collectives; ++i) {
    mp_meetings_add(&books->meetings[i], &more->meetings[i], times);
  }
  for (uint32_t i = 0; i < books->num_copies; ++i) {
    mp_copies_add(&books->copies[i], &more->copies[i], times);
  }
  for (uint32_t i = 0; i < books->num_links; ++i) {
    books->link_bytes[i] += (double)times * more->link_bytes[i];
  }
  for (uint32_t i = 0; i < books->num_devices; ++i) {
    mp_device_books_add(&books->devices[i], &more->devices[i], times);
  }
  books->is_cut |= more->is_cut;
}

mp_replay_device_books_t mp_books_total(const mp_replay_books_t *books) {
  mp_replay_device_books_t total = {0};
  for (uint32_t i = 0; i < books->num_devices; ++i) {
    mp_device_books_add(&total, &books->devices[i], 1);
  }
  return total;
}
