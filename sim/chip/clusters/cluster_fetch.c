// Which factors of products are copied to scratch memory as a whole, beside earlier work: then the
// product does not wait for their windows.
#include <math.h>

#include "sim/base/hash.h"
#include "sim/chip/clusters/cluster_impl.h"
#include "sim/chip/rules/chip_rules.h"

enum {
  CLUSTER_FETCH_FACTORS =
      MP_CLUSTER_LHS | MP_CLUSTER_RHS | MP_CLUSTER_INNER_LHS | MP_CLUSTER_INNER_RHS
};

static bool cluster_fetch_is_product(const mp_cluster_t *cluster) {
  return cluster->first_member != MP_CLUSTER_NONE && cluster->work.product.batch > 0;
}

static bool cluster_fetch_is_argument(const mp_cluster_find_t *find, const mp_value_t *value) {
  const mp_block_t *main = find->main;
  return main->num_args > 0 && value >= main->args && value < main->args + main->num_args;
}

// What a result takes over (a donated argument) is not there before its own program wrote it.
static bool cluster_fetch_is_donated(const mp_cluster_find_t *find, const mp_value_t *value) {
  if (find->arg_attrs == NULL) return false;
  const mp_attr_t *attrs = find->arg_attrs[value - find->main->args];
  const mp_attr_t *donor = mp_attr_dict_get(attrs, MP_ATTR_JAX_BUFFER_DONOR);
  return mp_attr_dict_get(attrs, MP_ATTR_TF_ALIASING_OUTPUT) != NULL ||
         (donor != NULL && (donor->kind != MP_KIND_BOOL || donor->u.boolean));
}

// Whether all of the value is a factor, or becomes one.
static bool cluster_fetch_is_factor(const mp_cluster_access_t *access) {
  return access->copy == MP_LAYOUT_NONE && (access->sides & CLUSTER_FETCH_FACTORS) != 0 &&
         (access->sides & MP_CLUSTER_BESIDE) == 0 &&
         access->bytes >= mp_work_bytes_of(access->value->type);
}

static mp_cluster_value_t *cluster_fetch_value(const mp_cluster_find_t *find,
                                               const mp_value_t *value) {
  mp_cluster_value_t *entry;
  MP_HASH_MAP_GET(&find->values, mp_hash_pointer(value), entry);
  return entry;
}

// Whether a cluster reads a value, all of it or a part.
static bool cluster_fetch_reads(const mp_cluster_find_t *find, uint32_t number,
                                const mp_value_t *value) {
  const mp_cluster_t *cluster = &find->out->clusters.items[number];
  for (uint32_t i = 0; i < cluster->num_reads; ++i) {
    if (find->out->accesses.items[cluster->first_access + i].value == value) return true;
  }
  return false;
}

// ---- the argument that is there when the program begins ----

// The largest factor among the arguments, the first one of these.
static const mp_cluster_access_t *cluster_fetch_largest(mp_cluster_find_t *find,
                                                        mp_cluster_scratch_t *scratch) {
  const mp_cluster_access_t *largest = NULL;
  for (uint32_t number = find->out->clusters.count; number-- > 0;) {
    const mp_cluster_t *cluster = &find->out->clusters.items[number];
    if (cluster->block != find->main || !cluster_fetch_is_product(cluster)) continue;
    scratch->last_product = number;
    for (uint32_t i = 0; i < cluster->num_reads; ++i) {
      const mp_cluster_access_t *access = &find->out->accesses.items[cluster->first_access + i];
      if (!cluster_fetch_is_argument(find, access->value) || !cluster_fetch_is_factor(access))
        continue;
      if (access->bytes > find->resident || cluster_fetch_is_donated(find, access->value)) continue;
      if (largest != NULL && access->bytes <= largest->bytes) continue;
      largest = access;
    }
  }
  return largest;
}

// Marks the reads of a value by products; returns the last cluster that reads it so.
static uint32_t cluster_fetch_mark(mp_cluster_find_t *find, const mp_value_t *value) {
  uint32_t last = MP_CLUSTER_NONE;
  for (uint32_t number = find->out->clusters.count; number-- > 0;) {
    const mp_cluster_t *cluster = &find->out->clusters.items[number];
    if (cluster->block != find->main || !cluster_fetch_is_product(cluster)) continue;
    for (uint32_t i = 0; i < cluster->num_reads; ++i) {
      mp_cluster_access_t *access = &find->out->accesses.items[cluster->first_access + i];
      if (access->value != value || !cluster_fetch_is_factor(access)) continue;
      access->is_fetched = true;
      access->is_again = last != MP_CLUSTER_NONE;
      last = number;
    }
  }
  return last;
}

void mp_cluster_fetch_argument(mp_cluster_find_t *find, mp_cluster_scratch_t *scratch) {
  const mp_cluster_access_t *access = cluster_fetch_largest(find, scratch);
  if (access == NULL || !mp_chip_rule(find->figures, MP_CHIP_RULE_prefetch_argument)) {
    scratch->last_product = MP_CLUSTER_NONE;
    return;
  }
  scratch->fetched += access->bytes;
  scratch->argument = access->bytes;
  scratch->freed_fetched[cluster_fetch_mark(find, access->value)] += access->bytes;
}

// ---- factors beside the cluster before ----

// Whether a value is in memory before the cluster at hand's predecessor begins, and is not read by
// that: the compiler's copies begin behind the last reader.
static bool cluster_fetch_is_early(const mp_cluster_find_t *find,
                                   const mp_cluster_scratch_t *scratch, const mp_value_t *value) {
  if (cluster_fetch_reads(find, scratch->previous, value)) return false;
  const mp_cluster_value_t *entry = cluster_fetch_value(find, value);
  return value->op == NULL || entry == NULL || entry->written_by == MP_CLUSTER_NONE ||
         mp_cluster_now(find, entry->written_by) != scratch->previous;
}

// The bytes that a factor is made of, if all of them can be copied before; else 0.
static double cluster_fetch_bytes(const mp_cluster_find_t *find,
                                  const mp_cluster_scratch_t *scratch, const mp_cluster_t *cluster,
                                  mp_cluster_side_t side) {
  double bytes = 0;
  for (uint32_t i = 0; i < cluster->num_reads; ++i) {
    const mp_cluster_access_t *access = &find->out->accesses.items[cluster->first_access + i];
    if ((access->sides & side) == 0) continue;
    const mp_cluster_value_t *entry = cluster_fetch_value(find, access->value);
    const bool is_there = access->is_fetched || access->is_again;
    if (is_there || (entry != NULL && entry->is_scratch)) continue;
    if (!cluster_fetch_is_factor(access) || !cluster_fetch_is_early(find, scratch, access->value))
      return 0;
    bytes += access->bytes;
  }
  // When the last product is at work, the next run's argument is on its way.
  const bool is_last = scratch->last_product != MP_CLUSTER_NONE &&
                       cluster == &find->out->clusters.items[scratch->last_product];
  const double next = is_last ? scratch->argument : 0;
  return scratch->kept + scratch->fetched + next + bytes <= find->resident ? bytes : 0;
}

static void cluster_fetch_side(mp_cluster_find_t *find, mp_cluster_scratch_t *scratch,
                               uint32_t number, mp_cluster_side_t side) {
  const mp_cluster_t *cluster = &find->out->clusters.items[number];
  for (uint32_t i = 0; i < cluster->num_reads; ++i) {
    mp_cluster_access_t *access = &find->out->accesses.items[cluster->first_access + i];
    if ((access->sides & side) == 0 || !cluster_fetch_is_factor(access)) continue;
    if (access->is_fetched || access->is_again) continue;
    access->is_fetched = true;
    const mp_cluster_value_t *entry = cluster_fetch_value(find, access->value);
    if (entry != NULL && entry->is_scratch) continue;
    scratch->freed_fetched[number] += access->bytes;
    scratch->fetched += access->bytes;
  }
}

// One factor: the larger one of those that fit.
void mp_cluster_fetch_factor(mp_cluster_find_t *find, mp_cluster_scratch_t *scratch,
                             uint32_t number) {
  const mp_cluster_t *cluster = &find->out->clusters.items[number];
  if (cluster->first_member == MP_CLUSTER_NONE) return;
  const uint32_t previous = scratch->previous;
  const bool follows =
      previous != MP_CLUSTER_NONE && find->out->clusters.items[previous].block == cluster->block;
  if (follows && cluster_fetch_is_product(cluster)) {
    static const mp_cluster_side_t sides[] = {MP_CLUSTER_LHS, MP_CLUSTER_RHS, MP_CLUSTER_INNER_LHS,
                                              MP_CLUSTER_INNER_RHS};
    double most = 0;
    mp_cluster_side_t side = MP_CLUSTER_LHS;
    for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); ++i) {
      const double bytes = cluster_fetch_bytes(find, scratch, cluster, sides[i]);
      if (bytes > most) side = sides[i];
      most = fmax(most, bytes);
    }
    if (most > 0 && mp_chip_rule(find->figures, MP_CHIP_RULE_prefetch_operand)) {
      cluster_fetch_side(find, scratch, number, side);
    }
  }
  scratch->previous = number;
}
