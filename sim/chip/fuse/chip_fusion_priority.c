// Decides by XLA's cost model for GPUs (PriorityFusion, GpuPerformanceModel) whether each reader
// recomputes a value, or one kernel writes it.
#include <math.h>

#include "sim/base/assert.h"
#include "sim/base/hash.h"
#include "sim/chip/fuse/chip_fusion_impl.h"
#include "sim/chip/rules/chip_rules.h"

// Constants of xla/service/gpu/model/gpu_performance_model_base.h: the share of the shorter one of
// compute and memory that overlaps with the other (kMemoryComputeParallelism), and the speed of
// caches relative to HBM (kL2CacheSpeedup, kL1CacheSpeedup).
#define CHIP_FUSION_PRIORITY_HIDDEN 0.95
#define CHIP_FUSION_PRIORITY_L2     2.5
#define CHIP_FUSION_PRIORITY_L1     8
// Bytes of a multiprocessor's cache (l1_cache_size_per_SM).
#define CHIP_FUSION_PRIORITY_L1_BYTES (256.0 * 1024)
// Cycles of an op that XLA has not measured (kDefaultFlopsPerElement).
#define CHIP_FUSION_PRIORITY_CYCLES 3
// The members of `fusion.again` before this one are cycles of ops. Stands for ops without a member.
#define CHIP_FUSION_PRIORITY_CODES MP_FUSION_AGAIN_UNITS

enum { CHIP_FUSION_PRIORITY_OPS_MOST = 32, CHIP_FUSION_PRIORITY_SOURCES_MOST = 32 };

// A kernel: its ops, and the values that they read. `work` is in bytes, too: those that HBM moves
// in the time of the compute.
typedef struct {
  const mp_op_t *ops[CHIP_FUSION_PRIORITY_OPS_MOST];
  const mp_value_t *sources[CHIP_FUSION_PRIORITY_SOURCES_MOST];
  double read[CHIP_FUSION_PRIORITY_SOURCES_MOST];  // bytes of each
  uint32_t num_ops, num_sources;
  double work, written;
} chip_fusion_priority_kernel_t;

// The member of `fusion.again` for an op; CHIP_FUSION_PRIORITY_CODES: none.
static int chip_fusion_priority_member(const mp_op_t *op) {
  static const struct {
    mp_opcode_t code;
    int member;
  } members[] = {
      {MP_OP_ADD, MP_FUSION_AGAIN_ADD},
      {MP_OP_SUBTRACT, MP_FUSION_AGAIN_ADD},
      {MP_OP_MULTIPLY, MP_FUSION_AGAIN_MULTIPLY},
      {MP_OP_DIVIDE, MP_FUSION_AGAIN_DIVIDE},
      {MP_OP_EXPONENTIAL, MP_FUSION_AGAIN_EXPONENTIAL},
      {MP_OP_LOGISTIC, MP_FUSION_AGAIN_EXPONENTIAL},
      {MP_OP_EXPONENTIAL_MINUS_ONE, MP_FUSION_AGAIN_EXPONENTIAL_MINUS_ONE},
      {MP_OP_LOG, MP_FUSION_AGAIN_LOG},
      {MP_OP_LOG_PLUS_ONE, MP_FUSION_AGAIN_LOG_PLUS_ONE},
      {MP_OP_TANH, MP_FUSION_AGAIN_TANH},
      {MP_OP_SINE, MP_FUSION_AGAIN_SINE},
      {MP_OP_COSINE, MP_FUSION_AGAIN_SINE},
      {MP_OP_SQRT, MP_FUSION_AGAIN_ROOT},
      {MP_OP_RSQRT, MP_FUSION_AGAIN_ROOT},
      {MP_OP_POWER, MP_FUSION_AGAIN_POWER},
  };
  if (mp_chip_fusion_is_scaling_quotient(op)) return MP_FUSION_AGAIN_MULTIPLY;
  for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); ++i) {
    if (op->code == members[i].code) return members[i].member;
  }
  return CHIP_FUSION_PRIORITY_CODES;
}

static const double *chip_fusion_priority_figures(const mp_chip_fusion_find_t *find) {
  const mp_figure_list_t *list = &find->figures->fusion_again;
  return list->count >= CHIP_FUSION_PRIORITY_CODES ? list->each : NULL;
}

static double chip_fusion_priority_work(const double *figures, const mp_op_t *op) {
  if (op->code == MP_OP_REDUCE) {
    const double summed = mp_chip_fusion_value_count(op->operands[0]);
    return figures[MP_FUSION_AGAIN_ADD] * summed / figures[MP_FUSION_AGAIN_BALANCE];
  }
  if (!mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE)) return 0;
  const int member = chip_fusion_priority_member(op);
  double cycles = CHIP_FUSION_PRIORITY_CYCLES;
  if (member < CHIP_FUSION_PRIORITY_CODES && figures[member] > 0) cycles = figures[member];
  return cycles * mp_chip_fusion_op_count(op) / figures[MP_FUSION_AGAIN_BALANCE];
}

// ---- kernels ----

static uint32_t chip_fusion_priority_source(const chip_fusion_priority_kernel_t *kernel,
                                            const mp_value_t *value) {
  uint32_t at = 0;
  while (at < kernel->num_sources && kernel->sources[at] != value) ++at;
  return at;
}

// Adds the bytes that an op reads of a value, in total at most the whole value.
static void chip_fusion_priority_add_source(chip_fusion_priority_kernel_t *kernel,
                                            const mp_op_t *op, uint32_t operand,
                                            const mp_value_t *value) {
  const uint32_t at = chip_fusion_priority_source(kernel, value);
  if (at == CHIP_FUSION_PRIORITY_SOURCES_MOST) return;
  if (at == kernel->num_sources) {
    kernel->sources[kernel->num_sources++] = value;
    kernel->read[at] = 0;
  }
  kernel->read[at] =
      fmin(mp_work_bytes_of(value->type), kernel->read[at] + mp_work_bytes_read(op, operand));
}

// Adds an op; false: the kernel has the op, or too many.
static bool chip_fusion_priority_add_op(chip_fusion_priority_kernel_t *kernel,
                                        const double *figures, const mp_op_t *op) {
  for (uint32_t i = 0; i < kernel->num_ops; ++i) {
    if (kernel->ops[i] == op) return false;
  }
  if (kernel->num_ops == CHIP_FUSION_PRIORITY_OPS_MOST) return false;
  kernel->ops[kernel->num_ops++] = op;
  kernel->work += chip_fusion_priority_work(figures, op);
  return true;
}

// Whether XLA fuses the value into its reader before it decides about the reader: elementwise
// producers with an elementwise reader have the highest priority.
static bool chip_fusion_priority_is_fused(const mp_chip_fusion_find_t *find,
                                          const mp_value_t *value, const mp_op_t *reader) {
  if (value->op == NULL || value->op->parent != reader->parent) return false;
  if (!mp_op_has(value->op, MP_OP_TRAIT_ELEMENTWISE)) return false;
  if (!mp_op_has(reader, MP_OP_TRAIT_ELEMENTWISE)) return false;
  const mp_chip_fusion_value_t *entry;
  MP_HASH_MAP_GET(&find->values, mp_hash_pointer(value), entry);
  return entry == NULL ||
         (entry->memory_use == MP_CHIP_FUSION_NONE && entry->first_use == MP_CHIP_FUSION_NONE);
}

// Adds an op, and the elementwise ops that are fused into it.
static void chip_fusion_priority_add_chain(const mp_chip_fusion_find_t *find, const double *figures,
                                           const mp_op_t *op,
                                           chip_fusion_priority_kernel_t *kernel) {
  if (!chip_fusion_priority_add_op(kernel, figures, op)) return;
  mp_work_t work;
  const mp_chip_fusion_kind_t kind = mp_chip_fusion_kind(find->figures, op, &work);
  for (mp_chip_fusion_read_t read = {0}; mp_chip_fusion_next(find->figures, op, kind, &read);) {
    if (!read.is_reused && chip_fusion_priority_is_fused(find, read.value, op)) {
      chip_fusion_priority_add_chain(find, figures, read.value->op, kernel);
    } else {
      chip_fusion_priority_add_source(kernel, op, read.operand, read.value);
    }
  }
}

// The kernel of a fusion without its read of `but`.
static chip_fusion_priority_kernel_t chip_fusion_priority_reader(const mp_chip_fusion_find_t *find,
                                                                 const double *figures,
                                                                 uint32_t number,
                                                                 const mp_value_t *but) {
  chip_fusion_priority_kernel_t kernel = {0};
  const mp_chip_fusion_t *fusion = &find->out->fusions.items[number];
  for (const mp_chip_fusion_member_t *m = NULL; mp_chip_fusion_visit(find->out, fusion, &m);) {
    const mp_op_t *op = m->op;
    if (!chip_fusion_priority_add_op(&kernel, figures, op)) break;
    mp_work_t work;
    const mp_chip_fusion_kind_t kind = mp_chip_fusion_kind(find->figures, op, &work);
    for (mp_chip_fusion_read_t read = {0}; mp_chip_fusion_next(find->figures, op, kind, &read);) {
      if (read.value == but) continue;
      if (read.value->op != NULL && mp_chip_fusion_has_member(find, fusion, read.value->op))
        continue;
      chip_fusion_priority_add_source(&kernel, op, read.operand, read.value);
    }
  }
  for (uint32_t i = 0; i < fusion->last->num_results; ++i) {
    kernel.written += mp_work_bytes_of(fusion->last->results[i].type);
  }
  return kernel;
}

// ---- times ----

static double chip_fusion_priority_both(double work, double bytes) {
  return work + bytes - CHIP_FUSION_PRIORITY_HIDDEN * fmin(work, bytes);
}

// The cost of reading bytes `times` times: only the first read is from HBM
// (ReadTimeWithDRAMHeuristic).
static double chip_fusion_priority_read(const mp_chip_fusion_find_t *find, const double *figures,
                                        double bytes, double times) {
  double speedup = 1;
  if (bytes < mp_figure_or(find->figures->gather_cache, 0)) speedup *= CHIP_FUSION_PRIORITY_L2;
  if (bytes < CHIP_FUSION_PRIORITY_L1_BYTES * figures[MP_FUSION_AGAIN_UNITS]) {
    speedup *= CHIP_FUSION_PRIORITY_L1;
  }
  MP_ASSERT(bytes >= 0 && times >= 0);
  return bytes * fmin(times, 1) + bytes * fmax(times - 1, 0) / speedup;
}

// The cost of a kernel's reads, except of values that kernel `but` reads anyway.
static double chip_fusion_priority_read_all(const mp_chip_fusion_find_t *find,
                                            const double *figures,
                                            const chip_fusion_priority_kernel_t *kernel,
                                            const chip_fusion_priority_kernel_t *but,
                                            double times) {
  double bytes = 0;
  for (uint32_t i = 0; i < kernel->num_sources; ++i) {
    const bool is_read =
        but != NULL && chip_fusion_priority_source(but, kernel->sources[i]) < but->num_sources;
    if (!is_read) bytes += chip_fusion_priority_read(find, figures, kernel->read[i], times);
  }
  return bytes;
}

// How often the user's fusion would compute each element of the op.
static double chip_fusion_priority_times(const mp_chip_fusion_find_t *find, const mp_op_t *op,
                                         const mp_chip_fusion_user_t *user) {
  const double times = mp_chip_fusion_utilization(find, op, user->fusion);
  const mp_chip_fusion_t *fusion = &find->out->fusions.items[user->fusion];
  if (!user->is_reused || fusion->is_rows) return times;
  return fmax(times, fusion->count / fmax(1, mp_chip_fusion_op_count(op)));
}

bool mp_chip_fusion_pays_again(const mp_chip_fusion_find_t *find, const mp_op_t *op) {
  const double *figures = chip_fusion_priority_figures(find);
  if (figures == NULL || op->num_results != 1) return true;
  const mp_value_t *result = &op->results[0];
  chip_fusion_priority_kernel_t producer = {.written = mp_work_bytes_of(result->type)};
  chip_fusion_priority_add_chain(find, figures, op, &producer);
  const double reads = chip_fusion_priority_read_all(find, figures, &producer, NULL, 1);
  double written = chip_fusion_priority_both(producer.work, reads + producer.written) +
                   figures[MP_FUSION_AGAIN_LAUNCH] * 1e6;
  double again = 0;
  for (uint32_t i = 0; i < find->users.count; ++i) {
    const mp_chip_fusion_user_t *user = &find->users.items[i];
    const chip_fusion_priority_kernel_t reader =
        chip_fusion_priority_reader(find, figures, user->fusion, result);
    const double times = chip_fusion_priority_times(find, op, user);
    const double bytes =
        reader.written + chip_fusion_priority_read_all(find, figures, &reader, NULL, 1);
    written += chip_fusion_priority_both(
        reader.work, bytes + chip_fusion_priority_read(find, figures, producer.written, times));
    again += chip_fusion_priority_both(
        reader.work + times * producer.work,
        bytes + chip_fusion_priority_read_all(find, figures, &producer, &reader, times));
  }
  return again <= written || !mp_chip_rule(find->figures, MP_CHIP_RULE_priority_fusion);
}
