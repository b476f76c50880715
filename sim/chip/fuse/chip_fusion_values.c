// Looks up values, merged fusions, and members of fusions.
#include "sim/base/assert.h"
#include "sim/base/hash.h"
#include "sim/chip/fuse/chip_fusion_impl.h"

mp_status_t mp_chip_fusion_value(mp_chip_fusion_find_t *find, const mp_value_t *value,
                                 mp_chip_fusion_value_t **out) {
  mp_chip_fusion_value_t *entry;
  const uint64_t hash = mp_hash_pointer(value);
  MP_HASH_MAP_GET(&find->values, hash, entry);
  if (entry == NULL) {
    const mp_chip_fusion_value_t fresh = {.hash = hash,
                                          .first_use = MP_CHIP_FUSION_NONE,
                                          .memory_use = MP_CHIP_FUSION_NONE,
                                          .written_by = MP_CHIP_FUSION_NONE,
                                          .made_by = MP_CHIP_FUSION_NONE,
                                          .reader = MP_CHIP_FUSION_NONE};
    MP_RETURN_IF_ERROR(MP_HASH_MAP_ADD(find->arena, &find->values, &fresh));
    MP_HASH_MAP_GET(&find->values, hash, entry);
  }
  *out = entry;
  return NULL;
}

uint32_t mp_chip_fusion_now(const mp_chip_fusion_find_t *find, uint32_t number) {
  while (find->states.items[number].merged_into != MP_CHIP_FUSION_NONE) {
    number = find->states.items[number].merged_into;
    MP_ASSERT(number < find->states.count);
  }
  return number;
}

bool mp_chip_fusion_has_member(const mp_chip_fusion_find_t *find, const mp_chip_fusion_t *fusion,
                               const mp_op_t *op) {
  uint32_t at = fusion->first_member;
  while (at != MP_CHIP_FUSION_NONE && find->out->members.items[at].op != op) {
    at = find->out->members.items[at].next;
  }
  return at != MP_CHIP_FUSION_NONE;
}
