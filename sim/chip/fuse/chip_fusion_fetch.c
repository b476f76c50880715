// Which factors of matmuls are copied to VMEM as a whole, beside earlier work: then the
// matmul does not wait for their windows.
#include <math.h>

#include "sim/base/hash.h"
#include "sim/chip/fuse/chip_fusion_impl.h"
#include "sim/chip/rules/chip_rules.h"

enum {
  CHIP_FUSION_FETCH_FACTORS =
      MP_CHIP_FUSION_LHS | MP_CHIP_FUSION_RHS | MP_CHIP_FUSION_INNER_LHS | MP_CHIP_FUSION_INNER_RHS
};

static bool chip_fusion_fetch_is_matmul(const mp_chip_fusion_t *fusion) {
  return fusion->first_member != MP_CHIP_FUSION_NONE && fusion->work.matmul.batch > 0;
}

static bool chip_fusion_fetch_is_argument(const mp_chip_fusion_find_t *find,
                                          const mp_value_t *value) {
  const mp_block_t *main = find->main;
  return main->num_args > 0 && value >= main->args && value < main->args + main->num_args;
}

// What a result takes over (a donated argument) is not there before its own program wrote it.
static bool chip_fusion_fetch_is_donated(const mp_chip_fusion_find_t *find,
                                         const mp_value_t *value) {
  if (find->arg_attrs == NULL) return false;
  const mp_attr_t *attrs = find->arg_attrs[value - find->main->args];
  const mp_attr_t *donor = mp_attr_dict_get(attrs, MP_ATTR_JAX_BUFFER_DONOR);
  return mp_attr_dict_get(attrs, MP_ATTR_TF_ALIASING_OUTPUT) != NULL ||
         (donor != NULL && (donor->kind != MP_KIND_BOOL || donor->u.boolean));
}

// Whether all of the value is a factor, or becomes one.
static bool chip_fusion_fetch_is_factor(const mp_chip_fusion_access_t *access) {
  return access->copy == MP_LAYOUT_NONE && (access->sides & CHIP_FUSION_FETCH_FACTORS) != 0 &&
         (access->sides & MP_CHIP_FUSION_BESIDE) == 0 &&
         access->bytes >= mp_work_bytes_of(access->value->type);
}

static mp_chip_fusion_value_t *chip_fusion_fetch_value(const mp_chip_fusion_find_t *find,
                                                       const mp_value_t *value) {
  mp_chip_fusion_value_t *entry;
  MP_HASH_MAP_GET(&find->values, mp_hash_pointer(value), entry);
  return entry;
}

// Whether a fusion reads a value, all of it or a part.
static bool chip_fusion_fetch_reads(const mp_chip_fusion_find_t *find, uint32_t number,
                                    const mp_value_t *value) {
  const mp_chip_fusion_t *fusion = &find->out->fusions.items[number];
  for (uint32_t i = 0; i < fusion->num_reads; ++i) {
    if (find->out->accesses.items[fusion->first_access + i].value == value) return true;
  }
  return false;
}

// ---- the argument that is there when the program begins ----

// The largest factor among the arguments, the first one of these.
static const mp_chip_fusion_access_t *chip_fusion_fetch_largest(mp_chip_fusion_find_t *find,
                                                                mp_chip_fusion_scratch_t *scratch) {
  const mp_chip_fusion_access_t *largest = NULL;
  for (uint32_t number = find->out->fusions.count; number-- > 0;) {
    const mp_chip_fusion_t *fusion = &find->out->fusions.items[number];
    if (fusion->block != find->main || !chip_fusion_fetch_is_matmul(fusion)) continue;
    scratch->last_matmul = number;
    for (uint32_t i = 0; i < fusion->num_reads; ++i) {
      const mp_chip_fusion_access_t *access = &find->out->accesses.items[fusion->first_access + i];
      if (!chip_fusion_fetch_is_argument(find, access->value) ||
          !chip_fusion_fetch_is_factor(access))
        continue;
      if (access->bytes > find->resident || chip_fusion_fetch_is_donated(find, access->value))
        continue;
      if (largest != NULL && access->bytes <= largest->bytes) continue;
      largest = access;
    }
  }
  return largest;
}

// Marks the reads of a value by matmuls; returns the last fusion that reads it so.
static uint32_t chip_fusion_fetch_mark(mp_chip_fusion_find_t *find, const mp_value_t *value) {
  uint32_t last = MP_CHIP_FUSION_NONE;
  for (uint32_t number = find->out->fusions.count; number-- > 0;) {
    const mp_chip_fusion_t *fusion = &find->out->fusions.items[number];
    if (fusion->block != find->main || !chip_fusion_fetch_is_matmul(fusion)) continue;
    for (uint32_t i = 0; i < fusion->num_reads; ++i) {
      mp_chip_fusion_access_t *access = &find->out->accesses.items[fusion->first_access + i];
      if (access->value != value || !chip_fusion_fetch_is_factor(access)) continue;
      access->is_fetched = true;
      access->is_again = last != MP_CHIP_FUSION_NONE;
      last = number;
    }
  }
  return last;
}

void mp_chip_fusion_fetch_argument(mp_chip_fusion_find_t *find, mp_chip_fusion_scratch_t *scratch) {
  const mp_chip_fusion_access_t *access = chip_fusion_fetch_largest(find, scratch);
  if (access == NULL || !mp_chip_rule(find->figures, MP_CHIP_RULE_prefetch_argument)) {
    scratch->last_matmul = MP_CHIP_FUSION_NONE;
    return;
  }
  scratch->fetched += access->bytes;
  scratch->argument = access->bytes;
  scratch->freed_fetched[chip_fusion_fetch_mark(find, access->value)] += access->bytes;
}

// ---- factors beside the fusion before ----

// Whether a value is in memory before the fusion at hand's predecessor begins, and is not read by
// that: the compiler's copies begin behind the last reader.
static bool chip_fusion_fetch_is_early(const mp_chip_fusion_find_t *find,
                                       const mp_chip_fusion_scratch_t *scratch,
                                       const mp_value_t *value) {
  if (chip_fusion_fetch_reads(find, scratch->previous, value)) return false;
  const mp_chip_fusion_value_t *entry = chip_fusion_fetch_value(find, value);
  return value->op == NULL || entry == NULL || entry->written_by == MP_CHIP_FUSION_NONE ||
         mp_chip_fusion_now(find, entry->written_by) != scratch->previous;
}

// The bytes that a factor is made of, if all of them can be copied before; else 0.
static double chip_fusion_fetch_bytes(const mp_chip_fusion_find_t *find,
                                      const mp_chip_fusion_scratch_t *scratch,
                                      const mp_chip_fusion_t *fusion, mp_chip_fusion_side_t side) {
  double bytes = 0;
  for (uint32_t i = 0; i < fusion->num_reads; ++i) {
    const mp_chip_fusion_access_t *access = &find->out->accesses.items[fusion->first_access + i];
    if ((access->sides & side) == 0) continue;
    const mp_chip_fusion_value_t *entry = chip_fusion_fetch_value(find, access->value);
    const bool is_there = access->is_fetched || access->is_again;
    if (is_there || (entry != NULL && entry->is_scratch)) continue;
    if (!chip_fusion_fetch_is_factor(access) ||
        !chip_fusion_fetch_is_early(find, scratch, access->value))
      return 0;
    bytes += access->bytes;
  }
  // When the last matmul is at work, the next run's argument is on its way.
  const bool is_last = scratch->last_matmul != MP_CHIP_FUSION_NONE &&
                       fusion == &find->out->fusions.items[scratch->last_matmul];
  const double next = is_last ? scratch->argument : 0;
  return scratch->kept + scratch->fetched + next + bytes <= find->resident ? bytes : 0;
}

static void chip_fusion_fetch_side(mp_chip_fusion_find_t *find, mp_chip_fusion_scratch_t *scratch,
                                   uint32_t number, mp_chip_fusion_side_t side) {
  const mp_chip_fusion_t *fusion = &find->out->fusions.items[number];
  for (uint32_t i = 0; i < fusion->num_reads; ++i) {
    mp_chip_fusion_access_t *access = &find->out->accesses.items[fusion->first_access + i];
    if ((access->sides & side) == 0 || !chip_fusion_fetch_is_factor(access)) continue;
    if (access->is_fetched || access->is_again) continue;
    access->is_fetched = true;
    const mp_chip_fusion_value_t *entry = chip_fusion_fetch_value(find, access->value);
    if (entry != NULL && entry->is_scratch) continue;
    scratch->freed_fetched[number] += access->bytes;
    scratch->fetched += access->bytes;
  }
}

// One factor: the larger one of those that fit.
void mp_chip_fusion_fetch_factor(mp_chip_fusion_find_t *find, mp_chip_fusion_scratch_t *scratch,
                                 uint32_t number) {
  const mp_chip_fusion_t *fusion = &find->out->fusions.items[number];
  if (fusion->first_member == MP_CHIP_FUSION_NONE) return;
  const uint32_t previous = scratch->previous;
  const bool follows =
      previous != MP_CHIP_FUSION_NONE && find->out->fusions.items[previous].block == fusion->block;
  if (follows && chip_fusion_fetch_is_matmul(fusion)) {
    static const mp_chip_fusion_side_t sides[] = {
        MP_CHIP_FUSION_LHS, MP_CHIP_FUSION_RHS, MP_CHIP_FUSION_INNER_LHS, MP_CHIP_FUSION_INNER_RHS};
    double most = 0;
    mp_chip_fusion_side_t side = MP_CHIP_FUSION_LHS;
    for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); ++i) {
      const double bytes = chip_fusion_fetch_bytes(find, scratch, fusion, sides[i]);
      if (bytes > most) side = sides[i];
      most = fmax(most, bytes);
    }
    if (most > 0 && mp_chip_rule(find->figures, MP_CHIP_RULE_prefetch_operand)) {
      chip_fusion_fetch_side(find, scratch, number, side);
    }
  }
  scratch->previous = number;
}
