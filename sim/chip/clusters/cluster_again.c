// What XLA's compiler for GPUs makes again in each kernel that reads it, and what it writes once:
// whichever it takes to be sooner done (PriorityFusion, by GpuPerformanceModel).
#include <math.h>

#include "sim/base/hash.h"
#include "sim/chip/clusters/cluster_impl.h"
#include "sim/chip/rules/rules.h"

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

static double cluster_again_spread(const mp_cluster_find_t *find, const mp_op_t *op);

// What ops that make a value read of values that are broadcast.
static double cluster_again_chain_spread(const mp_cluster_find_t *find, const mp_op_t *op,
                                         uint32_t ops_most) {
  double spread = 0;
  cluster_again_chain_t chain = {.count = 0};
  cluster_again_add_chain(find, op, ops_most, &chain);
  for (uint32_t i = 0; i < chain.count; ++i) spread += cluster_again_spread(find, chain.ops[i]);
  return spread;
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
  double spread;       // read again and again, for elements into which it is broadcast
  double read, share;  // how much longer than with many blocks it takes to read, and to work
  double cached;       // and to read from caches, beside what it takes from memory
} cluster_again_kernel_t;

// How much sooner than from memory comes what is read again, from the caches (kL2CacheSpeedup times
// kL1CacheSpeedup).
#define CLUSTER_AGAIN_CACHED 20.0

static bool cluster_again_counts_blocks(const mp_cluster_find_t *find) {
  return cluster_again_figures(find) != NULL &&
         find->figures->cluster_again.count == CLUSTER_AGAIN_COUNT;
}

// The bits of an element of the narrowest array that a kernel goes through.
static uint32_t cluster_again_narrowest(const mp_cluster_find_t *find,
                                        const mp_cluster_t *cluster) {
  uint32_t num_seen = 0;
  uint32_t least = (uint32_t)mp_dtype_bits(cluster->leader->operands[0]->type->dtype);
  for (uint32_t at = cluster->first_member; at != MP_CLUSTER_NONE;
       at = find->out->members.items[at].next) {
    const mp_op_t *op = find->out->members.items[at].op;
    if (++num_seen > CLUSTER_AGAIN_MEMBERS_MOST) break;
    if (op->code != MP_OP_CONVERT) continue;
    const uint32_t bits = (uint32_t)mp_dtype_bits(op->operands[0]->type->dtype);
    if (bits < least) least = bits;
  }
  return least;
}

// A kernel of few blocks: each of them asks for no more than so many bytes at a time, and there are
// multiprocessors without one.
static void cluster_again_set_blocks(const mp_cluster_find_t *find, uint32_t number,
                                     cluster_again_kernel_t *kernel) {
  kernel->read = kernel->share = 1;
  kernel->cached = 1 / CLUSTER_AGAIN_CACHED;
  const mp_cluster_t *cluster = &find->out->clusters.items[number];
  if (!cluster_again_counts_blocks(find) || cluster->is_rows) return;
  if (find->states.items[number].kind != MP_CLUSTER_REDUCTION) return;
  const double *figures = find->figures->cluster_again.each;
  const double blocks =
      fmax(1, mp_cluster_blocks(cluster->leader, cluster_again_narrowest(find, cluster)));
  kernel->read = fmax(1, figures[CLUSTER_AGAIN_BLOCKS] / blocks);
  kernel->cached = fmax(kernel->cached, figures[CLUSTER_AGAIN_BLOCKS] / blocks);
  kernel->share = fmax(1, figures[CLUSTER_AGAIN_UNITS] / blocks);
}

bool mp_cluster_has_few_blocks(const mp_cluster_find_t *find, uint32_t number) {
  cluster_again_kernel_t kernel = {0};
  cluster_again_set_blocks(find, number, &kernel);
  return kernel.read > 1 && mp_chip_rule(find->figures, MP_CHIP_RULE_few_blocks);
}

// The bytes that an op reads of values that are broadcast, as often as it reads them.
static double cluster_again_spread(const mp_cluster_find_t *find, const mp_op_t *op) {
  double sum = 0;
  if (!cluster_again_counts_blocks(find) || !mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE)) return 0;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    bool is_reused = false;
    const mp_value_t *value = mp_cluster_source(find->figures, op, MP_CLUSTER_LOOP, i, &is_reused);
    const double count = value == NULL ? 0 : mp_cluster_value_count(value);
    if (!is_reused || count == 0) continue;
    sum += mp_work_bytes_of(value->type) / count * mp_cluster_op_count(op);
  }
  return sum;
}

// What a kernel takes, in bytes of memory. Few blocks read what the cache has no faster than they
// read memory.
static double cluster_again_takes(cluster_again_kernel_t kernel) {
  return cluster_again_both(kernel.work * kernel.share,
                            kernel.bytes * kernel.read + kernel.spread * kernel.cached);
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
  cluster_again_set_blocks(find, number, &kernel);
  for (uint32_t at = cluster->first_member; at != MP_CLUSTER_NONE;) {
    const mp_cluster_member_t *member = &find->out->members.items[at];
    cluster_again_add(figures, member->op, member->op == cluster->last, &kernel);
    kernel.bytes += cluster_again_read(find, cluster, member->op, but);
    kernel.spread += cluster_again_spread(find, member->op);
    if (++num_seen == CLUSTER_AGAIN_MEMBERS_MOST) break;
    at = member->next;
  }
  return kernel;
}

// What the op takes by itself, and kernels that read it, if it is written or if they make it.
typedef struct {
  double work, in, out, spread;
  double written, again;
} cluster_again_ways_t;

// Adds one of these kernels, which would make what the op does so many times.
static void cluster_again_reader(cluster_again_ways_t *ways, cluster_again_kernel_t reader,
                                 double times) {
  cluster_again_kernel_t makes = reader;
  reader.bytes += ways->out;
  makes.bytes += ways->in;
  makes.work += times * ways->work;
  makes.spread += ways->spread;
  ways->written += cluster_again_takes(reader);
  ways->again += cluster_again_takes(makes);
}

static cluster_again_ways_t cluster_again_ways(const mp_cluster_find_t *find, const double *figures,
                                               const mp_op_t *op) {
  const mp_value_t *result = &op->results[0];
  cluster_again_ways_t ways = {
      .work = cluster_again_chain(find, figures, op, CLUSTER_AGAIN_CHAIN_MOST),
      .in = mp_cluster_source_bytes(find, result, CLUSTER_AGAIN_OPS_MOST),
      .out = mp_work_bytes_of(result->type),
      .spread = cluster_again_chain_spread(find, op, CLUSTER_AGAIN_CHAIN_MOST)};
  ways.written =
      cluster_again_both(ways.work, ways.in + ways.out + ways.spread / CLUSTER_AGAIN_CACHED) +
      figures[CLUSTER_AGAIN_LAUNCH] * 1e6;
  return ways;
}

double mp_cluster_line(const mp_op_t *op) {
  const mp_type_t *type = op->results[0].type;
  return type->rank > 0 ? (double)type->dims[type->rank - 1] : 1;
}

// Whether one of those that read the op at hand has few blocks.
static bool cluster_again_is_slow(const mp_cluster_find_t *find) {
  for (uint32_t i = 0; i < find->users.count; ++i) {
    if (mp_cluster_has_few_blocks(find, find->users.items[i].cluster)) return true;
  }
  return false;
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
  kernel.spread /= num_sums;
  for (uint32_t i = 0; i < num_sums; ++i) cluster_again_reader(ways, kernel, 1);
}

bool mp_cluster_pays_again(const mp_cluster_find_t *find, const mp_op_t *op) {
  const double *figures = cluster_again_figures(find);
  if (figures == NULL || op->num_results != 1) return true;
  cluster_again_ways_t ways = cluster_again_ways(find, figures, op);
  if (ways.work <= ways.out && !cluster_again_is_slow(find)) return true;
  if (find->users.count < CLUSTER_AGAIN_ROWS_READERS && mp_cluster_is_of_rows(find, op) &&
      mp_cluster_line(op) <= find->rows_most) {
    return true;
  }
  for (uint32_t i = 0; i < find->users.count; ++i) {
    cluster_again_each(find, figures, op, find->users.items[i].cluster, &ways);
  }
  return ways.again <= ways.written || !mp_chip_rule(find->figures, MP_CHIP_RULE_cost_model);
}

// Whether somebody measured that an op is dear, or it changes the type of what is.
static bool cluster_again_is_dear(const mp_cluster_find_t *find, const mp_op_t *op) {
  if (op->code == MP_OP_CONVERT) {
    bool is_reused = false;
    const mp_value_t *value = mp_cluster_source(find->figures, op, MP_CLUSTER_LOOP, 0, &is_reused);
    if (value != NULL && !is_reused && value->op != NULL) op = value->op;
  }
  const cluster_again_t member = cluster_again_member(op);
  return member >= CLUSTER_AGAIN_DIVIDE && member < CLUSTER_AGAIN_CODES;
}

// Whether a sum of rows is among what an op is made of.
static bool cluster_again_comes_of_sum(const mp_cluster_find_t *find, const mp_op_t *op) {
  cluster_again_chain_t chain = {.count = 0};
  cluster_again_add_chain(find, op, CLUSTER_AGAIN_CHAIN_MOST, &chain);
  for (uint32_t i = 0; i < chain.count; ++i) {
    for (uint32_t j = 0; j < chain.ops[i]->num_operands; ++j) {
      const mp_op_t *of = mp_cluster_root(chain.ops[i]->operands[j])->op;
      if (of != NULL && of->num_results == 1 && mp_cluster_row(of) > 0) return true;
    }
  }
  return false;
}

static double cluster_again_times(const mp_cluster_find_t *find, const mp_op_t *op,
                                  const mp_cluster_user_t *user) {
  if (user->is_reused) {
    return find->out->clusters.items[user->cluster].count / mp_cluster_op_count(op);
  }
  double times = 0;
  for (uint32_t parts = user->parts; parts != 0; parts &= parts - 1) ++times;
  return times;
}

bool mp_cluster_pays_times(const mp_cluster_find_t *find, const mp_cluster_op_t *at,
                           const mp_cluster_user_t *user) {
  const double *figures = cluster_again_figures(find);
  const mp_op_t *op = at->op;
  if (figures == NULL || op->num_results != 1 || !mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE))
    return true;
  if (find->states.items[user->cluster].kind != MP_CLUSTER_LOOP) return true;
  if (find->out->clusters.items[user->cluster].is_rows) return true;
  const double times = cluster_again_times(find, op, user);
  if (times <= 1 || !cluster_again_is_dear(find, op)) return true;
  if (cluster_again_comes_of_sum(find, op)) return true;
  cluster_again_ways_t ways = cluster_again_ways(find, figures, op);
  cluster_again_reader(&ways, cluster_again_kernel(find, figures, user->cluster, op), times);
  return ways.again <= ways.written;
}

bool mp_cluster_pays_sum_again(const mp_cluster_find_t *find, const mp_op_t *op) {
  const double *figures = cluster_again_figures(find);
  if (figures == NULL || op->num_results != 1) return false;
  const mp_value_t *summed = mp_cluster_root(op->operands[0]);
  const double adds = figures[CLUSTER_AGAIN_ADD] * mp_cluster_value_count(summed);
  cluster_again_ways_t ways = {.work = adds / figures[CLUSTER_AGAIN_BALANCE],
                               .in = mp_cluster_source_bytes(find, summed, CLUSTER_AGAIN_OPS_MOST),
                               .out = mp_work_bytes_of(op->results[0].type)};
  if (summed->op != NULL && mp_op_has(summed->op, MP_OP_TRAIT_ELEMENTWISE)) {
    ways.work += cluster_again_chain(find, figures, summed->op, CLUSTER_AGAIN_CHAIN_MOST);
  }
  ways.written =
      cluster_again_both(ways.work, ways.in + ways.out) + figures[CLUSTER_AGAIN_LAUNCH] * 1e6;
  for (uint32_t i = 0; i < find->users.count; ++i) {
    const cluster_again_kernel_t kernel =
        cluster_again_kernel(find, figures, find->users.items[i].cluster, op);
    ways.written += cluster_again_both(kernel.work, kernel.bytes + ways.out);
    // The rows are at hand.
    ways.again += cluster_again_both(kernel.work + ways.work, kernel.bytes);
  }
  return ways.again <= ways.written && mp_chip_rule(find->figures, MP_CHIP_RULE_sum_recomputed);
}

// Whether that pays for as many kernels of which is known only that they go through the result.
static bool cluster_again_pays_for(const mp_cluster_find_t *find, const mp_op_t *op,
                                   double readers) {
  const double *figures = cluster_again_figures(find);
  cluster_again_ways_t ways = cluster_again_ways(find, figures, op);
  const double summed = figures[CLUSTER_AGAIN_ADD] * mp_cluster_op_count(op);
  const cluster_again_kernel_t reader = {.work = summed / figures[CLUSTER_AGAIN_BALANCE],
                                         .read = 1,
                                         .share = 1,
                                         .cached = 1 / CLUSTER_AGAIN_CACHED};
  for (double i = 0; i < readers; ++i) cluster_again_reader(&ways, reader, 1);
  return ways.work <= ways.out || ways.again <= ways.written;
}

// The ops that read a value and are decided about by now, and those up to the sum of rows; its own
// rows' end is in a kernel with it.
static double cluster_again_readers(const mp_cluster_find_t *find, const mp_value_t *value,
                                    const mp_op_t *sum) {
  double readers = 0;
  uint32_t num_seen = 0;
  for (const mp_op_t *op = value->op->next; op != NULL && op != sum->next; op = op->next) {
    bool reads = false;
    for (uint32_t i = 0; i < op->num_operands; ++i) {
      reads |= mp_cluster_root(op->operands[i]) == value;
    }
    readers += reads;
    if (++num_seen == CLUSTER_AGAIN_READ_MOST) break;
  }
  uint32_t at = mp_cluster_first_use(find, value);
  const mp_op_t *last = NULL;
  for (; at != MP_CLUSTER_NONE; at = find->uses.items[at].next) {
    const mp_op_t *op = find->uses.items[at].op;
    readers += op != last && !mp_cluster_takes_sum(find, op, sum);
    last = op;
  }
  return readers;
}

// Whether a value, or one that it is made of element by element, is written for all who read it.
static bool cluster_again_is_written(const mp_cluster_find_t *find, const mp_value_t *value,
                                     const mp_op_t *sum, uint32_t depth) {
  const mp_op_t *op = value->op;
  if (op == NULL || depth == 0 || !mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE)) return false;
  if (mp_cluster_is_of_rows(find, op)) {
    const double readers = cluster_again_readers(find, value, sum);
    if (readers >= CLUSTER_AGAIN_ROWS_READERS && !cluster_again_pays_for(find, op, readers))
      return true;
  }
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    bool is_reused = false;
    const mp_value_t *of = mp_cluster_source(find->figures, op, MP_CLUSTER_LOOP, i, &is_reused);
    if (of != NULL && !is_reused && cluster_again_is_written(find, of, sum, depth - 1)) return true;
  }
  return false;
}

bool mp_cluster_sums_written(const mp_cluster_find_t *find, const mp_op_t *op) {
  if (cluster_again_figures(find) == NULL) return false;
  return cluster_again_is_written(find, mp_cluster_root(op->operands[0]), op,
                                  CLUSTER_AGAIN_OPS_MOST) &&
         mp_chip_rule(find->figures, MP_CHIP_RULE_sum_of_written);
}
