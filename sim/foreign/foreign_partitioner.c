#include "sim/foreign/foreign_partitioner.h"

#include <stdatomic.h>

#include "sim/base/alloc.h"

// Newest first. Items are never removed, so an equal head means an equal list, and readers need no
// lock: the exchange that adds an item publishes its contents.
static _Atomic(mp_foreign_partitioner_t *) g_first;

mp_status_t mp_foreign_register_partitioner(mp_str_t name, mp_foreign_ask_t ask,
                                            void *partitioner) {
  if (name.size == 0) return mp_status_make(MP_INVALID_ARGUMENT, "a partitioner without a name");
  char *memory = mp_malloc(sizeof(mp_foreign_partitioner_t) + name.size);
  MP_RETURN_IF_NULL(memory);
  mp_foreign_partitioner_t *item = (mp_foreign_partitioner_t *)memory;
  memcpy(memory + sizeof(*item), name.data, name.size);
  mp_foreign_partitioner_t *first = atomic_load(&g_first);
  do
    *item =
        (mp_foreign_partitioner_t){first, {memory + sizeof(*item), name.size}, ask, partitioner};
  while (!atomic_compare_exchange_weak(&g_first, &first, item));
  return NULL;
}

const mp_foreign_partitioner_t *mp_foreign_find_partitioner(mp_str_t name) {
  const mp_foreign_partitioner_t *item = atomic_load(&g_first);
  while (item != NULL && !mp_str_equal(item->name, name)) item = item->next;
  return item;
}
