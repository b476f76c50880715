#include "sim/base/os/maps.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/base/os/system.h"

enum {
  MAPS_LONGEST = 512,      // mappings between two counts
  MAPS_RESERVE_PART = 16,  // of the limit that is left for others
};

// Mappings that may be made before the maps are counted again. Relaxed: a few mappings more or less
// are within the reserve.
static atomic_llong g_until_count = MAPS_LONGEST;

// The number of lines of a file of the system; 0: it cannot be read.
static uint64_t maps_count_lines(const char *path) {
  char text[8192];
  uint64_t lines = 0;
  ssize_t got = 0;
  const int file = mp_open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  while ((got = read(file, text, sizeof(text))) > 0) {
    for (ssize_t i = 0; i < got; ++i) lines += text[i] == '\n';
  }
  close(file);
  return lines;
}

// The number in a file of the system; 0: it cannot be read.
static uint64_t maps_read_number(const char *path) {
  char text[32] = "";
  const int file = mp_open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t got = read(file, text, sizeof(text) - 1);
  close(file);
  return got <= 0 ? 0 : strtoull(text, NULL, 10);
}

bool mp_maps_count(uint64_t *out_count, uint64_t *out_limit) {
  const uint64_t limit = maps_read_number("/proc/sys/vm/max_map_count");
  const uint64_t count = limit == 0 ? 0 : maps_count_lines("/proc/self/maps");
  if (count == 0) return false;
  *out_count = count;
  *out_limit = limit;
  return true;
}

bool mp_maps_are_short(void) {
  uint64_t count, limit;
  if (atomic_fetch_sub_explicit(&g_until_count, 1, memory_order_relaxed) > 0) return false;
  if (!mp_maps_count(&count, &limit)) return false;
  const uint64_t most = limit - limit / MAPS_RESERVE_PART;
  const uint64_t left = count < most ? most - count : 0;
  // Others make maps, too: not all that are left are ours.
  const uint64_t next = left / 4 < MAPS_LONGEST ? left / 4 : MAPS_LONGEST;
  atomic_store_explicit(&g_until_count, (long long)next, memory_order_relaxed);
  return left == 0;
}
