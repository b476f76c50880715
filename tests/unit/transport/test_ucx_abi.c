// Our declarations of UCX's interface against its public headers (Debian: libucx-dev), and against
// the library that is installed.
#include <stdlib.h>
#include <string.h>

#include "collectives/transport/ucx/ucx_library.h"
#include "tests/unit/support/unit.h"

#if __has_include(<ucp/api/ucp.h>)
#pragma GCC diagnostic ignored "-Wpedantic"  // the headers are written in GNU C
#include <ucp/api/ucp.h>

#define SAME_SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #theirs)
#define SAME_PLACE(ours, our_member, theirs, member)                                   \
  _Static_assert(offsetof(ours, our_member) == offsetof(theirs, member) &&             \
                     sizeof(((ours *)0)->our_member) == sizeof(((theirs *)0)->member), \
                 #theirs "." #member)
#define SAME(ours, theirs, member) SAME_PLACE(ours, member, theirs, member)
#define SAME_NUMBER(name)          _Static_assert((uint64_t)MP_##name == (uint64_t)(name), #name)

SAME_SIZE(mp_ucs_status_t, ucs_status_t);
SAME_SIZE(mp_ucp_params_t, ucp_params_t);
SAME(mp_ucp_params_t, ucp_params_t, field_mask);
SAME(mp_ucp_params_t, ucp_params_t, features);
SAME(mp_ucp_params_t, ucp_params_t, estimated_num_eps);
SAME(mp_ucp_params_t, ucp_params_t, name);
SAME_SIZE(mp_ucp_worker_params_t, ucp_worker_params_t);
SAME(mp_ucp_worker_params_t, ucp_worker_params_t, field_mask);
SAME(mp_ucp_worker_params_t, ucp_worker_params_t, thread_mode);
SAME(mp_ucp_worker_params_t, ucp_worker_params_t, events);
SAME(mp_ucp_worker_params_t, ucp_worker_params_t, client_id);
SAME_SIZE(mp_ucp_ep_params_t, ucp_ep_params_t);
SAME(mp_ucp_ep_params_t, ucp_ep_params_t, field_mask);
SAME(mp_ucp_ep_params_t, ucp_ep_params_t, address);
SAME(mp_ucp_ep_params_t, ucp_ep_params_t, err_mode);
SAME(mp_ucp_ep_params_t, ucp_ep_params_t, err_handler.cb);
SAME(mp_ucp_ep_params_t, ucp_ep_params_t, err_handler.arg);
SAME(mp_ucp_ep_params_t, ucp_ep_params_t, local_sockaddr);
SAME_SIZE(mp_ucp_am_recv_param_t, ucp_am_recv_param_t);
SAME(mp_ucp_am_recv_param_t, ucp_am_recv_param_t, recv_attr);
SAME_SIZE(mp_ucp_am_handler_param_t, ucp_am_handler_param_t);
SAME(mp_ucp_am_handler_param_t, ucp_am_handler_param_t, field_mask);
SAME(mp_ucp_am_handler_param_t, ucp_am_handler_param_t, id);
SAME(mp_ucp_am_handler_param_t, ucp_am_handler_param_t, flags);
SAME(mp_ucp_am_handler_param_t, ucp_am_handler_param_t, cb);
SAME(mp_ucp_am_handler_param_t, ucp_am_handler_param_t, arg);
SAME_SIZE(mp_ucp_request_param_t, ucp_request_param_t);
SAME(mp_ucp_request_param_t, ucp_request_param_t, op_attr_mask);
SAME(mp_ucp_request_param_t, ucp_request_param_t, flags);
SAME(mp_ucp_request_param_t, ucp_request_param_t, cb);
SAME(mp_ucp_request_param_t, ucp_request_param_t, datatype);
SAME(mp_ucp_request_param_t, ucp_request_param_t, user_data);
SAME(mp_ucp_request_param_t, ucp_request_param_t, memory_type);

SAME_NUMBER(UCS_OK);
SAME_NUMBER(UCS_INPROGRESS);
SAME_NUMBER(UCS_ERR_NO_MEMORY);
SAME_NUMBER(UCS_ERR_UNREACHABLE);
SAME_NUMBER(UCS_ERR_CANCELED);
SAME_NUMBER(UCS_ERR_LAST);
SAME_NUMBER(UCP_PARAM_FIELD_FEATURES);
SAME_NUMBER(UCP_PARAM_FIELD_ESTIMATED_NUM_EPS);
SAME_NUMBER(UCP_FEATURE_AM);
SAME_NUMBER(UCP_WORKER_PARAM_FIELD_THREAD_MODE);
SAME_NUMBER(UCS_THREAD_MODE_SERIALIZED);
SAME_NUMBER(UCP_EP_PARAM_FIELD_REMOTE_ADDRESS);
SAME_NUMBER(UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE);
SAME_NUMBER(UCP_EP_PARAM_FIELD_ERR_HANDLER);
SAME_NUMBER(UCP_ERR_HANDLING_MODE_PEER);
SAME_NUMBER(UCP_EP_CLOSE_FLAG_FORCE);
SAME_NUMBER(UCP_AM_HANDLER_PARAM_FIELD_ID);
SAME_NUMBER(UCP_AM_HANDLER_PARAM_FIELD_FLAGS);
SAME_NUMBER(UCP_AM_HANDLER_PARAM_FIELD_CB);
SAME_NUMBER(UCP_AM_HANDLER_PARAM_FIELD_ARG);
SAME_NUMBER(UCP_AM_FLAG_WHOLE_MSG);
SAME_NUMBER(UCP_AM_FLAG_PERSISTENT_DATA);
SAME_NUMBER(UCP_AM_SEND_FLAG_EAGER);
SAME_NUMBER(UCP_AM_SEND_FLAG_RNDV);
SAME_NUMBER(UCP_AM_RECV_ATTR_FLAG_DATA);
SAME_NUMBER(UCP_AM_RECV_ATTR_FLAG_RNDV);
SAME_NUMBER(UCP_OP_ATTR_FIELD_CALLBACK);
SAME_NUMBER(UCP_OP_ATTR_FIELD_USER_DATA);
SAME_NUMBER(UCP_OP_ATTR_FIELD_FLAGS);

// Our prototypes have as many parameters as UCX's, and results as large. What the pointers among
// them point to was compared above.
#define PARAMETERS_FIT(name, ...)                                                                 \
  _Static_assert(sizeof(name(__VA_ARGS__)) == sizeof(((mp_ucx_library_t *)0)->name(__VA_ARGS__)), \
                 #name)
PARAMETERS_FIT(ucp_init_version, 0, 0, 0, 0, 0);
PARAMETERS_FIT(ucp_config_read, 0, 0, 0);
PARAMETERS_FIT(ucp_config_modify, 0, 0, 0);
PARAMETERS_FIT(ucp_worker_create, 0, 0, 0);
PARAMETERS_FIT(ucp_worker_get_address, 0, 0, 0);
PARAMETERS_FIT(ucp_worker_set_am_recv_handler, 0, 0);
PARAMETERS_FIT(ucp_worker_progress, 0);
PARAMETERS_FIT(ucp_ep_create, 0, 0, 0);
PARAMETERS_FIT(ucp_ep_close_nbx, 0, 0);
PARAMETERS_FIT(ucp_am_send_nbx, 0, 0, 0, 0, 0, 0, 0);
PARAMETERS_FIT(ucp_am_recv_data_nbx, 0, 0, 0, 0, 0);
PARAMETERS_FIT(ucp_request_check_status, 0);
PARAMETERS_FIT(ucs_status_string, 0);

static void declarations_are_those_of_the_headers(void **state) {
  (void)state;  // the compiler has compared them
  assert_int_equal(UCP_API_MAJOR, MP_UCP_API_MAJOR);
  assert_true(UCP_API_MINOR >= MP_UCP_API_MINOR);
}
#else
static void declarations_are_those_of_the_headers(void **state) {
  (void)state;
  print_message("skipped: UCX's headers are not here (Debian: apt install libucx-dev)\n");
  skip();
}
#endif

static void the_library_opens(void **state) {
  (void)state;
  const mp_ucx_library_t *library = NULL, *again = NULL;
  assert_int_equal(setenv("UCX_TCP_RX_SEG_SIZE", "300k", 1), 0);
  assert_int_equal(unsetenv("UCX_TCP_TX_SEG_SIZE"), 0);
  mp_status_t status = mp_ucx_library_open(&library);
  if (status != NULL) {
    assert_status(status, MP_UNAVAILABLE, "apt install libucx0");
    print_message("skipped: UCX is not here (Debian: apt install libucx0)\n");
    skip();
  }
  assert_ok(mp_ucx_library_open(&again));
  assert_ptr_equal(library, again);
  assert_string_equal(library->ucs_status_string(MP_UCS_ERR_CANCELED), "Request canceled");
  // A user's own setting stays.
  assert_string_equal(getenv("UCX_TCP_RX_SEG_SIZE"), "300k");
  assert_string_equal(getenv("UCX_TCP_TX_SEG_SIZE"), "128k");
}

static void results_are_distinguished(void **state) {
  (void)state;
  int request = 0;
  const mp_ucs_status_ptr_t error = (void *)(intptr_t)MP_UCS_ERR_CANCELED;
  assert_true(mp_ucx_is_error(error) && !mp_ucx_is_request(error));
  assert_int_equal(mp_ucx_code(error), MP_UCS_ERR_CANCELED);
  assert_true(mp_ucx_is_request(&request) && !mp_ucx_is_error(&request));
  assert_false(mp_ucx_is_request(NULL) || mp_ucx_is_error(NULL));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(declarations_are_those_of_the_headers),
      cmocka_unit_test(the_library_opens),
      cmocka_unit_test(results_are_distinguished),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
