// Views that are kept, of random strides and of every size of elements, against their places one by
// one: from any element on, any number, and nothing read or written beside.
#include "tests/unit/support/unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/base/vector.h"
#include "sim/kernels/fused/tile/view.h"

enum { VIEWS = 2000, LOADS = 8, MOST_BYTES = 1 << 22 };

static uint64_t g_state;

static int64_t draw(int64_t below) {
  g_state = g_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (int64_t)((g_state >> 33) % (uint64_t)below);
}

// A collapsed view, as the ops make them: no dimension of one element, and none that goes on where
// the one within it ends. Returns the number of its elements.
static int64_t draw_view(mp_view_t *view, int64_t *out_base_count) {
  static const int64_t strides[] = {0, 1, 1, 2, 3, 4, 5, 9, 17, 48};
  int64_t count = 1, low = 0, high = 0;
  *view = (mp_view_t){.rank = 1 + (uint32_t)draw(draw(3) == 0 ? 1 : 4)};
  for (uint32_t d = view->rank; d-- > 0;) {
    const int64_t extent = 2 + draw(d == 0 ? 400 : 12);
    int64_t stride = strides[draw(10)] * (draw(5) == 0 ? -1 : 1) * (d + 2 < view->rank ? 7 : 1);
    if (d + 1 < view->rank && stride == view->dims[d + 1].stride * view->dims[d + 1].extent) {
      ++stride;
    }
    view->dims[d].extent = extent;
    view->dims[d].stride = stride;
    count *= extent;
    *(stride < 0 ? &low : &high) += (extent - 1) * stride;
  }
  view->offset = -low + draw(2);
  *out_base_count = view->offset + high + 1;
  return count;
}

static void check_loads(const mp_view_t *view, size_t size, const char *base, int64_t count) {
  int64_t *places = malloc((size_t)count * sizeof(*places));
  char *out = malloc((size_t)count * size + 1), *wanted = malloc((size_t)count * size + 1);
  assert_true(places != NULL && out != NULL && wanted != NULL);
  mp_view_count(view, MP_DTYPE_S64, 0, count, places);
  for (int k = 0; k < LOADS; ++k) {
    const int64_t from = draw(count), begin = k == 0 ? 0 : k % 2 == 0 ? from : from - from % 16;
    const int64_t n = k == 0 ? count : 1 + draw(count - begin);
    memset(out, 0x5a, (size_t)count * size + 1);
    memset(wanted, 0x5a, (size_t)count * size + 1);
    for (int64_t i = 0; i < n; ++i) {
      memcpy(wanted + (size_t)i * size, base + (size_t)places[begin + i] * size, size);
    }
    mp_view_load(view, size, base, begin, n, out);
    if (memcmp(out, wanted, (size_t)count * size + 1) != 0) {
      fail_msg("rank %u, size %zu, from %lld, %lld elements", view->rank, size, (long long)begin,
               (long long)n);
    }
  }
  free(places);
  free(out);
  free(wanted);
}

static void kept_views(void **state) {
  (void)state;
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *memory =
      mmap(NULL, MOST_BYTES + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(memory != MAP_FAILED && mprotect(memory, page, PROT_NONE) == 0);
  memory += page;
  assert_int_equal(mprotect(memory + MOST_BYTES, page, PROT_NONE), 0);
  g_state = 0;
  for (size_t i = 0; i < MOST_BYTES; ++i) memory[i] = (char)draw(256);
  for (int i = 0; i < VIEWS; ++i) {
    mp_arena_t *arena = NULL;
    assert_null(mp_arena_create(&arena));
    mp_view_t view;
    int64_t base_count = 0;
    const int64_t count = draw_view(&view, &base_count);
    const size_t size = (size_t)1 << draw(5);
    const mp_view_t *kept = NULL;
    assert_true((size_t)base_count * size <= MOST_BYTES);
    assert_null(mp_view_keep(arena, &view, size, &kept));
    // The base begins, or ends, where memory does.
    check_loads(kept, size, memory, count);
    check_loads(kept, size, memory + MOST_BYTES - (size_t)base_count * size, count);
    mp_arena_release(arena);
  }
  munmap(memory - page, MOST_BYTES + 2 * page);
}

static bool machine_shuffles(void) {
#ifdef __x86_64__
  return mp_has_avx512();
#else
  return false;
#endif
}

// Otherwise the test above is one of other loops.
static void short_rows_are_shuffled(void **state) {
  (void)state;
  const mp_view_t repeated = {.rank = 2, .dims = {{144, 1}, {3, 0}}};
  const mp_view_t long_rows = {.rank = 2, .dims = {{144, 1000}, {300, 1}}};
  mp_arena_t *arena = NULL;
  const mp_view_t *kept = NULL;
  assert_null(mp_arena_create(&arena));
  assert_null(mp_view_keep(arena, &repeated, 4, &kept));
  assert_int_equal(kept->shuffle != NULL, machine_shuffles());
  assert_null(mp_view_keep(arena, &repeated, 1, &kept));
  assert_null(kept->shuffle);
  assert_null(mp_view_keep(arena, &long_rows, 4, &kept));
  assert_null(kept->shuffle);
  mp_arena_release(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(kept_views),
      cmocka_unit_test(short_rows_are_shuffled),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
