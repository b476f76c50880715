// Packing: places that are in use at the same time do not overlap, and the arena is as small as one
// of the two orders makes it.
#include "sim/plan/plan.h"
#include "tests/unit/support/unit.h"

enum { UNIT = 64 };

static uint64_t pack(mp_place_t *places, uint32_t count, const mp_lender_t *lenders,
                     uint32_t num_lenders) {
  mp_arena_t *scratch = NULL;
  uint64_t bytes = 0;
  assert_ok(mp_arena_create(&scratch));
  assert_ok(mp_places_pack(scratch, places, count, lenders, num_lenders, &bytes));
  mp_arena_release(scratch);
  for (uint32_t i = 0; i < count; ++i) {
    const mp_place_t *a = &places[i];
    assert_true(a->lender >= 0 || a->offset + a->bytes <= bytes);
    for (uint32_t j = 0; j < i; ++j) {
      const mp_place_t *b = &places[j];
      const bool together = a->lender == b->lender && a->start <= b->end && b->start <= a->end;
      assert_true(!together || a->offset + a->bytes <= b->offset ||
                  b->offset + b->bytes <= a->offset);
    }
  }
  return bytes;
}

// In the order of starts the last place finds two units free, and needs three.
static void the_largest_come_first_where_starts_leave_gaps(void **state) {
  (void)state;
  mp_place_t places[] = {{.start = 0, .end = 1, .bytes = 2 * UNIT},
                         {.start = 0, .end = 9, .bytes = 2 * UNIT},
                         {.start = 2, .end = 9, .bytes = 3 * UNIT}};
  assert_int_equal(pack(places, 3, NULL, 0), 5 * UNIT);
}

// No order gets along with the six units that are in use at once; that of bytes needs eight.
static void starts_come_first_where_that_is_better(void **state) {
  (void)state;
  mp_place_t places[] = {{.start = 0, .end = 5, .bytes = 2 * UNIT},
                         {.start = 2, .end = 3, .bytes = 4 * UNIT},
                         {.start = 5, .end = 9, .bytes = 2 * UNIT},
                         {.start = 7, .end = 9, .bytes = 3 * UNIT}};
  assert_int_equal(pack(places, 4, NULL, 0), 7 * UNIT);
}

// What lies in the memory of a result stays there, and takes no room in the arena.
static void borrowed_memory_is_none_of_the_arena(void **state) {
  (void)state;
  mp_place_t places[] = {{.start = 0, .end = 1, .bytes = 8 * UNIT},
                         {.start = 0, .end = 1, .bytes = 2 * UNIT},
                         {.start = 0, .end = 9, .bytes = 2 * UNIT},
                         {.start = 2, .end = 9, .bytes = 3 * UNIT}};
  const mp_lender_t lender = {.until = 2, .bytes = 8 * UNIT};
  assert_int_equal(pack(places, 4, &lender, 1), 5 * UNIT);
  assert_int_equal(places[0].lender, 0);
}

// Many places of sizes and times without order, and more than are packed twice.
static void no_two_places_overlap(void **state) {
  (void)state;
  static mp_place_t places[1500];
  uint32_t seed = 1;
  for (uint32_t count = 3; count <= 1500; count = count < 300 ? count + 7 : count + 600) {
    uint64_t all = 0;
    for (uint32_t i = 0; i < count; ++i) {
      seed = seed * 1664525u + 1013904223u;
      const uint32_t start = seed >> 8 & 1023;
      places[i] = (mp_place_t){
          .start = start, .end = start + (seed >> 18 & 127), .bytes = 1 + (seed >> 4 & 4095)};
      all += places[i].bytes + UNIT;
    }
    assert_in_range(pack(places, count, NULL, 0), 1, all);
  }
}

static void a_place_is_found_by_the_commands_that_name_it(void **state) {
  (void)state;
  const mp_place_t places[] = {
      {.offset = 0, .lender = -1, .first_command = 1, .last_command = 3},
      {.offset = 64, .lender = -1, .first_command = 0, .last_command = 9},
      {.offset = 0, .lender = -1, .first_command = 4, .last_command = 4},
      {.offset = 128, .lender = 0, .first_command = 2, .last_command = 2},  // a result's memory
      {.offset = 192, .lender = -1, .first_command = UINT32_MAX, .last_command = 0},
      // Two at once, of which nothing is certain.
      {.offset = 256, .lender = -1, .first_command = 1, .last_command = 5},
      {.offset = 256, .lender = -1, .first_command = 5, .last_command = 7},
  };
  mp_arena_t *scratch = NULL;
  mp_place_finder_t *finder = NULL;
  assert_ok(mp_arena_create(&scratch));
  assert_ok(mp_place_finder_create(scratch, places, 7, &finder));
  assert_null(mp_place_find(finder, 0, 0));
  assert_ptr_equal(mp_place_find(finder, 0, 1), &places[0]);
  assert_ptr_equal(mp_place_find(finder, 0, 3), &places[0]);
  assert_ptr_equal(mp_place_find(finder, 0, 4), &places[2]);
  assert_null(mp_place_find(finder, 0, 5));
  assert_ptr_equal(mp_place_find(finder, 64, 9), &places[1]);
  assert_null(mp_place_find(finder, 128, 2));
  assert_null(mp_place_find(finder, 192, 0));
  for (uint32_t command = 0; command < 9; ++command) {
    assert_null(mp_place_find(finder, 256, command));
  }
  mp_arena_release(scratch);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_largest_come_first_where_starts_leave_gaps),
      cmocka_unit_test(starts_come_first_where_that_is_better),
      cmocka_unit_test(borrowed_memory_is_none_of_the_arena),
      cmocka_unit_test(no_two_places_overlap),
      cmocka_unit_test(a_place_is_found_by_the_commands_that_name_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
