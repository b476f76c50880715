// Layouts that gathers, scatters and windows need: what they access as a whole is in the lanes.
#include <math.h>

#include "sim/base/assert.h"
#include "sim/chip/layout/tile_layout.h"
#include "sim/work/work.h"

// ---- windows ----

// If windows extend along the lanes: the last dimension along which none does.
static mp_tile_layout_t layout_lanes_window(const mp_op_t *op, const mp_type_t *type,
                                            mp_tile_layout_t has) {
  const mp_index_list_t sizes = mp_op_ints(op, MP_ATTR_WINDOW_DIMENSIONS);
  if (has.lane < 0 || (uint32_t)has.lane >= sizes.count || sizes.values[has.lane] == 1) return has;
  for (int32_t d = (int32_t)sizes.count; d-- > 0;) {
    if (sizes.values[d] != 1 || type->dims[d] == 1) continue;
    return (mp_tile_layout_t){d, mp_tile_layout_other(type, d), false};
  }
  return has;
}

// ---- slices ----

// What a gather or scatter accesses: slices of an array (gather: table, scatter: operand), of which
// there is an array, too (gather: result, scatter: updates).
typedef struct {
  const mp_type_t *array, *slices;
  mp_index_list_t window, without, batching, indexed;
} layout_lanes_access_t;

static layout_lanes_access_t layout_lanes_access(const mp_op_t *op) {
  const mp_type_t *array = op->operands[0]->type;
  if (op->code == MP_OP_GATHER) {
    return (layout_lanes_access_t){array,
                                   op->results[0].type,
                                   mp_op_ints(op, MP_ATTR_OFFSET_DIMS),
                                   mp_op_ints(op, MP_ATTR_COLLAPSED_SLICE_DIMS),
                                   mp_op_ints(op, MP_ATTR_OPERAND_BATCHING_DIMS),
                                   mp_op_ints(op, MP_ATTR_START_INDEX_MAP)};
  }
  return (layout_lanes_access_t){array,
                                 op->operands[op->num_operands / 2 + 1]->type,
                                 mp_op_ints(op, MP_ATTR_UPDATE_WINDOW_DIMS),
                                 mp_op_ints(op, MP_ATTR_INSERTED_WINDOW_DIMS),
                                 mp_op_ints(op, MP_ATTR_INPUT_BATCHING_DIMS),
                                 mp_op_ints(op, MP_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS)};
}

// The array's dimension that is dimension `number` of a slice.
static int32_t layout_lanes_nth(const layout_lanes_access_t *access, uint32_t number) {
  for (int32_t d = 0; d < (int32_t)access->array->rank; ++d) {
    if (mp_index_list_has(access->without, d) || mp_index_list_has(access->batching, d)) continue;
    if (number-- == 0) return d;
  }
  return -1;
}

// The layouts of the array and of the slices: of the dimensions in which a slice has several
// elements the two that pad least, the last ones among equals; besides a single one the last other
// dimension. False: slices are single elements, or parts that begin anywhere, which are copied one
// after the other in any layout.
static bool layout_lanes_slice(const mp_op_t *op, mp_tile_layout_t *array,
                               mp_tile_layout_t *slices) {
  const layout_lanes_access_t access = layout_lanes_access(op);
  double least = INFINITY;
  for (uint32_t i = access.window.count; i-- > 0;) {
    const int32_t lane = layout_lanes_nth(&access, i), of_slice = (int32_t)access.window.values[i];
    MP_ASSERT(lane >= 0 && access.slices->dims[of_slice] <= access.array->dims[lane]);
    if (access.slices->dims[of_slice] == 1) continue;
    const bool is_whole = access.slices->dims[of_slice] == access.array->dims[lane];
    if (!is_whole && mp_index_list_has(access.indexed, lane)) return false;
    for (uint32_t j = access.window.count; j-- > 0;) {
      const int32_t row = (int32_t)access.window.values[j];
      if (j == i || access.slices->dims[row] == 1) continue;
      const mp_tile_layout_t both = {of_slice, row, false};
      const double padding = mp_tile_padding(access.slices, both);
      if (padding >= least) continue;
      least = padding;
      *slices = both;
      *array = (mp_tile_layout_t){lane, layout_lanes_nth(&access, j), false};
    }
    if (least < INFINITY) continue;
    *slices = (mp_tile_layout_t){of_slice, mp_tile_layout_other(access.slices, of_slice), false};
    *array = (mp_tile_layout_t){lane, mp_tile_layout_other(access.array, lane), false};
  }
  return array->lane >= 0;
}

// The layout in which an operand is read: as it is, if it has the same dimensions in the tiles.
static mp_tile_layout_t layout_lanes_indexed(const mp_op_t *op, uint32_t operand,
                                             mp_tile_layout_t has) {
  mp_tile_layout_t array = {-1, -1, false}, slices = {-1, -1, false};
  const uint32_t num_arrays = op->code == MP_OP_GATHER ? 1 : op->num_results;
  const bool is_index = operand == num_arrays || operand > 2 * num_arrays;
  if (is_index || !layout_lanes_slice(op, &array, &slices)) return has;
  const mp_tile_layout_t needed = operand < num_arrays ? array : slices;
  return has.lane == needed.lane && !has.is_split ? has : needed;
}

// ---- all ----

// Whether libtpu copies a table for its gather: with at most 128 MiB of tiles, or twice its compact
// size. Of 20 tables with rows of 2 to 96 elements it copies those 14, whatever the lookups.
static bool layout_lanes_is_formed(const mp_type_t *table, mp_tile_layout_t layout) {
  const double most = 128.0 * 1024 * 1024, growth = 2, padding = mp_tile_padding(table, layout);
  return padding <= growth * mp_tile_padding(table, mp_tile_layout_compact(table)) ||
         padding * mp_work_bytes_of(table) <= most;
}

bool mp_tile_layout_is_by_lanes(const mp_op_t *op) {
  mp_tile_layout_t array = {-1, -1, false}, slices;
  if (op->code == MP_OP_SCATTER) return layout_lanes_slice(op, &array, &slices);
  if (op->code == MP_OP_GATHER) {
    return layout_lanes_slice(op, &array, &slices) &&
           layout_lanes_is_formed(op->operands[0]->type, array);
  }
  return op->code == MP_OP_REDUCE_WINDOW || op->code == MP_OP_SELECT_AND_SCATTER;
}

mp_tile_layout_t mp_tile_layout_lanes(const mp_op_t *op, uint32_t operand, mp_tile_layout_t has) {
  MP_ASSERT(mp_tile_layout_is_by_lanes(op));
  if (op->code == MP_OP_GATHER || op->code == MP_OP_SCATTER) {
    return layout_lanes_indexed(op, operand, has);
  }
  return layout_lanes_window(op, op->operands[operand]->type, has);
}

mp_tile_layout_t mp_tile_layout_by_lanes(const mp_op_t *op, mp_tile_layout_t read) {
  mp_tile_layout_t array = {-1, -1, false}, slices;
  const bool is_gather = op->code == MP_OP_GATHER && layout_lanes_slice(op, &array, &slices);
  return is_gather ? slices : read;
}
