// Storages: the bytes behind a buffer, held by everybody who still uses them.
//
// Holds are counted: the buffer's own (until it is deleted or donated), one per external reference,
// transfer in flight, or run that reads adopted memory. Runs need no hold on memory of their own
// device: freeing is in stream order (memory.h), so a storage only remembers the newest run that
// uses it.
#ifndef MINIPOD_SIM_RUNTIME_BUFFERS_STORAGE_H_
#define MINIPOD_SIM_RUNTIME_BUFFERS_STORAGE_H_

#include "sim/runtime/devices/client_impl.h"
#include "sim/runtime/memory/memory.h"

typedef struct {
  atomic_int references;
  mp_memory_t *memory;
  void *data;  // never NULL
  uint64_t bytes;
  mp_span_t *block;           // NULL: adopted, or no bytes
  _Atomic uint64_t last_use;  // newest run of the memory's device; 0: none
  bool is_adopted;
  void (*on_release)(void *context);  // adopted memory; may be NULL
  void *context;
  mp_label_t label;  // its name is owned; changed under the memory's lock
} mp_storage_t;

// `label` is copied (its name retained); `after` as for mp_memory_alloc.
MP_NODISCARD mp_status_t mp_storage_create(mp_memory_t *memory, uint64_t bytes, uint64_t after,
                                           const mp_label_t *label, mp_storage_t **out_storage);
// The caller's memory; counted in the books. `on_release` is not called on failure.
MP_NODISCARD mp_status_t mp_storage_adopt(mp_memory_t *memory, uint64_t bytes, void *data,
                                          const mp_label_t *label,
                                          void (*on_release)(void *context), void *context,
                                          mp_storage_t **out_storage);
mp_storage_t *mp_storage_retain(mp_storage_t *storage);
void mp_storage_release(mp_storage_t *storage);
// True when the caller's hold is the only one.
bool mp_storage_is_sole(const mp_storage_t *storage);
bool mp_storage_is_adopted(const mp_storage_t *storage);
// Run `number` of its device uses it. Called under the client's launch lock.
void mp_storage_used_by_run(mp_storage_t *storage, uint64_t number);
// Its bytes now are something else (a donated input became a result).
void mp_storage_relabel(mp_storage_t *storage, const mp_label_t *label);

#endif  // MINIPOD_SIM_RUNTIME_BUFFERS_STORAGE_H_
