// Matrix times vector: dot_general with one row on one side, where packing would cost more than
// the product itself.
#ifndef MINIPOD_SIM_KERNELS_CONTRACTION_MATVEC_H_
#define MINIPOD_SIM_KERNELS_CONTRACTION_MATVEC_H_

#include "sim/kernels/contraction/operand.h"

// Where lines begin, in elements; listed beforehand if there are few lines.
typedef struct {
  const int32_t *matrix, *vector;  // NULL: they are found when the product runs
  bool are_packed;                 // lines follow each other in both operands
} mp_matvec_places_t;

// result[batch, row] = sum over k of matrix[row, k] * vector[k]. The operands must not be crossed
// (mp_operand_t).
typedef struct {
  mp_acc_t acc;
  const mp_operand_t *matrix, *vector;
  uint32_t matrix_operand, vector_operand;  // operand numbers of the op
  mp_convert_t store;                       // accumulation type to result type
  // Set by mp_matvec_plan.
  bool sums_by_k;  // rows are contiguous: many sums grow together, one k after the other
  // Otherwise sums are made line by line, in MP_MATVEC_LANES lanes, element k in lane k modulo
  // LANES, which are then added up in halves.
  bool is_short;              // of few elements: mp_matvec_run_short
  mp_matvec_places_t places;  // of short lines
  bool is_lines;              // lines are read in place: mp_matvec_run_lines
} mp_matvec_t;

enum { MP_MATVEC_LANES = 16 };

// Sets num_parts and scratch_bytes of `kernel`.
MP_NODISCARD mp_status_t mp_matvec_plan(mp_arena_t *arena, mp_matvec_t *matvec,
                                        mp_kernel_t *kernel);
// Runs the part `call->part` of a product that mp_matvec_plan has planned.
void mp_matvec_run_part(const mp_matvec_t *matvec, const mp_kernel_t *kernel,
                        const mp_kernel_call_t *call);

#endif  // MINIPOD_SIM_KERNELS_CONTRACTION_MATVEC_H_
