// Operations of decompositions and systems of equations, as textbooks count them (Golub and Van
// Loan, "Matrix Computations"; LAPACK Working Note 41), and the table of custom_call targets.
#include <math.h>

#include "sim/work/foreign_text.h"
#include "sim/work/work_impl.h"

// ---- shapes ----

// `batch` matrices [m, n], of which the smaller side is `least`, and what else the formulas need.
typedef struct {
  const mp_op_t *op;
  mp_dtype_t dtype;
  double batch, m, n, least, most;
} work_matrices_t;

static work_matrices_t work_call_matrices(const mp_op_t *op) {
  work_matrices_t a = {.op = op, .dtype = MP_DTYPE_F32, .batch = 1, .m = 1, .n = 1};
  if (op->num_operands != 0 && mp_type_is_tensor(op->operands[0]->type)) {
    const mp_type_t *type = op->operands[0]->type;
    a.dtype = type->dtype;
    for (uint32_t d = 0; d < type->rank; ++d) {
      const double dim = (double)type->dims[d];
      *(d + 1 == type->rank ? &a.n : d + 2 == type->rank ? &a.m : &a.batch) *= dim;
    }
  }
  a.least = fmin(a.m, a.n);
  a.most = fmax(a.m, a.n);
  return a;
}

static void work_call_add(const work_matrices_t *a, double flops, mp_work_t *work) {
  mp_work_add(work, a->dtype, a->batch * flops);
}

// ---- formulas ----

static double work_call_cube(double n) {
  return n * n * n;
}

static void work_call_cholesky(const work_matrices_t *a, mp_work_t *work) {
  work_call_add(a, work_call_cube(a->n) / 3, work);
}

static void work_call_lu(const work_matrices_t *a, mp_work_t *work) {
  work_call_add(a, a->most * a->least * a->least - work_call_cube(a->least) / 3, work);
}

static void work_call_qr(const work_matrices_t *a, mp_work_t *work) {
  work_call_add(a, 2 * a->most * a->least * a->least - 2 * work_call_cube(a->least) / 3, work);
}

// Of k reflections, which are the second operand's last dimension.
static void work_call_householder_product(const work_matrices_t *a, mp_work_t *work) {
  double k = a->n;
  if (a->op->num_operands > 1 && mp_type_is_tensor(a->op->operands[1]->type)) {
    const mp_type_t *taus = a->op->operands[1]->type;
    if (taus->rank != 0) k = (double)taus->dims[taus->rank - 1];
  }
  const double flops = 4 * a->m * a->n * k - 2 * (a->m + a->n) * k * k + 4 * k * k * k / 3;
  work_call_add(a, fmax(flops, 0), work);
}

// Eigenvalues and vectors: tridiagonal form, iteration, vectors.
static void work_call_eigh(const work_matrices_t *a, mp_work_t *work) {
  work_call_add(a, 9 * work_call_cube(a->n), work);
}

static void work_call_svd(const work_matrices_t *a, mp_work_t *work) {
  const double m = a->most, n = a->least;
  const bool has_vectors = a->op->num_results > 1;
  work_call_add(a,
                has_vectors ? 4 * m * m * n + 8 * m * n * n + 9 * n * n * n
                            : 4 * m * n * n - 4 * n * n * n / 3,
                work);
}

// Eigenvalues and vectors, or the Schur form, of any matrix.
static void work_call_schur(const work_matrices_t *a, mp_work_t *work) {
  work_call_add(a, 25 * work_call_cube(a->n), work);
}

static void work_call_hessenberg(const work_matrices_t *a, mp_work_t *work) {
  work_call_add(a, 10 * work_call_cube(a->n) / 3, work);
}

static void work_call_tridiagonal_form(const work_matrices_t *a, mp_work_t *work) {
  work_call_add(a, 4 * work_call_cube(a->n) / 3, work);
}

// Elimination is 3 operations a row, and each right side takes 5; these are the last result.
static void work_call_tridiagonal_solve(const work_matrices_t *a, mp_work_t *work) {
  const mp_op_t *op = a->op;
  const double sides = op->num_results == 0 ? 0 : mp_work_result_count(op, op->num_results - 1);
  mp_work_add(work, a->dtype, 3 * mp_work_operand_count(op, 0) + 5 * sides);
}

static void work_call_permutation(const work_matrices_t *a, mp_work_t *work) {
  mp_work_add(work, a->dtype, mp_work_operand_count(a->op, 0));
}

// A heap of k elements, through which all others go. The first result has the k best.
static void work_call_top_k(const work_matrices_t *a, mp_work_t *work) {
  double k = 1;
  if (a->op->num_results != 0 && mp_type_is_tensor(a->op->results[0].type)) {
    const mp_type_t *best = a->op->results[0].type;
    if (best->rank != 0) k = (double)best->dims[best->rank - 1];
  }
  mp_work_add(work, a->dtype, mp_work_operand_count(a->op, 0) * (1 + ceil(log2(fmax(k, 1)))));
}

// n^2 operations for each of the right sides, the second operand's, which are vectors of n
// elements.
static void work_call_triangular_solve(const work_matrices_t *a, mp_work_t *work) {
  mp_work_add(work, a->dtype, a->n * mp_work_operand_count(a->op, 1));
}

// Two comparisons for each index.
static void work_call_check(const work_matrices_t *a, mp_work_t *work) {
  mp_work_add(work, a->dtype, 2 * (double)(a->op->num_operands / 3 + 1));
}

// ---- ops ----

void mp_work_count_cholesky(const mp_op_t *op, mp_work_t *work) {
  const work_matrices_t a = work_call_matrices(op);
  work_call_cholesky(&a, work);
}

void mp_work_count_triangular_solve(const mp_op_t *op, mp_work_t *work) {
  const work_matrices_t a = work_call_matrices(op);
  work_call_triangular_solve(&a, work);
}

// ---- custom_call ----

typedef struct {
  const char *target;
  mp_work_class_t work_class;
  void (*count)(const work_matrices_t *a, mp_work_t *work);
} work_call_t;

// What minipod has kernels for, and LAPACK's functions, whose names lie between "lapack_", a letter
// for the element type, and "_ffi".
static const work_call_t g_calls[] = {
    {"ApproxTopK", MP_WORK_SORT, work_call_top_k},
    {"Eigh", MP_WORK_LINALG, work_call_eigh},
    {"LuDecomposition", MP_WORK_LINALG, work_call_lu},
    {"ProductOfElementaryHouseholderReflectors", MP_WORK_LINALG, work_call_householder_product},
    {"Qr", MP_WORK_LINALG, work_call_qr},
    {"TopK", MP_WORK_SORT, work_call_top_k},
    {"mhlo.topk", MP_WORK_SORT, work_call_top_k},
    {"minipod.check_index", MP_WORK_SCALAR, work_call_check},
    {"minipod.eigh.lower", MP_WORK_LINALG, work_call_eigh},
    {"minipod.eigh.upper", MP_WORK_LINALG, work_call_eigh},
    {"minipod.pivots_to_permutation", MP_WORK_LINALG, work_call_permutation},
    {"minipod.svd", MP_WORK_LINALG, work_call_svd},
    {"minipod.tridiagonal_solve", MP_WORK_LINALG, work_call_tridiagonal_solve},
    {"minipod.tridiagonal_solve.perturbed", MP_WORK_LINALG, work_call_tridiagonal_solve},
};
static const work_call_t g_lapack[] = {
    {"geev", MP_WORK_LINALG, work_call_schur},
    {"gees", MP_WORK_LINALG, work_call_schur},
    {"gehrd", MP_WORK_LINALG, work_call_hessenberg},
    {"geqp3", MP_WORK_LINALG, work_call_qr},
    {"geqrf", MP_WORK_LINALG, work_call_qr},
    {"gesdd", MP_WORK_LINALG, work_call_svd},
    {"gesvd", MP_WORK_LINALG, work_call_svd},
    {"getrf", MP_WORK_LINALG, work_call_lu},
    {"gtsv", MP_WORK_LINALG, work_call_tridiagonal_solve},
    {"heevd", MP_WORK_LINALG, work_call_eigh},
    {"hetrd", MP_WORK_LINALG, work_call_tridiagonal_form},
    {"orgqr", MP_WORK_LINALG, work_call_householder_product},
    {"potrf", MP_WORK_LINALG, work_call_cholesky},
    {"syevd", MP_WORK_LINALG, work_call_eigh},
    {"sytrd", MP_WORK_LINALG, work_call_tridiagonal_form},
    {"trsm", MP_WORK_LINALG, work_call_triangular_solve},
    {"ungqr", MP_WORK_LINALG, work_call_householder_product},
};

static const work_call_t *work_call_find(const work_call_t *calls, size_t count, mp_str_t name) {
  for (size_t i = 0; i < count; ++i) {
    if (mp_str_is(name, calls[i].target)) return &calls[i];
  }
  return NULL;
}

// "lapack_sgeev_ffi" is "geev"; empty for another name.
static mp_str_t work_call_lapack_name(mp_str_t target) {
  static const char prefix[] = "lapack_", suffix[] = "_ffi";
  const size_t before = sizeof(prefix), after = sizeof(suffix) - 1;  // with the type's letter
  if (target.size <= before + after || memcmp(target.data, prefix, before - 1) != 0 ||
      memcmp(target.data + target.size - after, suffix, after) != 0) {
    return MP_STR("");
  }
  return (mp_str_t){target.data + before, target.size - before - after};
}

// ---- cuDNN's attention ----

// "dimensions": ["4", "16", "2048", "2048"]: how many scores there are; 0 if it does not say.
static double work_call_scores(mp_str_t config) {
  mp_str_t rest;
  double scores = 1;
  if (!mp_foreign_find_word(config, "\"intermediate_tensor_shape\"", &rest) ||
      !mp_foreign_find_word(rest, "\"dimensions\"", &rest))
    return 0;
  mp_str_t list = mp_str_cut(&rest, ']');
  for (int i = 0; i < 4; ++i) {
    double size = 0;
    size_t used = 0;
    while (list.size != 0 && (used = mp_str_scan_double(list, &size)) == 0) {
      ++list.data;
      --list.size;
    }
    list = (mp_str_t){list.data + used, list.size - used};
    scores *= fmax(size, 0);
  }
  return scores;
}

// Two products forward: q k^T and p v. Five backward: the scores again, and two for each of these.
// A mask takes nothing off, as in XLA's own count.
static void work_call_attention(const mp_op_t *op, mp_str_t target, mp_work_t *work) {
  mp_str_t rest;
  if (op->num_operands < 3) return;
  const mp_type_t *query = op->operands[0]->type, *value = op->operands[2]->type;
  if (!mp_type_is_tensor(query) || !mp_type_is_tensor(value) || query->rank == 0 ||
      value->rank == 0)
    return;
  const double scores = work_call_scores(mp_op_str(op, MP_ATTR_BACKEND_CONFIG));
  const bool is_backward = mp_foreign_find_word(target, "Backward", &rest);
  const double width = (double)query->dims[query->rank - 1];
  const double value_width = (double)value->dims[value->rank - 1];
  mp_work_add(work, MP_DTYPE_F32,
              2 * scores * (is_backward ? 3 * width + 2 * value_width : width + value_width));
  work->transcendentals += scores;
}

void mp_work_count_call(const mp_op_t *op, mp_work_t *work) {
  const mp_str_t target = mp_op_str(op, MP_ATTR_CALL_TARGET_NAME);
  if (mp_str_starts_with(target, "__cudnn$fmha")) {
    work->work_class = MP_WORK_FOREIGN;
    work_call_attention(op, target, work);
    return;
  }
  const work_call_t *call = work_call_find(g_calls, sizeof(g_calls) / sizeof(g_calls[0]), target);
  if (call == NULL) {
    call = work_call_find(g_lapack, sizeof(g_lapack) / sizeof(g_lapack[0]),
                          work_call_lapack_name(target));
  }
  work->work_class = call == NULL ? MP_WORK_FOREIGN : call->work_class;
  if (call == NULL) return;
  const work_matrices_t a = work_call_matrices(op);
  call->count(&a, work);
}

bool mp_work_of_estimate(const mp_op_t *op, mp_work_t *out_work, double *out_bytes) {
  const mp_str_t text = mp_foreign_estimate(op);
  if (text.size == 0) return false;
  *out_work = (mp_work_t){.work_class = MP_WORK_FOREIGN,
                          .flops = mp_foreign_number(text, "\"flops"),
                          .transcendentals = mp_foreign_number(text, "\"transcendentals")};
  *out_bytes = mp_foreign_number(text, "\"bytes_accessed");
  return true;
}
