#include "sim/chip/cost/ring_cost.h"

#include <math.h>

#include "sim/chip/cost/kernel_cost.h"
#include "sim/chip/cost/product_cost.h"
#include "sim/chip/cost/vector_cost.h"
#include "sim/chip/rules/chip_rules.h"

// So often a scattered result goes through memory: two that are added up and their sum, and a copy.
#define RING_COST_SCATTER_PASSES 5

typedef struct {
  double parts;
  double result;  // bytes of the whole product's result
  bool is_near;   // a part and the result lie in scratch memory
} ring_cost_t;

// Messages go both ways round, so that a part has what two members bring.
static ring_cost_t ring_cost_of(const mp_chip_t *chip, const mp_work_product_t *product,
                                double bytes, const mp_ring_product_t *ring) {
  ring_cost_t cost = {.parts = ceil(ring->members / 2.0)};
  const double width = mp_dtype_bits(product->result) / 8.0;
  cost.result = product->batch * product->m * product->n * width;
  const double scratch = mp_figure_or(chip->figures.memory_scratch, 0);
  cost.is_near = bytes / cost.parts + cost.result <= scratch / 2 &&
                 mp_chip_rule(&chip->figures, MP_CHIP_RULE_ring_in_vmem);
  return cost;
}

static mp_work_product_t ring_cost_product(const ring_cost_t *cost, const mp_work_product_t *whole,
                                           const mp_ring_product_t *ring) {
  mp_work_product_t product = *whole;
  double *side = product.m > product.n ? &product.m : &product.n;
  if (ring->kind == MP_RING_OF_SUMS) side = &product.k;
  *side = ceil(*side / cost->parts);
  return product;
}

static double ring_cost_part(const mp_chip_t *chip, const ring_cost_t *cost,
                             const mp_cluster_t *cluster, double bytes,
                             const mp_ring_product_t *ring) {
  const mp_work_product_t product = ring_cost_product(cost, &cluster->work.product, ring);
  const bool is_sum = ring->kind == MP_RING_OF_SUMS;
  const double faster = mp_figure_or(chip->figures.product_ring_write, MP_PRODUCT_SCRATCH_WRITE);
  const double written = (is_sum ? cost->result : cost->result / cost->parts) / faster;
  mp_product_streams_t near = {0};
  *(mp_dtype_bits(product.result) <= 16 ? &near.narrow : &near.wide) = written;
  // Each writes the whole result, and all but the first have read it. What lies near is put
  // together out of two messages, in a kernel that is launched as one that reads memory.
  const double again = is_sum ? cost->result * (2 - 2 / cost->parts) : 0;
  const mp_product_kernel_t kernel = {.product = &product,
                                      .bytes = cost->is_near ? 1 : bytes / cost->parts + again,
                                      .efficiency = chip->efficiency[MP_WORK_MATMUL],
                                      .streams = cost->is_near ? &near : NULL};
  return mp_product_seconds(chip, &kernel);
}

// What would be fused behind the product is a kernel of its own.
static double ring_cost_behind(const mp_chip_t *chip, const mp_clusters_t *clusters,
                               const mp_cluster_t *cluster, const ring_cost_t *cost) {
  double vector = 0;
  for (uint32_t at = cluster->first_member; at != MP_CLUSTER_NONE;) {
    const mp_cluster_member_t *member = &clusters->members.items[at];
    const bool is_part = !member->is_epilogue || member->op->code == MP_OP_CONVERT;
    vector += is_part ? 0 : mp_vector_seconds(chip, member->op);
    at = member->next;
  }
  if (vector == 0 || !mp_chip_rule(&chip->figures, MP_CHIP_RULE_ring_epilogue)) return 0;
  const double memory = cost->is_near ? 0 : 2 * cost->result / chip->memory_bandwidth;
  return fmax(vector, memory) + chip->op_latency;
}

double mp_ring_seconds(const mp_chip_t *chip, const mp_clusters_t *clusters,
                       const mp_cluster_t *cluster, double bytes, const mp_ring_product_t *ring) {
  const double whole = mp_kernel_seconds(chip, clusters, cluster, bytes);
  const mp_work_product_t *product = &cluster->work.product;
  if (ring->kind == MP_RING_NONE || product->batch <= 0 || !mp_product_is_tpu(chip)) return whole;
  const ring_cost_t cost = ring_cost_of(chip, product, bytes, ring);
  double seconds = cost.parts * ring_cost_part(chip, &cost, cluster, bytes, ring) +
                   ring_cost_behind(chip, clusters, cluster, &cost);
  if (ring->kind == MP_RING_OF_SCATTERS &&
      mp_chip_rule(&chip->figures, MP_CHIP_RULE_ring_scatter_passes)) {
    seconds += RING_COST_SCATTER_PASSES * cost.result / chip->memory_bandwidth;
  }
  return fmax(seconds, whole);
}
