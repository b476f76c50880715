// OpSharding messages: what placements become, and what is made of clients' messages.
#include "sim/base/proto.h"
#include "sim/spmd/gspmd/gspmd.h"
#include "sim/spmd/sharding/op_sharding.h"
#include "tests/unit/support/ir_test.h"
#include "tests/unit/support/sdy_test.h"

static void placements_come_back_as_they_were(void **state) {
  (void)state;
  static const struct {
    const char *given, *printed;
  } cases[] = {
      {"{replicated}", "{replicated}"},
      {"{devices=[2,2]<=[4]}", "{devices=[2,2]<=[4]}"},
      {"{devices=[4,1]<=[4]}", "{devices=[4,1]<=[4]}"},
      {"{devices=[2,1,2]<=[4] last_tile_dim_replicate}",
       "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"},
      {"{devices=[2,2]0,2,1,3}", "{devices=[2,2]0,2,1,3}"},
      {"{devices=[2,2]<=[2,2]T(1,0)}", "{devices=[2,2]0,2,1,3}"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    ir_t ir = ir_start("", "");
    mp_arena_t *arena = ir.module->arena;
    const mp_spmd_scope_t *top = NULL;
    const char *text = "8x8xf32";
    const mp_type_t *type = ir_parse_type(&ir, &text);
    const mp_boxes_t *boxes = NULL, *again = NULL;
    bool is_grid = false;
    mp_strbuf_t message, printed;
    mp_strbuf_init(&message);
    mp_strbuf_init(&printed);
    assert_ok(mp_spmd_scope_top(arena, 4, &top));
    assert_ok(mp_placement_from_gspmd(top, type, mp_str(cases[i].given), &boxes));
    assert_ok(mp_op_sharding_write(arena, boxes, false, &message, &is_grid));
    assert_true(is_grid);
    assert_ok(mp_op_sharding_print((mp_str_t){mp_strbuf_text(&message), message.size}, &printed));
    assert_string_equal(mp_strbuf_text(&printed), cases[i].printed);
    assert_ok(mp_placement_from_gspmd(top, type, mp_str(mp_strbuf_text(&printed)), &again));
    assert_ptr_equal(boxes, again);
    mp_strbuf_deinit(&message);
    mp_strbuf_deinit(&printed);
    ir_end(&ir);
  }
}

// Terms of a maximum say so in the metadata, as in XLA; terms of a sum say nothing.
static void terms_say_how_they_are_combined(void **state) {
  (void)state;
  static const char *const wanted[] = {NULL, "MAX", "MIN"};
  for (uint32_t kind = MP_UNREDUCED_SUM; kind <= MP_UNREDUCED_MIN; ++kind) {
    ir_t ir = ir_start("", "");
    mp_arena_t *arena = ir.module->arena;
    const mp_spmd_scope_t *top = NULL;
    const mp_boxes_t *boxes = NULL;
    const char *text = "8xf32";
    const mp_type_t *type = ir_parse_type(&ir, &text);
    const mp_mesh_t *mesh = sdy_mesh(arena, "x=2 y=2", NULL, 0);
    mp_sdy_sharding_t sharding = sdy_sharding(arena, mesh, 1, "x");
    sharding.unreduced = sdy_axis_list(arena, "y");
    sharding.unreduced_kind = kind;
    assert_ok(mp_spmd_scope_top(arena, 4, &top));
    assert_ok(mp_placement_from_sdy(top, type, &sharding, NULL, &boxes));
    bool is_grid = false;
    mp_strbuf_t message;
    mp_strbuf_init(&message);
    assert_ok(mp_op_sharding_write(arena, boxes, false, &message, &is_grid));
    mp_proto_reader_t reader =
        mp_proto_reader((mp_str_t){mp_strbuf_text(&message), message.size}, "OpSharding");
    mp_proto_field_t field;
    bool is_found = false;
    while (mp_proto_next(&reader, &field)) {
      if (field.number != 7) continue;
      is_found = true;
      mp_proto_reader_t metadata = mp_proto_message(&reader, &field, "OpMetadata");
      while (mp_proto_next(&metadata, &field)) {
        const char *value = field.number == 1 ? "sdy::reduction_op" : wanted[kind];
        assert_true(mp_str_is(mp_proto_bytes(&metadata, &field), value));
      }
    }
    assert_int_equal(is_found, wanted[kind] != NULL);
    mp_strbuf_deinit(&message);
    ir_end(&ir);
  }
}

// A message of these fields, printed.
static void check_message(uint64_t type, const int64_t *devices, size_t num_devices,
                          const int64_t *kinds, size_t num_kinds, mp_status_code_t code,
                          const char *wanted) {
  static const int64_t dims[] = {2, 2}, reshape[] = {2, 2}, order[] = {1, 0};
  mp_strbuf_t message, printed;
  mp_strbuf_init(&message);
  mp_strbuf_init(&printed);
  mp_proto_put_varint(&message, 1, type);
  if (type == 3) mp_proto_put_packed(&message, 3, dims, 2);
  mp_proto_put_packed(&message, 4, devices, num_devices);
  mp_proto_put_packed(&message, 8, kinds, num_kinds);
  if (type == 3 && num_devices == 0) {
    mp_proto_put_packed(&message, 9, reshape, 2);
    mp_proto_put_packed(&message, 10, order, 2);
  }
  mp_status_t status =
      mp_op_sharding_print((mp_str_t){mp_strbuf_text(&message), message.size}, &printed);
  if (code == MP_OK) {
    assert_ok(status);
    assert_string_equal(mp_strbuf_text(&printed), wanted);
  } else {
    assert_status(status, code, wanted);
  }
  mp_strbuf_deinit(&message);
  mp_strbuf_deinit(&printed);
}

static void clients_messages_are_read(void **state) {
  (void)state;
  const int64_t three[] = {3}, manual[] = {4}, tuple[] = {2}, none[] = {99};
  check_message(0, NULL, 0, NULL, 0, MP_OK, "{replicated}");
  check_message(1, three, 1, NULL, 0, MP_OK, "{maximal device=3}");
  check_message(4, NULL, 0, NULL, 0, MP_OK, "{manual}");
  check_message(5, NULL, 0, NULL, 0, MP_OK, "{unknown}");
  check_message(3, NULL, 0, NULL, 0, MP_OK, "{devices=[2,2]<=[2,2]T(1,0)}");
  check_message(3, NULL, 0, manual, 1, MP_OK,
                "{devices=[2,2]<=[2,2]T(1,0) last_tile_dims={manual}}");
  check_message(2, NULL, 0, NULL, 0, MP_INVALID_ARGUMENT, "one sharding is expected");
  check_message(77, NULL, 0, NULL, 0, MP_INVALID_ARGUMENT, "type 77");
  check_message(3, NULL, 0, tuple, 1, MP_INVALID_ARGUMENT, "subgroup");
  check_message(3, NULL, 0, none, 1, MP_INVALID_ARGUMENT, "subgroup");
}

static void tuples_are_taken_apart(void **state) {
  (void)state;
  mp_strbuf_t a, tuple;
  mp_str_t found[3];
  mp_strbuf_init(&a);
  mp_strbuf_init(&tuple);
  mp_op_sharding_write_manual(&a);
  const mp_str_t elements[] = {{mp_strbuf_text(&a), a.size}, MP_STR("")};
  mp_op_sharding_write_tuple(elements, 2, &tuple);
  const mp_str_t message = {mp_strbuf_text(&tuple), tuple.size};
  assert_ok(mp_op_sharding_elements(message, 2, found));
  assert_true(mp_str_equal(found[0], elements[0]) && found[1].size == 0);
  assert_status(mp_op_sharding_elements(message, 3, found), MP_INVALID_ARGUMENT,
                "2 shardings for 3 values");
  assert_status(mp_op_sharding_elements(message, 1, found), MP_INVALID_ARGUMENT, "for 1 values");
  assert_ok(mp_op_sharding_elements(elements[0], 1, found));
  assert_true(mp_str_equal(found[0], elements[0]));
  assert_status(mp_op_sharding_elements(elements[0], 2, found), MP_INVALID_ARGUMENT, "");
  mp_strbuf_deinit(&a);
  mp_strbuf_deinit(&tuple);
}

static void broken_messages_are_refused(void **state) {
  (void)state;
  mp_strbuf_t out;
  mp_str_t found[1];
  mp_strbuf_init(&out);
  const mp_str_t broken[] = {MP_STR("\x08"), MP_STR("\x1a\x7f"), MP_STR("\xff\xff\xff\xff\xff")};
  for (size_t i = 0; i < 3; ++i) {
    assert_status(mp_op_sharding_print(broken[i], &out), MP_INVALID_ARGUMENT, "OpSharding");
    assert_status(mp_op_sharding_elements(broken[i], 1, found), MP_INVALID_ARGUMENT, "OpSharding");
  }
  mp_strbuf_deinit(&out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(placements_come_back_as_they_were),
      cmocka_unit_test(terms_say_how_they_are_combined),
      cmocka_unit_test(clients_messages_are_read),
      cmocka_unit_test(tuples_are_taken_apart),
      cmocka_unit_test(broken_messages_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
