// How many blocks of threads XLA's compiler for GPUs has for a sum. Few of them cannot ask the
// memory for as much as it could give.
#include <math.h>

#include "sim/chip/clusters/cluster_impl.h"

#define CLUSTER_BLOCKS_WARP 32.0
// Elements that one block adds up at most (ReductionDimensionRaceFreeBound): of a row, 16 by each
// of 1,024 threads; of a column 128 by each of 32. Sums of more are two, the first one of about as
// many parts as these have elements (TreeReductionRewriter).
#define CLUSTER_BLOCKS_ROW_MOST    16384.0
#define CLUSTER_BLOCKS_COLUMN_MOST 4096.0
// Threads of a block that goes through rows, and what each of them adds up.
#define CLUSTER_BLOCKS_THREADS 256.0
#define CLUSTER_BLOCKS_EACH    16.0

// What is summed up as the compiler sees it: of several groups of dimensions the largest first
// (ReductionSplitter).
typedef struct {
  double before, summed, after;  // elements: of dimensions outside, of the group, inside of it
} cluster_blocks_shape_t;

static cluster_blocks_shape_t cluster_blocks_shape(const mp_op_t *sum) {
  const mp_type_t *type = sum->operands[0]->type;
  const uint64_t dims = mp_cluster_reduced_dims(sum);
  cluster_blocks_shape_t best = {1, 0, 1};
  double before = 1;
  for (uint32_t d = 0; d < type->rank;) {
    double summed = 1;
    uint32_t end = d;
    while (end < type->rank && (dims >> (end & 63) & 1 || type->dims[end] == 1)) {
      summed *= (double)type->dims[end++];
    }
    if (summed > best.summed) best = (cluster_blocks_shape_t){before, summed, 1};
    before *= summed;
    if (end < type->rank) before *= (double)type->dims[end++];
    d = end;
  }
  best.after = before / fmax(best.before * best.summed, 1);
  return best;
}

// Elements of neighbouring columns that a thread adds up (GetVectorSizeForMlir).
static double cluster_blocks_vector(uint32_t bits, double columns) {
  if (fmod(columns, 2) != 0 || columns < 2 * CLUSTER_BLOCKS_WARP || bits > 32) return 1;
  return bits < 32 && columns >= 4 * CLUSTER_BLOCKS_WARP ? 4 : 2;
}

static double cluster_blocks_of_rows(double rows, double row) {
  if (row > CLUSTER_BLOCKS_ROW_MOST) {
    rows *= floor(sqrt(row));
    row = ceil(sqrt(row));
  }
  const double warps = ceil(ceil(row / CLUSTER_BLOCKS_EACH) / CLUSTER_BLOCKS_WARP);
  return ceil(rows / fmax(1, floor(CLUSTER_BLOCKS_THREADS / (warps * CLUSTER_BLOCKS_WARP))));
}

// The parts of so many elements, each as long: no more than the root, and the most there are from
// half of it on; if there are none, the last one is filled up.
static double cluster_blocks_parts(double count) {
  const double root = floor(sqrt(count));
  for (double parts = root; 2 * parts > root; --parts) {
    if (fmod(count, parts) == 0) return parts;
  }
  return root;
}

double mp_cluster_blocks(const mp_op_t *sum, uint32_t bits) {
  if (sum->code != MP_OP_REDUCE || mp_cluster_is_summed_by_threads(sum)) return INFINITY;
  const cluster_blocks_shape_t shape = cluster_blocks_shape(sum);
  if (shape.after <= 1) return cluster_blocks_of_rows(shape.before, shape.summed);
  double parts = shape.before;
  if (shape.summed > CLUSTER_BLOCKS_COLUMN_MOST) parts *= cluster_blocks_parts(shape.summed);
  const double vector = cluster_blocks_vector(bits, shape.after);
  return parts * ceil(shape.after / (CLUSTER_BLOCKS_WARP * vector));
}

// IsUnnestedReductionFasterThanElemental.
bool mp_cluster_is_summed_by_threads(const mp_op_t *sum) {
  if (sum->code != MP_OP_REDUCE) return false;
  const cluster_blocks_shape_t shape = cluster_blocks_shape(sum);
  if (shape.summed >= CLUSTER_BLOCKS_WARP) return false;
  return shape.after > 1 || shape.summed == 0 || fmod(CLUSTER_BLOCKS_WARP, shape.summed) != 0;
}
