// The library's heap: malloc and friends behind one door, so that tests can make allocation n fail.
//
// All functions are thread-safe and return NULL on failure; callers turn that into
// mp_status_out_of_memory() (MP_RETURN_IF_NULL). Sizes are in bytes. Array forms check the product
// for overflow.
#ifndef MINIPOD_SIM_BASE_ALLOC_H_
#define MINIPOD_SIM_BASE_ALLOC_H_

#include <stddef.h>
#include <stdint.h>

void *mp_malloc(size_t size);
void *mp_calloc(size_t count, size_t size);
void *mp_realloc(void *pointer, size_t size);
void *mp_realloc_array(void *pointer, size_t count, size_t size);
// `alignment` is a power of two; freed by mp_free as well.
void *mp_aligned_malloc(size_t alignment, size_t size);
char *mp_strdup(const char *text);
void mp_free(void *pointer);

// Where every array without elements is: 64-byte aligned, and with no byte that may be read or
// written. Unlike NULL it is a pointer that C lets one add zero to and copy no bytes from.
void *mp_empty_array(void);

// For tests (fault.h): the n-th allocation from now (1 = the next) fails, and with `forever` all
// after it. 0 switches it off.
void mp_alloc_fail_at(int64_t n, int forever);
// Blocks that were allocated and not freed since mp_fault_watch.
int64_t mp_alloc_live(void);

#endif  // MINIPOD_SIM_BASE_ALLOC_H_
