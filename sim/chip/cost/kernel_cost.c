// From the parts of a kernel to its time: they run beside each other, behind a latency.
#include "sim/chip/cost/kernel_cost.h"

#include <math.h>

#include "sim/chip/clusters/cluster_kinds.h"
#include "sim/chip/cost/irregular_cost.h"
#include "sim/chip/cost/product_cost.h"
#include "sim/chip/cost/product_ragged.h"
#include "sim/chip/cost/vector_cost.h"
#include "sim/chip/rules/chip_rules.h"

// The first byte comes after a latency, and beside the first window that is read and the last one
// that is written there is nothing else.
double mp_kernel_memory_latency(const mp_chip_t *chip, double bytes) {
  if (bytes == 0) return 0;
  const double ramp = fmin(bytes, mp_figure_or(chip->figures.memory_ramp, 0));
  return mp_figure_or(chip->figures.memory_latency, 0) + ramp / chip->memory_bandwidth;
}

// What streams through memory takes.
static double kernel_cost_memory(const mp_chip_t *chip, double bytes) {
  return mp_kernel_memory_latency(chip, bytes) + bytes / chip->memory_bandwidth;
}

double mp_kernel_scalar_seconds(const mp_chip_t *chip) {
  return chip->scalar_latency;
}

double mp_kernel_copy_seconds(const mp_chip_t *chip, double bytes) {
  return kernel_cost_memory(chip, bytes) / chip->efficiency[MP_WORK_COPY] + chip->op_latency;
}

double mp_kernel_near_copy_seconds(const mp_chip_t *chip, double elements) {
  return elements / chip->vector_flops + chip->op_latency;
}

typedef struct {
  double vector;     // seconds of the vector unit
  double irregular;  // seconds of ops that have their own ways through memory
  double before;     // seconds of kernels in front of it
} kernel_parts_t;

// XLA for GPUs makes arrays of the first, second, ... words of all blocks of random bits, which the
// next kernel lays side by side.
static double kernel_cost_words(const mp_chip_t *chip, const mp_op_t *op) {
  const bool is_by_word = op->code == MP_OP_RNG_BIT_GENERATOR &&
                          chip->figures.compiler == MP_CHIP_COMPILER_GPU &&
                          mp_chip_rule(&chip->figures, MP_CHIP_RULE_random_bits_words);
  if (!is_by_word) return 0;
  return mp_kernel_copy_seconds(chip, 2 * mp_work_bytes_of(op->results[1].type));
}

// Of a select_and_scatter XLA for GPUs makes several kernels; `bytes` of this one are those of all
// arrays that a program has of it, once each.
static double kernel_cost_selected(const mp_chip_t *chip, const mp_op_t *op) {
  const double kernels = mp_cluster_selected_kernels(op);
  if (kernels == 0 || chip->figures.compiler != MP_CHIP_COMPILER_GPU ||
      !mp_chip_rule(&chip->figures, MP_CHIP_RULE_select_scatter_kernels)) {
    return 0;
  }
  return mp_kernel_copy_seconds(chip, mp_cluster_selected_moved(op)) +
         (kernels - 1) * chip->op_latency;
}

// Windows of what lies in scratch memory are laid out anew there, which is so many times sooner
// done.
static double kernel_cost_near(const mp_chip_t *chip, const mp_cluster_t *cluster,
                               const mp_op_t *op) {
  enum { TIMES = 10 };
  const double all = cluster->bytes + cluster->scratch_bytes;
  const bool is_window = op->code == MP_OP_REDUCE_WINDOW || op->code == MP_OP_SELECT_AND_SCATTER;
  if (!is_window || cluster->scratch_bytes == 0 ||
      !mp_chip_rule(&chip->figures, MP_CHIP_RULE_window_in_vmem)) {
    return 1;
  }
  return 1 - cluster->scratch_bytes / all * (1 - 1.0 / TIMES);
}

static kernel_parts_t kernel_cost_parts(const mp_chip_t *chip, const mp_clusters_t *clusters,
                                        const mp_cluster_t *cluster) {
  kernel_parts_t parts = {0};
  uint32_t at = cluster->first_member;
  while (at != MP_CLUSTER_NONE) {
    const mp_cluster_member_t *member = &clusters->members.items[at];
    double seconds = 0;
    if (mp_irregular_seconds(chip, member->op, &seconds)) {
      parts.irregular += seconds * kernel_cost_near(chip, cluster, member->op);
    } else {
      parts.vector += mp_vector_seconds(chip, member->op);
    }
    parts.before += kernel_cost_words(chip, member->op) + kernel_cost_selected(chip, member->op);
    at = member->next;
  }
  return parts;
}

// ---- products ----

static void kernel_cost_add_read(const mp_cluster_access_t *access, mp_product_streams_t *streams,
                                 mp_product_streams_t *inner) {
  if (access->is_scratch) return;
  const bool is_updated = access->is_fetched && access->sides == MP_CLUSTER_BESIDE;
  if ((access->sides & MP_CLUSTER_BESIDE) != 0 && !is_updated) streams->beside += access->bytes;
  if (access->is_fetched) return;
  streams->is_near = false;
  if ((access->sides & MP_CLUSTER_LHS) != 0) streams->factors[0] += access->bytes;
  if ((access->sides & MP_CLUSTER_RHS) != 0) streams->factors[1] += access->bytes;
  if ((access->sides & MP_CLUSTER_INNER_LHS) != 0) inner->factors[0] += access->bytes;
  if ((access->sides & MP_CLUSTER_INNER_RHS) != 0) inner->factors[1] += access->bytes;
}

// The figures of scratch memory are those of products; convolutions lay their windows out as well.
static void kernel_cost_add_write(const mp_chip_t *chip, const mp_cluster_t *cluster,
                                  const mp_cluster_access_t *access,
                                  mp_product_streams_t *streams) {
  const bool is_narrow = mp_dtype_bits(access->value->type->dtype) <= 16;
  const bool is_near = access->is_scratch || access->is_fetched;
  const bool is_convolution = is_near && cluster->work.product.convolution.window > 0 &&
                              mp_chip_rule(&chip->figures, MP_CHIP_RULE_conv_vmem_write);
  const double near =
      is_convolution ? MP_PRODUCT_SCRATCH_WRITE : mp_product_near_write(chip, is_narrow);
  streams->is_near &= is_near;
  streams->is_narrow_near |= is_near && is_narrow;
  *(is_narrow ? &streams->narrow : &streams->wide) += access->bytes / (is_near ? near : 1);
}

// Whether the kernel writes as many elements as its matmul has results.
static bool kernel_cost_writes_all(const mp_clusters_t *clusters, const mp_cluster_t *cluster) {
  const mp_work_product_t *product = &cluster->work.product;
  const uint32_t first = cluster->first_access + cluster->num_reads;
  for (uint32_t i = first; i < first + cluster->num_writes; ++i) {
    const double count = mp_cluster_value_count(clusters->accesses.items[i].value);
    if (count >= product->batch * product->m * product->n) return true;
  }
  return false;
}

// Whether the kernel of a matmul sums the rows of the result that it writes: the squares of a norm,
// for example. The sums are taken over sublanes, so that rows are in the lanes.
static bool kernel_cost_sums_rows(const mp_chip_t *chip, const mp_clusters_t *clusters,
                                  const mp_cluster_t *cluster) {
  enum { ROWS_LEAST = 8192 };
  const mp_work_product_t *product = &cluster->work.product;
  uint32_t num_sums = 0;
  bool is_of_rows = true;
  for (uint32_t at = cluster->first_member; at != MP_CLUSTER_NONE;) {
    const mp_cluster_member_t *member = &clusters->members.items[at];
    at = member->next;
    if (member->op->code != MP_OP_REDUCE || member->sides != MP_CLUSTER_BESIDE) continue;
    num_sums += member->op->num_results;
    is_of_rows &= mp_cluster_row(member->op) == product->n;
  }
  const bool is_large = product->batch == 1 && product->m >= ROWS_LEAST;
  return num_sums == 1 && is_of_rows && is_large && kernel_cost_writes_all(clusters, cluster) &&
         mp_product_is_tpu(chip) && mp_chip_rule(&chip->figures, MP_CHIP_RULE_matmul_row_sums);
}

static mp_product_streams_t kernel_cost_streams(const mp_chip_t *chip,
                                                const mp_clusters_t *clusters,
                                                const mp_cluster_t *cluster,
                                                mp_product_streams_t *out_inner) {
  mp_product_streams_t streams = {
      .has_rows_in_lanes = kernel_cost_sums_rows(chip, clusters, cluster),
      .is_near = true,
      .is_rows = cluster->is_rows && !isnan(chip->figures.product_rows)};
  streams.is_rows_again = streams.is_rows && mp_cluster_makes_rows_again(clusters, cluster);
  *out_inner = (mp_product_streams_t){0};
  const uint32_t first = cluster->first_access, end = first + cluster->num_reads;
  for (uint32_t i = first; i < end; ++i) {
    kernel_cost_add_read(&clusters->accesses.items[i], &streams, out_inner);
  }
  for (uint32_t i = 0; i < cluster->num_writes; ++i) {
    const mp_cluster_access_t *access = &clusters->accesses.items[end + i];
    // Rows are made in scratch memory, where it is known what they take.
    if (!streams.is_rows || !access->is_scratch) {
      kernel_cost_add_write(chip, cluster, access, &streams);
    }
  }
  return streams;
}

static double kernel_cost_product(const mp_chip_t *chip, const mp_clusters_t *clusters,
                                  const mp_cluster_t *cluster, double bytes, double vector) {
  mp_product_streams_t inner_streams;
  const mp_product_streams_t streams = kernel_cost_streams(chip, clusters, cluster, &inner_streams);
  const double efficiency = chip->efficiency[cluster->work.work_class];
  mp_work_product_t work = cluster->work.product;
  double steps;
  mp_product_ragged(chip, cluster, &work, &steps);
  mp_product_kernel_t product = {.product = &work,
                                 .bytes = bytes,
                                 .vector_seconds = vector,
                                 .efficiency = efficiency,
                                 .streams = &streams};
  if (cluster->inner.batch > 0) {
    product.inner = &cluster->inner;
    product.inner_streams = &inner_streams;
    product.inner_seconds = mp_product_inner_seconds(chip, &cluster->inner, &inner_streams);
  }
  return steps / efficiency + mp_product_seconds(chip, &product);
}

double mp_kernel_seconds(const mp_chip_t *chip, const mp_clusters_t *clusters,
                         const mp_cluster_t *cluster, double bytes) {
  const mp_work_t *work = &cluster->work;
  if (work->work_class == MP_WORK_FREE || work->work_class == MP_WORK_COLLECTIVE) return 0;
  if (work->work_class == MP_WORK_SCALAR) return mp_kernel_scalar_seconds(chip);
  const kernel_parts_t parts = kernel_cost_parts(chip, clusters, cluster);
  const double efficiency = chip->efficiency[work->work_class];
  if (work->product.batch > 0) {
    const double seconds = kernel_cost_product(chip, clusters, cluster, bytes, parts.vector);
    return fmax(seconds, parts.irregular / efficiency);
  }
  const double seconds = fmax(fmax(parts.vector, parts.irregular), kernel_cost_memory(chip, bytes));
  return parts.before + seconds / efficiency + chip->op_latency;
}
