// The best element of each row and its number: reductions of values and positions that choose like
// argmax and argmin. Of equal values the lower position counts. A NaN is better than all numbers;
// of several NaNs the first one counts.
//
// A fold in any order of neighbours ends with the same value and position: the value of the last
// element that equals the best (0 equals -0), and the position of the first such element; or the
// first NaN and its position.
#ifndef MINIPOD_SIM_KERNELS_REDUCTION_BEST_H_
#define MINIPOD_SIM_KERNELS_REDUCTION_BEST_H_

#include "sim/ir/module.h"
#include "sim/kernels/reduction/fold.h"
#include "sim/kernels/reduction/fold_axes.h"

typedef struct {
  bool is_min;
  mp_dtype_t type;  // in which values are compared; those of narrower types are converted
  bool converts;
  mp_ew_t load;
  size_t size, position_size;  // of a value and a position, in bytes
} mp_best_t;

// Whether the op is such a reduction, of values and of a `stablehlo.iota` along the one dimension
// that it reduces, with elements, start values and results of the region's own types.
bool mp_best_find(const mp_op_t *op, mp_best_t *out_best);

// Whether the region (value, position, value, position) -> (value, position) chooses that way.
// Positions are integers.
bool mp_best_is_choice(const mp_block_t *region, bool is_min);

// Whether comparisons alone find the results: reduced elements are neighbours, or enough results
// are.
bool mp_best_has_way(const mp_fold_axes_t *kept, const mp_fold_axes_t *reduced);

// Results [begin, end) of a reduction of `array`, over the reduced positions [first, last).
typedef struct {
  const mp_fold_axes_t *kept, *reduced;
  const void *array;
  int64_t begin, end, first, last;
} mp_best_box_t;

// Finds the values and positions of the first results of a box, without start values, and returns
// how many it found, at most MP_BEST_LANES. `scratch` has MP_BEST_SCRATCH bytes.
enum { MP_BEST_LANES = 512, MP_BEST_SCRATCH = 3 * MP_BEST_LANES * 8 };
int64_t mp_best_results(const mp_best_t *best, const mp_best_box_t *box, void *scratch,
                        char *out_values, char *out_positions);

#endif  // MINIPOD_SIM_KERNELS_REDUCTION_BEST_H_
