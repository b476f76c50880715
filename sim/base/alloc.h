// The library's heap. All allocations go through these functions, so that tests can make the n-th
// one fail.
//
// All functions are thread-safe and return NULL on failure; callers turn that into
// mp_status_out_of_memory() (MP_RETURN_IF_NULL). Sizes are in bytes, and 0 counts as 1, so that
// NULL always means failure. The caller frees what it gets with mp_free.
#ifndef MINIPOD_SIM_BASE_ALLOC_H_
#define MINIPOD_SIM_BASE_ALLOC_H_

#include <stddef.h>
#include <stdint.h>

// `size` bytes with undefined contents, aligned for any type.
void *mp_malloc(size_t size);
// `count` * `size` bytes, all zero; NULL also when the product overflows.
void *mp_calloc(size_t count, size_t size);
// Changes the size of a block and keeps its contents, as realloc does. On failure the old block
// stays as it was.
void *mp_realloc(void *pointer, size_t size);
// The same for `count` * `size` bytes; NULL also when the product overflows.
void *mp_realloc_array(void *pointer, size_t count, size_t size);
// `size` bytes with undefined contents at a multiple of `alignment`, which is a power of two.
void *mp_aligned_malloc(size_t alignment, size_t size);
// A copy of a NUL-terminated text.
char *mp_strdup(const char *text);
// Frees a block of any of the functions above; NULL is allowed.
void mp_free(void *pointer);

// The address of every array without elements. It is 64-byte aligned, and no byte there may be read
// or written. Unlike with NULL, C allows adding zero to it and copying zero bytes from it.
void *mp_empty_array(void);

// For tests (fault.h): lets the n-th allocation from now (1 = the next) fail, and with `forever`
// all after it. n = 0 switches failures off.
void mp_alloc_fail_at(int64_t n, int forever);
// For tests: the number of blocks that were allocated and not freed since mp_fault_watch.
int64_t mp_alloc_live(void);

#endif  // MINIPOD_SIM_BASE_ALLOC_H_
