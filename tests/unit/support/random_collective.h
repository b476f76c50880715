// Random collectives with their operands: every kind, several types, uneven groups.
//
//   random_collective_t r;
//   random_collective(&r, seed, num_devices);
//   ... r.collective, r.inputs[device][operand], r.output_bytes[operand] ...
//   random_collective_end(&r);
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_RANDOM_COLLECTIVE_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_RANDOM_COLLECTIVE_H_

#include <string.h>

#include "collectives/collective.h"
#include "sim/numeric/dims.h"
#include "sim/numeric/float.h"
#include "tests/unit/support/unit.h"

enum { RANDOM_MAX_DEVICES = 16, RANDOM_MAX_OPERANDS = 6 };

typedef struct {
  uint64_t state;
  mp_arena_t *arena;
  mp_collective_t collective;
  mp_collective_operand_t operands[RANDOM_MAX_OPERANDS];
  uint32_t num_devices, num_results;
  size_t input_bytes[RANDOM_MAX_OPERANDS], output_bytes[RANDOM_MAX_OPERANDS];
  void *inputs[RANDOM_MAX_DEVICES][RANDOM_MAX_OPERANDS];
} random_collective_t;

static inline uint32_t random_below(random_collective_t *r, uint32_t n) {
  r->state = r->state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)((r->state >> 33) % n);
}

#define RANDOM_COMBINE(name, type, expr)                                                        \
  static void name(const void *context, int64_t count, const void *a, const void *b, void *out, \
                   void *scratch) {                                                             \
    (void)context;                                                                              \
    (void)scratch;                                                                              \
    for (int64_t i = 0; i < count; ++i) {                                                       \
      const type x = ((const type *)a)[i], y = ((const type *)b)[i];                            \
      ((type *)out)[i] = (type)(expr);                                                          \
    }                                                                                           \
  }
RANDOM_COMBINE(random_add_i32, int32_t, (int32_t)((uint32_t)x + (uint32_t)y))
RANDOM_COMBINE(random_add_f32, float, x + y)
// Neither associative nor commutative: shows any other order.
RANDOM_COMBINE(random_mix_f32, float, x * 0.75f - y)
RANDOM_COMBINE(random_mix_f64, double, x * 0.75 - y)
RANDOM_COMBINE(random_max_i8, int8_t, x > y ? x : y)

typedef struct {
  mp_dtype_t dtype, accumulation;
  void (*combine)(const void *, int64_t, const void *, const void *, void *, void *);
} random_type_t;

static const random_type_t k_random_types[] = {
    {MP_DTYPE_F32, MP_DTYPE_F32, random_add_f32}, {MP_DTYPE_BF16, MP_DTYPE_F32, random_add_f32},
    {MP_DTYPE_F64, MP_DTYPE_F64, random_mix_f64}, {MP_DTYPE_S32, MP_DTYPE_S32, random_add_i32},
    {MP_DTYPE_F16, MP_DTYPE_F32, random_mix_f32}, {MP_DTYPE_S8, MP_DTYPE_S8, random_max_i8},
};
enum { RANDOM_NUM_TYPES = sizeof(k_random_types) / sizeof(k_random_types[0]) };

static inline int64_t *random_copy(random_collective_t *r, const int64_t *dims, uint32_t rank) {
  return mp_arena_copy(r->arena, dims, rank * sizeof(*dims));
}

static inline void random_fill(random_collective_t *r, mp_dtype_t dtype, int64_t count, void *to) {
  const size_t size = mp_dtype_size(dtype);
  for (int64_t i = 0; i < count; ++i) {
    char *at = (char *)to + (size_t)i * size;
    if (mp_dtype_is_float(dtype)) {
      mp_float_encode(dtype, ((double)random_below(r, 20001) - 10000) / 1024, at);
    } else {
      for (size_t b = 0; b < size; ++b) at[b] = (char)random_below(r, 256);
    }
  }
}

static inline void random_operand(random_collective_t *r, const random_type_t *type, uint32_t rank,
                                  const int64_t *dims, const int64_t *result_dims) {
  const uint32_t i = r->collective.num_operands++;
  r->operands[i] =
      (mp_collective_operand_t){type->dtype, type->accumulation, rank, random_copy(r, dims, rank),
                                random_copy(r, result_dims, rank)};
  const size_t size = mp_dtype_size(type->dtype);
  r->input_bytes[i] = (size_t)mp_dims_product(dims, 0, rank) * size;
  r->output_bytes[i] = (size_t)mp_dims_product(result_dims, 0, rank) * size;
  for (uint32_t d = 0; d < r->num_devices; ++d) {
    r->inputs[d][i] = mp_arena_alloc(r->arena, r->input_bytes[i] + 16);
    random_fill(r, type->dtype, mp_dims_product(dims, 0, rank), r->inputs[d][i]);
  }
}

// Rows of equal or random lengths of all devices in random order; some may be left out.
static inline void random_groups(random_collective_t *r, bool is_even, bool may_miss) {
  int64_t order[RANDOM_MAX_DEVICES], table[RANDOM_MAX_DEVICES * RANDOM_MAX_DEVICES];
  const uint32_t n = r->num_devices;
  for (uint32_t i = 0; i < n; ++i) order[i] = i;
  for (uint32_t i = n; i-- > 1 && random_below(r, 4) != 0;) {
    const uint32_t j = random_below(r, i + 1);
    const int64_t swapped = order[i];
    order[i] = order[j];
    order[j] = swapped;
  }
  for (uint32_t i = 0; i < n * n; ++i) table[i] = -1;
  uint32_t rows = 1 + random_below(r, n < 3 ? n : 3);
  while (is_even && n % rows != 0) --rows;
  uint32_t filled[RANDOM_MAX_DEVICES] = {0};
  for (uint32_t i = 0; i < n; ++i) {
    if (may_miss && random_below(r, 8) == 0) continue;
    const uint32_t row = is_even ? i / (n / rows) : random_below(r, rows);
    table[row * n + filled[row]++] = order[i];
  }
  assert_ok(mp_groups_create(r->arena, MP_GROUPS_FLATTENED_IDS, 1, n, table, rows, n,
                             &r->collective.groups));
}

static inline void random_reduction(random_collective_t *r, const random_type_t *type) {
  r->collective.reducer =
      (mp_reducer_t){.combine = type->combine,
                     .max_count = random_below(r, 3) == 0 ? 1 + random_below(r, 600) : INT32_MAX,
                     .digest = (uint64_t)type->dtype};
}

static inline void random_permute(random_collective_t *r) {
  const uint32_t n = r->num_devices;
  random_groups(r, true, false);
  uint32_t *pairs = mp_arena_alloc(r->arena, 2 * n * sizeof(*pairs));
  const mp_groups_t *groups = r->collective.groups;
  for (uint32_t target = 0; target < n; ++target) {
    if (random_below(r, 5) == 0) continue;
    const uint32_t group = (uint32_t)groups->group_of[target];
    const uint32_t size = groups->offsets[group + 1] - groups->offsets[group];
    const uint32_t shift = 1 + r->num_devices % 3;
    const uint32_t source = (groups->position[target] + shift) % size;
    pairs[2 * r->collective.num_pairs] = groups->members[groups->offsets[group] + source];
    pairs[2 * r->collective.num_pairs++ + 1] = target;
  }
  r->collective.pairs = pairs;
}

// Cuts [0, total) into `parts` parts of random sizes (0 too).
static inline void random_cut(random_collective_t *r, int64_t total, uint32_t parts,
                              int64_t *cuts) {
  cuts[0] = 0;
  for (uint32_t i = 1; i <= parts; ++i) {
    const int64_t left = total - cuts[i - 1];
    cuts[i] = i == parts ? total : cuts[i - 1] + (int64_t)random_below(r, (uint32_t)left + 1);
  }
}

// Every device holds one of `parts` parts along one dimension.
static inline mp_collective_boxes_t random_boxes(random_collective_t *r, const int64_t *whole,
                                                 uint32_t along, int64_t *most) {
  const uint32_t n = r->num_devices;
  const mp_groups_t *groups = r->collective.groups;
  int64_t *starts = mp_arena_alloc(r->arena, 2 * n * sizeof(*starts));
  int64_t *sizes = mp_arena_alloc(r->arena, 2 * n * sizeof(*sizes));
  uint32_t *owner = mp_arena_alloc(r->arena, n * sizeof(*owner));
  most[0] = most[1] = 0;
  for (uint32_t g = 0; g < groups->num_groups; ++g) {
    const uint32_t *members = groups->members + groups->offsets[g];
    const uint32_t size = groups->offsets[g + 1] - groups->offsets[g];
    const uint32_t parts = 1 + random_below(r, size);
    int64_t cuts[RANDOM_MAX_DEVICES + 1];
    random_cut(r, whole[along], parts, cuts);
    for (uint32_t i = 0; i < size; ++i) {
      int64_t *start = starts + (size_t)members[i] * 2, *extent = sizes + (size_t)members[i] * 2;
      memset(start, 0, 2 * sizeof(*start));
      memcpy(extent, whole, 2 * sizeof(*extent));
      start[along] = cuts[i % parts];
      extent[along] = cuts[i % parts + 1] - cuts[i % parts];
      // Empty boxes of several parts are one box or none; each holder is its own owner then.
      owner[members[i]] = extent[along] == 0 ? members[i] : members[i % parts];
      for (uint32_t d = 0; d < 2; ++d) most[d] = extent[d] > most[d] ? extent[d] : most[d];
    }
  }
  return (mp_collective_boxes_t){starts, sizes, owner};
}

static inline void random_exchange(random_collective_t *r, const random_type_t *type,
                                   int64_t most) {
  random_groups(r, false, false);
  const int64_t whole[2] = {1 + random_below(r, (uint32_t)most), 1 + random_below(r, 9)};
  int64_t have[2], want[2];
  r->collective.source = random_boxes(r, whole, random_below(r, 2), have);
  r->collective.target = random_boxes(r, whole, random_below(r, 2), want);
  random_operand(r, type, 2, have, want);
}

// Sizes are drawn for each pair; rows of a destination follow each other.
static inline void random_ragged(random_collective_t *r, const random_type_t *type) {
  static const random_type_t index = {MP_DTYPE_S64, MP_DTYPE_S64, NULL};
  random_groups(r, true, false);
  const mp_groups_t *groups = r->collective.groups;
  const uint32_t size = groups->offsets[1];
  const int64_t per_pair = 1 + random_below(r, 2);
  const int64_t count = size * per_pair;
  const int64_t rows = count * 3, width = 1 + random_below(r, 5);
  random_operand(r, type, 2, (int64_t[]){rows, width}, (int64_t[]){rows, width});
  random_operand(r, type, 2, (int64_t[]){rows, width}, (int64_t[]){rows, width});
  for (int i = 0; i < 4; ++i) random_operand(r, &index, 1, &count, &count);
  for (uint32_t g = 0; g < groups->num_groups; ++g) {
    const uint32_t *members = groups->members + groups->offsets[g];
    int64_t in[RANDOM_MAX_DEVICES] = {0}, out[RANDOM_MAX_DEVICES] = {0};
    for (uint32_t s = 0; s < size; ++s) {
      for (uint32_t d = 0; d < size; ++d) {
        for (int64_t u = 0; u < per_pair; ++u) {
          const int64_t sent = random_below(r, 4);
          ((int64_t *)r->inputs[members[s]][2])[d * per_pair + u] = in[s];
          ((int64_t *)r->inputs[members[s]][3])[d * per_pair + u] = sent;
          ((int64_t *)r->inputs[members[s]][4])[d * per_pair + u] = out[d];
          ((int64_t *)r->inputs[members[d]][5])[s * per_pair + u] = sent;
          in[s] += sent;
          out[d] += sent;
        }
      }
    }
  }
  r->num_results = 1;
}

// `most` bounds the dimensions.
static inline void random_operands(random_collective_t *r, const random_type_t *type,
                                   int64_t most) {
  const mp_collective_kind_t kind = r->collective.kind;
  const mp_groups_t *groups = r->collective.groups;
  const int64_t size = groups->num_groups == 0 ? 1 : groups->offsets[1];
  const uint32_t rank = 1 + random_below(r, 3);
  r->collective.dimension = random_below(r, rank);
  r->collective.concat_dimension = random_below(r, rank);
  for (uint32_t i = 1 + random_below(r, 3); i-- > 0;) {
    int64_t dims[3], result[3];
    const int64_t bound = rank == 1 ? most * most : rank == 2 ? most : most / 4 + 2;
    for (uint32_t d = 0; d < rank; ++d) dims[d] = 1 + random_below(r, (uint32_t)bound);
    const int64_t along = r->collective.dimension;
    const bool scatters = kind == MP_COLLECTIVE_REDUCE_SCATTER || kind == MP_COLLECTIVE_ALL_TO_ALL;
    if (scatters) dims[along] *= size;
    memcpy(result, dims, sizeof(dims));
    if (scatters) result[along] /= size;
    if (kind == MP_COLLECTIVE_ALL_GATHER) result[along] *= size;
    if (kind == MP_COLLECTIVE_ALL_TO_ALL) result[r->collective.concat_dimension] *= size;
    random_operand(r, type, rank, dims, result);
  }
}

// Kinds come one after the other with the seed.
static inline void random_collective(random_collective_t *r, uint64_t seed, uint32_t num_devices,
                                     int64_t most) {
  memset(r, 0, sizeof(*r));
  r->state = seed * 977 + 12345;
  r->num_devices = num_devices;
  assert_ok(mp_arena_create(&r->arena));
  for (int i = 0; i < 4; ++i) (void)random_below(r, 2);
  const random_type_t *type = &k_random_types[random_below(r, RANDOM_NUM_TYPES)];
  const mp_collective_kind_t kind = (mp_collective_kind_t)(seed % MP_GROUP_COLLECTIVE_KINDS);
  r->collective = (mp_collective_t){
      .kind = kind, .name = "stablehlo.random", .location = "here", .operands = r->operands};
  random_reduction(r, type);
  if (kind == MP_COLLECTIVE_RAGGED_ALL_TO_ALL) {
    random_ragged(r, type);
    return;
  }
  if (kind == MP_COLLECTIVE_EXCHANGE) {
    random_exchange(r, type, most);
  } else if (kind == MP_COLLECTIVE_PERMUTE) {
    random_permute(r);
    random_operands(r, type, most);
  } else {
    const bool is_even = kind == MP_COLLECTIVE_ALL_GATHER || kind == MP_COLLECTIVE_REDUCE_SCATTER ||
                         kind == MP_COLLECTIVE_ALL_TO_ALL;
    random_groups(r, is_even, kind == MP_COLLECTIVE_BROADCAST);
    random_operands(r, type, most);
  }
  r->num_results = r->collective.num_operands;
}

static inline void random_collective_end(random_collective_t *r) {
  mp_arena_release(r->arena);
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_RANDOM_COLLECTIVE_H_
