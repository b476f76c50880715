// dynamic_slice and dynamic_update_slice of contiguous elements: a row of an array, as a scan takes
// it from its inputs or puts it into its outputs; and concatenations of few rows.
#include "sim/base/assert.h"
#include "sim/kernels/shape.h"
#include "sim/loops/loop_impl.h"

// The address of the row for steps: the constant part goes to `out_offset`. False if too many
// indices are unknown.
static bool rows_describe(const mp_loop_builder_t *b, const mp_type_t *array, const mp_type_t *box,
                          mp_dtype_t dtype, const mp_loop_ref_t *starts, mp_loop_step_t *step,
                          mp_loop_row_t *row, uintptr_t *out_offset) {
  int64_t strides[MP_MAX_RANK];
  mp_dims_strides(array->dims, array->rank, (int64_t)mp_dtype_size(array->dtype), strides);
  *row = (mp_loop_row_t){.dtype = dtype};
  *out_offset = 0;
  for (uint32_t d = 0; d < array->rank; ++d) {
    const int64_t most = array->dims[d] - box->dims[d];
    if (most == 0) continue;
    const void *known = mp_loop_constant(b, starts[d]);
    if (known != NULL) {
      const int64_t start = mp_clamp_i64(mp_load_index(dtype, known), 0, most);
      *out_offset += (uintptr_t)(start * strides[d]);
      continue;
    }
    if (row->count == MP_ROW_MAX_INDICES) return false;
    row->indices[row->count].most = most;
    row->indices[row->count].stride = strides[d];
    step->in[1 + row->count++] = starts[d];
  }
  return true;
}

// A concatenation as copies of rows: each result row consists of the operands' rows, one after the
// other.
static mp_status_t rows_concatenate(mp_loop_builder_t *b, const mp_op_t *op,
                                    const mp_loop_ref_t *operands, mp_loop_ref_t result,
                                    bool *out_done) {
  enum { MAX_COPIES = 32 };
  const mp_type_t *type = op->results[0].type;
  const int64_t dimension = mp_op_int(op, MP_ATTR_DIMENSION, 0);
  uint64_t num_rows = 1;
  for (int64_t d = 0; d < dimension; ++d) num_rows *= (uint64_t)type->dims[d];
  *out_done = num_rows != 0 && num_rows * op->num_operands <= MAX_COPIES;
  if (!*out_done) return NULL;
  for (uint64_t r = 0; r < num_rows; ++r) {
    uintptr_t offset = (uintptr_t)(r * ((uint64_t)mp_shape_bytes(type) / num_rows));
    for (uint32_t i = 0; i < op->num_operands; ++i) {
      const uint64_t bytes = (uint64_t)mp_shape_bytes(op->operands[i]->type) / num_rows;
      const mp_loop_ref_t from = {operands[i].base, operands[i].offset + (uintptr_t)(r * bytes)};
      const mp_loop_ref_t to = {result.base, result.offset + offset};
      MP_RETURN_IF_ERROR(mp_loop_add_copy_step(b, from, to, bytes));
      offset += (uintptr_t)bytes;
    }
  }
  return NULL;
}

mp_status_t mp_loop_rows(mp_loop_builder_t *b, const mp_op_t *op, const mp_loop_ref_t *operands,
                         const mp_loop_ref_t *results, bool *out_done) {
  *out_done = false;
  if (op->code == MP_OP_CONCATENATE) {
    return rows_concatenate(b, op, operands, results[0], out_done);
  }
  const bool is_update = op->code == MP_OP_DYNAMIC_UPDATE_SLICE;
  if (!is_update && op->code != MP_OP_DYNAMIC_SLICE) return NULL;
  const uint32_t first = is_update ? 2 : 1;
  const mp_type_t *array = op->operands[0]->type;
  const mp_type_t *box = is_update ? op->operands[1]->type : op->results[0].type;
  const int64_t bytes = mp_shape_bytes(box);
  if (bytes == 0 || !mp_dims_is_piece(array->dims, box->dims, box->rank)) return NULL;
  if (is_update && !mp_loop_same_ref(operands[0], results[0])) return NULL;
  mp_loop_row_t *row = MP_ARENA_NEW(b->arena, mp_loop_row_t);
  MP_RETURN_IF_NULL(row);
  mp_loop_step_t step = {.what = is_update ? MP_DO_PLACE_ROW : MP_DO_TAKE_ROW, .count = bytes};
  const mp_dtype_t dtype = array->rank == 0 ? MP_DTYPE_S32 : op->operands[first]->type->dtype;
  uintptr_t offset = 0;
  if (!rows_describe(b, array, box, dtype, operands + first, &step, row, &offset)) return NULL;
  step.in[0] = operands[is_update ? 1 : 0];
  step.out = results[0];
  *(is_update ? &step.out.offset : &step.in[0].offset) += offset;
  step.num_refs = 1 + row->count;
  step.u.row = row;
  step.size = row->count == 1 && dtype == MP_DTYPE_S32;
  if (step.size == 1 && bytes == 4) step.what = is_update ? MP_DO_PLACE_4 : MP_DO_TAKE_4;
  *out_done = true;
  if (row->count == 0) return mp_loop_add_copy_step(b, step.in[0], step.out, (uint64_t)bytes);
  b->seconds += (double)bytes * 0.1e-9;
  return mp_loop_add_step(b, &step);
}
