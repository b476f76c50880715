// Which products XLA's compiler for GPUs makes one of, because they share a factor (DotMerger): the
// other factors are put side by side, and what comes out is cut.
#include "sim/base/hash.h"
#include "sim/chip/clusters/cluster_impl.h"
#include "sim/chip/clusters/factor.h"
#include "sim/chip/rules/rules.h"

// All but one of them have this many bytes at most, of factors and result: what jax 0.10.2 makes
// one of 50.6 MB each, and not of 67.2.
#define CLUSTER_MERGE_BYTES_MOST (64.0 * 1024 * 1024)
// Products of a class that are looked at together, and ops between the first and the last.
#define CLUSTER_MERGE_SET  64
#define CLUSTER_MERGE_SPAN 16384
// Sets of a class: those of one set do not need each other.
#define CLUSTER_MERGE_SETS 8

// One factor of a product, by which others may share it.
typedef struct {
  const mp_op_t *op;
  uint32_t shared;  // which factor
  mp_product_factor_t factor;
  uint32_t position;  // of the op in its block
  uint32_t next;      // of the class, in the order of the block; MP_CLUSTER_NONE: the last one
} cluster_merge_use_t;

typedef struct {
  uint64_t hash;
  uint32_t first, last;  // uses
} cluster_merge_class_t;

typedef struct {
  mp_cluster_find_t *find;
  MP_ARRAY(cluster_merge_use_t) uses;
  MP_ARRAY(uint32_t) firsts;  // of classes, in their order
  MP_HASH_MAP(cluster_merge_class_t) classes;
} cluster_merge_t;

// Of the same class are those that read the same value in the same way, in the same types.
static uint64_t cluster_merge_hash(const cluster_merge_use_t *use) {
  const mp_op_t *op = use->op;
  const uint64_t types = (uint64_t)op->operands[use->shared]->type->dtype << 32 |
                         (uint64_t)op->operands[1 - use->shared]->type->dtype << 16 |
                         (uint64_t)op->results[0].type->dtype;
  return mp_hash_u64(mp_hash_u64(mp_hash_u64(mp_hash_pointer(use->factor.value), use->factor.batch),
                                 use->factor.summed),
                     types);
}

static mp_status_t cluster_merge_note(cluster_merge_t *m, const cluster_merge_use_t *use) {
  const uint32_t number = m->uses.count;
  const uint64_t hash = cluster_merge_hash(use);
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(m->find->scratch_arena, &m->uses, *use));
  cluster_merge_class_t *entry;
  MP_HASH_MAP_GET(&m->classes, hash, entry);
  if (entry != NULL) {
    m->uses.items[entry->last].next = number;
    entry->last = number;
    return NULL;
  }
  const cluster_merge_class_t fresh = {hash, number, number};
  MP_RETURN_IF_ERROR(MP_HASH_MAP_ADD(m->find->scratch_arena, &m->classes, &fresh));
  return MP_ARRAY_PUSH(m->find->scratch_arena, &m->firsts, number);
}

// ---- which do not need each other ----

// A value that products of a set come before.
typedef struct {
  uint64_t hash;
  uint64_t after;  // a bit for each of them
} cluster_merge_value_t;

typedef struct {
  const cluster_merge_use_t *uses[CLUSTER_MERGE_SET];
  uint64_t after[CLUSTER_MERGE_SET];  // those of the set that it needs
  uint32_t count;
} cluster_merge_set_t;

// Those of a class that are no part of another set by now.
static void cluster_merge_gather(const cluster_merge_t *m, uint32_t first,
                                 cluster_merge_set_t *set) {
  set->count = 0;
  for (uint32_t at = first; at != MP_CLUSTER_NONE; at = m->uses.items[at].next) {
    const cluster_merge_use_t *use = &m->uses.items[at];
    if (mp_cluster_merged(m->find->out, use->op) != NULL) continue;
    // A product of a value by itself is there for both of its factors.
    if (set->count > 0 && set->uses[set->count - 1]->op == use->op) continue;
    if (set->count > 0 && use->position - set->uses[0]->position > CLUSTER_MERGE_SPAN) break;
    if (set->count == CLUSTER_MERGE_SET) break;
    set->uses[set->count++] = use;
  }
}

typedef MP_HASH_MAP(cluster_merge_value_t) cluster_merge_values_t;

// Those of a set that an op needs. What has regions is taken to need all that came before.
static uint64_t cluster_merge_needs(const cluster_merge_values_t *values, const mp_op_t *op,
                                    uint32_t seen) {
  if (op->num_regions > 0) return ((uint64_t)1 << (seen & 63)) - 1;
  uint64_t after = 0;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const cluster_merge_value_t *entry;
    MP_HASH_MAP_GET(values, mp_hash_pointer(op->operands[i]), entry);
    if (entry != NULL) after |= entry->after;
  }
  return after;
}

static mp_status_t cluster_merge_follow(cluster_merge_set_t *set, cluster_merge_values_t *values) {
  uint32_t seen = 0;
  const mp_op_t *op = set->uses[0]->op;
  for (; op != NULL && seen < set->count; op = op->next) {
    uint64_t after = cluster_merge_needs(values, op, seen);
    if (op == set->uses[seen]->op) {
      set->after[seen] = after;
      after |= (uint64_t)1 << seen++;
    }
    for (uint32_t i = 0; i < op->num_results && after != 0; ++i) {
      const cluster_merge_value_t value = {mp_hash_pointer(&op->results[i]), after};
      MP_RETURN_IF_ERROR(MP_HASH_MAP_ADD(NULL, values, &value));
    }
  }
  return NULL;
}

// Finds which of a set need others.
static mp_status_t cluster_merge_order(cluster_merge_set_t *set) {
  cluster_merge_values_t values = {0};
  const mp_status_t status = cluster_merge_follow(set, &values);
  MP_HASH_MAP_FREE(&values);
  return status;
}

static bool cluster_merge_is_small(const mp_op_t *op) {
  return mp_work_bytes_of(op->operands[0]->type) + mp_work_bytes_of(op->operands[1]->type) +
             mp_work_bytes_of(op->results[0].type) <=
         CLUSTER_MERGE_BYTES_MOST;
}

// ---- sets ----

// The columns, or rows, of the factor that is not shared.
static double cluster_merge_columns(const cluster_merge_use_t *use) {
  mp_work_t work;
  mp_work_of_op(use->op, &work);
  return use->shared == 0 ? work.product.n : work.product.m;
}

// Chooses what becomes one product: all small ones that do not need each other, and one other.
static uint64_t cluster_merge_choose(const cluster_merge_set_t *set) {
  uint64_t chosen = 0;
  for (uint32_t pass = 0; pass < 2; ++pass) {
    for (uint32_t i = 0; i < set->count; ++i) {
      if (cluster_merge_is_small(set->uses[i]->op) != (pass == 0)) continue;
      bool is_free = (set->after[i] & chosen) == 0;
      for (uint32_t j = i + 1; j < set->count && is_free; ++j) {
        is_free = !(chosen >> j & 1 && set->after[j] >> i & 1);
      }
      if (!is_free) continue;
      chosen |= (uint64_t)1 << i;
      if (pass == 1) return chosen;
    }
    if (chosen == 0) return 0;
  }
  return chosen;
}

// From the last one to the first, so that each knows the next one.
static mp_status_t cluster_merge_set(cluster_merge_t *m, const cluster_merge_set_t *set,
                                     uint64_t chosen) {
  double columns = 0;
  const mp_op_t *next = NULL;
  for (uint32_t i = 0; i < set->count; ++i) {
    if (chosen >> i & 1) columns += cluster_merge_columns(set->uses[i]);
  }
  for (uint32_t i = set->count; i-- > 0;) {
    if (!(chosen >> i & 1)) continue;
    const cluster_merge_use_t *use = set->uses[i];
    const bool is_first = (chosen & (((uint64_t)1 << i) - 1)) == 0;
    const mp_cluster_merged_t entry = {
        .hash = mp_hash_pointer(use->op),
        .next = next,
        .is_first = is_first,
        .shared = use->shared,
        .share = columns > 0 ? cluster_merge_columns(use) / columns : 0,
        .columns = columns};
    MP_RETURN_IF_ERROR(MP_HASH_MAP_ADD(m->find->arena, &m->find->out->merged, &entry));
    next = use->op;
  }
  return NULL;
}

static mp_status_t cluster_merge_class(cluster_merge_t *m, uint32_t first) {
  for (uint32_t i = 0; i < CLUSTER_MERGE_SETS; ++i) {
    cluster_merge_set_t set;
    cluster_merge_gather(m, first, &set);
    if (set.count < 2) return NULL;
    MP_RETURN_IF_ERROR(cluster_merge_order(&set));
    const uint64_t chosen = cluster_merge_choose(&set);
    if ((chosen & (chosen - 1)) == 0) return NULL;
    if (!mp_chip_rule(m->find->figures, MP_CHIP_RULE_dot_merger)) return NULL;
    MP_RETURN_IF_ERROR(cluster_merge_set(m, &set, chosen));
  }
  return NULL;
}

// ---- blocks ----

static mp_status_t cluster_merge_block(mp_cluster_find_t *find, const mp_block_t *block) {
  cluster_merge_t m = {.find = find};
  uint32_t position = 0;
  for (const mp_op_t *op = block->first; op != NULL; op = op->next, ++position) {
    if (mp_op_info(op->code)->role == MP_OP_ROLE_CONTROL) {
      for (uint32_t i = 0; i < op->num_regions; ++i) {
        MP_RETURN_IF_ERROR(cluster_merge_block(find, op->regions[i]));
      }
    }
    if (op->code != MP_OP_DOT_GENERAL || mp_cluster_is_sum(find->figures, op)) continue;
    for (uint32_t i = 0; i < 2; ++i) {
      const cluster_merge_use_t use = {op, i, mp_product_factor(op, i), position, MP_CLUSTER_NONE};
      MP_RETURN_IF_ERROR(cluster_merge_note(&m, &use));
    }
  }
  for (uint32_t i = 0; i < m.firsts.count; ++i) {
    MP_RETURN_IF_ERROR(cluster_merge_class(&m, m.firsts.items[i]));
  }
  return NULL;
}

mp_status_t mp_cluster_find_merged(mp_cluster_find_t *find) {
  if (find->compiler != MP_CHIP_COMPILER_GPU) return NULL;
  return cluster_merge_block(find, find->main);
}

const mp_cluster_merged_t *mp_cluster_merged(const mp_clusters_t *clusters, const mp_op_t *op) {
  const mp_cluster_merged_t *entry;
  MP_HASH_MAP_GET(&clusters->merged, mp_hash_pointer(op), entry);
  return entry;
}
