// custom_call (StableHLO specification, "custom_call"): the table of targets that minipod knows.
#include "sim/kernels/table/custom_call.h"

#include "sim/kernels/linalg/linalg_makers.h"
#include "sim/kernels/movement/movement_makers.h"

typedef struct {
  const char *target;
  mp_kernel_maker_t make;
} target_t;

static const target_t g_targets[] = {
    {"ApproxTopK", mp_call_make_approx_top_k},
    {"Eigh", mp_call_make_eigh},
    {"LuDecomposition", mp_call_make_lu},
    {"ProductOfElementaryHouseholderReflectors", mp_call_make_householder_product},
    {"Qr", mp_call_make_qr},
    {"TopK", mp_call_make_top_k},
    {"mhlo.topk", mp_call_make_top_k},
    {"minipod.check_index", mp_call_make_index_check},
    {"minipod.eigh.lower", mp_call_make_eigh_lower},
    {"minipod.eigh.upper", mp_call_make_eigh_upper},
    {"minipod.pivots_to_permutation", mp_call_make_pivots_to_permutation},
    {"minipod.svd", mp_call_make_svd},
    {"minipod.tridiagonal_solve", mp_call_make_tridiagonal_solve},
    {"minipod.tridiagonal_solve.perturbed", mp_call_make_tridiagonal_solve_perturbed},
};

enum { NUM_TARGETS = sizeof(g_targets) / sizeof(g_targets[0]) };

const char *mp_call_target(size_t index) {
  return index < NUM_TARGETS ? g_targets[index].target : NULL;
}

static const target_t *custom_call_find(mp_str_t target) {
  for (size_t i = 0; i < NUM_TARGETS; ++i) {
    if (mp_str_is(target, g_targets[i].target)) return &g_targets[i];
  }
  return NULL;
}

bool mp_call_has_kernel(mp_str_t target) {
  return custom_call_find(target) != NULL;
}

mp_status_t mp_kernel_make_custom_call(mp_arena_t *arena, const mp_op_t *op,
                                       const mp_kernel_t **out_kernel) {
  mp_str_t target = mp_op_str(op, MP_ATTR_CALL_TARGET_NAME);
  const target_t *known = custom_call_find(target);
  if (known != NULL) return known->make(arena, op, out_kernel);
  return mp_op_error(op, MP_UNIMPLEMENTED, "custom_call target '%.*s' is not known to minipod",
                     MP_STR_ARG(target));
}
