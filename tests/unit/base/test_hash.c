// Units of sim/base/hash: fingerprints are the same everywhere and tell inputs apart.

#include "sim/base/hash.h"
#include "tests/unit/support/unit.h"

// These values are in caches: changing the function means changing the formats that keep them.
static void values_are_fixed(void **state) {
  (void)state;
  assert_true(mp_hash_bytes(MP_HASH_START, "minipod", 7) == UINT64_C(0x32068367a6ec6f0f));
  assert_true(mp_hash_u64(MP_HASH_START, 42) == UINT64_C(0x4225bd4e30dc3968));
  // From the authors' own table of test values.
  assert_true(mp_hash_fnv1a("", 0) == UINT64_C(0xcbf29ce484222325));
  assert_true(mp_hash_fnv1a("foobar", 6) == UINT64_C(0x85944171f73967e8));
}

static void small_differences_count(void **state) {
  (void)state;
  static const char zeros[16] = {0};
  uint64_t seen[64];
  size_t count = 0;
  for (size_t size = 0; size <= sizeof(zeros); ++size) {
    seen[count++] = mp_hash_bytes(MP_HASH_START, zeros, size);
  }
  for (int bit = 0; bit < 8; ++bit) {
    const char one = (char)(1 << bit);
    seen[count++] = mp_hash_bytes(MP_HASH_START, &one, 1);
  }
  // Where one call ends and the next begins counts.
  seen[count++] = mp_hash_bytes(mp_hash_bytes(MP_HASH_START, "ab", 2), "c", 1);
  seen[count++] = mp_hash_bytes(mp_hash_bytes(MP_HASH_START, "a", 1), "bc", 2);
  for (size_t i = 0; i < count; ++i) {
    for (size_t k = 0; k < i; ++k) assert_true(seen[i] != seen[k]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_are_fixed),
      cmocka_unit_test(small_differences_count),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
