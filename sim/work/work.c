// The table of ops: the class of an op, and the function that counts its operations.
#include "sim/work/work_impl.h"

const char *mp_work_class_name(mp_work_class_t work_class) {
  static const char *const names[] = {
#define MP_WORK_CLASS_TEXT(name, text) [MP_WORK_##name] = text,
      MP_WORK_CLASSES(MP_WORK_CLASS_TEXT)
#undef MP_WORK_CLASS_TEXT
  };
  return names[work_class];
}

typedef struct {
  mp_work_class_t work_class;
  void (*count)(const mp_op_t *op, mp_work_t *work);  // NULL: nothing but bytes
} work_row_t;

// All ops with kernels that are not elementwise; MINIPOD_FUSION and CUSTOM_CALL have no row, since
// it depends on the op. test_work holds the table against the op list.
static const work_row_t g_rows[MP_OP_COUNT] = {
    [MP_OP_BATCH_NORM_GRAD] = {MP_WORK_REDUCTION, mp_work_count_batch_norm},
    [MP_OP_BATCH_NORM_INFERENCE] = {MP_WORK_ELEMENTWISE, mp_work_count_batch_norm},
    [MP_OP_BATCH_NORM_TRAINING] = {MP_WORK_REDUCTION, mp_work_count_batch_norm},
    [MP_OP_BITCAST_CONVERT] = {MP_WORK_COPY, NULL},
    [MP_OP_BROADCAST_IN_DIM] = {MP_WORK_COPY, NULL},
    [MP_OP_CHOLESKY] = {MP_WORK_LINALG, mp_work_count_cholesky},
    [MP_OP_CONCATENATE] = {MP_WORK_COPY, NULL},
    [MP_OP_CONVOLUTION] = {MP_WORK_CONVOLUTION, mp_work_count_convolution},
    [MP_OP_DOT_GENERAL] = {MP_WORK_MATMUL, mp_work_count_dot},
    [MP_OP_DYNAMIC_SLICE] = {MP_WORK_COPY, NULL},
    [MP_OP_DYNAMIC_UPDATE_SLICE] = {MP_WORK_COPY, NULL},
    [MP_OP_FFT] = {MP_WORK_FFT, mp_work_count_fft},
    [MP_OP_GATHER] = {MP_WORK_GATHER, NULL},
    [MP_OP_IOTA] = {MP_WORK_COPY, NULL},
    [MP_OP_MAP] = {MP_WORK_ELEMENTWISE, mp_work_count_map},
    [MP_OP_PAD] = {MP_WORK_COPY, NULL},
    [MP_OP_REDUCE] = {MP_WORK_REDUCTION, mp_work_count_reduce},
    [MP_OP_REDUCE_WINDOW] = {MP_WORK_WINDOW, mp_work_count_reduce_window},
    [MP_OP_REVERSE] = {MP_WORK_COPY, NULL},
    [MP_OP_RNG] = {MP_WORK_RNG, mp_work_count_rng},
    [MP_OP_RNG_BIT_GENERATOR] = {MP_WORK_RNG, mp_work_count_random_bits},
    [MP_OP_SCATTER] = {MP_WORK_SCATTER, mp_work_count_scatter},
    [MP_OP_SELECT_AND_SCATTER] = {MP_WORK_WINDOW, mp_work_count_select_and_scatter},
    [MP_OP_SLICE] = {MP_WORK_COPY, NULL},
    [MP_OP_SORT] = {MP_WORK_SORT, mp_work_count_sort},
    [MP_OP_TRANSPOSE] = {MP_WORK_COPY, NULL},
    [MP_OP_TRIANGULAR_SOLVE] = {MP_WORK_LINALG, mp_work_count_triangular_solve},
};

static void work_count_op(const mp_op_t *op, mp_work_t *work) {
  const work_row_t *row = &g_rows[op->code];
  work->work_class = row->work_class;
  if (mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE)) {
    work->work_class = MP_WORK_ELEMENTWISE;
    mp_work_count_elementwise(op, work);
  } else if (mp_op_has(op, MP_OP_TRAIT_COLLECTIVE)) {
    work->work_class = MP_WORK_COLLECTIVE;
  } else if (mp_op_info(op->code)->role == MP_OP_ROLE_COMMAND) {
    work->work_class = MP_WORK_SCALAR;
  } else if (op->code == MP_OP_CUSTOM_CALL) {
    mp_work_count_call(op, work);
  } else if (row->count != NULL) {
    row->count(op, work);
  }
}

// The class of a fused op is that of what is slowest in it.
static mp_work_class_t work_fused_class(mp_work_class_t a, mp_work_class_t b) {
  static const mp_work_class_t order[] = {MP_WORK_MATMUL, MP_WORK_GATHER, MP_WORK_REDUCTION,
                                          MP_WORK_ELEMENTWISE, MP_WORK_COPY};
  for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); ++i) {
    if (a == order[i] || b == order[i]) return order[i];
  }
  return a > b ? a : b;
}

// Whether the op takes and makes nothing but single elements.
static bool work_is_scalar(const mp_op_t *op, mp_work_class_t work_class) {
  if (work_class != MP_WORK_ELEMENTWISE && work_class != MP_WORK_COPY) return false;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    if (mp_work_operand_count(op, i) > 1) return false;
  }
  for (uint32_t i = 0; i < op->num_results; ++i) {
    if (mp_work_result_count(op, i) > 1) return false;
  }
  return true;
}

void mp_work_of_op(const mp_op_t *op, mp_work_t *out_work) {
  *out_work = (mp_work_t){.work_class = MP_WORK_FREE};
  if (op->code == MP_OP_FUSION) {
    mp_work_class_t work_class = MP_WORK_COPY;
    for (const mp_op_t *in = op->regions[0]->first; in != NULL; in = in->next) {
      work_count_op(in, out_work);
      work_class = work_fused_class(work_class, out_work->work_class);
    }
    out_work->work_class = work_class;
  } else {
    work_count_op(op, out_work);
  }
  if (work_is_scalar(op, out_work->work_class)) out_work->work_class = MP_WORK_SCALAR;
}
