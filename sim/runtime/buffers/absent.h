// The result of reading values that were not computed (option `absent`), when programs run for
// their shapes alone: an error that names the array, or substitute numbers. Only the reader sees
// these: values in the pod that depend on the array are still not computed.
#ifndef MINIPOD_SIM_RUNTIME_BUFFERS_ABSENT_H_
#define MINIPOD_SIM_RUNTIME_BUFFERS_ABSENT_H_

#include "sim/runtime/buffers/storage.h"

// Bytes [offset, offset + bytes) of the substitute for the dense array in `storage`, which is
// defined and has no values; the caller frees them (mp_free). The first call prints a line on
// stderr that names the array. FAILED_PRECONDITION if the option makes reading an error;
// RESOURCE_EXHAUSTED when memory is short. Takes the lock of the storage's memory.
MP_NODISCARD mp_status_t mp_absent_read(const mp_storage_t *storage, mp_dtype_t dtype,
                                        uint64_t offset, uint64_t bytes, void **out_bytes);
// The same for the operand of a function; messages call it `what`.
MP_NODISCARD mp_status_t mp_absent_read_as(mp_client_t *client, const char *what, mp_dtype_t dtype,
                                           uint64_t bytes, void **out_bytes);

#endif  // MINIPOD_SIM_RUNTIME_BUFFERS_ABSENT_H_
