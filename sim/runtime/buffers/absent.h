// The result of reading values that were not computed (option `absent`), where programs run for
// their shapes alone: an error that names the array, or numbers in their place. Only the reader
// sees these: what depends on the array in the pod is still not computed.
#ifndef MINIPOD_SIM_RUNTIME_BUFFERS_ABSENT_H_
#define MINIPOD_SIM_RUNTIME_BUFFERS_ABSENT_H_

#include "sim/runtime/buffers/storage.h"

// Bytes [offset, offset + bytes) of what stands for the dense array of these elements in `storage`,
// which is defined and has no values; the caller frees them (mp_free). The first time a line on
// stderr names the array. FAILED_PRECONDITION where reading is an error; RESOURCE_EXHAUSTED when
// memory is short. Takes the lock of the storage's memory.
MP_NODISCARD mp_status_t mp_absent_read(const mp_storage_t *storage, mp_dtype_t dtype,
                                        uint64_t offset, uint64_t bytes, void **out_bytes);
// The same for something else that is read and is called `what`: an operand of a function.
MP_NODISCARD mp_status_t mp_absent_read_as(mp_client_t *client, const char *what, mp_dtype_t dtype,
                                           uint64_t bytes, void **out_bytes);

#endif  // MINIPOD_SIM_RUNTIME_BUFFERS_ABSENT_H_
