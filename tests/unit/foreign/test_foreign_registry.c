// What is registered, for whom, and what is refused.
#include "sim/foreign/foreign_context.h"
#include "sim/foreign/foreign_partitioner.h"
#include "tests/unit/support/foreign_test.h"

static int g_minor = 3;  // the version that the handlers below say they are of

static XLA_FFI_Error *any(XLA_FFI_CallFrame *frame) {
  (void)foreign_is_metadata(frame, g_minor);
  return NULL;
}
static XLA_FFI_Error *other(XLA_FFI_CallFrame *frame) {
  (void)foreign_is_metadata(frame, g_minor);
  return NULL;
}
static XLA_FFI_Error *refuses(XLA_FFI_CallFrame *frame) {
  return foreign_fail(frame, MP_FAILED_PRECONDITION, "not today");
}

static void a_handler_for_minipod_is_preferred(void **state) {
  (void)state;
  assert_null(mp_foreign_find(MP_STR("both"), true));
  assert_ok(foreign_register("both", "cpu", (XLA_FFI_Handler_Bundle){.execute = any}));
  assert_ptr_equal(mp_foreign_find(MP_STR("both"), true)->bundle.execute, any);
  assert_ok(foreign_register("both", "minipod", (XLA_FFI_Handler_Bundle){.execute = other}));
  assert_ptr_equal(mp_foreign_find(MP_STR("both"), true)->bundle.execute, other);
  assert_ok(foreign_register("gpu", "CUDA", (XLA_FFI_Handler_Bundle){.execute = any}));
  assert_null(mp_foreign_find(MP_STR("gpu"), true));
  assert_null(mp_foreign_find(MP_STR("both"), false));
}

static void the_same_again_is_nothing_and_another_is_refused(void **state) {
  (void)state;
  const XLA_FFI_Handler_Bundle bundle = {.instantiate = any, .execute = other};
  assert_ok(foreign_register("again", "Host", bundle));
  assert_ok(foreign_register("again", "cpu", bundle));
  assert_status(foreign_register("again", "cpu", (XLA_FFI_Handler_Bundle){.execute = any}),
                MP_ALREADY_EXISTS, "'again'");
  assert_ok(mp_foreign_register_untyped(MP_STR("again"), MP_STR("cpu"), (void *)1));
  assert_status(mp_foreign_register_untyped(MP_STR("again"), MP_STR("cpu"), (void *)2),
                MP_ALREADY_EXISTS, "'again'");
}

static void what_cannot_be_called_is_refused(void **state) {
  (void)state;
  assert_status(foreign_register("x", "cpu", (XLA_FFI_Handler_Bundle){.instantiate = any}),
                MP_INVALID_ARGUMENT, "no 'execute'");
  assert_status(foreign_register("", "cpu", (XLA_FFI_Handler_Bundle){.execute = any}),
                MP_INVALID_ARGUMENT, "a name");
  assert_status(foreign_register("x", "cpu", (XLA_FFI_Handler_Bundle){.execute = refuses}),
                MP_FAILED_PRECONDITION, "not today");
  const int minors[] = {0, XLA_FFI_API_MINOR + 1};
  for (int i = 0; i < 2; ++i) {
    g_minor = minors[i];
    assert_status(foreign_register("x", "cpu", (XLA_FFI_Handler_Bundle){.execute = any}),
                  MP_INVALID_ARGUMENT, "compiled for version 0.");
  }
  for (g_minor = 1; g_minor <= XLA_FFI_API_MINOR; ++g_minor) {
    char name[24];
    snprintf(name, sizeof(name), "version%d", g_minor);
    assert_ok(foreign_register(name, "cpu", (XLA_FFI_Handler_Bundle){.execute = any}));
  }
  g_minor = 3;
  assert_null(mp_foreign_find(MP_STR("x"), true));
}

static void lists_begin_with_what_is_like_the_name(void **state) {
  (void)state;
  const char *names[] = {"list_b", "list_a", "zebra", "list_bc"};
  for (size_t i = 0; i < 4; ++i) {
    assert_ok(foreign_register(names[i], "cpu", (XLA_FFI_Handler_Bundle){.execute = any}));
  }
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_foreign_list(MP_STR("list_bx"), 3, &text);
  assert_string_equal(mp_strbuf_text(&text), "list_b, list_bc, list_a, ...");
  mp_strbuf_deinit(&text);
}

static void delete_nothing(void *object) {
  (void)object;
}

static void types_have_one_id_and_one_name(void **state) {
  (void)state;
  XLA_FFI_TypeId a = {0}, same = {0}, b = {0}, fixed = {77};
  void (*deleter)(void *) = NULL;
  assert_ok(mp_foreign_register_type(MP_STR("a"), NULL, &a));
  assert_ok(mp_foreign_register_type(MP_STR("a"), delete_nothing, &same));
  assert_ok(mp_foreign_register_type(MP_STR("b"), NULL, &b));
  assert_ok(mp_foreign_register_type(MP_STR("fixed"), NULL, &fixed));
  assert_true(a.type_id != 0 && a.type_id == same.type_id && b.type_id != a.type_id);
  assert_int_equal(fixed.type_id, 77);
  assert_true(mp_foreign_type_deleter(a, &deleter));
  assert_ptr_equal(deleter, delete_nothing);
  XLA_FFI_TypeId taken = {77};
  assert_status(mp_foreign_register_type(MP_STR("c"), NULL, &taken), MP_INVALID_ARGUMENT, "'c'");
  taken = (XLA_FFI_TypeId){78};
  assert_status(mp_foreign_register_type(MP_STR("a"), NULL, &taken), MP_INVALID_ARGUMENT, "'a'");
  assert_false(mp_foreign_type_deleter(taken, &deleter));
}

static int g_deleted;
static void count_deletion(void *object) {
  g_deleted += *(int *)object;
}

static void states_belong_to_a_type(void **state) {
  (void)state;
  XLA_FFI_TypeId id = {0}, unknown = {-5}, without = {0};
  int object = 3;
  void *found = NULL;
  mp_foreign_states_t states = {0};
  assert_ok(mp_foreign_register_type(MP_STR("state"), count_deletion, &id));
  assert_ok(mp_foreign_register_type(MP_STR("no deleter"), NULL, &without));
  assert_status(mp_foreign_state_get(&states.prepare, id, &found), MP_NOT_FOUND, "no state");
  assert_status(mp_foreign_state_set(&states.prepare, unknown, &object), MP_INVALID_ARGUMENT, "");
  assert_status(mp_foreign_state_set(&states.prepare, without, &object), MP_INVALID_ARGUMENT, "");
  assert_status(mp_foreign_state_set(&states.prepare, id, NULL), MP_INVALID_ARGUMENT, "NULL");
  assert_ok(mp_foreign_state_set(&states.prepare, id, &object));
  assert_status(mp_foreign_state_set(&states.prepare, id, &object), MP_ALREADY_EXISTS, "");
  assert_ok(mp_foreign_state_get(&states.prepare, id, &found));
  assert_ptr_equal(found, &object);
  assert_status(mp_foreign_state_get(&states.prepare, without, &found), MP_INVALID_ARGUMENT, "");
  assert_ok(mp_foreign_state_set(&states.initialize, id, &object));
  mp_foreign_states_clear(&states);
  assert_int_equal(g_deleted, 6);
  mp_foreign_states_clear(&states);
  assert_int_equal(g_deleted, 6);
}

static void contexts_have_one_datum_of_each_type(void **state) {
  (void)state;
  mp_foreign_context_t *context = NULL;
  int one = 1, two = 2;
  assert_ok(mp_foreign_context_create(&context));
  assert_null(mp_foreign_context_data(context));
  assert_ok(mp_foreign_context_add(context, 5, &one));
  assert_ok(mp_foreign_context_add(context, 6, &two));
  assert_status(mp_foreign_context_add(context, 5, &two), MP_ALREADY_EXISTS, "5");
  assert_status(mp_foreign_context_add(context, 0, &two), MP_INVALID_ARGUMENT, "");
  const mp_foreign_user_data_t *item = mp_foreign_context_data(context);
  assert_true(item->type_id == 6 && item->next->type_id == 5 && item->next->data == &one);
  mp_foreign_context_release(mp_foreign_context_retain(context));
  mp_foreign_context_release(context);
  assert_null(mp_foreign_context_data(NULL));
}

static void the_newest_partitioner_counts(void **state) {
  (void)state;
  int one = 1, two = 2;
  assert_null(mp_foreign_find_partitioner(MP_STR("p")));
  assert_ok(mp_foreign_register_partitioner(MP_STR("p"), NULL, &one));
  assert_ok(mp_foreign_register_partitioner(MP_STR("q"), NULL, &one));
  assert_ok(mp_foreign_register_partitioner(MP_STR("p"), NULL, &two));
  assert_ptr_equal(mp_foreign_find_partitioner(MP_STR("p"))->partitioner, &two);
  assert_status(mp_foreign_register_partitioner(MP_STR(""), NULL, &one), MP_INVALID_ARGUMENT, "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_handler_for_minipod_is_preferred),
      cmocka_unit_test(the_same_again_is_nothing_and_another_is_refused),
      cmocka_unit_test(what_cannot_be_called_is_refused),
      cmocka_unit_test(lists_begin_with_what_is_like_the_name),
      cmocka_unit_test(types_have_one_id_and_one_name),
      cmocka_unit_test(states_belong_to_a_type),
      cmocka_unit_test(contexts_have_one_datum_of_each_type),
      cmocka_unit_test(the_newest_partitioner_counts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
