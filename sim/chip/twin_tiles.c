// Where the compiler of a TPU copies arrays into other layouts.
#include <math.h>

#include "sim/chip/clusters/cluster_kinds.h"
#include "sim/chip/cost/kernel_cost.h"
#include "sim/chip/rules/rules.h"
#include "sim/chip/twin_impl.h"
#include "sim/plan/plan.h"

enum { TILES_LANES = 128 };

// The positions along the last spatial dimension of a convolution's input.
static int64_t twin_tiles_last_spatial(const mp_op_t *op) {
  const mp_type_t *type = op->operands[0]->type;
  const mp_index_list_t dims = mp_op_ints(op, MP_ATTR_INPUT_SPATIAL_DIMENSIONS);
  return dims.count == 2 && type->rank == 4 ? type->dims[dims.values[1]] : 0;
}

static double twin_tiles_pass(const mp_chip_t *chip, double images, double positions,
                              double channels, mp_dtype_t dtype) {
  const double lanes =
      channels < TILES_LANES / 2 ? channels : ceil(channels / TILES_LANES) * TILES_LANES;
  const double elements = images * positions * lanes;
  const double bytes = elements * mp_dtype_bits(dtype) / 8;
  const bool is_near = bytes <= mp_figure_or(chip->figures.memory_scratch, 0);
  const double work = elements * mp_figure_or(chip->figures.tiles_rows, 0);
  return fmax(work, is_near ? 0 : mp_kernel_copy_seconds(chip, 2 * bytes));
}

// Of fewer than eight images (libtpu 0.0.52: of four, on v5p, v6e and 7x) XLA's space to batch
// makes eight parts each, along the last spatial dimension, with what lies beside them: the input
// is padded, cut and put together, and the result is cut and put together.
static double twin_tiles_of_parts(const mp_twin_builder_t *b, const mp_cluster_t *cluster) {
  enum { IMAGES = 8, PARTS = 8, INPUT_PASSES = 3, RESULT_PASSES = 2 };
  const mp_work_product_t *product = &cluster->work.product;
  const mp_work_convolution_t *c = &product->convolution;
  const bool is_plain = product->batch == 1 && !c->is_strided && c->holes <= 1;
  if (!is_plain || c->window <= 1 || c->window >= c->out || c->images >= IMAGES) return 0;
  if (twin_tiles_last_spatial(cluster->leader) < 2 * PARTS) return 0;
  if (!mp_chip_rule(&b->chip->figures, MP_CHIP_RULE_conv_space_to_batch)) return 0;
  return INPUT_PASSES * twin_tiles_pass(b->chip, c->images, c->in, c->channels, product->dtype) +
         RESULT_PASSES * twin_tiles_pass(b->chip, c->images, c->out, product->n, product->dtype);
}

double mp_twin_tiles_seconds(const mp_twin_builder_t *b, const mp_cluster_t *cluster) {
  if (b->chip->figures.compiler != MP_CHIP_COMPILER_TPU) return 0;
  if (cluster->leader->code != MP_OP_CONVOLUTION) return 0;
  return twin_tiles_of_parts(b, cluster);
}

// ---- copies into other layouts ----

// What does not lie in VMEM is copied by SparseCores where there are no other parameters of tiles
// (7x), at the memory's rate.
static double twin_tiles_copy_seconds(const mp_chip_t *chip, const mp_layout_copy_t *copy,
                                      double moved) {
  const mp_chip_figures_t *figures = &chip->figures;
  const double bits = mp_dtype_bits(copy->value->type->dtype);
  const bool is_apart = !copy->reads_vmem && isnan(figures->tiles_element);
  const bool is_crossed = copy->is_reshape || copy->from.lane != copy->to.lane;
  // Rows of f32 are moved as they are, narrower ones are unpacked.
  const double share = !is_crossed && bits >= 32 ? 0.75 : 1;
  const double element = mp_figure_or(is_crossed ? figures->tiles_lanes : figures->tiles_rows, 0);
  const double work = is_apart ? 0 : mp_layouts_copy_bytes(copy) * 8 / bits * element * share;
  return fmax(work, mp_kernel_copy_seconds(chip, moved));
}

mp_status_t mp_twin_add_layout_copies(mp_twin_builder_t *b, const mp_op_t *op) {
  const mp_layouts_t *layouts = &b->clusters.layouts;
  for (uint32_t i = 0; i < op->num_operands && layouts->copies.count > 0; ++i) {
    const uint32_t number = mp_layouts_copy_for(layouts, op->operands[i], op);
    if (number == MP_LAYOUT_NONE || b->copied[number]) continue;
    b->copied[number] = true;
    const mp_layout_copy_t *copy = &layouts->copies.items[number];
    const double from = mp_layouts_bytes(layouts, copy->value);
    const double bytes =
        (copy->reads_vmem ? 0 : from) + (copy->writes_vmem ? 0 : mp_layouts_copy_bytes(copy));
    MP_RETURN_IF_ERROR(mp_twin_put_kernel(
        b, &(mp_twin_kernel_t){.op = op,
                               .name = "copy",
                               .work_class = MP_WORK_COPY,
                               .kind = MP_FLOP_F32,
                               .bytes = bytes,
                               .seconds = twin_tiles_copy_seconds(b->chip, copy, bytes)}));
  }
  return NULL;
}
