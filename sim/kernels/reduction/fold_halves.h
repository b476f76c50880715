// The end of a row for the usual folds; private to this folder.
#ifndef MINIPOD_SIM_KERNELS_REDUCTION_FOLD_HALVES_H_
#define MINIPOD_SIM_KERNELS_REDUCTION_FOLD_HALVES_H_

#include "sim/kernels/reduction/fold.h"

// The function that folds MP_FOLD_LANES accumulators of this type into the first one; NULL if there
// is none, and the fold's own loop has to do it half by half.
mp_fold_halves_t mp_fold_find_halves(mp_reduce_kind_t kind, mp_dtype_t dtype);

#endif  // MINIPOD_SIM_KERNELS_REDUCTION_FOLD_HALVES_H_
