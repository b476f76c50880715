// Small loops are one command (sim/loops): they compute the bits of the same loops as commands, on
// random bodies.
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/support/hostile/hostile_values.h"
#include "tests/unit/support/native_code.h"
#include "tests/unit/support/text_runs.h"

// ---- random bodies ----

typedef struct {
  const char *text;
  mp_dtype_t dtype;
  int64_t count;
  const char *compare;  // how its elements are compared
} type_t;

static const type_t g_types[] = {
    {"tensor<i32>", MP_DTYPE_S32, 1, "SIGNED"},    {"tensor<f32>", MP_DTYPE_F32, 1, "FLOAT"},
    {"tensor<ui32>", MP_DTYPE_U32, 1, "UNSIGNED"}, {"tensor<f64>", MP_DTYPE_F64, 1, "FLOAT"},
    {"tensor<i64>", MP_DTYPE_S64, 1, "SIGNED"},    {"tensor<8xf32>", MP_DTYPE_F32, 8, "FLOAT"},
    {"tensor<8xi32>", MP_DTYPE_S32, 8, "SIGNED"},  {"tensor<bf16>", MP_DTYPE_BF16, 1, "FLOAT"},
    {"tensor<i8>", MP_DTYPE_S8, 1, "SIGNED"},      {"tensor<8xbf16>", MP_DTYPE_BF16, 8, "FLOAT"},
    {"tensor<3xf32>", MP_DTYPE_F32, 3, "FLOAT"},   {"tensor<i1>", MP_DTYPE_BOOL, 1, "UNSIGNED"},
    {"tensor<70xf32>", MP_DTYPE_F32, 70, "FLOAT"},
};
enum { I32, F32, U32, F64, I64, F32X8, I32X8, BF16, I8, BF16X8, F32X3, I1, F32X70, NUM_TYPES };
enum { MAX_VALUES = 64 };
#define TABLE "tensor<16x8xf32>"

typedef struct {
  char text[65536];
  size_t size;
  uint64_t state;
  uint32_t next;  // number of the next value
  struct {
    uint32_t number, type;
  } values[MAX_VALUES];
  uint32_t count;
} body_t;

__attribute__((format(printf, 2, 3))) static void put(body_t *b, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const int size = vsnprintf(b->text + b->size, sizeof(b->text) - b->size, format, args);
  va_end(args);
  b->size += (size_t)size;
  assert_true(b->size < sizeof(b->text));
}

static uint32_t draw(body_t *b, uint32_t below) {
  return (uint32_t)(hostile_random(&b->state) >> 33) % below;
}

static void add_value(body_t *b, uint32_t number, uint32_t type) {
  if (b->count == MAX_VALUES) return;
  b->values[b->count].number = number;
  b->values[b->count++].type = type;
}

// A value of the type; the newest ones more often.
static uint32_t pick(body_t *b, uint32_t type) {
  uint32_t found[MAX_VALUES], count = 0;
  for (uint32_t i = 0; i < b->count; ++i) {
    if (b->values[i].type == type) found[count++] = b->values[i].number;
  }
  assert_true(count != 0);
  const uint32_t i = draw(b, count), j = draw(b, count);
  return found[i > j ? i : j];
}

static bool is_float(uint32_t type) {
  return mp_dtype_is_float(g_types[type].dtype);
}

static void put_binary(body_t *b, uint32_t type) {
  static const char *const all[] = {"add",     "subtract", "multiply", "maximum",
                                    "minimum", "divide",   "power"};
  static const char *const integer[] = {"and",
                                        "or",
                                        "xor",
                                        "remainder",
                                        "shift_left",
                                        "shift_right_logical",
                                        "shift_right_arithmetic"};
  const uint32_t way = type == I1 ? 7 + draw(b, 3) : draw(b, is_float(type) ? 7 : 14);
  put(b, "%%v%u = stablehlo.%s %%v%u, %%v%u : %s\n", b->next, way < 7 ? all[way] : integer[way - 7],
      pick(b, type), pick(b, type), g_types[type].text);
  add_value(b, b->next++, type);
}

static void put_unary(body_t *b, uint32_t type) {
  static const char *const floats[] = {"negate", "abs", "tanh", "sqrt", "floor", "exponential"};
  static const char *const integers[] = {"negate", "abs", "not", "sign"};
  const bool is_unsigned = type == U32 || type == I1;
  const char *name = is_float(type) ? floats[draw(b, 6)]
                     : is_unsigned  ? "not"
                                    : integers[draw(b, 4)];
  put(b, "%%v%u = stablehlo.%s %%v%u : %s\n", b->next, name, pick(b, type), g_types[type].text);
  add_value(b, b->next++, type);
}

static void put_select(body_t *b, uint32_t type) {
  static const char *const directions[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
  const char *text = g_types[type].text;
  char which[32] = "tensor<i1>";
  if (g_types[type].count != 1) {
    (void)snprintf(which, sizeof(which), "tensor<%dxi1>", (int)g_types[type].count);
  }
  put(b, "%%v%u = stablehlo.compare %s, %%v%u, %%v%u, %s : (%s, %s) -> %s\n", b->next,
      directions[draw(b, 6)], pick(b, type), pick(b, type), g_types[type].compare, text, text,
      which);
  put(b, "%%v%u = stablehlo.select %%v%u, %%v%u, %%v%u : %s, %s\n", b->next + 1, b->next,
      pick(b, type), pick(b, type), which, text);
  add_value(b, b->next + 1, type);
  b->next += 2;
}

static uint32_t draw_scalar(body_t *b) {
  static const uint32_t scalars[] = {I32, F32, U32, F64, I64, BF16, I8};
  return scalars[draw(b, 7)];
}

static void put_convert(body_t *b) {
  const uint32_t from = draw_scalar(b), to = draw_scalar(b);
  put(b, "%%v%u = stablehlo.convert %%v%u : (%s) -> %s\n", b->next, pick(b, from),
      g_types[from].text, g_types[to].text);
  add_value(b, b->next++, to);
}

// Of divisors, for example, a step that knows them can make something better.
static void put_constant(body_t *b) {
  static const int64_t numbers[] = {0, 1, -1, 2, 3, 7, 10, -5, 641, 65536, INT32_MAX, INT32_MIN};
  const uint32_t type = draw(b, 2) == 0 ? I32 : I64;
  const int64_t number = numbers[draw(b, sizeof(numbers) / sizeof(numbers[0]))];
  put(b, "%%v%u = stablehlo.constant dense<%lld> : %s\n", b->next, (long long)number,
      g_types[type].text);
  static const char *const names[] = {"divide", "remainder", "multiply"};
  put(b, "%%v%u = stablehlo.%s %%v%u, %%v%u : %s\n", b->next + 1, names[draw(b, 3)], pick(b, type),
      b->next, g_types[type].text);
  add_value(b, b->next, type);
  add_value(b, b->next + 1, type);
  b->next += 2;
}

// Four of eight elements, what an op makes of these, and both joined.
static void put_halves(body_t *b, uint32_t eight, const char *range, const char *op,
                       const char *attributes, const char *e) {
  put(b, "%%v%u = stablehlo.slice %%v%u %s : (tensor<8x%s>) -> tensor<4x%s>\n", b->next,
      pick(b, eight), range, e, e);
  put(b, "%%v%u = %s%u%s : tensor<4x%s>\n", b->next + 1, op, b->next, attributes, e);
  put(b,
      "%%v%u = stablehlo.concatenate %%v%u, %%v%u, dim = 0 : (tensor<4x%s>, tensor<4x%s>) -> "
      "tensor<8x%s>\n",
      b->next + 2, b->next + 1, b->next, e, e, e);
  add_value(b, b->next + 2, eight);
  b->next += 3;
}

// A short vector of scalars, or one of its elements.
static void put_short(body_t *b) {
  if (draw(b, 2) == 0) {
    const uint32_t at = draw(b, 3);
    put(b, "%%v%u = stablehlo.slice %%v%u [%u:%u] : (tensor<3xf32>) -> tensor<1xf32>\n", b->next,
        pick(b, F32X3), at, at + 1);
    put(b, "%%v%u = stablehlo.reshape %%v%u : (tensor<1xf32>) -> tensor<f32>\n", b->next + 1,
        b->next);
    add_value(b, b->next + 1, F32);
    b->next += 2;
    return;
  }
  for (uint32_t i = 0; i < 3; ++i) {
    put(b, "%%v%u = stablehlo.reshape %%v%u : (tensor<f32>) -> tensor<1xf32>\n", b->next + i,
        pick(b, F32));
  }
  put(b, "%%v%u = stablehlo.concatenate %%v%u, %%v%u, %%v%u, dim = 0 : ", b->next + 3, b->next,
      b->next + 1, b->next + 2);
  put(b, "(tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<3xf32>\n");
  add_value(b, b->next + 3, F32X3);
  b->next += 4;
}

// Between scalars and arrays, and within arrays.
static void put_movement(body_t *b) {
  const uint32_t is_f = draw(b, 2), one = is_f ? F32 : I32, eight = is_f ? F32X8 : I32X8;
  const char *e = is_f ? "f32" : "i32";
  switch (draw(b, 6)) {
    case 4:
      put_halves(b, eight, "[0:4]", "stablehlo.negate %v", "", e);
      return;
    case 5:
      put_halves(b, eight, "[0:8:2]", "stablehlo.reverse %v", ", dims = [0]", e);
      return;
    case 0:
      put(b, "%%v%u = stablehlo.broadcast_in_dim %%v%u, dims = [] : (tensor<%s>) -> tensor<8x%s>\n",
          b->next, pick(b, one), e, e);
      add_value(b, b->next++, eight);
      return;
    case 1:
      put(b, "%%v%u = stablehlo.slice %%v%u [%u:%u] : (tensor<8x%s>) -> tensor<1x%s>\n", b->next,
          pick(b, eight), 3, 4, e, e);
      put(b, "%%v%u = stablehlo.reshape %%v%u : (tensor<1x%s>) -> tensor<%s>\n", b->next + 1,
          b->next, e, e);
      add_value(b, b->next + 1, one);
      b->next += 2;
      return;
    case 2:
      put(b, "%%v%u = stablehlo.reverse %%v%u, dims = [0] : tensor<8x%s>\n", b->next,
          pick(b, eight), e);
      add_value(b, b->next++, eight);
      return;
    default:
      put(b,
          "%%v%u = stablehlo.dynamic_slice %%v%u, %%v%u, sizes = [1] : (tensor<8x%s>, "
          "tensor<i32>) -> tensor<1x%s>\n",
          b->next, pick(b, eight), pick(b, I32), e, e);
      put(b, "%%v%u = stablehlo.reshape %%v%u : (tensor<1x%s>) -> tensor<%s>\n", b->next + 1,
          b->next, e, e);
      add_value(b, b->next + 1, one);
      b->next += 2;
      return;
  }
}

// The sum or another fold of the first elements of an array, squared or as they are.
static void put_reduction(body_t *b) {
  static const char *const folds[] = {"add", "multiply", "maximum", "minimum"};
  const uint32_t is_f = draw(b, 2), one = is_f ? F32 : I32, eight = is_f ? F32X8 : I32X8;
  const uint32_t length = 1 + draw(b, 8);
  const char *e = is_f ? "f32" : "i32";
  put(b, "%%v%u = stablehlo.slice %%v%u [0:%u] : (tensor<8x%s>) -> tensor<%ux%s>\n", b->next,
      pick(b, eight), length, e, length, e);
  put(b, "%%v%u = stablehlo.%s %%v%u, %%v%u : tensor<%ux%s>\n", b->next + 1,
      draw(b, 2) == 0 ? "multiply" : "maximum", b->next, b->next, length, e);
  put(b,
      "%%v%u = stablehlo.reduce(%%v%u init: %%v%u) applies stablehlo.%s across dimensions = [0] : "
      "(tensor<%ux%s>, tensor<%s>) -> tensor<%s>\n",
      b->next + 2, b->next + 1, pick(b, one), folds[draw(b, 4)], length, e, e, e);
  add_value(b, b->next + 2, one);
  b->next += 3;
}

// ---- scalars among vectors ----

// A vector and the scalar of its elements.
typedef struct {
  uint32_t vector, scalar;
  const char *element;
} vector_t;

static vector_t draw_vector(body_t *b) {
  static const vector_t all[] = {{F32X8, F32, "f32"},
                                 {I32X8, I32, "i32"},
                                 {BF16X8, BF16, "bf16"},
                                 {F32X3, F32, "f32"},
                                 {F32X70, F32, "f32"}};
  return all[draw(b, 5)];
}

static void put_compare(body_t *b, uint32_t type, uint32_t left) {
  static const char *const directions[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
  const char *text = g_types[type].text;
  put(b, "%%v%u = stablehlo.compare %s, %%v%u, %%v%u, %s : (%s, %s) -> tensor<i1>\n", b->next,
      directions[draw(b, 6)], left, pick(b, type), g_types[type].compare, text, text);
  add_value(b, b->next++, I1);
}

// One predicate for all elements, which ops of scalars may read, too.
static void put_scalar_select(body_t *b, vector_t v) {
  put(b, "%%v%u = stablehlo.select %%v%u, %%v%u, %%v%u : tensor<i1>, %s\n", b->next, pick(b, I1),
      pick(b, v.vector), pick(b, v.vector), g_types[v.vector].text);
  add_value(b, b->next++, v.vector);
}

// An op of a vector and a scalar, on either side of it.
static void put_op_with_scalar(body_t *b, vector_t v, uint32_t scalar) {
  static const char *const ops[] = {"add", "subtract", "multiply", "maximum", "minimum", "divide"};
  const char *text = g_types[v.vector].text;
  const uint32_t vector = pick(b, v.vector), broadcast = b->next++, result = b->next++;
  const bool is_left = draw(b, 2) == 0;
  put(b, "%%v%u = stablehlo.broadcast_in_dim %%v%u, dims = [] : (tensor<%s>) -> %s\n", broadcast,
      scalar, v.element, text);
  put(b, "%%v%u = stablehlo.%s %%v%u, %%v%u : %s\n", result, ops[draw(b, 6)],
      is_left ? broadcast : vector, is_left ? vector : broadcast, text);
  add_value(b, result, v.vector);
}

static void put_clamp(body_t *b, vector_t v) {
  const char *text = g_types[v.vector].text, *e = v.element;
  put(b, "%%v%u = stablehlo.clamp %%v%u, %%v%u, %%v%u : (tensor<%s>, %s, tensor<%s>) -> %s\n",
      b->next, pick(b, v.scalar), pick(b, v.vector), pick(b, v.scalar), e, text, e, text);
  add_value(b, b->next++, v.vector);
}

static void put_scalar_operand(body_t *b) {
  const vector_t v = draw_vector(b);
  switch (draw(b, 3)) {
    case 0:
      put_scalar_select(b, v);
      return;
    case 1:
      put_clamp(b, v);
      return;
    default:
      put_op_with_scalar(b, v, pick(b, v.scalar));
      return;
  }
}

// A fold of a whole vector to a scalar, which the body reads again: as an operand of each element,
// in a predicate, and as a scalar.
static void put_fold_read_again(body_t *b) {
  static const char *const folds[] = {"add", "multiply", "maximum", "minimum"};
  const vector_t v = draw_vector(b);
  const char *text = g_types[v.vector].text, *e = v.element;
  const uint32_t fold = b->next++;
  put(b,
      "%%v%u = stablehlo.reduce(%%v%u init: %%v%u) applies stablehlo.%s across dimensions = [0] : "
      "(%s, tensor<%s>) -> tensor<%s>\n",
      fold, pick(b, v.vector), pick(b, v.scalar), folds[draw(b, 4)], text, e, e);
  add_value(b, fold, v.scalar);
  if (draw(b, 2) == 0) put_binary(b, v.scalar);
  if (draw(b, 2) == 0) put_compare(b, v.scalar, fold);
  if (draw(b, 2) == 0) put_binary(b, I1);
  if (draw(b, 2) == 0) put_op_with_scalar(b, v, fold);
  if (draw(b, 2) == 0) put_scalar_select(b, v);
  if (draw(b, 2) == 0) put_clamp(b, v);
}

static void put_ops(body_t *b, uint32_t count);

static void put_case(body_t *b) {
  const uint32_t type = draw(b, NUM_TYPES), result = b->next++, known = b->count;
  put(b, "%%v%u = \"stablehlo.case\"(%%v%u) ({\n", result, pick(b, I32));
  const uint32_t branches = 1 + draw(b, 3);
  for (uint32_t i = 0; i < branches; ++i) {
    put_ops(b, draw(b, 3));
    put(b, "stablehlo.return %%v%u : %s\n%s", pick(b, type), g_types[type].text,
        i + 1 < branches ? "}, {\n" : "}) ");
    b->count = known;
  }
  put(b, ": (tensor<i32>) -> %s\n", g_types[type].text);
  add_value(b, result, type);
}

// A loop of 3 rounds in the loop.
static void put_while(body_t *b) {
  const uint32_t type = draw(b, NUM_TYPES), at = b->next, known = b->count;
  const char *text = g_types[type].text;
  b->next += 6;
  put(b, "%%v%u:2 = stablehlo.while(%%v%u = %%zero, %%v%u = %%v%u) : tensor<i32>, %s\ncond {\n", at,
      at + 1, at + 2, pick(b, type), text);
  put(b, "%%v%u = stablehlo.compare LT, %%v%u, %%three, SIGNED : (tensor<i32>, tensor<i32>) -> ",
      at + 3, at + 1);
  put(b, "tensor<i1>\nstablehlo.return %%v%u : tensor<i1>\n} do {\n", at + 3);
  add_value(b, at + 1, I32);
  add_value(b, at + 2, type);
  put_ops(b, 1 + draw(b, 3));
  put(b, "%%v%u = stablehlo.add %%v%u, %%one : tensor<i32>\n", at + 4, at + 1);
  put(b, "stablehlo.return %%v%u, %%v%u : tensor<i32>, %s\n}\n", at + 4, pick(b, type), text);
  b->count = known;
  put(b, "%%v%u = stablehlo.optimization_barrier %%v%u#1 : %s\n", at + 5, at, text);
  add_value(b, at + 5, type);
}

static void put_ops(body_t *b, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t way = draw(b, 32), type = draw(b, NUM_TYPES);
    if (way < 6) {
      put_binary(b, type);
    } else if (way < 8) {
      put_unary(b, type);
    } else if (way < 10) {
      put_select(b, type);
    } else if (way < 12) {
      put_convert(b);
    } else if (way < 14) {
      put_movement(b);
    } else if (way == 31) {
      const uint32_t scalar = draw_scalar(b);
      put_compare(b, scalar, pick(b, scalar));
    } else if (way > 26) {
      put_scalar_operand(b);
    } else if (way > 21) {
      put_fold_read_again(b);
    } else if (way > 19) {
      put_short(b);
    } else if (way > 17) {
      put_reduction(b);
    } else if (way > 15) {
      put_constant(b);
    } else if (way == 14) {
      put_case(b);
    } else {
      put_while(b);
    }
  }
}

static void put_types(body_t *b) {
  for (uint32_t i = 0; i < NUM_TYPES; ++i) put(b, ", %s", g_types[i].text);
  put(b, ", " TABLE);
}

// A loop that carries a counter, a value of each type, and a table. It reads a row of another table
// and writes one in each round.
static void put_program(body_t *b) {
  put(b, "func.func @main(%%n: tensor<i32>");
  for (uint32_t i = 0; i < NUM_TYPES; ++i) put(b, ", %%a%u: %s", i, g_types[i].text);
  put(b, ", %%table: " TABLE ") -> (tensor<i32>");
  put_types(b);
  put(b, ") {\n%%zero = stablehlo.constant dense<0> : tensor<i32>\n");
  put(b, "%%one = stablehlo.constant dense<1> : tensor<i32>\n");
  put(b, "%%three = stablehlo.constant dense<3> : tensor<i32>\n");
  put(b, "%%r:%u = stablehlo.while(%%i = %%zero", NUM_TYPES + 2);
  for (uint32_t i = 0; i < NUM_TYPES; ++i) put(b, ", %%v%u = %%a%u", i, i);
  put(b, ", %%out = %%table) : tensor<i32>");
  put_types(b);
  put(b, "\ncond {\n%%p = stablehlo.compare LT, %%i, %%n, SIGNED : (tensor<i32>, tensor<i32>) -> ");
  put(b, "tensor<i1>\nstablehlo.return %%p : tensor<i1>\n} do {\n");
  b->next = NUM_TYPES + 4;
  for (uint32_t i = 0; i < NUM_TYPES; ++i) add_value(b, i, i);
  put(b, "%%row = stablehlo.dynamic_slice %%table, %%i, %%zero, sizes = [1, 8] : (" TABLE
         ", tensor<i32>, tensor<i32>) -> tensor<1x8xf32>\n");
  put(b, "%%v%u = stablehlo.reshape %%row : (tensor<1x8xf32>) -> tensor<8xf32>\n", b->next);
  add_value(b, b->next++, F32X8);
  put_ops(b, 4 + draw(b, 12));
  put(b, "%%new = stablehlo.reshape %%v%u : (tensor<8xf32>) -> tensor<1x8xf32>\n", pick(b, F32X8));
  put(b,
      "%%next = stablehlo.dynamic_update_slice %%out, %%new, %%v%u, %%zero : (" TABLE
      ", tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> " TABLE "\n",
      pick(b, I32));
  put(b, "%%j = stablehlo.add %%i, %%one : tensor<i32>\nstablehlo.return %%j");
  for (uint32_t i = 0; i < NUM_TYPES; ++i) put(b, ", %%v%u", pick(b, i));
  put(b, ", %%next : tensor<i32>");
  put_types(b);
  put(b, "\n}\nreturn %%r#0");
  for (uint32_t i = 1; i < NUM_TYPES + 2; ++i) put(b, ", %%r#%u", i);
  put(b, " : tensor<i32>");
  put_types(b);
  put(b, "\n}\n");
}

// ---- comparing ----

static bool has_loop(const mp_program_t *program) {
  for (uint32_t i = 0; i < program->num_commands; ++i) {
    if (program->commands[i].kind == MP_CMD_LOOP) return true;
  }
  return false;
}

// The program is printed whole, because a message of cmocka ends after 1,024 characters.
static void compare_results(const text_run_t *a, const text_run_t *b, uint64_t seed,
                            const char *text) {
  for (uint32_t r = 0; r < a->program->num_results; ++r) {
    const mp_program_io_t *io = &a->program->results[r];
    const int64_t at =
        find_difference(io->type->dtype, a->results[0][r], b->results[0][r], io->bytes);
    if (at < 0) continue;
    (void)fprintf(stderr, "%s", text);
    fail_msg("seed %llu: result %u differs at element %d", (unsigned long long)seed, r, (int)at);
  }
}

// As commands, and as one command with or without machine code.
static void check_random(mp_client_t *client, uint64_t seed, mp_native_policy_t policy) {
  static body_t body;
  memset(&body, 0, sizeof(body));
  body.state = seed * 0x9E3779B97F4A7C15u + 1;
  put_program(&body);
  static const mp_compile_request_t plain = {.op_by_op = true}, folded = {0};
  text_run_t runs[2];
  assert_ok(text_run_begin_with(client, body.text, &plain, true, &runs[0]));
  assert_ok(text_run_begin_with(client, body.text, &folded, false, &runs[1]));
  assert_false(has_loop(runs[0].program));
  if (!has_loop(runs[1].program)) fail_msg("not one command:\n%s", body.text);
  const mp_program_t *program = runs[0].program;
  void *arguments[NUM_TYPES + 2];
  for (uint32_t i = 0; i < program->num_params; ++i) {
    const mp_program_io_t *io = &program->params[i];
    arguments[i] = calloc(1, (size_t)io->bytes + 1);
    hostile_fill(io->type->dtype, io->bytes / mp_dtype_size(io->type->dtype), &body.state,
                 arguments[i]);
  }
  *(int32_t *)arguments[0] = (int32_t)draw(&body, 20) - 1;  // sometimes no round
  mp_native_set_policy(policy);
  bool is_over = true;  // some loops would go on for too long
  for (int i = 0; i < 2 && is_over; ++i) {
    mp_status_t status = text_run_launch(&runs[i], (const void *const *)arguments);
    is_over =
        status == NULL || i != 0 || strstr(mp_status_message(status), GUARD_OUT_OF_FUEL) == NULL;
    if (status != NULL && is_over) {
      fail_msg("seed %llu, run %d: %s\n%s", (unsigned long long)seed, i, mp_status_message(status),
               body.text);
    }
    mp_status_ignore(status);
  }
  if (is_over) compare_results(&runs[0], &runs[1], seed, body.text);
  for (uint32_t i = 0; i < program->num_params; ++i) free(arguments[i]);
  for (int i = 0; i < 2; ++i) text_run_end(&runs[i]);
}

static void random_loops_compute_the_same_bits(void **state) {
  (void)state;
  mp_client_t *client = make_client(1);
  for (uint64_t seed = 1; seed <= 400; ++seed) check_random(client, seed, MP_NATIVE_NEVER);
  mp_client_release(client);
}

// MINIPOD_TEST_PROGRAMS: how many loops.
static void machine_code_computes_the_same_bits(void **state) {
  (void)state;
  if (!native_is_there()) skip();
  const char *text = getenv("MINIPOD_TEST_PROGRAMS");
  const uint64_t count = text == NULL ? 100 : strtoull(text, NULL, 10);
  mp_client_t *client = make_client(1);
  for (uint64_t i = 1; i <= count; ++i) check_random(client, 1000 + i, MP_NATIVE_AT_ONCE);
  mp_client_release(client);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_loops_compute_the_same_bits),
      cmocka_unit_test(machine_code_computes_the_same_bits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
