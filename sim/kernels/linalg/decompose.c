// The custom calls of LU, Hermitian eigenvalues and singular values (linalg_makers.h).
//
// A part is a range of the batch. If the iteration for a matrix does not converge, its results are
// NaN.
#include <complex.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "sim/kernels/elementwise/convert.h"
#include "sim/kernels/linalg/eigen_blocks.h"
#include "sim/kernels/linalg/linalg.h"
#include "sim/kernels/linalg/linalg_makers.h"
#include "sim/kernels/shape.h"

enum { GRAIN = 1 << 16 };

typedef struct {
  mp_kernel_t base;
  int64_t batch, m, n, min;
  int64_t u_columns, v_rows;  // of svd's u and vt; 0 when they are not requested
  bool is_complex, upper;
  bool keeps_blocks;  // of eigh: each eigenvalue stays among the rows of its block (eigen_blocks.h)
  size_t size, wide;  // bytes of an element, as stored and as computed
  mp_convert_t load, store, store_real;
} decompose_kernel_t;

// Takes the next memory from the scratch.
static void *decompose_take(char **scratch, int64_t count, size_t size) {
  void *at = *scratch;
  *scratch += (size_t)count * size;
  return at;
}

// Transposes `in` (rows x columns) to `out` (columns x rows), and conjugates it when asked.
static void decompose_transpose(const decompose_kernel_t *self, int64_t rows, int64_t columns,
                                bool conjugate, const void *in, void *out) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      if (self->is_complex) {
        mp_complex_t x = ((const mp_complex_t *)in)[i * columns + j];
        ((mp_complex_t *)out)[j * rows + i] = conjugate ? conj(x) : x;
      } else {
        ((double *)out)[j * rows + i] = ((const double *)in)[i * columns + j];
      }
    }
  }
}

static void decompose_conjugate_all(const decompose_kernel_t *self, int64_t count, void *a) {
  for (int64_t i = 0; self->is_complex && i < count; ++i) {
    ((mp_complex_t *)a)[i] = conj(((mp_complex_t *)a)[i]);
  }
}

static void decompose_fill_nan(size_t bytes, void *out) {
  for (size_t i = 0; i < bytes / sizeof(double); ++i) ((double *)out)[i] = (double)NAN;
}

// Matrix number `batch` of an operand or a result. An empty array has no matrices, so nothing may
// be added to its address.
static const void *decompose_operand_at(const mp_kernel_call_t *call, int64_t batch, int64_t count,
                                        size_t size) {
  const char *base = call->operands[0];
  return count == 0 ? base : base + (size_t)(batch * count) * size;
}

static void *decompose_result_at(const mp_kernel_call_t *call, uint32_t i, int64_t batch,
                                 int64_t count, size_t size) {
  char *base = call->results[i];
  return count == 0 ? base : base + (size_t)(batch * count) * size;
}

// ---- LU ----

static mp_status_t decompose_lu_run(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const decompose_kernel_t *self = (const decompose_kernel_t *)kernel;
  int64_t begin = 0, end = 0, count = self->m * self->n;
  mp_part_range(self->batch, kernel->num_parts, call->part, &begin, &end);
  for (int64_t b = begin; b < end; ++b) {
    void *a = call->scratch;
    int32_t *pivots = decompose_result_at(call, 1, b, self->min, sizeof(int32_t));
    int32_t *perm = decompose_result_at(call, 2, b, self->m, sizeof(int32_t));
    mp_convert_run(&self->load, count, decompose_operand_at(call, b, count, self->size), a);
    if (self->is_complex) {
      mp_lu_z(self->m, self->n, a, pivots, perm);
    } else {
      mp_lu_d(self->m, self->n, a, pivots, perm);
    }
    mp_convert_run(&self->store, count, a, decompose_result_at(call, 0, b, count, self->size));
  }
  return NULL;
}

// ---- Eigenvalues ----

// The memory in which one matrix is decomposed.
typedef struct {
  void *a, *v;  // the matrix; its eigenvectors as rows
  double *w;
  void *work;
  double *reals;
  // If the kernel keeps blocks:
  void *block_a, *block_v;
  double *block_w;
  int64_t *block, *rows;  // the block of each row; the rows of one block
} eigh_parts_t;

static void decompose_eigh_block(const decompose_kernel_t *self, int64_t n, void *a, void *v,
                                 double *w, const eigh_parts_t *p) {
  const bool ok = self->is_complex ? mp_eigh_z(n, a, w, v, p->work, p->reals)
                                   : mp_eigh_d(n, a, w, v, p->work, p->reals);
  if (ok) return;
  decompose_fill_nan((size_t)(n * n) * self->wide, v);
  decompose_fill_nan((size_t)n * sizeof(double), w);
}

// Decomposes the block of `count` rows p->rows.
static void decompose_eigh_of_rows(const decompose_kernel_t *self, int64_t count,
                                   const eigh_parts_t *p) {
  const size_t size = self->wide;
  const int64_t n = self->n;
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      memcpy((char *)p->block_a + (size_t)(i * count + j) * size,
             (const char *)p->a + (size_t)(p->rows[i] * n + p->rows[j]) * size, size);
    }
  }
  decompose_eigh_block(self, count, p->block_a, p->block_v, p->block_w, p);
  for (int64_t j = 0; j < count; ++j) {
    p->w[p->rows[j]] = p->block_w[j];
    for (int64_t i = 0; i < count; ++i) {
      memcpy((char *)p->v + (size_t)(p->rows[j] * n + p->rows[i]) * size,
             (const char *)p->block_v + (size_t)(j * count + i) * size, size);
    }
  }
}

// Decomposes the matrix, whose lower triangle is in p->a.
static void decompose_eigh_one(const decompose_kernel_t *self, const eigh_parts_t *p) {
  const int64_t n = self->n;
  if (!self->keeps_blocks || !mp_eigen_blocks(n, p->a, self->is_complex, p->block)) {
    decompose_eigh_block(self, n, p->a, p->v, p->w, p);
    return;
  }
  memset(p->v, 0, (size_t)(n * n) * self->wide);
  for (int64_t first = 0; first < n; ++first) {
    if (p->block[first] != first) continue;
    int64_t count = 0;
    for (int64_t i = first; i < n; ++i) {
      if (p->block[i] == first) p->rows[count++] = i;
    }
    decompose_eigh_of_rows(self, count, p);
  }
}

static eigh_parts_t decompose_eigh_parts(const decompose_kernel_t *self, char *scratch) {
  const int64_t n = self->n;
  eigh_parts_t p = {.a = decompose_take(&scratch, n * n, self->wide)};
  p.v = decompose_take(&scratch, n * n, self->wide);
  p.work = decompose_take(&scratch, n * (n + 4), self->wide);
  p.w = decompose_take(&scratch, n, sizeof(double));
  p.reals = decompose_take(&scratch, n * (n + 1), sizeof(double));
  if (!self->keeps_blocks) return p;
  p.block_a = decompose_take(&scratch, n * n, self->wide);
  p.block_v = decompose_take(&scratch, n * n, self->wide);
  p.block_w = decompose_take(&scratch, n, sizeof(double));
  p.block = decompose_take(&scratch, n, sizeof(int64_t));
  p.rows = decompose_take(&scratch, n, sizeof(int64_t));
  return p;
}

static size_t decompose_eigh_scratch(const decompose_kernel_t *self) {
  const int64_t n = self->n;
  const size_t bytes =
      (size_t)(2 * n * n + n * (n + 4)) * self->wide + (size_t)(n * (n + 2)) * sizeof(double);
  if (!self->keeps_blocks) return bytes;
  return bytes + (size_t)(2 * n * n) * self->wide +
         (size_t)n * (sizeof(double) + 2 * sizeof(int64_t));
}

static mp_status_t decompose_eigh_run(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const decompose_kernel_t *self = (const decompose_kernel_t *)kernel;
  int64_t begin = 0, end = 0, n = self->n, count = n * n;
  mp_part_range(self->batch, kernel->num_parts, call->part, &begin, &end);
  const eigh_parts_t p = decompose_eigh_parts(self, call->scratch);
  for (int64_t b = begin; b < end; ++b) {
    mp_convert_run(&self->load, count, decompose_operand_at(call, b, count, self->size),
                   self->upper ? p.v : p.a);
    if (self->upper) decompose_transpose(self, n, n, true, p.v, p.a);
    decompose_eigh_one(self, &p);
    decompose_transpose(self, n, n, false, p.v, p.a);  // the eigenvectors become columns
    mp_convert_run(&self->store, count, p.a, decompose_result_at(call, 0, b, count, self->size));
    mp_convert_run(&self->store_real, n, p.w,
                   decompose_result_at(call, 1, b, n, mp_dtype_size(self->store_real.to)));
  }
  return NULL;
}

// ---- Singular values ----

// The memory in which one matrix is decomposed.
typedef struct {
  void *a, *tall;               // the matrix; the columns of it or its adjoint, if taller, as rows
  void *left, *right, *turned;  // the vectors of u and of vt, as rows; u
  double *s;
  void *scratch;
} svd_parts_t;

static bool decompose_svd_tall(const decompose_kernel_t *self, const svd_parts_t *p,
                               int64_t num_left, void *left, void *right) {
  int64_t rows = mp_max_i64(self->m, self->n), columns = self->min;
  if (self->u_columns + self->v_rows == 0) left = right = NULL;
  return self->is_complex
             ? mp_svd_z(rows, columns, p->tall, p->s, num_left, left, right, p->scratch)
             : mp_svd_d(rows, columns, p->tall, p->s, num_left, left, right, p->scratch);
}

// Decomposes one matrix: writes the singular values to `s`, the left vectors to the rows of `left`,
// and the conjugates of the right vectors to the rows of `right`.
static void decompose_svd_one(const decompose_kernel_t *self, const svd_parts_t *p) {
  int64_t m = self->m, n = self->n;
  bool ok = false;
  if (m < n) {  // its adjoint is decomposed
    memcpy(p->tall, p->a, (size_t)(m * n) * self->wide);
    decompose_conjugate_all(self, m * n, p->tall);
    ok = decompose_svd_tall(self, p, self->v_rows, p->right, p->left);
  } else {
    decompose_transpose(self, m, n, false, p->a, p->tall);
    ok = decompose_svd_tall(self, p, self->u_columns, p->left, p->right);
  }
  if (!ok) {
    decompose_fill_nan((size_t)self->min * sizeof(double), p->s);
    decompose_fill_nan((size_t)(self->u_columns * m) * self->wide, p->left);
    decompose_fill_nan((size_t)(self->v_rows * n) * self->wide, p->right);
  }
  decompose_conjugate_all(self, self->v_rows * n, p->right);
}

static mp_status_t decompose_svd_run(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const decompose_kernel_t *self = (const decompose_kernel_t *)kernel;
  int64_t begin = 0, end = 0, m = self->m, n = self->n, count = m * n;
  int64_t u_count = m * self->u_columns, v_count = self->v_rows * n;
  mp_part_range(self->batch, kernel->num_parts, call->part, &begin, &end);
  char *scratch = call->scratch;
  svd_parts_t p = {.a = decompose_take(&scratch, count, self->wide)};
  p.tall = decompose_take(&scratch, count, self->wide);
  p.left = decompose_take(&scratch, u_count, self->wide);
  p.right = decompose_take(&scratch, v_count, self->wide);
  p.turned = decompose_take(&scratch, u_count, self->wide);
  p.s = decompose_take(&scratch, self->min, sizeof(double));
  p.scratch = scratch;
  for (int64_t b = begin; b < end; ++b) {
    mp_convert_run(&self->load, count, decompose_operand_at(call, b, count, self->size), p.a);
    decompose_svd_one(self, &p);
    mp_convert_run(&self->store_real, self->min, p.s,
                   decompose_result_at(call, 0, b, self->min, mp_dtype_size(self->store_real.to)));
    if (u_count + v_count == 0) continue;
    decompose_transpose(self, self->u_columns, m, false, p.left, p.turned);
    mp_convert_run(&self->store, u_count, p.turned,
                   decompose_result_at(call, 1, b, u_count, self->size));
    mp_convert_run(&self->store, v_count, p.right,
                   decompose_result_at(call, 2, b, v_count, self->size));
  }
  return NULL;
}

// ---- Making ----

// Whether a type has the shape [batch of `a`..., rows, columns] (columns < 0: without the last
// dimension) and the element type `dtype`.
static bool decompose_has_shape(const mp_type_t *type, const mp_type_t *a, mp_dtype_t dtype,
                                int64_t rows, int64_t columns) {
  uint32_t tail = columns < 0 ? 1 : 2, batch = a->rank - 2;
  if (!mp_type_is_static(type) || type->rank != batch + tail || type->dtype != dtype) return false;
  if (memcmp(type->dims, a->dims, batch * sizeof(int64_t)) != 0) return false;
  return type->dims[batch] == rows && (columns < 0 || type->dims[batch + 1] == columns);
}

static mp_status_t decompose_make(mp_arena_t *arena, const mp_op_t *op, mp_kernel_run_t run,
                                  decompose_kernel_t **out_kernel) {
  const mp_type_t *a = op->num_operands == 1 ? mp_op_operand_type(op, 0) : NULL;
  if (a == NULL || !mp_type_is_static(a) || a->rank < 2) {
    return mp_op_error(op, MP_INVALID_ARGUMENT, "this custom_call takes one operand, a matrix");
  }
  decompose_kernel_t *self = MP_ARENA_NEW(arena, decompose_kernel_t);
  MP_RETURN_IF_NULL(self);
  mp_kernel_init(&self->base, run, op);
  self->m = a->dims[a->rank - 2];
  self->n = a->dims[a->rank - 1];
  self->min = mp_min_i64(self->m, self->n);
  self->batch = mp_dims_product(a->dims, 0, a->rank - 2);
  self->is_complex = mp_dtype_is_complex(a->dtype);
  self->size = mp_dtype_size(a->dtype);
  mp_dtype_t wide = self->is_complex ? MP_DTYPE_C128 : MP_DTYPE_F64;
  self->wide = mp_dtype_size(wide);
  if (!(mp_dtype_is_float(a->dtype) || self->is_complex) || self->size < 2 ||
      !mp_convert_bind(a->dtype, wide, &self->load) ||
      !mp_convert_bind(wide, a->dtype, &self->store) ||
      !mp_convert_bind(MP_DTYPE_F64, mp_dtype_real_part(a->dtype), &self->store_real)) {
    return mp_op_error(op, MP_UNIMPLEMENTED, "Unsupported dtype %s for a decomposition",
                       mp_dtype_name(a->dtype));
  }
  int64_t parts = mp_part_count(MP_WORK(self->batch, self->m, self->n, self->min), GRAIN);
  self->base.num_parts = (uint32_t)mp_clamp_i64(parts, 1, mp_max_i64(self->batch, 1));
  *out_kernel = self;
  return NULL;
}

// An empty batch may have matrices of any size, too large to count with.
static void decompose_do_nothing(decompose_kernel_t *self) {
  self->batch = self->m = self->n = self->min = self->u_columns = self->v_rows = 0;
}

mp_status_t mp_call_make_lu(mp_arena_t *arena, const mp_op_t *op, const mp_kernel_t **out_kernel) {
  decompose_kernel_t *self = NULL;
  MP_RETURN_IF_ERROR(decompose_make(arena, op, decompose_lu_run, &self));
  const mp_type_t *a = mp_op_operand_type(op, 0);
  if (op->num_results != 3 || !mp_type_equal(a, mp_op_result_type(op, 0)) ||
      !decompose_has_shape(mp_op_result_type(op, 1), a, MP_DTYPE_S32, self->min, -1) ||
      !decompose_has_shape(mp_op_result_type(op, 2), a, MP_DTYPE_S32, self->m, -1)) {
    return mp_op_error(op, MP_INVALID_ARGUMENT,
                       "custom_call LuDecomposition gives [..., m, n], pivots [..., min(m, n)] and "
                       "a permutation [..., m]");
  }
  if (self->m > INT32_MAX) {  // rows without elements are numbered, too
    return mp_op_error(op, MP_UNIMPLEMENTED,
                       "custom_call LuDecomposition of %" PRId64
                       " rows: their 32-bit permutation can number %" PRId32,
                       self->m, INT32_MAX);
  }
  // With m rows and no columns there is still a permutation.
  if (self->m == 0 || self->batch == 0) decompose_do_nothing(self);
  self->base.scratch_bytes = (size_t)(self->m * self->n) * self->wide;
  *out_kernel = &self->base;
  return NULL;
}

static mp_status_t decompose_make_eigh(mp_arena_t *arena, const mp_op_t *op, bool upper,
                                       bool keeps_blocks, const mp_kernel_t **out_kernel) {
  decompose_kernel_t *self = NULL;
  MP_RETURN_IF_ERROR(decompose_make(arena, op, decompose_eigh_run, &self));
  const mp_type_t *a = mp_op_operand_type(op, 0);
  if (op->num_results != 2 || self->m != self->n || !mp_type_equal(a, mp_op_result_type(op, 0)) ||
      !decompose_has_shape(mp_op_result_type(op, 1), a, mp_dtype_real_part(a->dtype), self->n,
                           -1)) {
    const mp_str_t target = mp_op_str(op, MP_ATTR_CALL_TARGET_NAME);
    return mp_op_error(op, MP_INVALID_ARGUMENT,
                       "custom_call %.*s takes a square matrix and gives eigenvectors "
                       "[..., n, n] and eigenvalues [..., n]",
                       MP_STR_ARG(target));
  }
  self->upper = upper;
  self->keeps_blocks = keeps_blocks;
  if (self->n == 0 || self->batch == 0) decompose_do_nothing(self);
  self->base.scratch_bytes = decompose_eigh_scratch(self);
  *out_kernel = &self->base;
  return NULL;
}

mp_status_t mp_call_make_eigh_lower(mp_arena_t *arena, const mp_op_t *op,
                                    const mp_kernel_t **out_kernel) {
  return decompose_make_eigh(arena, op, false, false, out_kernel);
}

mp_status_t mp_call_make_eigh_upper(mp_arena_t *arena, const mp_op_t *op,
                                    const mp_kernel_t **out_kernel) {
  return decompose_make_eigh(arena, op, true, false, out_kernel);
}

// XLA's own Jacobi iteration also reads how often it repeats, and until which error. minipod's
// method always converges to the precision of the type.
mp_status_t mp_call_make_eigh(mp_arena_t *arena, const mp_op_t *op,
                              const mp_kernel_t **out_kernel) {
  enum { LOWER, SORT, ITERATIONS, NUM_INTEGERS };  // a tolerance follows
  const mp_str_t config = mp_op_str(op, MP_ATTR_BACKEND_CONFIG);
  mp_str_t rest = config;
  long long numbers[NUM_INTEGERS] = {0};
  bool ok = true;
  for (int i = 0; i < NUM_INTEGERS; ++i) {
    const mp_str_t field = mp_str_cut(&rest, ',');
    ok = ok && mp_str_parse_i64(mp_str_trim(field), &numbers[i]);
  }
  double tolerance = 0;
  rest = mp_str_trim(rest);
  ok = ok && rest.size != 0 && mp_str_scan_double(rest, &tolerance) == rest.size;
  if (!ok) {
    return mp_op_error(op, MP_INVALID_ARGUMENT,
                       "custom_call Eigh needs a backend_config of the form "
                       "\"lower,sort,iterations,tolerance\", such as \"1,1,100,1e-6\", not "
                       "\"%.*s\"",
                       MP_STR_ARG(config));
  }
  return decompose_make_eigh(arena, op, numbers[LOWER] == 0, numbers[SORT] == 0, out_kernel);
}

mp_status_t mp_call_make_svd(mp_arena_t *arena, const mp_op_t *op, const mp_kernel_t **out_kernel) {
  decompose_kernel_t *self = NULL;
  MP_RETURN_IF_ERROR(decompose_make(arena, op, decompose_svd_run, &self));
  const mp_type_t *a = mp_op_operand_type(op, 0);
  int64_t m = self->m, n = self->n;
  bool fits =
      (op->num_results == 1 || op->num_results == 3) &&
      decompose_has_shape(mp_op_result_type(op, 0), a, mp_dtype_real_part(a->dtype), self->min, -1);
  if (fits && op->num_results == 3) {
    const mp_type_t *u = mp_op_result_type(op, 1), *vt = mp_op_result_type(op, 2);
    bool full =
        decompose_has_shape(u, a, a->dtype, m, m) && decompose_has_shape(vt, a, a->dtype, n, n);
    fits = full || (decompose_has_shape(u, a, a->dtype, m, self->min) &&
                    decompose_has_shape(vt, a, a->dtype, self->min, n));
    self->u_columns = full ? m : self->min;
    self->v_rows = full ? n : self->min;
  }
  if (!fits) {
    return mp_op_error(op, MP_INVALID_ARGUMENT,
                       "custom_call minipod.svd gives singular values [..., min(m, n)] and, when "
                       "asked, u [..., m, m] and vt [..., n, n], or their first min(m, n) vectors");
  }
  // Without singular values there are still bases, of all columns and rows.
  if ((self->min == 0 && self->u_columns + self->v_rows == 0) || self->batch == 0) {
    decompose_do_nothing(self);
  }
  m = self->m;
  n = self->n;
  self->base.scratch_bytes =
      (size_t)(2 * m * n + 2 * m * self->u_columns + self->v_rows * n) * self->wide +
      (size_t)self->min * sizeof(double) + mp_svd_scratch(self->min, self->is_complex);
  *out_kernel = &self->base;
  return NULL;
}
