// What XLA's compiler for GPUs makes again in each kernel that reads it, and what it writes once:
// whichever it takes to be sooner done (PriorityFusion, by GpuPerformanceModel).
#include <math.h>

#include "sim/base/hash.h"
#include "sim/chip/clusters/cluster_impl.h"
#include "sim/chip/rules/chip_rules.h"

// How much of the shorter one of work and memory is hidden beside the other
// (kMemoryComputeParallelism, xla/service/gpu/model/gpu_performance_model_base.h).
#define CLUSTER_AGAIN_HIDDEN 0.95
// What the compiler counts for an op of which nobody measured the cycles (kDefaultFlopsPerElement).
#define CLUSTER_AGAIN_CYCLES 3
// So many kernels at least want what is written of rows: for two it is nearly the same either way,
// and texts of jax 0.10.2 for B200 have the exponentials made again (gradients of log_softmax and
// of its loss).
#define CLUSTER_AGAIN_ROWS_READERS 3
// Ops that are looked at between a sum of rows and what it sums up.
#define CLUSTER_AGAIN_OPS_MOST 6
// Ops behind each other that are made again with the one that reads them.
#define CLUSTER_AGAIN_CHAIN_MOST 12
#define CLUSTER_AGAIN_READ_MOST  256
// Ops of a kernel that are looked at.
#define CLUSTER_AGAIN_MEMBERS_MOST 32

// Members of the figure `cluster.again`, in their order.
typedef enum {
  CLUSTER_AGAIN_BALANCE,  // operations while a byte comes from memory
  CLUSTER_AGAIN_LAUNCH,   // MB that come while a kernel is launched
  // What an element of these takes, in cycles; 0: nobody measured it.
  CLUSTER_AGAIN_ADD,
  CLUSTER_AGAIN_MULTIPLY,
  CLUSTER_AGAIN_DIVIDE,
  CLUSTER_AGAIN_EXPONENTIAL,
  CLUSTER_AGAIN_EXPONENTIAL_MINUS_ONE,
  CLUSTER_AGAIN_LOG,
  CLUSTER_AGAIN_LOG_PLUS_ONE,
  CLUSTER_AGAIN_TANH,
  CLUSTER_AGAIN_SINE,
  CLUSTER_AGAIN_ROOT,
  CLUSTER_AGAIN_POWER,
  CLUSTER_AGAIN_CODES,
  // Blocks of threads that ask the memory for all that it can give; multiprocessors.
  CLUSTER_AGAIN_BLOCKS = CLUSTER_AGAIN_CODES,
  CLUSTER_AGAIN_UNITS,
  CLUSTER_AGAIN_COUNT
} cluster_again_t;

// Which of them an op is; CLUSTER_AGAIN_CODES: none.
static cluster_again_t cluster_again_member(const mp_op_t *op) {
  if (mp_cluster_is_scaling_quotient(op)) return CLUSTER_AGAIN_MULTIPLY;
  switch (op->code) {
    case MP_OP_ADD:
    case MP_OP_SUBTRACT:
      return CLUSTER_AGAIN_ADD;
    case MP_OP_MULTIPLY:
      return CLUSTER_AGAIN_MULTIPLY;
    case MP_OP_DIVIDE:
      return CLUSTER_AGAIN_DIVIDE;
    case MP_OP_EXPONENTIAL:
    case MP_OP_LOGISTIC:
      return CLUSTER_AGAIN_EXPONENTIAL;
    case MP_OP_EXPONENTIAL_MINUS_ONE:
      return CLUSTER_AGAIN_EXPONENTIAL_MINUS_ONE;
    case MP_OP_LOG:
      return CLUSTER_AGAIN_LOG;
    case MP_OP_LOG_PLUS_ONE:
      return CLUSTER_AGAIN_LOG_PLUS_ONE;
    case MP_OP_TANH:
      return CLUSTER_AGAIN_TANH;
    case MP_OP_SINE:
    case MP_OP_COSINE:
      return CLUSTER_AGAIN_SINE;
    case MP_OP_SQRT:
    case MP_OP_RSQRT:
      return CLUSTER_AGAIN_ROOT;
    case MP_OP_POWER:
      return CLUSTER_AGAIN_POWER;
    default:
      return CLUSTER_AGAIN_CODES;
  }
}

static const double *cluster_again_figures(const mp_cluster_find_t *find) {
  const mp_figure_list_t *list = &find->figures->cluster_again;
  return find->compiler == MP_CHIP_COMPILER_GPU && list->count >= CLUSTER_AGAIN_CODES ? list->each
                                                                                      : NULL;
}

// Bytes that come from memory while the compiler takes an op to be done.
static double cluster_again_work(const double *figures, const mp_op_t *op) {
  const cluster_again_t member = cluster_again_member(op);
  double cycles = CLUSTER_AGAIN_CYCLES;
  if (member < CLUSTER_AGAIN_CODES && figures[member] > 0) cycles = figures[member];
  return cycles * mp_cluster_op_count(op) / figures[CLUSTER_AGAIN_BALANCE];
}

// Ops that make a value, each once.
typedef struct {
  const mp_op_t *ops[CLUSTER_AGAIN_MEMBERS_MOST];
  uint32_t count;
} cluster_again_chain_t;

static bool cluster_again_note(cluster_again_chain_t *chain, const mp_op_t *op) {
  for (uint32_t i = 0; i < chain->count; ++i) {
    if (chain->ops[i] == op) return false;
  }
  if (chain->count == CLUSTER_AGAIN_MEMBERS_MOST) return false;
  chain->ops[chain->count++] = op;
  return true;
}

static void cluster_again_add_chain(const mp_cluster_find_t *find, const mp_op_t *op,
                                    uint32_t ops_most, cluster_again_chain_t *chain) {
  if (!cluster_again_note(chain, op)) return;
  for (uint32_t i = 0; ops_most > 0 && i < op->num_operands; ++i) {
    bool is_reused = false;
    const mp_value_t *value = mp_cluster_source(find->figures, op, MP_CLUSTER_LOOP, i, &is_reused);
    if (value == NULL || is_reused || value->op == NULL) continue;
    if (!mp_op_has(value->op, MP_OP_TRAIT_ELEMENTWISE)) continue;
    cluster_again_add_chain(find, value->op, ops_most - 1, chain);
  }
}

// The same of what makes a value, element by element, over so many ops one behind the other.
static double cluster_again_chain(const mp_cluster_find_t *find, const double *figures,
                                  const mp_op_t *op, uint32_t ops_most) {
  double work = 0;
  cluster_again_chain_t chain = {.count = 0};
  cluster_again_add_chain(find, op, ops_most, &chain);
  for (uint32_t i = 0; i < chain.count; ++i) work += cluster_again_work(figures, chain.ops[i]);
  return work;
}

static double cluster_again_both(double work, double bytes) {
  return work + bytes - CLUSTER_AGAIN_HIDDEN * fmin(work, bytes);
}

double mp_cluster_source_bytes(const mp_cluster_find_t *find, const mp_value_t *value,
                               uint32_t ops_most) {
  const double bytes = mp_work_bytes_of(value->type);
  const mp_op_t *op = value->op;
  if (op == NULL || ops_most == 0 || !mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE)) return bytes;
  double sum = 0;
  for (uint32_t i = 0; i < op->num_operands && sum < bytes; ++i) {
    bool is_reused = false;
    const mp_value_t *source = mp_cluster_source(find->figures, op, MP_CLUSTER_LOOP, i, &is_reused);
    if (source != NULL) sum += mp_cluster_source_bytes(find, source, ops_most - 1);
  }
  return fmin(sum, bytes);
}

// What a kernel has to do and what it moves without the op at hand, in bytes of memory.
typedef struct {
  double work, bytes;
} cluster_again_kernel_t;

// What a kernel takes, in bytes of memory. Few blocks read what the cache has no faster than they
// read memory.
static double cluster_again_takes(cluster_again_kernel_t kernel) {
  return cluster_again_both(kernel.work, kernel.bytes);
}

// Adds what one op of a kernel does and moves: of sums, what they sum up counts.
static void cluster_again_add(const double *figures, const mp_op_t *op, bool is_last,
                              cluster_again_kernel_t *kernel) {
  if (op->code == MP_OP_REDUCE) {
    const double summed = mp_cluster_value_count(op->operands[0]);
    kernel->work += figures[CLUSTER_AGAIN_ADD] * summed / figures[CLUSTER_AGAIN_BALANCE];
  } else if (mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE)) {
    kernel->work += cluster_again_work(figures, op);
  }
  for (uint32_t i = 0; is_last && i < op->num_results; ++i) {
    kernel->bytes += mp_work_bytes_of(op->results[i].type);
  }
}

// The bytes that an op of a kernel reads besides what the kernel makes, and what `but` does.
static double cluster_again_read(const mp_cluster_find_t *find, const mp_cluster_t *cluster,
                                 const mp_op_t *op, const mp_op_t *but) {
  double bytes = 0;
  if (!mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE)) return 0;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    bool is_reused = false;
    const mp_value_t *value = mp_cluster_source(find->figures, op, MP_CLUSTER_LOOP, i, &is_reused);
    if (value == NULL || is_reused || value->op == but) continue;
    if (value->op != NULL && mp_cluster_has_member(find, cluster, value->op)) continue;
    bytes += mp_cluster_source_bytes(find, value, CLUSTER_AGAIN_OPS_MOST);
  }
  return bytes;
}

static cluster_again_kernel_t cluster_again_kernel(const mp_cluster_find_t *find,
                                                   const double *figures, uint32_t number,
                                                   const mp_op_t *but) {
  cluster_again_kernel_t kernel = {0};
  const mp_cluster_t *cluster = &find->out->clusters.items[number];
  uint32_t num_seen = 0;
  for (uint32_t at = cluster->first_member; at != MP_CLUSTER_NONE;) {
    const mp_cluster_member_t *member = &find->out->members.items[at];
    cluster_again_add(figures, member->op, member->op == cluster->last, &kernel);
    kernel.bytes += cluster_again_read(find, cluster, member->op, but);
    if (++num_seen == CLUSTER_AGAIN_MEMBERS_MOST) break;
    at = member->next;
  }
  return kernel;
}

// What the op takes by itself, and kernels that read it, if it is written or if they make it.
typedef struct {
  double work, in, out;
  double written, again;
} cluster_again_ways_t;

// Adds one of these kernels, which would make what the op does so many times.
static void cluster_again_reader(cluster_again_ways_t *ways, cluster_again_kernel_t reader,
                                 double times) {
  cluster_again_kernel_t makes = reader;
  reader.bytes += ways->out;
  makes.bytes += ways->in;
  makes.work += times * ways->work;
  ways->written += cluster_again_takes(reader);
  ways->again += cluster_again_takes(makes);
}

static cluster_again_ways_t cluster_again_ways(const mp_cluster_find_t *find, const double *figures,
                                               const mp_op_t *op) {
  const mp_value_t *result = &op->results[0];
  cluster_again_ways_t ways = {
      .work = cluster_again_chain(find, figures, op, CLUSTER_AGAIN_CHAIN_MOST),
      .in = mp_cluster_source_bytes(find, result, CLUSTER_AGAIN_OPS_MOST),
      .out = mp_work_bytes_of(result->type)};
  ways.written =
      cluster_again_both(ways.work, ways.in + ways.out) + figures[CLUSTER_AGAIN_LAUNCH] * 1e6;
  return ways;
}

double mp_cluster_line(const mp_op_t *op) {
  const mp_type_t *type = op->results[0].type;
  return type->rank > 0 ? (double)type->dims[type->rank - 1] : 1;
}

// Adds a kernel that reads the op: of sums that read the same array each is a kernel when the
// compiler decides, and becomes one with the others only then.
static void cluster_again_each(const mp_cluster_find_t *find, const double *figures,
                               const mp_op_t *op, uint32_t number, cluster_again_ways_t *ways) {
  const mp_cluster_t *cluster = &find->out->clusters.items[number];
  cluster_again_kernel_t kernel = cluster_again_kernel(find, figures, number, op);
  uint32_t num_sums = 0;
  for (uint32_t at = cluster->first_member; at != MP_CLUSTER_NONE && !cluster->is_rows;
       at = find->out->members.items[at].next) {
    num_sums += find->out->members.items[at].op->code == MP_OP_REDUCE;
  }
  if (num_sums < 1) num_sums = 1;
  kernel.work /= num_sums;
  for (uint32_t i = 0; i < num_sums; ++i) cluster_again_reader(ways, kernel, 1);
}

bool mp_cluster_pays_again(const mp_cluster_find_t *find, const mp_op_t *op) {
  const double *figures = cluster_again_figures(find);
  if (figures == NULL || op->num_results != 1) return true;
  cluster_again_ways_t ways = cluster_again_ways(find, figures, op);
  if (ways.work <= ways.out) return true;
  if (find->users.count < CLUSTER_AGAIN_ROWS_READERS && mp_cluster_is_of_rows(find, op) &&
      mp_cluster_line(op) <= find->rows_most) {
    return true;
  }
  for (uint32_t i = 0; i < find->users.count; ++i) {
    cluster_again_each(find, figures, op, find->users.items[i].cluster, &ways);
  }
  return ways.again <= ways.written || !mp_chip_rule(find->figures, MP_CHIP_RULE_cost_model);
}
