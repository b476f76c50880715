#include "sim/chip/fuse/lookup.h"

#include <math.h>

#include "sim/base/assert.h"
#include "sim/chip/fuse/chip_fusion_kinds.h"
#include "sim/chip/layout/tile_layout.h"
#include "sim/chip/rules/chip_rules.h"

// ---- the layout of the table ----

// The last dimension of which a slice has several elements; -1: none.
static int32_t lookup_lane(mp_index_list_t sizes) {
  int32_t lane = -1;
  for (uint32_t d = 0; d < sizes.count; ++d) {
    if (sizes.values[d] > 1) lane = (int32_t)d;
  }
  return lane;
}

// libtpu 0.0.52 requires the last dimension with several elements per slice in the lanes, so inside
// of all others. Otherwise the order of dimensions stays.
static bool lookup_is_turned(const mp_type_t *type, int32_t lane) {
  for (int32_t d = lane + 1; lane >= 0 && d < (int32_t)type->rank; ++d) {
    if (type->dims[d] > 1) return true;
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
  out.is_turned = lookup_is_turned(type, out.lane);
  out.padding = out.lane < 0 ? mp_tile_padding(type, mp_tile_layout_compact(type))
                             : mp_tile_padding_by_lane(type, out.lane);
  MP_ASSERT(out.lane < (int32_t)type->rank && out.padding >= 1);
  return out;
}

// ---- which unit runs the gather ----

// The bytes of the table in the layout that the gather reads.
static double lookup_form_bytes(const mp_op_t *op, const mp_lookup_t *lookup) {
  return mp_work_bytes_of(op->operands[0]->type) * lookup->padding;
}

// SparseCores look up single rows and elements, more than `gather.apart` of them, if the result has
// less than twice the table's elements. Narrow types only from tables above 32 MiB, as they are in
// rows of lanes. Evidence, libtpu 0.0.52 for v6e: tables of 1,000 to 100,000 rows, of 128 elements
// in f32, of 128 to 1,024 in bf16; in bf16 200,000 rows of 64 (51 MB), but not 100,000 of 32.
bool mp_lookup_is_apart(const mp_chip_figures_t *figures, const mp_op_t *op) {
  const double narrow_least = 32.0 * 1024 * 1024;
  if (isnan(figures->gather_apart)) return false;
  const mp_lookup_t lookup = mp_lookup_of_gather(op);
  const mp_type_t *type = op->operands[0]->type;
  if (!lookup.is_row || lookup.slices <= figures->gather_apart) return false;
  if (mp_dtype_bits(type->dtype) < 32 && lookup_form_bytes(op, &lookup) <= narrow_least) {
    return false;
  }
  return mp_chip_fusion_op_count(op) < 2 * mp_chip_fusion_value_count(op->operands[0]) &&
         mp_chip_rule(figures, MP_CHIP_RULE_sparse_core);
}
