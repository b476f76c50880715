// The layouts that the matrix units take: of each operand one dimension that is contracted and one
// that is not, of the result one of either operand. Convolutions have features and images in the
// tiles.
#include <math.h>

#include "sim/chip/layout/tile_layout.h"
#include "sim/work/work.h"

typedef struct {
  uint64_t batch, contracted;  // dimensions as bits
} layout_matmul_dims_t;

static uint64_t layout_matmul_bits(mp_index_list_t dims) {
  uint64_t bits = 0;
  for (uint32_t i = 0; i < dims.count; ++i) bits |= (uint64_t)1 << (dims.values[i] & 63);
  return bits;
}

static layout_matmul_dims_t layout_matmul_dims(const mp_op_t *op, uint32_t operand) {
  static const mp_attr_name_t batches[] = {MP_ATTR_LHS_BATCHING_DIMENSIONS,
                                           MP_ATTR_RHS_BATCHING_DIMENSIONS};
  static const mp_attr_name_t contracted[] = {MP_ATTR_LHS_CONTRACTING_DIMENSIONS,
                                              MP_ATTR_RHS_CONTRACTING_DIMENSIONS};
  return (layout_matmul_dims_t){layout_matmul_bits(mp_op_ints(op, batches[operand])),
                                layout_matmul_bits(mp_op_ints(op, contracted[operand]))};
}

bool mp_tile_is_vector_batch(double batch, double m, double n, double k) {
  enum { LEAST_SIDE = 64 };
  return batch > 1 && fmin(m, n) <= 1 && fmin(k, fmax(m, n)) < LEAST_SIDE;
}

// Without a contraction it is an elementwise matmul.
bool mp_tile_layout_is_matmul(const mp_op_t *op) {
  if (op->code != MP_OP_DOT_GENERAL) return op->code == MP_OP_CONVOLUTION;
  mp_work_t work;
  mp_work_of_op(op, &work);
  const mp_work_matmul_t *matmul = &work.matmul;
  return matmul->k != 1 && !mp_tile_is_vector_batch(matmul->batch, matmul->m, matmul->n, matmul->k);
}

// The dimension that fills the tiles: the last one, or the longest if the last is short.
static int32_t layout_matmul_tile(const mp_type_t *type, uint64_t dims) {
  enum { SHORT = 17 };
  int32_t longest = -1;
  for (int32_t d = (int32_t)type->rank; d-- > 0;) {
    if ((dims >> d & 1) == 0 || type->dims[d] == 1) continue;
    if (longest < 0 || type->dims[d] > type->dims[longest]) longest = d;
    if (longest == d && type->dims[d] >= SHORT) break;
  }
  return longest;
}

static uint64_t layout_matmul_all(const mp_type_t *type) {
  return type->rank >= 64 ? UINT64_MAX : ((uint64_t)1 << type->rank) - 1;
}

// ---- dot_general ----

// The dimensions of the result that come from each operand.
static void layout_matmul_free(const mp_op_t *op, uint64_t *out_lhs, uint64_t *out_rhs) {
  const uint32_t num_batch = mp_op_ints(op, MP_ATTR_LHS_BATCHING_DIMENSIONS).count;
  const uint32_t num_contracted = mp_op_ints(op, MP_ATTR_LHS_CONTRACTING_DIMENSIONS).count;
  const uint32_t second = op->operands[0]->type->rank - num_contracted;
  const uint64_t before = ((uint64_t)1 << (second & 63)) - 1;
  *out_lhs = before & ~(((uint64_t)1 << (num_batch & 63)) - 1);
  *out_rhs = layout_matmul_all(op->results[0].type) & ~before;
}

static bool layout_matmul_has(uint64_t dims, int32_t dim) {
  return dim >= 0 && (dims >> dim & 1) != 0;
}

// Whether the tiles have one dimension of either set; a set without dimensions of several elements
// has nothing in them.
static bool layout_matmul_fits(const mp_type_t *type, mp_tile_layout_t layout, uint64_t a,
                               uint64_t b) {
  const bool has_a = layout_matmul_tile(type, a) >= 0, has_b = layout_matmul_tile(type, b) >= 0;
  if (!has_a || !has_b) return true;
  return (layout_matmul_has(a, layout.lane) && layout_matmul_has(b, layout.sublane)) ||
         (layout_matmul_has(b, layout.lane) && layout_matmul_has(a, layout.sublane));
}

// ---- convolution ----

// Features in the lanes and images in the sublanes, unless they pad less the other way round.
static mp_tile_layout_t layout_matmul_image(const mp_op_t *op, uint32_t operand) {
  static const mp_attr_name_t lanes[] = {MP_ATTR_INPUT_FEATURE_DIMENSION,
                                         MP_ATTR_KERNEL_OUTPUT_FEATURE_DIMENSION,
                                         MP_ATTR_OUTPUT_FEATURE_DIMENSION};
  static const mp_attr_name_t rows[] = {MP_ATTR_INPUT_BATCH_DIMENSION,
                                        MP_ATTR_KERNEL_INPUT_FEATURE_DIMENSION,
                                        MP_ATTR_OUTPUT_BATCH_DIMENSION};
  const int32_t lane = (int32_t)mp_op_int(op, lanes[operand], 0);
  const int32_t row = (int32_t)mp_op_int(op, rows[operand], 0);
  const mp_type_t *type = operand < 2 ? op->operands[operand]->type : op->results[0].type;
  return mp_tile_layout_of(type, row, lane);
}

static bool layout_matmul_is_either(mp_tile_layout_t layout, mp_tile_layout_t of) {
  return (layout.lane == of.lane && layout.sublane == of.sublane) ||
         (layout.lane == of.sublane && layout.sublane == of.lane);
}

// ---- both ----

bool mp_tile_layout_reads(const mp_op_t *op, uint32_t operand, mp_tile_layout_t layout) {
  const mp_type_t *type = op->operands[operand]->type;
  if (op->code == MP_OP_CONVOLUTION) {
    const mp_tile_layout_t image = layout_matmul_image(op, operand);
    return layout.lane == image.lane || layout.lane == image.sublane;
  }
  // Its kernel brings what is wanted into the sublanes as it reads.
  const layout_matmul_dims_t dims = layout_matmul_dims(op, operand);
  if (layout.is_split) return false;
  const uint64_t inside = layout_matmul_all(type) & ~dims.batch;
  return layout_matmul_tile(type, inside) < 0 || layout_matmul_has(inside, layout.lane);
}

bool mp_tile_layout_writes(const mp_op_t *op, mp_tile_layout_t layout) {
  if (op->code == MP_OP_CONVOLUTION) {
    return layout_matmul_is_either(layout, layout_matmul_image(op, 2));
  }
  uint64_t lhs, rhs;
  layout_matmul_free(op, &lhs, &rhs);
  return layout_matmul_fits(op->results[0].type, layout, lhs, rhs);
}

mp_tile_layout_t mp_tile_layout_read(const mp_op_t *op, uint32_t operand) {
  const mp_type_t *type = op->operands[operand]->type;
  if (op->code == MP_OP_CONVOLUTION) return layout_matmul_image(op, operand);
  const layout_matmul_dims_t dims = layout_matmul_dims(op, operand);
  const uint64_t free = layout_matmul_all(type) & ~dims.batch & ~dims.contracted;
  const int32_t a = layout_matmul_tile(type, free), b = layout_matmul_tile(type, dims.contracted);
  return a < b ? mp_tile_layout_of(type, a, b) : mp_tile_layout_of(type, b, a);
}

mp_tile_layout_t mp_tile_layout_written(const mp_op_t *op) {
  const mp_type_t *type = op->results[0].type;
  if (op->code == MP_OP_CONVOLUTION) return layout_matmul_image(op, 2);
  uint64_t lhs, rhs;
  layout_matmul_free(op, &lhs, &rhs);
  return mp_tile_layout_of(type, layout_matmul_tile(type, lhs), layout_matmul_tile(type, rhs));
}
