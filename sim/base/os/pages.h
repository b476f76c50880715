// Which NUMA node memory is to lie on, and where its pages really lie. Nodes have the system's
// numbers. Through libnuma (numa.h), or by the system's own calls where it is absent. Thread-safe.
#ifndef MINIPOD_SIM_BASE_OS_PAGES_H_
#define MINIPOD_SIM_BASE_OS_PAGES_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Makes the system take the pages of a mapping (`address` is the beginning of a page) from the node
// when they are touched from now on. False if the system cannot or may not: then they come from the
// node of the thread that touches them.
bool mp_pages_bind(void *address, size_t bytes, int32_t node);

// Bytes whose pages lie on a node that was asked about, or on others. What has not been touched
// lies nowhere.
typedef struct {
  uint64_t here, elsewhere;
} mp_pages_t;

// Looks at a page in every `step` bytes (a multiple of a page) of a mapping, and adds the bytes
// that each of them stands for to `sum`. False where the system does not say.
bool mp_pages_look(const void *address, size_t bytes, size_t step, int32_t node, mp_pages_t *sum);

#endif  // MINIPOD_SIM_BASE_OS_PAGES_H_
