// UCX's library, opened at run time.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_UCX_UCX_LIBRARY_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_UCX_UCX_LIBRARY_H_

#include <stdbool.h>

#include "collectives/transport/ucx/ucx_abi.h"
#include "sim/base/status.h"

// The functions of the library, by UCX's own names.
typedef struct {
#define MP_UCX_MEMBER(result, name, parameters) result(*name) parameters;
  MP_UCX_FUNCTIONS(MP_UCX_MEMBER)
#undef MP_UCX_MEMBER
  unsigned major, minor, release;
} mp_ucx_library_t;

// The library, opened by the first call and never closed: UCX leaves threads and handlers behind.
// UNAVAILABLE when there is none, or one before 1.11, with the name of the package that brings it.
// The environment is read, and may be added to (ucx_library.c), so no other thread may change it
// meanwhile. One thread at a time.
MP_NODISCARD mp_status_t mp_ucx_library_open(const mp_ucx_library_t **out_library);

// Whether what an operation returned is an error (mp_ucx_is_error), or a request that is under way
// (mp_ucx_is_request); NULL is neither. The code of an error.
static inline bool mp_ucx_is_error(mp_ucs_status_ptr_t result) {
  return (uintptr_t)result >= (uintptr_t)(intptr_t)MP_UCS_ERR_LAST;
}
static inline bool mp_ucx_is_request(mp_ucs_status_ptr_t result) {
  return result != NULL && !mp_ucx_is_error(result);
}
static inline mp_ucs_status_t mp_ucx_code(mp_ucs_status_ptr_t result) {
  return (mp_ucs_status_t)(intptr_t)result;
}

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_UCX_UCX_LIBRARY_H_
