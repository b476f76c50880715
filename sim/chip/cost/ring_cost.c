#include "sim/chip/cost/ring_cost.h"
#include "sim/base/assert.h"

#include <math.h>

#include "sim/chip/cost/matmul_cost.h"

// How often a scattered result goes through HBM: two summands, their sum, and a copy.
#define RING_COST_SCATTER_PASSES 5

typedef struct {
  double parts;
  double result;  // bytes of the whole matmul's result
  bool is_near;   // a part and the result are in VMEM
} ring_cost_t;

// Messages go around in both directions, so each part has the data of two members.
static ring_cost_t ring_cost_of(const mp_chip_t *chip, const mp_work_matmul_t *matmul, double bytes,
                                const mp_ring_matmul_t *ring) {
  ring_cost_t cost = {.parts = ceil(ring->members / 2.0)};
  const double width = mp_dtype_bits(matmul->result) / 8.0;
  cost.result = matmul->batch * matmul->m * matmul->n * width;
  const double scratch = mp_figure_or(chip->figures.memory_scratch, 0);
  cost.is_near = bytes / cost.parts + cost.result <= scratch / 2;
  return cost;
}

static mp_work_matmul_t ring_cost_matmul(const ring_cost_t *cost, const mp_work_matmul_t *whole,
                                         const mp_ring_matmul_t *ring) {
  mp_work_matmul_t matmul = *whole;
  double *side = matmul.m > matmul.n ? &matmul.m : &matmul.n;
  if (ring->kind == MP_RING_OF_SUMS) side = &matmul.k;
  *side = ceil(*side / cost->parts);
  return matmul;
}

static double ring_cost_part(const mp_chip_t *chip, const ring_cost_t *cost,
                             const mp_chip_fusion_t *fusion, double bytes,
                             const mp_ring_matmul_t *ring) {
  const mp_work_matmul_t matmul = ring_cost_matmul(cost, &fusion->work.matmul, ring);
  const bool is_sum = ring->kind == MP_RING_OF_SUMS;
  const double faster = mp_figure_or(chip->figures.matmul_ring_write, MP_MATMUL_SCRATCH_WRITE);
  const double written = (is_sum ? cost->result : cost->result / cost->parts) / faster;
  mp_matmul_streams_t near = {0};
  *(mp_dtype_bits(matmul.result) <= 16 ? &near.narrow : &near.wide) = written;
  // If parts are summed, each writes the whole result, and all but the first read it. A part in
  // VMEM is assembled from two messages, in a kernel with the launch of one that reads HBM.
  const double again = is_sum ? cost->result * (2 - 2 / cost->parts) : 0;
  const mp_matmul_kernel_t kernel = {.matmul = &matmul,
                                     .bytes = cost->is_near ? 1 : bytes / cost->parts + again,
                                     .efficiency = chip->efficiency[MP_WORK_MATMUL],
                                     .streams = cost->is_near ? &near : NULL};
  return mp_matmul_seconds(chip, &kernel);
}

mp_kernel_time_t mp_ring_time(const mp_chip_t *chip, const mp_chip_fusions_t *fusions,
                              const mp_chip_fusion_t *fusion, double bytes,
                              const mp_ring_matmul_t *ring) {
  mp_kernel_time_t time = mp_kernel_time(chip, fusions, fusion, bytes);
  const mp_work_matmul_t *matmul = &fusion->work.matmul;
  if (ring->kind == MP_RING_NONE || matmul->batch <= 0 || !mp_matmul_has_windows(chip)) return time;
  MP_ASSERT(ring->members > 1);
  const ring_cost_t cost = ring_cost_of(chip, matmul, bytes, ring);
  double seconds = cost.parts * ring_cost_part(chip, &cost, fusion, bytes, ring);
  if (ring->kind == MP_RING_OF_SCATTERS) {
    seconds += RING_COST_SCATTER_PASSES * cost.result / chip->memory_bandwidth;
  }
  time.seconds = fmax(seconds, time.seconds);
  return time;
}
