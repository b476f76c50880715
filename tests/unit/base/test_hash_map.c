// Units of sim/base/hash_map: finding and adding, against a plain list.

#include "sim/base/containers/hash_map.h"

#include <string.h>

#include "sim/base/alloc.h"
#include "sim/base/hash.h"
#include "tests/unit/support/unit.h"

typedef struct {
  uint64_t hash;
  uint32_t key, value;
} entry_t;

typedef MP_HASH_MAP(entry_t) map_t;

static entry_t *find(const map_t *map, uint64_t hash, uint32_t key) {
  entry_t *entry;
  MP_HASH_MAP_EACH(map, hash, entry) {
    if (entry->key == key) break;
  }
  return entry;
}

static void pointers_need_no_comparison(void **state) {
  (void)state;
  enum { COUNT = 1000 };
  static char keys[COUNT * 16];
  map_t map = {0};
  const entry_t *entry;
  assert_null(MP_HASH_MAP_GET(&map, mp_hash_pointer(keys), entry));
  for (uint32_t i = 0; i < COUNT; ++i) {
    const entry_t added = {.hash = mp_hash_pointer(keys + i * 16), .value = i};
    assert_ok(MP_HASH_MAP_ADD(NULL, &map, &added));
  }
  assert_int_equal(map.map.count, COUNT);
  for (uint32_t i = 0; i < COUNT; ++i) {
    assert_non_null(MP_HASH_MAP_GET(&map, mp_hash_pointer(keys + i * 16), entry));
    assert_int_equal(entry->value, i);
    assert_null(MP_HASH_MAP_GET(&map, mp_hash_pointer(keys + i * 16 + 1), entry));
  }
  const entry_t other = {.hash = mp_hash_pointer(keys + 32), .value = 77};
  const entry_t more = {.hash = mp_hash_pointer(keys + 1), .value = 78};
  assert_ok(MP_HASH_MAP_SET(NULL, &map, &other));
  assert_int_equal(map.map.count, COUNT);
  assert_ok(MP_HASH_MAP_SET(NULL, &map, &more));
  assert_int_equal(map.map.count, COUNT + 1);
  assert_int_equal(MP_HASH_MAP_GET(&map, mp_hash_pointer(keys + 32), entry)->value, 77);
  assert_int_equal(MP_HASH_MAP_GET(&map, mp_hash_pointer(keys + 1), entry)->value, 78);
  assert_int_equal(MP_HASH_MAP_GET(&map, mp_hash_pointer(keys + 48), entry)->value, 3);
  MP_HASH_MAP_FREE(&map);
  assert_null(MP_HASH_MAP_GET(&map, mp_hash_pointer(keys), entry));
}

// Keys of one hash, and of hashes that belong to the same place or next to it.
static void equal_hashes_are_distinguished(void **state) {
  (void)state;
  static const uint64_t hashes[] = {7, 7, 8, UINT64_MAX, UINT64_MAX, UINT64_MAX - 1, 0, 0, 1};
  enum { COUNT = sizeof(hashes) / sizeof(hashes[0]) };
  mp_arena_t *arena = NULL;
  assert_ok(mp_arena_create(&arena));
  map_t map = {0};
  for (uint32_t i = 0; i < COUNT; ++i) {
    assert_null(find(&map, hashes[i], i));
    assert_ok(MP_HASH_MAP_ADD(arena, &map, &(entry_t){hashes[i], i, 100 + i}));
  }
  for (uint32_t i = 0; i < COUNT; ++i) {
    const entry_t *entry = find(&map, hashes[i], i);
    assert_non_null(entry);
    assert_int_equal(entry->value, 100 + i);
    assert_null(find(&map, hashes[i], COUNT));
  }
  mp_arena_release(arena);
}

// A long random history with few places, so that entries are in each other's way: the map holds
// what a list of all keys says.
static void random_histories(void **state) {
  (void)state;
  enum { KEYS = 60, STEPS = 20000 };
  static uint32_t values[KEYS];  // 0: not in the map
  map_t map = {0};
  uint32_t count = 0;
  uint64_t random = 1;
  for (uint32_t step = 1; step <= STEPS; ++step) {
    random = mp_hash_u64(random, step);
    const uint32_t key = (uint32_t)(random % KEYS);
    // A quarter of the keys share each of the high bits: long runs, also over the table's end.
    const uint64_t hash = (uint64_t)(key % 4 + 12) << 60 | (key / 8 + 1);
    entry_t *entry = find(&map, hash, key);
    assert_true((entry != NULL) == (values[key] != 0));
    if (entry != NULL) {
      assert_int_equal(entry->value, values[key]);
      values[key] = entry->value = step;
    } else if (random >> 32 & 1) {
      assert_ok(MP_HASH_MAP_ADD(NULL, &map, &(entry_t){hash, key, step}));
      values[key] = step;
      ++count;
    }
    assert_int_equal(map.map.count, count);
    if (random % 97 == 0) {  // another order of all keys
      MP_HASH_MAP_FREE(&map);
      memset(values, 0, sizeof(values));
      count = 0;
    }
    for (uint32_t k = 0; k < KEYS && step % 16 == 0; ++k) {
      entry = find(&map, (uint64_t)(k % 4 + 12) << 60 | (k / 8 + 1), k);
      assert_int_equal(entry == NULL ? 0 : entry->value, values[k]);
    }
  }
  MP_HASH_MAP_FREE(&map);
}

static void reserved_room_does_not_fail(void **state) {
  (void)state;
  map_t map = {0};
  assert_ok(MP_HASH_MAP_RESERVE(NULL, &map, 100));
  mp_alloc_fail_at(1, 1);
  for (uint32_t i = 0; i < 100; ++i) {
    assert_ok(MP_HASH_MAP_ADD(NULL, &map, &(entry_t){mp_hash_u64(1, i), i, i}));
  }
  mp_alloc_fail_at(0, 0);
  for (uint32_t i = 0; i < 100; ++i) assert_non_null(find(&map, mp_hash_u64(1, i), i));
  MP_HASH_MAP_FREE(&map);
}

static void failure_changes_nothing(void **state) {
  (void)state;
  map_t map = {0};
  uint32_t added = 0, failures = 0;
  for (; failures < 3; ++added) {
    mp_alloc_fail_at(1, 0);
    mp_status_t status = MP_HASH_MAP_ADD(NULL, &map, &(entry_t){mp_hash_u64(1, added), added, 1});
    mp_alloc_fail_at(0, 0);
    if (status != NULL) {
      ++failures;
      assert_int_equal(mp_status_code(status), MP_RESOURCE_EXHAUSTED);
      mp_status_release(status);
      assert_int_equal(map.map.count, added);
      assert_ok(MP_HASH_MAP_ADD(NULL, &map, &(entry_t){mp_hash_u64(1, added), added, 1}));
    }
    for (uint32_t i = 0; i <= added; ++i) assert_non_null(find(&map, mp_hash_u64(1, i), i));
  }
  assert_status(MP_HASH_MAP_RESERVE(NULL, &map, UINT32_MAX), MP_RESOURCE_EXHAUSTED, "");
  assert_int_equal(map.map.count, added);
  MP_HASH_MAP_FREE(&map);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pointers_need_no_comparison),
      cmocka_unit_test(equal_hashes_are_distinguished),
      cmocka_unit_test(random_histories),
      cmocka_unit_test(reserved_room_does_not_fail),
      cmocka_unit_test(failure_changes_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
