// Elements of arrays for `minipod exec`: random elements, summaries of arrays, and differences
// between arrays.
#ifndef MINIPOD_PJRT_COMMAND_EXEC_VALUES_H_
#define MINIPOD_PJRT_COMMAND_EXEC_VALUES_H_

#include "pjrt/command/exec_array.h"

// Writes the element at `index` of the argument `argument`. It depends only on these and the seed,
// not on the sharding: floats in [-1, 1), integers in [0, 10), booleans. (Types of two bits have a
// smaller range, and unsigned scales are in [0.5, 1.5).)
void mp_exec_values_random(uint64_t seed, uint32_t argument, int64_t index, mp_dtype_t dtype,
                           void *out_element);

// Appends the first elements of an array with its sum, least and greatest element, in two lines
// that begin with `indent`.
void mp_exec_values_print(const mp_exec_array_t *array, const char *indent, mp_strbuf_t *out);

typedef struct {
  double largest;  // 0: all elements are equal; infinite: only one side has a NaN or infinity
  int64_t index;   // index of that element
} mp_exec_difference_t;

// The largest difference between the elements of two arrays of one type and shape. NaNs are equal.
mp_exec_difference_t mp_exec_values_compare(const mp_exec_array_t *a, const mp_exec_array_t *b);
// Appends an element.
void mp_exec_values_print_element(const mp_exec_array_t *array, int64_t index, mp_strbuf_t *out);

#endif  // MINIPOD_PJRT_COMMAND_EXEC_VALUES_H_
