#include "sim/base/os/pages.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

// Whether the system knows of nodes; in some containers it may not say.
static bool pages_have_nodes(void) {
  return syscall(SYS_get_mempolicy, NULL, NULL, 0L, NULL, 0L) == 0 ||
         (errno != ENOSYS && errno != EPERM);
}

bool mp_pages_bind(void *address, size_t bytes, int32_t node) {
  enum { MOST_NODES = 1024, BITS = 8 * sizeof(unsigned long) };
  if (node < 0 || node >= MOST_NODES || !pages_have_nodes()) return false;
  unsigned long mask[MOST_NODES / BITS] = {0};
  mask[node / BITS] = 1UL << (node % BITS);
  // The system takes one bit less than it is told.
  return syscall(SYS_mbind, address, bytes, (long)MPOL_BIND, mask, (long)MOST_NODES + 1, 0L) == 0;
}

bool mp_pages_look(const void *address, size_t bytes, size_t step, int32_t node, mp_pages_t *sum) {
  enum { BATCH = 256 };
  if (!pages_have_nodes()) return false;
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
    if (syscall(SYS_move_pages, 0L, count, pages, NULL, nodes, 0L) != 0) return false;
    for (unsigned long i = 0; i < count; ++i) {
      if (nodes[i] >= 0) *(nodes[i] == node ? &sum->here : &sum->elsewhere) += stand_for[i];
    }
  }
  return true;
}
