// Shared names: reference-counted strings. For example, a buffer keeps the name of the executable
// that made it, and may outlive the executable.
#ifndef MINIPOD_SIM_RUNTIME_MEMORY_NAME_H_
#define MINIPOD_SIM_RUNTIME_MEMORY_NAME_H_

#include <stdatomic.h>

#include "sim/base/alloc.h"
#include "sim/base/str.h"

typedef struct {
  atomic_int references;  // the text never changes
  char text[];
} mp_name_t;

// A name with a copy of the text, with one reference. RESOURCE_EXHAUSTED when memory is short.
static inline MP_NODISCARD mp_status_t mp_name_create(mp_str_t text, mp_name_t **out_name) {
  mp_name_t *name = mp_malloc(sizeof(*name) + text.size + 1);
  MP_RETURN_IF_NULL(name);
  atomic_init(&name->references, 1);
  if (text.size != 0) memcpy(name->text, text.data, text.size);
  name->text[text.size] = '\0';
  *out_name = name;
  return NULL;
}

// Adds a reference and returns the name. NULL: nothing.
static inline mp_name_t *mp_name_retain(mp_name_t *name) {
  if (name != NULL) atomic_fetch_add_explicit(&name->references, 1, memory_order_relaxed);
  return name;
}

// Drops a reference; the last one frees the name. NULL: nothing.
static inline void mp_name_release(mp_name_t *name) {
  if (name == NULL) return;
  if (atomic_fetch_sub_explicit(&name->references, 1, memory_order_acq_rel) == 1) mp_free(name);
}

#endif  // MINIPOD_SIM_RUNTIME_MEMORY_NAME_H_
