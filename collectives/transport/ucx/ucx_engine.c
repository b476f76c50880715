#include "collectives/transport/ucx/ucx_engine.h"

#include <signal.h>
#include <stdlib.h>

#include "sim/base/alloc.h"
#include "sim/base/assert.h"

enum { MP_UCX_MESSAGE = 1 };  // the number of our active messages

typedef struct {
  mp_ucx_engine_t *engine;
  mp_ucp_endpoint_t *endpoint;  // NULL: none, or closed
  bool has_failed;
} engine_peer_t;

struct mp_ucx_engine_s {
  const mp_ucx_library_t *ucx;
  mp_ucx_callbacks_t callbacks;
  void *context;
  mp_ucp_context_t *ucp;
  mp_ucp_worker_t *worker;
  mp_ucp_address_t *address;
  size_t address_bytes;
  uint32_t num_peers;
  bool has_failures;  // endpoints that failed are still to be closed
  bool is_closing;    // nothing is called back any more
  bool is_gone;       // UCX does not refer to the engine any more
  engine_peer_t peers[];
};

// ---- Creating and closing ----

static mp_status_t ucx_engine_check(const mp_ucx_engine_t *engine, mp_ucs_status_t status,
                                    const char *call) {
  if (status == MP_UCS_OK) return NULL;
  return mp_status_make(status == MP_UCS_ERR_NO_MEMORY ? MP_RESOURCE_EXHAUSTED : MP_UNAVAILABLE,
                        "UCX %u.%u: %s: %s", engine->ucx->major, engine->ucx->minor, call,
                        engine->ucx->ucs_status_string(status));
}

// Everything but shared memory, which this library has itself, unless the user says otherwise: UCX
// would take containers of one machine for one host and leave files in /dev/shm.
static mp_status_t ucx_engine_make_context(mp_ucx_engine_t *engine) {
  mp_ucp_config_t *config = NULL;
  MP_RETURN_IF_ERROR(ucx_engine_check(engine, engine->ucx->ucp_config_read(NULL, NULL, &config),
                                      "reading UCX_* from the environment"));
  mp_ucs_status_t status = MP_UCS_OK;
  if (getenv("UCX_TLS") == NULL) status = engine->ucx->ucp_config_modify(config, "TLS", "^shm");
  if (status == MP_UCS_OK) {
    const mp_ucp_params_t params = {
        .field_mask = MP_UCP_PARAM_FIELD_FEATURES | MP_UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
        .features = MP_UCP_FEATURE_AM,
        .estimated_num_eps = engine->num_peers};
    status = engine->ucx->ucp_init_version(MP_UCP_API_MAJOR, MP_UCP_API_MINOR, &params, config,
                                           &engine->ucp);
  }
  engine->ucx->ucp_config_release(config);
  return ucx_engine_check(engine, status, "looking for networks");
}

static mp_ucs_status_t ucx_engine_take(void *arg, const void *header, size_t header_length,
                                       void *data, size_t length,
                                       const mp_ucp_am_recv_param_t *param) {
  mp_ucx_engine_t *engine = arg;
  if (engine->is_closing) return MP_UCS_OK;
  const bool is_here = (param->recv_attr & MP_UCP_AM_RECV_ATTR_FLAG_RNDV) == 0;
  const bool is_kept = engine->callbacks.came(engine->context, header, header_length,
                                              length == 0 ? NULL : data, length, is_here);
  return is_kept ? MP_UCS_INPROGRESS : MP_UCS_OK;
}

static mp_status_t ucx_engine_make_worker(mp_ucx_engine_t *engine) {
  const mp_ucx_library_t *ucx = engine->ucx;
  const mp_ucp_worker_params_t params = {.field_mask = MP_UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                         .thread_mode = MP_UCS_THREAD_MODE_SERIALIZED};
  MP_RETURN_IF_ERROR(ucx_engine_check(
      engine, ucx->ucp_worker_create(engine->ucp, &params, &engine->worker), "opening networks"));
  const mp_ucp_am_handler_param_t handler = {
      .field_mask = MP_UCP_AM_HANDLER_PARAM_FIELD_ID | MP_UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                    MP_UCP_AM_HANDLER_PARAM_FIELD_CB | MP_UCP_AM_HANDLER_PARAM_FIELD_ARG,
      .id = MP_UCX_MESSAGE,
      .flags = MP_UCP_AM_FLAG_WHOLE_MSG | MP_UCP_AM_FLAG_PERSISTENT_DATA,
      .cb = ucx_engine_take,
      .arg = engine};
  MP_RETURN_IF_ERROR(ucx_engine_check(engine,
                                      ucx->ucp_worker_set_am_recv_handler(engine->worker, &handler),
                                      "waiting for messages"));
  return ucx_engine_check(
      engine, ucx->ucp_worker_get_address(engine->worker, &engine->address, &engine->address_bytes),
      "asking for the own address");
}

// UCX has a thread of its own, which inherits the signals that are blocked here: signals are for
// the user's threads.
static void ucx_engine_block_signals(sigset_t *out_old) {
  sigset_t all;
  sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, out_old);
}

// Frees everything that a failed creation has made.
static void ucx_engine_undo(mp_ucx_engine_t *engine) {
  if (engine->worker != NULL) engine->ucx->ucp_worker_destroy(engine->worker);
  if (engine->ucp != NULL) engine->ucx->ucp_cleanup(engine->ucp);
  mp_free(engine);
}

mp_status_t mp_ucx_engine_create(const mp_ucx_library_t *library, uint32_t num_peers,
                                 const mp_ucx_callbacks_t *callbacks, void *context,
                                 mp_ucx_engine_t **out_engine) {
  mp_ucx_engine_t *engine = mp_calloc(1, sizeof(*engine) + num_peers * sizeof(engine_peer_t));
  MP_RETURN_IF_NULL(engine);
  engine->ucx = library;
  engine->callbacks = *callbacks;
  engine->context = context;
  engine->num_peers = num_peers;
  for (uint32_t i = 0; i < num_peers; ++i) engine->peers[i].engine = engine;
  sigset_t old;
  ucx_engine_block_signals(&old);
  mp_status_t status = ucx_engine_make_context(engine);
  if (status == NULL) status = ucx_engine_make_worker(engine);
  (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
  if (status != NULL) {
    ucx_engine_undo(engine);
    return status;
  }
  *out_engine = engine;
  return NULL;
}

void mp_ucx_engine_address(const mp_ucx_engine_t *engine, const void **out_bytes,
                           size_t *out_size) {
  *out_bytes = engine->address;
  *out_size = engine->address_bytes;
}

// ---- Peers ----

// An endpoint must not be closed in here; progress does it.
static void ucx_engine_fail(void *arg, mp_ucp_endpoint_t *endpoint, mp_ucs_status_t status) {
  engine_peer_t *peer = arg;
  mp_ucx_engine_t *engine = peer->engine;
  // Not for a connection that another one has replaced.
  if (peer->has_failed || endpoint != peer->endpoint) return;
  peer->has_failed = true;
  engine->has_failures = true;
  if (engine->is_closing) return;
  engine->callbacks.failed(engine->context, (uint32_t)(peer - engine->peers), status);
}

mp_status_t mp_ucx_engine_connect(mp_ucx_engine_t *engine, uint32_t rank, const void *address) {
  MP_ASSERT(rank < engine->num_peers);
  engine_peer_t *peer = &engine->peers[rank];
  const mp_ucp_ep_params_t params = {.field_mask = MP_UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                                   MP_UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                                                   MP_UCP_EP_PARAM_FIELD_ERR_HANDLER,
                                     .address = address,
                                     .err_mode = MP_UCP_ERR_HANDLING_MODE_PEER,
                                     .err_handler = {.cb = ucx_engine_fail, .arg = peer}};
  sigset_t old;
  ucx_engine_block_signals(&old);
  const mp_ucs_status_t status =
      engine->ucx->ucp_ep_create(engine->worker, &params, &peer->endpoint);
  (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
  return ucx_engine_check(engine, status, "no way to a process of another host");
}

static void ucx_engine_disconnect(mp_ucx_engine_t *engine, engine_peer_t *peer) {
  if (peer->endpoint == NULL) return;
  const mp_ucp_request_param_t param = {.op_attr_mask = MP_UCP_OP_ATTR_FIELD_FLAGS,
                                        .flags = MP_UCP_EP_CLOSE_FLAG_FORCE};
  mp_ucs_status_ptr_t closing = engine->ucx->ucp_ep_close_nbx(peer->endpoint, &param);
  peer->endpoint = NULL;
  if (!mp_ucx_is_request(closing)) return;
  // UCX drops the messages in flight; it needs one or two calls of progress for this, and no
  // waiting.
  enum { MOST_TURNS = 10000 };
  for (int i = 0; i < MOST_TURNS; ++i) {
    if (engine->ucx->ucp_request_check_status(closing) != MP_UCS_INPROGRESS) break;
    (void)engine->ucx->ucp_worker_progress(engine->worker);
  }
  engine->ucx->ucp_request_free(closing);
}

void mp_ucx_engine_forget(mp_ucx_engine_t *engine, uint32_t rank) {
  engine_peer_t *peer = &engine->peers[rank];
  ucx_engine_disconnect(engine, peer);
  peer->has_failed = false;
}

// ---- Messages ----

static void ucx_engine_sent(void *request, mp_ucs_status_t status, void *user_data) {
  mp_ucx_item_t *item = user_data;
  mp_ucx_engine_t *engine = item->engine;
  if (!engine->is_closing) engine->callbacks.sent(engine->context, item, status);
  engine->ucx->ucp_request_free(request);
}

bool mp_ucx_engine_send(mp_ucx_engine_t *engine, uint32_t rank, const void *header,
                        size_t header_bytes, const void *data, size_t bytes, mp_ucx_item_t *item) {
  engine_peer_t *peer = &engine->peers[rank];
  item->engine = engine;
  mp_ucs_status_ptr_t result = (void *)(intptr_t)MP_UCS_ERR_CANCELED;
  if (peer->endpoint != NULL && !peer->has_failed) {
    const mp_ucp_request_param_t param = {
        .op_attr_mask = MP_UCP_OP_ATTR_FIELD_CALLBACK | MP_UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send = ucx_engine_sent,
        .user_data = item};
    result = engine->ucx->ucp_am_send_nbx(peer->endpoint, MP_UCX_MESSAGE, header, header_bytes,
                                          data, bytes, &param);
  }
  if (mp_ucx_is_request(result)) return true;
  const mp_ucs_status_t status = mp_ucx_code(result);
  if (status == MP_UCS_ERR_NO_MEMORY) return false;
  if (status != MP_UCS_OK) ucx_engine_fail(peer, peer->endpoint, status);
  engine->callbacks.sent(engine->context, item, status);
  return true;
}

static void ucx_engine_fetched(void *request, mp_ucs_status_t status, size_t length,
                               void *user_data) {
  (void)length;
  mp_ucx_item_t *item = user_data;
  mp_ucx_engine_t *engine = item->engine;
  if (!engine->is_closing) engine->callbacks.fetched(engine->context, item, status);
  engine->ucx->ucp_request_free(request);
}

bool mp_ucx_engine_fetch(mp_ucx_engine_t *engine, void *data, void *memory, size_t bytes,
                         mp_ucx_item_t *item) {
  item->engine = engine;
  const mp_ucp_request_param_t param = {
      .op_attr_mask = MP_UCP_OP_ATTR_FIELD_CALLBACK | MP_UCP_OP_ATTR_FIELD_USER_DATA,
      .cb.recv_am = ucx_engine_fetched,
      .user_data = item};
  mp_ucs_status_ptr_t result =
      engine->ucx->ucp_am_recv_data_nbx(engine->worker, data, memory, bytes, &param);
  if (mp_ucx_is_request(result)) return true;
  const mp_ucs_status_t status = mp_ucx_code(result);
  if (status == MP_UCS_ERR_NO_MEMORY) return false;
  engine->callbacks.fetched(engine->context, item, status);
  return true;
}

void mp_ucx_engine_refuse(mp_ucx_engine_t *engine, void *data) {
  engine->ucx->ucp_am_data_release(engine->worker, data);
}

// ---- Progress ----

static void ucx_engine_close_failed(mp_ucx_engine_t *engine) {
  engine->has_failures = false;
  for (uint32_t i = 0; i < engine->num_peers; ++i) {
    if (engine->peers[i].has_failed) ucx_engine_disconnect(engine, &engine->peers[i]);
  }
}

bool mp_ucx_engine_progress(mp_ucx_engine_t *engine) {
  // One call of progress: the messages that it brings are handled, and answered, before more are
  // read.
  const bool did = engine->ucx->ucp_worker_progress(engine->worker) != 0;
  if (engine->has_failures) ucx_engine_close_failed(engine);
  return did;
}

void mp_ucx_engine_close(mp_ucx_engine_t *engine, bool is_settled) {
  if (engine->is_closing) return;
  engine->is_closing = true;
  if (!is_settled) return;
  for (uint32_t i = 0; i < engine->num_peers; ++i) ucx_engine_disconnect(engine, &engine->peers[i]);
  engine->ucx->ucp_worker_release_address(engine->worker, engine->address);
  engine->ucx->ucp_worker_destroy(engine->worker);
  engine->ucx->ucp_cleanup(engine->ucp);
  engine->is_gone = true;
}

void mp_ucx_engine_release(mp_ucx_engine_t *engine) {
  if (engine == NULL) return;
  mp_ucx_engine_close(engine, false);
  // UCX's thread and its state of unbroken connections may still refer to the engine.
  if (engine->is_gone) mp_free(engine);
}
