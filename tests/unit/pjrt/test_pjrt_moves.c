// Buffers that become other buffers: bitcasts, donations with a condition, aliases.

#include "tests/unit/support/pjrt_test.h"

static PJRT_Client *client;
static const float counting[4] = {1, 2, 3, 4};

static int setup(void **state) {
  (void)state;
  client = make_client(2);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  destroy_client(client);
  return 0;
}

static PJRT_Memory *memory(int device) {
  return memory_of(device_of(client, device), 0);
}

static PJRT_Buffer *make_counting(void) {
  return put_f32(client, device_of(client, 0), counting, 4);
}

static uintptr_t address_of(PJRT_Buffer *buffer) {
  PJRT_Buffer_UnsafePointer_Args args = ARGS(PJRT_Buffer_UnsafePointer, buffer_pointer);
  args.buffer = buffer;
  expect_ok(api()->PJRT_Buffer_UnsafePointer(&args));
  return args.buffer_pointer;
}

static bool is_ready(PJRT_Buffer *buffer) {
  PJRT_Buffer_ReadyEvent_Args ready = ARGS(PJRT_Buffer_ReadyEvent, event);
  ready.buffer = buffer;
  expect_ok(api()->PJRT_Buffer_ReadyEvent(&ready));
  PJRT_Event_IsReady_Args args = ARGS(PJRT_Event_IsReady, is_ready);
  args.event = ready.event;
  expect_ok(api()->PJRT_Event_IsReady(&args));
  destroy_event(ready.event);
  return args.is_ready;
}

static PJRT_Buffer *make_error(void) {
  return put_error(client, device_of(client, 0), 4, PJRT_Error_Code_DATA_LOSS, "lost");
}

static void expect_counting(PJRT_Buffer *buffer) {
  float got[4] = {0};
  get(buffer, got, sizeof(got));
  assert_memory_equal(got, counting, sizeof(got));
}

static void expect_failed(PJRT_Buffer *buffer, PJRT_Error_Code code, const char *text) {
  float got[4] = {0};
  expect_error(try_get(buffer, got, sizeof(got)), code, text);
}

// ---- bitcasts ----

static PJRT_Error *try_bitcast(PJRT_Buffer *buffer, PJRT_Buffer_Type type, const int64_t *dims,
                               size_t rank, PJRT_Buffer **out_buffer) {
  PJRT_Buffer_Bitcast_Args args = ARGS(PJRT_Buffer_Bitcast, out_buffer);
  args.buffer = buffer;
  args.element_type = type;
  args.dims = dims;
  args.num_dims = rank;
  PJRT_Error *error = api()->PJRT_Buffer_Bitcast(&args);
  if (error == NULL) *out_buffer = args.out_buffer;
  return error;
}

static void a_bitcast_has_the_same_bytes(void **state) {
  (void)state;
  static const int64_t dims[] = {2, 4};
  PJRT_Buffer *buffer = make_counting(), *cast = NULL;
  const uintptr_t address = address_of(buffer);
  expect_ok(try_bitcast(buffer, PJRT_Buffer_Type_S16, dims, 2, &cast));
  assert_true(is_deleted(buffer));
  assert_int_equal(address_of(cast), address);
  PJRT_Buffer_Dimensions_Args shape = ARGS(PJRT_Buffer_Dimensions, num_dims);
  PJRT_Buffer_ElementType_Args type = ARGS(PJRT_Buffer_ElementType, type);
  shape.buffer = type.buffer = cast;
  expect_ok(api()->PJRT_Buffer_Dimensions(&shape));
  expect_ok(api()->PJRT_Buffer_ElementType(&type));
  assert_int_equal(shape.num_dims, 2);
  assert_memory_equal(shape.dims, dims, sizeof(dims));
  assert_int_equal(type.type, PJRT_Buffer_Type_S16);
  expect_counting(cast);
  // What was cast is gone, and cannot be cast again.
  PJRT_Buffer *again = NULL;
  expect_error(try_bitcast(buffer, PJRT_Buffer_Type_S16, dims, 2, &again),
               PJRT_Error_Code_INVALID_ARGUMENT, "deleted");
  destroy_buffer(buffer);
  expect_counting(cast);
  destroy_buffer(cast);
}

static void a_refused_bitcast_leaves_the_buffer(void **state) {
  (void)state;
  static const int64_t three[] = {3}, sixteen[] = {16};
  PJRT_Buffer *buffer = make_counting(), *cast = NULL;
  expect_error(try_bitcast(buffer, PJRT_Buffer_Type_S32, three, 1, &cast),
               PJRT_Error_Code_INVALID_ARGUMENT, "an array of 16 bytes cannot be one of 12 bytes");
  expect_error(try_bitcast(buffer, PJRT_Buffer_Type_PRED, sixteen, 1, &cast),
               PJRT_Error_Code_INVALID_ARGUMENT, "f32 elements may be no i1 elements");
  expect_error(try_bitcast(buffer, PJRT_Buffer_Type_S4, sixteen, 1, &cast),
               PJRT_Error_Code_INVALID_ARGUMENT, "f32 elements may be no i4 elements");
  expect_error(try_bitcast(buffer, PJRT_Buffer_Type_TOKEN, NULL, 0, &cast),
               PJRT_Error_Code_INVALID_ARGUMENT, "element type 23");
  assert_null(cast);
  assert_false(is_deleted(buffer));
  expect_counting(buffer);
  destroy_buffer(buffer);
}

static void a_view_survives_a_bitcast(void **state) {
  (void)state;
  static const int64_t dims[] = {4};
  PJRT_Buffer *buffer = make_counting(), *cast = NULL;
  PJRT_Buffer_IncreaseExternalReferenceCount_Args more =
      ARGS(PJRT_Buffer_IncreaseExternalReferenceCount, buffer);
  PJRT_Buffer_DecreaseExternalReferenceCount_Args less =
      ARGS(PJRT_Buffer_DecreaseExternalReferenceCount, buffer);
  more.buffer = less.buffer = buffer;
  expect_ok(api()->PJRT_Buffer_IncreaseExternalReferenceCount(&more));
  const void *data =
      (const void *)address_of(buffer);  // NOLINT: an address as the interface has it
  expect_ok(try_bitcast(buffer, PJRT_Buffer_Type_S32, dims, 1, &cast));
  destroy_buffer(cast);
  assert_memory_equal(data, counting, sizeof(counting));
  expect_ok(api()->PJRT_Buffer_DecreaseExternalReferenceCount(&less));
  destroy_buffer(buffer);
}

// ---- donations with a condition ----

typedef PJRT_Buffer_DonateWithControlDependency_Args donation_t;

static donation_t donate(PJRT_Buffer *buffer) {
  donation_t args = ARGS(PJRT_Buffer_DonateWithControlDependency, out_buffer);
  args.buffer = buffer;
  expect_ok(api()->PJRT_Buffer_DonateWithControlDependency(&args));
  return args;
}

static void meet(const donation_t *donation, PJRT_Error_Code code, const char *message) {
  PJRT_Buffer_DonateWithControlDependency_Callback_Args args = {
      .struct_size = sizeof(args),
      .callback_data = donation->callback_data,
      .error_code = code,
      .error_message = message,
      .error_message_size = message == NULL ? 0 : strlen(message)};
  donation->dependency_ready_callback(&args);
}

static void a_donation_waits_for_its_condition(void **state) {
  (void)state;
  PJRT_Buffer *buffer = make_counting();
  const uintptr_t address = address_of(buffer);
  donation_t donation = donate(buffer);
  assert_true(is_deleted(buffer));
  destroy_buffer(buffer);
  assert_false(is_ready(donation.out_buffer));
  assert_int_equal(address_of(donation.out_buffer), address);
  meet(&donation, PJRT_Error_Code_OK, NULL);
  assert_true(is_ready(donation.out_buffer));
  expect_counting(donation.out_buffer);
  // The buffer may be gone before the condition is met.
  donation_t second = donate(donation.out_buffer);
  destroy_buffer(donation.out_buffer);
  destroy_buffer(second.out_buffer);
  meet(&second, PJRT_Error_Code_OK, NULL);
}

static void a_condition_that_fails_is_the_error(void **state) {
  (void)state;
  PJRT_Buffer *buffer = make_counting();
  donation_t donation = donate(buffer);
  meet(&donation, PJRT_Error_Code_ABORTED, "not today");
  expect_failed(donation.out_buffer, PJRT_Error_Code_ABORTED, "not today");
  donation_t again = {.buffer = buffer, .struct_size = donation.struct_size};
  expect_error(api()->PJRT_Buffer_DonateWithControlDependency(&again),
               PJRT_Error_Code_INVALID_ARGUMENT, "deleted");
  destroy_buffer(buffer);
  destroy_buffer(donation.out_buffer);
  // The error of the contents comes first.
  buffer = make_error();
  donation = donate(buffer);
  meet(&donation, PJRT_Error_Code_ABORTED, "not today");
  expect_failed(donation.out_buffer, PJRT_Error_Code_DATA_LOSS, "lost");
  destroy_buffer(buffer);
  destroy_buffer(donation.out_buffer);
}

// ---- aliases ----

typedef struct {
  PJRT_Buffer *buffer;
  PJRT_FulfillAliasBufferCallback *callback;
} alias_t;

static alias_t make_alias(int64_t count) {
  PJRT_Client_CreateAliasBuffer_Args args =
      ARGS(PJRT_Client_CreateAliasBuffer, fulfill_alias_buffer_cb);
  args.client = client;
  args.memory = memory(0);
  args.shape_dims = &count;
  args.shape_num_dims = 1;
  args.shape_element_type = PJRT_Buffer_Type_F32;
  expect_ok(api()->PJRT_Client_CreateAliasBuffer(&args));
  return (alias_t){args.alias_buffer, args.fulfill_alias_buffer_cb};
}

static PJRT_Error *try_fulfill(alias_t alias, PJRT_Buffer *buffer, PJRT_Error_Code code,
                               const char *message) {
  PJRT_Client_FulfillAliasBuffer_Args args =
      ARGS(PJRT_Client_FulfillAliasBuffer, fulfill_alias_buffer_cb);
  args.client = client;
  args.buffer = buffer;
  args.status_code = code;
  args.error_message = message;
  args.error_message_size = message == NULL ? 0 : strlen(message);
  args.fulfill_alias_buffer_cb = alias.callback;
  return api()->PJRT_Client_FulfillAliasBuffer(&args);
}

static void an_alias_gets_its_contents_later(void **state) {
  (void)state;
  alias_t alias = make_alias(4);
  assert_false(is_ready(alias.buffer));
  // A read that begins before the contents are there.
  float got[4] = {0};
  PJRT_Buffer_ToHostBuffer_Args fetch = ARGS(PJRT_Buffer_ToHostBuffer, event);
  fetch.src = alias.buffer;
  fetch.dst = got;
  fetch.dst_size = sizeof(got);
  expect_ok(api()->PJRT_Buffer_ToHostBuffer(&fetch));
  // The contents may be pending, too, when they are named.
  PJRT_Buffer *source = make_counting();
  donation_t donation = donate(source);
  expect_ok(try_fulfill(alias, donation.out_buffer, PJRT_Error_Code_OK, NULL));
  assert_true(is_deleted(donation.out_buffer));
  assert_false(is_ready(alias.buffer));
  meet(&donation, PJRT_Error_Code_OK, NULL);
  expect_ok(await_event(fetch.event));
  assert_memory_equal(got, counting, sizeof(got));
  destroy_buffer(source);
  destroy_buffer(donation.out_buffer);
  expect_counting(alias.buffer);
  destroy_buffer(alias.buffer);
}

static void an_alias_may_be_moved_before_it_has_contents(void **state) {
  (void)state;
  static const int64_t dims[] = {16};
  alias_t alias = make_alias(4);
  PJRT_Buffer *cast = NULL, *source = make_counting();
  expect_ok(try_bitcast(alias.buffer, PJRT_Buffer_Type_U8, dims, 1, &cast));
  destroy_buffer(alias.buffer);
  expect_ok(try_fulfill(alias, source, PJRT_Error_Code_OK, NULL));
  expect_counting(cast);
  destroy_buffer(cast);
  destroy_buffer(source);
  // The buffer that should get the contents is already destroyed.
  alias = make_alias(4);
  destroy_buffer(alias.buffer);
  source = make_counting();
  expect_ok(try_fulfill(alias, source, PJRT_Error_Code_OK, NULL));
  destroy_buffer(source);
}

static void an_alias_may_fail(void **state) {
  (void)state;
  alias_t alias = make_alias(4);
  expect_ok(try_fulfill(alias, NULL, PJRT_Error_Code_ABORTED, "never"));
  expect_failed(alias.buffer, PJRT_Error_Code_ABORTED, "never");
  destroy_buffer(alias.buffer);
  // An error of the contents.
  alias = make_alias(4);
  PJRT_Buffer *source = make_error();
  expect_ok(try_fulfill(alias, source, PJRT_Error_Code_OK, NULL));
  expect_failed(alias.buffer, PJRT_Error_Code_DATA_LOSS, "lost");
  destroy_buffer(alias.buffer);
  destroy_buffer(source);
  // Another shape, which stays what it is.
  alias = make_alias(5);
  source = make_counting();
  expect_error(try_fulfill(alias, source, PJRT_Error_Code_OK, NULL),
               PJRT_Error_Code_INVALID_ARGUMENT, "tensor<5xf32> was promised, not tensor<4xf32>");
  float got[5];
  expect_error(try_get(alias.buffer, got, sizeof(got)), PJRT_Error_Code_INVALID_ARGUMENT,
               "was promised");
  expect_counting(source);
  destroy_buffer(alias.buffer);
  destroy_buffer(source);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_bitcast_has_the_same_bytes),
      cmocka_unit_test(a_refused_bitcast_leaves_the_buffer),
      cmocka_unit_test(a_view_survives_a_bitcast),
      cmocka_unit_test(a_donation_waits_for_its_condition),
      cmocka_unit_test(a_condition_that_fails_is_the_error),
      cmocka_unit_test(an_alias_gets_its_contents_later),
      cmocka_unit_test(an_alias_may_be_moved_before_it_has_contents),
      cmocka_unit_test(an_alias_may_fail),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
