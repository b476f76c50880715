// Operations that address parts of a tensor by the values of another (StableHLO specification,
// under their names).
#include "sim/ir/verify/verify_rules.h"

// The start indices are one integer scalar per dimension, all of one type.
static mp_status_t verify_indexing_starts(const mp_op_t *op, uint32_t first, uint32_t rank) {
  MP_CHECK(op, op->num_operands == first + rank, "there are %u start indices for %u dimensions",
           op->num_operands - first, rank);
  for (uint32_t i = first; i < op->num_operands; ++i) {
    const mp_type_t *type = mp_operand_type(op, i);
    MP_CHECK(op, mp_is_scalar(type), "start index %u is not a scalar", i - first);
    MP_RETURN_IF_ERROR(mp_verify_dtype(op, type, MP_IS_INTEGER, "a start index"));
    MP_CHECK(op, type->dtype == mp_operand_type(op, first)->dtype,
             "the start indices have different types");
  }
  return NULL;
}

// The start indices are clamped when the op runs, so only the sizes must fit.
mp_status_t mp_verify_dynamic_slice(const mp_op_t *op) {
  MP_CHECK(op, op->num_operands >= 1, "there is no operand");
  const mp_type_t *operand = mp_operand_type(op, 0);
  mp_index_list_t sizes = {0, NULL};
  MP_RETURN_IF_ERROR(verify_indexing_starts(op, 1, operand->rank));
  MP_RETURN_IF_ERROR(mp_verify_list(op, MP_ATTR_SLICE_SIZES, operand->rank, 0, &sizes));
  for (uint32_t i = 0; i < sizes.count; ++i) {
    MP_CHECK(op, sizes.values[i] <= operand->dims[i],
             "slice size %lld of dimension %u of size %lld", (long long)sizes.values[i], i,
             (long long)operand->dims[i]);
  }
  return mp_verify_result(op, 0, operand->dtype, sizes.values, sizes.count);
}

// Here too the start indices are clamped when the op runs.
mp_status_t mp_verify_dynamic_update_slice(const mp_op_t *op) {
  MP_CHECK(op, op->num_operands >= 2, "operand or update is missing");
  const mp_type_t *operand = mp_operand_type(op, 0), *update = mp_operand_type(op, 1);
  MP_CHECK(op, update->dtype == operand->dtype && update->rank == operand->rank,
           "update and operand have different element types or ranks");
  MP_RETURN_IF_ERROR(verify_indexing_starts(op, 2, operand->rank));
  for (uint32_t i = 0; i < operand->rank; ++i) {
    MP_CHECK(op, update->dims[i] <= operand->dims[i],
             "the update's dimension %u of size %lld passes the operand's of size %lld", i,
             (long long)update->dims[i], (long long)operand->dims[i]);
  }
  return mp_verify_same_type(op, mp_result_type(op, 0), operand, "the result and the operand");
}

// How the index tensor and the operand correspond, which gather and scatter have in common.
typedef struct {
  const mp_type_t *operand, *indices;
  int64_t vector_dim;        // dimension of the indices; the indices' rank if each is a scalar
  mp_index_list_t window;    // of the result or updates: offset_dims, update_window_dims
  mp_index_list_t inserted;  // collapsed_slice_dims, inserted_window_dims
  mp_index_list_t batching;  // operand_batching_dims, input_batching_dims
  mp_index_list_t indices_batching;
  mp_index_list_t index_map;  // start_index_map, scatter_dims_to_operand_dims
  uint64_t windowless;        // a bit for each operand dimension that the window leaves out
} indexing_t;

typedef struct {
  mp_attr_name_t window, inserted, batching, indices_batching, index_map;
} indexing_names_t;

// Operand and indices are indexed together along batching dimensions, so their sizes must agree.
static mp_status_t verify_indexing_batching(const mp_op_t *op, const indexing_names_t *names,
                                            indexing_t *x) {
  const mp_type_t *indices = x->indices;
  uint64_t used = x->vector_dim < indices->rank ? UINT64_C(1) << x->vector_dim : 0;
  MP_RETURN_IF_ERROR(
      mp_verify_dims(op, names->indices_batching, indices->rank, 0, &used, &x->indices_batching));
  MP_CHECK(op, x->indices_batching.count == x->batching.count, "%s and %s differ in length",
           mp_attr_name_text(names->batching), mp_attr_name_text(names->indices_batching));
  for (uint32_t i = 0; i < x->batching.count; ++i) {
    int64_t a = x->operand->dims[x->batching.values[i]];
    int64_t b = indices->dims[x->indices_batching.values[i]];
    MP_CHECK(op, a == b, "batching dimension %u has sizes %lld and %lld", i, (long long)a,
             (long long)b);
  }
  return NULL;
}

static mp_status_t verify_indexing(const mp_op_t *op, const indexing_names_t *names,
                                   uint32_t window_rank, indexing_t *x) {
  const mp_type_t *operand = x->operand, *indices = x->indices;
  MP_RETURN_IF_ERROR(mp_verify_dtype(op, indices, MP_IS_INTEGER, "the index tensor"));
  MP_RETURN_IF_ERROR(
      mp_verify_dims(op, names->window, window_rank, MP_DIMS_SORTED, NULL, &x->window));
  MP_RETURN_IF_ERROR(mp_verify_dims(op, names->inserted, operand->rank, MP_DIMS_SORTED,
                                    &x->windowless, &x->inserted));
  uint64_t batching = x->windowless;
  MP_RETURN_IF_ERROR(
      mp_verify_dims(op, names->batching, operand->rank, MP_DIMS_SORTED, &batching, &x->batching));
  uint64_t mapped = batching & ~x->windowless;  // index_map must not name batching dimensions
  x->windowless = batching;
  MP_RETURN_IF_ERROR(
      mp_verify_dims(op, names->index_map, operand->rank, 0, &mapped, &x->index_map));
  MP_CHECK(op, operand->rank == x->window.count + x->inserted.count + x->batching.count,
           "%u window, %u inserted and %u batching dimensions for an operand of rank %u",
           x->window.count, x->inserted.count, x->batching.count, operand->rank);
  // index_vector_dim may be one past the last dimension.
  MP_RETURN_IF_ERROR(
      mp_verify_dim(op, MP_ATTR_INDEX_VECTOR_DIM, indices->rank + 1, &x->vector_dim));
  int64_t length = x->vector_dim < indices->rank ? indices->dims[x->vector_dim] : 1;
  MP_CHECK(op, length == x->index_map.count, "index vectors have %lld entries, %s has %u",
           (long long)length, mp_attr_name_text(names->index_map), x->index_map.count);
  return verify_indexing_batching(op, names, x);
}

// Works out the dimensions of a gather's result or a scatter's updates: those of the indices
// without the vector dimension, and among them the window's dimensions in their places.
static uint32_t verify_indexing_combined_dims(const indexing_t *x, const int64_t *window_sizes,
                                              int64_t *dims) {
  uint32_t rank = x->window.count + x->indices->rank - (x->vector_dim < x->indices->rank ? 1 : 0);
  uint32_t window = 0, index = 0, operand_dim = 0;
  for (uint32_t i = 0; i < rank && i < MP_MAX_RANK; ++i) {
    if (window < x->window.count && x->window.values[window] == i) {
      while (x->windowless >> operand_dim & 1) ++operand_dim;
      dims[i] = window_sizes[operand_dim++];
      ++window;
    } else {
      if (index == x->vector_dim) ++index;
      dims[i] = x->indices->dims[index++];
    }
  }
  return rank;
}

// Slices must not be larger than the operand. Along dimensions that the result leaves out, their
// size is 1.
mp_status_t mp_verify_gather(const mp_op_t *op) {
  static const indexing_names_t names = {
      MP_ATTR_OFFSET_DIMS, MP_ATTR_COLLAPSED_SLICE_DIMS, MP_ATTR_OPERAND_BATCHING_DIMS,
      MP_ATTR_START_INDICES_BATCHING_DIMS, MP_ATTR_START_INDEX_MAP};
  const mp_type_t *operand = mp_operand_type(op, 0), *result = mp_result_type(op, 0);
  indexing_t x = {.operand = operand, .indices = mp_operand_type(op, 1)};
  mp_index_list_t sizes = {0, NULL};
  MP_RETURN_IF_ERROR(verify_indexing(op, &names, result->rank, &x));
  MP_RETURN_IF_ERROR(mp_verify_list(op, MP_ATTR_SLICE_SIZES, operand->rank, 0, &sizes));
  for (uint32_t i = 0; i < operand->rank; ++i) {
    MP_CHECK(op, sizes.values[i] <= operand->dims[i],
             "slice size %lld of dimension %u of size %lld", (long long)sizes.values[i], i,
             (long long)operand->dims[i]);
    MP_CHECK(op, (x.windowless >> i & 1) == 0 || sizes.values[i] <= 1,
             "dimension %u is left out of the result, but its slice size is %lld", i,
             (long long)sizes.values[i]);
  }
  int64_t dims[MP_MAX_RANK];
  uint32_t rank = verify_indexing_combined_dims(&x, sizes.values, dims);
  MP_CHECK(op, rank == result->rank, "the result has %u dimensions, not %u", result->rank, rank);
  return mp_verify_result(op, 0, operand->dtype, dims, rank);
}

// The windows in the updates may be smaller than the operand; all else must fit exactly.
static mp_status_t verify_indexing_updates(const mp_op_t *op, const indexing_t *x,
                                           const mp_type_t *updates) {
  int64_t dims[MP_MAX_RANK];
  uint32_t rank = verify_indexing_combined_dims(x, x->operand->dims, dims);
  MP_CHECK(op, rank == updates->rank, "the updates have %u dimensions, not %u", updates->rank,
           rank);
  uint32_t window = 0;
  for (uint32_t i = 0; i < rank; ++i) {
    bool in_window = window < x->window.count && x->window.values[window] == i;
    if (in_window) ++window;
    MP_CHECK(op, in_window ? updates->dims[i] <= dims[i] : updates->dims[i] == dims[i],
             "dimension %u of the updates has size %lld; the operands give %lld", i,
             (long long)updates->dims[i], (long long)dims[i]);
  }
  return NULL;
}

// All inputs are updated at the same places, so that they all have one shape, and so do all
// updates.
mp_status_t mp_verify_scatter(const mp_op_t *op) {
  static const indexing_names_t names = {
      MP_ATTR_UPDATE_WINDOW_DIMS, MP_ATTR_INSERTED_WINDOW_DIMS, MP_ATTR_INPUT_BATCHING_DIMS,
      MP_ATTR_SCATTER_INDICES_BATCHING_DIMS, MP_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS};
  MP_CHECK(op, op->num_operands >= 3 && op->num_operands % 2 == 1,
           "%u operands are not inputs, indices and as many updates", op->num_operands);
  uint32_t count = (op->num_operands - 1) / 2;
  const mp_type_t *updates = mp_operand_type(op, count + 1);
  indexing_t x = {.operand = mp_operand_type(op, 0), .indices = mp_operand_type(op, count)};
  MP_RETURN_IF_ERROR(verify_indexing(op, &names, updates->rank, &x));
  MP_CHECK(op, op->num_results == count, "there are %u results for %u inputs", op->num_results,
           count);
  for (uint32_t i = 0; i < count; ++i) {
    const mp_type_t *input = mp_operand_type(op, i), *update = mp_operand_type(op, count + 1 + i);
    MP_RETURN_IF_ERROR(mp_verify_same_shape(op, input, x.operand, "the inputs"));
    MP_RETURN_IF_ERROR(mp_verify_same_shape(op, update, updates, "the updates"));
    MP_CHECK(op, input->dtype == update->dtype, "input %u has type %s, its update %s", i,
             mp_dtype_name(input->dtype), mp_dtype_name(update->dtype));
    MP_RETURN_IF_ERROR(
        mp_verify_same_type(op, mp_result_type(op, i), input, "a result and its input"));
  }
  MP_RETURN_IF_ERROR(verify_indexing_updates(op, &x, updates));
  return mp_verify_reducer(op, 0, count);
}

// The op takes slices of the operand along `dim`. The first `batch_dims` dimensions are common to
// both operands.
mp_status_t mp_verify_torch_index_select(const mp_op_t *op) {
  const mp_type_t *operand = mp_operand_type(op, 0), *index = mp_operand_type(op, 1);
  int64_t dim = 0, batch_dims = mp_op_int(op, MP_ATTR_BATCH_DIMS, -1), dims[2 * MP_MAX_RANK];
  uint32_t rank = 0;
  MP_RETURN_IF_ERROR(mp_verify_dtype(op, index, MP_IS_INTEGER, "the index tensor"));
  MP_RETURN_IF_ERROR(mp_verify_dim(op, MP_ATTR_DIM, operand->rank, &dim));
  MP_CHECK(op, batch_dims >= 0 && batch_dims <= dim && batch_dims <= index->rank,
           "batch_dims is %lld", (long long)batch_dims);
  for (uint32_t i = 0; i < batch_dims; ++i) {
    MP_CHECK(op, operand->dims[i] == index->dims[i], "batch dimension %u has sizes %lld and %lld",
             i, (long long)operand->dims[i], (long long)index->dims[i]);
  }
  for (uint32_t i = 0; i < dim; ++i) dims[rank++] = operand->dims[i];
  for (uint32_t i = (uint32_t)batch_dims; i < index->rank; ++i) dims[rank++] = index->dims[i];
  for (uint32_t i = (uint32_t)dim + 1; i < operand->rank; ++i) dims[rank++] = operand->dims[i];
  return mp_verify_result(op, 0, operand->dtype, dims, rank);
}
