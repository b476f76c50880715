// Programs of ops that fusion knows, drawn at random: chains of elementwise ops over arrays of all
// kinds of element types, broadcasts, slices, transposes, reductions of rows, and barriers between.
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_HOSTILE_FUSABLE_PROGRAMS_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_HOSTILE_FUSABLE_PROGRAMS_H_

#include <stdio.h>
#include <string.h>

#include "sim/base/str.h"
#include "tests/unit/support/hostile/hostile_values.h"

typedef struct {
  const char *name;
  mp_dtype_t dtype;
  char kind;  // f: floating-point, i: integer, b: boolean
} element_t;

static const element_t k_elements[] = {
    {"f32", MP_DTYPE_F32, 'f'}, {"bf16", MP_DTYPE_BF16, 'f'},
    {"f16", MP_DTYPE_F16, 'f'}, {"f64", MP_DTYPE_F64, 'f'},
    {"i32", MP_DTYPE_S32, 'i'}, {"ui32", MP_DTYPE_U32, 'i'},
    {"i8", MP_DTYPE_S8, 'i'},   {"ui64", MP_DTYPE_U64, 'i'},
    {"i1", MP_DTYPE_BOOL, 'b'}, {"f8E4M3FN", MP_DTYPE_F8E4M3FN, 'f'},
};
enum { NUM_ELEMENTS = sizeof(k_elements) / sizeof(k_elements[0]), MAX_VALUES = 64, MAX_RANK = 3 };

typedef struct {
  uint32_t element;
  uint32_t rank;
  int64_t dims[MAX_RANK];
} shape_t;

typedef struct {
  uint64_t state;
  mp_strbuf_t text;
  shape_t values[MAX_VALUES];  // %v0, %v1, ...
  uint32_t count;
} draw_t;

static inline uint32_t pick(draw_t *d, uint32_t bound) {
  return (uint32_t)(hostile_random(&d->state) % bound);
}

static const char *type_of(shape_t shape, char *buffer) {
  char *at = buffer + sprintf(buffer, "tensor<");
  for (uint32_t i = 0; i < shape.rank; ++i) at += sprintf(at, "%lldx", (long long)shape.dims[i]);
  sprintf(at, "%s>", k_elements[shape.element].name);
  return buffer;
}

static inline bool same_dims(shape_t a, shape_t b) {
  return a.rank == b.rank && memcmp(a.dims, b.dims, a.rank * sizeof(a.dims[0])) == 0;
}

static inline void add_value(draw_t *d, shape_t shape) {
  d->values[d->count++] = shape;
}

// Another value of the same type, newer ones more often; `of` itself if there is none.
static inline uint32_t find_like(draw_t *d, uint32_t of) {
  for (int tries = 0; tries < 12; ++tries) {
    const uint32_t i = pick(d, d->count);
    if (d->values[i].element == d->values[of].element && same_dims(d->values[i], d->values[of])) {
      return i;
    }
  }
  return of;
}

static inline void draw_binary(draw_t *d, uint32_t a) {
  static const char *const floats[] = {"add",     "subtract", "multiply",
                                       "maximum", "minimum",  "divide"};
  static const char *const integers[] = {"add", "subtract", "multiply",   "maximum",
                                         "xor", "or",       "shift_left", "shift_right_logical"};
  static const char *const booleans[] = {"and", "or", "xor"};
  const shape_t shape = d->values[a];
  const char kind = k_elements[shape.element].kind;
  const char *name = kind == 'f'   ? floats[pick(d, 6)]
                     : kind == 'i' ? integers[pick(d, 8)]
                                   : booleans[pick(d, 3)];
  char type[128];
  mp_strbuf_printf(&d->text, "%%v%u = stablehlo.%s %%v%u, %%v%u : %s\n", d->count, name, a,
                   find_like(d, a), type_of(shape, type));
  add_value(d, shape);
}

static inline void draw_unary(draw_t *d, uint32_t a) {
  static const char *const floats[] = {"negate", "abs", "exponential", "tanh", "floor", "sqrt"};
  const shape_t shape = d->values[a];
  const char kind = k_elements[shape.element].kind;
  const char *name = kind == 'f' ? floats[pick(d, 6)] : "not";
  char type[128];
  mp_strbuf_printf(&d->text, "%%v%u = stablehlo.%s %%v%u : %s\n", d->count, name, a,
                   type_of(shape, type));
  add_value(d, shape);
}

static inline void draw_convert(draw_t *d, uint32_t a) {
  char from[128], to[128];
  shape_t shape = d->values[a];
  type_of(shape, from);
  shape.element = pick(d, NUM_ELEMENTS);
  mp_strbuf_printf(&d->text, "%%v%u = stablehlo.convert %%v%u : (%s) -> %s\n", d->count, a, from,
                   type_of(shape, to));
  add_value(d, shape);
}

static inline void draw_select(draw_t *d, uint32_t a) {
  char type[128], predicate[128];
  const shape_t shape = d->values[a];
  shape_t bits = shape;
  bits.element = 8;
  mp_strbuf_printf(&d->text, "%%v%u = stablehlo.compare LT, %%v%u, %%v%u : (%s, %s) -> %s\n",
                   d->count, a, find_like(d, a), type_of(shape, type), type,
                   type_of(bits, predicate));
  add_value(d, bits);
  mp_strbuf_printf(&d->text, "%%v%u = stablehlo.select %%v%u, %%v%u, %%v%u : %s, %s\n", d->count,
                   d->count - 1, a, find_like(d, a), predicate, type);
  add_value(d, shape);
}

// A constant, or an iota, of the value's type.
static inline void draw_made(draw_t *d, uint32_t a) {
  char type[128];
  const shape_t shape = d->values[a];
  const char kind = k_elements[shape.element].kind;
  if (kind != 'b' && shape.rank != 0 && pick(d, 2) == 0) {
    mp_strbuf_printf(&d->text, "%%v%u = stablehlo.iota dim = %u : %s\n", d->count,
                     pick(d, shape.rank), type_of(shape, type));
  } else {
    mp_strbuf_printf(&d->text, "%%v%u = stablehlo.constant dense<%s> : %s\n", d->count,
                     kind == 'f'   ? "1.500000e+00"
                     : kind == 'i' ? "13"
                                   : "true",
                     type_of(shape, type));
  }
  add_value(d, shape);
}

// Adds a dimension of 1 to 40 at a random place.
static inline void draw_broadcast(draw_t *d, uint32_t a) {
  static const int64_t sizes[] = {1, 3, 8, 40};
  char from[128], to[128], dims[32] = "";
  shape_t shape = d->values[a];
  if (shape.rank == MAX_RANK) return;
  type_of(shape, from);
  const uint32_t at = pick(d, shape.rank + 1);
  for (uint32_t i = 0; i < shape.rank; ++i) {
    sprintf(dims + strlen(dims), "%s%u", i == 0 ? "" : ", ", i < at ? i : i + 1);
  }
  memmove(&shape.dims[at + 1], &shape.dims[at], (shape.rank - at) * sizeof(shape.dims[0]));
  shape.dims[at] = sizes[pick(d, 4)];
  ++shape.rank;
  mp_strbuf_printf(&d->text, "%%v%u = stablehlo.broadcast_in_dim %%v%u, dims = [%s] : (%s) -> %s\n",
                   d->count, a, dims, from, type_of(shape, to));
  add_value(d, shape);
}

static inline void draw_move(draw_t *d, uint32_t a) {
  char from[128], to[128];
  shape_t shape = d->values[a];
  if (shape.rank < 2) return;
  type_of(shape, from);
  const int64_t first = shape.dims[0], last = shape.dims[shape.rank - 1];
  switch (pick(d, 3)) {
    case 0:
      mp_strbuf_printf(&d->text, "%%v%u = stablehlo.reverse %%v%u, dims = [%u] : %s\n", d->count, a,
                       pick(d, shape.rank), from);
      break;
    case 1:
      shape.dims[0] = last;
      shape.dims[shape.rank - 1] = first;
      mp_strbuf_printf(&d->text, "%%v%u = stablehlo.transpose %%v%u, dims = [%s] : (%s) -> %s\n",
                       d->count, a, shape.rank == 2 ? "1, 0" : "2, 1, 0", from, type_of(shape, to));
      break;
    default:
      shape.dims[1] *= first;
      memmove(&shape.dims[0], &shape.dims[1], (shape.rank - 1) * sizeof(shape.dims[0]));
      --shape.rank;
      mp_strbuf_printf(&d->text, "%%v%u = stablehlo.reshape %%v%u : (%s) -> %s\n", d->count, a,
                       from, type_of(shape, to));
      break;
  }
  add_value(d, shape);
}

static inline void draw_slice(draw_t *d, uint32_t a) {
  char from[128], to[128], ranges[96] = "";
  shape_t shape = d->values[a];
  if (shape.rank == 0) return;
  type_of(shape, from);
  for (uint32_t i = 0; i < shape.rank; ++i) {
    const int64_t step = 1 + pick(d, 2), start = shape.dims[i] > 2 ? pick(d, 2) : 0;
    sprintf(ranges + strlen(ranges), "%s%lld:%lld:%lld", i == 0 ? "" : ", ", (long long)start,
            (long long)shape.dims[i], (long long)step);
    shape.dims[i] = (shape.dims[i] - start + step - 1) / step;
  }
  mp_strbuf_printf(&d->text, "%%v%u = stablehlo.slice %%v%u [%s] : (%s) -> %s\n", d->count, a,
                   ranges, from, type_of(shape, to));
  add_value(d, shape);
}

static inline void draw_reduce(draw_t *d, uint32_t a) {
  char from[128], to[128], scalar[128];
  shape_t shape = d->values[a];
  const char kind = k_elements[shape.element].kind;
  if (shape.rank == 0) return;
  type_of(shape, from);
  shape_t one = shape;
  one.rank = 0;
  type_of(one, scalar);
  mp_strbuf_printf(&d->text, "%%v%u = stablehlo.constant dense<%s> : %s\n", d->count,
                   kind == 'f'   ? "0.500000e+00"
                   : kind == 'i' ? "3"
                                 : "false",
                   scalar);
  add_value(d, one);
  --shape.rank;
  mp_strbuf_printf(
      &d->text,
      "%%v%u = stablehlo.reduce(%%v%u init: %%v%u) applies stablehlo.%s across dimensions = [%u] : "
      "(%s, %s) -> %s\n",
      d->count, a, d->count - 1,
      kind == 'b'       ? "or"
      : pick(d, 2) == 0 ? "add"
                        : "maximum",
      shape.rank, from, scalar, type_of(shape, to));
  add_value(d, shape);
}

// Something that cannot be fused stands between.
static inline void draw_other(draw_t *d, uint32_t a) {
  char type[128];
  const shape_t shape = d->values[a];
  mp_strbuf_printf(&d->text, "%%v%u = stablehlo.optimization_barrier %%v%u : %s\n", d->count, a,
                   type_of(shape, type));
  add_value(d, shape);
}

static inline void draw_step(draw_t *d) {
  // Newer values more often.
  uint32_t a = d->count - 1 - pick(d, pick(d, d->count) + 1);
  switch (pick(d, 16)) {
    case 0:
      draw_convert(d, a);
      break;
    case 1:
      draw_select(d, a);
      break;
    case 2:
      draw_made(d, a);
      break;
    case 3:
    case 4:
      draw_broadcast(d, a);
      break;
    case 5:
      draw_move(d, a);
      break;
    case 6:
      draw_slice(d, a);
      break;
    case 7:
    case 8:
      draw_reduce(d, a);
      break;
    case 9:
      draw_other(d, a);
      break;
    case 10:
    case 11:
    case 12:
      draw_unary(d, a);
      break;
    default:
      draw_binary(d, a);
      break;
  }
}

enum { NUM_PARAMS = 3, MOST_STEPS = 20 };

static inline void draw_program(draw_t *d, uint64_t seed) {
  static const shape_t shapes[] = {{0, 2, {3, 40}},    {0, 2, {4, 33}}, {0, 1, {40}},
                                   {0, 3, {2, 3, 32}}, {0, 0, {0}},     {0, 2, {70, 64}}};
  char type[128];
  d->state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
  d->count = 0;
  mp_strbuf_init(&d->text);
  mp_strbuf_puts(&d->text, "func.func @main(");
  const uint32_t element = pick(d, NUM_ELEMENTS);
  for (uint32_t i = 0; i < NUM_PARAMS; ++i) {
    shape_t shape = shapes[pick(d, 6)];
    if (i > 0 && pick(d, 2) == 0) shape = d->values[0];
    shape.element = pick(d, 3) == 0 ? pick(d, NUM_ELEMENTS) : element;
    mp_strbuf_printf(&d->text, "%s%%v%u: %s", i == 0 ? "" : ", ", i, type_of(shape, type));
    add_value(d, shape);
  }
  mp_strbuf_t body = d->text;
  mp_strbuf_init(&d->text);
  const uint32_t steps = 3 + pick(d, MOST_STEPS);
  for (uint32_t i = 0; i < steps; ++i) draw_step(d);
  uint32_t returned[3];
  for (uint32_t i = 0; i < 3; ++i) returned[i] = d->count - 1 - (i == 0 ? 0 : pick(d, d->count));
  mp_strbuf_puts(&body, ") -> (");
  for (uint32_t i = 0; i < 3; ++i) {
    mp_strbuf_printf(&body, "%s%s", i == 0 ? "" : ", ", type_of(d->values[returned[i]], type));
  }
  mp_strbuf_printf(&body, ") {\n%sreturn %%v%u, %%v%u, %%v%u : ", mp_strbuf_text(&d->text),
                   returned[0], returned[1], returned[2]);
  for (uint32_t i = 0; i < 3; ++i) {
    mp_strbuf_printf(&body, "%s%s", i == 0 ? "" : ", ", type_of(d->values[returned[i]], type));
  }
  mp_strbuf_puts(&body, "\n}\n");
  mp_strbuf_deinit(&d->text);
  d->text = body;
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_HOSTILE_FUSABLE_PROGRAMS_H_
