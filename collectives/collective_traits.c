#include "collectives/collective_traits.h"

#include <inttypes.h>
#include <string.h>

#include "sim/base/hash.h"

// ---- Fingerprints ----

static uint64_t collective_traits_hash_dims(uint64_t hash, const int64_t *dims, uint32_t rank) {
  hash = mp_hash_u64(hash, rank);
  return rank == 0 ? hash : mp_hash_bytes(hash, dims, rank * sizeof(*dims));
}

static uint64_t collective_traits_hash_pairs(const mp_collective_t *collective) {
  uint64_t hash = mp_hash_u64(MP_HASH_START, collective->num_pairs);
  if (collective->num_pairs == 0) return hash;
  return mp_hash_bytes(hash, collective->pairs,
                       2 * (size_t)collective->num_pairs * sizeof(*collective->pairs));
}

static uint64_t collective_traits_hash_boxes(uint64_t hash, const mp_collective_boxes_t *boxes,
                                             size_t count) {
  if (boxes->starts == NULL || count == 0) return mp_hash_u64(hash, 0);
  hash = mp_hash_u64(hash, count);
  hash = mp_hash_bytes(hash, boxes->starts, count * sizeof(*boxes->starts));
  return mp_hash_bytes(hash, boxes->sizes, count * sizeof(*boxes->sizes));
}

mp_traits_t mp_traits_of(const mp_collective_t *collective, uint64_t program) {
  uint64_t types = MP_HASH_START, results = MP_HASH_START;
  uint64_t reduction = mp_hash_u64(MP_HASH_START, collective->reducer.digest);
  for (uint32_t i = 0; i < collective->num_operands; ++i) {
    const mp_collective_operand_t *operand = &collective->operands[i];
    types = mp_hash_u64(types, (uint64_t)operand->dtype);
    types = collective_traits_hash_dims(types, operand->dims, operand->rank);
    results = collective_traits_hash_dims(results, operand->result_dims, operand->rank);
    reduction = mp_hash_u64(reduction, (uint64_t)operand->accumulation);
  }
  const uint64_t dimension = mp_hash_u64(MP_HASH_START, (uint64_t)collective->dimension);
  const uint32_t rank = collective->num_operands == 0 ? 0 : collective->operands[0].rank;
  const size_t count = (size_t)collective->groups->num_devices * rank;
  const uint64_t source = collective_traits_hash_boxes(MP_HASH_START, &collective->source, count);
  return (mp_traits_t){
      .kind = collective->kind,
      .num_operands = collective->num_operands,
      .types = types,
      .dimensions = mp_hash_u64(dimension, (uint64_t)collective->concat_dimension),
      .results = results,
      .reduction = reduction,
      .pairs = collective_traits_hash_pairs(collective),
      .boxes = collective_traits_hash_boxes(source, &collective->target, count),
      .program = program,
      .ordinal = collective->ordinal,
  };
}

uint64_t mp_collective_digest(const mp_collective_t *collective) {
  if (collective->digest != 0) return collective->digest;
  const mp_traits_t traits = mp_traits_of(collective, 0);
  uint64_t digest =
      mp_hash_u64(MP_HASH_START, (uint64_t)traits.kind << 32 | (uint64_t)traits.num_operands);
  digest = mp_hash_u64(digest, traits.types);
  digest = mp_hash_u64(digest, traits.dimensions);
  digest = mp_hash_u64(digest, traits.results);
  digest = mp_hash_u64(digest, traits.reduction);
  digest = mp_hash_u64(digest, traits.pairs);
  digest = mp_hash_u64(digest, traits.boxes);
  return digest == 0 ? 1 : digest;
}

// ---- Texts ----

const char *mp_traits_difference(const mp_traits_t *a, const mp_traits_t *b) {
  if (a->kind != b->kind) return "they are different operations";
  if (a->num_operands != b->num_operands) return "their numbers of operands differ";
  if (a->types != b->types) return "their types differ";
  if (a->dimensions != b->dimensions) return "their dimensions differ";
  if (a->results != b->results) return "the shapes of their results differ";
  if (a->reduction != b->reduction) return "their reductions differ";
  if (a->pairs != b->pairs) return "their source_target_pairs differ";
  if (a->boxes != b->boxes) return "the parts of the array that they exchange differ";
  if (a->program == b->program && a->ordinal != b->ordinal) {
    return "they are at different places of the program";
  }
  return NULL;
}

static void collective_traits_print_type(mp_strbuf_t *out, const char *separator,
                                         const mp_collective_operand_t *operand,
                                         const int64_t *dims) {
  mp_strbuf_printf(out, "%stensor<", separator);
  for (uint32_t d = 0; d < operand->rank; ++d) mp_strbuf_printf(out, "%" PRId64 "x", dims[d]);
  mp_strbuf_printf(out, "%s>", mp_dtype_name(operand->dtype));
}

void mp_collective_print_side(mp_strbuf_t *out, uint32_t name, const mp_collective_t *collective) {
  mp_strbuf_printf(out, "device %" PRIu32 " is at %s (%s) of ", name, collective->name,
                   collective->location);
  bool has_others = false;
  for (uint32_t i = 0; i < collective->num_operands; ++i) {
    const mp_collective_operand_t *operand = &collective->operands[i];
    collective_traits_print_type(out, i == 0 ? "" : ", ", operand, operand->dims);
    has_others |= operand->rank != 0 && memcmp(operand->dims, operand->result_dims,
                                               operand->rank * sizeof(*operand->dims)) != 0;
  }
  for (uint32_t i = 0; i < collective->num_operands && has_others; ++i) {
    const mp_collective_operand_t *operand = &collective->operands[i];
    collective_traits_print_type(out, i == 0 ? " -> " : ", ", operand, operand->result_dims);
  }
}
