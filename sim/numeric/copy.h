// Copies of bytes, by one of two ways into memory.
//
// The arrays must not overlap. All functions are pure and thread-safe.
#ifndef MINIPOD_SIM_NUMERIC_COPY_H_
#define MINIPOD_SIM_NUMERIC_COPY_H_

#include <stddef.h>

typedef void (*mp_copy_fn_t)(void *to, const void *from, size_t bytes);

// Through the caches: for what fits them, and what is read soon.
void mp_copy_cached(void *to, const void *from, size_t bytes);

// Past the caches: for results that are larger than they are. The processor need not read a line
// of memory before it overwrites it, which saves a third of a copy's traffic.
void mp_copy_past_caches(void *to, const void *from, size_t bytes);

// The way for work that writes so many bytes in all: past the caches from 32 MiB on, about what
// the cores of a process share of a last-level cache.
mp_copy_fn_t mp_copy_for(double total_bytes);

#endif  // MINIPOD_SIM_NUMERIC_COPY_H_
