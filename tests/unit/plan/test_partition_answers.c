// The answers of custom partitioners as bytes: they come back in order, and to the same questions.

#include "sim/plan/partitioners/partition_answers.h"
#include "tests/unit/support/unit.h"

static const mp_foreign_aval_t avals[] = {
    {{"shape a", sizeof("shape a") - 1}, {"sharding a", sizeof("sharding a") - 1}},
    {{"shape b", sizeof("shape b") - 1}, {"", sizeof("") - 1}}};
static const mp_str_t shardings[] = {{"x", sizeof("x") - 1}, {"", sizeof("") - 1}};

// A question about `num_operands` operands, and its answer.
static mp_foreign_question_t question_of(uint32_t num_operands) {
  return (mp_foreign_question_t){.num_operands = num_operands,
                                 .operands = avals,
                                 .result = {MP_STR("shape"), MP_STR("sharding")},
                                 .config = MP_STR("not the same in another process")};
}

static const mp_foreign_answer_t answer = {.module = {"module {}", sizeof("module {}") - 1},
                                           .operand_shardings = shardings,
                                           .result_sharding = {"y", sizeof("y") - 1}};

static void record(mp_strbuf_t *out) {
  const mp_foreign_question_t two = question_of(2), none = question_of(0);
  mp_strbuf_init(out);
  mp_partition_answers_add(out, MP_STR("first"), &two, &answer);
  mp_partition_answers_add(out, MP_STR("second"), &none, &answer);
  assert_ok(mp_strbuf_status(out));
}

static mp_status_t take(mp_arena_t *arena, mp_str_t *left, const char *target,
                        uint32_t num_operands, mp_foreign_answer_t *out) {
  mp_foreign_question_t question = question_of(num_operands);
  question.config = MP_STR("another process");
  return mp_partition_answers_take(arena, left, mp_str(target), &question, out);
}

static void answers_come_back_in_order(void **state) {
  (void)state;
  mp_arena_t *arena = NULL;
  assert_ok(mp_arena_create(&arena));
  mp_strbuf_t bytes;
  record(&bytes);
  mp_str_t left = {mp_strbuf_text(&bytes), bytes.size};
  assert_true(mp_partition_answers_know(left, MP_STR("first")));
  assert_true(mp_partition_answers_know(left, MP_STR("second")));
  assert_false(mp_partition_answers_know(left, MP_STR("third")));
  mp_foreign_answer_t got;
  assert_ok(take(arena, &left, "first", 2, &got));
  assert_true(mp_str_is(got.module, "module {}") && mp_str_is(got.result_sharding, "y"));
  assert_true(mp_str_is(got.operand_shardings[0], "x") && got.operand_shardings[1].size == 0);
  assert_null(got.cleanup);
  assert_ok(take(arena, &left, "second", 0, &got));
  assert_int_equal(left.size, 0);
  assert_status(take(arena, &left, "second", 0, &got), MP_INVALID_ARGUMENT, "stored answers");
  mp_strbuf_deinit(&bytes);
  mp_arena_release(arena);
}

static void other_questions_are_not_answered(void **state) {
  (void)state;
  mp_arena_t *arena = NULL;
  assert_ok(mp_arena_create(&arena));
  mp_strbuf_t bytes;
  record(&bytes);
  const mp_str_t all = {mp_strbuf_text(&bytes), bytes.size};
  mp_str_t left = all;
  mp_foreign_answer_t got;
  assert_status(take(arena, &left, "second", 2, &got), MP_INVALID_ARGUMENT, "other options");
  assert_status(take(arena, &left, "first", 1, &got), MP_INVALID_ARGUMENT, "other options");
  // However it is damaged, it is refused or read, and nothing else.
  for (size_t size = 0; size < all.size; ++size) {
    left = (mp_str_t){all.data, size};
    (void)mp_partition_answers_know(left, MP_STR("second"));
    mp_status_t status = take(arena, &left, "first", 2, &got);
    if (status == NULL) assert_true(mp_str_is(got.result_sharding, "y"));
    mp_status_release(status);
  }
  mp_strbuf_deinit(&bytes);
  mp_arena_release(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(answers_come_back_in_order),
      cmocka_unit_test(other_questions_are_not_answered),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
