// Machine code has the bits of the loops of sim/kernels/elementwise, for every op and element type
// that it knows; and its loops stop and go on.
#include "tests/unit/support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "sim/ir/attr.h"
#include "sim/kernels/elementwise/elementwise.h"
#include "sim/numeric/float.h"
#include "tests/unit/support/hostile/hostile_values.h"
#include "tests/unit/support/native_code.h"

enum { COUNT = 16 * 40 + 13, ELEMENT_BYTES = 8, NUM_INPUTS = 3 };

static _Alignas(64) char g_in[NUM_INPUTS][COUNT * ELEMENT_BYTES];
static _Alignas(64) char g_expected[COUNT * ELEMENT_BYTES];
static _Alignas(64) char g_found[COUNT * ELEMENT_BYTES];

static mp_dtype_t input_type(const mp_native_op_t *op, uint32_t k) {
  return op->code == MP_OP_SELECT && k == 0 ? MP_DTYPE_BOOL : op->from;
}

#define NARROW(dtype)                                                       \
  static void narrow_##dtype(int64_t n, const void *const *in, void *out) { \
    mp_float_narrow(MP_DTYPE_##dtype, n, in[0], out);                       \
  }                                                                         \
  static void widen_##dtype(int64_t n, const void *const *in, void *out) {  \
    mp_float_widen(MP_DTYPE_##dtype, n, in[0], out);                        \
  }
NARROW(BF16)
NARROW(F16)

static void copy(int64_t n, const void *const *in, void *out) {
  memcpy(out, in[0], (size_t)n * ELEMENT_BYTES);
}

// The loop whose bits the op has to have; NULL if there is no such op.
static mp_ew_loop_t reference(const mp_native_op_t *op) {
  if (op->is_rotation) return mp_ew_rotate_loop(op->from);
  switch (op->code) {
    case MP_OP_BITCAST_CONVERT:
      return copy;
    case MP_OP_CONVERT:
      if (op->to == MP_DTYPE_BF16) return narrow_BF16;
      if (op->to == MP_DTYPE_F16) return narrow_F16;
      if (op->from == MP_DTYPE_BF16) return widen_BF16;
      if (op->from == MP_DTYPE_F16) return widen_F16;
      return mp_ew_convert_loop(op->from, op->to);
    case MP_OP_COMPARE:
      return mp_ew_compare_loop(op->direction, false, op->from);
    case MP_OP_SELECT:
      return mp_ew_select_loop(mp_dtype_size(op->from));
    default: {
      const mp_ew_loop_t loop = mp_ew_float_loop(op->code, op->from);
      return loop != NULL ? loop : mp_ew_integer_loop(op->code, op->from);
    }
  }
}

static uint32_t num_inputs(const mp_native_op_t *op) {
  return (uint32_t)mp_op_info(op->code)->num_operands;
}

// A map of the one op. Input `one`, if there is it, is one element for all, which is known.
static mp_native_map_fn_t compile(const mp_native_op_t *op, uint32_t count, uint32_t one) {
  mp_native_value_t values[NUM_INPUTS + 1];
  mp_native_step_t step = {.op = *op, .out = count};
  for (uint32_t k = 0; k < count; ++k) {
    values[k] = (mp_native_value_t){
        .dtype = input_type(op, k), .argument = k, .is_read = true, .is_one = k == one};
    values[k].is_known = k == one;
    if (k == one) memcpy(&values[k].known, g_in[k], mp_dtype_size(values[k].dtype));
    step.in[k] = k;
  }
  values[count] = (mp_native_value_t){.dtype = op->to, .argument = NUM_INPUTS, .is_stored = true};
  const mp_native_map_t map = {count + 1, 1, values, &step};
  return mp_native_compile_map(&map);
}

static void check_op(const mp_native_op_t *op, uint64_t seed) {
  const mp_ew_loop_t loop = reference(op);
  if (loop == NULL) fail_msg("%s has no loop", mp_op_info(op->code)->name);
  const uint32_t count = num_inputs(op);
  for (uint32_t one = 0; one <= count; ++one) {
    const void *in[NUM_INPUTS] = {g_in[0], g_in[1], g_in[2]};
    char *arguments[NUM_INPUTS + 1] = {g_in[0], g_in[1], g_in[2], g_found};
    for (uint32_t k = 0; k < count; ++k) {
      const mp_dtype_t dtype = input_type(op, k);
      const size_t size = mp_dtype_size(dtype);
      hostile_fill(dtype, COUNT, &seed, g_in[k]);
      if (op->is_rotation && k == 1) {
        for (size_t i = 0; i < COUNT; ++i) g_in[k][i * size] = (char)(i % 31 + 1);
        for (size_t i = 0; i < COUNT; ++i) memset(g_in[k] + i * size + 1, 0, size - 1);
      }
      // The loop of rotations reads one element only.
      const bool is_one = k == one || (op->is_rotation && k == 1);
      for (size_t i = 1; is_one && i < COUNT; ++i) memcpy(g_in[k] + i * size, g_in[k], size);
    }
    memset(g_found, 0x55, sizeof(g_found));
    loop(COUNT, in, g_expected);
    const mp_native_map_fn_t map = compile(op, count, one);
    if (map == NULL) fail_msg("%s cannot be compiled", mp_op_info(op->code)->name);
    map(arguments, COUNT);
    const uint64_t bytes = COUNT * mp_dtype_size(op->to);
    const int64_t at = find_difference(op->to, g_expected, g_found, bytes);
    if (at < 0) continue;
    fail_msg("%s of %s to %s, direction %u, input %u is one: element %d differs",
             mp_op_info(op->code)->name, mp_dtype_name(op->from), mp_dtype_name(op->to),
             op->direction, one, (int)at);
  }
}

// Op by op, from type to type.
static void ops_have_the_bits_of_the_loops(void **state) {
  (void)state;
  if (!native_is_there()) skip();
  uint32_t count = 0;
  for (uint32_t code = 0; code < MP_OP_COUNT; ++code) {
    for (uint32_t from = 0; from < MP_DTYPE_COUNT; ++from) {
      for (uint32_t to = 0; to < MP_DTYPE_COUNT; ++to) {
        mp_native_op_t op = {
            .code = (mp_opcode_t)code, .from = (mp_dtype_t)from, .to = (mp_dtype_t)to};
        if (!mp_native_knows(&op)) continue;
        const uint32_t directions = code == MP_OP_COMPARE ? MP_CMP_LT + 1 : 1;
        for (op.direction = 0; op.direction < directions; ++op.direction) {
          check_op(&op, 1000 * code + from);
          ++count;
        }
      }
    }
  }
  const mp_native_op_t rotation = {MP_OP_SHIFT_LEFT, MP_DTYPE_U32, MP_DTYPE_U32, 0, true};
  check_op(&rotation, 5);
  assert_true(count > 250);
}

// ---- loops ----

typedef struct {
  uint32_t looks, calls;
} context_t;

static bool stop_each_time(void *context) {
  ++((context_t *)context)->looks;
  return true;
}

static bool count_calls(void *context, uint32_t instruction) {
  assert_int_equal(instruction, 2);
  return ++((context_t *)context)->calls != 6;
}

// for (i = 0; i < 10; ++i) call();
static mp_native_loop_fn_t compile_counter(const int32_t *one, const int32_t *ten) {
  enum { I, ONE, TEN, LESS };
  const mp_native_ref_t refs[] = {[I] = {.memory = 5, .bytes = 4},
                                  [ONE] = {.memory = 6, .bytes = 4, .known = one},
                                  [TEN] = {.memory = 7, .bytes = 4, .known = ten},
                                  [LESS] = {.memory = 8, .bytes = 1, .is_temporary = true}};
  const mp_native_op_t less = {MP_OP_COMPARE, MP_DTYPE_S32, MP_DTYPE_BOOL, MP_CMP_LT, false};
  const mp_native_op_t add = {MP_OP_ADD, MP_DTYPE_S32, MP_DTYPE_S32, 0, false};
  const mp_native_instruction_t instructions[] = {
      {.kind = MP_NATIVE_COMPUTE,
       .op = less,
       .num_inputs = 2,
       .in = {I, TEN},
       .out = LESS,
       .count = 1},
      {.kind = MP_NATIVE_UNLESS, .in = {LESS}, .target = 5},
      {.kind = MP_NATIVE_CALL},
      {.kind = MP_NATIVE_COMPUTE, .op = add, .num_inputs = 2, .in = {I, ONE}, .out = I, .count = 1},
      {.kind = MP_NATIVE_BACK, .target = 0, .stop = 0},
      {.kind = MP_NATIVE_EXIT},
  };
  const mp_native_loop_t loop = {.num_refs = 4,
                                 .num_instructions = 6,
                                 .refs = refs,
                                 .instructions = instructions,
                                 .edges_per_look = 3};
  return mp_native_compile_loop(&loop);
}

static void a_loop_stops_goes_on_and_fails(void **state) {
  (void)state;
  if (!native_is_there()) skip();
  const int32_t one = 1, ten = 10;
  int32_t i = 0, ones = one, tens = ten;
  char less = 0;
  void *refs[] = {&i, &ones, &tens, &less};
  context_t context = {0};
  uint64_t edges[] = {100};
  const mp_native_frame_t frame = {refs, stop_each_time, count_calls, &context, edges};
  const mp_native_loop_fn_t run = compile_counter(&one, &ten);
  assert_non_null(run);
  assert_int_equal(run(&frame, 0), 0);  // it looks after three back edges
  assert_int_equal(i, 3);
  assert_int_equal(edges[0], 103);
  assert_int_equal(run(&frame, 0), MP_NATIVE_FAILED);  // the sixth call
  assert_int_equal(context.looks, 1);
  i = 5;  // what a failed run leaves is of no use
  int64_t end = 0;
  while (end == 0) end = run(&frame, 0);
  assert_int_equal(end, MP_NATIVE_OVER);
  assert_int_equal(i, 10);
  assert_int_equal(context.calls, 11);
  assert_int_equal(edges[0], 108);  // none of those before the failure
}

// One array in pieces of different sizes, of which the call sees what it says it reads.
typedef struct {
  int32_t *all;  // [4]
  int32_t seen[4];
} pieces_t;

static bool see_pieces(void *context, uint32_t instruction) {
  pieces_t *pieces = context;
  assert_int_equal(instruction, 4);
  memcpy(pieces->seen, pieces->all, sizeof(pieces->seen));
  pieces->all[3] += 100;
  return true;
}

static bool stop_never(void *context) {
  (void)context;
  return false;
}

static void pieces_of_arrays_are_what_the_whole_is(void **state) {
  (void)state;
  if (!native_is_there()) skip();
  enum { ALL, SECOND, TAIL, PICKED, LAST };
  const mp_native_ref_t refs[] = {[ALL] = {.memory = 5, .bytes = 16},
                                  [SECOND] = {.memory = 5, .offset = 4, .bytes = 4},
                                  [TAIL] = {.memory = 5, .offset = 6, .bytes = 8},
                                  [PICKED] = {.memory = 6, .bytes = 16},
                                  [LAST] = {.memory = 5, .offset = 12, .bytes = 4}};
  const mp_native_op_t add = {MP_OP_ADD, MP_DTYPE_S32, MP_DTYPE_S32, 0, false};
  const mp_native_op_t moved = {.from = MP_DTYPE_U32};
  const mp_native_use_t uses[] = {{.ref = ALL, .bytes = 16},
                                  {.ref = LAST, .bytes = 4, .is_written = true, .is_part = true}};
  const int64_t places[] = {3, 1, 1, 0};
  const mp_native_instruction_t instructions[] = {
      // all += all; second += second; bytes 6 to 13 = the first 8 of picked
      {MP_NATIVE_COMPUTE, .op = add, .num_inputs = 2, .in = {ALL, ALL}, .out = ALL, .count = 4},
      {MP_NATIVE_COMPUTE, .op = add, .num_inputs = 2, .in = {SECOND, SECOND}, .out = SECOND,
       .count = 1},
      {MP_NATIVE_PICK, .op = moved, .in = {ALL}, .out = PICKED, .count = 4},
      {MP_NATIVE_COPY, .in = {PICKED}, .out = TAIL, .count = 8},
      {MP_NATIVE_CALL, .target = 0, .count = 2},
      {MP_NATIVE_COMPUTE, .op = add, .num_inputs = 2, .in = {ALL, ALL}, .out = ALL, .count = 4},
      {.kind = MP_NATIVE_EXIT}};
  const mp_native_loop_t loop = {.num_refs = 5,
                                 .num_instructions = 7,
                                 .refs = refs,
                                 .instructions = instructions,
                                 .places = places,
                                 .num_places = 4,
                                 .uses = uses,
                                 .num_uses = 2,
                                 .edges_per_look = 3};
  int32_t all[4] = {1, 0x10002, 0x30003, 4}, picked[4] = {0}, expected[4];
  memcpy(expected, all, sizeof(all));
  for (int i = 0; i < 4; ++i) expected[i] *= 2;
  expected[1] *= 2;
  const int32_t expected_picked[] = {expected[3], expected[1], expected[1], expected[0]};
  memcpy((char *)expected + 6, expected_picked, 8);
  pieces_t pieces = {.all = all};
  void *pointers[] = {all, all + 1, (char *)all + 6, picked, all + 3};
  const mp_native_frame_t frame = {pointers, stop_never, see_pieces, &pieces, NULL};
  const mp_native_loop_fn_t run = mp_native_compile_loop(&loop);
  assert_non_null(run);
  assert_int_equal(run(&frame, 0), MP_NATIVE_OVER);
  assert_memory_equal(pieces.seen, expected, sizeof(expected));
  assert_memory_equal(picked, expected_picked, sizeof(picked));
  expected[3] += 100;
  for (int i = 0; i < 4; ++i) expected[i] *= 2;
  assert_memory_equal(all, expected, sizeof(expected));
}

static void equal_code_is_compiled_once(void **state) {
  (void)state;
  if (!native_is_there()) skip();
  const int32_t numbers[] = {1, 10, 1, 10, 1, 11};
  const mp_native_loop_fn_t first = compile_counter(&numbers[0], &numbers[1]);
  assert_ptr_equal(compile_counter(&numbers[2], &numbers[3]), first);
  assert_ptr_not_equal(compile_counter(&numbers[4], &numbers[5]), first);
}

// ---- when ----

static void one_caller_compiles_what_is_hot(void **state) {
  (void)state;
  mp_native_heat_t heat = {0};
  mp_native_set_policy(MP_NATIVE_NEVER);
  assert_false(mp_native_heat(&heat, UINT64_C(1) << 40, 1));
  mp_native_set_policy(MP_NATIVE_WHEN_HOT);
  assert_false(mp_native_heat(&heat, 1000, 1));
  assert_true(mp_native_heat(&heat, UINT64_C(1) << 40, 1));
  assert_false(mp_native_heat(&heat, UINT64_C(1) << 40, 1));
  mp_native_heat_t other = {0};
  mp_native_set_policy(MP_NATIVE_AT_ONCE);
  assert_true(mp_native_heat(&other, 1, 1));
  assert_false(mp_native_heat(&other, 1, 1));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ops_have_the_bits_of_the_loops),
      cmocka_unit_test(a_loop_stops_goes_on_and_fails),
      cmocka_unit_test(pieces_of_arrays_are_what_the_whole_is),
      cmocka_unit_test(equal_code_is_compiled_once),
      cmocka_unit_test(one_caller_compiles_what_is_hot),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
