// What XLA's compiler for GPUs makes again in each kernel that reads it, and what it writes once:
// whichever it takes to be sooner done (PriorityFusion, by GpuPerformanceModel).
#include <math.h>

#include "sim/base/hash.h"
#include "sim/chip/fuse/chip_fusion_impl.h"
#include "sim/chip/rules/chip_rules.h"

// How much of the shorter one of work and memory is hidden beside the other
// (kMemoryComputeParallelism, xla/service/gpu/model/gpu_performance_model_base.h).
#define CHIP_FUSION_AGAIN_HIDDEN 0.95
// What the compiler counts for an op of which nobody measured the cycles (kDefaultFlopsPerElement).
#define CHIP_FUSION_AGAIN_CYCLES 3
// So many kernels at least want what is written of rows: for two it is nearly the same either way,
// and texts of jax 0.10.2 for B200 have the exponentials made again (gradients of log_softmax and
// of its loss).
#define CHIP_FUSION_AGAIN_ROWS_READERS 3
// Ops that are looked at between a sum of rows and what it sums up.
#define CHIP_FUSION_AGAIN_OPS_MOST 6
// Ops behind each other that are made again with the one that reads them.
#define CHIP_FUSION_AGAIN_CHAIN_MOST 12
#define CHIP_FUSION_AGAIN_READ_MOST  256
// Ops of a kernel that are looked at.
#define CHIP_FUSION_AGAIN_MEMBERS_MOST 32

// The members of `fusion.again` up to this one are the compiler's cycles and what it counts for
// memory; an op that is none of them is this one.
#define CHIP_FUSION_AGAIN_CODES MP_FUSION_AGAIN_BLOCKS

// Which of them an op is; CHIP_FUSION_AGAIN_CODES: none.
static int chip_fusion_again_member(const mp_op_t *op) {
  if (mp_chip_fusion_is_scaling_quotient(op)) return MP_FUSION_AGAIN_MULTIPLY;
  switch (op->code) {
    case MP_OP_ADD:
    case MP_OP_SUBTRACT:
      return MP_FUSION_AGAIN_ADD;
    case MP_OP_MULTIPLY:
      return MP_FUSION_AGAIN_MULTIPLY;
    case MP_OP_DIVIDE:
      return MP_FUSION_AGAIN_DIVIDE;
    case MP_OP_EXPONENTIAL:
    case MP_OP_LOGISTIC:
      return MP_FUSION_AGAIN_EXPONENTIAL;
    case MP_OP_EXPONENTIAL_MINUS_ONE:
      return MP_FUSION_AGAIN_EXPONENTIAL_MINUS_ONE;
    case MP_OP_LOG:
      return MP_FUSION_AGAIN_LOG;
    case MP_OP_LOG_PLUS_ONE:
      return MP_FUSION_AGAIN_LOG_PLUS_ONE;
    case MP_OP_TANH:
      return MP_FUSION_AGAIN_TANH;
    case MP_OP_SINE:
    case MP_OP_COSINE:
      return MP_FUSION_AGAIN_SINE;
    case MP_OP_SQRT:
    case MP_OP_RSQRT:
      return MP_FUSION_AGAIN_ROOT;
    case MP_OP_POWER:
      return MP_FUSION_AGAIN_POWER;
    default:
      return CHIP_FUSION_AGAIN_CODES;
  }
}

static const double *chip_fusion_again_figures(const mp_chip_fusion_find_t *find) {
  const mp_figure_list_t *list = &find->figures->fusion_again;
  return find->compiler == MP_CHIP_COMPILER_GPU && list->count >= CHIP_FUSION_AGAIN_CODES
             ? list->each
             : NULL;
}

// Bytes that come from memory while the compiler takes an op to be done.
static double chip_fusion_again_work(const double *figures, const mp_op_t *op) {
  const int member = chip_fusion_again_member(op);
  double cycles = CHIP_FUSION_AGAIN_CYCLES;
  if (member < CHIP_FUSION_AGAIN_CODES && figures[member] > 0) cycles = figures[member];
  return cycles * mp_chip_fusion_op_count(op) / figures[MP_FUSION_AGAIN_BALANCE];
}

// Ops that make a value, each once.
typedef struct {
  const mp_op_t *ops[CHIP_FUSION_AGAIN_MEMBERS_MOST];
  uint32_t count;
} chip_fusion_again_chain_t;

static bool chip_fusion_again_note(chip_fusion_again_chain_t *chain, const mp_op_t *op) {
  for (uint32_t i = 0; i < chain->count; ++i) {
    if (chain->ops[i] == op) return false;
  }
  if (chain->count == CHIP_FUSION_AGAIN_MEMBERS_MOST) return false;
  chain->ops[chain->count++] = op;
  return true;
}

static void chip_fusion_again_add_chain(const mp_chip_fusion_find_t *find, const mp_op_t *op,
                                        uint32_t ops_most, chip_fusion_again_chain_t *chain) {
  if (!chip_fusion_again_note(chain, op)) return;
  for (uint32_t i = 0; ops_most > 0 && i < op->num_operands; ++i) {
    bool is_reused = false;
    const mp_value_t *value =
        mp_chip_fusion_source(find->figures, op, MP_CHIP_FUSION_LOOP, i, &is_reused);
    if (value == NULL || is_reused || value->op == NULL) continue;
    if (!mp_op_has(value->op, MP_OP_TRAIT_ELEMENTWISE)) continue;
    chip_fusion_again_add_chain(find, value->op, ops_most - 1, chain);
  }
}

// The same of what makes a value, element by element, over so many ops one behind the other.
static double chip_fusion_again_chain(const mp_chip_fusion_find_t *find, const double *figures,
                                      const mp_op_t *op, uint32_t ops_most) {
  double work = 0;
  chip_fusion_again_chain_t chain = {.count = 0};
  chip_fusion_again_add_chain(find, op, ops_most, &chain);
  for (uint32_t i = 0; i < chain.count; ++i) work += chip_fusion_again_work(figures, chain.ops[i]);
  return work;
}

static double chip_fusion_again_both(double work, double bytes) {
  return work + bytes - CHIP_FUSION_AGAIN_HIDDEN * fmin(work, bytes);
}

double mp_chip_fusion_source_bytes(const mp_chip_fusion_find_t *find, const mp_value_t *value,
                                   uint32_t ops_most) {
  const double bytes = mp_work_bytes_of(value->type);
  const mp_op_t *op = value->op;
  if (op == NULL || ops_most == 0 || !mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE)) return bytes;
  double sum = 0;
  for (uint32_t i = 0; i < op->num_operands && sum < bytes; ++i) {
    bool is_reused = false;
    const mp_value_t *source =
        mp_chip_fusion_source(find->figures, op, MP_CHIP_FUSION_LOOP, i, &is_reused);
    if (source != NULL) sum += mp_chip_fusion_source_bytes(find, source, ops_most - 1);
  }
  return fmin(sum, bytes);
}

// What a kernel has to do and what it moves without the op at hand, in bytes of memory.
typedef struct {
  double work, bytes;
} chip_fusion_again_kernel_t;

// What a kernel takes, in bytes of memory. Few blocks read what the cache has no faster than they
// read memory.
static double chip_fusion_again_takes(chip_fusion_again_kernel_t kernel) {
  return chip_fusion_again_both(kernel.work, kernel.bytes);
}

// Adds what one op of a kernel does and moves: of sums, what they sum up counts.
static void chip_fusion_again_add(const double *figures, const mp_op_t *op, bool is_last,
                                  chip_fusion_again_kernel_t *kernel) {
  if (op->code == MP_OP_REDUCE) {
    const double summed = mp_chip_fusion_value_count(op->operands[0]);
    kernel->work += figures[MP_FUSION_AGAIN_ADD] * summed / figures[MP_FUSION_AGAIN_BALANCE];
  } else if (mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE)) {
    kernel->work += chip_fusion_again_work(figures, op);
  }
  for (uint32_t i = 0; is_last && i < op->num_results; ++i) {
    kernel->bytes += mp_work_bytes_of(op->results[i].type);
  }
}

// The bytes that an op of a kernel reads besides what the kernel makes, and what `but` does.
static double chip_fusion_again_read(const mp_chip_fusion_find_t *find,
                                     const mp_chip_fusion_t *fusion, const mp_op_t *op,
                                     const mp_op_t *but) {
  double bytes = 0;
  if (!mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE)) return 0;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    bool is_reused = false;
    const mp_value_t *value =
        mp_chip_fusion_source(find->figures, op, MP_CHIP_FUSION_LOOP, i, &is_reused);
    if (value == NULL || is_reused || value->op == but) continue;
    if (value->op != NULL && mp_chip_fusion_has_member(find, fusion, value->op)) continue;
    bytes += mp_chip_fusion_source_bytes(find, value, CHIP_FUSION_AGAIN_OPS_MOST);
  }
  return bytes;
}

static chip_fusion_again_kernel_t chip_fusion_again_kernel(const mp_chip_fusion_find_t *find,
                                                           const double *figures, uint32_t number,
                                                           const mp_op_t *but) {
  chip_fusion_again_kernel_t kernel = {0};
  const mp_chip_fusion_t *fusion = &find->out->fusions.items[number];
  uint32_t num_seen = 0;
  for (uint32_t at = fusion->first_member; at != MP_CHIP_FUSION_NONE;) {
    const mp_chip_fusion_member_t *member = &find->out->members.items[at];
    chip_fusion_again_add(figures, member->op, member->op == fusion->last, &kernel);
    kernel.bytes += chip_fusion_again_read(find, fusion, member->op, but);
    if (++num_seen == CHIP_FUSION_AGAIN_MEMBERS_MOST) break;
    at = member->next;
  }
  return kernel;
}

// What the op takes by itself, and kernels that read it, if it is written or if they make it.
typedef struct {
  double work, in, out;
  double written, again;
} chip_fusion_again_ways_t;

// Adds one of these kernels, which would make what the op does so many times.
static void chip_fusion_again_reader(chip_fusion_again_ways_t *ways,
                                     chip_fusion_again_kernel_t reader, double times) {
  chip_fusion_again_kernel_t makes = reader;
  reader.bytes += ways->out;
  makes.bytes += ways->in;
  makes.work += times * ways->work;
  ways->written += chip_fusion_again_takes(reader);
  ways->again += chip_fusion_again_takes(makes);
}

static chip_fusion_again_ways_t chip_fusion_again_ways(const mp_chip_fusion_find_t *find,
                                                       const double *figures, const mp_op_t *op) {
  const mp_value_t *result = &op->results[0];
  chip_fusion_again_ways_t ways = {
      .work = chip_fusion_again_chain(find, figures, op, CHIP_FUSION_AGAIN_CHAIN_MOST),
      .in = mp_chip_fusion_source_bytes(find, result, CHIP_FUSION_AGAIN_OPS_MOST),
      .out = mp_work_bytes_of(result->type)};
  ways.written =
      chip_fusion_again_both(ways.work, ways.in + ways.out) + figures[MP_FUSION_AGAIN_LAUNCH] * 1e6;
  return ways;
}

double mp_chip_fusion_line(const mp_op_t *op) {
  const mp_type_t *type = op->results[0].type;
  return type->rank > 0 ? (double)type->dims[type->rank - 1] : 1;
}

// Adds a kernel that reads the op: of sums that read the same array each is a kernel when the
// compiler decides, and becomes one with the others only then.
static void chip_fusion_again_each(const mp_chip_fusion_find_t *find, const double *figures,
                                   const mp_op_t *op, uint32_t number,
                                   chip_fusion_again_ways_t *ways) {
  const mp_chip_fusion_t *fusion = &find->out->fusions.items[number];
  chip_fusion_again_kernel_t kernel = chip_fusion_again_kernel(find, figures, number, op);
  uint32_t num_sums = 0;
  for (uint32_t at = fusion->first_member; at != MP_CHIP_FUSION_NONE && !fusion->is_rows;
       at = find->out->members.items[at].next) {
    num_sums += find->out->members.items[at].op->code == MP_OP_REDUCE;
  }
  if (num_sums < 1) num_sums = 1;
  kernel.work /= num_sums;
  for (uint32_t i = 0; i < num_sums; ++i) chip_fusion_again_reader(ways, kernel, 1);
}

bool mp_chip_fusion_pays_again(const mp_chip_fusion_find_t *find, const mp_op_t *op) {
  const double *figures = chip_fusion_again_figures(find);
  if (figures == NULL || op->num_results != 1) return true;
  chip_fusion_again_ways_t ways = chip_fusion_again_ways(find, figures, op);
  if (ways.work <= ways.out) return true;
  if (find->users.count < CHIP_FUSION_AGAIN_ROWS_READERS && mp_chip_fusion_is_of_rows(find, op) &&
      mp_chip_fusion_line(op) <= find->rows_most) {
    return true;
  }
  for (uint32_t i = 0; i < find->users.count; ++i) {
    chip_fusion_again_each(find, figures, op, find->users.items[i].fusion, &ways);
  }
  return ways.again <= ways.written || !mp_chip_rule(find->figures, MP_CHIP_RULE_cost_model);
}
