// Segments: payload that several processes share, and memory that comes back.

#include "collectives/transport/segment.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/base/alloc.h"
#include "tests/unit/support/unit.h"

static mp_segment_t *make(void) {
  mp_segment_t *segment = NULL;
  assert_ok(mp_segment_create(2, 2, &segment));
  return segment;
}

// Memory that the segment's file really has.
static size_t used_bytes(const mp_segment_t *segment) {
  struct stat found;
  assert_int_equal(fstat((int)mp_segment_address(segment).fd, &found), 0);
  return (size_t)found.st_blocks * 512;
}

static void gives_aligned_memory_of_any_size(void **state) {
  (void)state;
  mp_segment_t *segment = make();
  enum { COUNT = 60 };
  mp_payload_block_t *block[COUNT];
  for (size_t i = 0; i < COUNT; ++i) {
    size_t bytes = i * i * i * 37;
    block[i] = mp_segment_take(segment, bytes);
    assert_non_null(block[i]);
    assert_int_equal(block[i]->payload.bytes, bytes);
    assert_int_equal((uintptr_t)mp_payload_block_data(block[i]) % 64, 0);
    memset(mp_payload_block_data(block[i]), (int)i, bytes);
  }
  for (size_t i = 0; i < COUNT; ++i) {
    const unsigned char *data = mp_payload_block_data(block[i]);
    for (size_t k = 0; k < block[i]->payload.bytes; k += 97) assert_int_equal(data[k], i);
    uint64_t offset = mp_segment_offset_of(segment, block[i]);
    assert_ptr_equal(mp_segment_block_at(segment, offset), block[i]);
    mp_payload_block_release(block[i]);
  }
  mp_segment_release(segment);
}

static void uses_memory_again(void **state) {
  (void)state;
  mp_segment_t *segment = make();
  mp_payload_block_t *first = mp_segment_take(segment, 1 << 20);
  mp_payload_block_retain(first);
  mp_payload_block_release(first);
  mp_payload_block_t *second = mp_segment_take(segment, 1 << 20);
  assert_ptr_not_equal(first, second);  // a process still reads the first
  mp_payload_block_release(first);
  assert_ptr_equal(mp_segment_take(segment, (1 << 20) + 100), first);
  mp_payload_block_release(first);
  mp_payload_block_release(second);
  mp_segment_release(segment);
}

static void gives_pages_back(void **state) {
  (void)state;
  mp_segment_t *segment = make();
  enum { BYTES = 8 << 20 };
  mp_payload_block_t *block = mp_segment_take(segment, BYTES);
  memset(mp_payload_block_data(block), 1, BYTES);
  assert_true(used_bytes(segment) >= BYTES);
  mp_segment_trim(segment);
  mp_payload_block_release(block);
  assert_true(mp_segment_idle_bytes(segment) >= BYTES);
  mp_segment_trim(segment);  // it was in use since the last time: stays
  assert_true(used_bytes(segment) >= BYTES);
  mp_segment_trim(segment);
  assert_int_equal(mp_segment_idle_bytes(segment), 0);
  assert_true(used_bytes(segment) < BYTES / 8);
  // It is as good as new.
  block = mp_segment_take(segment, BYTES);
  memset(mp_payload_block_data(block), 2, BYTES);
  mp_payload_block_release(block);
  mp_segment_release(segment);
}

static void has_an_end(void **state) {
  (void)state;
  mp_segment_t *segment = make();
  assert_null(mp_segment_take(segment, SIZE_MAX));
  assert_null(mp_segment_take(segment, SIZE_MAX / 2));
  assert_null(mp_segment_take(segment, (size_t)1 << 46));
  mp_payload_block_t *block = mp_segment_take(segment, 100);
  assert_non_null(block);
  assert_null(mp_segment_block_at(segment, 64));
  assert_null(mp_segment_block_at(segment, UINT64_MAX / 64 * 64));
  assert_null(mp_segment_block_at(segment, block->offset + 1));
  assert_null(mp_segment_block_at(segment, block->offset + 64));  // in the middle of it
  const uint64_t offset = block->offset;
  block->payload.bytes = SIZE_MAX - 64;  // as another process might find it
  assert_null(mp_segment_block_at(segment, offset));
  block->payload.bytes = 100;
  block->offset = offset + 64;
  assert_null(mp_segment_block_at(segment, offset));
  block->offset = offset;
  assert_ptr_equal(mp_segment_block_at(segment, offset), block);
  mp_payload_block_t *foreign = mp_payload_block_create(100);
  assert_int_equal(mp_segment_offset_of(segment, foreign), 0);
  mp_payload_block_release(foreign);
  mp_payload_block_release(block);
  mp_segment_release(segment);
}

// A second mapping of the same memory, as another process has it.
static void is_found_by_its_address(void **state) {
  (void)state;
  mp_segment_t *segment = make(), *other = NULL;
  mp_segment_address_t address = mp_segment_address(segment);
  assert_ok(mp_segment_open(&address, &other));
  mp_payload_block_t *block = mp_segment_take(segment, 5000);
  strcpy(mp_payload_block_data(block), "hello");
  mp_payload_block_t *seen = mp_segment_block_at(other, mp_segment_offset_of(segment, block));
  assert_ptr_not_equal(seen, block);
  assert_string_equal(mp_payload_block_data(seen), "hello");
  mp_payload_block_release(seen);  // the last reference: its owner gets it back
  assert_ptr_equal(mp_segment_take(segment, 5000), block);
  mp_payload_block_release(block);
  mp_segment_release(segment);
  mp_segment_release(other);
}

static void is_not_mistaken(void **state) {
  (void)state;
  mp_segment_t *segment = make(), *other = NULL;
  mp_segment_address_t wrong = mp_segment_address(segment);
  wrong.cookie[1] ^= 1;
  assert_status(mp_segment_open(&wrong, &other), MP_UNAVAILABLE, "another process");
  wrong = mp_segment_address(segment);
  wrong.fd = 1000000;
  assert_status(mp_segment_open(&wrong, &other), MP_UNAVAILABLE, "/proc/");
  int pipes[2], empty = memfd_create("empty", MFD_CLOEXEC);
  assert_int_equal(pipe(pipes), 0);
  wrong.fd = pipes[0];
  assert_status(mp_segment_open(&wrong, &other), MP_UNAVAILABLE, "not a segment");
  wrong.fd = empty;
  assert_status(mp_segment_open(&wrong, &other), MP_UNAVAILABLE, "not a segment");
  assert_int_equal(ftruncate(empty, 1 << 20), 0);
  assert_status(mp_segment_open(&wrong, &other), MP_UNAVAILABLE, "another process");
  close(empty);
  close(pipes[0]);
  close(pipes[1]);
  mp_segment_release(segment);
}

static void small_limits_are_an_error(void **state) {
  (void)state;
  pid_t child = fork();
  if (child == 0) {
    struct rlimit limit = {.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    mp_segment_t *segment = NULL;
    mp_status_t status = mp_segment_create(2, 2, &segment);
    _exit(mp_status_code(status) == MP_RESOURCE_EXHAUSTED ? 0 : 1);
  }
  int result = 0;
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_int_equal(result, 0);
}

// ---- Many threads ----

static void *take_and_release(void *context) {
  mp_segment_t *segment = context;
  for (unsigned i = 0; i < 3000; ++i) {
    size_t bytes = (i * 7919) % 200000;
    mp_payload_block_t *block = mp_segment_take(segment, bytes);
    if (block == NULL) return "no memory";
    unsigned char *data = mp_payload_block_data(block);
    if (bytes != 0) data[0] = data[bytes - 1] = (unsigned char)i;
    mp_payload_block_retain(block);
    if (i % 500 == 0) mp_segment_trim(segment);
    mp_payload_block_release(block);
    if (bytes > 1 && (data[0] != (unsigned char)i || data[bytes - 1] != (unsigned char)i)) {
      return "taken twice";
    }
    mp_payload_block_release(block);
  }
  return NULL;
}

static void serves_threads(void **state) {
  (void)state;
  mp_segment_t *segment = make();
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, take_and_release, segment);
  for (int i = 0; i < 4; ++i) {
    void *wrong = NULL;
    pthread_join(threads[i], &wrong);
    assert_null(wrong);
  }
  mp_segment_release(segment);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gives_aligned_memory_of_any_size),
      cmocka_unit_test(uses_memory_again),
      cmocka_unit_test(gives_pages_back),
      cmocka_unit_test(has_an_end),
      cmocka_unit_test(is_found_by_its_address),
      cmocka_unit_test(is_not_mistaken),
      cmocka_unit_test(small_limits_are_an_error),
      cmocka_unit_test(serves_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
