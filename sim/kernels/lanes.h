// Moves single elements between an array and lanes, which are `n` elements in a row; private to
// sim/kernels. `element` is their size: 1, 2, 4, 8 or 16 bytes. Indices count elements.
#ifndef MINIPOD_SIM_KERNELS_LANES_H_
#define MINIPOD_SIM_KERNELS_LANES_H_

#include <stddef.h>
#include <stdint.h>

// lanes[i] = array[index[i]]
void mp_lanes_gather(size_t element, int64_t n, const void *array, const int64_t *index,
                     void *lanes);
// lanes[t * n + i] = array[index[i] + t] for t in [0, count), reading each cache line of the array
// once.
void mp_lanes_gather_runs(size_t element, int64_t n, int64_t count, const void *array,
                          const int64_t *index, void *lanes);
// array[index[i]] = lanes[i]
void mp_lanes_scatter(size_t element, int64_t n, const void *lanes, const int64_t *index,
                      void *array);

#endif  // MINIPOD_SIM_KERNELS_LANES_H_
