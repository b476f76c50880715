#include "sim/kernels/windows/window_tree.h"

#include <string.h>

#include "sim/kernels/lanes.h"
#include "sim/kernels/loops.h"
#include "sim/kernels/shape.h"
#include "sim/kernels/strided.h"
#include "sim/kernels/transpose.h"

// LANES lines, or blocks of a line, are worked on together. Shorter lines than MIN_LINE have too
// few blocks for that.
enum { BLOCK = 16, LANES = 128, MIN_LINE = 512 };

// ---- planning ----

bool mp_window_tree_create(const mp_fold_t *fold, int64_t outer, int64_t length, int64_t inner,
                           bool from_end, mp_window_tree_t *out_tree) {
  if (fold->kind != MP_REDUCE_ADD && fold->kind != MP_REDUCE_MUL) return false;
  const mp_fold_operand_t *operand = &fold->operands[0];
  const mp_dtype_t acc = operand->load.output;
  if (!mp_dtype_is_float(acc) && !mp_dtype_is_complex(acc)) return false;
  if (operand->load.inputs[0] != operand->store.output) return false;
  mp_window_tree_t tree = {fold, outer, length, inner, from_end, .by_lines = false};
  tree.by_lines = inner == 1 && length >= MIN_LINE;
  for (int64_t n = length;; n = (n + BLOCK - 1) / BLOCK) {
    tree.lengths[tree.num_levels++] = n;
    if (n <= BLOCK) break;
  }
  // Per level: a block, the sum in it and the sum before it. Also the start value, a row each for
  // rounded values, results and totals, and, by lines, the blocks and their elements in order.
  const size_t rows = tree.num_levels * (BLOCK + 2) + 4 + (tree.by_lines ? 2 * BLOCK : 0);
  tree.scratch_bytes = mp_round_up_64(fold->scratch_bytes) + rows * LANES * operand->acc_size;
  *out_tree = tree;
  return true;
}

// ---- state ----

typedef struct {
  char *block;  // [BLOCK] rows, for sums from the end
  char *sum;    // of the current block so far
  char *carry;  // of all blocks before the current one
  int64_t at;   // the current number
  int64_t last;
} level_t;

typedef struct {
  const mp_window_tree_t *tree;
  size_t row;  // bytes
  char *start, *narrow, *results, *totals, *blocks, *flat;
  level_t levels[MP_WINDOW_TREE_MAX_LEVELS];
} state_t;

static char *window_tree_rows(const state_t *state, char **memory, size_t count) {
  char *rows = *memory;
  *memory += count * state->row;
  return rows;
}

static void window_tree_lay_out(const mp_window_tree_t *tree, const mp_kernel_call_t *call,
                                state_t *state) {
  char *memory = (char *)call->scratch + mp_round_up_64(tree->fold->scratch_bytes);
  *state = (state_t){.tree = tree, .row = LANES * tree->fold->operands[0].acc_size};
  state->start = window_tree_rows(state, &memory, 1);
  state->narrow = window_tree_rows(state, &memory, 1);
  state->results = window_tree_rows(state, &memory, 1);
  state->totals = window_tree_rows(state, &memory, 1);
  for (uint32_t i = 0; i < tree->num_levels; ++i) {
    level_t *level = &state->levels[i];
    level->block = window_tree_rows(state, &memory, BLOCK);
    level->sum = window_tree_rows(state, &memory, 1);
    level->carry = window_tree_rows(state, &memory, 1);
  }
  state->blocks = memory;  // by lines only
  state->flat = memory + BLOCK * state->row;
  mp_fold_fill(tree->fold, 0, LANES, call->operands[1], state->start);
}

// Begins new lines.
static void window_tree_reset(state_t *state) {
  for (uint32_t i = 0; i < state->tree->num_levels; ++i) {
    level_t *level = &state->levels[i];
    level->at = state->tree->from_end ? state->tree->lengths[i] - 1 : 0;
    level->last = level->at;
    memcpy(level->carry, state->start, state->row);
  }
}

// ---- one level ----

// Rounds floats to bf16 in place. Conversions would give the same, but go through memory.
MP_VECTOR static void window_tree_round_bf16(int64_t n, uint32_t *x) {
  MP_INDEPENDENT for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = x[i], half = UINT32_C(0x7fff) + (bits >> 16 & 1);
    const bool is_nan = (bits & UINT32_C(0x7fffffff)) > UINT32_C(0x7f800000);
    x[i] = (is_nan ? bits | UINT32_C(0x400000) : bits + half) & UINT32_C(0xffff0000);
  }
}

// out = f(a, b), rounded to the element type.
static void window_tree_fold(const state_t *state, int64_t lanes, const char *a, const char *b,
                             char *out) {
  const mp_fold_t *fold = state->tree->fold;
  const mp_fold_operand_t *operand = &fold->operands[0];
  const void *in[] = {a, b};
  fold->loop(lanes, in, out);
  if (!operand->converts_result) return;
  if (operand->store.output == MP_DTYPE_BF16) {
    window_tree_round_bf16(lanes, (uint32_t *)(void *)out);
    return;
  }
  const void *wide[] = {out}, *narrow[] = {state->narrow};
  mp_ew_run(&operand->store, lanes, wide, state->narrow);
  mp_ew_run(&operand->load, lanes, narrow, out);
}

// Takes the next number of each lane into the current block's sum.
static void window_tree_take(const state_t *state, level_t *level, int64_t lanes, const char *x) {
  const int64_t place = level->at % BLOCK;
  if (!state->tree->from_end) {
    window_tree_fold(state, lanes, place == 0 ? state->start : level->sum, x, level->sum);
    return;
  }
  // Each sum to the end of the block begins with its own first number, so no sum reuses another.
  if (place == BLOCK - 1) level->last = level->at;
  const size_t bytes = (size_t)lanes * state->tree->fold->operands[0].acc_size;
  memcpy(level->block + (size_t)place * state->row, x, bytes);
  window_tree_fold(state, lanes, state->start, x, level->sum);
  for (int64_t i = place + 1; i <= level->last % BLOCK; ++i) {
    window_tree_fold(state, lanes, level->sum, level->block + (size_t)i * state->row, level->sum);
  }
}

static bool window_tree_ends_block(const state_t *state, const level_t *level) {
  return level->at % BLOCK == (state->tree->from_end ? 0 : BLOCK - 1);
}

// Makes the cumulative sums up to (or from) the next number `x` of each lane.
static void window_tree_step(state_t *state, uint32_t number, int64_t lanes, const char *x,
                             char *out) {
  level_t *level = &state->levels[number];
  const bool is_last = number + 1 == state->tree->num_levels;
  window_tree_take(state, level, lanes, x);
  if (is_last) {
    memcpy(out, level->sum, (size_t)lanes * state->tree->fold->operands[0].acc_size);
  } else {
    window_tree_fold(state, lanes, level->sum, level->carry, out);
    if (window_tree_ends_block(state, level)) {
      window_tree_step(state, number + 1, lanes, level->sum, level->carry);
    }
  }
  level->at += state->tree->from_end ? -1 : 1;
}

// ---- many lines together ----

static void window_tree_run_lanes(state_t *state, const mp_kernel_call_t *call, int64_t first,
                                  int64_t lanes) {
  const mp_window_tree_t *tree = state->tree;
  mp_fold_work_t work;
  mp_fold_work(tree->fold, call->scratch, &work);
  for (int64_t i = 0; i < lanes; ++i) {
    const int64_t line = first + i;
    work.offsets[i] = line / tree->inner * tree->inner * tree->length + line % tree->inner;
  }
  const bool contiguous = work.offsets[lanes - 1] == work.offsets[0] + lanes - 1;
  const size_t size = tree->fold->operands[0].out_size;
  window_tree_reset(state);
  for (int64_t step = 0; step < tree->length; ++step) {
    const int64_t shift = (tree->from_end ? tree->length - 1 - step : step) * tree->inner;
    const mp_fold_place_t place = {call->operands[0], work.offsets, shift, contiguous};
    const char *x = mp_fold_load(tree->fold, &work, 0, lanes, &place, work.x[0]);
    window_tree_step(state, 0, lanes, x, state->results);
    char *out = (char *)call->results[0] + shift * (int64_t)size;
    if (contiguous) {
      mp_fold_store(tree->fold, 0, lanes, state->results, out + work.offsets[0] * (int64_t)size);
    } else {
      mp_fold_store(tree->fold, 0, lanes, state->results, work.spare[0]);
      mp_lanes_scatter(size, lanes, work.spare[0], work.offsets, out);
    }
  }
}

// ---- many blocks of one line together ----

// Loads numbers [begin, begin + count) of a line in the accumulators' type, followed by start
// values; then row k has number k of each block.
static void window_tree_load_blocks(state_t *state, const char *line, int64_t begin, int64_t count,
                                    int64_t blocks) {
  const mp_fold_operand_t *operand = &state->tree->fold->operands[0];
  const size_t size = operand->acc_size;
  const void *in[] = {line + (size_t)begin * operand->in_size};
  const char *from = state->flat;
  if (operand->converts) {
    mp_ew_run(&operand->load, count, in, state->flat);
  } else if (count == blocks * BLOCK) {
    from = in[0];
  } else {
    memcpy(state->flat, in[0], (size_t)count * size);
  }
  mp_fill(state->flat + (size_t)count * size, state->start, size, blocks * BLOCK - count);
  const mp_matrix_t matrix = {BLOCK, blocks, (int64_t)state->row, (int64_t)(BLOCK * size)};
  mp_transpose(&matrix, size, state->blocks, from);
}

static void window_tree_store_blocks(state_t *state, char *line, int64_t begin, int64_t count,
                                     int64_t blocks) {
  const mp_fold_operand_t *operand = &state->tree->fold->operands[0];
  const size_t size = operand->acc_size;
  char *out = line + (size_t)begin * operand->out_size;
  const bool is_direct = !operand->converts_result && count == blocks * BLOCK;
  const mp_matrix_t matrix = {blocks, BLOCK, (int64_t)(BLOCK * size), (int64_t)state->row};
  mp_transpose(&matrix, size, is_direct ? out : state->flat, state->blocks);
  const void *in[] = {state->flat};
  if (operand->converts_result) {
    mp_ew_run(&operand->store, count, in, out);
  } else if (!is_direct) {
    memcpy(out, state->flat, (size_t)count * size);
  }
}

// Makes the sums inside of each block, in place. Returns the row of the blocks' totals.
static const char *window_tree_sum_blocks(state_t *state, int64_t blocks) {
  const size_t row = state->row;
  if (!state->tree->from_end) {
    for (size_t k = 0; k < BLOCK; ++k) {
      const char *before = k == 0 ? state->start : state->blocks + (k - 1) * row;
      window_tree_fold(state, blocks, before, state->blocks + k * row, state->blocks + k * row);
    }
    return state->blocks + (BLOCK - 1) * row;
  }
  for (size_t k = 0; k < BLOCK; ++k) {
    char *sum = state->blocks + k * row;
    window_tree_fold(state, blocks, state->start, sum, sum);
    for (size_t i = k + 1; i < BLOCK; ++i) {
      window_tree_fold(state, blocks, sum, state->blocks + i * row, sum);
    }
  }
  return state->blocks;
}

// Computes from the totals of these blocks, one after the other, the sum of all blocks before each
// (state->results). `carry` is the sum before the first block, and becomes the sum after the last.
static void window_tree_carry(state_t *state, int64_t blocks, const char *totals, char *carry) {
  const size_t size = state->tree->fold->operands[0].acc_size;
  for (int64_t i = 0; i < blocks; ++i) {
    const size_t at = (size_t)(state->tree->from_end ? blocks - 1 - i : i) * size;
    memcpy(state->results + at, carry, size);
    window_tree_step(state, 1, 1, totals + at, carry);
  }
}

// The same for sums from the start, by blocks of blocks together; the first block begins a block of
// blocks.
static void window_tree_carry_together(state_t *state, int64_t blocks, char *totals, char *carry) {
  const size_t size = state->tree->fold->operands[0].acc_size;
  const int64_t groups = (blocks + BLOCK - 1) / BLOCK;
  const size_t row = (size_t)groups * size;
  char *sums = state->flat, *before = sums + BLOCK * row;  // `flat` is free now
  mp_fill(totals + (size_t)blocks * size, state->start, size, groups * BLOCK - blocks);
  const mp_matrix_t forth = {BLOCK, groups, (int64_t)row, (int64_t)(BLOCK * size)};
  const mp_matrix_t back = {groups, BLOCK, (int64_t)(BLOCK * size), (int64_t)row};
  mp_transpose(&forth, size, sums, totals);
  for (size_t k = 0; k < BLOCK; ++k) {
    const char *last = k == 0 ? state->start : sums + (k - 1) * row;
    window_tree_fold(state, groups, last, sums + k * row, sums + k * row);
  }
  char *outer = state->levels[1].carry;
  for (int64_t g = 0; g < groups; ++g) {
    const size_t at = (size_t)g * size;
    memcpy(before + at, outer, size);
    // An incomplete group is the line's last one.
    if ((g + 1) * BLOCK <= blocks) {
      window_tree_step(state, 2, 1, sums + (BLOCK - 1) * row + at, outer);
    }
  }
  for (size_t k = 0; k < BLOCK; ++k) {
    window_tree_fold(state, groups, sums + k * row, before, sums + k * row);
  }
  mp_transpose(&back, size, totals, sums);
  memcpy(state->results, carry, size);
  memcpy(state->results + size, totals, (size_t)(blocks - 1) * size);
  memcpy(carry, totals + (size_t)(blocks - 1) * size, size);
}

static void window_tree_run_line(state_t *state, const mp_kernel_call_t *call, int64_t line) {
  const mp_window_tree_t *tree = state->tree;
  const mp_fold_operand_t *operand = &tree->fold->operands[0];
  const size_t size = operand->acc_size, start = (size_t)(line * tree->length);
  const char *in = (const char *)call->operands[0] + start * operand->in_size;
  char *out = (char *)call->results[0] + start * operand->out_size;
  const int64_t num_blocks = tree->lengths[1];
  char *carry = state->levels[0].carry;
  window_tree_reset(state);
  for (int64_t done = 0, blocks; done < num_blocks; done += blocks) {
    blocks = mp_min_i64(LANES, num_blocks - done);
    const int64_t first = tree->from_end ? num_blocks - done - blocks : done;
    const int64_t begin = first * BLOCK;
    const int64_t count = mp_min_i64(blocks * BLOCK, tree->length - begin);
    window_tree_load_blocks(state, in, begin, count, blocks);
    const char *totals = window_tree_sum_blocks(state, blocks);
    if (tree->from_end) {
      window_tree_carry(state, blocks, totals, carry);
    } else {
      memcpy(state->totals, totals, (size_t)blocks * size);
      window_tree_carry_together(state, blocks, state->totals, carry);
    }
    for (size_t k = 0; k < BLOCK; ++k) {
      char *sums = state->blocks + k * state->row;
      window_tree_fold(state, blocks, sums, state->results, sums);
    }
    window_tree_store_blocks(state, out, begin, count, blocks);
  }
}

void mp_window_tree_run(const mp_window_tree_t *tree, const mp_kernel_call_t *call, int64_t begin,
                        int64_t end) {
  state_t state;
  window_tree_lay_out(tree, call, &state);
  if (tree->by_lines) {
    for (; begin < end; ++begin) window_tree_run_line(&state, call, begin);
    return;
  }
  for (int64_t lanes; begin < end; begin += lanes) {
    // A block of lanes does not go beyond the end of a run of neighbours, so that long runs are
    // contiguous.
    lanes = mp_min_i64(end - begin, LANES);
    if (tree->inner >= BLOCK) lanes = mp_min_i64(lanes, tree->inner - begin % tree->inner);
    window_tree_run_lanes(&state, call, begin, lanes);
  }
}
