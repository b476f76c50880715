#include "sim/base/os/pages.h"

#include <numa.h>
#include <numaif.h>

bool mp_pages_bind(void *address, size_t bytes, int32_t node) {
  enum { MOST_NODES = 1024, BITS = 8 * sizeof(unsigned long) };
  if (node < 0 || node >= MOST_NODES || numa_available() < 0) return false;
  // libnuma ends the process where it has no memory for a mask, so the mask is not its own.
  unsigned long words[MOST_NODES / BITS] = {0};
  struct bitmask mask = {.size = MOST_NODES, .maskp = words};
  numa_bitmask_setbit(&mask, (unsigned)node);
  // The system takes one bit less than it is told.
  return mbind(address, bytes, MPOL_BIND, mask.maskp, mask.size + 1, 0) == 0;
}

bool mp_pages_look(const void *address, size_t bytes, size_t step, int32_t node, mp_pages_t *sum) {
  enum { BATCH = 256 };
  if (numa_available() < 0) return false;
  for (size_t at = 0; at < bytes;) {
    void *pages[BATCH];
    int nodes[BATCH];
    size_t stand_for[BATCH];
    unsigned long count = 0;
    for (; at < bytes && count < BATCH; at += step, ++count) {
      pages[count] = (char *)(uintptr_t)address + at;
      stand_for[count] = bytes - at < step ? bytes - at : step;
    }
    // Without nodes to move to it asks where they are.
    if (move_pages(0, count, pages, NULL, nodes, 0) != 0) return false;
    for (unsigned long i = 0; i < count; ++i) {
      if (nodes[i] >= 0) *(nodes[i] == node ? &sum->here : &sum->elsewhere) += stand_for[i];
    }
  }
  return true;
}
