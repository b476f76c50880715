// Where the compiler of a TPU copies arrays into other layouts.
#include <math.h>

#include "sim/chip/cost/kernel_cost.h"
#include "sim/chip/cost/vector_cost.h"
#include "sim/chip/steps/chip_builder.h"

// What does not lie in VMEM is copied by SparseCores where there are no other parameters of tiles
// (7x), at the memory's rate.
static double chip_tiles_work_seconds(const mp_chip_t *chip, const mp_layout_copy_t *copy,
                                      mp_chip_figure_t *out_figure) {
  const mp_chip_figures_t *figures = &chip->figures;
  const double bits = mp_dtype_bits(copy->value->type->dtype);
  if (copy->reads_vmem && copy->writes_vmem && !isnan(figures->vmem_transpose)) {
    *out_figure = MP_CHIP_FIGURE_vmem_transpose;
    return mp_vmem_transpose_seconds(chip, mp_layouts_copy_bytes(copy) * 8 / bits);
  }
  const bool is_apart = !copy->reads_vmem && isnan(figures->tiles_element);
  const bool is_crossed = copy->is_reshape || copy->from.lane != copy->to.lane;
  const bool is_swapped = !copy->is_reshape && copy->from.lane == copy->to.sublane &&
                          copy->from.sublane == copy->to.lane;
  const double element = mp_figure_or(is_swapped   ? figures->tiles_swap
                                      : is_crossed ? figures->tiles_lanes
                                                   : figures->tiles_rows,
                                      0);
  *out_figure = is_swapped   ? MP_CHIP_FIGURE_tiles_swap
                : is_crossed ? MP_CHIP_FIGURE_tiles_lanes
                             : MP_CHIP_FIGURE_tiles_rows;
  return is_apart ? 0 : mp_layouts_copy_bytes(copy) * 8 / bits * element;
}

mp_status_t mp_chip_hold_copy(mp_chip_builder_t *b, const mp_value_t *value, double bytes,
                              const mp_op_t *op, uint32_t *number) {
  if (*number == UINT32_MAX) {
    *number = b->held.count;
    return MP_ARRAY_PUSH(b->c->scratch, &b->held,
                         (mp_memory_copy_t){value, (uint64_t)bytes, op, op});
  }
  mp_memory_copy_t *copy = &b->held.items[*number];
  if (bytes == 0) copy->bytes = 0;
  if (op->id < copy->first->id) copy->first = op;
  if (op->id > copy->last->id) copy->last = op;
  return NULL;
}

// Whether a copy is a temporary of its own: not if control flow or a transpose alone reads it,
// which has a place for it, or if an op updates it in place.
static bool chip_tiles_is_held(const mp_chip_builder_t *b, const mp_layout_copy_t *copy,
                               const mp_op_t *op, uint32_t operand) {
  const bool is_update = op->code == MP_OP_SCATTER || op->code == MP_OP_DYNAMIC_UPDATE_SLICE;
  const mp_chip_fusion_t *fusion = mp_chip_fusion_at(b->c->fusions, op);
  const bool is_bitcast = fusion != NULL && mp_chip_fusion_moves_nothing(b->c->fusions, fusion);
  return !copy->writes_vmem && !is_bitcast && !(is_update && operand < op->num_results) &&
         mp_op_info(op->code)->role != MP_OP_ROLE_CONTROL && op != mp_block_terminator(op->parent);
}

mp_status_t mp_chip_add_layout_copies(mp_chip_builder_t *b, const mp_op_t *op, const mp_op_t *at) {
  const mp_layouts_t *layouts = &b->c->fusions->layouts;
  for (uint32_t i = 0; i < op->num_operands && layouts->copies.count > 0; ++i) {
    const uint32_t number = mp_layouts_copy_for(layouts, op->operands[i], op);
    if (number == MP_LAYOUT_NONE) continue;
    const mp_layout_copy_t *copy = &layouts->copies.items[number];
    const bool is_first = b->copied[number] == UINT32_MAX;
    const double held = chip_tiles_is_held(b, copy, op, i) ? mp_layouts_copy_bytes(copy) : 0;
    MP_RETURN_IF_ERROR(mp_chip_hold_copy(b, copy->value, held, at, &b->copied[number]));
    if (!is_first) continue;
    const double from = mp_layouts_bytes(layouts, copy->value);
    const double bytes =
        (copy->reads_vmem ? 0 : from) + (copy->writes_vmem ? 0 : mp_layouts_copy_bytes(copy));
    mp_chip_figure_t figure;
    const double work = chip_tiles_work_seconds(b->c->chip, copy, &figure);
    const double seconds = bytes > 0 ? mp_kernel_copy_time(b->c->chip, bytes).seconds : 0;
    MP_RETURN_IF_ERROR(mp_chip_put_kernel(
        b, &(mp_chip_kernel_t){.op = op,
                               .name = "copy",
                               .work_class = MP_WORK_COPY,
                               .kind = MP_FLOP_F32,
                               .bytes = bytes,
                               .seconds = fmax(work, seconds),
                               .figure = work > seconds ? figure : MP_CHIP_FIGURE_NONE}));
  }
  return NULL;
}
