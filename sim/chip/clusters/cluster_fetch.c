// Which factors of products are copied to scratch memory as a whole, beside earlier work: then the
// product does not wait for their windows.
#include <math.h>

#include "sim/base/hash.h"
#include "sim/chip/clusters/cluster_impl.h"
#include "sim/chip/rules/rules.h"

// The share of the room in which arguments stay for later kernels: what these have copied for
// themselves alone, and what they make, needs some, too.
#define CLUSTER_FETCH_STAYS 0.5

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

// Whether a side of the kernel computes nothing but another type. Of 1,400 arguments that libtpu
// 0.0.52 prefetches across programs none is computed with on its way to the product; 58 larger ones
// that are were left for others. (Copies beside earlier work are made of such ones, too.)
static bool cluster_fetch_is_plain(const mp_cluster_find_t *find, const mp_cluster_t *cluster,
                                   uint8_t sides) {
  for (uint32_t at = cluster->first_member; at != MP_CLUSTER_NONE;
       at = find->out->members.items[at].next) {
    const mp_cluster_member_t *member = &find->out->members.items[at];
    if ((member->sides & sides & CLUSTER_FETCH_FACTORS) == 0) continue;
    // A number by which a factor is multiplied goes to the smallest of the three arrays.
    if (member->op->code == MP_OP_CONVERT || mp_cluster_scales(find->figures, member->op)) continue;
    if (mp_op_has(member->op, MP_OP_TRAIT_ELEMENTWISE)) {
      return !mp_chip_rule(find->figures, MP_CHIP_RULE_prefetch_plain);
    }
  }
  return true;
}

// Whether a kernel that is no product, nor looks up, goes through the argument before the cluster
// does. Of 900 arguments that libtpu 0.0.52 prefetches so none is first read by such a one; a Gram
// matrix behind the squares of its rows has none.
static bool cluster_fetch_is_read_before(const mp_cluster_find_t *find, uint32_t number,
                                         const mp_value_t *value) {
  for (uint32_t before = find->out->clusters.count; --before > number;) {
    const mp_cluster_t *cluster = &find->out->clusters.items[before];
    if (cluster->first_member == MP_CLUSTER_NONE || cluster->block != find->main) continue;
    if (!cluster_fetch_reads(find, before, value)) continue;
    return !cluster_fetch_is_product(cluster) && cluster->leader->code != MP_OP_GATHER &&
           mp_chip_rule(find->figures, MP_CHIP_RULE_prefetch_unread);
  }
  return false;
}

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
      if (!cluster_fetch_is_plain(find, cluster, access->sides)) continue;
      if (!cluster_fetch_is_read_before(find, number, access->value)) largest = access;
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

// ---- what stays ----

// Whether a cluster reads the whole of a value; then it finds that in scratch memory from now on.
static bool cluster_fetch_mark_again(mp_cluster_find_t *find, const mp_cluster_t *cluster,
                                     const mp_value_t *value) {
  bool is_read = false;
  for (uint32_t i = 0; i < cluster->num_reads; ++i) {
    mp_cluster_access_t *access = &find->out->accesses.items[cluster->first_access + i];
    if (access->value != value || access->bytes < mp_work_bytes_of(value->type)) continue;
    access->is_again = is_read = true;
  }
  return is_read;
}

// An argument that a cluster has copied to scratch memory stays there for those that read it later
// (weights for the gradient, and for their update), if there is room. Returns the last of these.
static uint32_t cluster_fetch_stay(mp_cluster_find_t *find, mp_cluster_scratch_t *scratch,
                                   uint32_t number, const mp_cluster_access_t *access) {
  const mp_block_t *block = find->out->clusters.items[number].block;
  if (!cluster_fetch_is_argument(find, access->value) || block != find->main) return number;
  const double most = find->resident * CLUSTER_FETCH_STAYS;
  if (scratch->kept + scratch->fetched + access->bytes > most) return number;
  if (!mp_chip_rule(find->figures, MP_CHIP_RULE_prefetch_stays)) return number;
  const mp_cluster_value_t *entry = cluster_fetch_value(find, access->value);
  if (entry == NULL || entry->reader == MP_CLUSTER_NONE) return number;
  uint32_t last = number;
  for (uint32_t later = number; later-- > entry->reader;) {
    const mp_cluster_t *cluster = &find->out->clusters.items[later];
    if (cluster->first_member == MP_CLUSTER_NONE || cluster->block != block) continue;
    if (cluster_fetch_mark_again(find, cluster, access->value)) last = later;
  }
  return last;
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
    scratch->freed_fetched[cluster_fetch_stay(find, scratch, number, access)] += access->bytes;
    scratch->fetched += access->bytes;
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
        access->bytes < mp_work_bytes_of(access->value->type)) {
      continue;
    }
    const double bytes = access->is_again ? 0 : access->bytes;
    if (scratch->kept + scratch->fetched + bytes > find->resident) continue;
    mp_cluster_access_t *heir = cluster_fetch_heir(find, cluster, access);
    if (heir == NULL) continue;
    if (!mp_chip_rule(find->figures, MP_CHIP_RULE_prefetch_updated)) continue;
    access->is_fetched = heir->is_fetched = true;
    scratch->fetched += bytes;
    scratch->freed_fetched[number] += bytes;
  }
}

// What is small, as a bias, is there in any case.
static void cluster_fetch_small(mp_cluster_find_t *find, mp_cluster_scratch_t *scratch,
                                uint32_t number) {
  enum { SMALL = 1 << 16 };
  const mp_cluster_t *cluster = &find->out->clusters.items[number];
  for (uint32_t i = 0; i < cluster->num_reads; ++i) {
    mp_cluster_access_t *access = &find->out->accesses.items[cluster->first_access + i];
    if (access->is_again || access->is_fetched) continue;
    if (!cluster_fetch_is_argument(find, access->value) || access->bytes > SMALL) continue;
    if (!mp_chip_rule(find->figures, MP_CHIP_RULE_prefetch_small)) continue;
    access->is_fetched = true;
    cluster_fetch_stay(find, scratch, number, access);
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
  if (follows && cluster_fetch_is_product(cluster)) {
    cluster_fetch_updated(find, scratch, number);
    cluster_fetch_small(find, scratch, number);
  }
  scratch->previous = number;
}
