#include "sim/chip/fuse/lookup.h"

#include <math.h>

#include "sim/base/assert.h"
#include "sim/chip/fuse/chip_fusion_kinds.h"
#include "sim/chip/layout/tile_layout.h"
#include "sim/chip/rules/chip_rules.h"

// ---- the layout of the table ----

static bool lookup_is_indexed(const mp_op_t *op, uint32_t d) {
  return mp_index_list_has(mp_op_ints(op, MP_ATTR_START_INDEX_MAP), d);
}

// Whether slices have several elements of the dimension, and start at any of them.
static bool lookup_moves(const mp_op_t *op, mp_index_list_t sizes, uint32_t d) {
  const int64_t whole = op->operands[0]->type->dims[d];
  return sizes.values[d] > 1 && sizes.values[d] < whole && lookup_is_indexed(op, d);
}

// The last dimension of which a slice has several elements; -1: none.
static int32_t lookup_lane(mp_index_list_t sizes) {
  int32_t lane = -1;
  for (uint32_t d = 0; d < sizes.count; ++d) {
    if (sizes.values[d] > 1) lane = (int32_t)d;
  }
  return lane;
}

// libtpu 0.0.52 requires the last dimension with several elements per slice in the lanes, and a
// dimension in which slices start anywhere outermost. Otherwise the order of dimensions stays.
static bool lookup_is_turned(const mp_op_t *op, mp_index_list_t sizes, int32_t lane) {
  const mp_type_t *type = op->operands[0]->type;
  bool has_outer = false;
  for (uint32_t d = 0; d < sizes.count; ++d) {
    if ((int32_t)d > lane && type->dims[d] > 1) return lane >= 0;
    if ((int32_t)d != lane && has_outer && lookup_moves(op, sizes, d)) return true;
    has_outer = has_outer || type->dims[d] > 1;
  }
  return false;
}

mp_lookup_t mp_lookup_of_gather(const mp_op_t *op) {
  const mp_type_t *type = op->operands[0]->type;
  const mp_index_list_t sizes = mp_op_ints(op, MP_ATTR_SLICE_SIZES);
  mp_lookup_t out = {.lane = lookup_lane(sizes), .padding = 1};
  double elements = 1;
  uint32_t num_long = 0;
  for (uint32_t d = 0; d < sizes.count; ++d) {
    elements *= (double)sizes.values[d];
    num_long += sizes.values[d] > 1;
  }
  out.slices = mp_chip_fusion_value_count(&op->results[0]) / fmax(elements, 1);
  out.is_row = num_long <= 1;
  if (type->rank == 0 || mp_work_bytes_of(type) == 0) return out;
  out.is_turned = lookup_is_turned(op, sizes, out.lane);
  out.is_stepwise = out.lane >= 0 && lookup_moves(op, sizes, (uint32_t)out.lane);
  out.padding = out.lane < 0 ? mp_tile_padding(type, mp_tile_layout_compact(type))
                             : mp_tile_padding_by_lane(type, out.lane);
  MP_ASSERT(out.lane < (int32_t)type->rank && out.padding >= 1);
  return out;
}

// ---- which unit runs the gather ----

double mp_lookup_form_bytes(const mp_op_t *op, const mp_lookup_t *lookup) {
  return mp_work_bytes_of(op->operands[0]->type) * lookup->padding;
}

// SparseCores look up single rows and elements, more than `gather.apart` of them, if the result has
// less than twice the table's elements. Narrow types only from tables above 32 MiB, as they are in
// rows of lanes. Evidence, libtpu 0.0.52 for v6e: tables of 1,000 to 100,000 rows, of 128 elements
// in f32, of 128 to 1,024 in bf16; in bf16 200,000 rows of 64 (51 MB), but not 100,000 of 32.
bool mp_lookup_is_apart(const mp_chip_figures_t *figures, const mp_op_t *op) {
  const double narrow_least = 32.0 * 1024 * 1024;
  if (figures->compiler != MP_CHIP_COMPILER_TPU || isnan(figures->gather_apart)) return false;
  const mp_lookup_t lookup = mp_lookup_of_gather(op);
  const mp_type_t *type = op->operands[0]->type;
  if (!lookup.is_row || lookup.is_turned || lookup.is_stepwise) return false;
  if (lookup.slices <= figures->gather_apart) return false;
  if (mp_dtype_bits(type->dtype) < 32 && mp_lookup_form_bytes(op, &lookup) <= narrow_least) {
    return false;
  }
  return mp_chip_fusion_op_count(op) < 2 * mp_chip_fusion_value_count(op->operands[0]) &&
         mp_chip_rule(figures, MP_CHIP_RULE_sparse_core);
}
