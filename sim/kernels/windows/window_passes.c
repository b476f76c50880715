#include "sim/kernels/windows/window_passes.h"

#include <math.h>
#include <string.h>

#include "sim/kernels/shape.h"
#include "sim/kernels/strided.h"

enum { LANES = MP_FOLD_LANES };
// Slices with larger intermediate results are done element by element, which needs no memory.
static const int64_t g_max_buffer_bytes = INT64_C(64) << 20;

// ---- Neutral elements ----

// `dtype` is a computing type.
static bool window_passes_find_neutral(mp_reduce_kind_t kind, mp_dtype_t dtype, char *out_element) {
  double value = 0;
  switch (kind) {
    case MP_REDUCE_ADD:
      // x + -0 is x for all x, while x + 0 is not x for -0.
      value = mp_dtype_is_float(dtype) ? -0.0 : 0;
      break;
    case MP_REDUCE_MUL:
      value = 1;
      break;
    case MP_REDUCE_MIN:
      value = INFINITY;  // saturates to the largest integer
      break;
    case MP_REDUCE_MAX:
      value = -INFINITY;
      break;
    case MP_REDUCE_AND:
      memset(out_element, mp_dtype_class(dtype) == MP_CLASS_BOOL ? 1 : 0xff, 16);
      return !mp_dtype_is_float(dtype) && !mp_dtype_is_complex(dtype);
    case MP_REDUCE_OR:
    case MP_REDUCE_XOR:
      break;
    default:
      return false;
  }
  bool is_extreme = kind == MP_REDUCE_MIN || kind == MP_REDUCE_MAX;
  if (is_extreme && mp_dtype_is_complex(dtype)) return false;
  mp_ew_t convert;
  if (!mp_ew_bind_convert(MP_DTYPE_F64, dtype, &convert)) return false;
  // Converted to a boolean, the smallest number would be true.
  if (mp_dtype_class(dtype) == MP_CLASS_BOOL && kind == MP_REDUCE_MAX) value = 0;
  const void *in[] = {&value};
  mp_ew_run(&convert, 1, in, out_element);
  return true;
}

// ---- Making ----

bool mp_window_passes_create(const mp_window_t *window, const mp_fold_t *fold, mp_dtype_t dtype,
                             mp_window_passes_t *out_passes) {
  mp_window_passes_t passes = {.fold = fold, .num_slices = 1, .slice_in = 1, .slice_out = 1};
  if (fold->kind == MP_REDUCE_CUSTOM || window->count == 0) return false;
  if (!window_passes_find_neutral(fold->kind, mp_ew_computing_type(dtype), passes.neutral))
    return false;
  uint32_t leading = 0;
  while (leading < window->rank && window->dims[leading].is_plain &&
         window->dims[leading].in == window->dims[leading].out) {
    passes.num_slices *= window->dims[leading++].in;
  }
  int64_t inner = 1;
  for (uint32_t i = leading; i < window->rank; ++i) {
    passes.slice_in *= window->dims[i].in;
    passes.slice_out *= window->dims[i].out;
    inner *= window->dims[i].in;
  }
  if (passes.slice_in == 0) return false;
  int64_t outer = 1, largest = passes.slice_in;
  for (uint32_t i = leading; i < window->rank; ++i) {
    const mp_window_dim_t *dim = &window->dims[i];
    inner /= dim->in;
    if (!dim->is_plain || dim->in != dim->out) {
      if (inner == 1 && dim->base_dilation != 1) return false;
      passes.passes[passes.num_passes++] =
          (mp_window_pass_t){.dim = *dim, .outer = outer, .inner = inner};
      int64_t elements;
      if (__builtin_mul_overflow(outer * dim->out, inner, &elements)) return false;
      largest = mp_max_i64(largest, elements);
    }
    outer *= dim->out;
  }
  if (passes.num_passes == 0) return false;
  int64_t size = (int64_t)fold->operands[0].acc_size;
  if (largest > g_max_buffer_bytes / size) return false;
  passes.buffer_elements = largest;
  passes.scratch_bytes = 2 * mp_round_up_64((size_t)(largest * size)) + LANES * 16;
  *out_passes = passes;
  return true;
}

// ---- Running ----

// Computes one row: out[0..inner) is the fold of the rows that window `o` has along the dimension.
static void window_passes_fold_rows(const mp_window_passes_t *passes, const mp_window_pass_t *pass,
                                    int64_t o, const char *in, char *out) {
  const mp_window_dim_t *dim = &pass->dim;
  size_t size = passes->fold->operands[0].acc_size, row = (size_t)pass->inner * size;
  bool is_first = true;
  for (int64_t w = 0; w < dim->size; ++w) {
    int64_t place = o * dim->stride + w * dim->dilation - dim->low;
    if (place < 0 || place % dim->base_dilation != 0) continue;
    place /= dim->base_dilation;
    if (place >= dim->in) break;
    const char *from = in + (size_t)place * row;
    if (is_first) {
      memcpy(out, from, row);
      is_first = false;
    } else {
      const void *operands[] = {out, from};
      passes->fold->loop(pass->inner, operands, out);
    }
  }
  if (is_first) mp_fill(out, passes->neutral, size, pass->inner);
}

static int64_t window_passes_div_up(int64_t a, int64_t b) {
  return a >= 0 ? (a + b - 1) / b : -(-a / b);
}

// Reduces along the innermost dimension: all windows of a line at once, one element of the window
// after the other; only the windows that have the element take part.
static void window_passes_fold_line(const mp_window_passes_t *passes, const mp_window_pass_t *pass,
                                    const char *in, char *out, char *spare) {
  const mp_window_dim_t *dim = &pass->dim;
  const mp_fold_t *fold = passes->fold;
  int64_t size = (int64_t)fold->operands[0].acc_size;
  mp_fill(out, passes->neutral, (size_t)size, dim->out);
  for (int64_t w = 0; w < dim->size; ++w) {
    int64_t shift = w * dim->dilation - dim->low;  // element w of window 0
    int64_t begin = mp_max_i64(0, window_passes_div_up(-shift, dim->stride));
    int64_t end = mp_min_i64(dim->out, window_passes_div_up(dim->in - shift, dim->stride));
    for (int64_t o = begin, n; o < end; o += n) {
      n = mp_min_i64(end - o, LANES);
      const char *from = in + (o * dim->stride + shift) * size;
      if (dim->stride != 1) {
        mp_copy_line(spare, size, from, dim->stride * size, (size_t)size, n);
        from = spare;
      }
      const void *operands[] = {out + o * size, from};
      fold->loop(n, operands, out + o * size);
    }
  }
}

static void window_passes_run_pass(const mp_window_passes_t *passes, const mp_window_pass_t *pass,
                                   const char *in, char *out, char *spare) {
  size_t size = passes->fold->operands[0].acc_size;
  size_t in_step = (size_t)(pass->dim.in * pass->inner) * size;
  size_t out_step = (size_t)(pass->dim.out * pass->inner) * size;
  for (int64_t i = 0; i < pass->outer; ++i, in += in_step, out += out_step) {
    if (pass->inner == 1) {
      window_passes_fold_line(passes, pass, in, out, spare);
      continue;
    }
    for (int64_t o = 0; o < pass->dim.out; ++o) {
      window_passes_fold_rows(passes, pass, o, in, out + (size_t)(o * pass->inner) * size);
    }
  }
}

void mp_window_passes_run(const mp_window_passes_t *passes, int64_t slice, const void *operand,
                          const void *init, void *result, void *scratch) {
  const mp_fold_t *fold = passes->fold;
  const mp_fold_operand_t *types = &fold->operands[0];
  size_t bytes = mp_round_up_64((size_t)passes->buffer_elements * types->acc_size);
  char *buffers[2] = {scratch, (char *)scratch + bytes}, *spare = (char *)scratch + 2 * bytes;
  const char *in = (const char *)operand + (size_t)(slice * passes->slice_in) * types->in_size;
  uint32_t next = 0;
  if (types->converts) {
    const void *from[] = {in};
    mp_ew_run(&types->load, passes->slice_in, from, buffers[0]);
    in = buffers[0];
    next = 1;
  }
  for (uint32_t i = 0; i < passes->num_passes; ++i, next ^= 1) {
    window_passes_run_pass(passes, &passes->passes[i], in, buffers[next], spare);
    in = buffers[next];
  }
  char *out = (char *)result + (size_t)(slice * passes->slice_out) * types->out_size;
  char *acc = buffers[next ^ 1];
  mp_fold_fill(fold, 0, mp_min_i64(passes->slice_out, LANES), init, spare);
  for (int64_t i = 0, n; i < passes->slice_out; i += n) {
    n = mp_min_i64(passes->slice_out - i, LANES);
    char *some = acc + (size_t)i * types->acc_size;
    const void *operands[] = {spare, some};
    fold->loop(n, operands, some);
    mp_fold_store(fold, 0, n, some, out + (size_t)i * types->out_size);
  }
}
