// The traits of the op list against the kernels: what they say of an op's numbers holds for what
// its kernel computes.
#include "tests/unit/support/op_samples.h"

#include "sim/kernels/table/kernel_table.h"

enum { MAX_OPERANDS = 8, MAX_RESULTS = 4, MAX_BYTES = 1024 };

// A kernel of the sample's op with memory for what it reads and writes.
typedef struct {
  mp_module_t *module;
  mp_op_t *op;
  const mp_kernel_t *kernel;
  _Alignas(64) char operands[MAX_OPERANDS][MAX_BYTES];
  _Alignas(64) char results[MAX_RESULTS][MAX_BYTES];
  _Alignas(64) char scratch[1 << 20];
} bench_t;

static bench_t g_bench;

static void make_kernel(bench_t *bench) {
  assert_ok(mp_kernel_create(bench->module->arena, bench->op, &bench->kernel));
  assert_true(bench->kernel->scratch_bytes <= sizeof(bench->scratch));
}

static bench_t *bench_of(mp_opcode_t code) {
  bench_t *bench = &g_bench;
  bench->module = sample_read(code);
  bench->op = first_op(bench->module, code);
  assert_true(bench->op->num_operands <= MAX_OPERANDS && bench->op->num_results <= MAX_RESULTS);
  make_kernel(bench);
  return bench;
}

static void bench_close(bench_t *bench) {
  mp_module_release(bench->module);
}

static int64_t count_of(const mp_type_t *type) {
  int64_t count = 0, bytes = 0;
  assert_true(mp_type_num_elements(type, &count) && mp_type_num_bytes(type, &bytes));
  assert_true(bytes <= MAX_BYTES);
  return count;
}

// Small whole numbers, different for each element: sums of floats are exact.
static int number_at(int64_t i, int seed) {
  return (int)((i * 7 + seed * 5) % 61) + 1;
}

static void set_element(mp_dtype_t dtype, char *memory, int64_t i, int number) {
  char *at = memory + (size_t)i * mp_dtype_size(dtype);
  memset(at, 0, mp_dtype_size(dtype));
  switch (mp_dtype_class(dtype)) {
    case MP_CLASS_FLOAT:
      mp_float_encode(dtype, number, at);
      return;
    case MP_CLASS_COMPLEX:
      mp_float_encode(mp_dtype_real_part(dtype), number, at);
      mp_float_encode(mp_dtype_real_part(dtype), number + 1, at + mp_dtype_size(dtype) / 2);
      return;
    case MP_CLASS_BOOL:
      *at = (char)(number & 1);
      return;
    default:
      *at = (char)number;
  }
}

static void fill(bench_t *bench, uint32_t operand, int seed) {
  const mp_type_t *type = bench->op->operands[operand]->type;
  for (int64_t i = 0; i < count_of(type); ++i) {
    set_element(type->dtype, bench->operands[operand], i, number_at(i, seed));
  }
}

static void fill_all(bench_t *bench) {
  for (uint32_t k = 0; k < bench->op->num_operands; ++k) fill(bench, k, (int)k);
}

static void run_with(bench_t *bench, const void *const *operands) {
  void *results[MAX_RESULTS];
  memset(bench->results, 0, sizeof(bench->results));
  memset(bench->scratch, 0xa5, sizeof(bench->scratch));
  for (uint32_t i = 0; i < MAX_RESULTS; ++i) results[i] = bench->results[i];
  mp_kernel_call_t call = {operands, results, bench->scratch, 0, NULL};
  for (; call.part < bench->kernel->num_parts; ++call.part) {
    assert_ok(bench->kernel->run(bench->kernel, &call));
  }
  assert_null(bench->kernel->finish);  // only large operands are cut into pieces
}

static void run(bench_t *bench) {
  const void *operands[MAX_OPERANDS];
  for (uint32_t k = 0; k < MAX_OPERANDS; ++k) operands[k] = bench->operands[k];
  run_with(bench, operands);
}

static size_t result_bytes(const bench_t *bench) {
  int64_t bytes = 0;
  (void)count_of(bench->op->results[0].type);
  assert_true(mp_type_num_bytes(bench->op->results[0].type, &bytes));
  return (size_t)bytes;
}

#define FOR_EACH_KERNEL(code) FOR_EACH_OP(code) if (mp_op_info(code)->role == MP_OP_ROLE_KERNEL)

static void only_kernels_have_makers(void **state) {
  (void)state;
  FOR_EACH_OP(code) {
    if (code == MP_OP_EXCHANGE) continue;
    const mp_kernel_t *kernel = NULL;
    mp_module_t *module = sample_read(code);
    mp_status_t status = mp_kernel_create(module->arena, first_op(module, code), &kernel);
    if ((status == NULL) != (mp_op_info(code)->role == MP_OP_ROLE_KERNEL)) {
      fail_msg("%s: %s", op_name(code), mp_status_message(status));
    }
    mp_status_release(status);
    mp_module_release(module);
  }
}

// ---- effects ----

// Inserts an unrelated op before all others.
static void shift_place(bench_t *bench) {
  const mp_op_spec_t spec = {.code = MP_OP_AFTER_ALL,
                             .num_results = 1,
                             .result_types = (const mp_type_t *[]){mp_type_token()}};
  mp_op_t *other = NULL;
  assert_ok(mp_op_create(bench->module, &spec, &other));
  mp_block_insert_before(bench->module->main->body->first, other);
}

static void results_of_pure_ops_depend_on_operands_alone(void **state) {
  (void)state;
  static char first[MAX_RESULTS][MAX_BYTES];
  FOR_EACH_KERNEL(code) {
    bench_t *bench = bench_of(code);
    fill_all(bench);
    run(bench);
    memcpy(first, bench->results, sizeof(first));
    run(bench);
    const bool is_same = memcmp(first, bench->results, sizeof(first)) == 0;
    shift_place(bench);
    make_kernel(bench);
    run(bench);
    const bool is_same_elsewhere = memcmp(first, bench->results, sizeof(first)) == 0;
    if (!is_same) fail_msg("%s gives other results each time", op_name(code));
    if (is_same_elsewhere != (mp_op_info(code)->effect != MP_OP_EFFECT_DISTINCT)) {
      fail_msg("%s gives %s results in another place of the program", op_name(code),
               is_same_elsewhere ? "the same" : "other");
    }
    bench_close(bench);
  }
}

// ---- traits ----

static void elements_depend_on_their_own_operands_alone(void **state) {
  (void)state;
  static char before[MAX_BYTES];
  FOR_EACH_KERNEL(code) {
    if (!mp_opcode_has(code, MP_OP_TRAIT_ELEMENTWISE)) continue;
    bench_t *bench = bench_of(code);
    const mp_type_t *type = bench->op->results[0].type;
    const size_t size = mp_dtype_size(type->dtype);
    for (int64_t changed = 0; changed < count_of(type); ++changed) {
      fill_all(bench);
      run(bench);
      memcpy(before, bench->results[0], sizeof(before));
      for (uint32_t k = 0; k < bench->op->num_operands; ++k) {
        set_element(bench->op->operands[k]->type->dtype, bench->operands[k], changed, 64 + (int)k);
      }
      run(bench);
      for (int64_t i = 0; i < count_of(type); ++i) {
        const size_t at = (size_t)i * size;
        if (i == changed || memcmp(before + at, bench->results[0] + at, size) == 0) continue;
        fail_msg("%s: element %d depends on elements %d", op_name(code), (int)i, (int)changed);
      }
    }
    bench_close(bench);
  }
}

static bool has_two_alike(const mp_op_t *op) {
  return op->num_operands == 2 && op->num_regions == 0 &&
         mp_type_equal(op->operands[0]->type, op->operands[1]->type);
}

static void commutative_ops_commute(void **state) {
  (void)state;
  static char straight[MAX_BYTES];
  FOR_EACH_KERNEL(code) {
    const bool is_said = mp_opcode_has(code, MP_OP_TRAIT_COMMUTATIVE);
    bench_t *bench = bench_of(code);
    bool commutes = false;
    if (has_two_alike(bench->op)) {
      fill_all(bench);
      run(bench);
      memcpy(straight, bench->results[0], sizeof(straight));
      run_with(bench, (const void *[]){bench->operands[1], bench->operands[0]});
      commutes = memcmp(straight, bench->results[0], result_bytes(bench)) == 0;
    }
    if (commutes != is_said) fail_msg("%s: x, y against y, x", op_name(code));
    bench_close(bench);
  }
}

static void idempotent_ops_are(void **state) {
  (void)state;
  FOR_EACH_KERNEL(code) {
    const bool is_said = mp_opcode_has(code, MP_OP_TRAIT_IDEMPOTENT);
    bench_t *bench = bench_of(code);
    bool is_idempotent = false;
    if (has_two_alike(bench->op)) {
      fill_all(bench);
      run_with(bench, (const void *[]){bench->operands[0], bench->operands[0]});
      is_idempotent = memcmp(bench->operands[0], bench->results[0], result_bytes(bench)) == 0;
    }
    if (is_idempotent != is_said) fail_msg("%s: x, x against x", op_name(code));
    bench_close(bench);
  }
}

static void linear_ops_are(void **state) {
  (void)state;
  static float sum[2][MAX_BYTES / sizeof(float)];
  FOR_EACH_KERNEL(code) {
    if (!mp_opcode_has(code, MP_OP_TRAIT_LINEAR)) continue;
    bench_t *bench = bench_of(code);
    const mp_op_t *op = bench->op;
    const int64_t count = count_of(op->results[0].type);
    memset(sum, 0, sizeof(sum));
    assert_int_equal(op->results[0].type->dtype, MP_DTYPE_F32);
    for (int term = 0; term < 3; ++term) {
      // Two terms, then their sum.
      for (uint32_t k = 0; k < op->num_operands; ++k) {
        assert_int_equal(op->operands[k]->type->dtype, MP_DTYPE_F32);
        for (int64_t i = 0; i < count_of(op->operands[k]->type); ++i) {
          const int a = number_at(i, (int)k), b = number_at(i, (int)k + 9);
          set_element(MP_DTYPE_F32, bench->operands[k], i, term == 0 ? a : term == 1 ? b : a + b);
        }
      }
      run(bench);
      const float *results = (const float *)bench->results[0];
      for (int64_t i = 0; i < count; ++i) sum[term == 2][i] += results[i];
    }
    if (memcmp(sum[0], sum[1], (size_t)count * sizeof(float)) != 0) {
      fail_msg("%s of a sum is not the sum", op_name(code));
    }
    bench_close(bench);
  }
}

static bool holds_element(const char *elements, int64_t count, size_t size, const char *element) {
  for (int64_t i = 0; i < count; ++i) {
    if (memcmp(elements + (size_t)i * size, element, size) == 0) return true;
  }
  return false;
}

static void what_moves_elements_makes_none(void **state) {
  (void)state;
  FOR_EACH_KERNEL(code) {
    if (!mp_opcode_has(code, MP_OP_TRAIT_MOVES)) continue;
    bench_t *bench = bench_of(code);
    const mp_type_t *from = bench->op->operands[0]->type, *to = bench->op->results[0].type;
    const size_t size = mp_dtype_size(to->dtype);
    assert_int_equal(from->dtype, to->dtype);
    assert_int_equal(bench->op->num_results, 1);
    fill_all(bench);
    run(bench);
    for (int64_t i = 0; i < count_of(to); ++i) {
      if (!holds_element(bench->operands[0], count_of(from), size,
                         bench->results[0] + (size_t)i * size)) {
        fail_msg("%s: element %d is none of the operand's", op_name(code), (int)i);
      }
    }
    bench_close(bench);
  }
}

int main(void) {
  samples_load();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(only_kernels_have_makers),
      cmocka_unit_test(results_of_pure_ops_depend_on_operands_alone),
      cmocka_unit_test(elements_depend_on_their_own_operands_alone),
      cmocka_unit_test(commutative_ops_commute),
      cmocka_unit_test(idempotent_ops_are),
      cmocka_unit_test(linear_ops_are),
      cmocka_unit_test(what_moves_elements_makes_none),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  samples_unload();
  return failed;
}
