// Shared by the files of scans.
#ifndef MINIPOD_SIM_PASSES_SCAN_IMPL_H_
#define MINIPOD_SIM_PASSES_SCAN_IMPL_H_

#include "sim/passes/scan.h"

// What the composite's attributes say.
typedef struct {
  uint32_t num_inputs, num_outputs, num_carries;
  int64_t dim, length;
  bool is_reverse, is_associative;
  const mp_block_t *region;
} mp_scan_form_t;

// Where ops are made: before an anchor, which is the last op of a block for the time being.
typedef struct {
  const mp_scan_t *scan;
  const mp_scan_form_t *form;
  mp_op_t *anchor;
} mp_scan_at_t;

// Each makes one of the better forms (scan.h) and writes all results, or sets nothing.
MP_NODISCARD mp_status_t mp_scan_make_windows(const mp_scan_at_t *at, mp_value_t **out_results,
                                              bool *out_made);
MP_NODISCARD mp_status_t mp_scan_make_loop(const mp_scan_at_t *at, mp_value_t **out_results,
                                           bool *out_made);

#endif  // MINIPOD_SIM_PASSES_SCAN_IMPL_H_
