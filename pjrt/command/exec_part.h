// A device's part of a whole array, for `minipod exec`.
#ifndef MINIPOD_PJRT_COMMAND_EXEC_PART_H_
#define MINIPOD_PJRT_COMMAND_EXEC_PART_H_

#include "pjrt/command/exec_array.h"

// The part itself is dense and row-major. Steps and offsets are in elements of the whole array.
typedef struct {
  uint32_t rank;
  int64_t dims[MP_MAX_RANK];   // of the part
  int64_t steps[MP_MAX_RANK];  // from one element of a dimension to the next
  int64_t begin;               // offset of the first element
  int64_t count;               // of elements
} mp_exec_part_t;

// Copies the part's elements out of the array (mp_exec_part_take), and into it (mp_exec_part_give).
void mp_exec_part_take(const mp_exec_part_t *part, const mp_exec_array_t *whole, char *out_data);
void mp_exec_part_give(const mp_exec_part_t *part, const char *data, mp_exec_array_t *whole);
// Draws the part's elements (mp_exec_values_random) as those of a whole array of this type.
void mp_exec_part_draw(const mp_exec_part_t *part, mp_dtype_t dtype, uint64_t seed,
                       uint32_t argument, char *out_data);

#endif  // MINIPOD_PJRT_COMMAND_EXEC_PART_H_
