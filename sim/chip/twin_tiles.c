// Where the compiler of a TPU has to lay an array out anew: arguments and results of main have
// tiles of their own, and some ops want others.
#include <math.h>

#include "sim/chip/clusters/cluster_kinds.h"
#include "sim/chip/cost/kernel_cost.h"
#include "sim/chip/rules/rules.h"
#include "sim/chip/twin_impl.h"
#include "sim/plan/plan.h"

// ---- arguments under another type ----

// Of narrower rows nothing is known.
enum { TILES_LANES = 128, TILES_ROWS = 8, TILES_NARROWEST = 32 };

// The dimension that lies along the lanes: the last one that has more than one element.
static int64_t twin_tiles_lanes(const mp_type_t *type) {
  for (uint32_t d = type->rank; d-- > 0;) {
    if (type->dims[d] != 1) return type->dims[d];
  }
  return 1;
}

// A reshape after which other elements lie side by side, of arrays of rows.
static bool twin_tiles_changes_lanes(const mp_op_t *op) {
  if (op->code != MP_OP_RESHAPE) return false;
  const mp_type_t *from = op->operands[0]->type, *to = op->results[0].type;
  if (!mp_type_is_tensor(from) || from->rank < 2 || to->rank < 2) return false;
  return twin_tiles_lanes(from) != twin_tiles_lanes(to);
}

// The bytes of an array in rows of tiles, however empty they are; very narrow rows count as they
// are.
static double twin_tiles_rows_of_tiles(const mp_type_t *type) {
  const double bytes = mp_work_bytes_of(type);
  const int64_t lanes = type->dims[type->rank - 1], rows = type->dims[type->rank - 2];
  if (lanes < TILES_NARROWEST || rows < 1) return bytes;
  const int64_t all_lanes = (lanes + TILES_LANES - 1) / TILES_LANES * TILES_LANES;
  const int64_t all_rows = (rows + TILES_ROWS - 1) / TILES_ROWS * TILES_ROWS;
  return bytes / (double)lanes * (double)all_lanes / (double)rows * (double)all_rows;
}

// An array that came as an argument has the tiles of its own type. It is brought into rows of the
// other one's, and from these into the tiles that leave the least of them empty; what of this does
// not fit into scratch memory is written and read.
static double twin_tiles_relaid(const mp_twin_builder_t *b, const mp_op_t *reshape) {
  const mp_chip_figures_t *figures = &b->chip->figures;
  const mp_type_t *type = reshape->results[0].type;
  const double scratch = mp_figure_or(figures->memory_scratch, 0);
  const double rows = twin_tiles_rows_of_tiles(type);
  const double least = mp_cluster_bytes_of(figures, type);
  double bytes = 0;
  if (rows > least && rows > scratch) bytes += 2 * rows;
  if (least > scratch) bytes += 2 * least;
  return bytes;
}

static double twin_tiles_of_arguments(const mp_twin_builder_t *b, const mp_op_t *op) {
  // Products find what they need in any tiles.
  if (op->code == MP_OP_DOT_GENERAL || op->code == MP_OP_CONVOLUTION) return 0;
  double bytes = 0;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_value_t *value = op->operands[i], *root = mp_cluster_root(value);
    if (root->op != NULL || root->block != b->program->partitioned->main->body) continue;
    while (value != root && !twin_tiles_changes_lanes(value->op)) {
      value = mp_plan_aliased(value);
    }
    if (value != root && mp_chip_rule(&b->chip->figures, MP_CHIP_RULE_argument_reshape)) {
      bytes += twin_tiles_relaid(b, value->op);
    }
  }
  return bytes;
}

// ---- rows that are cut, or put together ----

// Whether nobody reads the value, as another one or as itself, between the op that makes it and
// this one.
static bool twin_tiles_is_first(const mp_value_t *value, const mp_op_t *reader) {
  enum { NEAR = 64 };
  uint32_t passed = 0;
  for (const mp_op_t *op = value->op->next; op != NULL && op != reader; op = op->next) {
    if (++passed > NEAR) return false;
    if (mp_op_has(op, MP_OP_TRAIT_ALIAS)) continue;
    for (uint32_t i = 0; i < op->num_operands; ++i) {
      if (mp_cluster_root(op->operands[i]) == value) return false;
    }
  }
  return true;
}

// What the op reads of an array that a copy has to lay out before. Of one of whose rows parts are
// cut each part counts as much as it is; what was put together is copied for its first reader.
static double twin_tiles_cut(const mp_twin_builder_t *b, const mp_op_t *op, uint32_t operand) {
  const mp_value_t *value = op->operands[operand], *root = mp_cluster_root(value);
  if (root->op == NULL || !mp_cluster_is_relaid(value)) return 0;
  const double whole = mp_cluster_bytes_of(&b->chip->figures, root->type);
  if (whole <= mp_figure_or(b->chip->figures.memory_scratch, 0)) return 0;
  if (!mp_chip_rule(&b->chip->figures, MP_CHIP_RULE_cut_rows)) return 0;
  if (op->code == MP_OP_SLICE && mp_cluster_cuts_rows(op)) {
    return 2 * whole * mp_cluster_op_count(op) / mp_cluster_value_count(root);
  }
  const bool is_joined =
      root->op != NULL && root->op->code == MP_OP_CONCATENATE && mp_cluster_cuts_rows(root->op);
  return is_joined && twin_tiles_is_first(root, op) ? 2 * whole : 0;
}

// ---- small blocks that change places ----

// Blocks of a reshaped array that change places, and fill no tile by themselves, lie in rows of
// tiles before that and behind it, however empty these are.
static double twin_tiles_moved(const mp_twin_builder_t *b, const mp_op_t *op) {
  if (op->code != MP_OP_TRANSPOSE || mp_plan_aliased(op->operands[0]) == NULL) return 0;
  const mp_type_t *type = op->results[0].type;
  const uint32_t rank = type->rank;
  const mp_index_list_t order = mp_op_ints(op, MP_ATTR_PERMUTATION);
  if (rank < 4 || order.values[rank - 1] + 1 != (int64_t)rank) return 0;
  const int64_t lanes = type->dims[rank - 1], block = lanes * type->dims[rank - 2];
  if (lanes < TILES_NARROWEST || block >= TILES_LANES * TILES_ROWS) return 0;
  const double padding = mp_cluster_padding(type, (int32_t)rank - 2, (int32_t)rank - 1);
  const double rows = padding * mp_work_bytes_of(type);
  const bool is_moved = padding > 1 && rows > mp_figure_or(b->chip->figures.memory_scratch, 0);
  return is_moved && mp_chip_rule(&b->chip->figures, MP_CHIP_RULE_moved_blocks) ? 4 * rows : 0;
}

// ---- all ----

double mp_twin_bytes_relaid(const mp_twin_builder_t *b, const mp_op_t *op) {
  if (b->chip->figures.compiler != MP_CHIP_COMPILER_TPU) return 0;
  double bytes = 0;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    if (i == 0 || op->operands[i] != op->operands[i - 1]) bytes += twin_tiles_cut(b, op, i);
  }
  const double of_arguments = twin_tiles_of_arguments(b, op);
  return bytes + (of_arguments > 0 ? of_arguments : twin_tiles_moved(b, op));
}

// ---- results of convolutions ----

static bool twin_tiles_is_result(const mp_twin_builder_t *b, const mp_value_t *value) {
  const mp_op_t *end = mp_block_terminator(b->program->partitioned->main->body);
  for (uint32_t i = 0; i < end->num_operands; ++i) {
    if (mp_cluster_root(end->operands[i]) == value) return true;
  }
  return false;
}

// What a result of main takes in the rows of its own type, if that leaves no more of its tiles
// empty than other dimensions would; else in tiles that have the rows and lanes of a convolution,
// if these leave the least of them empty: then nothing is to be done.
static double twin_tiles_outer(const mp_type_t *type, double inner, double *out_least) {
  const int32_t rank = (int32_t)type->rank;
  const double own = mp_cluster_padding(type, rank - 2, rank - 1);
  *out_least = mp_cluster_tiled_bytes(type) / mp_work_bytes_of(type);
  if (own > *out_least && inner <= *out_least) return 0;
  return fmin(own, *out_least);
}

// The seconds to bring what a convolution wrote, with images in the rows of tiles and channels in
// their lanes, into the tiles that a result of main has.
static double twin_tiles_convolved(const mp_twin_builder_t *b, const mp_op_t *op,
                                   const mp_value_t *result) {
  const mp_type_t *type = result->type;
  const int64_t row = mp_op_int(op, MP_ATTR_OUTPUT_BATCH_DIMENSION, 0);
  const int64_t lane = mp_op_int(op, MP_ATTR_OUTPUT_FEATURE_DIMENSION, 0);
  const double whole = mp_work_bytes_of(type);
  if (whole == 0 || type->rank < 3 || row >= type->rank || lane >= type->rank) return 0;
  double least = 1;
  const double inner = mp_cluster_padding(type, (int32_t)row, (int32_t)lane);
  const double outer = twin_tiles_outer(type, inner, &least);
  // With as many images as lanes the convolution has images there itself.
  const bool is_by_images = mp_cluster_padding(type, (int32_t)lane, (int32_t)row) <= least;
  if (outer == 0 || (is_by_images && inner > least)) return 0;
  const mp_chip_figures_t *figures = &b->chip->figures;
  const bool is_near = inner * whole <= mp_figure_or(figures->memory_scratch, 0);
  const double bytes = whole * (outer + (is_near ? 0 : inner));
  const double elements = mp_cluster_value_count(result) * fmax(inner, outer);
  return fmax(elements * figures->tiles_element, mp_kernel_copy_seconds(b->chip, bytes));
}

// Images of colours that come as an argument have rows of pixels in their lanes. A convolution of
// so few channels wants images there, however few these are, and libtpu 0.0.52 copies them so: 8 to
// 64 images of 224 x 224 take 51 MB. What of it lies in memory the windows read in small pieces,
// some 3 times as long as a stream (a 7x beside a v6e, which has it in scratch memory).
static double twin_tiles_of_images(const mp_twin_builder_t *b, const mp_cluster_t *cluster) {
  enum { COLOURS = 4, IMAGES_LEAST = 8, PIECES = 3 };
  static const double half_empty = 0.5;  // tiles of 4 x 128: 5 cycles for 1,024 elements on a v6e
  const mp_work_product_t *product = &cluster->work.product;
  const mp_work_convolution_t *c = &product->convolution;
  const mp_value_t *images = mp_cluster_root(cluster->leader->operands[0]);
  const mp_block_t *main = b->program->partitioned->main->body;
  if (images->op != NULL || images->block != main || c->channels > COLOURS) return 0;
  if (c->images < IMAGES_LEAST || c->images >= TILES_LANES) return 0;
  if (!mp_chip_rule(&b->chip->figures, MP_CHIP_RULE_conv_few_channels)) return 0;
  const mp_chip_figures_t *figures = &b->chip->figures;
  const double elements = TILES_LANES * COLOURS * c->in;
  const double bytes = elements * mp_dtype_bits(product->dtype) / 8;
  const double given = mp_cluster_bytes_of(figures, images->type);
  if (bytes <= mp_figure_or(figures->memory_scratch, 0)) {
    const double work = elements * half_empty * mp_figure_or(figures->tiles_element, 0);
    return fmax(work, mp_kernel_copy_seconds(b->chip, given));
  }
  return mp_kernel_copy_seconds(b->chip, given + bytes) +
         PIECES * bytes / b->chip->memory_bandwidth;
}

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

static double twin_tiles_of_convolution(const mp_twin_builder_t *b, const mp_cluster_t *cluster) {
  // Without the figure nothing is known of such copies.
  if (!(mp_figure_or(b->chip->figures.tiles_element, 0) > 0)) return 0;
  const mp_op_t *op = cluster->leader;
  if (op->code != MP_OP_CONVOLUTION) return 0;
  const mp_cluster_access_t *writes =
      mp_cluster_accesses(&b->clusters, cluster) + cluster->num_reads;
  double seconds = 0;
  for (uint32_t i = 0; i < cluster->num_writes; ++i) {
    const mp_value_t *value = mp_cluster_root(writes[i].value);
    const bool is_like = value->type->rank == op->results[0].type->rank;
    if (is_like && twin_tiles_is_result(b, value) &&
        mp_chip_rule(&b->chip->figures, MP_CHIP_RULE_conv_result)) {
      seconds += twin_tiles_convolved(b, op, value);
    }
  }
  return seconds;
}

// ---- results of products ----

// The bytes that the copy of a product's result moves; 0: there is none.
static double twin_tiles_bytes_turned(const mp_cluster_access_t *write) {
  if (write->lay == MP_CLUSTER_LAID) return 0;
  return write->bytes * (write->is_lay_near ? 1 : 2);
}

// What does not lie in scratch memory is laid out by SparseCores where there are figures of no
// other tiles (7x), at the memory's rate.
static double twin_tiles_turned(const mp_chip_t *chip, const mp_cluster_access_t *write) {
  const mp_chip_figures_t *figures = &chip->figures;
  const double bits = mp_dtype_bits(write->value->type->dtype);
  const bool is_apart = !write->is_lay_near && isnan(figures->tiles_element);
  // Rows of f32 are moved as they are, narrower ones are unpacked.
  const double moved = write->lay == MP_CLUSTER_RELAID && bits >= 32 ? 0.75 : 1;
  const double element = mp_figure_or(
      write->lay == MP_CLUSTER_CROSSED ? figures->tiles_lanes : figures->tiles_rows, 0);
  const double work = is_apart ? 0 : write->bytes * 8 / bits * element * moved;
  return fmax(work, mp_kernel_copy_seconds(chip, twin_tiles_bytes_turned(write)));
}

static double twin_tiles_of_product(const mp_twin_builder_t *b, const mp_cluster_t *cluster,
                                    bool is_bytes) {
  const mp_cluster_access_t *writes = mp_cluster_accesses(&b->clusters, cluster);
  double sum = 0;
  for (uint32_t i = 0; i < cluster->num_writes; ++i) {
    const mp_cluster_access_t *write = &writes[cluster->num_reads + i];
    if (write->lay == MP_CLUSTER_LAID) continue;
    sum += is_bytes ? twin_tiles_bytes_turned(write) : twin_tiles_turned(b->chip, write);
  }
  return sum;
}

// ---- both ----

double mp_twin_tiles_seconds(const mp_twin_builder_t *b, const mp_cluster_t *cluster) {
  const bool is_tpu = b->chip->figures.compiler == MP_CHIP_COMPILER_TPU;
  if (cluster->work.work_class == MP_WORK_CONVOLUTION) {
    double seconds = twin_tiles_of_convolution(b, cluster);
    if (is_tpu && cluster->leader->code == MP_OP_CONVOLUTION) {
      seconds += twin_tiles_of_images(b, cluster) + twin_tiles_of_parts(b, cluster);
    }
    return seconds;
  }
  return twin_tiles_of_product(b, cluster, false);
}

double mp_twin_tiles_bytes(const mp_twin_builder_t *b, const mp_cluster_t *cluster) {
  return twin_tiles_of_product(b, cluster, true);
}
