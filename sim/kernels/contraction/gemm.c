#include "sim/kernels/contraction/gemm.h"

#include <string.h>

#include "sim/base/assert.h"
#include "sim/kernels/contraction/gemm_small.h"
#include "sim/kernels/flush.h"
#include "sim/kernels/shape.h"

enum {
  CACHE_LINE = 64,
  // With these block sizes a block of B stays in the second-level cache.
  MOST_M = 512,
  BLOCK_N_BYTES = MP_GEMM_BLOCK_N * 4,
  // Tiles keep at least this many rows, even if that gives fewer parts. SMALL_LEAST_M is for a B
  // that is read in place and has at most SMALL_B bytes.
  LEAST_M = 256,
  SMALL_LEAST_M = 64,
  SMALL_B = 256 << 10,
  // A B of more than LARGE_B bytes is packed if tiles have at least LEAST_M rows. If its rows do
  // not begin at cache lines, it is packed from SPLIT_LEAST_M rows on.
  LARGE_B = 1 << 20,
  SPLIT_LEAST_M = 128,
  // Panels of A that are packed at once.
  PANELS = 8,
  // The cost of setting up a product, in multiplications.
  SMALL = 1 << 13
};
// The number of multiplications that is worth a part.
#define GRAIN ((int64_t)1 << 20)

static int64_t gemm_round_up(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

static int64_t gemm_tiles(int64_t total, int64_t block) {
  return (total + block - 1) / block;
}

// The size of tiles that have at most `most` rows, are all of nearly the same size, and are a
// multiple of `unit`.
static int64_t gemm_block_size(int64_t total, int64_t most, int64_t unit) {
  int64_t tiles = mp_max_i64(gemm_tiles(total, most), 1);
  return mp_max_i64(gemm_round_up(gemm_tiles(total, tiles), unit), unit);
}

// Most sides that can be read in place are not packed: the innermost loops prefetch early enough,
// even if many rows share few places of a cache.
static bool gemm_can_read_b(const mp_gemm_t *gemm) {
  const mp_gemm_side_t *b = &gemm->b;
  return b->locate != NULL && (b->row_step == (int64_t)mp_acc_size(gemm->acc) || gemm->n == 1);
}

// Whether it pays to pack a B that could be read in place. It does if each element is multiplied
// with many rows of A and reading in place is slow: vectors would cross cache lines, or the rows
// are on more pages than the TLB has entries.
static bool gemm_packs_b(const mp_gemm_t *gemm) {
  const int64_t step = gemm->b.k_step;
  if (step % CACHE_LINE != 0) return gemm->block_m >= SPLIT_LEAST_M;
  return gemm->block_m >= LEAST_M && MP_WORK(gemm->k, step, 1) > LARGE_B;
}

// The left side needs contiguous rows or columns.
static bool gemm_can_read_a(const mp_gemm_t *gemm) {
  const mp_gemm_side_t *a = &gemm->a;
  const int64_t size = (int64_t)mp_acc_size(gemm->acc);
  if (a->locate == NULL) return false;
  return a->k_step == size || gemm->k == 1 || a->row_step == size || gemm->m == 1;
}

// Chooses the tiles of C. If there would be only few large tiles, they are divided, so that several
// workers have work, but only as far as packing still pays.
static void gemm_plan_tiles(mp_gemm_t *gemm) {
  const int64_t size = (int64_t)mp_acc_size(gemm->acc), unit = MP_MICRO_MAX_COLUMNS;
  const int64_t work = MP_WORK(gemm->batch, MP_WORK(gemm->m, gemm->n, gemm->k), size / 4);
  const bool is_small = gemm_can_read_b(gemm) && MP_WORK(gemm->k, gemm->b.k_step, 1) <= SMALL_B;
  const int64_t least_m = is_small ? SMALL_LEAST_M : LEAST_M;
  const int64_t least_n = BLOCK_N_BYTES / size / 2;
  // If the caller takes finished blocks of C, these must stay in the cache, too.
  int64_t most_m = gemm->store == NULL ? MOST_M : MOST_M / 2;
  int64_t most_n = BLOCK_N_BYTES / size, wanted = 1;
  while (wanted < 8 && wanted * wanted * (GRAIN / 2) < work) ++wanted;
  for (;;) {
    gemm->block_m = gemm_block_size(gemm->m, most_m, 1);
    gemm->block_n = gemm_block_size(gemm->n, most_n, unit);
    gemm->tiles_m = gemm_tiles(gemm->m, gemm->block_m);
    gemm->tiles_n = gemm_tiles(gemm->n, gemm->block_n);
    if (MP_WORK(gemm->batch, gemm->tiles_m, gemm->tiles_n) >= wanted) return;
    if (!is_small && gemm->block_n >= 2 * least_n) {
      most_n = gemm->block_n / 2;
    } else if (gemm->block_m >= 2 * least_m) {
      most_m = (gemm->block_m + 1) / 2;
    } else {
      return;
    }
  }
}

void mp_gemm_plan(mp_gemm_t *gemm, mp_kernel_t *kernel) {
  const mp_micro_t *micro = gemm->micro = mp_gemm_micro(gemm->acc);
  MP_ASSERT(gemm->batch >= 0 && gemm->m >= 0 && gemm->n >= 0 && gemm->k >= 0);
  const int64_t size = (int64_t)mp_acc_size(gemm->acc), nr = 2 * (int64_t)micro->lanes;
  gemm_plan_tiles(gemm);
  gemm->block_k = gemm_block_size(gemm->k, MP_GEMM_BLOCK_K, 1);
  MP_ASSERT(gemm->block_k <= MP_GEMM_BLOCK_K && gemm->block_n <= MP_GEMM_BLOCK_N);
  gemm->a.is_read = gemm_can_read_a(gemm);
  gemm->b.is_read = gemm_can_read_b(gemm) && !gemm_packs_b(gemm);
  // An odd number of cache lines, so that rows do not share places in the cache; and an element.
  gemm->line_step = (gemm_round_up(gemm->block_k * size, CACHE_LINE) | CACHE_LINE) + size;
  const int64_t panels = mp_min_i64(gemm_tiles(gemm->block_m, micro->rows), PANELS) *
                         (int64_t)mp_gemm_panel_bytes(micro->rows, gemm->block_k, (size_t)size);
  const int64_t lines = micro->rows * gemm->line_step;
  gemm->pack_a_bytes =
      (size_t)(gemm->a.is_read ? 0
                               : gemm_round_up(gemm->a.lines != NULL ? lines : panels, CACHE_LINE));
  // Columns that do not fill a vector are packed in any case.
  int64_t packed_n = gemm->b.is_read ? nr : gemm_round_up(gemm->block_n, nr);
  gemm->pack_b_bytes =
      (size_t)(packed_n / nr) * mp_gemm_panel_bytes((uint32_t)nr, gemm->block_k, (size_t)size);
  gemm->c_bytes = gemm->store == NULL
                      ? 0
                      : (size_t)gemm_round_up(gemm->block_m * gemm->block_n * size, CACHE_LINE);
  kernel->scratch_bytes = gemm->pack_a_bytes + gemm->pack_b_bytes + gemm->c_bytes;
  gemm->small = mp_gemm_small(gemm);
  int64_t tiles = MP_WORK(gemm->batch, gemm->tiles_m, gemm->tiles_n);
  int64_t each = mp_max_i64(MP_WORK(gemm->block_m, gemm->block_n, gemm->k), 1);
  int64_t parts = mp_part_count(tiles, mp_max_i64(GRAIN / (mp_min_i64(each, GRAIN) + SMALL), 1));
  kernel->num_parts = (uint32_t)mp_clamp_i64(parts, 1, mp_max_i64(tiles, 1));
}

// Computes a tile at the right edge of C through a buffer of full width.
static void gemm_run_edge(mp_micro_run_t run, mp_micro_tile_t *tile, int64_t rows, size_t bytes) {
  _Alignas(CACHE_LINE) char buffer[MP_MICRO_MAX_ROWS * MP_MICRO_MAX_COLUMNS * 8];
  enum { STEP = MP_MICRO_MAX_COLUMNS * 8 };
  char *c = tile->c;
  const int64_t c_row = tile->c_row;
  for (int64_t i = 0; tile->accumulate && i < rows; ++i) {
    memcpy(buffer + i * STEP, c + i * c_row, bytes);
  }
  tile->c = buffer;
  tile->c_row = STEP;
  run(tile);
  for (int64_t i = 0; i < rows; ++i) memcpy(c + i * c_row, buffer + i * STEP, bytes);
  tile->c_row = c_row;
}

void mp_gemm_run_rows(const mp_gemm_columns_t *columns, mp_micro_tile_t *tile, int form,
                      int64_t rows, char *c) {
  const int64_t size = (int64_t)columns->acc_bytes, lanes = columns->micro->lanes;
  const mp_micro_run_t *runs = columns->micro->run[form][rows - 1];
  const unsigned before = mp_flush_begin();
  for (int64_t j = 0; j < columns->columns;) {
    const int64_t rest = columns->columns - j;
    const bool is_wide = columns->read == NULL ? rest > lanes : rest >= 2 * lanes;
    const int64_t width = (is_wide ? 2 : 1) * lanes;
    tile->c = c + j * size;
    if (columns->read != NULL && rest >= width) {
      tile->b = columns->read + j * size;
      tile->b_k = columns->read_k;
      tile->b_ahead = width * size;
    } else {
      const int64_t panel = columns->read != NULL ? 0 : j / (2 * lanes);
      tile->b = columns->packed + (size_t)panel * columns->panel_bytes;
      tile->b_k = width * size;
      tile->b_ahead = 8 * width * size;
    }
    if (rest >= width) {
      runs[is_wide](tile);
    } else {
      gemm_run_edge(runs[is_wide], tile, rows, (size_t)(rest * size));
    }
    j += width;
  }
  mp_flush_end(before);
}

// One step of a tile of C: what is multiplied next.
typedef struct {
  const mp_gemm_t *gemm;
  const mp_kernel_call_t *call;
  int64_t batch, m, rows, n, columns, k, depth;
  const char *read_a, *read_b;  // the sides of this batch, if they are read in place
  char *packed_a, *packed_b, *c;
  size_t panel_bytes;  // from one panel of B to the next
  int64_t ldc;
} step_t;

typedef struct {
  int64_t batch, n, k;  // the block of B that is in the scratch memory; -1: none
} packed_t;

// Packs B, or, if B is read in place, only the columns at its edge that do not fill a vector.
static void gemm_pack_b(const step_t *step, packed_t *packed) {
  const mp_gemm_t *gemm = step->gemm;
  if (packed->batch == step->batch && packed->n == step->n && packed->k == step->k) return;
  *packed = (packed_t){step->batch, step->n, step->k};
  const int64_t lanes = gemm->micro->lanes, columns = step->columns;
  int64_t wide = gemm->b.is_read ? 0 : columns / (2 * lanes) * 2 * lanes;
  mp_gemm_range_t range = {step->batch, step->n, wide, step->k, step->depth};
  if (wide > 0) {
    gemm->b.pack(gemm->context, step->call, &range, 2 * (uint32_t)lanes, step->packed_b);
  }
  int64_t done = gemm->b.is_read ? columns / lanes * lanes : wide, rest = columns - done;
  if (rest == 0) return;
  range.row += done;
  range.rows = rest;
  gemm->b.pack(gemm->context, step->call, &range, (rest > lanes ? 2 : 1) * (uint32_t)lanes,
               step->packed_b + (size_t)(wide / (2 * lanes)) * step->panel_bytes);
}

// Multiplies with A read in place, or copied as lines, a panel at a time.
static void gemm_run_lines(const step_t *step, mp_micro_tile_t *tile,
                           const mp_gemm_columns_t *columns) {
  const mp_gemm_t *gemm = step->gemm;
  const uint32_t panels = (uint32_t)gemm_tiles(step->rows, gemm->micro->rows);
  const bool by_k =
      !gemm->a.is_read || gemm->a.k_step == (int64_t)columns->acc_bytes || gemm->k == 1;
  for (uint32_t p = 0; p < panels; ++p) {
    int64_t begin = 0, end = 0;
    mp_part_range(step->rows, panels, p, &begin, &end);
    if (gemm->a.is_read) {
      tile->a = step->read_a + begin * gemm->a.row_step;
      tile->a_row = gemm->a.row_step;
      tile->a_k = gemm->a.k_step;
    } else {
      const mp_gemm_range_t range = {step->batch, step->m + begin, end - begin, step->k,
                                     step->depth};
      gemm->a.lines(gemm->context, step->call, &range, gemm->line_step, step->packed_a);
      tile->a = step->packed_a;
      tile->a_row = gemm->line_step;
    }
    mp_gemm_run_rows(columns, tile, by_k ? MP_MICRO_BY_K : MP_MICRO_BY_ROW, end - begin,
                     step->c + begin * tile->c_row);
  }
}

// Multiplies with A packed into panels, several at a time, since its rows are contiguous.
static void gemm_run_panels(const step_t *step, mp_micro_tile_t *tile,
                            const mp_gemm_columns_t *columns) {
  const mp_gemm_t *gemm = step->gemm;
  const uint32_t width = gemm->micro->rows;
  const size_t panel_bytes = mp_gemm_panel_bytes(width, step->depth, columns->acc_bytes);
  tile->a_k = width * (int64_t)columns->acc_bytes;
  for (int64_t strip = 0; strip < step->rows; strip += PANELS * width) {
    const int64_t rows = mp_min_i64(PANELS * width, step->rows - strip);
    const mp_gemm_range_t range = {step->batch, step->m + strip, rows, step->k, step->depth};
    gemm->a.pack(gemm->context, step->call, &range, width, step->packed_a);
    for (int64_t i = 0; i < rows; i += width) {
      tile->a = step->packed_a + (size_t)(i / width) * panel_bytes;
      mp_gemm_run_rows(columns, tile, MP_MICRO_BY_ROW, mp_min_i64(width, rows - i),
                       step->c + (strip + i) * tile->c_row);
    }
  }
}

static void gemm_run_step(const step_t *step) {
  const mp_gemm_t *gemm = step->gemm;
  const int64_t size = (int64_t)mp_acc_size(gemm->acc);
  mp_micro_tile_t tile = {
      .k = step->depth, .segments = 1, .c_row = step->ldc * size, .accumulate = step->k > 0};
  const mp_gemm_columns_t columns = {gemm->micro,    (size_t)size,   step->columns,    step->read_b,
                                     gemm->b.k_step, step->packed_b, step->panel_bytes};
  if (gemm->a.is_read || gemm->a.lines != NULL) {
    gemm_run_lines(step, &tile, &columns);
  } else {
    gemm_run_panels(step, &tile, &columns);
  }
}

static void gemm_run_tile(const mp_gemm_t *gemm, const mp_kernel_call_t *call, int64_t batch,
                          int64_t m, int64_t n, packed_t *packed) {
  const int64_t size = (int64_t)mp_acc_size(gemm->acc);
  step_t step = {gemm, call, batch, m, .n = n, .packed_a = call->scratch, .ldc = gemm->block_n};
  step.packed_b = step.packed_a + gemm->pack_a_bytes;
  step.c = step.packed_b + gemm->pack_b_bytes;
  step.rows = mp_min_i64(gemm->block_m, gemm->m - m);
  step.columns = mp_min_i64(gemm->block_n, gemm->n - n);
  MP_ASSERT(step.rows > 0 && step.columns > 0 && batch < gemm->batch);
  if (gemm->store == NULL) {
    step.c = (char *)call->results[0] + ((batch * gemm->m + m) * gemm->n + n) * size;
    step.ldc = gemm->n;
  }
  if (gemm->k == 0) {
    for (int64_t i = 0; i < step.rows; ++i) {
      memset(step.c + i * step.ldc * size, 0, (size_t)(step.columns * size));
    }
  }
  const mp_gemm_side_t *a = &gemm->a, *b = &gemm->b;
  const char *at_a =
      a->locate != NULL ? a->locate(gemm->context, call, batch) + m * a->row_step : NULL;
  const char *at_b = b->is_read ? b->locate(gemm->context, call, batch) + n * b->row_step : NULL;
  for (step.k = 0; step.k < gemm->k; step.k += gemm->block_k) {
    step.depth = mp_min_i64(gemm->block_k, gemm->k - step.k);
    if (at_a != NULL) step.read_a = at_a + step.k * a->k_step;
    if (at_b != NULL) step.read_b = at_b + step.k * b->k_step;
    step.panel_bytes = mp_gemm_panel_bytes(2 * gemm->micro->lanes, step.depth, (size_t)size);
    gemm_pack_b(&step, packed);
    gemm_run_step(&step);
  }
  if (gemm->store != NULL) {
    const mp_gemm_block_t block = {batch, m, step.rows, n, step.columns, step.c, step.ldc};
    gemm->store(gemm->context, call, &block);
  }
}

// The products of batches [begin, end), each of which is one tile.
static void gemm_run_small(const mp_gemm_t *gemm, const mp_kernel_call_t *call, int64_t begin,
                           int64_t end) {
  const mp_gemm_side_t *a = &gemm->a, *b = &gemm->b;
  const mp_gemm_small_t sizes = {gemm->m, gemm->n, a->row_step, a->k_step, b->row_step, b->k_step};
  const int64_t bytes = gemm->m * gemm->n * (int64_t)mp_acc_size(gemm->acc);
  char *out = (char *)call->results[0] + begin * bytes;
  const unsigned before = mp_flush_begin();
  for (int64_t batch = begin; batch < end; ++batch, out += bytes) {
    gemm->small(&sizes, a->locate(gemm->context, call, batch),
                b->locate(gemm->context, call, batch), out);
  }
  mp_flush_end(before);
}

void mp_gemm_run_part(const mp_gemm_t *gemm, const mp_kernel_t *kernel,
                      const mp_kernel_call_t *call) {
  int64_t per_batch = gemm->tiles_m * gemm->tiles_n;
  int64_t begin = 0, end = 0;
  mp_part_range(gemm->batch * per_batch, kernel->num_parts, call->part, &begin, &end);
  if (gemm->small != NULL) {
    gemm_run_small(gemm, call, begin, end);
    return;
  }
  packed_t packed = {-1, -1, -1};
  for (int64_t tile = begin; tile < end; ++tile) {
    int64_t batch = tile / per_batch, rest = tile % per_batch;
    gemm_run_tile(gemm, call, batch, rest % gemm->tiles_m * gemm->block_m,
                  rest / gemm->tiles_m * gemm->block_n, &packed);
  }
}
