// The kernel maker of each op: one row for every op of the list. If an op has no row, this file
// does not compile. NONE marks ops without a kernel, whose role in the op list is not KERNEL.
#include "sim/kernels/table/kernel_table.h"

#include <stddef.h>

#include "sim/base/assert.h"
#include "sim/kernels/contraction/contraction_makers.h"
#include "sim/kernels/elementwise/elementwise_makers.h"
#include "sim/kernels/fft/fft_makers.h"
#include "sim/kernels/fused/fusion.h"
#include "sim/kernels/linalg/linalg_makers.h"
#include "sim/kernels/movement/movement_makers.h"
#include "sim/kernels/random/random_makers.h"
#include "sim/kernels/reduction/reduction_makers.h"
#include "sim/kernels/shape.h"
#include "sim/kernels/table/custom_call.h"
#include "sim/kernels/windows/windows_makers.h"

#define NONE        NULL
#define MAKER(name) mp_kernel_make_##name
#define ELEMENTWISE MAKER(elementwise)

// clang-format off
#define ROW_ABS                         ELEMENTWISE
#define ROW_ADD                         ELEMENTWISE
#define ROW_AFTER_ALL                   NONE
#define ROW_ALL_GATHER                  NONE
#define ROW_ALL_REDUCE                  NONE
#define ROW_ALL_TO_ALL                  NONE
#define ROW_AND                         ELEMENTWISE
#define ROW_ASYNC_DONE                  NONE
#define ROW_ASYNC_START                 NONE
#define ROW_ATAN2                       ELEMENTWISE
#define ROW_BATCH_NORM_GRAD             MAKER(batch_norm_grad)
#define ROW_BATCH_NORM_INFERENCE        MAKER(batch_norm_inference)
#define ROW_BATCH_NORM_TRAINING         MAKER(batch_norm_training)
#define ROW_BITCAST_CONVERT             MAKER(bitcast_convert)
#define ROW_BROADCAST                   NONE
#define ROW_BROADCAST_IN_DIM            MAKER(broadcast_in_dim)
#define ROW_CASE                        NONE
#define ROW_CBRT                        ELEMENTWISE
#define ROW_CEIL                        ELEMENTWISE
#define ROW_CHOLESKY                    MAKER(cholesky)
#define ROW_CLAMP                       ELEMENTWISE
#define ROW_COLLECTIVE_BROADCAST        NONE
#define ROW_COLLECTIVE_PERMUTE          NONE
#define ROW_COLLECTIVE_REDUCE           NONE
#define ROW_COMPARE                     ELEMENTWISE
#define ROW_COMPLEX                     ELEMENTWISE
#define ROW_COMPOSITE                   NONE
#define ROW_CONCATENATE                 MAKER(concatenate)
#define ROW_CONSTANT                    NONE
#define ROW_CONVERT                     ELEMENTWISE
#define ROW_CONVOLUTION                 MAKER(convolution)
#define ROW_COSINE                      ELEMENTWISE
#define ROW_COUNT_LEADING_ZEROS         ELEMENTWISE
#define ROW_CREATE_TOKEN                NONE
#define ROW_CROSS_REPLICA_SUM           NONE
#define ROW_CUSTOM_CALL                 MAKER(custom_call)
#define ROW_DIVIDE                      ELEMENTWISE
#define ROW_DOT                         NONE
#define ROW_DOT_GENERAL                 MAKER(dot_general)
#define ROW_DYNAMIC_BROADCAST_IN_DIM    NONE
#define ROW_DYNAMIC_CONV                NONE
#define ROW_DYNAMIC_GATHER              NONE
#define ROW_DYNAMIC_IOTA                NONE
#define ROW_DYNAMIC_PAD                 NONE
#define ROW_DYNAMIC_RESHAPE             NONE
#define ROW_DYNAMIC_SLICE               MAKER(dynamic_slice)
#define ROW_DYNAMIC_UPDATE_SLICE        MAKER(dynamic_update_slice)
#define ROW_EINSUM                      NONE
#define ROW_EXPONENTIAL                 ELEMENTWISE
#define ROW_EXPONENTIAL_MINUS_ONE       ELEMENTWISE
#define ROW_FFT                         MAKER(fft)
#define ROW_FLOOR                       ELEMENTWISE
#define ROW_GATHER                      MAKER(gather)
#define ROW_GET_DIMENSION_SIZE          NONE
#define ROW_GET_TUPLE_ELEMENT           NONE
#define ROW_IF                          NONE
#define ROW_IMAG                        ELEMENTWISE
#define ROW_INFEED                      NONE
#define ROW_IOTA                        MAKER(iota)
#define ROW_IS_FINITE                   ELEMENTWISE
#define ROW_LOG                         ELEMENTWISE
#define ROW_LOG_PLUS_ONE                ELEMENTWISE
#define ROW_LOGISTIC                    ELEMENTWISE
#define ROW_MAP                         MAKER(map)
#define ROW_MAXIMUM                     ELEMENTWISE
#define ROW_MINIMUM                     ELEMENTWISE
#define ROW_MULTIPLY                    ELEMENTWISE
#define ROW_NEGATE                      ELEMENTWISE
#define ROW_NOT                         ELEMENTWISE
#define ROW_OPTIMIZATION_BARRIER        NONE
#define ROW_OR                          ELEMENTWISE
#define ROW_OUTFEED                     NONE
#define ROW_PAD                         MAKER(pad)
#define ROW_PARTITION_ID                NONE
#define ROW_POPCNT                      ELEMENTWISE
#define ROW_POWER                       ELEMENTWISE
#define ROW_REAL                        ELEMENTWISE
#define ROW_REAL_DYNAMIC_SLICE          NONE
#define ROW_RECV                        NONE
#define ROW_REDUCE                      MAKER(reduce)
#define ROW_REDUCE_PRECISION            ELEMENTWISE
#define ROW_REDUCE_SCATTER              NONE
#define ROW_REDUCE_WINDOW               MAKER(reduce_window)
#define ROW_REMAINDER                   ELEMENTWISE
#define ROW_REPLICA_ID                  NONE
#define ROW_RESHAPE                     NONE
#define ROW_RETURN                      NONE
#define ROW_REVERSE                     MAKER(reverse)
#define ROW_RNG                         MAKER(rng)
#define ROW_RNG_BIT_GENERATOR           MAKER(rng_bit_generator)
#define ROW_ROUND_NEAREST_AFZ           ELEMENTWISE
#define ROW_ROUND_NEAREST_EVEN          ELEMENTWISE
#define ROW_RSQRT                       ELEMENTWISE
#define ROW_SCATTER                     MAKER(scatter)
#define ROW_SELECT                      ELEMENTWISE
#define ROW_SELECT_AND_SCATTER          MAKER(select_and_scatter)
#define ROW_SEND                        NONE
#define ROW_SET_DIMENSION_SIZE          NONE
#define ROW_SHIFT_LEFT                  ELEMENTWISE
#define ROW_SHIFT_RIGHT_ARITHMETIC      ELEMENTWISE
#define ROW_SHIFT_RIGHT_LOGICAL         ELEMENTWISE
#define ROW_SIGN                        ELEMENTWISE
#define ROW_SINE                        ELEMENTWISE
#define ROW_SLICE                       MAKER(slice)
#define ROW_SORT                        MAKER(sort)
#define ROW_SQRT                        ELEMENTWISE
#define ROW_SUBTRACT                    ELEMENTWISE
#define ROW_TAN                         ELEMENTWISE
#define ROW_TANH                        ELEMENTWISE
#define ROW_TORCH_INDEX_SELECT          NONE
#define ROW_TRANSPOSE                   MAKER(transpose)
#define ROW_TRIANGULAR_SOLVE            MAKER(triangular_solve)
#define ROW_TUPLE                       NONE
#define ROW_UNARY_EINSUM                NONE
#define ROW_UNIFORM_DEQUANTIZE          NONE
#define ROW_UNIFORM_QUANTIZE            NONE
#define ROW_WHILE                       NONE
#define ROW_XOR                         ELEMENTWISE
#define ROW_CALL                        NONE
#define ROW_SDY_ALL_GATHER              NONE
#define ROW_SDY_ALL_REDUCE              NONE
#define ROW_SDY_ALL_SLICE               NONE
#define ROW_SDY_ALL_TO_ALL              NONE
#define ROW_SDY_COLLECTIVE_PERMUTE      NONE
#define ROW_SDY_CONSTANT                NONE
#define ROW_SDY_DATA_FLOW_EDGE          NONE
#define ROW_SDY_MANUAL_COMPUTATION      NONE
#define ROW_SDY_NAMED_COMPUTATION       NONE
#define ROW_SDY_PROPAGATION_BARRIER     NONE
#define ROW_SDY_REDUCE_SCATTER          NONE
#define ROW_SDY_REPLICATED_TO_UNREDUCED NONE
#define ROW_SDY_RESHARD                 NONE
#define ROW_SDY_SHARDED_TO_UNREDUCED    NONE
#define ROW_SDY_SHARDING_CONSTRAINT     NONE
#define ROW_SDY_SHARDING_GROUP          NONE
#define ROW_EXCHANGE                    NONE
#define ROW_FUSION                      kernel_table_make_fusion
// clang-format on

// The kernels of a fused op's bands are those of the table, too.
static mp_status_t kernel_table_make_fusion(mp_arena_t *arena, const mp_op_t *op,
                                            const mp_kernel_t **out_kernel) {
  return mp_kernel_make_fusion(arena, op, mp_kernel_create, out_kernel);
}

static const mp_kernel_maker_t g_makers[MP_OP_COUNT] = {
#define ROW(name, ...) [MP_OP_##name] = ROW_##name,
    MP_OPS(ROW)
#undef ROW
};

mp_value_t *mp_kernel_operand(const mp_op_t *op, uint32_t operand) {
  const bool is_counted = (op->code == MP_OP_SORT && mp_kernel_sort_counts(op, operand)) ||
                          (op->code == MP_OP_REDUCE && mp_kernel_reduce_counts(op, operand));
  if (is_counted) return op->operands[0];
  const bool is_elementwise = g_makers[op->code] == mp_kernel_make_elementwise;
  return is_elementwise ? mp_kernel_elementwise_operand(op, operand) : op->operands[operand];
}

// Whether no result of the op has any elements.
static bool kernel_table_makes_nothing(const mp_op_t *op) {
  for (uint32_t i = 0; i < op->num_results; ++i) {
    if (mp_shape_count(mp_op_result_type(op, i)) != 0) return false;
  }
  return op->num_results > 0;
}

static mp_status_t kernel_table_run_nothing(const mp_kernel_t *kernel,
                                            const mp_kernel_call_t *call) {
  (void)kernel, (void)call;
  return NULL;
}

// Why an op has no kernel.
static const char *kernel_table_reason(mp_opcode_t code) {
  switch (code) {
    case MP_OP_INFEED:
    case MP_OP_OUTFEED:
      return "there are no queues between the host and a running program; pass arrays as arguments "
             "and results";
    case MP_OP_DYNAMIC_BROADCAST_IN_DIM:
    case MP_OP_DYNAMIC_CONV:
    case MP_OP_DYNAMIC_GATHER:
    case MP_OP_DYNAMIC_IOTA:
    case MP_OP_DYNAMIC_PAD:
    case MP_OP_DYNAMIC_RESHAPE:
    case MP_OP_REAL_DYNAMIC_SLICE:
      return "its shape depends on values that are only known when the program runs";
    default:
      return "this operation has no kernel";
  }
}

mp_status_t mp_kernel_create(mp_arena_t *arena, const mp_op_t *op, const mp_kernel_t **out_kernel) {
  mp_kernel_maker_t make = g_makers[op->code];
  if (make == NULL) return mp_op_error(op, MP_UNIMPLEMENTED, "%s", kernel_table_reason(op->code));
  // The kernel is made in any case, so that a maker's refusal does not depend on sizes.
  MP_RETURN_IF_ERROR(make(arena, op, out_kernel));
  MP_ASSERT((*out_kernel)->run != NULL && (*out_kernel)->num_parts >= 1);
  MP_ASSERT((*out_kernel)->op == op);
  MP_ASSERT((*out_kernel)->finish == NULL || (*out_kernel)->num_parts > 1);
  MP_ASSERT((*out_kernel)->shared_bytes <= MP_KERNEL_SHARED_MOST);
  MP_ASSERT(op->num_operands >= 32 || (*out_kernel)->in_place >> op->num_operands == 0);
  if (!kernel_table_makes_nothing(op)) return NULL;
  mp_kernel_t *nothing = MP_ARENA_NEW(arena, mp_kernel_t);
  MP_RETURN_IF_NULL(nothing);
  mp_kernel_init(nothing, kernel_table_run_nothing, op);
  *out_kernel = nothing;
  return NULL;
}
