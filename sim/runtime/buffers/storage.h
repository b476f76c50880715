// Storages: the bytes of a buffer, held by all their users.
//
// Holds are counted: the buffer's own (until it is deleted or donated), one per external reference,
// transfer in flight, or run that reads adopted memory. Runs need no hold on memory of their own
// device: freeing is in stream order (memory.h), so a storage only remembers the newest run that
// uses it.
#ifndef MINIPOD_SIM_RUNTIME_BUFFERS_STORAGE_H_
#define MINIPOD_SIM_RUNTIME_BUFFERS_STORAGE_H_

#include "sim/runtime/devices/device.h"
#include "sim/runtime/memory/memory.h"

// The bytes of a small array when programs run for their shapes alone. Arrays with equal bytes may
// share them, and then they are constant.
typedef struct {
  atomic_int references;
  uint64_t bytes;
  _Alignas(64) char data[];
} mp_contents_t;

// Contents whose bytes are not initialized. RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_contents_create(uint64_t bytes, mp_contents_t **out_contents);
// mp_contents_retain adds a reference and returns the same; the last mp_contents_release frees it.
// NULL has no effect in either.
mp_contents_t *mp_contents_retain(mp_contents_t *contents);
void mp_contents_release(mp_contents_t *contents);

// Whether an array has values when programs run for their shapes alone, and which. The code that
// brings the contents sets it before the array's definition, and readers read it afterwards: the
// event publishes it, so it needs no lock. Runs hold it longer than the storage.
typedef struct {
  atomic_int references;
  bool are_there;
  mp_contents_t *contents;  // a reference; NULL: no bytes were brought, or they are adopted
  void *data;               // of the contents, or adopted; NULL: none
  mp_name_t *maker;  // a reference: what would have computed them, for messages; NULL: unknown
} mp_values_t;

// A new one, without values. RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_values_create(mp_values_t **out_values);
// mp_values_retain adds a reference and returns the same; the last mp_values_release frees it. NULL
// has no effect in either.
mp_values_t *mp_values_retain(mp_values_t *values);
// Called before the array's definition is set: what would have computed the values. NULL: unknown.
void mp_values_set_maker(mp_values_t *values, mp_name_t *maker);
void mp_values_release(mp_values_t *values);

// The owner of adopted memory, to which it is returned.
typedef struct {
  void (*on_release)(void *context);
  void *context;
} mp_storage_lender_t;

// There may be millions, so this is no larger than it has to be.
typedef struct {
  atomic_int references;  // holds
  bool is_adopted;
  mp_memory_t *memory;
  void *data;  // never NULL; where programs run for their shapes alone: see `values`
  uint64_t bytes;
  union {
    mp_span_t *block;             // NULL: no bytes
    mp_storage_lender_t *lender;  // of adopted memory; owned; NULL: no lender to notify
  };
  // Newest run of the memory's device that uses it; 0: none. Written under the launch lock; the
  // release of the last hold reads it without, after all earlier holders.
  _Atomic uint64_t last_use;
  // A reference: the values when programs run for their shapes alone (option `values`) and a block
  // has no bytes; otherwise NULL. A launch that takes the storage over brings its own.
  mp_values_t *values;
  mp_label_t *label;  // a reference; changed under the memory's lock
} mp_storage_t;

// When programs run for their shapes alone, larger arrays have no values.
enum { MP_SMALL_BYTES = 64 << 10 };

// New memory, with one hold. `label` is copied (its name retained); `after` and the error are those
// of mp_memory_alloc.
MP_NODISCARD mp_status_t mp_storage_create(mp_memory_t *memory, uint64_t bytes, uint64_t after,
                                           const mp_label_t *label, mp_storage_t **out_storage);
// The same for a result of a launch: its label is shared, so it is retained. A run for shapes alone
// brings the values.
MP_NODISCARD mp_status_t mp_storage_create_result(mp_memory_t *memory, uint64_t bytes,
                                                  uint64_t after, mp_label_t *label,
                                                  mp_storage_t **out_storage);
// The same for a copy of another storage: when programs run for their shapes alone, it gets bytes
// only if the source has some by then, and equal bytes are shared.
MP_NODISCARD mp_status_t mp_storage_create_copy(mp_memory_t *memory, uint64_t bytes, uint64_t after,
                                                const mp_label_t *label,
                                                mp_storage_t **out_storage);
// Gives the values of such a copy the bytes of its defined source: its own copy of them, if those
// are lent. RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_values_copy(mp_values_t *values, const mp_values_t *source,
                                        uint64_t bytes);
// The address of the bytes at `data` (an address in storage->data) once the array is defined: the
// same, or one in the contents.
void *mp_storage_find(const mp_storage_t *storage, const void *data);
// A storage of the caller's memory, which is counted against the capacity. When the last hold is
// gone, the memory goes back to the lender, if there is one by then (mp_storage_set_lender).
MP_NODISCARD mp_status_t mp_storage_adopt(mp_memory_t *memory, uint64_t bytes, void *data,
                                          const mp_label_t *label, mp_storage_t **out_storage);
// Registers `on_release`, which is called with `context`, without locks, when the last hold on
// adopted memory is released. RESOURCE_EXHAUSTED when memory is short: then it is not called.
MP_NODISCARD mp_status_t mp_storage_set_lender(mp_storage_t *storage,
                                               void (*on_release)(void *context), void *context);
// mp_storage_retain adds a hold and returns the storage; the last mp_storage_release gives the
// bytes back. Release adopted memory without any lock held: its owner is called. NULL has no effect
// in either.
mp_storage_t *mp_storage_retain(mp_storage_t *storage);
void mp_storage_release(mp_storage_t *storage);
// True when the caller's hold is the only one.
bool mp_storage_is_sole(const mp_storage_t *storage);
// True for memory that belongs to the caller of mp_storage_adopt.
bool mp_storage_is_adopted(const mp_storage_t *storage);
// Records that run `number` of the memory's device uses the storage. The caller holds the client's
// launch lock; numbers never go down.
void mp_storage_used_by_run(mp_storage_t *storage, uint64_t number);
// Changes the label, because the bytes have become something else (a donated input became a
// result). `label` is retained.
void mp_storage_relabel(mp_storage_t *storage, mp_label_t *label);

#endif  // MINIPOD_SIM_RUNTIME_BUFFERS_STORAGE_H_
