// minipod.fusion: the ops of its region, tile by tile.
#include "sim/kernels/fused/fusion.h"

#include "sim/kernels/fused/fusion_bands.h"
#include "sim/kernels/fused/fusion_end.h"
#include "sim/kernels/fused/tile/tile.h"
#include "sim/kernels/shape.h"

typedef struct {
  mp_kernel_t base;
  mp_tile_program_t program;
} fusion_t;

// A part has about as much to do as a part of a simple elementwise op, but not less than this many
// elements.
enum { GRAIN = 128 * 1024, MIN_GRAIN = 4 * 1024 };

// The elements of a part, which are whole units. A single part needs no divisions, which would slow
// down small kernels.
static void fusion_range(const fusion_t *kernel, uint32_t part, int64_t *out_begin,
                         int64_t *out_end) {
  const int64_t unit = mp_tile_unit(&kernel->program), count = kernel->program.count;
  if (kernel->base.num_parts == 1) {
    *out_begin = 0;
    *out_end = count;
    return;
  }
  mp_part_range(count / unit, kernel->base.num_parts, part, out_begin, out_end);
  *out_begin *= unit;
  *out_end *= unit;
}

static mp_status_t fusion_run(const mp_kernel_t *base, const mp_kernel_call_t *call) {
  const fusion_t *kernel = (const fusion_t *)base;
  int64_t begin = 0, end = 0;
  fusion_range(kernel, call->part, &begin, &end);
  if (begin == end) return NULL;
  const mp_tile_run_t run = mp_tile_begin(&kernel->program, call);
  mp_tile_run(&run, begin, end);
  return NULL;
}

mp_status_t mp_kernel_make_fusion(mp_arena_t *arena, const mp_op_t *op, mp_kernel_maker_t make,
                                  const mp_kernel_t **out_kernel) {
  mp_bands_t bands;
  bool has_bands = false;
  MP_RETURN_IF_ERROR(mp_bands_find(arena, op, &has_bands, &bands));
  if (has_bands) return mp_fusion_make_bands(arena, op, &bands, make, out_kernel);
  const mp_op_t *last = mp_fusion_end(op);
  if (last != NULL) return mp_fusion_make_end(arena, op, last, out_kernel);
  fusion_t *kernel = MP_ARENA_NEW(arena, fusion_t);
  MP_RETURN_IF_NULL(kernel);
  mp_kernel_init(&kernel->base, fusion_run, op);
  const mp_op_t *end = mp_block_terminator(op->regions[0]);
  MP_RETURN_IF_ERROR(
      mp_tile_compile(arena, op->regions[0], end, 0, end->num_operands, &kernel->program));
  const mp_tile_program_t *program = &kernel->program;
  const int64_t grain = mp_max_i64(GRAIN / mp_max_i64(program->weight, 1), (int64_t)MIN_GRAIN);
  const int64_t unit = mp_tile_unit(program);
  kernel->base.num_parts = mp_part_count(program->count / unit, (grain + unit - 1) / unit);
  kernel->base.scratch_bytes = kernel->program.scratch_bytes;
  kernel->base.in_place = kernel->program.in_place[0];
  kernel->base.later_in_place = kernel->program.in_place + 1;
  *out_kernel = &kernel->base;
  return NULL;
}
