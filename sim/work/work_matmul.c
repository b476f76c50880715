// Matmuls: dot_general, and convolutions as matmuls of patches and kernels.
#include <math.h>

#include "sim/work/work_impl.h"

// ---- what is multiplied ----

// The type of the factors: the wider of both operands'.
static mp_dtype_t work_matmul_dtype(const mp_op_t *op) {
  const mp_dtype_t lhs = op->operands[0]->type->dtype, rhs = op->operands[1]->type->dtype;
  return mp_dtype_bits(rhs) > mp_dtype_bits(lhs) ? rhs : lhs;
}

// How many matmuls of bf16 make one of f32 with the precision that the op asks for.
static double work_matmul_bf16_passes(const mp_op_t *op) {
  static const double passes[] = {
      [MP_PRECISION_DEFAULT] = 1, [MP_PRECISION_HIGH] = 3, [MP_PRECISION_HIGHEST] = 6};
  const mp_attr_t *config = mp_op_attr(op, MP_ATTR_PRECISION_CONFIG);
  double most = 1;
  if (config == NULL || config->kind != MP_KIND_ARRAY) return most;
  for (size_t i = 0; i < config->u.array.count; ++i) {
    const mp_attr_t *item = config->u.array.items[i];
    if (item->kind == MP_KIND_ENUM && item->u.enumeration.value <= MP_PRECISION_HIGHEST) {
      most = fmax(most, passes[item->u.enumeration.value]);
    }
  }
  return most;
}

// The algorithm that a matmul names replaces the operands' type and the precision.
static void work_matmul_take_algorithm(const mp_op_t *op, mp_work_matmul_t *matmul) {
  const mp_attr_t *lhs = mp_op_attr(op, MP_ATTR_LHS_PRECISION_TYPE);
  const mp_attr_t *rhs = mp_op_attr(op, MP_ATTR_RHS_PRECISION_TYPE);
  if (lhs == NULL || rhs == NULL || lhs->kind != MP_KIND_TYPE || rhs->kind != MP_KIND_TYPE) return;
  if (lhs->u.type->kind == MP_TYPE_NONE || rhs->u.type->kind == MP_TYPE_NONE) return;
  const mp_dtype_t a = lhs->u.type->dtype, b = rhs->u.type->dtype;
  matmul->dtype = mp_dtype_bits(b) > mp_dtype_bits(a) ? b : a;
  matmul->passes *= fmax((double)mp_op_int(op, MP_ATTR_NUM_PRIMITIVE_OPERATIONS, 1), 1);
  matmul->bf16_passes = 1;
}

static void work_matmul_set(const mp_op_t *op, double batch, double m, double n, double k,
                            mp_work_t *work) {
  const mp_dtype_t dtype = work_matmul_dtype(op);
  work->matmul = (mp_work_matmul_t){.batch = batch,
                                    .m = m,
                                    .n = n,
                                    .k = k,
                                    .dtype = mp_dtype_real_part(dtype),
                                    .result = op->results[0].type->dtype,
                                    .passes = mp_dtype_is_complex(dtype) ? 4 : 1,
                                    .bf16_passes = work_matmul_bf16_passes(op)};
  work_matmul_take_algorithm(op, &work->matmul);
  work->flops += 2 * batch * m * n * k;
}

// ---- dot_general ----

static double work_matmul_of_dims(const mp_type_t *type, mp_index_list_t dims) {
  double matmul = 1;
  for (uint32_t i = 0; i < dims.count; ++i) matmul *= (double)type->dims[dims.values[i]];
  return matmul;
}

void mp_work_count_dot(const mp_op_t *op, mp_work_t *work) {
  const mp_type_t *lhs = op->operands[0]->type;
  const double batch = work_matmul_of_dims(lhs, mp_op_ints(op, MP_ATTR_LHS_BATCHING_DIMENSIONS));
  const double k = work_matmul_of_dims(lhs, mp_op_ints(op, MP_ATTR_LHS_CONTRACTING_DIMENSIONS));
  const double m = mp_work_operand_count(op, 0) / fmax(batch * k, 1);
  const double n = mp_work_operand_count(op, 1) / fmax(batch * k, 1);
  work_matmul_set(op, batch, m, n, k, work);
}

// ---- convolution ----

// One spatial dimension; double, because a program may spell numbers whose matmuls do not fit
// integers.
typedef struct {
  double in, out, window, stride, low, in_dilation, window_dilation;
} work_window_t;

static double work_matmul_at(mp_index_list_t list, uint32_t i, double otherwise) {
  return i < list.count ? (double)list.values[i] : otherwise;
}

static work_window_t work_matmul_window(const mp_op_t *op, uint32_t d) {
  const mp_type_t *in = op->operands[0]->type, *kernel = op->operands[1]->type;
  const mp_type_t *out = op->results[0].type;
  return (work_window_t){
      .in = (double)in->dims[mp_op_ints(op, MP_ATTR_INPUT_SPATIAL_DIMENSIONS).values[d]],
      .out = (double)out->dims[mp_op_ints(op, MP_ATTR_OUTPUT_SPATIAL_DIMENSIONS).values[d]],
      .window = (double)kernel->dims[mp_op_ints(op, MP_ATTR_KERNEL_SPATIAL_DIMENSIONS).values[d]],
      .stride = work_matmul_at(mp_op_ints(op, MP_ATTR_WINDOW_STRIDES), d, 1),
      .low = work_matmul_at(mp_op_ints(op, MP_ATTR_PADDING), 2 * d, 0),
      .in_dilation = work_matmul_at(mp_op_ints(op, MP_ATTR_LHS_DILATION), d, 1),
      .window_dilation = work_matmul_at(mp_op_ints(op, MP_ATTR_RHS_DILATION), d, 1),
  };
}

// The windows whose element at `shift` from their beginning is in the input, be it a hole of the
// dilated input or not.
static double work_matmul_hits(const work_window_t *w, double shift) {
  const double first = shift >= 0 ? 0 : ceil(-shift / w->stride);
  const double last = floor(((w->in - 1) * w->in_dilation - shift) / w->stride);
  return fmax(fmin(last, w->out - 1) - first + 1, 0);
}

// How many elements of a window lie in the input, on average over the windows: what lies in the
// padding or in a hole is not multiplied. Longer windows than a program's real ones are taken as
// inside.
static double work_matmul_taps(const work_window_t *w) {
  enum { LONGEST_WINDOW = 4096 };
  double hits = 0;
  if (w->out < 1 || w->in < 1 || w->window < 1) return 0;
  if (w->window > LONGEST_WINDOW) return w->window / w->in_dilation;
  for (double at = 0; at < w->window; ++at) {
    hits += work_matmul_hits(w, at * w->window_dilation - w->low);
  }
  return hits / w->out / w->in_dilation;
}

// All of it but the window.
static mp_work_convolution_t work_matmul_convolution(const mp_op_t *op) {
  const mp_type_t *in = op->operands[0]->type;
  return (mp_work_convolution_t){
      .window = 1,
      .row = 1,
      .images = (double)in->dims[mp_op_int(op, MP_ATTR_INPUT_BATCH_DIMENSION, 0)],
      .channels = (double)in->dims[mp_op_int(op, MP_ATTR_INPUT_FEATURE_DIMENSION, 0)],
      .in = 1,
      .out = 1,
      .holes = 1,
  };
}

static void work_matmul_add_window(const work_window_t *window, mp_work_convolution_t *out) {
  out->window *= window->window;
  out->row = window->window;
  out->in *= window->in;
  out->out *= window->out;
  out->is_strided |= window->stride > 1;
  out->holes *= window->in_dilation;
}

void mp_work_count_convolution(const mp_op_t *op, mp_work_t *work) {
  mp_work_convolution_t convolution = work_matmul_convolution(op);
  const mp_type_t *kernel = op->operands[1]->type;
  const double groups = (double)mp_op_int(op, MP_ATTR_FEATURE_GROUP_COUNT, 1) *
                        (double)mp_op_int(op, MP_ATTR_BATCH_GROUP_COUNT, 1);
  const double in = (double)kernel->dims[mp_op_int(op, MP_ATTR_KERNEL_INPUT_FEATURE_DIMENSION, 0)];
  const double out =
      (double)kernel->dims[mp_op_int(op, MP_ATTR_KERNEL_OUTPUT_FEATURE_DIMENSION, 0)];
  double k = in;
  const uint32_t num_spatial = mp_op_ints(op, MP_ATTR_KERNEL_SPATIAL_DIMENSIONS).count;
  for (uint32_t d = 0; d < num_spatial; ++d) {
    const work_window_t window = work_matmul_window(op, d);
    k *= work_matmul_taps(&window);
    work_matmul_add_window(&window, &convolution);
  }
  const double positions = mp_work_result_count(op, 0) / fmax(out, 1);
  work_matmul_set(op, groups, positions, out / groups, k, work);
  work->matmul.convolution = convolution;
}
