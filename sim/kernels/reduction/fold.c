#include "sim/kernels/reduction/fold.h"

#include <string.h>

#include "sim/base/assert.h"
#include "sim/base/vector.h"
#include "sim/kernels/lanes.h"
#include "sim/kernels/shape.h"
#include "sim/kernels/strided.h"

// The bytes of an array of lanes of any element type.
enum { LANES_BYTES = MP_FOLD_LANES * 16 };

static mp_status_t fold_bind_operand(const mp_op_t *op, mp_dtype_t in, mp_dtype_t init,
                                     mp_dtype_t acc, mp_dtype_t out, mp_fold_operand_t *operand) {
  operand->in_size = mp_dtype_size(in);
  operand->init_size = mp_dtype_size(init);
  operand->acc_size = mp_dtype_size(acc);
  operand->out_size = mp_dtype_size(out);
  operand->converts = in != acc;
  operand->converts_init = init != acc;
  operand->converts_result = acc != out;
  if (!mp_ew_bind_convert(in, acc, &operand->load) ||
      !mp_ew_bind_convert(init, acc, &operand->load_init) ||
      !mp_ew_bind_convert(acc, out, &operand->store)) {
    return mp_op_error(op, MP_UNIMPLEMENTED, "no kernel for element type %s", mp_dtype_name(in));
  }
  return NULL;
}

mp_status_t mp_fold_create(mp_arena_t *arena, const mp_op_t *op, const mp_fold_types_t *types,
                           mp_fold_t *out_fold) {
  const mp_block_t *region = op->regions[0];
  const uint32_t num_operands = types->num_operands;
  mp_fold_t fold = {.num_operands = num_operands};
  if (region->num_args != 2 * num_operands) {
    return mp_op_error(op, MP_INVALID_ARGUMENT, "the region has %u arguments instead of %u",
                       region->num_args, 2 * num_operands);
  }
  MP_RETURN_IF_ERROR(mp_region_fn_create(arena, region, &fold.fn));
  fold.operands = MP_ARENA_ARRAY(arena, mp_fold_operand_t, num_operands + 1);
  MP_RETURN_IF_NULL(fold.operands);
  fold.kind = mp_region_fn_kind(fold.fn);
  if (fold.kind == MP_REDUCE_SECOND) fold.kind = MP_REDUCE_CUSTOM;
  mp_ew_t binary = {0};
  if (fold.kind != MP_REDUCE_CUSTOM) {
    if (mp_ew_bind_binary(mp_reduce_kind_opcode(fold.kind), region->args[0].type->dtype, &binary)) {
      fold.loop = binary.loop;
    } else {
      fold.kind = MP_REDUCE_CUSTOM;
    }
  }
  for (uint32_t k = 0; k < num_operands; ++k) {
    mp_dtype_t acc = region->args[k].type->dtype;
    if (fold.kind != MP_REDUCE_CUSTOM) {
      acc = mp_ew_computing_type(acc);
      fold.type = acc;
      fold.blocks = mp_fold_blocks(fold.kind, acc);
      fold.row = mp_fold_row_loop(fold.kind, types->in[k]->dtype, acc);
    }
    MP_RETURN_IF_ERROR(fold_bind_operand(op, types->in[k]->dtype, types->init[k]->dtype, acc,
                                         types->out[k]->dtype, &fold.operands[k]));
  }
  fold.scratch_bytes = (size_t)num_operands * 3 * LANES_BYTES + MP_FOLD_LANES * sizeof(int64_t) +
                       (size_t)num_operands * 6 * sizeof(void *) + 64 +
                       mp_region_fn_scratch_bytes(fold.fn);
  *out_fold = fold;
  return NULL;
}

mp_status_t mp_fold_create_of(mp_arena_t *arena, const mp_op_t *op, mp_fold_t *out_fold) {
  const uint32_t n = op->num_operands / 2;
  const mp_type_t **types = MP_ARENA_ARRAY(arena, const mp_type_t *, 3 * n + 1);
  MP_RETURN_IF_NULL(types);
  for (uint32_t k = 0; k < n; ++k) {
    types[k] = mp_op_operand_type(op, k);
    types[n + k] = mp_op_operand_type(op, n + k);
    types[2 * n + k] = mp_op_result_type(op, k);
  }
  const mp_fold_types_t all = {n, .in = types, .init = types + n, .out = types + 2 * n};
  return mp_fold_create(arena, op, &all, out_fold);
}

void mp_fold_work(const mp_fold_t *fold, void *scratch, mp_fold_work_t *out_work) {
  uint32_t n = fold->num_operands;
  char *arrays = scratch;
  char *rest = arrays + (size_t)n * 3 * LANES_BYTES;
  out_work->offsets = (int64_t *)(void *)rest;
  rest += MP_FOLD_LANES * sizeof(int64_t);
  size_t region_bytes = mp_region_fn_scratch_bytes(fold->fn);
  out_work->distance = 0;
  out_work->source = NULL;
  out_work->region_scratch = rest;
  rest += mp_round_up_64(region_bytes);
  char **pointers = (char **)(void *)rest;
  out_work->acc = pointers;
  out_work->x = pointers + n;
  out_work->spare = pointers + 2 * n;
  out_work->loaded = (const char **)(void *)(pointers + 3 * n);
  out_work->pointers = (const void **)(void *)(pointers + 4 * n);
  for (uint32_t k = 0; k < n; ++k) {
    out_work->acc[k] = arrays + (size_t)(3 * k) * LANES_BYTES;
    out_work->x[k] = arrays + (size_t)(3 * k + 1) * LANES_BYTES;
    out_work->spare[k] = arrays + (size_t)(3 * k + 2) * LANES_BYTES;
  }
}

// Computes acc = f(first, second), where `acc` is one of the two.
static void fold_apply(const mp_fold_t *fold, const mp_fold_work_t *work, int64_t lanes,
                       const char *const *first, const char *const *second, char *const *acc,
                       const void *const *captures) {
  MP_ASSERT(lanes > 0 && lanes <= MP_FOLD_LANES);
  if (fold->kind != MP_REDUCE_CUSTOM) {
    const void *in[] = {first[0], second[0]};
    fold->loop(lanes, in, acc[0]);
    return;
  }
  uint32_t n = fold->num_operands;
  for (uint32_t k = 0; k < n; ++k) {
    work->pointers[k] = first[k];
    work->pointers[n + k] = second[k];
  }
  mp_region_fn_run(fold->fn, lanes, work->pointers, captures, (void *const *)acc,
                   work->region_scratch);
}

void mp_fold_step(const mp_fold_t *fold, const mp_fold_work_t *work, int64_t lanes,
                  char *const *acc, const char *const *x, const void *const *captures) {
  fold_apply(fold, work, lanes, (const char *const *)acc, x, acc, captures);
}

void mp_fold_start(const mp_fold_t *fold, const mp_fold_work_t *work, int64_t lanes,
                   const char *const *first, const void *const *captures) {
  fold_apply(fold, work, lanes, first, (const char *const *)work->acc, work->acc, captures);
}

void mp_fold_fill(const mp_fold_t *fold, uint32_t k, int64_t lanes, const void *init, char *acc) {
  const mp_fold_operand_t *operand = &fold->operands[k];
  char element[16];
  const void *in[] = {init};
  if (operand->converts_init) {
    mp_ew_run(&operand->load_init, 1, in, element);
  } else {
    memcpy(element, init, operand->acc_size);
  }
  mp_fill(acc, element, operand->acc_size, lanes);
}

const char *mp_fold_load(const mp_fold_t *fold, const mp_fold_work_t *work, uint32_t k,
                         int64_t lanes, const mp_fold_place_t *place, char *dst) {
  MP_ASSERT(k < fold->num_operands && lanes > 0 && lanes <= MP_FOLD_LANES);
  const mp_fold_operand_t *operand = &fold->operands[k];
  const char *base = place->src;
  if (place->contiguous) {
    const int64_t first = place->offsets[0] + place->shift;
    base = work->source != NULL ? work->source->load(work->source, first, lanes)
                                : base + first * (int64_t)operand->in_size;
    if (!operand->converts) return base;
  } else {
    MP_ASSERT(work->source == NULL);
    base += place->shift * (int64_t)operand->in_size;
    char *to = operand->converts ? work->spare[k] : dst;
    const int64_t size = (int64_t)operand->in_size;
    if (work->distance != 0) {
      mp_copy_line(to, size, base + place->offsets[0] * size, work->distance * size,
                   operand->in_size, lanes);
    } else {
      mp_lanes_gather(operand->in_size, lanes, base, place->offsets, to);
    }
    if (!operand->converts) return dst;
    base = to;
  }
  const void *in[] = {base};
  mp_ew_run(&operand->load, lanes, in, dst);
  return dst;
}

int64_t mp_fold_run_length(const mp_fold_t *fold) {
  size_t largest = 4;
  for (uint32_t k = 0; k < fold->num_operands; ++k) {
    const mp_fold_operand_t *operand = &fold->operands[k];
    if (operand->in_size > largest) largest = operand->in_size;
    if (operand->acc_size > largest) largest = operand->acc_size;
  }
  return (int64_t)(LANES_BYTES / MP_FOLD_RUN_LANES / largest);
}

void mp_fold_load_runs(const mp_fold_t *fold, const mp_fold_work_t *work, uint32_t k, int64_t lanes,
                       int64_t count, const mp_fold_place_t *place) {
  MP_ASSERT(k < fold->num_operands && lanes <= MP_FOLD_RUN_LANES);
  MP_ASSERT(count <= mp_fold_run_length(fold));
  const mp_fold_operand_t *operand = &fold->operands[k];
  const char *base = (const char *)place->src + place->shift * (int64_t)operand->in_size;
  char *to = operand->converts ? work->spare[k] : work->x[k];
  mp_lanes_gather_runs(operand->in_size, lanes, count, base, place->offsets, to);
  if (!operand->converts) return;
  const void *in[] = {to};
  mp_ew_run(&operand->load, lanes * count, in, work->x[k]);
}

void mp_fold_store(const mp_fold_t *fold, uint32_t k, int64_t lanes, const char *acc, void *out) {
  const mp_fold_operand_t *operand = &fold->operands[k];
  const void *in[] = {acc};
  if (operand->converts_result) {
    mp_ew_run(&operand->store, lanes, in, out);
  } else {
    memcpy(out, acc, (size_t)lanes * operand->out_size);
  }
}

// ---- Rows ----

// Folds `lanes` accumulators into the first one, by folding the upper half into the lower one again
// and again.
static void fold_halves(const mp_fold_t *fold, int64_t lanes, char *acc) {
  size_t size = fold->operands[0].acc_size;
  if (lanes == MP_FOLD_LANES && fold->blocks.halves != NULL) {
    fold->blocks.halves(acc);
    return;
  }
  while (lanes > 1) {
    int64_t half = lanes / 2, rest = lanes - half;
    const void *in[] = {acc, acc + (size_t)rest * size};
    fold->loop(half, in, acc);
    lanes = rest;
  }
}

// The first half of a run that is divided.
static int64_t fold_half(int64_t length) {
  MP_ASSERT(length > MP_FOLD_ROW_MAX);
  return length / 2 / MP_FOLD_LANES * MP_FOLD_LANES;
}

void mp_fold_row_piece(int64_t length, uint32_t num_pieces, uint32_t piece, int64_t *out_first,
                       int64_t *out_last) {
  MP_ASSERT(piece < num_pieces && (num_pieces & (num_pieces - 1)) == 0);
  int64_t first = 0;
  for (uint32_t bit = num_pieces / 2; bit != 0; bit /= 2) {
    const int64_t half = fold_half(length);
    if ((piece & bit) != 0) first += half;
    length = (piece & bit) != 0 ? length - half : half;
  }
  *out_first = first;
  *out_last = first + length;
}

// Folds `count` neighbours, from number `first` on, into as many accumulators.
static void fold_row_step(const mp_fold_t *fold, const mp_fold_work_t *work, const void *src,
                          int64_t first, int64_t count, char *acc) {
  const mp_fold_operand_t *operand = &fold->operands[0];
  const bool is_block = count == MP_FOLD_LANES && fold->blocks.step != NULL;
  const int64_t bytes = count * (int64_t)operand->in_size;
  // If blocks are read from the array itself, their loop prefetches the next one.
  const bool is_read = is_block && work->source == NULL && !operand->converts;
  if (!is_read && work->source == NULL) {
    mp_prefetch(src, first * (int64_t)operand->in_size + 2 * bytes, bytes);
  }
  const mp_fold_place_t place = {src, &first, 0, true};
  const char *x = mp_fold_load(fold, work, 0, count, &place, work->spare[0]);
  if (is_block) {
    fold->blocks.step(acc, acc, x, is_read ? bytes : 0);
  } else {
    const void *in[] = {acc, x};
    fold->loop(count, in, acc);
  }
}

// Sets the accumulators to the first elements of a run, or folds the first two blocks. Returns how
// many elements that were.
static int64_t fold_row_begin(const mp_fold_t *fold, const mp_fold_work_t *work, const void *src,
                              int64_t first, int64_t length, char *acc) {
  const int64_t lanes = mp_min_i64(length, MP_FOLD_LANES);
  const bool is_read = work->source == NULL && !fold->operands[0].converts;
  const mp_fold_place_t place = {src, &first, 0, true};
  const char *x = mp_fold_load(fold, work, 0, lanes, &place, acc);
  const int64_t bytes = lanes * (int64_t)fold->operands[0].acc_size;
  if (length >= 2 * MP_FOLD_LANES && is_read && fold->blocks.step != NULL) {
    fold->blocks.step(acc, x, x + bytes, bytes);
    return 2 * lanes;
  }
  if (x != acc) memcpy(acc, x, (size_t)bytes);
  return lanes;
}

void mp_fold_row(const mp_fold_t *fold, const mp_fold_work_t *work, const void *src, int64_t first,
                 int64_t length, char *out) {
  const size_t size = fold->operands[0].acc_size;
  if (length > MP_FOLD_ROW_MAX) {
    _Alignas(16) char second[16];
    const int64_t half = fold_half(length);
    mp_fold_row(fold, work, src, first, half, out);
    mp_fold_row(fold, work, src, first + half, length - half, second);
    const void *in[] = {out, second};
    fold->loop(1, in, out);
    return;
  }
  if (fold->row != NULL && work->source == NULL) {
    fold->row((const char *)src + first * (int64_t)fold->operands[0].in_size, length, out);
    return;
  }
  char *partial = work->x[0];
  const int64_t lanes = mp_min_i64(length, MP_FOLD_LANES);
  for (int64_t i = fold_row_begin(fold, work, src, first, length, partial); i < length;
       i += lanes) {
    fold_row_step(fold, work, src, first + i, mp_min_i64(length - i, lanes), partial);
  }
  fold_halves(fold, lanes, partial);
  memcpy(out, partial, size);
  mp_fold_settle_nan(fold->kind, fold->type, out);
}
