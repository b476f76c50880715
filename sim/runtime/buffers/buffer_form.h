// Forms: the type and shape of arrays, independent of where they are. All arrays of one result of a
// launch share one form, because a pod of 50,000 devices has millions of arrays.
//
// Reference-counted, thread-safe, constant.
#ifndef MINIPOD_SIM_RUNTIME_BUFFERS_BUFFER_FORM_H_
#define MINIPOD_SIM_RUNTIME_BUFFERS_BUFFER_FORM_H_

#include <stdatomic.h>

#include "sim/base/status.h"
#include "sim/ir/type.h"

typedef struct {
  atomic_int references;
  uint64_t bytes;
  mp_type_t type;  // of a tensor, or the token's
  int64_t dims[];  // [type.rank] what type.dims points to
} mp_buffer_form_t;

// The form of an array, or of a token (MP_DTYPE_INVALID); `dims` are copied. The array must be
// valid (mp_buffer_form_bytes_of). RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_buffer_form_create(mp_dtype_t dtype, const int64_t *dims, uint32_t rank,
                                               mp_buffer_form_t **out_form);
// mp_buffer_form_retain adds a reference and returns the form; the last mp_buffer_form_release
// frees it. NULL has no effect in either.
mp_buffer_form_t *mp_buffer_form_retain(mp_buffer_form_t *form);
void mp_buffer_form_release(mp_buffer_form_t *form);

// The bytes of an array of this type and shape. INVALID_ARGUMENT when there is no such array.
MP_NODISCARD mp_status_t mp_buffer_form_bytes_of(mp_dtype_t dtype, const int64_t *dims,
                                                 uint32_t rank, uint64_t *out_bytes);

#endif  // MINIPOD_SIM_RUNTIME_BUFFERS_BUFFER_FORM_H_
