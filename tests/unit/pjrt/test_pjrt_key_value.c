// Clients that find each other by the key-value callbacks of PJRT_Client_Create: real processes,
// forked from this one.

#include "tests/unit/support/pjrt_test.h"
#include "tests/unit/support/processes/store_processes.h"

static int g_calls;  // of the callbacks, in this process
static int g_deleted;

static void delete_value(char *value) {
  ++g_deleted;
  free(value);
}

static PJRT_Error *error_of(PJRT_CallbackError *make, mp_status_t status) {
  if (status == NULL) return NULL;
  const char *message = mp_status_message(status);
  PJRT_Error *error = (*make)((PJRT_Error_Code)mp_status_code(status), message, strlen(message));
  mp_status_release(status);
  return error;
}

static PJRT_Error *put_callback(PJRT_KeyValuePutCallback_Args *args) {
  ++g_calls;
  char key[96];
  snprintf(key, sizeof(key), "%.*s", (int)args->key_size, args->key);
  if (args->user_arg != &g_calls) abort();
  return error_of(args->callback_error,
                  store_put(NULL, key, (mp_str_t){args->value, args->value_size}));
}

static PJRT_Error *get_callback(PJRT_KeyValueGetCallback_Args *args) {
  ++g_calls;
  char key[96];
  snprintf(key, sizeof(key), "%.*s", (int)args->key_size, args->key);
  if (args->user_arg != &g_deleted) abort();
  mp_strbuf_t value;
  mp_strbuf_init(&value);
  mp_status_t status = store_get(NULL, key, args->timeout_in_ms / 1000., &value);
  if (status == NULL) {
    args->value = malloc(value.size);
    memcpy(args->value, value.data, value.size);
    args->value_size = value.size;
    args->value_deleter_callback = delete_value;
  }
  mp_strbuf_deinit(&value);
  return error_of(args->callback_error, status);
}

static PJRT_Error *create(int64_t node_id, int64_t num_nodes, bool has_callbacks,
                          PJRT_Client **out_client) {
  PJRT_NamedValue options[] = {number_option("num_devices", 2), number_option("workers", 1),
                               number_option("node_id", node_id),
                               number_option("num_nodes", num_nodes)};
  PJRT_Client_Create_Args args = ARGS(PJRT_Client_Create, kv_try_get_user_arg);
  args.create_options = options;
  args.num_options = 4;
  // What frameworks leave there when they have no store: an address of data, and a small number.
  memcpy(&args.kv_get_callback, &(void *){options}, sizeof(void *));
  memcpy(&args.kv_put_callback, &(uintptr_t){0x1002}, sizeof(void *));
  if (has_callbacks) {
    args.kv_get_callback = get_callback;
    args.kv_get_user_arg = &g_deleted;
    args.kv_put_callback = put_callback;
    args.kv_put_user_arg = &g_calls;
  }
  PJRT_Error *error = api()->PJRT_Client_Create(&args);
  *out_client = args.client;
  return error;
}

// One of two processes, each with two clients in sequence.
static int run_client(uint32_t rank) {
  alarm(LIMIT_SECONDS);
  static process_t process;
  process.rank = rank;
  g_process = &process;
  for (int i = 0; i < 2; ++i) {
    PJRT_Client *client = NULL;
    if (create(rank, 2, true, &client) != NULL) return 1;
    PJRT_Client_Devices_Args devices = ARGS(PJRT_Client_Devices, num_devices);
    devices.client = client;
    PJRT_Client_AddressableDevices_Args own =
        ARGS(PJRT_Client_AddressableDevices, num_addressable_devices);
    own.client = client;
    PJRT_Client_ProcessIndex_Args index = ARGS(PJRT_Client_ProcessIndex, process_index);
    index.client = client;
    if (api()->PJRT_Client_Devices(&devices) != NULL || devices.num_devices != 4) return 2;
    if (api()->PJRT_Client_AddressableDevices(&own) != NULL || own.num_addressable_devices != 2)
      return 3;
    if (api()->PJRT_Client_ProcessIndex(&index) != NULL || index.process_index != (int)rank)
      return 4;
    destroy_client(client);
    // Called for the first client alone; every value was given back.
    if (i == 1 && g_calls != 0) return 5;
    if (g_deleted == 0) return 6;
    g_calls = 0;
  }
  return 0;
}

static void clients_find_each_other(void **state) {
  (void)state;
  g_shared->num_entries = 0;
  pid_t children[2];
  for (uint32_t rank = 0; rank < 2; ++rank) {
    children[rank] = fork();
    if (children[rank] == 0) exit(run_client(rank));
  }
  for (uint32_t rank = 0; rank < 2; ++rank) {
    int end = -1;
    assert_int_equal(waitpid(children[rank], &end, 0), children[rank]);
    assert_int_equal(end, 0);
  }
}

static void garbage_is_not_called(void **state) {
  (void)state;
  PJRT_Client *client = NULL;
  expect_error(create(0, 2, false, &client), PJRT_Error_Code_UNIMPLEMENTED,
               "the client brings no key-value callbacks");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(clients_find_each_other),
      cmocka_unit_test(garbage_is_not_called),
  };
  return cmocka_run_group_tests(tests, store_setup, store_teardown);
}
