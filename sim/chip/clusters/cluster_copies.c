// Whether all who read a result should compute it.
#include <math.h>

#include "sim/chip/clusters/cluster_impl.h"

// Whether a product makes the value, perhaps with a few ops behind it.
static bool cluster_copies_is_of_product(const mp_cluster_find_t *find, const mp_value_t *value) {
  enum { OPS_MOST = 6 };
  if (find->compiler == MP_CHIP_COMPILER_GPU) return false;
  const double count = mp_cluster_value_count(value);
  for (uint32_t i = 0; i < OPS_MOST && value->op != NULL; ++i) {
    const mp_op_t *op = value->op;
    if (op->code == MP_OP_DOT_GENERAL || op->code == MP_OP_CONVOLUTION) return true;
    if (!mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE)) return false;
    uint32_t operand = 0;
    while (operand + 1 < op->num_operands &&
           (mp_cluster_is_generator(op) ||
            mp_cluster_value_count(mp_cluster_root(op->operands[operand])) != count ||
            (op->operands[operand]->op != NULL &&
             mp_cluster_is_generator(op->operands[operand]->op)))) {
      ++operand;
    }
    value = mp_cluster_root(op->operands[operand]);
  }
  return false;
}

// The bytes of two ways to make what several clusters read.
typedef struct {
  double copied;   // each of them computes it
  double written;  // the first of them writes it, and the others read it
} cluster_copies_ways_t;

static cluster_copies_ways_t cluster_copies_weigh(const mp_cluster_find_t *find,
                                                  const mp_cluster_op_t *at,
                                                  const mp_cluster_user_t *first,
                                                  bool first_may_write) {
  const double others = find->users.count - 1;
  cluster_copies_ways_t ways = {.written = at->bytes * (1 + others)};
  if (!first_may_write) ways.written += at->bytes;
  for (uint32_t i = 0; i < at->op->num_operands; ++i) {
    bool is_reused = false;
    const mp_value_t *value = mp_cluster_source(find->compiler, at->op, at->kind, i, &is_reused);
    if (value == NULL) continue;
    enum { OPS_MOST = 4 };
    const double bytes =
        fmin(mp_work_bytes_read(at->op, i), mp_cluster_source_bytes(find, value, OPS_MOST));
    if (cluster_copies_is_of_product(find, value)) {
      ways.copied += mp_work_bytes_of(value->type) + others * bytes;
      continue;
    }
    for (uint32_t j = 0; j < find->users.count; ++j) {
      const bool reads = mp_cluster_reads(find, find->users.items[j].cluster, value);
      if (!reads) ways.copied += bytes;
      if (find->users.items[j].cluster == first->cluster && first_may_write && !reads) {
        ways.written += bytes;
      }
    }
    if (!first_may_write) ways.written += bytes;
  }
  return ways;
}

bool mp_cluster_should_copy(mp_cluster_find_t *find, const mp_cluster_op_t *at,
                            const mp_cluster_user_t *first, bool first_may_write) {
  enum { USERS_MOST = 16, COPIED_MOST = 64, TRANSCENDENTAL = 8 };
  if (at->kind != MP_CLUSTER_LOOP || find->users.count > USERS_MOST) return false;
  const bool is_of_rows = mp_cluster_is_shifted_exp(at->op, find->rows_most);
  if (find->compiler == MP_CHIP_COMPILER_TPU && is_of_rows && at->op->results[0].type->rank > 2) {
    return false;
  }
  const double cost = at->work.transcendentals > 0 ? TRANSCENDENTAL : 1;
  for (uint32_t i = 0; i < find->users.count; ++i) {
    const mp_cluster_user_t *user = &find->users.items[i];
    if (!mp_cluster_accepts(find, at, user)) return false;
    if (find->states.items[user->cluster].copied + cost > COPIED_MOST) return false;
  }
  const cluster_copies_ways_t ways = cluster_copies_weigh(find, at, first, first_may_write);
  if (ways.copied > ways.written) return false;
  if (!mp_cluster_pays_again(find, at->op)) return false;
  for (uint32_t i = 0; i < find->users.count; ++i) {
    if (find->users.items[i].cluster == first->cluster) continue;
    find->states.items[find->users.items[i].cluster].copied += cost;
  }
  return true;
}
