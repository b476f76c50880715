// triangular_solve (StableHLO specification, "triangular_solve").
//
// Every case is reduced to L * x = b with a lower triangular L: for an upper triangle rows and
// columns are numbered backwards, and an unknown on the left of the matrix is handled by
// transposing the equation. A part is a range of groups of unknown vectors.
#include <complex.h>
#include <string.h>

#include "sim/kernels/elementwise/convert.h"
#include "sim/kernels/linalg/linalg_makers.h"
#include "sim/kernels/linalg/panel.h"
#include "sim/kernels/linalg/solve_blocks.h"
#include "sim/kernels/shape.h"
#include "sim/kernels/strided.h"

enum {
  GRAIN = 1 << 16,
  SHORT_ROW = 64,
  GROUP = 4,  // panels for which a row of the matrix is read once
};

typedef struct {
  mp_kernel_t base;
  int64_t batch, n, vectors;  // each matrix of the batch has `vectors` unknown vectors of length n
  int64_t width;              // vectors of a panel: MP_PANEL or MP_SOLVE_WIDTH
  int64_t groups;             // of panels, in which they are solved for
  bool left, unit, is_complex;
  bool upper;       // the triangle that is read
  bool transposed;  // L is made of rows of `a` when false, of its columns when true
  bool conjugated;
  uint32_t wide_bytes;
  mp_convert_t load, store;
} solve_kernel_t;

static void triangular_solve_reverse(const solve_kernel_t *self, int64_t count, void *numbers) {
  double *d = numbers;
  mp_complex_t *z = numbers;
  for (int64_t i = 0, k = count - 1; i < k; ++i, --k) {
    if (self->is_complex) {
      const mp_complex_t first = z[i];
      z[i] = z[k];
      z[k] = first;
    } else {
      const double first = d[i];
      d[i] = d[k];
      d[k] = first;
    }
  }
}

// Loads the lower triangle of L from `a`. Rows and columns are numbered backwards if only that
// makes it lower triangular. L then has the matrix's numbers in reverse order; memory is read
// forwards, because reading backwards would be slow.
static void triangular_solve_load_matrix(const solve_kernel_t *self, const char *a, bool backwards,
                                         void *raw, char *l) {
  const int64_t n = self->n, size = (int64_t)mp_dtype_size(self->load.from);
  if (self->transposed) {
    mp_strided_t copy;
    mp_strided_init(&copy, (size_t)size);
    mp_strided_add_dim(&copy, n, n * size, size);
    mp_strided_add_dim(&copy, n, size, n * size);
    mp_strided_finish(&copy);
    mp_strided_run(&copy, raw, a);
    a = raw;
  }
  // Converting row by row would be slow for short rows, so these are converted together with the
  // unused elements between them.
  if (n <= SHORT_ROW) {
    mp_convert_run(&self->load, n * n, a, l);
    if (backwards) triangular_solve_reverse(self, n * n, l);
  } else {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = backwards ? (n - 1 - i) * (n + 1) : i * n;
      char *to = l + i * n * self->wide_bytes;
      mp_convert_run(&self->load, i + 1, a + at * size, to);
      if (backwards) triangular_solve_reverse(self, i + 1, to);
    }
  }
  for (int64_t i = 0; self->conjugated && i < n; ++i) {
    mp_complex_t *to = (mp_complex_t *)(void *)(l + i * n * self->wide_bytes);
    for (int64_t k = 0; k <= i; ++k) to[k] = conj(to[k]);
  }
}

// The bytes from one element of an unknown vector to the next, and from one vector to the next.
static void triangular_solve_vector_steps(const solve_kernel_t *self, int64_t *element_step,
                                          int64_t *vector_step) {
  int64_t size = (int64_t)mp_dtype_size(self->load.from);
  *element_step = self->left ? self->vectors * size : size;
  *vector_step = self->left ? size : self->n * size;
}

// Where a part works, in its scratch memory.
typedef struct {
  char *l;         // n x n, wide
  double *panels;  // GROUP of them
  char *wide;      // the numbers of a panel, when they are complex, or of one vector
  char *raw;       // the elements of a matrix or of a panel, as they are stored
} solve_memory_t;

static int64_t triangular_solve_panel_count(const solve_kernel_t *self) {
  return self->n * self->width;
}

// Copies `count` vectors, `in` being element 0 of the first one, next to each other: element i of
// vector v comes to i * width + v. Or the other way round.
static void triangular_solve_copy(const solve_kernel_t *self, int64_t count, bool backwards,
                                  bool is_load, char *array, char *raw) {
  int64_t size = (int64_t)mp_dtype_size(self->load.from), step = 0, vector_step = 0;
  const int64_t row_step = self->width * size;
  triangular_solve_vector_steps(self, &step, &vector_step);
  if (backwards) {
    array += (self->n - 1) * step;
    step = -step;
  }
  mp_strided_t copy;
  mp_strided_init(&copy, (size_t)size);
  mp_strided_add_dim(&copy, self->n, is_load ? row_step : step, is_load ? step : row_step);
  mp_strided_add_dim(&copy, count, is_load ? size : vector_step, is_load ? vector_step : size);
  mp_strided_finish(&copy);
  if (is_load) {
    mp_strided_run(&copy, raw, array);
  } else {
    mp_strided_run(&copy, array, raw);
  }
}

// Moves complex numbers between a panel, where the parts of a row's numbers are apart, and `z`.
static void triangular_solve_split(int64_t n, const double *z, double *panel) {
  for (int64_t i = 0; i < n; ++i) {
    for (int c = 0; c < MP_PANEL; ++c) {
      panel[2 * i * MP_PANEL + c] = z[2 * (i * MP_PANEL + c)];
      panel[(2 * i + 1) * MP_PANEL + c] = z[2 * (i * MP_PANEL + c) + 1];
    }
  }
}
static void triangular_solve_unite(int64_t n, const double *panel, double *z) {
  for (int64_t i = 0; i < n; ++i) {
    for (int c = 0; c < MP_PANEL; ++c) {
      z[2 * (i * MP_PANEL + c)] = panel[2 * i * MP_PANEL + c];
      z[2 * (i * MP_PANEL + c) + 1] = panel[(2 * i + 1) * MP_PANEL + c];
    }
  }
}

// Loads the `count` vectors of a panel.
static void triangular_solve_load(const solve_kernel_t *self, const solve_memory_t *memory,
                                  int64_t count, bool backwards, char *b, double *panel) {
  const int64_t numbers = triangular_solve_panel_count(self);
  void *wide = self->is_complex ? (void *)memory->wide : panel;
  if (count < self->width) {
    memset(memory->raw, 0, (size_t)numbers * mp_dtype_size(self->load.from));
  }
  triangular_solve_copy(self, count, backwards, true, b, memory->raw);
  mp_convert_run(&self->load, numbers, memory->raw, wide);
  if (self->is_complex) triangular_solve_split(self->n, wide, panel);
}

// Stores them.
static void triangular_solve_store(const solve_kernel_t *self, const solve_memory_t *memory,
                                   int64_t count, bool backwards, const double *panel, char *out) {
  double *wide = (void *)memory->wide;
  if (self->is_complex) triangular_solve_unite(self->n, panel, wide);
  mp_convert_run(&self->store, triangular_solve_panel_count(self), self->is_complex ? wide : panel,
                 memory->raw);
  triangular_solve_copy(self, count, backwards, false, out, memory->raw);
}

// Solves for the vectors [first, first + count), at most GROUP panels. `b` and `out` are element 0
// of the first one.
static void triangular_solve_panels(const solve_kernel_t *self, const solve_memory_t *memory,
                                    int64_t count, bool backwards, char *b, char *out) {
  const int64_t n = self->n, width = self->width, panels = (count + width - 1) / width;
  const int64_t doubles = triangular_solve_panel_count(self) * (self->is_complex ? 2 : 1);
  int64_t unused = 0, step = 0;
  triangular_solve_vector_steps(self, &unused, &step);
  for (int64_t p = 0; p < panels; ++p) {
    triangular_solve_load(self, memory, mp_min_i64(count - p * width, width), backwards,
                          b + p * width * step, memory->panels + p * doubles);
  }
  if (self->is_complex) {
    mp_panel_solve_z(n, n, (const mp_complex_t *)memory->l, self->unit, panels, memory->panels);
  } else if (width == MP_SOLVE_WIDTH) {
    mp_solve_blocks_d(n, n, (const double *)memory->l, self->unit, panels, memory->panels);
  } else {
    mp_panel_solve_d(n, n, (const double *)memory->l, self->unit, panels, memory->panels);
  }
  for (int64_t p = 0; p < panels; ++p) {
    triangular_solve_store(self, memory, mp_min_i64(count - p * width, width), backwards,
                           memory->panels + p * doubles, out + p * width * step);
  }
}

// Solves for one vector alone.
static void triangular_solve_vector(const solve_kernel_t *self, const solve_memory_t *memory,
                                    bool backwards, char *b, char *out) {
  const int64_t n = self->n;
  // It is in the scratch memory as the first vector of a panel, with contiguous elements.
  int64_t size = (int64_t)mp_dtype_size(self->load.from), step = 0, unused = 0;
  triangular_solve_vector_steps(self, &step, &unused);
  if (backwards) {
    b += (n - 1) * step;
    out += (n - 1) * step;
    step = -step;
  }
  mp_strided_t copy;
  mp_strided_init(&copy, (size_t)size);
  mp_strided_add_dim(&copy, n, size, step);
  mp_strided_finish(&copy);
  mp_strided_run(&copy, memory->raw, b);
  mp_convert_run(&self->load, n, memory->raw, memory->wide);
  if (self->is_complex) {
    mp_solve_lower_z(n, (const mp_complex_t *)memory->l, self->unit, (mp_complex_t *)memory->wide);
  } else {
    mp_solve_lower_d(n, (const double *)memory->l, self->unit, (double *)memory->wide);
  }
  mp_convert_run(&self->store, n, memory->wide, memory->raw);
  mp_strided_init(&copy, (size_t)size);
  mp_strided_add_dim(&copy, n, step, size);
  mp_strided_finish(&copy);
  mp_strided_run(&copy, out, memory->raw);
}

static solve_memory_t triangular_solve_memory(const solve_kernel_t *self, char *scratch) {
  const size_t panel = (size_t)triangular_solve_panel_count(self) * self->wide_bytes;
  solve_memory_t memory = {.l = scratch};
  memory.panels = (double *)(void *)(scratch + (size_t)(self->n * self->n) * self->wide_bytes);
  memory.wide = (char *)memory.panels + GROUP * panel;
  memory.raw = memory.wide + panel;
  return memory;
}

static mp_status_t triangular_solve_run(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const solve_kernel_t *self = (const solve_kernel_t *)kernel;
  int64_t begin = 0, end = 0, n = self->n, loaded = -1;
  mp_part_range(self->batch * self->groups, kernel->num_parts, call->part, &begin, &end);
  int64_t size = (int64_t)mp_dtype_size(self->load.from), element_step = 0, vector_step = 0;
  triangular_solve_vector_steps(self, &element_step, &vector_step);
  // L is lower triangular without renumbering when a lower triangle is read by rows, or an upper
  // one by columns.
  const bool backwards = self->upper != self->transposed;
  const solve_memory_t memory = triangular_solve_memory(self, call->scratch);
  const int64_t group = GROUP * self->width;
  for (int64_t g = begin; g < end; ++g) {
    const int64_t batch = g / self->groups, first = g % self->groups * group;
    if (batch != loaded) {
      triangular_solve_load_matrix(self, (const char *)call->operands[0] + batch * n * n * size,
                                   backwards, memory.raw, memory.l);
      loaded = batch;
    }
    const int64_t at = batch * n * self->vectors * size + first * vector_step;
    char *b = (char *)call->operands[1] + at, *out = (char *)call->results[0] + at;
    if (self->vectors == 1) {
      triangular_solve_vector(self, &memory, backwards, b, out);
    } else {
      triangular_solve_panels(self, &memory, mp_min_i64(self->vectors - first, group), backwards, b,
                              out);
    }
  }
  return NULL;
}

mp_status_t mp_kernel_make_triangular_solve(mp_arena_t *arena, const mp_op_t *op,
                                            const mp_kernel_t **out_kernel) {
  const mp_type_t *a = mp_op_operand_type(op, 0), *b = mp_op_operand_type(op, 1);
  solve_kernel_t *self = MP_ARENA_NEW(arena, solve_kernel_t);
  MP_RETURN_IF_NULL(self);
  mp_kernel_init(&self->base, triangular_solve_run, op);
  uint32_t transpose = mp_op_enum(op, MP_ATTR_TRANSPOSE_A, MP_TRANSPOSE_NO);
  self->left = mp_op_bool(op, MP_ATTR_LEFT_SIDE, true);
  self->unit = mp_op_bool(op, MP_ATTR_UNIT_DIAGONAL, false);
  self->upper = !mp_op_bool(op, MP_ATTR_LOWER, true);
  self->is_complex = mp_dtype_is_complex(a->dtype);
  // x * op(a) = b means op(a)^T * x^T = b^T.
  self->transposed =
      (transpose == MP_TRANSPOSE_YES || transpose == MP_TRANSPOSE_ADJOINT) == self->left;
  self->conjugated = transpose == MP_TRANSPOSE_ADJOINT && self->is_complex;
  self->n = a->dims[a->rank - 1];
  self->vectors = b->dims[b->rank - (self->left ? 1 : 2)];
  self->batch = mp_shape_count(b) == 0 ? 0 : mp_dims_product(a->dims, 0, a->rank - 2);
  if (self->batch == 0)
    self->n = self->vectors = 0;  // nothing to do, and sizes may be too large
                                  // to count with
  mp_dtype_t wide = self->is_complex ? MP_DTYPE_C128 : MP_DTYPE_F64;
  if (!mp_convert_bind(a->dtype, wide, &self->load) ||
      !mp_convert_bind(wide, a->dtype, &self->store)) {
    return mp_op_error(op, MP_UNIMPLEMENTED, "triangular_solve of %s", mp_dtype_name(a->dtype));
  }
  self->wide_bytes = (uint32_t)mp_dtype_size(wide);
  const bool in_blocks = !self->is_complex && self->n >= MP_SOLVE_LEAST && self->vectors > MP_PANEL;
  self->width = in_blocks ? MP_SOLVE_WIDTH : MP_PANEL;
  self->groups = (self->vectors + GROUP * self->width - 1) / (GROUP * self->width);
  // L, the panels, the numbers of one panel, and the stored elements of a panel or of L, whichever
  // is larger.
  const int64_t n = self->n, raw = mp_max_i64(n, self->width);
  self->base.scratch_bytes = (size_t)((n + (GROUP + 1) * self->width + raw) * n) * self->wide_bytes;
  int64_t parts = mp_part_count(MP_WORK(self->batch * self->vectors, n, n), GRAIN);
  // Every part reads the whole L, so each gets at least a group.
  self->base.num_parts =
      (uint32_t)mp_clamp_i64(parts, 1, mp_max_i64(self->batch * self->groups, 1));
  *out_kernel = &self->base;
  return NULL;
}
