// Memory spaces: the heap, the books, capacities, stream order.

#include "sim/runtime/memory/memory.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/base/alloc.h"
#include "sim/base/fault.h"
#include "sim/base/os/maps.h"
#include "sim/runtime/devices/device_impl.h"
#include "sim/runtime/memory/heap.h"
#include "sim/runtime/runs/client_check.h"
#include "tests/unit/support/clients.h"
#include "tests/unit/support/unit.h"

static uint32_t next_random(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

static void the_heap_gives_disjoint_aligned_blocks_and_joins_them_again(void **state) {
  (void)state;
  enum { COUNT = 200 };
  mp_heap_t *heap;
  assert_ok(mp_heap_create(-1, &heap));
  mp_span_t *blocks[COUNT] = {0};
  uint32_t seed = 7;
  for (int step = 0; step < 20000; ++step) {
    uint32_t i = next_random(&seed) % COUNT;
    if (blocks[i] != NULL) {
      for (uint64_t b = 0; b < blocks[i]->bytes; b += 4096) {
        assert_int_equal((unsigned char)blocks[i]->data[b], i);
      }
      mp_heap_give(heap, blocks[i], 0);
      blocks[i] = NULL;
    } else {
      uint64_t size =
          mp_heap_round(1 + next_random(&seed) % (1u << (next_random(&seed) % 23)), false);
      blocks[i] = mp_heap_take(heap, size, 0);
      assert_non_null(blocks[i]);
      assert_int_equal(blocks[i]->bytes, size);
      assert_int_equal((uintptr_t)blocks[i]->data % (size >= MP_PAGE_ALIGNED_FROM ? 4096 : 64), 0);
      for (uint64_t b = 0; b < size; b += 4096) blocks[i]->data[b] = (char)i;
    }
    if (step % 1000 == 0) mp_heap_trim(heap, UINT64_MAX - 1);
  }
  for (int i = 0; i < COUNT; ++i) {
    if (blocks[i] != NULL) mp_heap_give(heap, blocks[i], 0);
  }
  mp_heap_trim(heap, 0);
  // The rest are remainders too small to be worth a system call.
  assert_true(mp_heap_idle_bytes(heap) < 1 << 20);
  mp_heap_release(heap);
}

static void binding_to_a_node_is_a_wish(void **state) {
  (void)state;
  const int32_t nodes[] = {0, 1000, 5000};  // one that exists, two that do not
  for (int i = 0; i < 3; ++i) {
    mp_heap_t *heap;
    assert_ok(mp_heap_create(nodes[i], &heap));
    mp_span_t *block = mp_heap_take(heap, 8 << 20, 0);
    assert_non_null(block);
    memset(block->data, 1, block->bytes);
    if (i != 0) assert_false(mp_heap_is_bound(heap));
    mp_pages_t pages;
    if (mp_heap_look_at_pages(heap, &pages)) {  // a container may forbid to ask
      assert_true(pages.here + pages.elsewhere >= block->bytes);
      if (i != 0) assert_true(pages.here == 0);
      if (mp_heap_is_bound(heap)) assert_true(pages.elsewhere == 0);
    }
    mp_heap_give(heap, block, 0);
    mp_heap_release(heap);
  }
}

// The kernel's nodes are 0 to this one, as far as they have no gap.
static int last_node(void) {
  for (int node = 1;; ++node) {
    char path[64];
    snprintf(path, sizeof(path), "/sys/devices/system/node/node%d", node);
    if (access(path, F_OK) != 0) return node - 1;
  }
}

static void pages_lie_where_they_are_bound(void **state) {
  (void)state;
  const int last = last_node();
  if (last == 0) {
    print_message("skipped: the kernel has one NUMA node\n");
    skip();
  }
  for (int node = 0; node <= last; ++node) {
    mp_heap_t *heap;
    assert_ok(mp_heap_create(node, &heap));
    mp_span_t *block = mp_heap_take(heap, 8 << 20, 0);
    assert_non_null(block);
    memset(block->data, 1, block->bytes);
    mp_pages_t pages;
    assert_true(mp_heap_look_at_pages(heap, &pages));
    assert_true(!mp_heap_is_bound(heap) || (pages.here >= 8 << 20 && pages.elsewhere == 0));
    mp_heap_give(heap, block, 0);
    mp_heap_release(heap);
  }
}

// Of much memory a sample is looked at, in which each page stands for others.
static void a_sample_stands_for_all(void **state) {
  (void)state;
  mp_heap_t *heap;
  assert_ok(mp_heap_create(0, &heap));
  mp_span_t *block = mp_heap_take(heap, 256 << 20, 0);
  assert_non_null(block);
  memset(block->data, 1, block->bytes / 2);
  mp_pages_t pages;
  if (mp_heap_look_at_pages(heap, &pages)) {
    const uint64_t touched = pages.here + pages.elsewhere;
    assert_true(touched >= 127 << 20 && touched <= 131 << 20);
  }
  mp_heap_give(heap, block, 0);
  mp_heap_release(heap);
  assert_ok(mp_heap_create(-1, &heap));
  assert_false(mp_heap_look_at_pages(heap, &pages));  // there is no node to ask about
  mp_heap_release(heap);
}

static void freed_in_stream_order_is_for_later_runs_only(void **state) {
  (void)state;
  mp_heap_t *heap;
  assert_ok(mp_heap_create(-1, &heap));
  mp_span_t *first = mp_heap_take(heap, 64 << 10, 0);
  char *data = first->data;
  mp_heap_give(heap, first, 5);  // run 5 still uses it
  mp_span_t *now = mp_heap_take(heap, 64 << 10, 4);
  assert_ptr_not_equal(now->data, data);
  mp_span_t *later = mp_heap_take(heap, 64 << 10, MP_IN_STREAM_ORDER);
  assert_ptr_equal(later->data, data);
  mp_heap_give(heap, later, 7);
  mp_span_t *after = mp_heap_take(heap, 64 << 10, 7);
  assert_ptr_equal(after->data, data);
  mp_heap_give(heap, after, 0);
  mp_heap_give(heap, now, 0);
  mp_heap_release(heap);
}

// A buffer of so many MiB, whose pages are not touched; NULL: it does not fit.
static mp_buffer_t *try_mebibytes(mp_client_t *client, uint32_t device, int64_t mebibytes,
                                  mp_status_t *out_status) {
  mp_buffer_t *buffer = NULL;
  mp_event_t *definition = NULL;
  const int64_t dims[] = {mebibytes, 1 << 20};
  mp_memory_t *memory = mp_device_memory(mp_client_device(client, device), MP_MEMORY_DEVICE);
  *out_status = mp_buffer_create(memory, MP_DTYPE_S8, dims, 2, &buffer, &definition);
  if (*out_status != NULL) return NULL;
  mp_event_set(definition, NULL);
  mp_event_release(definition);
  return buffer;
}

static mp_buffer_t *make_mebibytes(mp_client_t *client, uint32_t device, int64_t mebibytes) {
  mp_status_t status = NULL;
  mp_buffer_t *buffer = try_mebibytes(client, device, mebibytes, &status);
  assert_ok(status);
  return buffer;
}

static void expect_texts(mp_status_t status, const char *const *expected, size_t count) {
  assert_int_equal(mp_status_code(status), MP_RESOURCE_EXHAUSTED);
  for (size_t i = 0; i < count; ++i) {
    if (strstr(mp_status_message(status), expected[i]) == NULL) {
      fail_msg("no '%s' in: %s", expected[i], mp_status_message(status));
    }
  }
  mp_status_release(status);
}

#define EXPECT_TEXTS(status, ...)                            \
  expect_texts((status), (const char *const[]){__VA_ARGS__}, \
               sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

// Four devices on two nodes of 1,000 MiB: what is not described, the two devices of a node share.
static void devices_of_a_node_share_its_capacity(void **state) {
  (void)state;
  const mp_named_value_t values[] = {
      {.name = MP_STR("num_devices"), .type = MP_VALUE_INT64, .int64_value = 4},
      {.name = MP_STR("machine"),
       .type = MP_VALUE_STRING,
       .string_value = MP_STR("numa:2(memory=1048576000) core:2 pu:1")},
  };
  mp_options_t *options = NULL;
  assert_ok(mp_options_create(values, 2, &options));
  mp_client_t *client = NULL;
  assert_ok(mp_client_create(options, NULL, NULL, &client));
  mp_options_release(options);
  mp_device_t *devices[4];
  for (uint32_t i = 0; i < 4; ++i) devices[i] = mp_client_device(client, i);
  assert_int_equal(stats_of(devices[0], MP_MEMORY_DEVICE).bytes_limit, 700 << 20);
  mp_status_t status = NULL;
  mp_buffer_t *a = make_mebibytes(client, 0, 600);
  mp_buffer_t *b = make_mebibytes(client, 2, 700);  // of the other node
  mp_memory_stats_t stats = stats_of(devices[1], MP_MEMORY_DEVICE);
  assert_int_equal(stats.bytes_in_use, 0);
  assert_int_equal(stats.bytes_limit, 700 << 20);
  assert_int_equal(stats.bytes_reservable, 100 << 20);
  assert_int_equal(stats.largest_free_block_bytes, 100 << 20);
  stats = stats_of(devices[0], MP_MEMORY_DEVICE);
  assert_int_equal(stats.bytes_in_use, 600 << 20);
  assert_int_equal(stats.bytes_reservable, 350 << 20);
  assert_int_equal(stats.largest_free_block_bytes, 100 << 20);
  mp_buffer_t *c = make_mebibytes(client, 1, 30);
  assert_null(try_mebibytes(client, 1, 71, &status));
  EXPECT_TEXTS(status, "74448896 bytes for i8[71,1048576]", "device memory of device 1",
               "the devices of this process on NUMA node 0 share a capacity of 734003200 bytes",
               "in use 660602880, by this device 31457280, largest free block 73400320",
               "MINIPOD_DEVICE_MEMORY", "629145600 bytes  device 0\n", "31457280 bytes  device 1\n",
               "live buffers of device 0, largest first:\n     629145600 bytes  i8[600,1048576]",
               "live buffers of device 1, largest first:\n      31457280 bytes  i8[30,1048576]");
  assert_null(try_mebibytes(client, 3, 1, &status));
  EXPECT_TEXTS(status, "device memory of device 3", "on NUMA node 1",
               "in use 734003200, by this device 0", "live buffers of device 2");
  // Exactly what is left fits, and what is given back is there for the others.
  mp_buffer_t *d = make_mebibytes(client, 1, 70);
  mp_buffer_release(a);
  mp_buffer_t *e = make_mebibytes(client, 1, 600);
  mp_buffer_release(b);
  mp_buffer_release(c);
  mp_buffer_release(d);
  mp_buffer_release(e);
#ifdef MINIPOD_ASSERTS
  mp_client_check_all(client, true);
#endif
  assert_int_equal(stats_of(devices[3], MP_MEMORY_DEVICE).bytes_reservable, 350 << 20);
  mp_client_release(client);
}

static void the_capacity_is_enforced_with_a_table(void **state) {
  (void)state;
  mp_client_t *client = make_client_with(2, 64 << 20);
  mp_device_t *device = mp_client_device(client, 1);
  mp_memory_t *memory = mp_device_memory(device, MP_MEMORY_DEVICE);
  mp_buffer_t *a = make_f32(device, 8 << 20, 1);  // 32 MiB
  mp_buffer_t *b = make_f32(device, 1 << 20, 1);
  mp_buffer_t *c = make_f32(device, 1 << 20, 1);
  mp_buffer_t *too_big = NULL;
  mp_event_t *definition;
  int64_t dims[] = {25, 1 << 20};
  mp_status_t status = mp_buffer_create(memory, MP_DTYPE_F32, dims, 2, &too_big, &definition);
  assert_int_equal(mp_status_code(status), MP_RESOURCE_EXHAUSTED);
  const char *expected[] = {
      "104857600 bytes for f32[25,1048576]",
      "device memory of device 1",
      "capacity 67108864",
      "the capacity is the device's own; MINIPOD_DEVICE_MEMORY",
      "in use 41943040",
      "largest free block 25165824",
      "33554432 bytes  f32[8388608], transfer from the host",
      "8388608 bytes  2 x f32[1048576]",
  };
  for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); ++i) {
    if (strstr(mp_status_message(status), expected[i]) == NULL) {
      fail_msg("no '%s' in: %s", expected[i], mp_status_message(status));
    }
  }
  mp_status_release(status);
  // The other device has its own.
  mp_buffer_t *d = make_f32(mp_client_device(client, 0), 15 << 20, 1);
  mp_buffer_release(a);
  mp_memory_stats_t stats = stats_of(device, MP_MEMORY_DEVICE);
  assert_int_equal(stats.bytes_in_use, 8 << 20);
  assert_int_equal(stats.peak_bytes_in_use, 40 << 20);
  assert_int_equal(stats.bytes_limit, 64 << 20);
  assert_int_equal(stats.largest_free_block_bytes, 56 << 20);
  assert_int_equal(stats.largest_alloc_size, 32 << 20);
  assert_int_equal(stats.num_allocs, 3);
  // Exactly what is left fits.
  mp_buffer_t *rest = make_f32(device, 14 << 20, 2);
  assert_int_equal(stats_of(device, MP_MEMORY_DEVICE).largest_free_block_bytes, 0);
  mp_buffer_release(rest);
  mp_buffer_release(b);
  mp_buffer_release(c);
  mp_buffer_release(d);
  assert_int_equal(stats_of(device, MP_MEMORY_DEVICE).bytes_in_use, 0);
  mp_client_release(client);
}

// Without memory for the books of the rest a block cannot be cut: it is not given instead.
static void blocks_that_cannot_be_cut_are_not_given(void **state) {
  (void)state;
  mp_client_t *client = make_client(1);
  mp_memory_t *memory = mp_device_memory(mp_client_device(client, 0), MP_MEMORY_DEVICE);
  mp_label_t label = {.origin = MP_ORIGIN_HOST, .dtype = MP_DTYPE_F32};
  mp_span_t *block = NULL;
  assert_ok(mp_memory_alloc(memory, 64, 0, &label, &block));
  mp_memory_free(memory, block, 0);
  mp_alloc_fail_at(1, 0);
  mp_status_t status = mp_memory_alloc(memory, 64, 0, &label, &block);
  mp_alloc_fail_at(0, 0);
  assert_status(status, MP_RESOURCE_EXHAUSTED, "64 bytes");
  mp_memory_stats_t stats = stats_of(mp_client_device(client, 0), MP_MEMORY_DEVICE);
  assert_int_equal(stats.bytes_in_use, 0);
  assert_int_equal(stats.peak_bytes_in_use, 64);
  assert_ok(mp_memory_alloc(memory, 64, 0, &label, &block));
  assert_int_equal(block->bytes, 64);
  mp_memory_free(memory, block, 0);
  mp_client_release(client);
}

static uint64_t resident_bytes(void) {
  FILE *file = fopen("/proc/self/statm", "r");
  unsigned long pages = 0, resident = 0;
  assert_int_equal(fscanf(file, "%lu %lu", &pages, &resident), 2);
  fclose(file);
  return (uint64_t)resident * 4096;
}

static void freed_memory_goes_back_to_the_system(void **state) {
  (void)state;
  mp_client_t *client = make_client(4);
  for (int round = 0; round < 2; ++round) {
    for (uint32_t i = 0; i < 4; ++i) {
      mp_buffer_release(make_f32(mp_client_device(client, i), 20 << 20, 1));  // 80 MiB
    }
  }
  assert_true(atomic_load(&client->budget.bytes_idle) <= 256 << 20);
  mp_client_release(client);
}

static void pinned_memory_says_whether_it_is_locked(void **state) {
  (void)state;
  mp_client_t *client = make_client(1);
  mp_memory_t *memory = mp_device_memory(mp_client_device(client, 0), MP_MEMORY_PINNED_HOST);
  int64_t small = 1024, large = 256 << 20;
  mp_buffer_t *a, *b;
  mp_event_t *done;
  assert_ok(mp_buffer_create(memory, MP_DTYPE_U8, &small, 1, &a, &done));
  mp_event_set(done, NULL);
  mp_event_release(done);
  // Whatever the limit on locked memory is, this works.
  assert_ok(mp_buffer_create(memory, MP_DTYPE_U8, &large, 1, &b, &done));
  mp_event_set(done, NULL);
  mp_event_release(done);
  mp_memory_stats_t stats;
  mp_memory_get_stats(memory, &stats);
  assert_int_equal(stats.bytes_in_use, 4096 + (256 << 20));
  mp_buffer_release(b);
  mp_buffer_release(a);
  mp_memory_get_stats(memory, &stats);
  assert_false(stats.is_locked);
  mp_client_release(client);
}

static void many_devices_are_cheap(void **state) {
  (void)state;
  uint64_t before = resident_bytes();
  mp_client_t *client = make_client(4096);
  uint64_t per_device = (resident_bytes() - before) / 4096;
  assert_true(per_device < 10 << 10);
  mp_client_release(client);
}

// Splits a range of address space into so many maps, each with another protection than the next.
static char *make_maps(uint64_t count) {
  char *pages =
      mmap(NULL, count * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  assert_true(pages != MAP_FAILED);
  for (uint64_t i = 0; i < count; i += 2) {
    if (mprotect(pages + i * 4096, 4096, PROT_READ) != 0) break;
  }
  return pages;
}

// Every map that the library takes is one less for malloc: it stops before there is none.
static void memory_maps_that_are_short(void **state) {
  (void)state;
  enum { BLOCKS = 2000 };
  static mp_span_t *blocks[BLOCKS];
  uint64_t count = 0, limit = 0;
  if (!mp_maps_count(&count, &limit) || limit > 1 << 20) skip();
  const uint64_t num_pages = limit - limit / 32 - count;
  char *pages = make_maps(num_pages);
  mp_heap_t *heap;
  assert_ok(mp_heap_create(-1, &heap));
  uint32_t num_blocks = 0;
  while (num_blocks < BLOCKS) {
    mp_span_t *block = mp_heap_take(heap, mp_heap_round(64 << 20, false), 0);
    if (block == NULL) break;
    blocks[num_blocks++] = block;
  }
  assert_true(num_blocks < BLOCKS);
  assert_true(mp_maps_count(&count, &limit) && count < limit - limit / 64);
  mp_client_t *client = make_client(1);
  mp_span_t *block = NULL;
  const mp_label_t label = {.origin = MP_ORIGIN_HOST, .dtype = MP_DTYPE_F32};
  mp_memory_t *memory = mp_device_memory(mp_client_device(client, 0), MP_MEMORY_DEVICE);
  EXPECT_TEXTS(mp_memory_alloc(memory, 64 << 20, 0, &label, &block),
               "out of memory: 67108864 bytes", "vm.max_map_count allows",
               "sysctl -w vm.max_map_count=");
  assert_int_equal(munmap(pages, num_pages * 4096), 0);
  assert_ok(mp_memory_alloc(memory, 64 << 20, 0, &label, &block));
  mp_memory_free(memory, block, 0);
  mp_client_release(client);
  for (uint32_t i = 0; i < num_blocks; ++i) mp_heap_give(heap, blocks[i], 0);
  mp_heap_release(heap);
}

// Chunks of one device, and of several, lie side by side: they are a few maps.
static void chunks_are_few_maps(void **state) {
  (void)state;
#ifdef UNIT_SANITIZED
  skip();  // a sanitizer has maps of its own beside ours
#endif
  enum { DEVICES = 64, BLOCKS = 8 };
  uint64_t before = 0, after = 0, limit = 0;
  if (!mp_maps_count(&before, &limit)) skip();
  mp_heap_t *heaps[DEVICES];
  static mp_span_t *blocks[DEVICES][BLOCKS];
  for (int d = 0; d < DEVICES; ++d) assert_ok(mp_heap_create(-1, &heaps[d]));
  for (int b = 0; b < BLOCKS; ++b) {
    for (int d = 0; d < DEVICES; ++d) {
      blocks[d][b] = mp_heap_take(heaps[d], mp_heap_round(100 << 20, false), 0);
      assert_non_null(blocks[d][b]);
      blocks[d][b]->data[0] = 1;
    }
  }
  assert_true(mp_maps_count(&after, &limit));
  assert_true(after < before + DEVICES * BLOCKS / 8);
  for (int d = 0; d < DEVICES; ++d) {
    for (int b = 0; b < BLOCKS; ++b) mp_heap_give(heaps[d], blocks[d][b], 0);
    mp_heap_release(heaps[d]);
  }
}

// If a whole chunk is refused, one for the block alone must do; the error names the limit.
static void address_space_that_is_short(void **state) {
  (void)state;
  mp_client_t *client = make_client(1);
  mp_memory_t *memory = mp_device_memory(mp_client_device(client, 0), MP_MEMORY_DEVICE);
  mp_label_t label = {.origin = MP_ORIGIN_HOST, .dtype = MP_DTYPE_F32};
  mp_span_t *block = NULL, *other = NULL;
  mp_fault_watch();
  mp_fault_at(MP_FAULT_MMAP, 1, 1);
  assert_ok(mp_memory_alloc(memory, 8 << 20, 0, &label, &block));
  assert_int_equal(mp_fault_refusals(MP_FAULT_MMAP), 1);
  mp_fault_at(MP_FAULT_MMAP, 1, 2);
  mp_status_t status = mp_memory_alloc(memory, 8 << 20, 0, &label, &other);
  mp_fault_at(MP_FAULT_MMAP, 0, 0);
  EXPECT_TEXTS(status, "out of memory: 8388608 bytes", "in use 8388608 bytes",
               "the operating system gives no more memory");
  assert_int_equal(stats_of(mp_client_device(client, 0), MP_MEMORY_DEVICE).bytes_in_use, 8 << 20);
  mp_memory_free(memory, block, 0);
  mp_client_release(client);
}

static void where_pages_lie_is_in_the_statistics_and_in_the_table(void **state) {
  (void)state;
  mp_client_t *client = make_client(1);
  mp_memory_t *memory = mp_device_memory(mp_client_device(client, 0), MP_MEMORY_DEVICE);
  assert_int_equal(stats_of(mp_client_device(client, 0), MP_MEMORY_DEVICE).bytes_on_node, -1);
  memory->numa_node = 0;  // as if the machine had others
  mp_label_t label = {.origin = MP_ORIGIN_HOST, .dtype = MP_DTYPE_F32};
  mp_span_t *block = NULL, *other = NULL;
  assert_ok(mp_memory_alloc(memory, 8 << 20, 0, &label, &block));
  memset(block->data, 1, block->bytes);
  const mp_memory_stats_t stats = stats_of(mp_client_device(client, 0), MP_MEMORY_DEVICE);
  mp_fault_watch();
  mp_fault_at(MP_FAULT_MMAP, 1, 2);
  mp_status_t status = mp_memory_alloc(memory, 128 << 20, 0, &label, &other);
  mp_fault_at(MP_FAULT_MMAP, 0, 0);
  if (stats.bytes_on_node < 0) {
    print_message("the system does not say where pages lie\n");
    mp_status_release(status);
  } else {
    assert_true(stats.bytes_on_node + stats.bytes_off_node >= 8 << 20);
    EXPECT_TEXTS(status, "out of memory: 134217728 bytes",
                 "pages of device 0: ", " bytes on its NUMA node 0, ");
  }
  mp_memory_free(memory, block, 0);
  mp_client_release(client);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_heap_gives_disjoint_aligned_blocks_and_joins_them_again),
      cmocka_unit_test(binding_to_a_node_is_a_wish),
      cmocka_unit_test(pages_lie_where_they_are_bound),
      cmocka_unit_test(a_sample_stands_for_all),
      cmocka_unit_test(where_pages_lie_is_in_the_statistics_and_in_the_table),
      cmocka_unit_test(freed_in_stream_order_is_for_later_runs_only),
      cmocka_unit_test(devices_of_a_node_share_its_capacity),
      cmocka_unit_test(the_capacity_is_enforced_with_a_table),
      cmocka_unit_test(blocks_that_cannot_be_cut_are_not_given),
      cmocka_unit_test(freed_memory_goes_back_to_the_system),
      cmocka_unit_test(pinned_memory_says_whether_it_is_locked),
      cmocka_unit_test(many_devices_are_cheap),
      cmocka_unit_test(chunks_are_few_maps),
      cmocka_unit_test(memory_maps_that_are_short),
      cmocka_unit_test(address_space_that_is_short),  // the last one: it begins to count requests
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
