// Gathers, scatters, reversals and strided slices: accesses move whole granules, and a chip makes
// so many per second.
#include <math.h>

#include "sim/chip/cost/irregular_cost.h"
#include "sim/chip/fuse/chip_fusion_kinds.h"
#include "sim/chip/fuse/lookup.h"
#include "sim/chip/layout/tile_layout.h"
#include "sim/chip/rules/chip_policy.h"
#include "sim/chip/rules/chip_rules.h"

// The granule of a chip without parameters: a line of a cache.
#define INDEXED_GRANULE 64
// The granule between L2 and a multiprocessor.
#define INDEXED_SECTOR 32

// Accesses to an array: slices of contiguous rows.
typedef struct {
  double slices, rows, row_bytes;
  double table;  // bytes of the array
} indexed_accesses_t;

// The bytes of all rows in whole granules.
static double indexed_cost_bytes(const mp_chip_t *chip, const indexed_accesses_t *a) {
  const double granule = mp_figure_or(chip->figures.gather_granule, INDEXED_GRANULE);
  return a->slices * a->rows * ceil(a->row_bytes / granule) * granule;
}

// Seconds of `passes` over what is accessed. If the table fits into the cache, or each slice reads
// all of its rows, each byte comes from memory once, and the rest in sectors of the cache.
static double indexed_cost_stream(const mp_chip_t *chip, const indexed_accesses_t *a,
                                  double passes) {
  const double bytes = passes * indexed_cost_bytes(chip, a) / chip->memory_bandwidth;
  const double rate = mp_figure_or(chip->figures.gather_cache_rate, 0) * chip->memory_bandwidth;
  const bool is_near = a->table <= mp_figure_or(chip->figures.gather_cache, 0);
  if (rate == 0 || !(is_near || a->rows > 1)) return bytes;
  const double sectors = ceil(a->row_bytes / INDEXED_SECTOR) * INDEXED_SECTOR;
  return fmax(fmin(bytes, passes * a->table / chip->memory_bandwidth),
              passes * a->slices * a->rows * sectors / rate);
}

static double indexed_cost_width(const mp_type_t *type) {
  return fmax(mp_dtype_bits(type->dtype), 8) / 8;
}

// ---- gather ----

static indexed_accesses_t indexed_cost_of_gather(const mp_op_t *op) {
  const mp_index_list_t sizes = mp_op_ints(op, MP_ATTR_SLICE_SIZES);
  double elements = 1, row = 1;
  for (uint32_t d = 0; d < sizes.count; ++d) {
    row = (double)sizes.values[d];
    elements *= row;
  }
  return (indexed_accesses_t){
      .slices = mp_irregular_count(op->results[0].type) / fmax(elements, 1),
      .rows = elements / fmax(row, 1),
      .row_bytes = row * indexed_cost_width(op->operands[0]->type),
      .table = mp_work_bytes_of(op->operands[0]->type),
  };
}

static double indexed_cost_from_memory(const mp_chip_t *chip, const indexed_accesses_t *a) {
  const double each = mp_figure_or(chip->figures.gather_slice, 0);
  return fmax(a->slices * each, indexed_cost_stream(chip, a, 1));
}

double mp_gather_seconds(const mp_chip_t *chip, const mp_op_t *op) {
  if (op->code != MP_OP_GATHER) return 0;
  indexed_accesses_t a = indexed_cost_of_gather(op);
  if (!mp_chip_policy(&chip->figures)->has_tiles) return indexed_cost_from_memory(chip, &a);
  const mp_lookup_t lookup = mp_lookup_of_gather(op);
  if (lookup.is_turned) {
    const double elements = a.rows * a.row_bytes;
    a.row_bytes = indexed_cost_width(op->operands[0]->type) *
                  (double)mp_op_ints(op, MP_ATTR_SLICE_SIZES).values[lookup.lane];
    a.rows = elements / a.row_bytes;
  }
  return indexed_cost_from_memory(chip, &a);
}

// ---- scatter ----

// An update's window dimensions are a slice; the others count slices.
static indexed_accesses_t indexed_cost_of_scatter(const mp_op_t *op) {
  const mp_type_t *update = op->operands[op->num_operands / 2 + 1]->type;
  const mp_index_list_t window = mp_op_ints(op, MP_ATTR_UPDATE_WINDOW_DIMS);
  double elements = 1, row = 1;
  for (uint32_t i = 0; i < window.count; ++i) {
    row = (double)update->dims[window.values[i]];
    elements *= row;
  }
  return (indexed_accesses_t){
      .slices = mp_irregular_count(update) / fmax(elements, 1),
      .rows = elements / fmax(row, 1),
      .row_bytes = row * indexed_cost_width(update),
      .table = mp_work_bytes_of(op->operands[0]->type),
  };
}

// Sums can be made in any order, so they are sorted first. Other functions are applied one by one.
static bool indexed_cost_is_sum(const mp_op_t *op) {
  const mp_op_t *first = op->regions[0]->first;
  return first != NULL && (first->code == MP_OP_ADD || first->code == MP_OP_RETURN);
}

static double indexed_cost_update(const mp_chip_t *chip, const mp_op_t *op,
                                  const indexed_accesses_t *a) {
  const mp_chip_figures_t *figures = &chip->figures;
  const double each = mp_figure_or(figures->scatter_slice, 0);
  if (indexed_cost_is_sum(op) || a->row_bytes > indexed_cost_width(op->operands[0]->type)) {
    return each;
  }
  const bool is_near = a->table <= mp_figure_or(figures->scatter_near, INFINITY);
  return mp_figure_or(is_near ? figures->scatter_scalar : figures->scatter_far_scalar, each);
}

// libtpu first sorts the indices of sums with their positions, and gathers the updates in this
// order: more kernels on the indices alone.
static double indexed_cost_sort(const mp_chip_t *chip, const mp_op_t *op,
                                const indexed_accesses_t *a) {
  enum { ARRAYS = 2, KERNELS = 3 };
  if (!mp_chip_policy(&chip->figures)->sorts_scatters || !indexed_cost_is_sum(op)) return 0;
  if (mp_op_bool(op, MP_ATTR_INDICES_ARE_SORTED, false) || a->slices < 2) return 0;
  return mp_sort_lines_seconds(chip, a->slices, a->slices, ARRAYS) +
         KERNELS * (chip->op_latency + mp_figure_or(chip->figures.memory_latency, 0));
}

// Rows that are updated are read and written.
double mp_scatter_seconds(const mp_chip_t *chip, const mp_op_t *op) {
  const indexed_accesses_t a = indexed_cost_of_scatter(op);
  return fmax(a.slices * indexed_cost_update(chip, op, &a), indexed_cost_stream(chip, &a, 2)) +
         indexed_cost_sort(chip, op, &a);
}

// ---- reverse ----

// Reversing the last dimension moves elements one by one; on a TPU, the elements of a tile.
// Measured on a v6e (openxla/xla issue 23191): 65,000 x 2,000, whose rows libtpu 0.0.52 puts across
// the lanes. The colours of an image (16 x 224 x 224 x 3) are not in tiles: their reader reads them
// in another order.
double mp_reverse_seconds(const mp_chip_t *chip, const mp_op_t *op) {
  const mp_type_t *type = op->results[0].type;
  const mp_index_list_t dims = mp_op_ints(op, MP_ATTR_DIMENSIONS);
  const bool has_tiles = mp_chip_policy(&chip->figures)->has_tiles;
  for (uint32_t i = 0; i < dims.count; ++i) {
    if (dims.values[i] + 1 != (int64_t)type->rank) continue;
    if (has_tiles && !mp_tile_has_last_in_tiles(type)) return 0;
    return mp_irregular_count(type) * mp_figure_or(chip->figures.reverse_element, 0);
  }
  return 0;
}

// ---- strides ----

// A strided slice in the lanes of a TPU, or a pad with interior padding there (the slice's
// gradient), is a matmul by ones and zeros, over all elements in the range. In other dimensions it
// is free.
double mp_strided_seconds(const mp_chip_t *chip, const mp_op_t *op) {
  const bool is_pad = op->code == MP_OP_PAD;
  const mp_index_list_t steps = mp_op_ints(op, is_pad ? MP_ATTR_INTERIOR_PADDING : MP_ATTR_STRIDES);
  if (!mp_chip_policy(&chip->figures)->has_tiles || steps.count == 0) return 0;
  const double stride = (double)steps.values[steps.count - 1] + (is_pad ? 1 : 0);
  const mp_type_t *result = op->results[0].type;
  if (stride <= 1 || (is_pad && !mp_tile_has_last_in_lanes(result)) ||
      !mp_chip_rule(&chip->figures, MP_CHIP_RULE_strided_by_matmul)) {
    return 0;
  }
  return mp_irregular_count(result) * (is_pad ? 1 : stride) *
         mp_figure_or(chip->figures.tiles_element, 0);
}
