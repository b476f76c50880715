// Schedules: every kind of collective, its members spread over processes in all sorts of ways,
// gives the same bits as in one process.
#include <stdlib.h>

#include "collectives/collective_stripe.h"
#include "tests/unit/support/random_collective.h"

enum { MAX_PROCESSES = 8 };

// One group's members in one process.
typedef struct {
  mp_group_layout_t *layout;
  mp_collective_stripe_t *stripe;
  mp_collective_schedule_t *schedule;  // the stripe's
  mp_contribution_t contributions[RANDOM_MAX_DEVICES];
  void *payloads[MP_SCHEDULE_MAX_PHASES][MAX_PROCESSES];
} process_t;

typedef void *outputs_t[RANDOM_MAX_DEVICES][RANDOM_MAX_OPERANDS];

static void make_outputs(random_collective_t *r, outputs_t outputs) {
  for (uint32_t d = 0; d < r->num_devices; ++d) {
    for (uint32_t i = 0; i < r->num_results; ++i) {
      outputs[d][i] = mp_arena_alloc(r->arena, r->output_bytes[i] + 1);
      memset(outputs[d][i], 0xEE, r->output_bytes[i] + 1);
    }
  }
}

static void run_alone(random_collective_t *r, uint32_t group, outputs_t outputs) {
  const mp_groups_t *groups = r->collective.groups;
  mp_contribution_t contributions[RANDOM_MAX_DEVICES];
  for (uint32_t i = groups->offsets[group]; i < groups->offsets[group + 1]; ++i) {
    const uint32_t member = groups->members[i];
    contributions[i - groups->offsets[group]] =
        (mp_contribution_t){(const void *const *)r->inputs[member], outputs[member]};
  }
  void *scratch =
      aligned_alloc(64, (mp_collective_scratch_bytes(&r->collective, group) + 64) & ~63ul);
  for (uint32_t c = mp_collective_num_chunks(&r->collective, group); c-- > 0;) {
    assert_ok(mp_collective_run(&r->collective, group, contributions, NULL, c, scratch));
  }
  free(scratch);
}

static void begin(random_collective_t *r, uint32_t group, const uint32_t *ranks, uint32_t rank,
                  uint32_t per_host, uint32_t index, uint32_t num_stripes, outputs_t outputs,
                  process_t *process) {
  const mp_groups_t *groups = r->collective.groups;
  const uint32_t *members = groups->members + groups->offsets[group];
  const uint32_t size = groups->offsets[group + 1] - groups->offsets[group];
  uint32_t ranks_of[RANDOM_MAX_DEVICES], hosts_of[RANDOM_MAX_DEVICES];
  memset(process, 0, sizeof(*process));
  for (uint32_t i = 0; i < size; ++i) {
    ranks_of[i] = ranks[members[i]];
    hosts_of[i] = 7 + ranks_of[i] / per_host;
    if (ranks_of[i] != rank) continue;
    process->contributions[i] =
        (mp_contribution_t){(const void *const *)r->inputs[members[i]], outputs[members[i]]};
  }
  assert_ok(mp_group_layout_create(size, ranks_of, hosts_of, rank, &process->layout));
  assert_ok(mp_collective_stripe_create(&r->collective, group, index, num_stripes, process->layout,
                                        process->contributions, NULL, &process->stripe));
  process->schedule = process->stripe->schedule;
}

static void pack(process_t *process, uint32_t phase) {
  mp_collective_schedule_t *schedule = process->schedule;
  const mp_group_layout_t *layout = process->layout;
  bool is_shared;
  assert_ok(mp_collective_schedule_plan(schedule, phase, &is_shared));
  void *shared = NULL;
  for (uint32_t p = 0; p < layout->num_processes; ++p) {
    const size_t bytes = schedule->sizes[mp_collective_schedule_at(schedule, phase, p)];
    if (bytes == 0 || bytes == MP_NO_PAYLOAD) continue;
    if (shared == NULL || !is_shared) {
      shared = aligned_alloc(64, (bytes + 63) & ~63ul);
      process->payloads[phase][p] = shared;
      memset(shared, 0x5A, bytes);
    }
    schedule->payloads[mp_collective_schedule_at(schedule, phase, p)] = shared;
  }
  if (is_shared)
    schedule->payloads[mp_collective_schedule_at(schedule, phase, layout->self)] = shared;
  void *scratch = aligned_alloc(64, (mp_collective_schedule_scratch_bytes(schedule) + 64) & ~63ul);
  for (uint32_t part = mp_collective_schedule_num_parts(schedule, phase); part-- > 0;) {
    assert_ok(mp_collective_schedule_pack(schedule, phase, part, scratch));
  }
  free(scratch);
}

static void deliver(process_t *from, process_t *to, uint32_t phase) {
  const uint32_t target = to->layout->self;
  const size_t at = mp_collective_schedule_at(from->schedule, phase, target);
  const size_t bytes = from->schedule->sizes[at];
  const bool is_awaited = mp_collective_schedule_awaits(to->schedule, phase, from->layout->self);
  assert_int_equal(is_awaited, bytes != MP_NO_PAYLOAD);
  if (!is_awaited) return;
  assert_ok(mp_collective_schedule_receive(to->schedule, phase, from->layout->self,
                                           bytes == 0 ? NULL : from->schedule->payloads[at],
                                           bytes));
}

static void finish(process_t *process) {
  mp_collective_schedule_t *schedule = process->schedule;
  assert_ok(mp_collective_schedule_open(schedule));
  void *scratch = aligned_alloc(64, (mp_collective_schedule_scratch_bytes(schedule) + 64) & ~63ul);
  for (uint32_t part = mp_collective_schedule_num_parts(schedule, schedule->num_phases);
       part-- > 0;) {
    assert_ok(mp_collective_schedule_finish(schedule, part, scratch));
  }
  free(scratch);
}

static void end(process_t *process) {
  for (uint32_t phase = 0; phase < MP_SCHEDULE_MAX_PHASES; ++phase) {
    for (uint32_t p = 0; p < MAX_PROCESSES; ++p) free(process->payloads[phase][p]);
  }
  mp_collective_stripe_release(process->stripe);
  mp_group_layout_release(process->layout);
}

// How many of each kind took how many phases.
static uint32_t g_phases[MP_GROUP_COLLECTIVE_KINDS][MP_SCHEDULE_MAX_PHASES + 1];

static void run_spread(random_collective_t *r, uint32_t group, const uint32_t *ranks,
                       uint32_t num_ranks, uint32_t per_host, uint32_t index, uint32_t num_stripes,
                       outputs_t outputs) {
  process_t processes[MAX_PROCESSES];
  uint32_t count = 0;
  for (uint32_t rank = 0; rank < num_ranks; ++rank) {
    bool has_members = false;
    const mp_groups_t *groups = r->collective.groups;
    for (uint32_t i = groups->offsets[group]; i < groups->offsets[group + 1]; ++i) {
      has_members |= ranks[groups->members[i]] == rank;
    }
    if (has_members) {
      begin(r, group, ranks, rank, per_host, index, num_stripes, outputs, &processes[count++]);
    }
  }
  if (count == 1) run_alone(r, group, outputs);
  g_phases[r->collective.kind][count > 1 ? processes[0].schedule->num_phases : 0] += 1;
  for (uint32_t phase = 0; count > 1 && phase < processes[0].schedule->num_phases; ++phase) {
    for (uint32_t p = 0; p < count; ++p) pack(&processes[p], phase);
    for (uint32_t p = 0; p < count * count; ++p) {
      if (p / count != p % count) deliver(&processes[p / count], &processes[p % count], phase);
    }
  }
  // Twice: opening starts from the beginning, whatever has been read before.
  for (uint32_t p = 0; p < 2 * count && count > 1; ++p) finish(&processes[p / 2]);
  for (uint32_t p = 0; p < count; ++p) end(&processes[p]);
}

static void test_random(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 300 * MP_GROUP_COLLECTIVE_KINDS; ++seed) {
    random_collective_t r;
    const uint32_t num_devices = 2 + (uint32_t)(seed % 14);
    const uint64_t turn = seed / MP_GROUP_COLLECTIVE_KINDS;  // of all kinds
    const int64_t large = seed % MP_GROUP_COLLECTIVE_KINDS == MP_COLLECTIVE_ALL_REDUCE ? 270 : 60;
    random_collective(&r, seed, num_devices, turn % 5 == 0 ? large : 7);
    const bool is_grid = turn % 4 == 1 && num_devices >= 6;  // of 2 hosts x 3, or 3 x 2
    const uint32_t num_ranks = is_grid ? 6 : 1 + random_below(&r, MAX_PROCESSES);
    const uint32_t per_host = is_grid ? 2 + (uint32_t)(turn / 4 % 2) : 1 + random_below(&r, 3);
    uint32_t ranks[RANDOM_MAX_DEVICES];
    for (uint32_t d = 0; d < num_devices; ++d) {
      const bool is_even = is_grid || seed % 3 == 0;
      ranks[d] = is_even ? d * num_ranks / num_devices : random_below(&r, num_ranks);
    }
    outputs_t expected, outputs;
    make_outputs(&r, expected);
    make_outputs(&r, outputs);
    for (uint32_t g = 0; g < r.collective.groups->num_groups; ++g) {
      run_alone(&r, g, expected);
      // Some with fewer elements than there are stripes.
      const bool is_striped = r.collective.kind == MP_COLLECTIVE_ALL_REDUCE && turn % 3 == 0;
      const uint32_t num_stripes = is_striped ? 2 + (uint32_t)(turn % 7) : 1;
      for (uint32_t index = 0; index < num_stripes; ++index) {
        run_spread(&r, g, ranks, num_ranks, per_host, index, num_stripes, outputs);
      }
    }
    for (uint32_t d = 0; d < num_devices; ++d) {
      for (uint32_t i = 0; i < r.num_results; ++i) {
        if (memcmp(expected[d][i], outputs[d][i], r.output_bytes[i] + 1) != 0) {
          fail_msg("seed %u: operand %u of device %u differs", (unsigned)seed, i, d);
        }
      }
    }
    random_collective_end(&r);
  }
  assert_true(g_phases[MP_COLLECTIVE_ALL_REDUCE][1] > 20);
  assert_true(g_phases[MP_COLLECTIVE_ALL_REDUCE][2] > 5);
  assert_true(g_phases[MP_COLLECTIVE_ALL_REDUCE][4] > 5);
  assert_true(g_phases[MP_COLLECTIVE_REDUCE_SCATTER][2] > 20);
  assert_true(g_phases[MP_COLLECTIVE_ALL_GATHER][2] > 20);
  assert_true(g_phases[MP_COLLECTIVE_BROADCAST][2] > 20);
}

// Large sums between hosts are cut into stripes, in all processes alike; other collectives are not.
static void test_num_stripes(void **state) {
  (void)state;
  enum { SIZE = 4 };
  static const uint32_t ranks[SIZE] = {0, 0, 1, 1}, hosts[SIZE] = {5, 5, 9, 9},
                        same[SIZE] = {5, 5, 5, 5};
  const int64_t dims[] = {1024, 1024}, few[] = {3};
  mp_collective_operand_t operands[] = {{.dtype = MP_DTYPE_F32,
                                         .accumulation = MP_DTYPE_F32,
                                         .rank = 2,
                                         .dims = dims,
                                         .result_dims = dims},
                                        {.dtype = MP_DTYPE_F32,
                                         .accumulation = MP_DTYPE_F32,
                                         .rank = 1,
                                         .dims = few,
                                         .result_dims = few}};
  mp_collective_t collective = {
      .kind = MP_COLLECTIVE_ALL_REDUCE, .num_operands = 2, .operands = operands};
  for (uint32_t self = 0; self < 2; ++self) {
    mp_group_layout_t *between, *within;
    assert_ok(mp_group_layout_create(SIZE, ranks, hosts, self, &between));
    assert_ok(mp_group_layout_create(SIZE, ranks, same, self, &within));
    assert_true(between->spans_hosts && !within->spans_hosts);
    collective.kind = MP_COLLECTIVE_ALL_REDUCE;
    assert_int_equal(mp_collective_num_stripes(&collective, between), 16);  // of 256 KiB
    assert_int_equal(mp_collective_num_stripes(&collective, within), 1);
    collective.kind = MP_COLLECTIVE_REDUCE_SCATTER;
    assert_int_equal(mp_collective_num_stripes(&collective, between), 1);
    mp_group_layout_release(between);
    mp_group_layout_release(within);
  }
}

static void test_pieces(void **state) {
  (void)state;
  static const struct {
    uint32_t size, ranks[8];
    const char *pieces;
  } cases[] = {
      {8, {0, 0, 0, 0, 1, 1, 1, 1}, "0+4@0 4+4@1"},
      {8, {0, 0, 1, 1, 0, 0, 1, 1}, "0+2@0 2+2@1 4+2@0 6+2@1"},
      {8, {0, 0, 0, 1, 1, 1, 1, 1}, "0+2@0 2+1@0 3+1@1 4+4@1"},
      {7, {0, 0, 0, 0, 1, 1, 1}, "0+4@0 4+3@1"},
      {3, {2, 0, 2}, "0+1@1 1+1@0 2+1@1"},
      {1, {0}, "0+1@0"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    mp_group_layout_t *layout;
    mp_strbuf_t text;
    assert_ok(
        mp_group_layout_create(cases[i].size, cases[i].ranks, NULL, cases[i].ranks[0], &layout));
    mp_strbuf_init(&text);
    for (uint32_t p = 0; p < layout->num_pieces; ++p) {
      const mp_piece_t *piece = &layout->pieces[p];
      mp_strbuf_printf(&text, "%s%u+%u@%u", p == 0 ? "" : " ", piece->begin, piece->count,
                       piece->process);
    }
    assert_string_equal(mp_strbuf_text(&text), cases[i].pieces);
    mp_strbuf_deinit(&text);
    mp_group_layout_release(layout);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_num_stripes),
      cmocka_unit_test(test_pieces),
      cmocka_unit_test(test_random),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
