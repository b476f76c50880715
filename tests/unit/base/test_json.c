// The reader of JSON: what it accepts and makes of it, and what it refuses.
#include "tests/unit/support/unit.h"

#include <string.h>

#include "sim/base/json.h"

static void test_reads_values(void **state) {
  (void)state;
  mp_arena_t *arena = NULL;
  const mp_json_t *v = NULL;
  assert_ok(mp_arena_create(&arena));
  assert_ok(mp_json_read(
      arena,
      MP_STR(
          " {\"a\": [1, -2.5e1, true, null,\n ], \"b\":{}, \"c\" : \"x\\n\\u00e9\\ud83d\\ude00\", "
          "\"d\": 9223372036854775808,}"),
      &v));
  const mp_json_t *a = mp_json_item(v, "a");
  assert_int_equal(a->kind, MP_JSON_LIST);
  assert_int_equal(a->first->i64, 1);
  assert_true(a->first->next->kind == MP_JSON_DOUBLE && a->first->next->f64 == -25);
  assert_int_equal(a->first->next->next->i64, 1);
  assert_int_equal(a->first->next->next->next->kind, MP_JSON_NULL);
  assert_null(a->first->next->next->next->next);
  assert_null(mp_json_item(v, "b")->first);
  assert_true(mp_str_is(mp_json_item(v, "c")->str, "x\n\xC3\xA9\xF0\x9F\x98\x80"));
  assert_int_equal(mp_json_item(v, "d")->kind, MP_JSON_DOUBLE);
  assert_null(mp_json_item(v, "e"));
  assert_null(mp_json_item(a, "a"));
  mp_arena_release(arena);
}

static void test_refuses_what_is_malformed(void **state) {
  (void)state;
  static const char *const texts[] = {"",
                                      "{",
                                      "[1,",
                                      "[1 2]",
                                      "[,]",
                                      "{\"a\" 1}",
                                      "{a: 1}",
                                      "01",
                                      "1.",
                                      "-",
                                      "1e",
                                      "+1",
                                      "nul",
                                      "\"a",
                                      "\"\\x\"",
                                      "\"\\u12\"",
                                      "\"\\ud800\"",
                                      "\"\\ud800\\u0041\"",
                                      "\"a\nb\"",
                                      "{} {}",
                                      "\"\\",
                                      "{\"a\":1,\"a\":2}",
                                      "'a'",
                                      "NaN"};
  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i) {
    mp_arena_t *arena = NULL;
    const mp_json_t *v = NULL;
    assert_ok(mp_arena_create(&arena));
    assert_status(mp_json_read(arena, mp_str(texts[i]), &v), MP_INVALID_ARGUMENT, "JSON: ");
    mp_arena_release(arena);
  }
  char deep[1000];
  memset(deep, '[', sizeof(deep));
  mp_arena_t *arena = NULL;
  const mp_json_t *v = NULL;
  assert_ok(mp_arena_create(&arena));
  assert_status(mp_json_read(arena, (mp_str_t){deep, sizeof(deep)}, &v), MP_INVALID_ARGUMENT,
                "nested at most 64 deep");
  mp_arena_release(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_reads_values),
      cmocka_unit_test(test_refuses_what_is_malformed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
