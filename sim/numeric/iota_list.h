// Transposed iotas, the short form in which programs write lists of devices.
#ifndef MINIPOD_SIM_NUMERIC_IOTA_LIST_H_
#define MINIPOD_SIM_NUMERIC_IOTA_LIST_H_

#include <stdbool.h>
#include <stdint.h>

enum { MP_IOTA_MAX_RANK = 64 };

// Whether the dimensions are at most MP_IOTA_MAX_RANK and positive, their product is `count`, and
// `permutation` has each of them once; NULL stands for their own order.
bool mp_iota_fits(const int64_t *dims, const int64_t *permutation, uint32_t rank, int64_t count);

// Writes the numbers 0, 1, 2, ... as an array of these dimensions has them when it is transposed
// (dimension i of the result is permutation[i]) and read row by row: as many as fit.
void mp_iota_transposed(const int64_t *dims, const int64_t *permutation, uint32_t rank,
                        int64_t *out_numbers);

#endif  // MINIPOD_SIM_NUMERIC_IOTA_LIST_H_
