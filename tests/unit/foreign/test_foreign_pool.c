// Thread pools of libraries: how many threads a call finds, and which calls run at once.
#include <pthread.h>
#include <stdatomic.h>

#include "tests/unit/support/foreign_test.h"

enum { USUAL = 4 };

static atomic_int g_threads = USUAL;

static int get(void) {
  return atomic_load(&g_threads);
}
static void set(int threads) {
  atomic_store(&g_threads, threads);
}

static mp_foreign_pool_t *pool(const char *prefix) {
  assert_ok(mp_foreign_register_pool(mp_str(prefix), (mp_foreign_pool_calls_t){get, set, USUAL}));
  set(USUAL);
  return mp_foreign_find_pool(mp_str(prefix));
}

static void functions_find_the_pool_of_their_prefix(void **state) {
  (void)state;
  mp_foreign_pool_t *blas = pool("blas_");
  assert_non_null(blas);
  assert_ptr_equal(pool("blas_"), blas);
  assert_ptr_equal(mp_foreign_find_pool(MP_STR("blas_gemm")), blas);
  assert_null(mp_foreign_find_pool(MP_STR("blas")));
  assert_null(mp_foreign_find_pool(MP_STR("other")));
  assert_status(mp_foreign_register_pool(MP_STR(""), (mp_foreign_pool_calls_t){get, set, 1}),
                MP_INVALID_ARGUMENT, "prefix");
  assert_status(mp_foreign_register_pool(MP_STR("x"), (mp_foreign_pool_calls_t){get, NULL, 1}),
                MP_INVALID_ARGUMENT, "functions");
}

static void small_calls_have_one_thread(void **state) {
  (void)state;
  mp_foreign_pool_t *blas = pool("small_");
  mp_foreign_pool_enter(blas, true);
  mp_foreign_pool_enter(blas, true);
  assert_int_equal(get(), 1);
  mp_foreign_pool_leave(blas, true);
  assert_int_equal(get(), 1);
  mp_foreign_pool_leave(blas, true);
  assert_int_equal(get(), USUAL);
  mp_foreign_pool_enter(blas, false);
  assert_int_equal(get(), USUAL);
  mp_foreign_pool_leave(blas, false);
  mp_foreign_pool_enter(NULL, true);
  mp_foreign_pool_leave(NULL, true);
}

static void a_chosen_number_stays(void **state) {
  (void)state;
  mp_foreign_pool_t *blas = pool("chosen_");
  set(3);
  mp_foreign_pool_enter(blas, true);
  assert_int_equal(get(), 3);
  mp_foreign_pool_leave(blas, true);
  assert_int_equal(get(), 3);
  set(USUAL);
  mp_foreign_pool_enter(blas, true);
  set(2);  // the user chooses a number while a call runs
  mp_foreign_pool_leave(blas, true);
  assert_int_equal(get(), 2);
}

// ---- Many threads ----

static atomic_int g_small, g_large, g_wrong;

static void *calls_of_both_kinds(void *context) {
  for (int i = 0; i < 2000; ++i) {
    const bool is_small = (i + (int)(intptr_t)context) % 3 != 0;
    mp_foreign_pool_t *blas = mp_foreign_find_pool(MP_STR("both_"));
    mp_foreign_pool_enter(blas, is_small);
    atomic_fetch_add(is_small ? &g_small : &g_large, 1);
    if (atomic_load(is_small ? &g_large : &g_small) != 0) atomic_fetch_add(&g_wrong, 1);
    if (get() != (is_small ? 1 : USUAL)) atomic_fetch_add(&g_wrong, 1);
    atomic_fetch_sub(is_small ? &g_small : &g_large, 1);
    mp_foreign_pool_leave(blas, is_small);
  }
  return NULL;
}

static void calls_of_two_kinds_never_overlap(void **state) {
  (void)state;
  (void)pool("both_");
  pthread_t threads[6];
  for (int i = 0; i < 6; ++i) {
    assert_int_equal(pthread_create(&threads[i], NULL, calls_of_both_kinds, (void *)(intptr_t)i),
                     0);
  }
  for (int i = 0; i < 6; ++i) pthread_join(threads[i], NULL);
  assert_int_equal(atomic_load(&g_wrong), 0);
  assert_int_equal(get(), USUAL);
}

// ---- Calls ----

static int g_found;

static XLA_FFI_Error *finds(XLA_FFI_CallFrame *frame) {
  if (!foreign_is_metadata(frame, 3)) g_found = get();
  return NULL;
}

static int found_by_call(const char *function, const char *type) {
  char arguments[64], call[256];
  snprintf(arguments, sizeof(arguments), "%%x: %s", type);
  snprintf(call, sizeof(call),
           "%%r = \"stablehlo.custom_call\"(%%x) {call_target_name = \"lapack_s%s_ffi\", "
           "api_version = 4 : i32} : (%s) -> tensor<f32>",
           function, type);
  mp_module_t *module = NULL;
  mp_foreign_call_t *made = NULL;
  const mp_op_t *op = foreign_read_call(arguments, call, &module);
  assert_ok(mp_foreign_call_create(op, &made));
  float in = 0, out = 0;
  const void *inputs[] = {&in};
  void *outputs[] = {&out};
  bool is_pending = true;
  assert_ok(mp_foreign_call_start(
      made, &(mp_foreign_invocation_t){.inputs = inputs, .outputs = outputs}, &is_pending));
  assert_false(is_pending);
  mp_foreign_call_release(made);
  mp_module_release(module);
  return g_found;
}

static void the_work_on_one_matrix_counts(void **state) {
  (void)state;
  (void)pool("lapack_");
  const XLA_FFI_Handler_Bundle bundle = {.execute = finds};
  assert_ok(foreign_register("lapack_sgetrf_ffi", "cpu", bundle));
  assert_ok(foreign_register("lapack_ssyevd_ffi", "cpu", bundle));
  assert_int_equal(found_by_call("syevd", "tensor<256x256xf32>"), 1);
  assert_int_equal(found_by_call("syevd", "tensor<4000x64x64xf32>"), 1);
  assert_int_equal(found_by_call("syevd", "tensor<0x1000x1000xf32>"), 1);
  assert_int_equal(found_by_call("syevd", "tensor<2x1000x1000xf32>"), USUAL);
  assert_int_equal(found_by_call("getrf", "tensor<1000x1000xf32>"), 1);
  assert_int_equal(found_by_call("getrf", "tensor<2500x2500xf32>"), USUAL);
  assert_int_equal(get(), USUAL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(functions_find_the_pool_of_their_prefix),
      cmocka_unit_test(small_calls_have_one_thread),
      cmocka_unit_test(a_chosen_number_stays),
      cmocka_unit_test(calls_of_two_kinds_never_overlap),
      cmocka_unit_test(the_work_on_one_matrix_counts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
