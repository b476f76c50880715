// The time of a kernel from its parts, which overlap, and its latency.
#include "sim/chip/cost/kernel_cost.h"
#include "sim/base/assert.h"

#include <math.h>

#include "sim/chip/cost/irregular_cost.h"
#include "sim/chip/cost/matmul_cost.h"
#include "sim/chip/cost/vector_cost.h"
#include "sim/chip/fuse/chip_fusion_kinds.h"
#include "sim/chip/rules/chip_rules.h"

// The latency of memory, and the time of the first read window and the last written one, with which
// nothing overlaps.
double mp_kernel_memory_latency(const mp_chip_t *chip, double bytes) {
  if (bytes == 0) return 0;
  const double ramp = fmin(bytes, mp_figure_or(chip->figures.memory_ramp, 0));
  return mp_figure_or(chip->figures.memory_latency, 0) + ramp / chip->memory_bandwidth;
}

// The seconds of bytes that stream through memory.
static double kernel_cost_memory(const mp_chip_t *chip, double bytes) {
  return mp_kernel_memory_latency(chip, bytes) + bytes / chip->memory_bandwidth;
}

double mp_kernel_scalar_seconds(const mp_chip_t *chip) {
  return chip->scalar_latency;
}

double mp_kernel_copy_seconds(const mp_chip_t *chip, double bytes) {
  return kernel_cost_memory(chip, bytes) / chip->efficiency[MP_WORK_COPY] + chip->op_latency;
}

// The kernel waits for no copy between HBM and VMEM.
static double kernel_cost_latency(const mp_chip_t *chip, double bytes) {
  return bytes > 0 ? chip->op_latency : mp_figure_or(chip->figures.vmem_latency, chip->op_latency);
}

typedef struct {
  double vector;     // seconds of the vector unit
  double irregular;  // seconds of ops with an access pattern of their own
  double before;     // seconds of kernels that run before it
  mp_matmul_ragged_t ragged;
} kernel_parts_t;

// How many times more rows an op masks than a ragged matmul reads.
static double kernel_cost_unread(const mp_matmul_ragged_t *ragged,
                                 const mp_chip_fusion_member_t *member) {
  if (ragged->groups == 0) return 1;
  const double count = mp_chip_fusion_value_count(&member->op->results[0]);
  const bool is_masked = count == ragged->masked[0] || count == ragged->masked[1];
  return is_masked ? ragged->groups : 1;
}

// XLA for GPUs writes random bits word by word of all blocks; the next kernel interleaves the
// words.
static double kernel_cost_words(const mp_chip_t *chip, const mp_op_t *op) {
  const bool is_by_word = op->code == MP_OP_RNG_BIT_GENERATOR &&
                          chip->figures.compiler == MP_CHIP_COMPILER_GPU &&
                          mp_chip_rule(&chip->figures, MP_CHIP_RULE_expanded_ops);
  if (!is_by_word) return 0;
  return mp_kernel_copy_seconds(chip, 2 * mp_work_bytes_of(op->results[1].type));
}

// The other kernels that XLA for GPUs makes of a select_and_scatter. The bytes of this kernel have
// each of its arrays once.
static double kernel_cost_selected(const mp_chip_t *chip, const mp_op_t *op) {
  const double kernels = mp_chip_fusion_selected_kernels(op);
  if (kernels == 0 || chip->figures.compiler != MP_CHIP_COMPILER_GPU ||
      !mp_chip_rule(&chip->figures, MP_CHIP_RULE_expanded_ops)) {
    return 0;
  }
  return mp_kernel_copy_seconds(chip, mp_chip_fusion_selected_moved(op)) +
         (kernels - 1) * chip->op_latency;
}

// Windows of arrays in VMEM change their layout there, which is ten times as fast.
static double kernel_cost_near(const mp_chip_t *chip, const mp_chip_fusion_t *fusion,
                               const mp_op_t *op) {
  const bool is_moved = op->code == MP_OP_REVERSE || mp_chip_fusion_cumulative(op) >= 0;
  if (is_moved && fusion->bytes == 0 && mp_vmem_is_known(chip)) return 0;
  enum { TIMES = 10 };
  const double all = fusion->bytes + fusion->vmem_bytes;
  const bool is_window = op->code == MP_OP_REDUCE_WINDOW || op->code == MP_OP_SELECT_AND_SCATTER;
  if (!is_window || fusion->vmem_bytes == 0 ||
      !mp_chip_rule(&chip->figures, MP_CHIP_RULE_window_in_vmem)) {
    return 1;
  }
  return 1 - fusion->vmem_bytes / all * (1 - 1.0 / TIMES);
}

static kernel_parts_t kernel_cost_parts(const mp_chip_t *chip, const mp_chip_fusions_t *fusions,
                                        const mp_chip_fusion_t *fusion) {
  kernel_parts_t parts = {.ragged = mp_matmul_ragged_find(chip, fusion)};
  uint32_t at = fusion->first_member;
  while (at != MP_CHIP_FUSION_NONE) {
    const mp_chip_fusion_member_t *member = &fusions->members.items[at];
    double seconds = 0;
    if (mp_irregular_seconds(chip, member->op, &seconds)) {
      parts.irregular += seconds * kernel_cost_near(chip, fusion, member->op);
    } else {
      parts.vector += mp_vector_seconds(chip, member->op) * mp_vmem_padding(chip, member->op) /
                      kernel_cost_unread(&parts.ragged, member);
    }
    parts.before += kernel_cost_words(chip, member->op) + kernel_cost_selected(chip, member->op);
    at = member->next;
  }
  return parts;
}

// ---- matmuls ----

static void kernel_cost_add_read(const mp_chip_fusion_access_t *access,
                                 mp_matmul_streams_t *streams, mp_matmul_streams_t *inner) {
  if (access->space == MP_SPACE_VMEM) return;
  if ((access->sides & MP_CHIP_FUSION_BESIDE) != 0) streams->beside += access->bytes;
  if (access->space == MP_SPACE_PREFETCHED) return;
  streams->is_near = false;
  if ((access->sides & MP_CHIP_FUSION_LHS) != 0) streams->factors[0] += access->bytes;
  if ((access->sides & MP_CHIP_FUSION_RHS) != 0) streams->factors[1] += access->bytes;
  if ((access->sides & MP_CHIP_FUSION_INNER_LHS) != 0) inner->factors[0] += access->bytes;
  if ((access->sides & MP_CHIP_FUSION_INNER_RHS) != 0) inner->factors[1] += access->bytes;
}

static void kernel_cost_add_write(const mp_chip_t *chip, const mp_chip_fusion_access_t *access,
                                  mp_matmul_streams_t *streams) {
  const bool is_narrow = mp_dtype_bits(access->value->type->dtype) <= 16;
  const bool is_near = access->space != MP_SPACE_HBM;
  const double near = mp_matmul_near_write(chip, is_narrow);
  streams->is_near &= is_near;
  *(is_narrow ? &streams->narrow : &streams->wide) += access->bytes / (is_near ? near : 1);
}

// The seconds to swap the lanes and sublanes of an array as large as the result of the matmul; 0 of
// other arrays, and if the rows are in the lanes anyway.
static double kernel_cost_swap(const mp_chip_t *chip, const mp_layouts_t *layouts,
                               const mp_work_matmul_t *matmul,
                               const mp_chip_fusion_access_t *access) {
  const mp_value_t *value = access->value;
  const int32_t lane = layouts->values[value->id].lane;
  if (lane < 0 || lane + 1 != (int32_t)value->type->rank) return 0;
  if (mp_chip_fusion_value_count(value) < matmul->m * matmul->n) return 0;
  const double elements = access->bytes * 8 / mp_dtype_bits(value->type->dtype);
  return elements * (access->space == MP_SPACE_VMEM
                         ? mp_figure_or(chip->figures.vmem_transpose, 0) / 1024
                         : mp_figure_or(chip->figures.tiles_swap, 0));
}

// Whether an op sums rows that are at least as many as their elements. Leading dimensions do not
// count: of [2, 1024, 2048] there are 1024.
static bool kernel_cost_sums_many(const mp_op_t *op, double row) {
  const mp_type_t *type = op->operands[0]->type;
  return mp_chip_fusion_row(op) == row && type->rank >= 2 &&
         type->dims[type->rank - 2] >= type->dims[type->rank - 1];
}

// Whether the kernel of a matmul also sums the rows of the result that it writes, for example the
// squares of a norm. libtpu 0.0.52 then has rows in the lanes if they are at least as many as their
// elements: [n, n] for n from 512 to 24,576, but not [4096, 4352] (v5e and v6e).
static bool kernel_cost_sums_rows(const mp_chip_t *chip, const mp_chip_fusions_t *fusions,
                                  const mp_chip_fusion_t *fusion) {
  const mp_work_matmul_t *matmul = &fusion->work.matmul;
  if (chip->figures.compiler != MP_CHIP_COMPILER_TPU || matmul->batch != 1) return false;
  uint32_t num_sums = 0;
  for (uint32_t at = fusion->first_member; at != MP_CHIP_FUSION_NONE;) {
    const mp_chip_fusion_member_t *member = &fusions->members.items[at];
    at = member->next;
    if (member->op->code != MP_OP_REDUCE || member->sides != MP_CHIP_FUSION_BESIDE) continue;
    if (!kernel_cost_sums_many(member->op, matmul->n)) return false;
    num_sums += member->op->num_results;
  }
  return num_sums == 1;
}

// The seconds of copies for such sums: the inputs of the epilogue before the kernel, and its
// results after it.
static double kernel_cost_swaps(const mp_chip_t *chip, const mp_chip_fusions_t *fusions,
                                const mp_chip_fusion_t *fusion) {
  if (!kernel_cost_sums_rows(chip, fusions, fusion)) return 0;
  double before = 0, after = 0;
  for (uint32_t i = 0; i < fusion->num_reads + fusion->num_writes; ++i) {
    const mp_chip_fusion_access_t *access = &fusions->accesses.items[fusion->first_access + i];
    const double seconds = kernel_cost_swap(chip, &fusions->layouts, &fusion->work.matmul, access);
    if (i >= fusion->num_reads) {
      after += seconds;
    } else if ((access->sides & MP_CHIP_FUSION_BESIDE) != 0) {
      before += seconds;
    }
  }
  const bool is_used = after > 0 && mp_chip_rule(&chip->figures, MP_CHIP_RULE_matmul_row_sums);
  return is_used ? before + after : 0;
}

static mp_matmul_streams_t kernel_cost_streams(const mp_chip_t *chip,
                                               const mp_chip_fusions_t *fusions,
                                               const mp_chip_fusion_t *fusion,
                                               mp_matmul_streams_t *out_inner) {
  mp_matmul_streams_t streams = {.swaps = kernel_cost_swaps(chip, fusions, fusion),
                                 .is_near = true,
                                 .is_rows = fusion->is_rows && !isnan(chip->figures.matmul_rows)};
  streams.is_rows_again = streams.is_rows && mp_chip_fusion_makes_rows_again(fusions, fusion);
  *out_inner = (mp_matmul_streams_t){0};
  const uint32_t first = fusion->first_access, end = first + fusion->num_reads;
  for (uint32_t i = first; i < end; ++i) {
    kernel_cost_add_read(&fusions->accesses.items[i], &streams, out_inner);
  }
  for (uint32_t i = 0; i < fusion->num_writes; ++i) {
    const mp_chip_fusion_access_t *access = &fusions->accesses.items[end + i];
    // The time of a softmax of rows in VMEM is `matmul.rows`.
    if (!streams.is_rows || access->space == MP_SPACE_HBM) {
      kernel_cost_add_write(chip, access, &streams);
    }
  }
  return streams;
}

static double kernel_cost_matmul(const mp_chip_t *chip, const mp_chip_fusions_t *fusions,
                                 const mp_chip_fusion_t *fusion, double bytes,
                                 const kernel_parts_t *parts) {
  mp_matmul_streams_t inner_streams;
  const mp_matmul_streams_t streams = kernel_cost_streams(chip, fusions, fusion, &inner_streams);
  const double efficiency = chip->efficiency[fusion->work.work_class];
  mp_work_matmul_t work = fusion->work.matmul;
  const double steps = mp_matmul_ragged(chip, &parts->ragged, &work);
  mp_matmul_kernel_t matmul = {.matmul = &work,
                               .bytes = bytes,
                               .vector_seconds = parts->vector,
                               .efficiency = efficiency,
                               .streams = &streams};
  if (fusion->inner.batch > 0) {
    matmul.inner = &fusion->inner;
    matmul.inner_streams = &inner_streams;
    matmul.inner_seconds = mp_matmul_inner_seconds(chip, &fusion->inner, &inner_streams);
  }
  return steps / efficiency + mp_matmul_seconds(chip, &matmul);
}

double mp_kernel_flops(const mp_chip_t *chip, const mp_chip_fusion_t *fusion) {
  if (fusion->work.work_class == MP_WORK_FOREIGN) return mp_foreign_flops(fusion->hero);
  return fusion->work.flops / fmax(mp_matmul_ragged_find(chip, fusion).groups, 1);
}

double mp_kernel_seconds(const mp_chip_t *chip, const mp_chip_fusions_t *fusions,
                         const mp_chip_fusion_t *fusion, double bytes) {
  const mp_work_t *work = &fusion->work;
  if (work->work_class == MP_WORK_FREE || work->work_class == MP_WORK_COLLECTIVE) return 0;
  if (work->work_class == MP_WORK_SCALAR) return mp_kernel_scalar_seconds(chip);
  const kernel_parts_t parts = kernel_cost_parts(chip, fusions, fusion);
  MP_ASSERT(bytes >= 0 && parts.vector >= 0 && parts.irregular >= 0 && parts.before >= 0);
  const double efficiency = chip->efficiency[work->work_class];
  if (work->matmul.batch > 0) {
    const double seconds = kernel_cost_matmul(chip, fusions, fusion, bytes, &parts);
    return fmax(seconds, parts.irregular / efficiency);
  }
  const mp_vmem_seconds_t vmem = mp_vmem_seconds(chip, fusions, fusion);
  const double units = fmax(parts.vector + vmem.vector, vmem.others);
  const double seconds =
      fmax(fmax(units + vmem.latency, parts.irregular), kernel_cost_memory(chip, bytes));
  return parts.before + seconds / efficiency + kernel_cost_latency(chip, bytes);
}
