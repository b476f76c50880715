// Collectives: groups in all modes, and every algorithm against a straightforward expectation.
#include <stdlib.h>
#include <string.h>

#include "collectives/collective.h"
#include "sim/numeric/float.h"
#include "tests/unit/support/unit.h"

// ---- groups ----

typedef struct {
  mp_group_mode_t mode;
  uint32_t replicas, partitions;
  int64_t rows, columns;
  int64_t table[8];
  const char *expected;  // groups in brackets, or the error
} groups_case_t;

static void print_groups(const mp_groups_t *groups, mp_strbuf_t *out) {
  for (uint32_t g = 0; g < groups->num_groups; ++g) {
    mp_strbuf_putc(out, '[');
    for (uint32_t i = groups->offsets[g]; i < groups->offsets[g + 1]; ++i) {
      const uint32_t member = groups->members[i];
      mp_strbuf_printf(out, "%s%u", i == groups->offsets[g] ? "" : " ", member);
      assert_int_equal(groups->group_of[member], g);
      assert_int_equal(groups->position[member], i - groups->offsets[g]);
    }
    mp_strbuf_putc(out, ']');
  }
}

// Logical numbers are replica * partitions + partition.
static void test_groups(void **state) {
  (void)state;
  static const groups_case_t cases[] = {
      {MP_GROUPS_CROSS_REPLICA, 2, 1, 1, 2, {0, 1}, "[0 1]"},
      {MP_GROUPS_CROSS_REPLICA, 2, 1, 1, 2, {1, 0}, "[1 0]"},
      {MP_GROUPS_CROSS_REPLICA, 4, 2, 2, 2, {0, 2, 1, 3}, "[0 4][1 5][2 6][3 7]"},
      {MP_GROUPS_CROSS_REPLICA, 2, 2, 0, 0, {0}, "[0 2][1 3]"},
      {MP_GROUPS_CROSS_PARTITION, 2, 2, 1, 2, {0, 1}, "[0 1][2 3]"},
      {MP_GROUPS_CROSS_PARTITION, 1, 4, 2, 2, {0, 3, 2, 1}, "[0 3][2 1]"},
      {MP_GROUPS_CROSS_PARTITION, 2, 2, 0, 0, {0}, "[0 1][2 3]"},
      // Those replicas x all partitions, partition by partition.
      {MP_GROUPS_CROSS_REPLICA_AND_PARTITION, 4, 2, 2, 2, {0, 2, 1, 3}, "[0 4 1 5][2 6 3 7]"},
      {MP_GROUPS_CROSS_REPLICA_AND_PARTITION, 2, 2, 1, 2, {0, 1}, "[0 2 1 3]"},
      {MP_GROUPS_FLATTENED_IDS, 2, 2, 2, 2, {0, 3, 1, 2}, "[0 3][1 2]"},
      {MP_GROUPS_FLATTENED_IDS, 2, 2, 0, 0, {0}, "[0 1 2 3]"},
      // Uneven rows are padded with -1; rows of nothing else are no groups.
      {MP_GROUPS_FLATTENED_IDS, 1, 4, 2, 3, {0, 1, 2, 3, -1, -1}, "[0 1 2][3]"},
      {MP_GROUPS_FLATTENED_IDS, 1, 4, 3, 2, {-1, -1, 3, 1, -1, -1}, "[3 1]"},
      {MP_GROUPS_FLATTENED_IDS, 1, 1, 1, 1, {0}, "[0]"},
      {MP_GROUPS_FLATTENED_IDS, 2, 2, 1, 2, {0, 4}, "id 4 is not in 0 .. 3"},
      {MP_GROUPS_CROSS_REPLICA, 2, 4, 1, 2, {0, 2}, "id 2 is not in 0 .. 1"},
      {MP_GROUPS_CROSS_PARTITION, 4, 2, 1, 2, {0, 2}, "id 2 is not in 0 .. 1"},
      {MP_GROUPS_FLATTENED_IDS, 2, 2, 1, 2, {0, -2}, "id -2 is not in 0 .. 3"},
      {MP_GROUPS_FLATTENED_IDS, 2, 2, 2, 2, {0, 1, 2, 1}, "id 1 is named twice"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    const groups_case_t *c = &cases[i];
    mp_arena_t *arena = NULL;
    const mp_groups_t *groups = NULL;
    assert_ok(mp_arena_create(&arena));
    mp_status_t status = mp_groups_create(arena, c->mode, c->replicas, c->partitions, c->table,
                                          c->rows, c->columns, &groups);
    if (c->expected[0] == '[') {
      mp_strbuf_t out;
      mp_strbuf_init(&out);
      assert_ok(status);
      print_groups(groups, &out);
      assert_string_equal(mp_strbuf_text(&out), c->expected);
      mp_strbuf_deinit(&out);
    } else {
      assert_status(status, MP_INVALID_ARGUMENT, c->expected);
    }
    mp_arena_release(arena);
  }
}

static void test_devices_in_no_group(void **state) {
  (void)state;
  mp_arena_t *arena = NULL;
  const mp_groups_t *groups = NULL;
  assert_ok(mp_arena_create(&arena));
  assert_ok(
      mp_groups_create(arena, MP_GROUPS_FLATTENED_IDS, 1, 4, (int64_t[]){3, 1}, 1, 2, &groups));
  assert_int_equal(groups->group_of[0], -1);
  assert_int_equal(groups->group_of[2], -1);
  assert_int_equal(groups->group_of[3], 0);
  mp_arena_release(arena);
}

// ---- a bench: devices with one operand each, all in one group or in rows of a table ----

enum { MAX_DEVICES = 40, MAX_OPERANDS = 6 };

typedef struct {
  mp_arena_t *arena;
  mp_collective_t collective;
  mp_collective_operand_t operands[MAX_OPERANDS];
  const mp_groups_t *groups;
  void *inputs[MAX_DEVICES][MAX_OPERANDS];
  void *outputs[MAX_DEVICES][MAX_OPERANDS];
} bench_t;

static size_t bytes_of(const mp_collective_operand_t *operand, const int64_t *dims) {
  size_t bytes = mp_dtype_size(operand->dtype);
  for (uint32_t d = 0; d < operand->rank; ++d) bytes *= (size_t)dims[d];
  return bytes;
}

static void bench_begin(bench_t *bench, mp_collective_kind_t kind, uint32_t num_devices,
                        const int64_t *table, int64_t rows, int64_t columns) {
  memset(bench, 0, sizeof(*bench));
  assert_ok(mp_arena_create(&bench->arena));
  assert_ok(mp_groups_create(bench->arena, MP_GROUPS_FLATTENED_IDS, 1, num_devices, table, rows,
                             columns, &bench->groups));
  bench->collective = (mp_collective_t){.kind = kind,
                                        .name = "stablehlo.test",
                                        .location = "here",
                                        .groups = bench->groups,
                                        .operands = bench->operands};
}

// Adds an operand; inputs are zero, outputs dirty.
static void bench_operand(bench_t *bench, mp_dtype_t dtype, uint32_t rank, const int64_t *dims,
                          const int64_t *result_dims) {
  const uint32_t i = bench->collective.num_operands++;
  mp_collective_operand_t *operand = &bench->operands[i];
  *operand = (mp_collective_operand_t){
      dtype, dtype, rank, mp_arena_copy(bench->arena, dims, rank * sizeof(*dims)),
      mp_arena_copy(bench->arena, result_dims, rank * sizeof(*dims))};
  for (uint32_t d = 0; d < bench->groups->num_devices; ++d) {
    bench->inputs[d][i] = mp_arena_alloc(bench->arena, bytes_of(operand, dims) + 1);
    bench->outputs[d][i] = mp_arena_alloc(bench->arena, bytes_of(operand, result_dims) + 1);
    memset(bench->outputs[d][i], 0xEE, bytes_of(operand, result_dims) + 1);
  }
}

// All chunks of all groups, last first, with dirty scratch.
static mp_status_t bench_run(bench_t *bench) {
  for (uint32_t g = bench->groups->num_groups; g-- > 0;) {
    const uint32_t *members = bench->groups->members + bench->groups->offsets[g];
    const uint32_t size = bench->groups->offsets[g + 1] - bench->groups->offsets[g];
    mp_contribution_t contributions[MAX_DEVICES];
    for (uint32_t i = 0; i < size; ++i) {
      contributions[i] = (mp_contribution_t){(const void *const *)bench->inputs[members[i]],
                                             bench->outputs[members[i]]};
    }
    const size_t scratch_bytes = mp_collective_scratch_bytes(&bench->collective, g);
    void *scratch = aligned_alloc(64, (scratch_bytes + 64) & ~(size_t)63);
    mp_status_t status = NULL;
    for (uint32_t chunk = mp_collective_num_chunks(&bench->collective, g);
         chunk-- > 0 && status == NULL;) {
      memset(scratch, 0xAB, scratch_bytes);
      status = mp_collective_run(&bench->collective, g, contributions, NULL, chunk, scratch);
    }
    free(scratch);
    MP_RETURN_IF_ERROR(status);
  }
  return NULL;
}

static void bench_end(bench_t *bench) {
  // No output was written beyond its end.
  for (uint32_t i = 0; i < bench->collective.num_operands; ++i) {
    const size_t bytes = bytes_of(&bench->operands[i], bench->operands[i].result_dims);
    for (uint32_t d = 0; d < bench->groups->num_devices; ++d) {
      assert_int_equal(((uint8_t *)bench->outputs[d][i])[bytes], 0xEE);
    }
  }
  mp_arena_release(bench->arena);
}

static int32_t *in32(bench_t *bench, uint32_t device) {
  return bench->inputs[device][0];
}
static int32_t *out32(bench_t *bench, uint32_t device) {
  return bench->outputs[device][0];
}

// ---- reducers ----

#define COMBINE(name, type, expr)                                                               \
  static void name(const void *context, int64_t count, const void *a, const void *b, void *out, \
                   void *scratch) {                                                             \
    (void)context;                                                                              \
    (void)scratch;                                                                              \
    for (int64_t i = 0; i < count; ++i) {                                                       \
      const type x = ((const type *)a)[i], y = ((const type *)b)[i];                            \
      ((type *)out)[i] = (expr);                                                                \
    }                                                                                           \
  }
COMBINE(add_i32, int32_t, x + y)
COMBINE(max_i32, int32_t, x > y ? x : y)
COMBINE(xor_i32, int32_t, x ^ y)
COMBINE(add_f32, float, x + y)
COMBINE(add_f64, double, x + y)
// Neither associative nor commutative: shows the order.
COMBINE(digits_f64, double, x * 10 + y)

static mp_reducer_t reducer(void (*combine)(const void *, int64_t, const void *, const void *,
                                            void *, void *)) {
  return (mp_reducer_t){combine, NULL, 0, INT32_MAX, 0};
}

static void test_all_reduce_integers(void **state) {
  (void)state;
  static const struct {
    void (*combine)(const void *, int64_t, const void *, const void *, void *, void *);
    int op;
  } ops[] = {{add_i32, '+'}, {max_i32, 'm'}, {xor_i32, '^'}};
  for (size_t k = 0; k < 3; ++k) {
    bench_t bench;
    const int64_t table[] = {4, 0, 2, 1, 3, -1};  // an uneven second group
    bench_begin(&bench, MP_COLLECTIVE_ALL_REDUCE, 5, table, 2, 3);
    bench.collective.reducer = reducer(ops[k].combine);
    bench_operand(&bench, MP_DTYPE_S32, 1, (int64_t[]){70}, (int64_t[]){70});
    for (int d = 0; d < 5; ++d) {
      for (int i = 0; i < 70; ++i) in32(&bench, (uint32_t)d)[i] = (d * 77 + i * 13) % 50 - 20;
    }
    assert_ok(bench_run(&bench));
    for (uint32_t g = 0; g < 2; ++g) {
      for (int i = 0; i < 70; ++i) {
        const uint32_t *members = bench.groups->members + bench.groups->offsets[g];
        const uint32_t size = bench.groups->offsets[g + 1] - bench.groups->offsets[g];
        int32_t expected = in32(&bench, members[0])[i];
        for (uint32_t m = 1; m < size; ++m) {
          const int32_t value = in32(&bench, members[m])[i];
          if (ops[k].op == '+') expected += value;
          if (ops[k].op == '^') expected ^= value;
          if (ops[k].op == 'm' && value > expected) expected = value;
        }
        for (uint32_t m = 0; m < size; ++m) {
          assert_int_equal(out32(&bench, members[m])[i], expected);
        }
      }
    }
    bench_end(&bench);
  }
}

// The tree over n positions splits at the largest power of two below n.
static double tree(const double *values, uint32_t count) {
  if (count == 1) return values[0];
  uint32_t left = 1;
  while (left * 2 < count) left *= 2;
  return tree(values, left) * 10 + tree(values + left, count - left);
}

static void test_tree_order(void **state) {
  (void)state;
  for (uint32_t size = 1; size <= 33; ++size) {
    bench_t bench;
    bench_begin(&bench, MP_COLLECTIVE_ALL_REDUCE, size, NULL, 0, 0);
    bench.collective.reducer = reducer(digits_f64);
    bench_operand(&bench, MP_DTYPE_F64, 0, NULL, NULL);
    double values[MAX_DEVICES];
    for (uint32_t d = 0; d < size; ++d) {
      values[d] = d + 1;
      *(double *)bench.inputs[d][0] = values[d];
    }
    assert_ok(bench_run(&bench));
    for (uint32_t d = 0; d < size; ++d) {
      assert_true(*(double *)bench.outputs[d][0] == tree(values, size));
    }
    bench_end(&bench);
  }
}

// bf16 sums are kept in f32 until the end: 256 + 1 + ... would stay 256 otherwise.
static void test_narrow_floats(void **state) {
  (void)state;
  static const mp_dtype_t dtypes[] = {MP_DTYPE_BF16, MP_DTYPE_F16, MP_DTYPE_F8E4M3FN};
  for (size_t k = 0; k < 3; ++k) {
    bench_t bench;
    bench_begin(&bench, MP_COLLECTIVE_ALL_REDUCE, 9, NULL, 0, 0);
    bench.collective.reducer = reducer(add_f32);
    bench_operand(&bench, dtypes[k], 1, (int64_t[]){3}, (int64_t[]){3});
    bench.operands[0].accumulation = MP_DTYPE_F32;
    const double first = k == 2 ? 16 : 256, term = k == 2 ? 0.25 : 1;
    const size_t size = mp_dtype_size(dtypes[k]);
    for (uint32_t d = 0; d < 9; ++d) {
      for (size_t i = 0; i < 3; ++i) {
        mp_float_encode(dtypes[k], d == 0 ? first : term, (char *)bench.inputs[d][0] + i * size);
      }
    }
    assert_ok(bench_run(&bench));
    for (uint32_t d = 0; d < 9; ++d) {
      for (size_t i = 0; i < 3; ++i) {
        const double sum = mp_float_decode(dtypes[k], (char *)bench.outputs[d][0] + i * size);
        assert_true(sum == first + 8 * term);
      }
    }
    bench_end(&bench);
  }
}

// Results so large that they are written past the caches, of lengths that fill no line.
static void test_large_results(void **state) {
  (void)state;
  enum { COUNT = (5 << 20) + 7 };
  const mp_collective_kind_t kinds[] = {MP_COLLECTIVE_ALL_REDUCE, MP_COLLECTIVE_PERMUTE,
                                        MP_COLLECTIVE_ALL_GATHER};
  const uint32_t pairs[] = {1, 0, 0, 1};
  for (size_t k = 0; k < 3; ++k) {
    bench_t bench;
    bench_begin(&bench, kinds[k], 2, NULL, 0, 0);
    bench.collective.reducer = reducer(add_i32);
    bench.collective.pairs = pairs;
    bench.collective.num_pairs = 2;
    const bool gathers = kinds[k] == MP_COLLECTIVE_ALL_GATHER;
    bench_operand(&bench, MP_DTYPE_S32, 1, (int64_t[]){COUNT},
                  (int64_t[]){gathers ? 2 * COUNT : COUNT});
    for (int d = 0; d < 2; ++d) {
      for (int i = 0; i < COUNT; ++i) in32(&bench, (uint32_t)d)[i] = i * 7 + d;
    }
    assert_ok(bench_run(&bench));
    for (uint32_t d = 0; d < 2; ++d) {
      const int32_t *out = out32(&bench, d);
      int64_t wrong = 0;
      for (int i = 0; i < COUNT; ++i) {
        const int first = i * 7, other = kinds[k] == MP_COLLECTIVE_PERMUTE ? 1 - (int)d : 0;
        if (kinds[k] == MP_COLLECTIVE_ALL_REDUCE) wrong += out[i] != 2 * first + 1;
        if (kinds[k] != MP_COLLECTIVE_ALL_REDUCE) wrong += out[i] != first + other;
        if (gathers) wrong += out[COUNT + i] != first + 1;
      }
      assert_int_equal(wrong, 0);
    }
    bench_end(&bench);
  }
}

// The bits of a sum are the same however it is cut: a reducer that takes only a few elements at a
// time, an array of many chunks, an array alone.
static void test_chunks_do_not_change_bits(void **state) {
  (void)state;
  enum { COUNT = 300000, DEVICES = 5 };
  const int64_t limits[] = {INT32_MAX, 512, 7};
  float *first = NULL;
  for (int k = 0; k < 3; ++k) {
    bench_t bench;
    bench_begin(&bench, MP_COLLECTIVE_ALL_REDUCE, DEVICES, NULL, 0, 0);
    bench.collective.reducer = reducer(add_f32);
    bench.collective.reducer.max_count = limits[k];
    bench_operand(&bench, MP_DTYPE_F32, 1, (int64_t[]){COUNT}, (int64_t[]){COUNT});
    if (k == 0) assert_true(mp_collective_num_chunks(&bench.collective, 0) > 8);
    for (int d = 0; d < DEVICES; ++d) {
      for (int i = 0; i < COUNT; ++i) {
        ((float *)bench.inputs[d][0])[i] =
            (float)(((int64_t)i * 7919 + d * 104729) % 10007) * 0.001f - 3;
      }
    }
    assert_ok(bench_run(&bench));
    if (first == NULL) {
      first = malloc(COUNT * sizeof(float));
      memcpy(first, bench.outputs[0][0], COUNT * sizeof(float));
      for (int i = 0; i < COUNT; ++i) {  // and the order is the tree's
        float in[DEVICES];
        for (int d = 0; d < DEVICES; ++d) in[d] = ((float *)bench.inputs[d][0])[i];
        const float sum = ((in[0] + in[1]) + (in[2] + in[3])) + in[4];
        assert_true(first[i] == sum);
      }
    }
    for (int d = 0; d < DEVICES; ++d) {
      assert_memory_equal(bench.outputs[d][0], first, COUNT * sizeof(float));
    }
    bench_end(&bench);
  }
  free(first);
}

// Several operands of different sizes, each reduced for itself.
static void test_variadic_all_reduce(void **state) {
  (void)state;
  bench_t bench;
  bench_begin(&bench, MP_COLLECTIVE_ALL_REDUCE, 3, NULL, 0, 0);
  bench.collective.reducer = reducer(add_i32);
  bench_operand(&bench, MP_DTYPE_S32, 1, (int64_t[]){4}, (int64_t[]){4});
  bench_operand(&bench, MP_DTYPE_S32, 2, (int64_t[]){3, 0}, (int64_t[]){3, 0});
  bench_operand(&bench, MP_DTYPE_S32, 0, NULL, NULL);
  for (int d = 0; d < 3; ++d) {
    for (int i = 0; i < 4; ++i) in32(&bench, (uint32_t)d)[i] = d + i;
    *(int32_t *)bench.inputs[d][2] = 10 * d;
  }
  assert_ok(bench_run(&bench));
  for (uint32_t d = 0; d < 3; ++d) {
    for (int i = 0; i < 4; ++i) assert_int_equal(out32(&bench, d)[i], 3 + 3 * i);
    assert_int_equal(*(int32_t *)bench.outputs[d][2], 30);
  }
  bench_end(&bench);
}

// ---- gather, scatter, all_to_all along every dimension of [4, 6, 8] ----

static const int64_t g_dims[3] = {4, 6, 8};

static int64_t offset_of(const int64_t *dims, const int64_t *index) {
  return (index[0] * dims[1] + index[1]) * dims[2] + index[2];
}

// Calls `visit` for every index of an array.
#define FOR_EACH_INDEX(dims, index)                            \
  for ((index)[0] = 0; (index)[0] < (dims)[0]; ++(index)[0])   \
    for ((index)[1] = 0; (index)[1] < (dims)[1]; ++(index)[1]) \
      for ((index)[2] = 0; (index)[2] < (dims)[2]; ++(index)[2])

static void fill(bench_t *bench) {
  for (uint32_t d = 0; d < bench->groups->num_devices; ++d) {
    for (int i = 0; i < 4 * 6 * 8; ++i) in32(bench, d)[i] = (int32_t)d * 1000 + i;
  }
}

static void test_all_gather(void **state) {
  (void)state;
  for (uint32_t dim = 0; dim < 3; ++dim) {
    bench_t bench;
    const int64_t table[] = {3, 1, 0, 2};
    int64_t result[3] = {g_dims[0], g_dims[1], g_dims[2]};
    result[dim] *= 2;
    bench_begin(&bench, MP_COLLECTIVE_ALL_GATHER, 4, table, 2, 2);
    bench.collective.dimension = dim;
    bench_operand(&bench, MP_DTYPE_S32, 3, g_dims, result);
    fill(&bench);
    assert_ok(bench_run(&bench));
    for (uint32_t d = 0; d < 4; ++d) {
      int64_t index[3];
      FOR_EACH_INDEX(result, index) {
        const int64_t part = index[dim] / g_dims[dim];
        int64_t from[3] = {index[0], index[1], index[2]};
        from[dim] %= g_dims[dim];
        const uint32_t source = (uint32_t)table[(d == 3 || d == 1 ? 0 : 2) + part];
        assert_int_equal(out32(&bench, d)[offset_of(result, index)],
                         in32(&bench, source)[offset_of(g_dims, from)]);
      }
    }
    bench_end(&bench);
  }
}

static void test_reduce_scatter(void **state) {
  (void)state;
  for (uint32_t dim = 0; dim < 3; ++dim) {
    bench_t bench;
    int64_t result[3] = {g_dims[0], g_dims[1], g_dims[2]};
    result[dim] /= 2;
    bench_begin(&bench, MP_COLLECTIVE_REDUCE_SCATTER, 2, (int64_t[]){1, 0}, 1, 2);
    bench.collective.dimension = dim;
    bench.collective.reducer = reducer(add_i32);
    bench.collective.reducer.max_count = 5;
    bench_operand(&bench, MP_DTYPE_S32, 3, g_dims, result);
    fill(&bench);
    assert_ok(bench_run(&bench));
    for (uint32_t position = 0; position < 2; ++position) {
      int64_t index[3];
      FOR_EACH_INDEX(result, index) {
        int64_t from[3] = {index[0], index[1], index[2]};
        from[dim] += position * result[dim];
        const int64_t at = offset_of(g_dims, from);
        assert_int_equal(out32(&bench, 1 - position)[offset_of(result, index)],
                         in32(&bench, 0)[at] + in32(&bench, 1)[at]);
      }
    }
    bench_end(&bench);
  }
}

static void test_all_to_all(void **state) {
  (void)state;
  for (uint32_t split = 0; split < 3; ++split) {
    for (uint32_t concat = 0; concat < 3; ++concat) {
      bench_t bench;
      int64_t result[3] = {g_dims[0], g_dims[1], g_dims[2]};
      result[split] /= 2;
      result[concat] *= 2;
      bench_begin(&bench, MP_COLLECTIVE_ALL_TO_ALL, 4, (int64_t[]){0, 2, 3, 1}, 2, 2);
      bench.collective.dimension = split;
      bench.collective.concat_dimension = concat;
      bench_operand(&bench, MP_DTYPE_S32, 3, g_dims, result);
      fill(&bench);
      assert_ok(bench_run(&bench));
      const uint32_t partner[] = {2, 3, 0, 1}, position[] = {0, 1, 1, 0};
      for (uint32_t d = 0; d < 4; ++d) {
        int64_t index[3], part[3] = {g_dims[0], g_dims[1], g_dims[2]};
        part[split] /= 2;
        FOR_EACH_INDEX(result, index) {
          // Which sender's part, and where in the sender's array.
          int64_t from[3] = {index[0], index[1], index[2]};
          const uint32_t sender = (uint32_t)(index[concat] / part[concat]);
          from[concat] %= part[concat];
          from[split] += position[d] * part[split];
          const uint32_t source = position[d] == sender ? d : partner[d];
          assert_int_equal(out32(&bench, d)[offset_of(result, index)],
                           in32(&bench, source)[offset_of(g_dims, from)]);
        }
      }
      bench_end(&bench);
    }
  }
}

// ---- permute, broadcast ----

static void test_permute_and_broadcast(void **state) {
  (void)state;
  bench_t bench;
  bench_begin(&bench, MP_COLLECTIVE_PERMUTE, 4, NULL, 0, 0);
  bench_operand(&bench, MP_DTYPE_S32, 3, g_dims, g_dims);
  const uint32_t pairs[] = {3, 0, 0, 2, 1, 3};  // by target; no device sends to 1
  bench.collective.pairs = pairs;
  bench.collective.num_pairs = 3;
  fill(&bench);
  assert_ok(bench_run(&bench));
  const size_t bytes = 4 * 6 * 8 * 4;
  assert_memory_equal(bench.outputs[0][0], bench.inputs[3][0], bytes);
  assert_memory_equal(bench.outputs[2][0], bench.inputs[0][0], bytes);
  assert_memory_equal(bench.outputs[3][0], bench.inputs[1][0], bytes);
  for (int i = 0; i < 4 * 6 * 8; ++i) assert_int_equal(out32(&bench, 1)[i], 0);
  bench_end(&bench);

  bench_begin(&bench, MP_COLLECTIVE_BROADCAST, 5, (int64_t[]){4, 1, 0, 2, 3, -1}, 2, 3);
  bench_operand(&bench, MP_DTYPE_S32, 3, g_dims, g_dims);
  fill(&bench);
  assert_ok(bench_run(&bench));
  const uint32_t roots[] = {4, 4, 2, 2, 4};
  for (int d = 0; d < 5; ++d) {
    assert_memory_equal(bench.outputs[d][0], bench.inputs[roots[d]][0], bytes);
  }
  bench_end(&bench);
}

// ---- exchange: random box maps ----

static uint64_t g_seed;

static int64_t pick(int64_t count) {
  g_seed = g_seed * 6364136223846793005ull + 1442695040888963407ull;
  return (int64_t)(g_seed >> 33) % count;
}

typedef struct {
  int64_t starts[MAX_DEVICES * 3], sizes[MAX_DEVICES * 3];
  uint32_t owner[MAX_DEVICES];
  int64_t local[3];
} boxes_t;

// A grid of random cuts over `dims`; every device gets a cell, the first ones one each, the others
// copies of random cells.
static void random_boxes(boxes_t *boxes, uint32_t num_devices, const int64_t *dims) {
  int64_t cuts[3][5], parts[3];
  int64_t num_cells = 1;
  memset(boxes->local, 0, sizeof(boxes->local));
  for (int d = 0; d < 3; ++d) {
    parts[d] = 1 + pick(3);
    if (num_cells * parts[d] > num_devices) parts[d] = 1;
    num_cells *= parts[d];
    const int64_t step = (dims[d] + parts[d] - 1) / parts[d];
    for (int64_t i = 0; i <= parts[d]; ++i) cuts[d][i] = i * step < dims[d] ? i * step : dims[d];
  }
  const int64_t turn = pick(num_devices);
  for (uint32_t i = 0; i < num_devices; ++i) {
    const uint32_t device = (uint32_t)((i + turn) % num_devices);
    int64_t cell = i < num_cells ? i : pick(num_cells);
    for (int d = 3; d-- > 0;) {
      const int64_t at = cell % parts[d];
      cell /= parts[d];
      boxes->starts[device * 3 + (uint32_t)d] = cuts[d][at];
      boxes->sizes[device * 3 + (uint32_t)d] = cuts[d][at + 1] - cuts[d][at];
      const int64_t size = cuts[d][at + 1] - cuts[d][at];
      if (size > boxes->local[d]) boxes->local[d] = size;
    }
  }
  for (uint32_t p = 0; p < num_devices; ++p) {
    boxes->owner[p] = p;
    for (uint32_t q = p; q-- > 0;) {
      if (memcmp(&boxes->starts[p * 3], &boxes->starts[q * 3], 24) == 0 &&
          memcmp(&boxes->sizes[p * 3], &boxes->sizes[q * 3], 24) == 0) {
        boxes->owner[p] = q;
      }
    }
  }
}

static void random_exchange(uint64_t seed) {
  g_seed = seed;
  const uint32_t devices = (uint32_t)(1 + pick(12));
  const int64_t dims[3] = {1 + pick(7), 1 + pick(7), 1 + pick(7)};
  boxes_t source, target;
  random_boxes(&source, devices, dims);
  random_boxes(&target, devices, dims);
  bench_t bench;
  bench_begin(&bench, MP_COLLECTIVE_EXCHANGE, devices, NULL, 0, 0);
  bench_operand(&bench, MP_DTYPE_S32, 3, source.local, target.local);
  bench.collective.source = (mp_collective_boxes_t){source.starts, source.sizes, source.owner};
  bench.collective.target = (mp_collective_boxes_t){target.starts, target.sizes, NULL};
  // The whole tensor holds its own offsets; what is beyond a box is marked.
  for (uint32_t p = 0; p < devices; ++p) {
    int64_t index[3];
    FOR_EACH_INDEX(source.local, index) {
      int64_t global[3];
      bool inside = true;
      for (int d = 0; d < 3; ++d) {
        global[d] = index[d] + source.starts[p * 3 + (uint32_t)d];
        inside &= index[d] < source.sizes[p * 3 + (uint32_t)d];
      }
      in32(&bench, p)[offset_of(source.local, index)] =
          inside ? (int32_t)offset_of(dims, global) : -7;
    }
  }
  assert_ok(bench_run(&bench));
  for (uint32_t p = 0; p < devices; ++p) {
    int64_t index[3];
    FOR_EACH_INDEX(&target.sizes[p * 3], index) {
      int64_t global[3];
      for (int d = 0; d < 3; ++d) global[d] = index[d] + target.starts[p * 3 + (uint32_t)d];
      if (out32(&bench, p)[offset_of(target.local, index)] != offset_of(dims, global)) {
        fail_msg("seed %llu: device %u, [%lld,%lld,%lld]", (unsigned long long)seed, p,
                 (long long)index[0], (long long)index[1], (long long)index[2]);
      }
    }
  }
  bench_end(&bench);
}

static void test_random_exchanges(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 1000; ++seed) random_exchange(seed);
}

// ---- ragged all_to_all ----

// Two devices, three rows of two elements; index arrays have one entry for each partner.
static void ragged_begin(bench_t *bench, mp_dtype_t index_type) {
  bench_begin(bench, MP_COLLECTIVE_RAGGED_ALL_TO_ALL, 2, NULL, 0, 0);
  bench_operand(bench, MP_DTYPE_S32, 2, (int64_t[]){3, 2}, (int64_t[]){3, 2});
  bench_operand(bench, MP_DTYPE_S32, 2, (int64_t[]){4, 2}, (int64_t[]){4, 2});
  for (int i = 0; i < 4; ++i) {
    bench_operand(bench, index_type, 1, (int64_t[]){2}, (int64_t[]){2});
  }
  for (uint32_t d = 0; d < 2; ++d) {
    for (int i = 0; i < 6; ++i) in32(bench, d)[i] = (int32_t)d * 100 + i;
    for (int i = 0; i < 8; ++i) ((int32_t *)bench->inputs[d][1])[i] = -1;
    // The operation has one output, of the second operand's shape.
    bench->outputs[d][0] = bench->outputs[d][1];
  }
}

static void ragged_set(bench_t *bench, uint32_t device, uint32_t operand, int64_t a, int64_t b) {
  void *data = bench->inputs[device][operand];
  if (bench->operands[operand].dtype == MP_DTYPE_S64) {
    memcpy(data, (int64_t[]){a, b}, 16);
  } else {
    memcpy(data, (int32_t[]){(int32_t)a, (int32_t)b}, 8);
  }
}

static void ragged_fill(bench_t *bench) {
  // Device 0: its row 0 to itself at 0, its rows 1..2 to device 1 at 1. Device 1: nothing to 0,
  // its row 2 to itself at 0.
  const int64_t entries[2][4][2] = {{{0, 1}, {1, 2}, {0, 1}, {1, 0}},
                                    {{0, 2}, {0, 1}, {3, 0}, {2, 1}}};
  for (uint32_t d = 0; d < 2; ++d) {
    for (uint32_t k = 0; k < 4; ++k)
      ragged_set(bench, d, 2 + k, entries[d][k][0], entries[d][k][1]);
  }
}

static void ragged_end(bench_t *bench) {
  mp_arena_release(bench->arena);
}

static void test_ragged(void **state) {
  (void)state;
  static const mp_dtype_t dtypes[] = {MP_DTYPE_S32, MP_DTYPE_S64};
  for (int k = 0; k < 2; ++k) {
    bench_t bench;
    ragged_begin(&bench, dtypes[k]);
    ragged_fill(&bench);
    assert_ok(bench_run(&bench));
    const int32_t first[] = {0, 1, -1, -1, -1, -1, -1, -1};
    const int32_t second[] = {104, 105, 2, 3, 4, 5, -1, -1};
    assert_memory_equal(bench.outputs[0][0], first, sizeof(first));
    assert_memory_equal(bench.outputs[1][0], second, sizeof(second));
    ragged_end(&bench);
  }
}

static void test_ragged_errors(void **state) {
  (void)state;
  static const struct {
    uint32_t device, operand;
    int64_t a, b;
    const char *text;
  } cases[] = {
      {0, 2, 0, 2, "device 0 sends rows 2+2 of 3 to rows 1 of 4 of device 1"},
      {0, 2, 0, -1, "device 0 sends rows -1+2"},
      {0, 4, 0, 3, "to rows 3 of 4 of device 1"},
      {0, 4, 0, INT64_MAX, "device 0 sends rows 1+2"},
      {0, 2, INT64_MIN, 1, "device 0 sends rows -9223372036854775808+1"},
      {0, 3, 1, -2, "rows 1+-2"},
      {0, 3, 1, INT64_MAX, "rows 1+9223372036854775807"},
      {1, 5, 1, 1, "device 0 sends 2 rows to device 1, which expects 1"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    bench_t bench;
    ragged_begin(&bench, MP_DTYPE_S64);
    ragged_fill(&bench);
    ragged_set(&bench, cases[i].device, cases[i].operand, cases[i].a, cases[i].b);
    assert_status(bench_run(&bench), MP_INVALID_ARGUMENT, cases[i].text);
    ragged_end(&bench);
  }
}

// ---- what does not depend on values ----

static void test_empty_arrays(void **state) {
  (void)state;
  static const mp_collective_kind_t kinds[] = {
      MP_COLLECTIVE_ALL_REDUCE, MP_COLLECTIVE_ALL_GATHER, MP_COLLECTIVE_REDUCE_SCATTER,
      MP_COLLECTIVE_ALL_TO_ALL, MP_COLLECTIVE_PERMUTE,    MP_COLLECTIVE_BROADCAST};
  for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); ++k) {
    bench_t bench;
    bench_begin(&bench, kinds[k], 2, NULL, 0, 0);
    bench.collective.reducer = reducer(add_f64);
    bench_operand(&bench, MP_DTYPE_F64, 2, (int64_t[]){0, 4}, (int64_t[]){0, 4});
    for (int d = 0; d < 2; ++d) bench.inputs[d][0] = NULL;
    assert_int_equal(mp_collective_num_chunks(&bench.collective, 0), 1);
    assert_ok(bench_run(&bench));
    bench_end(&bench);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_groups),
      cmocka_unit_test(test_devices_in_no_group),
      cmocka_unit_test(test_all_reduce_integers),
      cmocka_unit_test(test_tree_order),
      cmocka_unit_test(test_narrow_floats),
      cmocka_unit_test(test_large_results),
      cmocka_unit_test(test_chunks_do_not_change_bits),
      cmocka_unit_test(test_variadic_all_reduce),
      cmocka_unit_test(test_all_gather),
      cmocka_unit_test(test_reduce_scatter),
      cmocka_unit_test(test_all_to_all),
      cmocka_unit_test(test_permute_and_broadcast),
      cmocka_unit_test(test_random_exchanges),
      cmocka_unit_test(test_ragged),
      cmocka_unit_test(test_ragged_errors),
      cmocka_unit_test(test_empty_arrays),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
