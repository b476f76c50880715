// Copies of bytes past the caches: every alignment of both ends and every length around a line,
// and nothing written beside them.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sim/numeric/copy.h"
#include "tests/unit/support/unit.h"

enum { ROOM = 4096 };

static void copy_and_compare(size_t to, size_t from, size_t bytes) {
  static _Alignas(64) unsigned char source[ROOM], target[ROOM], wanted[ROOM];
  for (size_t i = 0; i < ROOM; ++i) source[i] = (unsigned char)(i * 31 + i / 251);
  memset(target, 0xee, sizeof(target));
  memset(wanted, 0xee, sizeof(wanted));
  memcpy(wanted + to, source + from, bytes);
  mp_copy_past_caches(target + to, source + from, bytes);
  assert_memory_equal(target, wanted, ROOM);
}

static void test_alignments(void **state) {
  (void)state;
  const size_t lengths[] = {0, 1, 63, 64, 511, 512, 513, 575, 576, 640, 2047, 2048, 3000};
  for (size_t to = 0; to < 65; ++to) {
    for (size_t from = 0; from < 65; from += 3) {
      for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); ++i)
        copy_and_compare(to, from, lengths[i]);
    }
  }
}

static void test_choice(void **state) {
  (void)state;
  assert_true(mp_copy_for(0) == mp_copy_cached);
  assert_true(mp_copy_for(1 << 20) == mp_copy_cached);
  assert_true(mp_copy_for(1e9) == mp_copy_past_caches);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_alignments),
      cmocka_unit_test(test_choice),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
