// Draws programs of one operation each, of any operation that has a kernel: shapes are small, often
// without elements; attributes are whatever the operation allows. Choices come from given bytes
// (a fuzzer's) and, when these are used up, from a generator.
//
// A drawn program is valid: it compiles, or a kernel refuses it as UNIMPLEMENTED.
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_HOSTILE_HOSTILE_PROGRAMS_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_HOSTILE_HOSTILE_PROGRAMS_H_

#include "sim/base/str.h"
#include "sim/ir/type.h"
#include "tests/unit/support/hostile/hostile_values.h"

enum { DRAW_MAX_RANK = 5, DRAW_MAX_VALUES = 8 };

typedef struct {
  mp_dtype_t dtype;
  uint32_t rank;
  int64_t dims[DRAW_MAX_RANK];
} draw_shape_t;

typedef struct {
  const uint8_t *bytes;
  size_t size, at;
  uint64_t state;
  uint32_t num_params;
  draw_shape_t params[DRAW_MAX_VALUES];
  mp_strbuf_t op;     // "stablehlo.add"(%p0, %p1) ... without its types
  mp_strbuf_t types;  // the results'
  uint32_t num_results;
} draw_t;

static inline uint64_t draw_below(draw_t *d, uint64_t bound) {
  if (d->at < d->size) return d->bytes[d->at++] % bound;
  return hostile_random(&d->state) % bound;
}

static inline bool draw_bool(draw_t *d) {
  return draw_below(d, 2) != 0;
}

// ---- shapes ----

static inline int64_t draw_dim(draw_t *d) {
  static const int64_t dims[] = {0, 1, 1, 2, 3, 4, 5, 7, 17};
  return dims[draw_below(d, sizeof(dims) / sizeof(dims[0]))];
}

static inline int64_t draw_between(draw_t *d, int64_t least, int64_t most) {
  return least + (int64_t)draw_below(d, (uint64_t)(most - least) + 1);
}

static inline draw_shape_t draw_shape(draw_t *d, mp_dtype_t dtype, uint32_t least, uint32_t most) {
  draw_shape_t shape = {.dtype = dtype};
  shape.rank = (uint32_t)draw_between(d, least, most);
  for (uint32_t i = 0; i < shape.rank; ++i) shape.dims[i] = draw_dim(d);
  return shape;
}

static inline draw_shape_t draw_scalar(mp_dtype_t dtype) {
  return (draw_shape_t){.dtype = dtype};
}

static inline draw_shape_t draw_retype(draw_shape_t shape, mp_dtype_t dtype) {
  shape.dtype = dtype;
  return shape;
}

enum {
  DRAW_BOOL = 1,
  DRAW_INTEGER = 2,
  DRAW_FLOAT = 4,
  DRAW_COMPLEX = 8,
  DRAW_NUMBER = DRAW_INTEGER | DRAW_FLOAT | DRAW_COMPLEX,
  DRAW_ANY = DRAW_NUMBER | DRAW_BOOL,
  DRAW_COMMON = 16,  // f32, f64, s32, ... only
};

static inline bool draw_allows(uint32_t classes, mp_dtype_t dtype) {
  if (dtype == MP_DTYPE_INVALID || dtype == MP_DTYPE_TF32 || dtype == MP_DTYPE_INDEX) return false;
  if ((classes & DRAW_COMMON) != 0 && mp_dtype_bits(dtype) < 32 && dtype != MP_DTYPE_BOOL) {
    return false;
  }
  if (mp_dtype_is_integer(dtype)) return (classes & DRAW_INTEGER) != 0;
  if (mp_dtype_is_float(dtype)) return (classes & DRAW_FLOAT) != 0;
  if (mp_dtype_is_complex(dtype)) return (classes & DRAW_COMPLEX) != 0;
  return (classes & DRAW_BOOL) != 0;
}

static inline mp_dtype_t draw_dtype(draw_t *d, uint32_t classes) {
  mp_dtype_t dtype = (mp_dtype_t)draw_below(d, MP_DTYPE_COUNT);
  while (!draw_allows(classes, dtype)) dtype = (mp_dtype_t)((dtype + 1) % MP_DTYPE_COUNT);
  return dtype;
}

static inline void draw_print_shape(mp_strbuf_t *out, const draw_shape_t *shape) {
  mp_strbuf_puts(out, "tensor<");
  for (uint32_t i = 0; i < shape->rank; ++i) {
    mp_strbuf_printf(out, "%lldx", (long long)shape->dims[i]);
  }
  mp_strbuf_printf(out, "%s>", mp_dtype_name(shape->dtype));
}

// ---- the parts of an operation, in the order of its text ----

static inline void draw_operand(draw_t *d, draw_shape_t shape) {
  d->params[d->num_params++] = shape;
}

static inline void draw_result(draw_t *d, draw_shape_t shape) {
  if (d->num_results++ > 0) mp_strbuf_puts(&d->types, ", ");
  draw_print_shape(&d->types, &shape);
}

// "name"(%p0, %p1, ...), with all operands drawn so far.
static inline void draw_op(draw_t *d, const char *name) {
  mp_strbuf_printf(&d->op, "\"%s\"(", name);
  for (uint32_t i = 0; i < d->num_params; ++i) {
    mp_strbuf_printf(&d->op, "%s%%p%u", i == 0 ? "" : ", ", i);
  }
  mp_strbuf_puts(&d->op, ")");
}

static inline void draw_puts(draw_t *d, const char *text) {
  mp_strbuf_puts(&d->op, text);
}

static inline void draw_ints(draw_t *d, const char *name, const int64_t *values, uint32_t count) {
  mp_strbuf_printf(&d->op, "%s = array<i64", name);
  for (uint32_t i = 0; i < count; ++i) {
    mp_strbuf_printf(&d->op, "%s%lld", i == 0 ? ": " : ", ", (long long)values[i]);
  }
  mp_strbuf_puts(&d->op, ">");
}

static inline void draw_list(draw_t *d, const char *name, const int64_t *values, uint32_t count) {
  mp_strbuf_printf(&d->op, "%s = [", name);
  for (uint32_t i = 0; i < count; ++i) {
    mp_strbuf_printf(&d->op, "%s%lld", i == 0 ? "" : ", ", (long long)values[i]);
  }
  mp_strbuf_puts(&d->op, "]");
}

// `padding` is a table of pairs.
static inline void draw_pairs(draw_t *d, const char *name, const int64_t *values, uint32_t rows) {
  if (rows == 0) {
    mp_strbuf_printf(&d->op, "%s = dense<> : tensor<0x2xi64>", name);
    return;
  }
  mp_strbuf_printf(&d->op, "%s = dense<[", name);
  for (uint32_t i = 0; i < rows; ++i) {
    mp_strbuf_printf(&d->op, "%s[%lld, %lld]", i == 0 ? "" : ", ", (long long)values[2 * i],
                     (long long)values[2 * i + 1]);
  }
  mp_strbuf_printf(&d->op, "]> : tensor<%ux2xi64>", rows);
}

static inline void draw_permutation(draw_t *d, uint32_t rank, int64_t *out) {
  for (uint32_t i = 0; i < rank; ++i) {
    uint32_t j = (uint32_t)draw_below(d, i + 1);
    out[i] = out[j];
    out[j] = i;
  }
}

// A region of two scalars: `num` of each side, results one per pair.
static inline void draw_reducer(draw_t *d, mp_dtype_t dtype, uint32_t num) {
  static const char *const names[] = {"add", "multiply", "minimum", "maximum"};
  static const char *const bools[] = {"and", "or", "xor", "and"};
  const uint32_t way = (uint32_t)draw_below(d, 6);
  const char *type = mp_dtype_name(dtype);
  const char *name = dtype == MP_DTYPE_BOOL ? bools[way % 4] : names[way % 4];
  draw_puts(d, " ({ ^bb0(");
  for (uint32_t i = 0; i < 2 * num; ++i) {
    mp_strbuf_printf(&d->op, "%s%%a%u: tensor<%s>", i == 0 ? "" : ", ", i, type);
  }
  draw_puts(d, "): ");
  for (uint32_t i = 0; i < num; ++i) {
    mp_strbuf_printf(&d->op, "%%s%u = stablehlo.%s %%a%u, %%a%u : tensor<%s> ", i, name, i,
                     way == 5 ? i : num + i, type);
  }
  draw_puts(d, "stablehlo.return ");
  for (uint32_t i = 0; i < num; ++i) {
    mp_strbuf_printf(&d->op, way == 4 ? "%s%%a%u" : "%s%%s%u", i == 0 ? "" : ", ",
                     way == 4 ? num + i : i);
  }
  draw_puts(d, " : ");
  for (uint32_t i = 0; i < num; ++i) {
    mp_strbuf_printf(&d->op, "%stensor<%s>", i == 0 ? "" : ", ", type);
  }
  draw_puts(d, " })");
}

static inline void draw_comparator(draw_t *d, mp_dtype_t dtype) {
  // Complex numbers have no order.
  static const char *const directions[] = {"EQ", "NE", "LT", "GT", "GE", "LE"};
  const uint64_t num_directions = mp_dtype_is_complex(dtype) ? 2 : 6;
  const char *type = mp_dtype_name(dtype);
  const bool is_total = mp_dtype_is_float(dtype) && draw_bool(d);
  mp_strbuf_printf(&d->op,
                   "%%c = stablehlo.compare %s, %%a0, %%a1%s : (tensor<%s>, tensor<%s>) -> "
                   "tensor<i1> stablehlo.return %%c : tensor<i1>",
                   directions[draw_below(d, num_directions)], is_total ? ", TOTALORDER" : "", type,
                   type);
}

static inline int64_t draw_count(const draw_shape_t *shape) {
  int64_t count = 1;
  for (uint32_t i = 0; i < shape->rank; ++i) count *= shape->dims[i];
  return count;
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_HOSTILE_HOSTILE_PROGRAMS_H_
