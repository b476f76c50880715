// rng_bit_generator and rng (StableHLO specification, sections of these names).
//
// The bits of rng_bit_generator are the same as XLA's on a CPU, by these rules. The state is (key,
// counter) or (key, counter low, counter high), of 64 bits each; in a Philox state of two words the
// key is also the high part of the counter, and stays. DEFAULT is Philox. Elements below 32 bits
// are the low bits of 32-bit words, and elements of 64 bits are two words, the low one first.
// Threefry's blocks of two words lie along one dimension of the result: the first one of even size,
// or else the longest.
#include <math.h>
#include <string.h>

#include "sim/kernels/random/counter_rng.h"
#include "sim/kernels/random/random_makers.h"
#include "sim/kernels/shape.h"

enum { BLOCKS = 256, GRAIN_BLOCKS = 1 << 15 };

typedef struct {
  mp_kernel_t base;
  mp_dtype_t dtype;
  uint32_t bits;         // of an element
  uint32_t state_words;  // 2 or 3
  int64_t count;         // elements
  int64_t num_blocks;
  // For Threefry with up to 32 bits: element [outer, 2 * h + p, inner] is word p of block [outer,
  // h, inner].
  int64_t extent, half, inner;
} bits_kernel_t;

static void rng_store_word(const bits_kernel_t *self, void *out, int64_t i, uint32_t word) {
  if (self->bits == 32) {
    ((uint32_t *)out)[i] = word;
  } else if (self->bits == 16) {
    ((uint16_t *)out)[i] = (uint16_t)word;
  } else {
    ((uint8_t *)out)[i] = (uint8_t)(word & ((1u << self->bits) - 1));
  }
}

// ---- Threefry ----

// Writes blocks [first, first + count), of words of up to 32 bits, to their places.
static void rng_threefry_place(const bits_kernel_t *self, int64_t first, int64_t count,
                               const uint32_t *x, const uint32_t *y, void *out) {
  for (int64_t i = 0; i < count; ++i) {
    int64_t block = first + i, inner = block % self->inner;
    int64_t h = block / self->inner % self->half, outer = block / self->inner / self->half;
    int64_t at = (outer * self->extent + 2 * h) * self->inner + inner;
    rng_store_word(self, out, at, x[i]);
    if (2 * h + 1 < self->extent) rng_store_word(self, out, at + self->inner, y[i]);
  }
}

static mp_status_t rng_threefry_run(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const bits_kernel_t *self = (const bits_kernel_t *)kernel;
  const uint64_t *state = call->operands[0];
  uint64_t *new_state = call->results[0];
  int64_t begin = 0, end = 0;
  mp_part_range(self->num_blocks, kernel->num_parts, call->part, &begin, &end);
  uint64_t key = state[0], counter = state[1];
  if (call->part == 0) {
    new_state[0] = key;
    new_state[1] = counter + (uint64_t)self->num_blocks;
  }
  for (int64_t at = begin; at < end; at += BLOCKS) {
    uint32_t x[BLOCKS], y[BLOCKS];
    int64_t count = mp_min_i64(BLOCKS, end - at);
    mp_threefry_blocks(key, counter + (uint64_t)at, count, x, y);
    if (self->bits < 64) {
      rng_threefry_place(self, at, count, x, y, call->results[1]);
      continue;
    }
    uint64_t *out = (uint64_t *)call->results[1] + at;
    for (int64_t i = 0; i < count; ++i) out[i] = x[i] | (uint64_t)y[i] << 32;
  }
  return NULL;
}

static void rng_threefry_plan(bits_kernel_t *self, const mp_type_t *out) {
  if (self->bits == 64) {
    self->num_blocks = self->count;
    return;
  }
  uint32_t split = 0;
  for (uint32_t i = out->rank; i-- > 0;) {  // the first of the longest...
    if (out->dims[i] >= out->dims[split]) split = i;
  }
  for (uint32_t i = out->rank; i-- > 0;) {  // ... but rather the first even one
    if (out->dims[i] % 2 == 0) split = i;
  }
  self->extent = out->rank == 0 ? 1 : out->dims[split];
  self->half = (self->extent + 1) / 2;
  self->inner = mp_dims_product(out->dims, split + 1, out->rank);
  self->num_blocks = mp_dims_product(out->dims, 0, split) * self->half * self->inner;
}

// ---- Philox ----

static mp_status_t rng_philox_run(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const bits_kernel_t *self = (const bits_kernel_t *)kernel;
  const uint64_t *state = call->operands[0];
  uint64_t *new_state = call->results[0];
  uint64_t key = state[0];
  uint64_t counter[2] = {state[1], self->state_words == 3 ? state[2] : key};
  if (call->part == 0) {
    uint64_t after[2] = {counter[0], counter[1]};
    mp_counter_add(after, (uint64_t)self->num_blocks);
    new_state[0] = key;
    new_state[1] = after[0];
    if (self->state_words == 3) new_state[2] = after[1];
  }
  int64_t begin = 0, end = 0;
  mp_part_range(self->num_blocks, kernel->num_parts, call->part, &begin, &end);
  int64_t per_block = self->bits == 64 ? 2 : 4;
  for (int64_t at = begin; at < end; at += BLOCKS) {
    uint32_t words[4 * BLOCKS];
    int64_t blocks = mp_min_i64(BLOCKS, end - at);
    uint64_t here[2] = {counter[0], counter[1]};
    mp_counter_add(here, (uint64_t)at);
    mp_philox_blocks(key, here, blocks, words);
    int64_t first = at * per_block;
    int64_t count = mp_min_i64(blocks * per_block, self->count - first);
    if (self->bits >= 32) {  // the words are in memory in the order of the elements
      size_t size = self->bits / 8;
      memcpy((char *)call->results[1] + (size_t)first * size, words, (size_t)count * size);
    } else {
      for (int64_t i = 0; i < count; ++i) {
        rng_store_word(self, call->results[1], first + i, words[i]);
      }
    }
  }
  return NULL;
}

mp_status_t mp_kernel_make_rng_bit_generator(mp_arena_t *arena, const mp_op_t *op,
                                             const mp_kernel_t **out_kernel) {
  const mp_type_t *state = mp_op_operand_type(op, 0), *out = mp_op_result_type(op, 1);
  uint32_t algorithm = mp_op_enum(op, MP_ATTR_RNG_ALGORITHM, MP_RNG_DEFAULT);
  bits_kernel_t *self = MP_ARENA_NEW(arena, bits_kernel_t);
  MP_RETURN_IF_NULL(self);
  bool threefry = algorithm == MP_RNG_THREE_FRY;
  mp_kernel_init(&self->base, threefry ? rng_threefry_run : rng_philox_run, op);
  self->dtype = out->dtype;
  self->bits = (uint32_t)mp_dtype_bits(out->dtype);
  self->state_words = (uint32_t)mp_shape_count(state);
  self->count = mp_shape_count(out);
  if (mp_dtype_bits(state->dtype) != 64 || self->state_words < 2 || self->state_words > 3 ||
      (threefry && self->state_words != 2) || self->bits > 64 || out->dtype == MP_DTYPE_BOOL) {
    return mp_op_error(op, MP_UNIMPLEMENTED, "rng_bit_generator of %s with a state of %u x %s",
                       mp_dtype_name(out->dtype), self->state_words, mp_dtype_name(state->dtype));
  }
  if (threefry) {
    rng_threefry_plan(self, out);
  } else {
    int64_t per_block = self->bits == 64 ? 2 : 4;
    self->num_blocks = (self->count + per_block - 1) / per_block;
  }
  self->base.num_parts = mp_part_count(self->num_blocks, GRAIN_BLOCKS);
  *out_kernel = &self->base;
  return NULL;
}

// ---- rng ----

// The numbers come from Philox with a key that depends on where the op stands in the program, so
// that the same program gives the same numbers every time.
typedef struct {
  mp_kernel_t base;
  mp_dtype_t dtype;
  bool normal;
  int64_t count;
  uint64_t key;
} rng_kernel_t;

static double rng_load_scalar(mp_dtype_t dtype, const void *element) {
  if (mp_dtype_is_float(dtype)) return mp_float_decode(dtype, element);
  return (double)mp_load_index(dtype, element);
}

// A number in [0, 1) from 64 random bits.
static double rng_unit(uint64_t bits) {
  return (double)(bits >> 11) * 0x1p-53;
}

static void rng_store_number(const rng_kernel_t *self, const mp_kernel_call_t *call, uint64_t u,
                             uint64_t v, void *out) {
  if (mp_dtype_is_float(self->dtype)) {
    double a = rng_load_scalar(self->dtype, call->operands[0]);
    double b = rng_load_scalar(self->dtype, call->operands[1]);
    double x = 0;
    if (self->normal) {  // Box and Muller; 1 - u is never 0
      x = a + b * sqrt(-2 * log(1 - rng_unit(u))) * cos(6.283185307179586 * rng_unit(v));
    } else {
      x = a + (b - a) * rng_unit(u);
      float nearest = (float)x;  // rounding must not reach the open end
      if (self->dtype == MP_DTYPE_F32 && nearest >= (float)b) x = a;
    }
    mp_float_encode(self->dtype, x, out);
    return;
  }
  int64_t low = mp_load_index(self->dtype, call->operands[0]);
  int64_t high = mp_load_index(self->dtype, call->operands[1]);
  uint64_t range = (uint64_t)high - (uint64_t)low;
  uint64_t value = (uint64_t)low + (range == 0 ? 0 : u % range);
  int bits = mp_dtype_bits(self->dtype);
  if (bits < 64) value &= (1ull << bits) - 1;
  memcpy(out, &value, mp_dtype_size(self->dtype));
}

static mp_status_t rng_run(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const rng_kernel_t *self = (const rng_kernel_t *)kernel;
  int64_t begin = 0, end = 0;
  mp_part_range(self->count, kernel->num_parts, call->part, &begin, &end);
  size_t size = mp_dtype_size(self->dtype);
  for (int64_t i = begin; i < end; ++i) {
    uint32_t words[4];
    mp_philox_blocks(self->key, (uint64_t[]){(uint64_t)i, 0}, 1, words);
    rng_store_number(self, call, words[0] | (uint64_t)words[1] << 32,
                     words[2] | (uint64_t)words[3] << 32,
                     (char *)call->results[0] + (size_t)i * size);
  }
  return NULL;
}

mp_status_t mp_kernel_make_rng(mp_arena_t *arena, const mp_op_t *op,
                               const mp_kernel_t **out_kernel) {
  const mp_type_t *out = mp_op_result_type(op, 0);
  rng_kernel_t *self = MP_ARENA_NEW(arena, rng_kernel_t);
  MP_RETURN_IF_NULL(self);
  mp_kernel_init(&self->base, rng_run, op);
  self->dtype = out->dtype;
  self->normal = mp_op_enum(op, MP_ATTR_RNG_DISTRIBUTION, MP_RNG_UNIFORM) == MP_RNG_NORMAL;
  self->count = mp_shape_count(out);
  if (mp_dtype_is_complex(out->dtype) || (self->normal && !mp_dtype_is_float(out->dtype))) {
    return mp_op_error(op, MP_UNIMPLEMENTED, "rng of %s", mp_dtype_name(out->dtype));
  }
  uint64_t place = 0x9E3779B97F4A7C15;
  for (const mp_op_t *at = op; at != NULL; at = at->parent != NULL ? at->parent->parent_op : NULL) {
    for (const mp_op_t *before = at; before != NULL; before = before->prev) {
      place = place * 6364136223846793005ull + (uint64_t)before->code + 1;
    }
  }
  self->key = place;
  self->base.num_parts = mp_part_count(self->count, GRAIN_BLOCKS);
  *out_kernel = &self->base;
  return NULL;
}
