// Matmul operands that are copied into VMEM as a whole while earlier kernels run: then the matmul
// does not wait for their windows.
#include <math.h>

#include "sim/chip/rules/chip_rules.h"
#include "sim/chip/spaces/spaces_impl.h"

enum {
  SPACES_OPERANDS =
      MP_CHIP_FUSION_LHS | MP_CHIP_FUSION_RHS | MP_CHIP_FUSION_INNER_LHS | MP_CHIP_FUSION_INNER_RHS
};

static bool spaces_prefetch_is_matmul(const mp_chip_fusion_t *fusion) {
  return fusion->first_member != MP_CHIP_FUSION_NONE && fusion->work.matmul.batch > 0;
}

static bool spaces_prefetch_is_argument(const mp_spaces_t *s, const mp_value_t *value) {
  return value->op == NULL && value->block == s->main->body;
}

// A result that aliases an argument may be written by the program before.
static bool spaces_prefetch_is_donated(const mp_spaces_t *s, const mp_value_t *value) {
  if (s->main->arg_attrs == NULL) return false;
  const mp_attr_t *attrs = s->main->arg_attrs[value->index];
  const mp_attr_t *donor = mp_attr_dict_get(attrs, MP_ATTR_JAX_BUFFER_DONOR);
  return mp_attr_dict_get(attrs, MP_ATTR_TF_ALIASING_OUTPUT) != NULL ||
         (donor != NULL && (donor->kind != MP_KIND_BOOL || donor->u.boolean));
}

// Whether all of the value is an operand of a matmul, or becomes one.
static bool spaces_prefetch_is_operand(const mp_chip_fusion_access_t *access) {
  return access->copy == MP_LAYOUT_NONE && (access->sides & SPACES_OPERANDS) != 0 &&
         (access->sides & MP_CHIP_FUSION_BESIDE) == 0 &&
         access->bytes >= mp_work_bytes_of(access->value->type);
}

// ---- across programs ----

// The largest operand among the arguments, the first one of these.
static const mp_chip_fusion_access_t *spaces_prefetch_largest(mp_spaces_t *s) {
  const mp_chip_fusion_access_t *largest = NULL;
  for (uint32_t number = s->fusions->fusions.count; number-- > 0;) {
    const mp_chip_fusion_t *fusion = &s->fusions->fusions.items[number];
    if (fusion->block != s->main->body || !spaces_prefetch_is_matmul(fusion)) continue;
    s->last_matmul = number;
    const mp_chip_fusion_access_t *access = mp_spaces_accesses(s, fusion);
    for (uint32_t i = 0; i < fusion->num_reads; ++i) {
      if (!spaces_prefetch_is_argument(s, access[i].value) ||
          !spaces_prefetch_is_operand(&access[i]) || access[i].bytes > s->prefetched_most ||
          spaces_prefetch_is_donated(s, access[i].value)) {
        continue;
      }
      if (largest == NULL || access[i].bytes > largest->bytes) largest = &access[i];
    }
  }
  return largest;
}

// The first matmul that reads the value has it prefetched, later ones find it in VMEM. Returns the
// last one.
static uint32_t spaces_prefetch_mark(mp_spaces_t *s, const mp_value_t *value) {
  uint32_t last = MP_CHIP_FUSION_NONE;
  for (uint32_t number = s->fusions->fusions.count; number-- > 0;) {
    const mp_chip_fusion_t *fusion = &s->fusions->fusions.items[number];
    if (fusion->block != s->main->body || !spaces_prefetch_is_matmul(fusion)) continue;
    mp_chip_fusion_access_t *access = mp_spaces_accesses(s, fusion);
    for (uint32_t i = 0; i < fusion->num_reads; ++i) {
      if (access[i].value != value || !spaces_prefetch_is_operand(&access[i])) continue;
      access[i].space = last == MP_CHIP_FUSION_NONE ? MP_SPACE_PREFETCHED : MP_SPACE_VMEM;
      last = number;
    }
  }
  return last;
}

void mp_spaces_prefetch_argument(mp_spaces_t *s) {
  const mp_chip_fusion_access_t *access = spaces_prefetch_largest(s);
  if (access == NULL || !mp_chip_rule(s->figures, MP_CHIP_RULE_prefetch_argument)) {
    s->last_matmul = MP_CHIP_FUSION_NONE;
    return;
  }
  s->prefetched += access->bytes;
  s->argument = access->bytes;
  s->freed_prefetched[spaces_prefetch_mark(s, access->value)] += access->bytes;
}

// ---- while the kernel before runs ----

// Whether a fusion reads or writes a value, all of it or a part.
static bool spaces_prefetch_touches(const mp_spaces_t *s, uint32_t number,
                                    const mp_value_t *value) {
  const mp_chip_fusion_t *fusion = &s->fusions->fusions.items[number];
  const mp_chip_fusion_access_t *access = mp_spaces_accesses(s, fusion);
  for (uint32_t i = 0; i < fusion->num_reads + fusion->num_writes; ++i) {
    if (access[i].value == value) return true;
  }
  return false;
}

static bool spaces_prefetch_is_there(const mp_spaces_t *s, const mp_chip_fusion_access_t *access) {
  return access->space != MP_SPACE_HBM || s->values[access->value->id].is_in_vmem;
}

// The bytes of an operand, if the copies of all that it is made of fit; else 0. A copy begins after
// the value's last reader.
static double spaces_prefetch_bytes(const mp_spaces_t *s, uint32_t number,
                                    mp_chip_fusion_side_t side) {
  const mp_chip_fusion_t *fusion = &s->fusions->fusions.items[number];
  const mp_chip_fusion_access_t *access = mp_spaces_accesses(s, fusion);
  double bytes = 0;
  for (uint32_t i = 0; i < fusion->num_reads; ++i) {
    if ((access[i].sides & side) == 0 || spaces_prefetch_is_there(s, &access[i])) continue;
    if (!spaces_prefetch_is_operand(&access[i]) ||
        spaces_prefetch_touches(s, s->previous, access[i].value)) {
      return 0;
    }
    bytes += access[i].bytes;
  }
  // While the last matmul runs, the argument of the next program is prefetched.
  const double next = number == s->last_matmul ? s->argument : 0;
  return s->kept + s->prefetched + next + bytes <= s->prefetched_most ? bytes : 0;
}

static void spaces_prefetch_side(mp_spaces_t *s, uint32_t number, mp_chip_fusion_side_t side) {
  const mp_chip_fusion_t *fusion = &s->fusions->fusions.items[number];
  mp_chip_fusion_access_t *access = mp_spaces_accesses(s, fusion);
  for (uint32_t i = 0; i < fusion->num_reads; ++i) {
    if ((access[i].sides & side) == 0 || !spaces_prefetch_is_operand(&access[i]) ||
        spaces_prefetch_is_there(s, &access[i])) {
      continue;
    }
    access[i].space = MP_SPACE_PREFETCHED;
    s->freed_prefetched[number] += access[i].bytes;
    s->prefetched += access[i].bytes;
  }
}

// One operand: the larger one of those that fit.
void mp_spaces_prefetch_operand(mp_spaces_t *s, uint32_t number) {
  static const mp_chip_fusion_side_t sides[] = {MP_CHIP_FUSION_LHS, MP_CHIP_FUSION_RHS,
                                                MP_CHIP_FUSION_INNER_LHS, MP_CHIP_FUSION_INNER_RHS};
  const mp_chip_fusion_t *fusion = &s->fusions->fusions.items[number];
  const bool follows = s->previous != MP_CHIP_FUSION_NONE &&
                       s->fusions->fusions.items[s->previous].block == fusion->block;
  if (!follows || !spaces_prefetch_is_matmul(fusion)) return;
  double most = 0;
  mp_chip_fusion_side_t side = MP_CHIP_FUSION_LHS;
  for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); ++i) {
    const double bytes = spaces_prefetch_bytes(s, number, sides[i]);
    if (bytes > most) side = sides[i];
    most = fmax(most, bytes);
  }
  if (most > 0 && mp_chip_rule(s->figures, MP_CHIP_RULE_prefetch_operand)) {
    spaces_prefetch_side(s, number, side);
  }
}
