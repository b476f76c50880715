// Elements that are found by index: each access moves whole rows of the memory's tiles, and as many
// accesses a second are made as the chip can.
#include <math.h>

#include "sim/chip/clusters/cluster_kinds.h"
#include "sim/chip/cost/irregular_cost.h"

// A chip of which nothing is known moves 64 bytes at least, as caches do.
#define INDEXED_GRANULE 64
// What moves at least between a cache and a multiprocessor.
#define INDEXED_SECTOR 32

// Accesses to an array: so many slices, of rows that lie in one piece.
typedef struct {
  double slices, rows, row_bytes;
  double table;  // bytes of the array
} indexed_accesses_t;

// The bytes that move, at least.
static double indexed_cost_bytes(const mp_chip_t *chip, const indexed_accesses_t *a) {
  const double granule = mp_figure_or(chip->figures.gather_granule, INDEXED_GRANULE);
  return a->slices * a->rows * ceil(a->row_bytes / granule) * granule;
}

// Seconds of `passes` over what is accessed. Of a table that lies in a cache each byte comes from
// memory once, and all else in sectors of the cache; so it is where each slice goes through all
// rows of the table, which lie side by side for all of them.
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

// Whether a row fills what moves at least; then the number of slices does not matter.
static bool indexed_cost_is_whole(const mp_chip_t *chip, const indexed_accesses_t *a) {
  return a->row_bytes >= mp_figure_or(chip->figures.gather_granule, INDEXED_GRANULE);
}

// The bytes of bringing a table of narrow rows, which came with its long dimension along the lanes
// so that nothing is padded, into a form from which rows can be taken.
static double indexed_cost_new_form(const mp_chip_t *chip, const mp_op_t *op) {
  enum { LANES = 128 };
  const mp_value_t *table = op->operands[0];
  const mp_type_t *type = table->type;
  const bool is_given = table->op == NULL && table->block->parent_op == NULL;
  if (chip->figures.compiler != MP_CHIP_COMPILER_TPU || !is_given || type->rank < 2) return 0;
  const double last = (double)type->dims[type->rank - 1];
  if (last >= LANES || last < 1) return 0;
  return mp_work_bytes_of(type) * (1 + LANES / last);
}

// Whether rows are taken from a table that lies in scratch memory as a whole, in rows of lanes. A
// chip on which SparseCores look up has no such figure.
static bool indexed_cost_is_near(const mp_chip_t *chip, const mp_op_t *op) {
  enum { LANES = 128 };
  const mp_type_t *type = op->operands[0]->type;
  if (isnan(chip->figures.gather_near) || type->rank < 2) return false;
  const double last = (double)type->dims[type->rank - 1];
  if (last < 1) return false;
  const double bytes = mp_work_bytes_of(type) * ceil(last / LANES) * LANES / last;
  return bytes <= mp_figure_or(chip->figures.memory_scratch, 0);
}

// An argument is copied there before.
static double indexed_cost_from_near(const mp_chip_t *chip, const mp_op_t *op,
                                     const indexed_accesses_t *a) {
  const mp_value_t *table = op->operands[0];
  const bool is_given = table->op == NULL && table->block->parent_op == NULL;
  const double copied = is_given ? mp_work_bytes_of(table->type) / chip->memory_bandwidth : 0;
  return copied + a->slices * a->rows * chip->figures.gather_near;
}

double mp_gather_seconds(const mp_chip_t *chip, const mp_op_t *op) {
  if (op->code != MP_OP_GATHER) return 0;
  const indexed_accesses_t a = indexed_cost_of_gather(op);
  if (indexed_cost_is_near(chip, op)) return indexed_cost_from_near(chip, op, &a);
  const double each =
      indexed_cost_is_whole(chip, &a) ? 0 : mp_figure_or(chip->figures.gather_slice, 0);
  const double bandwidth = chip->memory_bandwidth;
  return fmax(a.slices * each, indexed_cost_stream(chip, &a, 1)) +
         indexed_cost_new_form(chip, op) / bandwidth;
}

// ---- scatter ----

// The dimensions of an update that are a window's; what is left are the indices.
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

// Sums can be made in any order, and are sorted first; other functions are applied one update after
// the other.
static bool indexed_cost_is_sum(const mp_op_t *op) {
  const mp_op_t *first = op->regions[0]->first;
  return first != NULL && (first->code == MP_OP_ADD || first->code == MP_OP_RETURN);
}

static double indexed_cost_update(const mp_chip_t *chip, const mp_op_t *op,
                                  const indexed_accesses_t *a) {
  const mp_chip_figures_t *figures = &chip->figures;
  const double each = mp_figure_or(figures->scatter_slice, 0);
  if (indexed_cost_is_whole(chip, a)) return 0;
  if (indexed_cost_is_sum(op)) return each;
  const double bytes = mp_work_bytes_of(op->operands[0]->type);
  return bytes <= mp_figure_or(figures->scatter_near, INFINITY)
             ? mp_figure_or(figures->scatter_scalar, each)
             : mp_figure_or(figures->scatter_far_scalar, each);
}

// The compiler of a TPU sorts the indices of sums with their places first, and looks the updates up
// in this order: kernels on the indices alone.
static double indexed_cost_sort(const mp_chip_t *chip, const mp_op_t *op,
                                const indexed_accesses_t *a) {
  enum { ARRAYS = 2, KERNELS = 3 };
  if (chip->figures.compiler != MP_CHIP_COMPILER_TPU || !indexed_cost_is_sum(op)) return 0;
  if (mp_op_bool(op, MP_ATTR_INDICES_ARE_SORTED, false) || a->slices < 2) return 0;
  return mp_sort_lines_seconds(chip, a->slices, a->slices, ARRAYS) +
         KERNELS * (chip->op_latency + mp_figure_or(chip->figures.memory_latency, 0));
}

// What is updated is read and written. On a TPU the updates are read besides; a GPU's kernel makes
// them.
double mp_scatter_seconds(const mp_chip_t *chip, const mp_op_t *op) {
  const indexed_accesses_t a = indexed_cost_of_scatter(op);
  const mp_value_t *update = op->operands[op->num_operands / 2 + 1];
  const bool is_tpu = chip->figures.compiler == MP_CHIP_COMPILER_TPU;
  // A GPU writes whole rows without reading them.
  const bool is_over = chip->figures.compiler == MP_CHIP_COMPILER_GPU && mp_cluster_is_set(op) &&
                       indexed_cost_is_whole(chip, &a);
  const double updates = is_tpu ? mp_work_bytes_of(update->type) : 0;
  return fmax(a.slices * indexed_cost_update(chip, op, &a),
              indexed_cost_stream(chip, &a, is_over ? 1 : 2) + updates / chip->memory_bandwidth) +
         indexed_cost_sort(chip, op, &a);
}

// ---- reverse ----

// Elements that lie side by side change places one by one.
double mp_reverse_seconds(const mp_chip_t *chip, const mp_op_t *op) {
  const mp_type_t *type = op->results[0].type;
  const mp_index_list_t dims = mp_op_ints(op, MP_ATTR_DIMENSIONS);
  for (uint32_t i = 0; i < dims.count; ++i) {
    if (dims.values[i] + 1 != (int64_t)type->rank) continue;
    return mp_irregular_count(type) * mp_figure_or(chip->figures.reverse_element, 0);
  }
  return 0;
}
