// The time of a kernel from its parts, which overlap, and its latency.
#include "sim/chip/cost/kernel_cost.h"

#include <math.h>

#include "sim/base/assert.h"
#include "sim/chip/cost/irregular_cost.h"
#include "sim/chip/cost/matmul_cost.h"
#include "sim/chip/cost/vector_cost.h"
#include "sim/chip/fuse/chip_fusion_kinds.h"
#include "sim/chip/layout/tile_layout.h"
#include "sim/chip/rules/chip_policy.h"
#include "sim/chip/rules/chip_rules.h"

// The parts so far, and the longest one.
static void kernel_cost_take(mp_kernel_time_t *time, double seconds, mp_kernel_part_t part,
                             const mp_op_t *op) {
  if (seconds > time->seconds) *time = (mp_kernel_time_t){seconds, part, op};
}

// The parts of a kernel that streams bytes. It waits for no copy between HBM and VMEM if there are
// none.
static mp_kernel_time_t kernel_cost_stream(const mp_chip_t *chip, double bytes,
                                           double *out_latency) {
  const bool is_near = bytes == 0 && !isnan(chip->figures.vmem_latency);
  *out_latency = is_near ? chip->figures.vmem_latency : chip->op_latency;
  mp_kernel_time_t time = {*out_latency, is_near ? MP_KERNEL_VMEM_LATENCY : MP_KERNEL_LATENCY,
                           NULL};
  kernel_cost_take(&time, mp_chip_memory_latency(chip, bytes), MP_KERNEL_MEMORY_LATENCY, NULL);
  kernel_cost_take(&time, bytes / chip->memory_bandwidth, MP_KERNEL_BYTES, NULL);
  return time;
}

static double kernel_cost_memory(const mp_chip_t *chip, double bytes) {
  return mp_chip_memory_latency(chip, bytes) + bytes / chip->memory_bandwidth;
}

mp_kernel_time_t mp_kernel_scalar_time(const mp_chip_t *chip) {
  return (mp_kernel_time_t){chip->scalar_latency, MP_KERNEL_SCALARS, NULL};
}

mp_kernel_time_t mp_kernel_copy_time(const mp_chip_t *chip, double bytes) {
  double latency;
  mp_kernel_time_t time = kernel_cost_stream(chip, bytes, &latency);
  time.seconds =
      kernel_cost_memory(chip, bytes) / chip->efficiency[MP_WORK_COPY] + chip->op_latency;
  return time;
}

// Ops that run one after the other.
typedef struct {
  double seconds, longest;
  const mp_op_t *op;  // the one that takes longest
} kernel_ops_t;

static void kernel_cost_add(kernel_ops_t *ops, const mp_op_t *op, double seconds) {
  ops->seconds += seconds;
  if (seconds <= ops->longest) return;
  ops->longest = seconds;
  ops->op = op;
}

typedef struct {
  kernel_ops_t vector;     // on the vector unit
  kernel_ops_t irregular;  // with an access pattern of their own
  double before;           // seconds of kernels that run before it
} kernel_parts_t;

// XLA for GPUs writes random bits word by word of all blocks; the next kernel interleaves the
// words.
static double kernel_cost_words(const mp_chip_t *chip, const mp_op_t *op) {
  const bool is_by_word = op->code == MP_OP_RNG_BIT_GENERATOR &&
                          mp_chip_policy(&chip->figures)->expands_ops &&
                          mp_chip_rule(&chip->figures, MP_CHIP_RULE_expanded_ops);
  if (!is_by_word) return 0;
  return mp_kernel_copy_time(chip, 2 * mp_work_bytes_of(op->results[1].type)).seconds;
}

// The other kernels that XLA for GPUs makes of a select_and_scatter. The bytes of this kernel have
// each of its arrays once.
static double kernel_cost_selected(const mp_chip_t *chip, const mp_op_t *op) {
  const double kernels = mp_chip_fusion_selected_kernels(op);
  if (kernels == 0 || !mp_chip_policy(&chip->figures)->expands_ops ||
      !mp_chip_rule(&chip->figures, MP_CHIP_RULE_expanded_ops)) {
    return 0;
  }
  return mp_kernel_copy_time(chip, mp_chip_fusion_selected_moved(op)).seconds +
         (kernels - 1) * chip->op_latency;
}

// Windows of arrays in VMEM change their layout there, which is ten times as fast.
static double kernel_cost_near(const mp_chip_t *chip, const mp_chip_fusion_t *fusion,
                               const mp_op_t *op) {
  enum { TIMES = 10 };
  const double all = fusion->bytes + fusion->vmem_bytes;
  const bool is_window = op->code == MP_OP_REDUCE_WINDOW || op->code == MP_OP_SELECT_AND_SCATTER;
  if (!is_window || fusion->vmem_bytes == 0 ||
      !mp_chip_rule(&chip->figures, MP_CHIP_RULE_window_in_vmem)) {
    return 1;
  }
  return 1 - fusion->vmem_bytes / all * (1 - 1.0 / TIMES);
}

// How many times more rows an op masks than a ragged_dot reads.
static double kernel_cost_unread(const mp_ragged_t *ragged, const mp_op_t *op) {
  if (ragged->groups == 0) return 1;
  const double count = mp_chip_fusion_op_count(op);
  return count == ragged->masked[0] || count == ragged->masked[1] ? ragged->groups : 1;
}

static kernel_parts_t kernel_cost_parts(const mp_chip_t *chip, const mp_chip_fusions_t *fusions,
                                        const mp_chip_fusion_t *fusion) {
  kernel_parts_t parts = {0};
  for (const mp_chip_fusion_member_t *m = NULL; mp_chip_fusion_visit(fusions, fusion, &m);) {
    double seconds = 0;
    if (mp_irregular_seconds(chip, m->op, &seconds)) {
      kernel_cost_add(&parts.irregular, m->op, seconds * kernel_cost_near(chip, fusion, m->op));
    } else {
      seconds = mp_vector_seconds(chip, m->op) * mp_vmem_padding(chip, m->op) /
                kernel_cost_unread(&fusion->ragged, m->op);
      kernel_cost_add(&parts.vector, m->op, seconds);
    }
    parts.before += kernel_cost_words(chip, m->op) + kernel_cost_selected(chip, m->op);
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
                         ? mp_figure_or(chip->figures.vmem_transpose, 0) / MP_TILE_ELEMENTS
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
  if (!mp_chip_policy(&chip->figures)->has_tiles || matmul->batch != 1) return false;
  uint32_t num_sums = 0;
  for (const mp_chip_fusion_member_t *m = NULL; mp_chip_fusion_visit(fusions, fusion, &m);) {
    if (m->op->code != MP_OP_REDUCE || m->sides != MP_CHIP_FUSION_BESIDE) continue;
    if (!kernel_cost_sums_many(m->op, matmul->n)) return false;
    num_sums += m->op->num_results;
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

// The elements of a matmul's operand that ops other than converts compute as the kernel reads it.
static double kernel_cost_computed(const mp_chip_t *chip, const mp_chip_fusions_t *fusions,
                                   const mp_chip_fusion_t *fusion, mp_chip_fusion_side_t side) {
  double most = 0;
  for (const mp_chip_fusion_member_t *m = NULL; mp_chip_fusion_visit(fusions, fusion, &m);) {
    const mp_op_t *op = m->op;
    if (m->sides != side || op->code == MP_OP_CONVERT) continue;
    if (!mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE)) continue;
    most = fmax(most, mp_chip_fusion_op_count(op) * mp_vmem_padding(chip, op));
  }
  return most;
}

// The least seconds of a matmul with computed operands: they are stored in VMEM, with an operation,
// before the units read them, and transfers do not overlap with that.
static double kernel_cost_least(const mp_chip_t *chip, const mp_chip_fusions_t *fusions,
                                const mp_chip_fusion_t *fusion, double bytes) {
  const double elements = kernel_cost_computed(chip, fusions, fusion, MP_CHIP_FUSION_LHS) +
                          kernel_cost_computed(chip, fusions, fusion, MP_CHIP_FUSION_RHS);
  // The steps of a ragged_dot skip rows instead of masking them.
  if (elements == 0 || fusion->ragged.groups > 0 || !mp_matmul_has_windows(chip)) return 0;
  const double each =
      mp_figure_or(chip->figures.vmem_store, 0) / MP_TILE_ELEMENTS + 1 / mp_vector_rate(chip);
  return elements * each + bytes / mp_matmul_bandwidth(chip) + chip->op_latency;
}

static double kernel_cost_matmul(const mp_chip_t *chip, const mp_chip_fusions_t *fusions,
                                 const mp_chip_fusion_t *fusion, double bytes,
                                 const kernel_parts_t *parts) {
  mp_matmul_streams_t inner_streams;
  const mp_matmul_streams_t streams = kernel_cost_streams(chip, fusions, fusion, &inner_streams);
  const double efficiency = chip->efficiency[fusion->work.work_class];
  mp_work_matmul_t work = fusion->work.matmul;
  const double steps = mp_matmul_ragged_steps(chip, &fusion->ragged, &work);
  mp_matmul_kernel_t matmul = {.matmul = &work,
                               .bytes = bytes,
                               .vector_seconds = parts->vector.seconds,
                               .efficiency = efficiency,
                               .streams = &streams};
  if (fusion->inner.batch > 0) {
    matmul.inner = &fusion->inner;
    matmul.inner_streams = &inner_streams;
    matmul.inner_seconds = mp_matmul_inner_seconds(chip, &fusion->inner, &inner_streams);
  }
  const double least = kernel_cost_least(chip, fusions, fusion, bytes);
  return steps / efficiency + fmax(mp_matmul_seconds(chip, &matmul), least);
}

double mp_kernel_flops(const mp_chip_fusion_t *fusion) {
  if (fusion->work.work_class == MP_WORK_FOREIGN) return mp_foreign_flops(fusion->hero);
  return fusion->work.flops / fmax(fusion->ragged.groups, 1);
}

// The parts of a kernel without a matmul overlap.
static mp_kernel_time_t kernel_cost_units(const mp_chip_t *chip, const mp_chip_fusions_t *fusions,
                                          const mp_chip_fusion_t *fusion, double bytes,
                                          const kernel_parts_t *parts) {
  const mp_vmem_seconds_t vmem = mp_vmem_seconds(chip, fusions, fusion);
  const double vector = parts->vector.seconds, irregular = parts->irregular.seconds;
  double latency;
  mp_kernel_time_t time = kernel_cost_stream(chip, bytes, &latency);
  kernel_cost_take(&time, vector, MP_KERNEL_VECTOR, parts->vector.op);
  kernel_cost_take(&time, irregular, MP_KERNEL_IRREGULAR, parts->irregular.op);
  kernel_cost_take(&time, fmax(vmem.vector, vmem.others), MP_KERNEL_VMEM, NULL);
  const double units = fmax(vector + vmem.vector, vmem.others) + vmem.latency;
  const double seconds = fmax(fmax(units, irregular), kernel_cost_memory(chip, bytes));
  time.seconds = parts->before + seconds / chip->efficiency[fusion->work.work_class] + latency;
  return time;
}

mp_kernel_time_t mp_kernel_time(const mp_chip_t *chip, const mp_chip_fusions_t *fusions,
                                const mp_chip_fusion_t *fusion, double bytes) {
  const mp_work_t *work = &fusion->work;
  if (work->work_class == MP_WORK_FREE || work->work_class == MP_WORK_COLLECTIVE) {
    return (mp_kernel_time_t){0};
  }
  if (work->work_class == MP_WORK_SCALAR) return mp_kernel_scalar_time(chip);
  const kernel_parts_t parts = kernel_cost_parts(chip, fusions, fusion);
  MP_ASSERT(bytes >= 0 && parts.before >= 0);
  MP_ASSERT(parts.vector.seconds >= 0 && parts.irregular.seconds >= 0);
  if (work->matmul.batch == 0) return kernel_cost_units(chip, fusions, fusion, bytes, &parts);
  mp_kernel_time_t time = {kernel_cost_matmul(chip, fusions, fusion, bytes, &parts),
                           MP_KERNEL_MATMUL, NULL};
  kernel_cost_take(&time, parts.irregular.seconds / chip->efficiency[work->work_class],
                   MP_KERNEL_IRREGULAR, parts.irregular.op);
  return time;
}
