#include <stdatomic.h>
#include <string.h>

#include "sim/base/assert.h"
#include "sim/kernels/fused/tile/tile.h"
#include "sim/kernels/fused/tile/view_nest.h"
#include "sim/kernels/shape.h"
#include "sim/kernels/strided.h"
#include "sim/numeric/float.h"

static void tile_run_compute(const mp_tile_run_t *run, const mp_tile_step_t *step, int64_t n) {
  const mp_ew_t *ew = &step->ew;
  const void *in[MP_EW_MAX_INPUTS + 1];
  for (uint32_t k = 0; k < ew->num_inputs; ++k) in[k] = run->at[step->in[k]];
  if (ew->has_params) in[ew->num_inputs] = ew->params;
  ew->loop(n, in, run->at[step->out]);
}

// The elements that are computed at once: [begin, begin + n), which are the rows [row, row + rows);
// in blocks, those of line `line` of a block of `height` lines. Functions pass a span by address.
// Copying it would read wider pieces than were just written, and machines wait for all earlier
// stores before such a read.
typedef struct {
  int64_t begin, n, row, rows, line, height;
} span_t;

static void tile_run_load_block(const mp_tile_run_t *run, const mp_tile_step_t *step,
                                const span_t *span) {
  const mp_tile_blocks_t *blocks = &run->program->blocks;
  const size_t size = run->program->slots[step->out].size;
  const int64_t line_bytes = (int64_t)(blocks->lanes * size);
  char *block = (char *)run->call->scratch + blocks->offset + (size_t)step->block * blocks->lanes;
  if (span->line == 0) {
    mp_view_load_block(step->view, size, run->call->operands[step->operand], span->begin,
                       (mp_matrix_t){span->height, span->n, .dst_step = line_bytes}, block);
  }
  run->at[step->out] = block + span->line * line_bytes;
}

static void tile_run_load(const mp_tile_run_t *run, const mp_tile_step_t *step, int64_t begin,
                          int64_t n) {
  const mp_tile_slot_t *slot = &run->program->slots[step->out];
  char *base = (char *)(uintptr_t)run->call->operands[step->operand];
  int64_t first = 0;
  if (mp_view_find_run(step->view, begin, n, &first)) {
    run->at[step->out] = base + first * (int64_t)slot->size;
    return;
  }
  char *own = (char *)run->call->scratch + (size_t)slot->offset * run->program->room;
  if (step->lands && run->lands) own = run->at[step->landing];
  run->at[step->out] = own;
  mp_view_load(step->view, slot->size, base, begin, n, own);
}

static void tile_run_fill(const mp_tile_run_t *run, const mp_tile_step_t *step, int64_t n) {
  const size_t size = run->program->slots[step->out].size;
  const char *element = step->element;
  if (element == NULL) {
    element = (const char *)run->call->operands[step->operand] + step->view->offset * (int64_t)size;
  }
  if (n == 1 && size == sizeof(uint32_t)) {  // most are numbers of f32
    memcpy(run->at[step->out], element, sizeof(uint32_t));
  } else {
    mp_fill(run->at[step->out], element, size, n);
  }
}

static void tile_run_reduce(const mp_tile_run_t *run, const mp_tile_step_t *step, int64_t rows) {
  const mp_fold_t *fold = step->fold;
  const size_t size = fold->operands[0].acc_size;
  const int64_t row = run->program->row;
  const char *in = run->at[step->in[0]], *start = run->at[step->in[1]];
  char *out = run->at[step->out];
  if (step->fold_row != NULL) {
    const size_t in_size = run->program->slots[step->in[0]].size;
    const mp_fold_rows_t all = {step->fold_row, in_size, in, row, rows};
    mp_fold_rows(fold, &all, start, out);
    return;
  }
  mp_fold_work_t work;
  mp_fold_work(fold, (char *)run->call->scratch + run->program->fold, &work);
  for (int64_t i = 0; i < rows; ++i) {
    _Alignas(16) char one[16];
    mp_fold_row(fold, &work, in, i * row, row, one);
    const void *pair[] = {start, one};
    fold->loop(1, pair, out + (size_t)i * size);
  }
}

static void tile_run_spread(const mp_tile_run_t *run, const mp_tile_step_t *step, int64_t n) {
  const size_t size = run->program->slots[step->out].size;
  const int64_t row = run->program->row;
  const char *in = run->at[step->in[0]];
  char *out = run->at[step->out];
  if (row < MP_VIEW_SHORT_ROW && n % row == 0) {
    mp_view_nest(size, in, n / row, 1, row, 0, out);
    return;
  }
  for (int64_t i = 0; i < n; i += row, in += size) {
    mp_fill(out + (size_t)i * size, in, size, mp_min_i64(row, n));  // of a scalar, one
  }
}

// Does a step for the elements, or rows, of a span.
static void tile_run_step(const mp_tile_run_t *run, const mp_tile_step_t *step,
                          const span_t *span) {
  const mp_tile_slot_t *slot = &run->program->slots[step->out];
  const int64_t begin = slot->is_column && !slot->is_scalar ? span->row : span->begin;
  const int64_t n = slot->is_scalar ? 1 : slot->is_column ? span->rows : span->n;
  const char *in = run->at[step->in[0]];
  char *out = run->at[step->out];
  switch (step->kind) {
    case MP_TILE_COMPUTE:
      tile_run_compute(run, step, n);
      break;
    case MP_TILE_LOAD:
      if (step->is_block) {
        tile_run_load_block(run, step, span);
      } else {
        tile_run_load(run, step, begin, n);
      }
      break;
    case MP_TILE_FILL:
      tile_run_fill(run, step, n);
      break;
    case MP_TILE_COUNT:
      mp_view_count(step->view, step->dtype, begin, n, out);
      break;
    case MP_TILE_WIDEN:
      mp_float_widen(step->dtype, n, in, (float *)(void *)out);
      break;
    case MP_TILE_ROUND:
      mp_float_round(step->dtype, n, (const float *)(const void *)in, (float *)(void *)out);
      break;
    case MP_TILE_NARROW:
      mp_float_narrow(step->dtype, n, (const float *)(const void *)in, out);
      break;
    case MP_TILE_COPY:
      if (out != in) memcpy(out, in, (size_t)n * run->program->slots[step->out].size);
      break;
    case MP_TILE_REDUCE:
      tile_run_reduce(run, step, n);
      break;
    case MP_TILE_SPREAD:
      tile_run_spread(run, step, n);
      break;
    default:
      MP_ASSERT_NOT_REACHED();
  }
}

// Points the slots in operands and results to the span.
static void tile_run_advance(const mp_tile_run_t *run, const span_t *span) {
  for (uint32_t m = 0; m < run->program->num_moving; ++m) {
    const uint32_t i = run->program->moving[m];
    const mp_tile_slot_t *slot = &run->program->slots[i];
    const void *base = slot->place == MP_TILE_OPERAND ? run->call->operands[slot->index]
                                                      : run->call->results[slot->index];
    const int64_t first = slot->is_column ? span->row : span->begin;
    run->at[i] = (char *)(uintptr_t)base + first * (int64_t)slot->size;
  }
}

// Whether no operand shares the memory of the result into which a load puts its elements.
static bool tile_run_can_land(const mp_tile_program_t *program, const mp_kernel_call_t *call) {
  if (program->num_landing == 0) return false;
  const mp_tile_step_t *load = &program->steps[program->num_landing - 1];
  const void *result = call->results[program->slots[load->landing].index];
  for (uint32_t i = 0; i < program->num_slots; ++i) {
    const mp_tile_slot_t *slot = &program->slots[i];
    if (slot->place == MP_TILE_OPERAND && call->operands[slot->index] == result) return false;
  }
  return true;
}

mp_tile_run_t mp_tile_begin(const mp_tile_program_t *program, const mp_kernel_call_t *call) {
  char *scratch = call->scratch;
  char **at = (char **)(void *)(scratch + program->pointers);
  const mp_tile_run_t run = {program, call, at, tile_run_can_land(program, call)};
  for (uint32_t i = 0; i < program->num_slots; ++i) {
    const mp_tile_slot_t *slot = &program->slots[i];
    at[i] = scratch + (slot->is_scalar ? program->scalars + slot->offset
                                       : (size_t)slot->offset * program->room);
  }
  const span_t all = {.n = program->lanes, .rows = program->lanes / program->row};
  for (uint32_t s = 0; s < program->num_first; ++s) {
    tile_run_step(&run, &program->steps[s], &all);
  }
  return run;
}

// Loads through views come first: tile_native_can_load has checked that the code reads nothing else
// in their registers.
static void tile_run_code(const mp_tile_run_t *run, uint32_t first, const span_t *span) {
  const mp_tile_code_t *code = &run->program->native->codes[first];
  for (uint32_t s = first; code->has_loads && s < code->end; ++s) {
    const mp_tile_step_t *step = &run->program->steps[s];
    if (step->kind == MP_TILE_LOAD) tile_run_step(run, step, span);
  }
  code->map(run->at, span->n);
}

// The code of the program's steps, if it exists by now. Time is counted in steps per element; one
// takes about a quarter of a nanosecond.
static const mp_tile_code_t *tile_run_codes(const mp_tile_program_t *program, int64_t count) {
  mp_tile_native_t *native = program->native;
  if (mp_native_heat(&native->heat, (uint64_t)count * program->weight / 4, program->num_steps)) {
    mp_tile_make_native(program);
  }
  // Acquire, with the store that ends mp_tile_make_native, mostly on another thread.
  return atomic_load_explicit(&native->is_ready, memory_order_acquire) ? native->codes : NULL;
}

// Sets a span to the tile that begins at an element and ends at `end` at most.
static void tile_run_move(const mp_tile_program_t *program, int64_t begin, int64_t end,
                          span_t *span) {
  const int64_t n = mp_min_i64(program->lanes, end - begin), row = program->row;
  span->begin = begin;
  span->n = n;
  span->row = row == 1 ? begin : begin / row;
  span->rows = row == 1 ? n : n / row;
}

// Runs the steps that all tiles from the span on share.
static void tile_run_cyclic(const mp_tile_run_t *run, const span_t *span) {
  const mp_tile_program_t *program = run->program;
  for (uint32_t s = 0; s < program->num_cyclic; ++s) {
    tile_run_step(run, &program->steps[program->num_first + s], span);
  }
}

// Runs the steps of a tile that other tiles do not share.
static void tile_run_tile(const mp_tile_run_t *run, const mp_tile_code_t *codes,
                          const span_t *span) {
  const mp_tile_program_t *program = run->program;
  tile_run_advance(run, span);
  for (uint32_t s = program->num_first + program->num_cyclic; s < program->num_steps;) {
    if (codes != NULL && codes[s].map != NULL) {
      tile_run_code(run, s, span);
      s = codes[s].end;
    } else {
      tile_run_step(run, &program->steps[s++], span);
    }
  }
}

// The tiles of the rows [first, last), which are in one block.
static void tile_run_block(const mp_tile_run_t *run, const mp_tile_code_t *codes, int64_t first,
                           int64_t last) {
  const int64_t row = run->program->blocks.row, lanes = run->program->lanes;
  span_t span = {.height = last - first};
  for (int64_t c = 0; c < row; c += lanes) {
    span.n = span.rows = mp_min_i64(lanes, row - c);
    for (span.line = 0; span.line < span.height; ++span.line) {
      span.begin = span.row = (first + span.line) * row + c;
      tile_run_tile(run, codes, &span);
    }
  }
}

static void tile_run_blocks(const mp_tile_run_t *run, const mp_tile_code_t *codes, int64_t begin,
                            int64_t end) {
  const mp_tile_blocks_t *blocks = &run->program->blocks;
  const int64_t last = end / blocks->row, height = blocks->height;
  for (int64_t r = begin / blocks->row, next; r < last; r = next) {
    const int64_t index = r % blocks->num_rows;
    const int64_t most = mp_min_i64(height - index % height, blocks->num_rows - index);
    next = mp_min_i64(r + most, last);
    tile_run_block(run, codes, r, next);
  }
}

void mp_tile_run(const mp_tile_run_t *run, int64_t begin, int64_t end) {
  const mp_tile_program_t *program = run->program;
  const mp_tile_code_t *codes = tile_run_codes(program, end - begin);
  if (program->blocks.row != 0) {
    tile_run_blocks(run, codes, begin, end);
    return;
  }
  span_t span = {0};
  tile_run_move(program, begin, end, &span);
  tile_run_cyclic(run, &span);
  for (int64_t at = begin; at < end; at += program->lanes) {
    tile_run_move(program, at, end, &span);
    tile_run_tile(run, codes, &span);
  }
}
