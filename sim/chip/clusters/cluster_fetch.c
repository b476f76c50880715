// Which factors of products are copied to scratch memory as a whole, beside earlier work: then the
// product does not wait for their windows.
#include <math.h>

#include "sim/base/hash.h"
#include "sim/chip/clusters/cluster_impl.h"

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

// Whether all of the value is a factor, or becomes one.
static bool cluster_fetch_is_factor(const mp_cluster_access_t *access) {
  return (access->sides & CLUSTER_FETCH_FACTORS) != 0 && (access->sides & MP_CLUSTER_BESIDE) == 0 &&
         access->bytes >= mp_work_bytes_of(access->value->type);
}

static mp_cluster_value_t *cluster_fetch_value(const mp_cluster_find_t *find,
                                               const mp_value_t *value) {
  mp_cluster_value_t *entry;
  MP_HASH_MAP_GET(&find->values, mp_hash_pointer(value), entry);
  return entry;
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
      if (access->bytes > find->resident) continue;
      if (largest == NULL || access->bytes > largest->bytes) largest = access;
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
  if (access == NULL) {
    scratch->last_product = MP_CLUSTER_NONE;
    return;
  }
  scratch->fetched += access->bytes;
  scratch->argument = access->bytes;
  scratch->freed_fetched[cluster_fetch_mark(find, access->value)] += access->bytes;
}

// ---- factors beside the cluster before ----

// Whether a value is in memory before the cluster at hand's predecessor begins.
static bool cluster_fetch_is_early(const mp_cluster_find_t *find,
                                   const mp_cluster_scratch_t *scratch, const mp_value_t *value) {
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
    if (access->is_fetched || (entry != NULL && entry->is_scratch)) continue;
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

static void cluster_fetch_side(mp_cluster_find_t *find, const mp_cluster_t *cluster,
                               mp_cluster_side_t side) {
  for (uint32_t i = 0; i < cluster->num_reads; ++i) {
    mp_cluster_access_t *access = &find->out->accesses.items[cluster->first_access + i];
    if ((access->sides & side) != 0 && cluster_fetch_is_factor(access)) access->is_fetched = true;
  }
}

// ---- what is updated ----

// The write of a cluster that could take over an array of the same type; NULL if there is none.
static mp_cluster_access_t *cluster_fetch_heir(mp_cluster_find_t *find, const mp_cluster_t *cluster,
                                               const mp_cluster_access_t *read) {
  const mp_type_t *type = read->value->type;
  for (uint32_t i = 0; i < cluster->num_writes; ++i) {
    mp_cluster_access_t *access =
        &find->out->accesses.items[cluster->first_access + cluster->num_reads + i];
    const mp_type_t *of = access->value->type;
    const bool is_same = of->dtype == type->dtype && of->rank == type->rank &&
                         mp_work_bytes_of(of) == mp_work_bytes_of(type);
    if (is_same && !access->is_fetched && access->bytes == read->bytes) return access;
  }
  return NULL;
}

// Weights that a product's kernel updates are copied to scratch memory before, if there is room,
// made anew in their place, and copied back beside later work.
static void cluster_fetch_updated(mp_cluster_find_t *find, mp_cluster_scratch_t *scratch,
                                  uint32_t number) {
  const mp_cluster_t *cluster = &find->out->clusters.items[number];
  if (cluster->block != find->main) return;
  for (uint32_t i = 0; i < cluster->num_reads; ++i) {
    mp_cluster_access_t *access = &find->out->accesses.items[cluster->first_access + i];
    if (access->sides != MP_CLUSTER_BESIDE || !cluster_fetch_is_argument(find, access->value) ||
        access->bytes < mp_work_bytes_of(access->value->type) ||
        scratch->kept + scratch->fetched + access->bytes > find->resident) {
      continue;
    }
    mp_cluster_access_t *heir = cluster_fetch_heir(find, cluster, access);
    if (heir == NULL) continue;
    access->is_fetched = heir->is_fetched = true;
    scratch->fetched += access->bytes;
    scratch->freed_fetched[number] += access->bytes;
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
    if (most > 0) cluster_fetch_side(find, cluster, side);
    scratch->fetched += most;
    scratch->freed_fetched[number] += most;
  }
  if (follows && cluster_fetch_is_product(cluster)) cluster_fetch_updated(find, scratch, number);
  scratch->previous = number;
}
