// Whether all who read a result should compute it.
#include <math.h>

#include "sim/chip/clusters/cluster_impl.h"
#include "sim/chip/rules/chip_rules.h"
#include "sim/plan/plan.h"

mp_status_t mp_cluster_note_uses(mp_cluster_find_t *find, const mp_block_t *block) {
  if (find->compiler != MP_CHIP_COMPILER_TPU) return NULL;
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    for (uint32_t i = 0; i < op->num_regions; ++i) {
      if (mp_op_info(op->code)->role != MP_OP_ROLE_CONTROL) break;
      MP_RETURN_IF_ERROR(mp_cluster_note_uses(find, op->regions[i]));
    }
    // An alias is no reader of its own: its readers are those of what it is.
    if (op->num_results == 1 && mp_plan_aliased(&op->results[0]) != NULL) continue;
    for (uint32_t i = 0; i < op->num_operands; ++i) {
      mp_cluster_value_t *entry;
      MP_RETURN_IF_ERROR(mp_cluster_value(find, mp_cluster_root(op->operands[i]), &entry));
      ++entry->num_uses;
    }
  }
  return NULL;
}

// ---- what a value is made of ----

enum { CLUSTER_COPIES_OPS_MOST = 64, CLUSTER_COPIES_PRODUCTS_MOST = 3 };

// The ops between products and a value, which is made by the first of them.
typedef struct {
  const mp_op_t *ops[CLUSTER_COPIES_OPS_MOST];
  bool is_seen[CLUSTER_COPIES_OPS_MOST];
  uint32_t num_ops;
  double count;                                              // elements of each of them
  const mp_value_t *products[CLUSTER_COPIES_PRODUCTS_MOST];  // their results
  uint32_t num_products;
  bool is_expensive;  // an exponential, a division or the like is among the ops
} cluster_copies_tree_t;

static uint32_t cluster_copies_at(const cluster_copies_tree_t *tree, const mp_op_t *op) {
  uint32_t at = 0;
  while (at < tree->num_ops && tree->ops[at] != op) ++at;
  return at;
}

static bool cluster_copies_is_product(const mp_value_t *value) {
  return value->op != NULL &&
         (value->op->code == MP_OP_DOT_GENERAL || value->op->code == MP_OP_CONVOLUTION);
}

// An operand through which the tree goes; NULL: everybody reads it, as a number for whole rows.
static const mp_value_t *cluster_copies_operand(const mp_cluster_find_t *find,
                                                const cluster_copies_tree_t *tree,
                                                const mp_op_t *op, uint32_t operand) {
  bool is_reused = false;
  const mp_value_t *value =
      mp_cluster_source(find->figures, op, MP_CLUSTER_LOOP, operand, &is_reused);
  const bool is_array = value != NULL && !is_reused && mp_cluster_value_count(value) >= tree->count;
  return is_array ? value : NULL;
}

static void cluster_copies_add_product(cluster_copies_tree_t *tree, const mp_value_t *value) {
  for (uint32_t i = 0; i < tree->num_products; ++i) {
    if (tree->products[i] == value) return;
  }
  if (tree->num_products < CLUSTER_COPIES_PRODUCTS_MOST) {
    tree->products[tree->num_products++] = value;
  }
}

// Adds the op and, element by element, all that makes its operands, back to results of products.
// False: something else is in it, or too much.
static bool cluster_copies_add(const mp_cluster_find_t *find, cluster_copies_tree_t *tree,
                               const mp_op_t *op) {
  if (cluster_copies_at(tree, op) < tree->num_ops) return true;
  if (tree->num_ops == CLUSTER_COPIES_OPS_MOST || !mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE)) {
    return false;
  }
  tree->ops[tree->num_ops++] = op;
  mp_work_t work;
  mp_work_of_op(op, &work);
  tree->is_expensive |= mp_cluster_is_dear(op, &work);
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_value_t *value = cluster_copies_operand(find, tree, op, i);
    if (value == NULL) continue;
    if (cluster_copies_is_product(value)) {
      cluster_copies_add_product(tree, value);
      continue;
    }
    if (value->op == NULL || value->op->parent != op->parent) return false;
    if (!cluster_copies_add(find, tree, value->op)) return false;
  }
  return true;
}

// Whether somebody who is not in the tree reads the value.
static bool cluster_copies_is_read(const mp_cluster_find_t *find, const cluster_copies_tree_t *tree,
                                   const mp_value_t *value) {
  uint32_t num_reads = 0;
  for (uint32_t i = 0; i < tree->num_ops; ++i) {
    for (uint32_t k = 0; k < tree->ops[i]->num_operands; ++k) {
      num_reads += mp_cluster_root(tree->ops[i]->operands[k]) == value;
    }
  }
  return mp_cluster_num_uses(find, value) > num_reads;
}

// Whether each way from a product to the op goes through a value that others read, too.
static bool cluster_copies_is_anyway(const mp_cluster_find_t *find, cluster_copies_tree_t *tree,
                                     const mp_op_t *op) {
  const uint32_t at = cluster_copies_at(tree, op);
  if (tree->is_seen[at]) return true;
  tree->is_seen[at] = true;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_value_t *value = cluster_copies_operand(find, tree, op, i);
    if (value == NULL || cluster_copies_is_read(find, tree, value)) continue;
    if (cluster_copies_is_product(value)) return false;
    if (!cluster_copies_is_anyway(find, tree, value->op)) return false;
  }
  return true;
}

mp_cluster_kept_t mp_cluster_kept(const mp_cluster_find_t *find, const mp_op_t *op) {
  if (find->compiler != MP_CHIP_COMPILER_TPU || op->num_results != 1) return MP_CLUSTER_KEPT_NOT;
  cluster_copies_tree_t tree = {.count = mp_cluster_op_count(op)};
  if (!cluster_copies_add(find, &tree, op) || !cluster_copies_is_anyway(find, &tree, op) ||
      !mp_chip_rule(find->figures, MP_CHIP_RULE_kept_preactivation)) {
    return MP_CLUSTER_KEPT_NOT;
  }
  const bool is_of_many = tree.num_products == CLUSTER_COPIES_PRODUCTS_MOST;
  return tree.is_expensive && is_of_many && mp_chip_rule(find->figures, MP_CHIP_RULE_kept_gate)
             ? MP_CLUSTER_KEPT_WRITTEN
             : MP_CLUSTER_KEPT_RECOMPUTED;
}

// ---- whether all should make it ----

// The product's result that the value is, perhaps with a few ops behind it; NULL: it is none.
static const mp_value_t *cluster_copies_product(const mp_cluster_find_t *find,
                                                const mp_value_t *value) {
  enum { OPS_MOST = 6 };
  if (find->compiler == MP_CHIP_COMPILER_GPU) return NULL;
  const double count = mp_cluster_value_count(value);
  for (uint32_t i = 0; i < OPS_MOST && value->op != NULL; ++i) {
    if (cluster_copies_is_product(value)) return value;
    const mp_op_t *op = value->op;
    if (!mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE)) return NULL;
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
  return NULL;
}

// The bytes of two ways to make what several clusters read.
typedef struct {
  double copied;   // each of them computes it
  double written;  // the first of them writes it, and the others read it
} cluster_copies_ways_t;

// Adds an operand that comes of a product. Either the product ends in what is written, or it is
// written itself and all read it, but for the first one in which it may end; what is written anyway
// is read by who wants it.
static void cluster_copies_weigh_product(const mp_cluster_find_t *find, const mp_value_t *value,
                                         const mp_value_t *product, double bytes,
                                         bool first_may_write, cluster_copies_ways_t *ways) {
  const double others = find->users.count - 1;
  if (mp_cluster_kept(find, value->op) != MP_CLUSTER_KEPT_NOT) {
    const double kept = mp_work_bytes_of(product->type);
    ways->copied += kept * (1 + others);
    ways->written += kept;
    return;
  }
  ways->copied += mp_work_bytes_of(value->type) + (others + !first_may_write) * bytes;
}

static cluster_copies_ways_t cluster_copies_weigh(const mp_cluster_find_t *find,
                                                  const mp_cluster_op_t *at,
                                                  const mp_cluster_user_t *first,
                                                  bool first_may_write) {
  const double others = find->users.count - 1;
  const double made = at->bytes;
  cluster_copies_ways_t ways = {.written = made * (1 + others)};
  if (!first_may_write) ways.written += made;
  for (uint32_t i = 0; i < at->op->num_operands; ++i) {
    bool is_reused = false;
    const mp_value_t *value = mp_cluster_source(find->figures, at->op, at->kind, i, &is_reused);
    if (value == NULL) continue;
    enum { OPS_MOST = 4 };
    const double bytes =
        fmin(mp_work_bytes_read(at->op, i), mp_cluster_source_bytes(find, value, OPS_MOST));
    const mp_value_t *product = cluster_copies_product(find, value);
    if (product != NULL) {
      cluster_copies_weigh_product(find, value, product, bytes, first_may_write, &ways);
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
  if (find->compiler == MP_CHIP_COMPILER_TPU && is_of_rows && at->op->results[0].type->rank > 2 &&
      mp_chip_rule(find->figures, MP_CHIP_RULE_shifted_exp)) {
    return false;
  }
  const double cost = at->work.transcendentals > 0 ? TRANSCENDENTAL : 1;
  for (uint32_t i = 0; i < find->users.count; ++i) {
    const mp_cluster_user_t *user = &find->users.items[i];
    if (!mp_cluster_accepts(find, at, user)) return false;
    if (find->states.items[user->cluster].copied + cost > COPIED_MOST) return false;
  }
  const mp_cluster_kept_t kept = mp_cluster_kept(find, at->op);
  if (kept == MP_CLUSTER_KEPT_WRITTEN) return false;
  if (kept == MP_CLUSTER_KEPT_NOT) {
    const cluster_copies_ways_t ways = cluster_copies_weigh(find, at, first, first_may_write);
    if (ways.copied > ways.written) return false;
  }
  if (!mp_cluster_pays_again(find, at->op)) return false;
  for (uint32_t i = 0; i < find->users.count; ++i) {
    if (find->users.items[i].cluster == first->cluster) continue;
    find->states.items[find->users.items[i].cluster].copied += cost;
  }
  return true;
}
