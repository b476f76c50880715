// Files that are compressed as they are written.

#include "sim/base/os/gzip.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/os/system.h"
#include "tests/unit/support/unit.h"

static void names_say_what_is_compressed(void **state) {
  (void)state;
  assert_true(mp_gzip_is_named("t.json.gz"));
  assert_false(mp_gzip_is_named("t.json"));
  assert_false(mp_gzip_is_named(".gz"));
  assert_false(mp_gzip_is_named(""));
}

// What has been flushed is in the file, as a stream whose beginning every reader takes.
static void what_was_flushed_is_on_disk(void **state) {
  (void)state;
  char path[] = "/tmp/minipod-gzip-XXXXXX";
  const int descriptor = mkstemp(path);
  assert_true(descriptor >= 0);
  close(descriptor);
  FILE *file = mp_fopen_out(path, "wb");
  assert_non_null(file);
  FILE *stream;
  assert_ok(mp_gzip_open(file, &stream));
  for (int i = 0; i < 1000; ++i) assert_true(fputs("the same line\n", stream) >= 0);
  assert_int_equal(fflush(stream), 0);
  FILE *reader = mp_fopen(path, "rb");
  unsigned char bytes[4096];
  const size_t size = fread(bytes, 1, sizeof(bytes), reader);
  (void)fclose(reader);
  assert_in_range(size, 20, 1000);
  assert_int_equal(bytes[0], 0x1f);  // RFC 1952, 2.3.1: the two bytes of a member, and deflate
  assert_int_equal(bytes[1], 0x8b);
  assert_int_equal(bytes[2], 8);
  assert_int_equal(fclose(stream), 0);
  unlink(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_say_what_is_compressed),
      cmocka_unit_test(what_was_flushed_is_on_disk),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
