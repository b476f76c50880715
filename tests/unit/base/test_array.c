// Units of sim/base/array: growing arrays on the heap and in an arena.

#include "sim/base/containers/array.h"

#include <string.h>

#include "tests/unit/support/unit.h"

typedef struct {
  uint32_t number;
  const char *name;
} item_t;

typedef MP_ARRAY(item_t) items_t;

enum { COUNT = 1000 };

static void fill_and_check(mp_arena_t *arena, items_t *items) {
  for (uint32_t i = 0; i < COUNT; ++i) {
    assert_ok(MP_ARRAY_PUSH(arena, items, (item_t){i, "name"}));
    assert_int_equal(items->count, i + 1);
    assert_true(items->capacity >= items->count);
  }
  for (uint32_t i = 0; i < COUNT; ++i) {
    assert_int_equal(items->items[i].number, i);
    assert_string_equal(items->items[i].name, "name");
  }
}

static void grows_on_the_heap(void **state) {
  (void)state;
  items_t items = {0};
  fill_and_check(NULL, &items);
  MP_ARRAY_FREE(&items);
  assert_null(items.items);
  assert_int_equal(items.count, 0);
  fill_and_check(NULL, &items);  // usable again
  MP_ARRAY_FREE(&items);
}

static void grows_in_an_arena(void **state) {
  (void)state;
  mp_arena_t *arena = NULL;
  assert_ok(mp_arena_create(&arena));
  items_t items = {0};
  fill_and_check(arena, &items);
  // What doubling left behind is less than what is in use.
  assert_true(mp_arena_bytes(arena) < 2 * items.capacity * sizeof(item_t));
  mp_arena_release(arena);
}

static void reserve_makes_room_once(void **state) {
  (void)state;
  MP_ARRAY(uint64_t) numbers = {0};
  assert_ok(MP_ARRAY_RESERVE(NULL, &numbers, 0));
  assert_null(numbers.items);
  assert_ok(MP_ARRAY_RESERVE(NULL, &numbers, 100));
  assert_true(numbers.capacity >= 100);
  assert_int_equal(numbers.count, 0);
  const uint64_t *before = numbers.items;
  mp_alloc_fail_at(1, 1);
  for (uint64_t i = 0; i < 100; ++i) assert_ok(MP_ARRAY_PUSH(NULL, &numbers, i));
  mp_alloc_fail_at(0, 0);
  assert_ptr_equal(numbers.items, before);
  MP_ARRAY_FREE(&numbers);
}

static void the_value_is_evaluated_once(void **state) {
  (void)state;
  MP_ARRAY(int) numbers = {0};
  int next = 0;
  for (int i = 0; i < 20; ++i) assert_ok(MP_ARRAY_PUSH(NULL, &numbers, next++));
  // After the room is made, so that it may come from the array itself.
  for (int i = 0; i < 20; ++i) assert_ok(MP_ARRAY_PUSH(NULL, &numbers, numbers.items[i]));
  for (int i = 0; i < 40; ++i) assert_int_equal(numbers.items[i], i % 20);
  MP_ARRAY_FREE(&numbers);
}

static void failure_changes_nothing(void **state) {
  (void)state;
  items_t items = {0};
  mp_alloc_fail_at(1, 0);
  assert_status(MP_ARRAY_PUSH(NULL, &items, (item_t){1, "lost"}), MP_RESOURCE_EXHAUSTED, "");
  assert_int_equal(items.count, 0);
  assert_int_equal(items.capacity, 0);
  assert_ok(MP_ARRAY_PUSH(NULL, &items, (item_t){2, "kept"}));
  while (items.count < items.capacity) assert_ok(MP_ARRAY_PUSH(NULL, &items, items.items[0]));
  const items_t before = items;
  mp_alloc_fail_at(1, 0);
  assert_status(MP_ARRAY_PUSH(NULL, &items, (item_t){3, "lost"}), MP_RESOURCE_EXHAUSTED, "");
  assert_memory_equal(&items, &before, sizeof(before));
  assert_int_equal(items.items[0].number, 2);
  // More than can be counted, and more bytes than there can be.
  assert_status(MP_ARRAY_RESERVE(NULL, &items, UINT32_MAX), MP_RESOURCE_EXHAUSTED, "");
  mp_arena_t *arena = NULL;
  assert_ok(mp_arena_create(&arena));
  mp_arena_set_limit(arena, 32);
  items_t limited = {0};
  assert_status(MP_ARRAY_PUSH(arena, &limited, items.items[0]), MP_RESOURCE_EXHAUSTED, "");
  mp_arena_release(arena);
  MP_ARRAY_FREE(&items);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(grows_on_the_heap),       cmocka_unit_test(grows_in_an_arena),
      cmocka_unit_test(reserve_makes_room_once), cmocka_unit_test(the_value_is_evaluated_once),
      cmocka_unit_test(failure_changes_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
