#include "sim/base/os/pages.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sim/base/os/numa.h"

// Without libnuma, nodes up to this one are asked for, and the system says whether there are so
// many.
enum { MP_MOST_NODES = 1024, MP_MASK_BITS = 8 * sizeof(unsigned long) };

// Whether the system knows of nodes; in some containers it may not say.
static bool pages_have_nodes(void) {
  if (mp_numa_library() != NULL) return true;
  return syscall(SYS_get_mempolicy, NULL, NULL, 0L, NULL, 0L) == 0 ||
         (errno != ENOSYS && errno != EPERM);
}

static bool pages_is_node(int32_t node) {
  const mp_numa_library_t *numa = mp_numa_library();
  return node >= 0 && node < MP_MOST_NODES &&
         (numa == NULL || node <= numa->numa_max_possible_node());
}

bool mp_pages_bind(void *address, size_t bytes, int32_t node) {
  if (!pages_have_nodes() || !pages_is_node(node)) return false;
  unsigned long mask[MP_MOST_NODES / MP_MASK_BITS] = {0};
  mask[node / MP_MASK_BITS] = 1UL << (node % MP_MASK_BITS);
  // The system uses one bit less than it is given.
  const unsigned long num_bits = MP_MOST_NODES + 1;
  const mp_numa_library_t *numa = mp_numa_library();
  return (numa != NULL
              ? numa->mbind(address, bytes, MPOL_BIND, mask, num_bits, 0)
              : syscall(SYS_mbind, address, bytes, (long)MPOL_BIND, mask, num_bits, 0L)) == 0;
}

// Asks on which nodes pages lie; negative numbers: on none.
static bool pages_find_nodes(void **pages, unsigned long count, int *out_nodes) {
  const mp_numa_library_t *numa = mp_numa_library();
  // Without nodes to move to it asks where they are.
  return (numa != NULL ? numa->numa_move_pages(0, count, pages, NULL, out_nodes, 0)
                       : syscall(SYS_move_pages, 0L, count, pages, NULL, out_nodes, 0L)) == 0;
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
    if (!pages_find_nodes(pages, count, nodes)) return false;
    for (unsigned long i = 0; i < count; ++i) {
      if (nodes[i] >= 0) *(nodes[i] == node ? &sum->here : &sum->elsewhere) += stand_for[i];
    }
  }
  return true;
}
