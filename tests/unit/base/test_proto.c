// Units of sim/base/proto: round trips, mistakes with their offsets, every truncation.

#include <string.h>

#include "sim/base/alloc.h"
#include "sim/base/proto.h"
#include "tests/unit/support/unit.h"

static mp_str_t text_of(const mp_strbuf_t *buffer) {
  return (mp_str_t){mp_strbuf_text(buffer), buffer->size};
}

static void what_is_written_is_read_back(void **state) {
  (void)state;
  mp_strbuf_t inner, outer;
  mp_strbuf_init(&inner);
  mp_strbuf_init(&outer);
  static const int64_t ids[] = {0, 1, 300, -1};
  mp_proto_put_packed(&inner, 1, ids, 4);
  mp_proto_put_varint(&outer, 1, UINT64_MAX);
  mp_proto_put_float(&outer, 2, 1.5f);
  mp_proto_put_double(&outer, 3, -2.25);
  mp_proto_put_bytes(&outer, 4, MP_STR("pod"));
  mp_proto_put_message(&outer, 5, &inner);
  assert_ok(mp_strbuf_status(&outer));

  mp_proto_reader_t reader = mp_proto_reader(text_of(&outer), "Outer");
  mp_proto_field_t field;
  assert_true(mp_proto_next(&reader, &field));
  assert_int_equal(mp_proto_varint(&reader, &field), UINT64_MAX);
  assert_true(mp_proto_bool(&reader, &field));
  assert_true(mp_proto_next(&reader, &field));
  assert_true(mp_proto_float(&reader, &field) == 1.5f);
  assert_true(mp_proto_next(&reader, &field));
  assert_true(mp_proto_double(&reader, &field) == -2.25);
  assert_true(mp_proto_next(&reader, &field));
  assert_true(mp_str_is(mp_proto_bytes(&reader, &field), "pod"));
  assert_true(mp_proto_next(&reader, &field));
  assert_int_equal(field.number, 5);
  mp_proto_reader_t nested = mp_proto_message(&reader, &field, "Inner");
  assert_true(mp_proto_next(&nested, &field));
  mp_proto_values_t values = mp_proto_values(&nested, &field, MP_PROTO_VARINT);
  assert_int_equal(mp_proto_values_count(&values), 4);
  uint64_t bits = 0;
  for (int i = 0; i < 4; ++i) {
    assert_true(mp_proto_values_next(&values, &bits));
    assert_int_equal((int64_t)bits, ids[i]);
  }
  assert_false(mp_proto_values_next(&values, &bits));
  assert_ok(mp_proto_reader_status(&nested));
  assert_false(mp_proto_next(&reader, &field));
  assert_ok(mp_proto_reader_status(&reader));
  mp_strbuf_deinit(&inner);
  mp_strbuf_deinit(&outer);
}

static void an_unpacked_repeated_field_gives_its_one_value(void **state) {
  (void)state;
  mp_proto_reader_t reader = mp_proto_reader(MP_STR("\x08\x07\x08\x09"), "M");
  mp_proto_field_t field;
  uint64_t bits = 0, sum = 0;
  while (mp_proto_next(&reader, &field)) {
    mp_proto_values_t values = mp_proto_values(&reader, &field, MP_PROTO_VARINT);
    assert_int_equal(mp_proto_values_count(&values), 1);
    while (mp_proto_values_next(&values, &bits)) sum += bits;
  }
  assert_ok(mp_proto_reader_status(&reader));
  assert_int_equal(sum, 16);
}

static mp_status_t walk(mp_str_t bytes) {
  mp_proto_reader_t reader = mp_proto_reader(bytes, "M");
  mp_proto_field_t field;
  while (mp_proto_next(&reader, &field)) {
    if (field.number == 1) mp_proto_varint(&reader, &field);
    if (field.number == 2) {
      mp_proto_values_t values = mp_proto_values(&reader, &field, MP_PROTO_VARINT);
      uint64_t bits = 0;
      while (mp_proto_values_next(&values, &bits)) continue;
    }
  }
  return mp_proto_reader_status(&reader);
}

static void mistakes_are_reported_with_field_and_offset(void **state) {
  (void)state;
  static const struct {
    mp_str_t bytes;
    const char *text;
  } cases[] = {
      {{"\x08", 1}, "M: field 1 at byte 0: a number is cut off"},
      {{"\x08\x01\x0a\x01\x00", 5}, "M: field 1 at byte 2: its wire type"},
      {{"\x00\x01", 2}, "M: at byte 0: not a field number"},
      {{"\x12\x05\x01", 3}, "M: field 2 at byte 0: its length passes the end"},
      {{"\x12\x01\x80", 3}, "M: field 2 at byte 0: a number is cut off"},
      {{"\x1b", 1}, "M: field 3 at byte 0: it has a wire type"},
      {{"\x1f", 1}, "M: field 3 at byte 0: it has a wire type"},
      {{"\x1d\x01\x02", 3}, "M: field 3 at byte 0: a fixed-size number is cut off"},
      {{"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11}, "more than 64 bits"},
      {{"\xff\xff\xff\xff\xff\xff\x7f", 7}, "M: at byte 0: not a field number"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    assert_status(walk(cases[i].bytes), MP_INVALID_ARGUMENT, cases[i].text);
  }
  assert_ok(walk(MP_STR("")));
  assert_ok(walk((mp_str_t){NULL, 0}));
}

static void offsets_of_inner_messages_count_from_the_outermost(void **state) {
  (void)state;
  mp_proto_reader_t reader = mp_proto_reader(MP_STR("\x08\x01\x12\x01\x08"), "Outer");
  mp_proto_field_t field;
  assert_true(mp_proto_next(&reader, &field));
  assert_true(mp_proto_next(&reader, &field));
  mp_proto_reader_t inner = mp_proto_message(&reader, &field, "Inner");
  assert_false(mp_proto_next(&inner, &field));
  assert_status(mp_proto_reader_status(&inner), MP_INVALID_ARGUMENT, "Inner: field 1 at byte 4");
}

static void a_failed_allocation_is_carried_out_of_an_inner_buffer(void **state) {
  (void)state;
  static const int64_t ids[] = {1};
  mp_strbuf_t buffer;
  mp_strbuf_init(&buffer);
  mp_alloc_fail_at(1, 0);
  mp_proto_put_packed(&buffer, 1, ids, 1);
  mp_alloc_fail_at(0, 0);
  assert_status(mp_strbuf_status(&buffer), MP_RESOURCE_EXHAUSTED, "");
  mp_strbuf_deinit(&buffer);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_written_is_read_back),
      cmocka_unit_test(an_unpacked_repeated_field_gives_its_one_value),
      cmocka_unit_test(mistakes_are_reported_with_field_and_offset),
      cmocka_unit_test(offsets_of_inner_messages_count_from_the_outermost),
      cmocka_unit_test(a_failed_allocation_is_carried_out_of_an_inner_buffer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
