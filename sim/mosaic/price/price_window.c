// Windows: which block of an array a step of the grid sees.
#include <math.h>
#include <string.h>

#include "sim/mosaic/price/price_grid.h"

// Bytes of a register: blocks are whole tiles.
enum { PRICE_REGISTER_BYTES = 4096 };

static int64_t price_window_divide(int64_t a, int64_t b, bool up) {
  if (b == 0) return 0;
  const int64_t quotient = a / b, rest = a % b;
  if (rest == 0 || ((a < 0) != (b < 0)) == up) return quotient;
  return up ? quotient + 1 : quotient - 1;
}

static int64_t price_window_affine(const mp_mosaic_affine_t *e, const int64_t *dims,
                                   uint32_t num_dims) {
  if (e->kind == MP_MOSAIC_AFFINE_CONSTANT) return e->value;
  if (e->kind == MP_MOSAIC_AFFINE_DIM)
    return e->value >= 0 && e->value < (int64_t)num_dims ? dims[e->value] : 0;
  if (e->lhs == NULL || e->rhs == NULL) return 0;
  const int64_t a = price_window_affine(e->lhs, dims, num_dims);
  const int64_t b = price_window_affine(e->rhs, dims, num_dims);
  switch (e->kind) {
    case MP_MOSAIC_AFFINE_ADD:
      return (int64_t)((uint64_t)a + (uint64_t)b);
    case MP_MOSAIC_AFFINE_MUL:
      return (int64_t)((uint64_t)a * (uint64_t)b);
    case MP_MOSAIC_AFFINE_MOD:
      return a - price_window_divide(a, b, false) * b;
    default:
      return price_window_divide(a, b, e->kind == MP_MOSAIC_AFFINE_CEILDIV);
  }
}

mp_status_t mp_price_window_index(mp_price_grid_t *grid, const mp_price_window_t *window,
                                  const int64_t *step, int64_t *out_index, bool *out_known) {
  memset(out_index, 0, MP_PRICE_MAX_RANK * sizeof(*out_index));
  *out_known = true;
  if (window->map != NULL) {
    const mp_mosaic_map_t *map = window->map->map;
    for (uint32_t d = 0; d < map->num_results && d < MP_PRICE_MAX_RANK; ++d)
      out_index[d] = price_window_affine(map->results[d], step, grid->rank);
    return NULL;
  }
  if (window->func == NULL) return NULL;
  const mp_mosaic_block_t *body = window->func->func->body;
  for (uint32_t i = 0; i < body->num_args && i < grid->rank + grid->num_prefetched; ++i) {
    window->func->slots[body->args[i].id] =
        i < grid->rank ? (mp_price_slot_t){.is_known = true, .number = step[i]}
                       : grid->main->slots[grid->main->func->body->args[i].id];
  }
  MP_RETURN_IF_ERROR(mp_price_run(grid->walk, window->func));
  for (uint32_t d = 0; d < body->last->num_operands && d < MP_PRICE_MAX_RANK; ++d) {
    const mp_price_slot_t *slot = &window->func->slots[body->last->operands[d]->id];
    out_index[d] = slot->number;
    *out_known = *out_known && slot->is_known;
  }
  return NULL;
}

// ---- making ----

static bool price_window_is_far(const mp_mosaic_type_t *type) {
  return type->kind != MP_MOSAIC_MEMREF || type->element != MP_MOSAIC_NUMBER ||
         type->space == MP_MOSAIC_SPACE_ANY || type->space == MP_MOSAIC_SPACE_HBM ||
         type->space == MP_MOSAIC_SPACE_HOST || type->space == MP_MOSAIC_SPACE_SEMAPHORE_MEM;
}

// By moving the step along each dimension: whether the index changes, and whether it does so with
// each step of the grid.
static mp_status_t price_window_find_changes(mp_price_grid_t *grid, mp_price_window_t *window) {
  int64_t step[MP_PRICE_MAX_GRID] = {0}, first[MP_PRICE_MAX_RANK], other[MP_PRICE_MAX_RANK];
  bool is_known = true, changes = false, changes_last = false;
  MP_RETURN_IF_ERROR(mp_price_window_index(grid, window, step, first, &is_known));
  window->is_constant = is_known;
  for (uint32_t d = 0; d < grid->rank && is_known; ++d) {
    if (grid->bounds[d] < 2) continue;
    step[d] = 1;
    MP_RETURN_IF_ERROR(mp_price_window_index(grid, window, step, other, &is_known));
    step[d] = 0;
    changes_last = !is_known || memcmp(first, other, sizeof(first)) != 0;
    changes |= changes_last;
  }
  window->is_constant = !changes && window->is_constant;
  window->is_held = changes && !changes_last;
  return NULL;
}

static mp_status_t price_window_read(mp_price_grid_t *grid, const mp_mosaic_attr_t *params,
                                     mp_price_window_t *window) {
  if (params == NULL || params->kind != MP_MOSAIC_DICT) return NULL;
  const mp_mosaic_attr_t *indices =
      mp_mosaic_attr(params->list.items, params->list.count, "transform_indices");
  const mp_mosaic_attr_t *mode =
      mp_mosaic_attr(params->list.items, params->list.count, "pipeline_mode");
  if (mode != NULL && mode->kind == MP_MOSAIC_DIALECT && mode->list.count == 1)
    mode = mode->list.items[0].value;
  if (mode != NULL && mode->kind == MP_MOSAIC_STRING && mp_str_is(mode->str, "synchronous"))
    window->buffers = 1;
  if (indices == NULL) return NULL;
  if (indices->kind == MP_MOSAIC_MAP) {
    window->map = indices;
    return NULL;
  }
  const mp_mosaic_func_t *func = indices->kind == MP_MOSAIC_STRING
                                     ? mp_mosaic_find_func(grid->walk->module, indices->str)
                                     : NULL;
  return func == NULL ? NULL : mp_price_prepare(grid->walk, func, &window->func);
}

// Keeps the shape of the largest block.
static void price_window_note(mp_price_grid_t *grid, const mp_mosaic_type_t *type) {
  double known = 1, more = 1;
  mp_price_shape_t *block = &grid->block;
  if (type->rank > MP_PRICE_MAX_DIMS) return;
  for (uint32_t d = 0; d < block->rank; ++d) known *= (double)block->dims[d];
  for (uint32_t d = 0; d < type->rank; ++d) more *= (double)type->dims[d];
  if (block->rank != 0 && more <= known) return;
  block->rank = type->rank;
  for (uint32_t d = 0; d < type->rank; ++d) block->dims[d] = type->dims[d];
}

static mp_status_t price_window_make(mp_price_grid_t *grid, uint32_t arg, bool is_result,
                                     const mp_mosaic_attr_t *params, double *in_out_vmem) {
  const mp_mosaic_type_t *type = grid->main->func->body->args[arg].type;
  if (price_window_is_far(type)) return NULL;
  mp_price_window_t *window = &grid->windows[grid->num_windows++];
  *window = (mp_price_window_t){.arg = arg,
                                .is_result = is_result,
                                .buffers = 2,
                                .bytes = mp_price_registers(type) * PRICE_REGISTER_BYTES};
  if (type->space == MP_MOSAIC_SPACE_SMEM) window->bytes /= MP_PRICE_SUBLANES;
  MP_RETURN_IF_ERROR(price_window_read(grid, params, window));
  MP_RETURN_IF_ERROR(price_window_find_changes(grid, window));
  if (window->is_constant) window->buffers = 1;
  price_window_note(grid, type);
  if (type->space != MP_MOSAIC_SPACE_SMEM) *in_out_vmem += window->bytes * window->buffers;
  return NULL;
}

mp_status_t mp_price_make_windows(mp_price_grid_t *grid, uint32_t num_inputs, double *out_vmem) {
  const mp_mosaic_func_t *func = grid->main->func;
  const mp_mosaic_attr_t *params = mp_mosaic_attr(func->attrs, func->num_attrs, "window_params");
  const mp_mosaic_attr_t *scratch =
      mp_mosaic_attr(func->attrs, func->num_attrs, "scratch_operands");
  const uint32_t first = grid->rank + grid->num_prefetched, num_args = func->body->num_args;
  const uint32_t num_scratch = scratch == NULL ? 0 : (uint32_t)scratch->i64;
  *out_vmem = 0;
  if (first > num_args || num_scratch > num_args - first)
    return mp_status_make(MP_INVALID_ARGUMENT, "kernel '%.*s' has too few arguments",
                          MP_STR_ARG(func->name));
  const uint32_t count = num_args - first - num_scratch;
  grid->windows = MP_ARENA_ARRAY(grid->walk->arena, mp_price_window_t, count + 1);
  MP_RETURN_IF_NULL(grid->windows);
  for (uint32_t w = 0; w < count; ++w) {
    const bool has_params =
        params != NULL && params->kind == MP_MOSAIC_ARRAY && w < params->list.count;
    MP_RETURN_IF_ERROR(price_window_make(grid, first + w, w >= num_inputs,
                                         has_params ? params->list.items[w].value : NULL,
                                         out_vmem));
  }
  for (uint32_t i = num_args - num_scratch; i < num_args; ++i) {
    const mp_mosaic_type_t *type = func->body->args[i].type;
    if (!price_window_is_far(type) && type->space != MP_MOSAIC_SPACE_SMEM)
      *out_vmem += mp_price_registers(type) * PRICE_REGISTER_BYTES;
  }
  return NULL;
}
