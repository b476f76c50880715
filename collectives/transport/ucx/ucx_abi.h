// The part of UCX's C interface (libucp.so.0) that minipod uses, declared here.
//
// UCX is opened at run time where there are several hosts and no MPI; neither building nor running
// on one host needs it, and nothing of it is copied into this tree. Names are UCX's own with mp_ in
// front; structures have all of UCX's members up to the last one that is used, and a mask says
// which of them are set. tests/unit/transport/test_ucx_abi.c compares sizes, offsets and numbers
// with UCX's public headers, where those are installed. Since 1.11 the interface has been as it is
// here.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_UCX_UCX_ABI_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_UCX_UCX_ABI_H_

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

// ---- Status codes, which fill one byte ----

typedef int8_t mp_ucs_status_t;
enum {
  MP_UCS_OK = 0,
  MP_UCS_INPROGRESS = 1,
  MP_UCS_ERR_NO_MEMORY = -4,
  MP_UCS_ERR_UNREACHABLE = -6,
  MP_UCS_ERR_CANCELED = -16,
  MP_UCS_ERR_LAST = -100,
};

// What operations return: NULL (done), an error code, or a request.
typedef void *mp_ucs_status_ptr_t;

// ---- Opaque objects of UCX ----

typedef struct mp_ucp_context_s mp_ucp_context_t;
typedef struct mp_ucp_worker_s mp_ucp_worker_t;
typedef struct mp_ucp_config_s mp_ucp_config_t;
typedef struct mp_ucp_address_s mp_ucp_address_t;
typedef struct mp_ucp_endpoint_s mp_ucp_endpoint_t;

// ---- Parameters ----

enum {
  MP_UCP_API_MAJOR = 1,
  MP_UCP_API_MINOR = 11,  // the oldest version that has all of this
  MP_UCP_PARAM_FIELD_FEATURES = 1 << 0,
  MP_UCP_PARAM_FIELD_ESTIMATED_NUM_EPS = 1 << 6,
  MP_UCP_FEATURE_AM = 1 << 6,
  MP_UCP_WORKER_PARAM_FIELD_THREAD_MODE = 1 << 0,
  MP_UCS_THREAD_MODE_SERIALIZED = 1,  // any thread, one at a time
};

typedef struct {
  uint64_t field_mask;
  uint64_t features;
  size_t request_size;
  void (*request_init)(void *request);
  void (*request_cleanup)(void *request);
  uint64_t tag_sender_mask;
  int mt_workers_shared;
  size_t estimated_num_eps;
  size_t estimated_num_ppn;
  const char *name;
} mp_ucp_params_t;

typedef struct {
  uint64_t field_mask;
  int thread_mode;
  unsigned long cpu_mask[16];
  unsigned events;
  void *user_data;
  int event_fd;
  uint64_t flags;
  const char *name;
  size_t am_alignment;
  uint64_t client_id;
} mp_ucp_worker_params_t;

typedef void mp_ucp_error_fn(void *arg, mp_ucp_endpoint_t *endpoint, mp_ucs_status_t status);

typedef struct {
  const struct sockaddr *addr;
  socklen_t addrlen;
} mp_ucs_sock_addr_t;

enum {
  MP_UCP_EP_PARAM_FIELD_REMOTE_ADDRESS = 1 << 0,
  MP_UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE = 1 << 1,
  MP_UCP_EP_PARAM_FIELD_ERR_HANDLER = 1 << 2,
  MP_UCP_ERR_HANDLING_MODE_PEER = 1,  // operations fail when the peer does; needs the handler
  MP_UCP_EP_CLOSE_FLAG_FORCE = 1 << 0,
};

typedef struct {
  uint64_t field_mask;
  const mp_ucp_address_t *address;
  int err_mode;
  struct {
    mp_ucp_error_fn *cb;
    void *arg;
  } err_handler;
  void *user_data;
  unsigned flags;
  mp_ucs_sock_addr_t sockaddr;
  void *conn_request;
  const char *name;
  mp_ucs_sock_addr_t local_sockaddr;
} mp_ucp_ep_params_t;

// ---- Active messages ----

typedef struct {
  uint64_t recv_attr;
  mp_ucp_endpoint_t *reply_ep;
} mp_ucp_am_recv_param_t;

typedef mp_ucs_status_t mp_ucp_am_recv_fn(void *arg, const void *header, size_t header_length,
                                          void *data, size_t length,
                                          const mp_ucp_am_recv_param_t *param);

enum {
  MP_UCP_AM_HANDLER_PARAM_FIELD_ID = 1 << 0,
  MP_UCP_AM_HANDLER_PARAM_FIELD_FLAGS = 1 << 1,
  MP_UCP_AM_HANDLER_PARAM_FIELD_CB = 1 << 2,
  MP_UCP_AM_HANDLER_PARAM_FIELD_ARG = 1 << 3,
  MP_UCP_AM_FLAG_WHOLE_MSG = 1 << 0,
  MP_UCP_AM_FLAG_PERSISTENT_DATA = 1 << 1,  // data may always be kept
  MP_UCP_AM_SEND_FLAG_EAGER = 1 << 1,
  MP_UCP_AM_SEND_FLAG_RNDV = 1 << 2,
  MP_UCP_AM_RECV_ATTR_FLAG_DATA = 1 << 16,  // `data` are the bytes, and may be kept
  MP_UCP_AM_RECV_ATTR_FLAG_RNDV = 1 << 17,  // `data` is a descriptor to fetch the bytes with
};

typedef struct {
  uint64_t field_mask;
  unsigned id;
  uint32_t flags;
  mp_ucp_am_recv_fn *cb;
  void *arg;
} mp_ucp_am_handler_param_t;

// ---- Operations ----

enum {
  MP_UCP_OP_ATTR_FIELD_CALLBACK = 1 << 1,
  MP_UCP_OP_ATTR_FIELD_USER_DATA = 1 << 2,
  MP_UCP_OP_ATTR_FIELD_FLAGS = 1 << 4,
};

typedef struct {
  uint32_t op_attr_mask;
  uint32_t flags;
  void *request;
  union {
    void (*send)(void *request, mp_ucs_status_t status, void *user_data);
    void (*recv_am)(void *request, mp_ucs_status_t status, size_t length, void *user_data);
  } cb;
  uint64_t datatype;
  void *user_data;
  void *reply_buffer;
  int memory_type;
  void *recv_info;
  void *memh;
} mp_ucp_request_param_t;

// ---- Functions ----

// Each function that is used: what it returns, its name and its parameters. ucs_status_string is in
// libucs.so.0, which libucp.so.0 brings.
#define MP_UCX_FUNCTIONS(X)                                                                        \
  X(void, ucp_get_version, (unsigned *major, unsigned *minor, unsigned *release))                  \
  X(mp_ucs_status_t, ucp_init_version,                                                             \
    (unsigned major, unsigned minor, const mp_ucp_params_t *params, const mp_ucp_config_t *config, \
     mp_ucp_context_t **out_context))                                                              \
  X(void, ucp_cleanup, (mp_ucp_context_t * context))                                               \
  X(mp_ucs_status_t, ucp_config_read,                                                              \
    (const char *prefix, const char *file, mp_ucp_config_t **out_config))                          \
  X(mp_ucs_status_t, ucp_config_modify,                                                            \
    (mp_ucp_config_t * config, const char *name, const char *value))                               \
  X(void, ucp_config_release, (mp_ucp_config_t * config))                                          \
  X(mp_ucs_status_t, ucp_worker_create,                                                            \
    (mp_ucp_context_t * context, const mp_ucp_worker_params_t *params,                             \
     mp_ucp_worker_t **out_worker))                                                                \
  X(void, ucp_worker_destroy, (mp_ucp_worker_t * worker))                                          \
  X(mp_ucs_status_t, ucp_worker_get_address,                                                       \
    (mp_ucp_worker_t * worker, mp_ucp_address_t * *out_address, size_t * out_length))              \
  X(void, ucp_worker_release_address, (mp_ucp_worker_t * worker, mp_ucp_address_t * address))      \
  X(mp_ucs_status_t, ucp_worker_set_am_recv_handler,                                               \
    (mp_ucp_worker_t * worker, const mp_ucp_am_handler_param_t *param))                            \
  X(unsigned, ucp_worker_progress, (mp_ucp_worker_t * worker))                                     \
  X(mp_ucs_status_t, ucp_ep_create,                                                                \
    (mp_ucp_worker_t * worker, const mp_ucp_ep_params_t *params,                                   \
     mp_ucp_endpoint_t **out_endpoint))                                                            \
  X(mp_ucs_status_ptr_t, ucp_ep_close_nbx,                                                         \
    (mp_ucp_endpoint_t * endpoint, const mp_ucp_request_param_t *param))                           \
  X(mp_ucs_status_ptr_t, ucp_am_send_nbx,                                                          \
    (mp_ucp_endpoint_t * endpoint, unsigned id, const void *header, size_t header_length,          \
     const void *buffer, size_t count, const mp_ucp_request_param_t *param))                       \
  X(mp_ucs_status_ptr_t, ucp_am_recv_data_nbx,                                                     \
    (mp_ucp_worker_t * worker, void *descriptor, void *buffer, size_t count,                       \
     const mp_ucp_request_param_t *param))                                                         \
  X(void, ucp_am_data_release, (mp_ucp_worker_t * worker, void *data))                             \
  X(mp_ucs_status_t, ucp_request_check_status, (void *request))                                    \
  X(void, ucp_request_free, (void *request))                                                       \
  X(const char *, ucs_status_string, (mp_ucs_status_t status))

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_UCX_UCX_ABI_H_
