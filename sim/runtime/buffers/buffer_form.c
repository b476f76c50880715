#include "sim/runtime/buffers/buffer_form.h"

#include <inttypes.h>
#include <string.h>

#include "sim/base/alloc.h"
#include "sim/base/assert.h"

mp_status_t mp_buffer_form_create(mp_dtype_t dtype, const int64_t *dims, uint32_t rank,
                                  mp_buffer_form_t **out_form) {
  mp_buffer_form_t *form = mp_calloc(1, sizeof(*form) + rank * sizeof(int64_t));
  MP_RETURN_IF_NULL(form);
  atomic_init(&form->references, 1);
  if (rank != 0) memcpy(form->dims, dims, rank * sizeof(int64_t));
  form->type = (mp_type_t){
      .kind = dtype == MP_DTYPE_INVALID ? MP_TYPE_TOKEN : MP_TYPE_TENSOR,
      .dtype = dtype,
      .rank = rank,
      .dims = form->dims,
  };
  int64_t bytes = 0;
  (void)mp_type_num_bytes(&form->type, &bytes);  // checked when the storage was made
  form->bytes = (uint64_t)bytes;
  *out_form = form;
  return NULL;
}

mp_buffer_form_t *mp_buffer_form_retain(mp_buffer_form_t *form) {
  if (form == NULL) return NULL;
  // Relaxed: the caller has a reference already.
  const int before = atomic_fetch_add_explicit(&form->references, 1, memory_order_relaxed);
  MP_ASSERT(before > 0);
  return form;
}

void mp_buffer_form_release(mp_buffer_form_t *form) {
  if (form == NULL) return;
  // As all counts of references: the last one frees it after the others.
  const int before = atomic_fetch_sub_explicit(&form->references, 1, memory_order_acq_rel);
  MP_ASSERT(before > 0);
  if (before == 1) mp_free(form);
}

mp_status_t mp_buffer_form_bytes_of(mp_dtype_t dtype, const int64_t *dims, uint32_t rank,
                                    uint64_t *out_bytes) {
  if (rank > MP_MAX_RANK) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "an array of rank %" PRIu32 " was given; at most %d is supported", rank,
                          MP_MAX_RANK);
  }
  if (dtype <= MP_DTYPE_INVALID || dtype >= MP_DTYPE_COUNT) {
    return mp_status_make(MP_INVALID_ARGUMENT, "element type number %d is not known", (int)dtype);
  }
  mp_type_t type = {.kind = MP_TYPE_TENSOR, .dtype = dtype, .rank = rank, .dims = dims};
  int64_t bytes;
  for (uint32_t i = 0; i < rank; ++i) {
    if (dims[i] < 0) {
      return mp_status_make(MP_INVALID_ARGUMENT,
                            "dimension %" PRIu32 " is %" PRId64 "; it must not be negative", i,
                            dims[i]);
    }
  }
  if (!mp_type_num_bytes(&type, &bytes)) {
    return mp_status_make(MP_INVALID_ARGUMENT, "the array has more than 2^63 bytes");
  }
  *out_bytes = (uint64_t)bytes;
  return NULL;
}
