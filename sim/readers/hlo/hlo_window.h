// Windows (Window) as the lists of numbers that StableHLO has.
#ifndef MINIPOD_SIM_READERS_HLO_HLO_WINDOW_H_
#define MINIPOD_SIM_READERS_HLO_HLO_WINDOW_H_

#include "sim/readers/hlo/hlo_build.h"

// Each list has an entry per dimension of the window, `padding` two: low and high. Strides and
// dilations that are not stated are 1.
typedef struct {
  uint32_t rank;
  mp_hlo_ints_t sizes, strides, padding, window_dilations, base_dilations, reversal;
  bool is_dilated, is_reversed;  // in any dimension
} mp_hlo_window_t;

MP_NODISCARD mp_status_t mp_hlo_read_window(mp_hlo_t *h, const mp_hlo_inst_t *inst,
                                            mp_hlo_window_t *out_window);

#endif  // MINIPOD_SIM_READERS_HLO_HLO_WINDOW_H_
