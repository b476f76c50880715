// From the parts of a kernel to its time: they run beside each other, behind a latency.
#include "sim/chip/cost/kernel_cost.h"

#include <math.h>

#include "sim/chip/cost/irregular_cost.h"
#include "sim/chip/cost/product_cost.h"
#include "sim/chip/cost/vector_cost.h"

// What streams through memory takes. The first byte comes after a latency.
static double kernel_cost_memory(const mp_chip_t *chip, double bytes) {
  if (bytes == 0) return 0;
  return mp_figure_or(chip->figures.memory_latency, 0) + bytes / chip->memory_bandwidth;
}

double mp_kernel_scalar_seconds(const mp_chip_t *chip) {
  return chip->scalar_latency;
}

double mp_kernel_copy_seconds(const mp_chip_t *chip, double bytes) {
  return kernel_cost_memory(chip, bytes) / chip->efficiency[MP_WORK_COPY] + chip->op_latency;
}

typedef struct {
  double vector;     // seconds of the vector unit
  double irregular;  // seconds of ops that have their own ways through memory
} kernel_parts_t;

static kernel_parts_t kernel_cost_parts(const mp_chip_t *chip, const mp_clusters_t *clusters,
                                        const mp_cluster_t *cluster) {
  kernel_parts_t parts = {0};
  uint32_t at = cluster->first_member;
  while (at != MP_CLUSTER_NONE) {
    const mp_cluster_member_t *member = &clusters->members.items[at];
    double seconds = 0;
    if (mp_irregular_seconds(chip, member->op, &seconds)) {
      parts.irregular += seconds;
    } else {
      parts.vector += mp_vector_seconds(chip, member->op);
    }
    at = member->next;
  }
  return parts;
}

double mp_kernel_seconds(const mp_chip_t *chip, const mp_clusters_t *clusters,
                         const mp_cluster_t *cluster, double bytes) {
  const mp_work_t *work = &cluster->work;
  if (work->work_class == MP_WORK_FREE || work->work_class == MP_WORK_COLLECTIVE) return 0;
  if (work->work_class == MP_WORK_SCALAR) return mp_kernel_scalar_seconds(chip);
  const kernel_parts_t parts = kernel_cost_parts(chip, clusters, cluster);
  const double efficiency = chip->efficiency[work->work_class];
  if (work->product.batch > 0) {
    const mp_product_kernel_t product = {&work->product, bytes, parts.vector, efficiency};
    return fmax(mp_product_seconds(chip, &product), parts.irregular / efficiency);
  }
  const double seconds = fmax(fmax(parts.vector, parts.irregular), kernel_cost_memory(chip, bytes));
  return seconds / efficiency + chip->op_latency;
}
